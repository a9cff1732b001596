// Counting what drawn cases are like.
#include "lamella/verify/programs/census.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/coverage.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/series.h"

namespace lamella::verify {

namespace {

/// Which kinds of numbers are among the elements.
struct NumberKinds {
  bool nan = false, inf = false, minus_inf = false, minus_zero = false, zero = false, subnormal = false;
  bool huge = false, tiny = false, negative = false, lowest_int = false, highest_int = false, tie = false;
};

template <class T> void note_integer(T v, NumberKinds& seen) {
  if constexpr (!std::is_same_v<T, bool>) {
    seen.highest_int |= v == std::numeric_limits<T>::max();
    seen.lowest_int |= std::is_signed_v<T> && v == std::numeric_limits<T>::min();
    seen.negative |= v < T(0);
  }
  seen.zero |= v == T(0);
}

void note_number(double v, DType d, NumberKinds& seen) {
  const double size = std::abs(v);
  seen.nan |= v != v;
  seen.inf |= v == std::numeric_limits<double>::infinity();
  seen.minus_inf |= v == -std::numeric_limits<double>::infinity();
  seen.minus_zero |= v == 0 && std::signbit(v);
  seen.zero |= v == 0;
  seen.negative |= v < 0;
  if (!std::isfinite(v) || v == 0) return;
  const int mantissa = d == DType::F64 || d == DType::C128 ? 52
                       : d == DType::F16                   ? 10
                       : d == DType::BF16                  ? 7
                                                           : 23;
  seen.subnormal |= size < std::ldexp(smallest_number(d), mantissa);
  seen.huge |= size > std::sqrt(largest_number(d));
  seen.tiny |= size < 1 / std::sqrt(largest_number(d));
}

NumberKinds values_of(const Tensor& t) {
  NumberKinds seen;
  std::set<std::pair<double, double>> known;
  visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    const T* const data = static_cast<const T*>(t.raw_data());
    each_element(t, [&](int64_t at) {
      const T v = data[at];
      if constexpr (std::is_integral_v<T>) note_integer(v, seen);
      else if constexpr (is_complex_type<T>) {
        note_number(double(v.real()), t.dtype(), seen), note_number(double(v.imag()), t.dtype(), seen);
        seen.tie |= !known.emplace(double(v.real()), double(v.imag())).second;
      } else if constexpr (is_half_type<T>) note_number(double(float(v)), t.dtype(), seen);
      else note_number(double(v), t.dtype(), seen);
      if constexpr (!is_complex_type<T>) seen.tie |= !known.emplace(double(v), 0.0).second;
    });
  });
  return seen;
}

std::string size_class(int64_t n) {
  for (const int64_t upper : {0, 1, 2, 4, 8, 16, 32, 64, 128})
    if (n <= upper) return format("size to {}", upper);
  return "size beyond 128";
}

uint64_t hash_of(const std::string& text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = scrambled(h ^ uint8_t(c));
  return h;
}

void add_if(Counts& counts, const char* feature, bool is_so) { counts[feature] += is_so; }
}  // namespace

uint64_t Census::of(const std::string& feature) const {
  if (feature == "different cases") return cases_.size();
  const auto at = counts_.find(feature);
  return at == counts_.end() ? 0 : at->second;
}

void Census::add(Case& c, const Choices& choices) {
  ++counts_["cases"];
  const GuardSide side = guard_drawn(choices);  // see NOTE: [guarded cases]
  add_if(counts_, "memory ends at a page", side == GuardSide::End);
  add_if(counts_, "memory begins at a page", side == GuardSide::Begin);
  add_if(counts_, "blocks end at a page", side == GuardSide::Blocks);
  cases_.insert(hash_of(c.op.name + cpp_declarations(c.args) + cpp_call(c.op, c.args)));
  add_sides(c);
  add_dims(c);
  add_tensors(c);
  add_lanes(c);
}

void Census::add_sides(const Case& c) {
  const NearSides s = sides_of(c);
  add_if(counts_, "below a threshold", s.below != 0), add_if(counts_, "above a threshold", s.above != 0);
}

