// Counting features of cases, and which shares of them an operator needs.
#include "lamella/verify/case/coverage.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <limits>
#include <sstream>

#include "lamella/core/visit.h"
#include "lamella/dispatch/call.h"
#include "lamella/ops/thresholds_of.h"
#include "lamella/verify/case/lanes.h"

namespace lamella::verify {

std::string_view name(Feature f) {
  static constexpr std::string_view kNames[] = {
      "rank 0", "empty",     "broadcast",    "strided",    "offset", "repeated", "shared",
      "ties",   "long size", "mixed dtypes", "not finite", "smooth", "kink"};
  return kNames[size_t(f)];
}

namespace {
void observe_layout(const Tensor& t, Observation& o) {
  if (!t.is_contiguous()) o.note(Feature::Strided);
  if (t.impl()->offset != 0) o.note(Feature::Offset);
  for (int d = 0; d < t.rank(); ++d) {
    if (t.stride(d) == 0 && t.size(d) > 1) o.note(Feature::Repeated);
    if (t.size(d) >= 7) o.note(Feature::LongSize);
  }
}

/// Numbers seen in a case: a table of twice as many places as it has elements, free ones hold NaN.
class Numbers {
 public:
  explicit Numbers(size_t elements)
      : places_(std::bit_ceil(2 * elements + 2), {std::numeric_limits<double>::quiet_NaN(), 0}),
        unused_bits_(64 - std::countr_zero(places_.size())) {}
  /// Whether it is new; both parts are finite.
  bool add(double re, double im) {
    re += 0.0, im += 0.0;  // -0 is 0
    const uint64_t bits = std::bit_cast<uint64_t>(re) + 31 * std::bit_cast<uint64_t>(im);
    // The highest bits: numbers of few digits have zeros below, and so have their products.
    size_t at = size_t((bits * 0x9E3779B97F4A7C15u) >> unused_bits_);
    for (;; ++at) {
      auto& [x, y] = places_[at & (places_.size() - 1)];
      if (x == re && y == im) return false;
      if (x == x) continue;
      x = re, y = im;
      return true;
    }
  }

 private:
  std::vector<std::pair<double, double>> places_;
  int unused_bits_;
};

/// Elements as numbers: all that ties and non-finite values need.
void observe_values(const Tensor& t, Numbers& known, Observation& o) {
  constexpr uint32_t kTies = 1u << int(Feature::Ties);
  visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    const T* const data = static_cast<const T*>(t.raw_data());
    each_element(t, [&](int64_t at) {
      double re, im = 0;
      if constexpr (is_complex_type<T>) re = double(data[at].real()), im = double(data[at].imag());
      else if constexpr (is_half_type<T>) re = double(float(data[at]));
      else re = double(data[at]);
      if (!std::isfinite(re) || !std::isfinite(im)) return o.note(Feature::NonFinite);
      if (!(o.features & kTies) && !known.add(re, im)) o.note(Feature::Ties);
    });
  });
}

}  // namespace

bool is_condition_or_index(const Op& op, int param) {
  const std::string& name = op.schema.params[size_t(param)].name;
  return name == "condition" || name == "index" || name == "key";
}

void observe_arguments(const Case& c) {
  Observation* const o = observed();
  if (!o) return;
  const std::vector<Case::Slot>& slots = c.tensors();
  size_t elements = 0;
  for (const Case::Slot& s : slots) elements += size_t(c.at(s).numel());
  Numbers values(elements);
  std::vector<const void*> storages;
  storages.reserve(slots.size());
  DTypeMask types = 0;
  for (const Case::Slot& s : slots) {
    const Tensor& t = c.at(s);
    if (t.rank() == 0) o->note(Feature::RankZero);
    if (t.numel() == 0) o->note(Feature::Empty);
    if (!std::ranges::equal(t.sizes(), c.at(slots[0]).sizes())) o->note(Feature::Broadcast);
    if (std::ranges::find(storages, t.impl()->storage) != storages.end()) o->note(Feature::Shared);
    storages.push_back(t.impl()->storage);
    observe_layout(t, *o);
    if (t.device() != Device::CPU) continue;
    observe_values(t, values, *o);
    if (!is_condition_or_index(c.op, s.param)) types |= mask(t.dtype());
  }
  if (o->near) o->sides = sides_of(c);
  if (std::popcount(types) > 1) o->note(Feature::MixedTypes);
}