void Census::add_dims(const Case& c) {
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (c.op.schema.params[i].role != ParamRole::Dim) continue;
    Dims given;
    if (const int64_t* one = std::get_if<int64_t>(&c.args[i])) given.push_back(*one);
    else if (const Dims* many = std::get_if<Dims>(&c.args[i])) {
      given = *many;
      ++counts_["lists of dims"];
      add_if(counts_, "list of dims with several", given.size() > 1);
      add_if(counts_, "list of dims with none", given.size() == 0);
    } else {
      ++counts_["dims left out"];
      continue;
    }
    for (const int64_t d : given) {
      ++counts_["dims"];
      add_if(counts_, "dim negative", d < 0);
      add_if(counts_, "dim not negative", d >= 0);
      add_if(counts_, "dim -1", d == -1);
      add_if(counts_, "dim 1 or more", d >= 1);
    }
  }
}

void Census::add_tensors(const Case& c) {
  std::set<const void*> storages, headers;
  bool shared = false, twice = false;
  DType first = DType::Bool;
  int numbers = 0;
  for (const Case::Slot& s : c.tensors()) {
    const Tensor t = c.at(s);
    if (t.device() != Device::CPU || is_internal(t.dtype())) continue;
    ++counts_["tensors"];
    ++counts_[format("rank {}", std::min(t.rank(), 4))];
    ++counts_[format("dtype {}", t.dtype())];
    for (const int64_t n : t.sizes()) ++counts_["sizes"], ++counts_[size_class(n)];
    add_if(counts_, "tensor without elements", t.numel() == 0);
    bool repeated = false, stepped = false;
    for (int d = 0; d < t.rank(); ++d) repeated |= t.stride(d) == 0 && t.size(d) > 1;
    if (t.numel() > 1) {
      int64_t least = INT64_MAX;
      for (int d = 0; d < t.rank(); ++d)
        if (t.size(d) > 1) least = std::min(least, t.stride(d));
      stepped = least > 1;
      ++counts_["tensors of several elements"];
      add_if(counts_, "layout contiguous", t.is_contiguous());
      add_if(counts_, "layout permuted", !t.is_contiguous() && !stepped && !repeated);
      add_if(counts_, "layout stepped", stepped);
      add_if(counts_, "layout repeated", repeated);
      add_if(counts_, "layout offset", t.impl()->offset != 0);
    }
    shared |= !storages.insert(t.impl()->storage).second;
    twice |= !headers.insert(t.impl()).second;
    if ((is_inexact(t.dtype()) || is_integer(t.dtype())) && !is_condition_or_index(c.op, s.param)) {
      if (numbers++ == 0) first = t.dtype();
      else add_pair(first, t.dtype());
    }
    if (t.numel() == 0) continue;
    const NumberKinds v = values_of(t);
    if (is_inexact(t.dtype())) {
      ++counts_["tensors of numbers"];
      add_if(counts_, "value NaN", v.nan), add_if(counts_, "value inf", v.inf);
      add_if(counts_, "value -inf", v.minus_inf), add_if(counts_, "value -0", v.minus_zero);
      add_if(counts_, "value 0", v.zero), add_if(counts_, "value subnormal", v.subnormal);
      add_if(counts_, "value huge", v.huge), add_if(counts_, "value tiny", v.tiny);
      add_if(counts_, "value negative", v.negative), add_if(counts_, "value twice", v.tie);
    } else if (is_integer(t.dtype())) {
      ++counts_["tensors of integers"];
      add_if(counts_, "integer lowest", v.lowest_int), add_if(counts_, "integer highest", v.highest_int);
      add_if(counts_, "integer negative", v.negative);
    }
  }
  if (c.tensors().size() < 2) return;
  ++counts_["cases of several tensors"];
  add_if(counts_, "alias: one storage", shared), add_if(counts_, "alias: one tensor twice", twice);
}