void observe_mapped(const std::vector<bool>& mapped) {
  Observation* const o = observed();
  if (!o || mapped.empty() || mapped.size() > 3 || o->mapped_of) return;
  o->mapped_of = uint8_t(mapped.size());
  for (size_t k = 0; k < mapped.size(); ++k) o->mapped |= uint8_t(mapped[k] << k);
}

void observe_traced(const std::vector<Case::Slot>& of, const std::vector<Case::Slot>& traced) {
  Observation* const o = observed();
  if (!o || of.empty() || of.size() > 3 || o->traced_of) return;
  o->traced_of = uint8_t(of.size());
  for (size_t k = 0; k < of.size(); ++k)
    for (const Case::Slot& s : traced)
      if (s.param == of[k].param && s.element == of[k].element) o->traced |= uint8_t(1u << k);
}

void observe_point(bool smooth) {
  if (Observation* const o = observed()) o->note(smooth ? Feature::Smooth : Feature::Kink);
}

void Coverage::add_depth(int depth) {
  if (depth < 1) return;
  ++deep_cases, ++depths[std::min(size_t(depth), kDepths - 1)];
}

void Coverage::add_sides(const Observation& o, int aimed_at) {
  ++near[size_t(aimed_at)].aimed;
  for (size_t k = 0; k < kThresholds; ++k)
    near[k].sides[0] += o.sides.below >> k & 1, near[k].sides[1] += o.sides.above >> k & 1;
}

void Coverage::add(const Observation& o) {
  ++cases;
  constexpr uint32_t kOfElements = 1u << int(Feature::RankZero) | 1u << int(Feature::Strided) |
                                   1u << int(Feature::Offset);  // required of cases with elements alone
  const bool empty = o.features >> int(Feature::Empty) & 1;
  const uint32_t seen = empty ? o.features & ~kOfElements : o.features;
  for (size_t f = 0; f < kFeatures; ++f) features[f] += seen >> f & 1;
  if (o.mapped_of) ++mapped[o.mapped_of][o.mapped & 7];
  if (o.traced_of) ++traced[o.traced_of][o.traced & 7];
}

namespace {
/// Every number of a Coverage, in one order.
template <class C, class F> void each_count(C& c, F&& f) {
  f(c.cases), f(c.deep_cases);
  for (auto& n : c.features) f(n);
  for (auto& n : c.depths) f(n);
  for (auto* subsets : {&c.mapped, &c.traced})
    for (auto& row : *subsets)
      for (auto& n : row) f(n);
  for (auto& n : c.near) f(n.aimed), f(n.sides[0]), f(n.sides[1]);
}
}  // namespace

void Coverage::merge(const Coverage& other) {
  std::vector<uint64_t> more;
  each_count(other, [&](uint64_t n) { more.push_back(n); });
  each_count(*this, [&, i = size_t{0}](uint64_t& n) mutable { n += more[i++]; });
}

std::string Coverage::text() const {
  std::string out;
  size_t zeros = 0;  // nearly all are 0; those at the end are left out
  each_count(*this, [&](uint64_t n) {
    if (n == 0) return void(++zeros);
    for (; zeros > 0; --zeros) out += "0 ";
    out += std::to_string(n) + ' ';
  });
  return out;
}

Coverage Coverage::parse(const std::string& text) {
  Coverage c;
  std::istringstream in(text);
  each_count(c, [&](uint64_t& n) { in >> n; });
  return c;
}