void Census::add_pair(DType a, DType b) {
  ++counts_["pairs"];
  add_if(counts_, "pair of two dtypes", a != b);
  const auto one_of = [](DTypeMask m, DType d) { return (m & mask(d)) != 0; };
  const auto pair_of = [&](DTypeMask m, DTypeMask n) {
    return (one_of(m, a) && one_of(n, b)) || (one_of(m, b) && one_of(n, a));
  };
  add_if(counts_, "pair of half and f32", pair_of(kHalfTypes, mask(DType::F32)));
  add_if(counts_, "pair of f32 and f64", pair_of(mask(DType::F32), mask(DType::F64)));
  add_if(counts_, "pair of real and complex", pair_of(kFloating, kComplex));
  add_if(counts_, "pair of integer and float", pair_of(kIntegers, kFloating));
  add_if(counts_, "pair of integer and complex", pair_of(kIntegers, kComplex));
  add_if(counts_, "pair of two integers", a != b && pair_of(kIntegers, kIntegers));
}

void Census::add_lanes(Case& c) {
  const std::vector<Case::Slot>& slots = c.tensors();
  if (slots.empty() || slots.size() > 3) return;
  const int64_t lanes = draw_lanes(c.draw);
  const std::vector<bool> mapped = draw_mapped(c.draw, slots.size());
  ++counts_["batches"];
  ++counts_[format("lanes {}", lanes)];
  if (slots.size() > 1) {
    ++counts_["batches of several"];
    add_if(counts_, "not all are mapped", std::ranges::count(mapped, true) < long(slots.size()));
    add_if(counts_, "all are mapped", std::ranges::count(mapped, true) == long(slots.size()));
    add_if(counts_, "the first is not mapped", !mapped[0]);
  }
  const Tensors xs = c.values(slots);
  const InDims out = draw_out_dims(c.draw, xs);
  for (size_t k = 0; k < xs.size(); ++k) {
    if (out[k] == kNone) continue;
    ++counts_["out_dims"];
    add_if(counts_, "out_dim negative", out[k] < 0);
    add_if(counts_, "out_dim beyond 0", out[k] > 0);
  }
}

Census Census::of_pairs(const std::vector<const Op*>& ops, const std::vector<const Law*>& laws, uint64_t seed,
                        uint64_t cases, int process, int of) {
  Census out;
  for (const Op* op : ops)
    for (const Law* law : laws) {
      if (!law->applies(*op)) continue;
      for (uint64_t i = uint64_t(process); i < cases; i += uint64_t(of)) {
        const Choices choices = choices_of(seed, *law, *op, i);
        Case c(*op, choices, law->options);
        out.add(c, choices);
      }
    }
  return out;
}

std::vector<const Law*> Census::usual_laws() {
  std::vector<const Law*> out;
  for (const char* id :
       {"matches_reference", "layout_is_invisible", "nonfinite_as_reference", "vmap_equals_loop"})
    out.push_back(find_law(id));
  return out;
}

Census Census::usual(uint64_t seed, int process, int of) {
  return of_pairs(all_operators(), usual_laws(), seed, kUsual, process, of);
}