namespace {
constexpr double kDeviations = 6;  // two-sided 2e-9
constexpr double kExpectedHits = 10;

/// Upper end of Wilson's interval for a share of which `hits` in `n` were seen.
double upper_share(uint64_t hits, uint64_t n) {
  if (n == 0) return 1;
  const double z = kDeviations, m = double(n), p = double(hits) / m;
  return (p + z * z / (2 * m) + z * std::sqrt(p * (1 - p) / m + z * z / (4 * m * m))) / (1 + z * z / m);
}

Tensor on_meta(Ints sizes, DType d) {
  const Tensor base = make_tensor(Dims{0}, d, Device::Meta);
  return make_view_unchecked(base, sizes, contiguous_strides(sizes), 0);
}

/// Whether the operator takes its arguments with the tensors at `slots` changed; asked without elements.
template <class Change> bool accepts(const Op& op, DrawOptions options, Change change) {
  for (uint32_t i = 0; i < 24; ++i) {
    Choices choices(64);
    for (size_t k = 0; k < choices.size(); ++k)
      choices[k] = uint32_t((k + 1) * (i + 1) * 0x9E3779B9u) >> (k % 5);
    const Case c(op, choices, options);
    Tensors xs = c.values(c.tensors());
    for (Tensor& x : xs) x = on_meta(x.sizes(), x.dtype());
    if (xs.empty() || !change(xs)) continue;
    if (!status_of([&] { call_boxed(op, c.with(c.tensors(), xs)); }).raised) return true;
  }
  return false;
}

bool takes_rank_zero(const Op& op) {
  return accepts(op, {}, [](Tensors& xs) {
    xs[0] = on_meta({}, xs[0].dtype());
    return true;
  });
}
bool takes_empty(const Op& op) {
  return accepts(op, {.empty = true}, [](Tensors& xs) {
    return std::ranges::any_of(xs, [](const Tensor& x) { return x.numel() == 0; });
  });
}
bool takes_mixed(const Op& op) {
  return accepts(op, {.dtypes = mask(DType::F64), .mixed = false}, [](Tensors& xs) {
    if (xs.size() < 2 || xs.back().dtype() != DType::F64) return false;
    xs.back() = on_meta(xs.back().sizes(), DType::F32);
    return true;
  });
}

class Requirements {
 public:
  Requirements(const Op& op, const Coverage& c) : op_(op), c_(c) {}

  std::vector<Shortfall> all(int depth) {
    if (op_.tensor_params.empty()) return {};
    const uint64_t with_elements = c_.cases - c_.features[size_t(Feature::Empty)];
    if (takes_rank_zero(op_))  // rank 0 has an element
      out_.push_back({std::string(name(Feature::RankZero)), c_.features[size_t(Feature::RankZero)],
                      with_elements, 0.02});
    if (takes_empty(op_)) feature(Feature::Empty, 0.01);
    const bool pointwise = op_.shape == ShapeClass::Broadcast && op_.tensor_params.size() > 1;
    if (pointwise) feature(Feature::Broadcast, 0.1);
    if (pointwise && takes_mixed(op_)) feature(Feature::MixedTypes, 0.05);
    if (!op_.has(kRandom))
      for (const auto& [f, share] : {std::pair(Feature::Strided, 0.1), std::pair(Feature::Offset, 0.05)})
        out_.push_back({std::string(name(f)), c_.features[size_t(f)], with_elements, share});
    if (op_.shape == ShapeClass::Broadcast || op_.shape == ShapeClass::Reduce ||
        op_.shape == ShapeClass::AlongDim)
      feature(Feature::LongSize, 0.01);
    if (op_.has(kKinks)) kinks();
    subsets("maps", c_.mapped);
    subsets("traces", c_.traced);
    for (int d = 1; d <= std::min({depth, int(Coverage::kDepths) - 1, deepest()}) && c_.deep_cases > 0; ++d)
      out_.push_back({format("depth {}", d), c_.depths[size_t(d)], c_.deep_cases, d < 3 ? 0.01 : 0.00005});
    return out_;
  }

 private:
  void feature(Feature f, double share) {
    out_.push_back({std::string(name(f)), c_.features[size_t(f)], c_.cases, share});
  }
  /// What has no derivative stands under two levels of vmap at most; elements that are unspecified under
  /// none.
  int deepest() const {
    if (op_.has(kUnspecified)) return 0;
    return has_jvp(op_) && has_vjp(op_) && !op_.has(kRandom) ? INT_MAX : 2;
  }
  void kinks() {
    feature(Feature::Ties, 0.1);
    const uint64_t smooth = c_.features[size_t(Feature::Smooth)], kink = c_.features[size_t(Feature::Kink)];
    if (smooth + kink == 0) return;
    out_.push_back({"smooth", smooth, smooth + kink, 0.7});
    out_.push_back({"kink", kink, smooth + kink, 0.05});
  }
  void subsets(const char* verb, const Coverage::Subsets& counts) {
    for (uint32_t n = 1; n <= 3; ++n) {
      uint64_t total = 0;
      for (const uint64_t k : counts[n]) total += k;
      for (uint32_t bits = 1; bits < 1u << n && total > 0; ++bits) {
        std::string which;
        for (uint32_t k = 0; k < n; ++k) which += bits >> k & 1 ? '1' : '0';
        out_.push_back({format("{} {}", verb, which), counts[n][bits], total, 0.01});
      }
    }
  }

  const Op& op_;
  const Coverage& c_;
  std::vector<Shortfall> out_;
};
}  // namespace

std::vector<Shortfall> requirements(const Op& op, const Coverage& coverage, int depth) {
  return Requirements(op, coverage).all(depth);
}

uint64_t Shortfall::of() const { return std::max(cases, due / kPartsOfACase); }

bool falls_short(const Shortfall& s) {
  const uint64_t cases = s.of();
  if (s.hits > cases) return false;
  const bool none = s.hits == 0 && double(cases) * s.required >= kExpectedHits;
  return none || upper_share(s.hits, cases) < s.required;
}

namespace {
/// Whether calls of the operator itself go both ways. Composites are drawn near the sizes of all kernels, but
/// no row says which kernels they call: their cases answer for none.
bool answers_for(const Op& op, size_t k) {
  const Threshold& row = all_thresholds()[k];
  if (row.in != CountedIn::Size) {
    const std::vector<size_t> its_own = thresholds_of(op);
    return std::ranges::find(its_own, k) != its_own.end();
  }
  const std::string_view kernel = op.kernel.name;
  if (kernel.empty()) return false;
  return concerns(row, kernel) || (concerns(row, "pointwise") && op.shape == ShapeClass::Broadcast);
}

/// Cases of the operator that should have been aimed at each of its thresholds, in parts: it takes them
/// evenly.
uint64_t fair_share(const Op& op, const Coverage& c) {
  uint64_t aimed = 0;
  for (const Coverage::Near& n : c.near) aimed += n.aimed;
  return aimed * (kPartsOfACase / std::max<uint64_t>(thresholds_of(op).size(), 1));
}
}  // namespace

std::vector<Shortfall> threshold_requirements(const std::map<std::string, Coverage>& by_op,
                                              const std::vector<const Op*>& ops) {
  const std::span<const Threshold> rows = all_thresholds();
  LAMELLA_ASSERT(rows.size() <= Coverage::kThresholds);
  std::vector<Shortfall> out;
  for (size_t k = 0; k < rows.size(); ++k) {
    Coverage::Near sum;
    uint64_t due = 0;
    bool answered = false;
    for (const Op* op : ops) {
      const auto at = by_op.find(op->name);
      if (at == by_op.end() || !answers_for(*op, k)) continue;
      const Coverage::Near& n = at->second.near[k];
      sum.aimed += n.aimed, sum.sides[0] += n.sides[0], sum.sides[1] += n.sides[1];
      due += fair_share(*op, at->second), answered = true;
    }
    for (const bool above : {false, true})
      if (answered)
        out.push_back({format("{} threshold {}", above ? "above" : "below", rows[k].name), sum.sides[above],
                       sum.aimed, 0.05, due});
  }
  return out;
}

std::vector<Shortfall> shortfalls(const Op& op, const Coverage& coverage, int depth) {
  std::vector<Shortfall> out = requirements(op, coverage, depth);
  std::erase_if(out, [](const Shortfall& s) { return !falls_short(s); });
  return out;
}

}  // namespace lamella::verify