namespace {
// Each floor is about half of the least share that the usual census showed with 20 seeds, and at most three
// quarters. By Chernoff's bound, were elements independent, chance alone misses one of them with a
// probability below 10^-6: no allowance is made for it. Rank 4 is that of batches of triangular solves, and
// of few cases near a threshold of ranks: 80 to 120 of 44,100 tensors.
const FeatureFloor kFeatureFloors[] = {
    {"different cases", "cases", 0.75},
    {"memory ends at a page", "cases", 0.047},  // three quarters of 4, 1 and 1 in 64: of 30,000 cases
    {"memory begins at a page", "cases", 0.0117},
    {"blocks end at a page", "cases", 0.0117},
    {"below a threshold", "cases", 0.05},
    {"above a threshold", "cases", 0.035},
    {"dim negative", "dims", 0.3},
    {"dim not negative", "dims", 0.3},
    {"dim 1 or more", "dims", 0.09},
    {"dim -1", "dims", 0.13},
    {"list of dims with none", "lists of dims", 0.2},
    {"list of dims with several", "lists of dims", 0.1},
    {"rank 0", "tensors", 0.12},
    {"rank 1", "tensors", 0.15},
    {"rank 2", "tensors", 0.15},
    {"rank 3", "tensors", 0.11},
    {"rank 4", "tensors", 0.0008},
    {"size to 0", "sizes", 0.024},
    {"size to 1", "sizes", 0.08},
    {"size to 2", "sizes", 0.2},
    {"size to 4", "sizes", 0.15},
    {"size to 8", "sizes", 0.045},
    {"size to 16", "sizes", 0.013},
    {"size to 32", "sizes", 0.003},
    {"size to 64", "sizes", 0.004},
    {"size to 128", "sizes", 0.0005},
    {"size beyond 128", "sizes", 0.0015},
    {"tensor without elements", "tensors", 0.033},
    {"layout contiguous", "tensors of several elements", 0.3},
    {"layout permuted", "tensors of several elements", 0.09},
    {"layout stepped", "tensors of several elements", 0.095},
    {"layout repeated", "tensors of several elements", 0.03},
    {"layout offset", "tensors of several elements", 0.11},
    {"alias: one storage", "cases of several tensors", 0.02},
    {"alias: one tensor twice", "cases of several tensors", 0.007},
    {"pair of two dtypes", "pairs", 0.04},
    {"pair of half and f32", "pairs", 0.0003},
    {"pair of f32 and f64", "pairs", 0.0004},
    {"pair of real and complex", "pairs", 0.003},
    {"pair of integer and float", "pairs", 0.021},
    {"pair of integer and complex", "pairs", 0.0025},
    {"pair of two integers", "pairs", 0.004},
    {"value NaN", "tensors of numbers", 0.03},
    {"value inf", "tensors of numbers", 0.011},
    {"value -inf", "tensors of numbers", 0.011},
    {"value -0", "tensors of numbers", 0.09},
    {"value 0", "tensors of numbers", 0.2},
    {"value negative", "tensors of numbers", 0.4},
    {"value twice", "tensors of numbers", 0.17},
    {"value tiny", "tensors of numbers", 0.03},
    {"value huge", "tensors of numbers", 0.03},
    {"value subnormal", "tensors of numbers", 0.022},
    {"integer lowest", "tensors of integers", 0.0005},
    {"integer highest", "tensors of integers", 0.004},
    {"integer negative", "tensors of integers", 0.1},
    {"dtype f64", "tensors", 0.2},
    {"dtype f32", "tensors", 0.05},
    {"dtype f16", "tensors", 0.033},
    {"dtype bf16", "tensors", 0.033},
    {"dtype c64", "tensors", 0.028},
    {"dtype c128", "tensors", 0.031},
    {"dtype i64", "tensors", 0.022},
    {"dtype u64", "tensors", 0.022},
    {"dtype i32", "tensors", 0.008},
    {"dtype u32", "tensors", 0.008},
    {"dtype i16", "tensors", 0.008},
    {"dtype u16", "tensors", 0.008},
    {"dtype i8", "tensors", 0.008},
    {"dtype u8", "tensors", 0.008},
    {"dtype bool", "tensors", 0.01},
    {"lanes 0", "batches", 0.06},
    {"lanes 1", "batches", 0.06},
    {"lanes 2", "batches", 0.12},
    {"lanes 3", "batches", 0.18},
    {"lanes 7", "batches", 0.06},
    {"not all are mapped", "batches of several", 0.3},
    {"all are mapped", "batches of several", 0.2},
    {"the first is not mapped", "batches of several", 0.13},
    {"out_dim negative", "out_dims", 0.24},
    {"out_dim beyond 0", "out_dims", 0.11},
};
}  // namespace

std::span<const FeatureFloor> feature_floors() { return kFeatureFloors; }

std::vector<std::string> missed_floors(const Census& census) {
  std::vector<std::string> out;
  for (const FeatureFloor& f : feature_floors()) {
    const uint64_t hits = census.of(f.what), n = census.of(f.of);
    if (n >= 1000 && hits < uint64_t(f.share * double(n) + 0.5))  // none where less than half a one is due
      out.push_back(
          format("{}: {} of {} ({}), at least {} % required", f.what, hits, n, f.of, 100 * f.share));
  }
  return out;
}

}  // namespace lamella::verify
