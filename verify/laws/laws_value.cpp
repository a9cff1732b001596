// Laws of values: the CPU agrees with the oracle, exactly where results are exact.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <quadmath.h>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/oracle.h"

namespace lamella::verify {

namespace {

bool has_nonfinite(const Tensor& t) {
  for (const f128 v : flatten({t}))
    if (!(v - v == 0)) return true;
  return false;
}

std::string value_program(const Case& c, const Tensor& wide, const Tensor& got, size_t k) {
  const Tensor want = narrow(wide, got.dtype());
  return cpp_got_want(c, cpp_tensor("w", want), "{" + cpp_call(c.op, c.args) + "[" + std::to_string(k) + "]}",
                      "{w}");
}

/// Random numbers depend on their dtype: the reference draws in the same one.
Verdict random_matches_reference(Case& c) {
  const int key = c.op.schema.find("key");
  if (key < 0 || is_none(c.args[size_t(key)])) return Verdict::discard();
  Values args = c.args;
  args[size_t(key)] = to_reference(std::get<Tensor>(c.args[size_t(key)]));
  const Tensor got = call_boxed(c.op, c.args)[0], want = call_boxed(c.op, args)[0];
  if (c.op.promises.once) {  // numbers that the dtype holds: nothing is to be rounded
    const Finding d = differs(got, narrow(to_reference(want), got.dtype()));
    return d.empty() ? Verdict::pass() : Verdict::fail(d, value_program(c, to_reference(want), got, 0));
  }
  Tensor bound = make_tensor(want.sizes(), DType::F64);
  std::fill_n(bound.data<double>(), bound.numel(), 32 * unit_roundoff(got.dtype()));
  const Finding d = outside(got, to_reference(want), bound);
  return d.empty() ? Verdict::pass() : Verdict::fail(d, value_program(c, to_reference(want), got, 0));
}

}  // namespace

Verdict within_reference(Case& c, const Tensors& got) {
  Oracle oracle(c, c.inexact());
  const Tensors& want = oracle.values();
  if (got.size() != want.size())
    return Verdict::fail(
        {What::Results, format("got {} results, the reference {}", got.size(), want.size())});
  const DType coarsest = coarsest_dtype(got);
  const double u = unit_roundoff(coarsest);
  const Bounds conditions = u > 0 ? oracle.value_bounds(u) : Bounds();
  const Bounds bounds = oracle.tolerances(conditions, coarsest);
  size_t at = 0;
  for (size_t k = 0; k < got.size(); ++k) {
    Finding d;
    if (!is_inexact(got[k].dtype())) {
      d = differs(got[k], narrow(want[k], got[k].dtype()));
    } else {
      const double lost = oracle.lost_to_underflow(got[k].dtype(), {});
      d = outside(got[k], want[k], plus(unflatten(bounds, at, want[k], 1), lost));
      if (!d.empty() && has_nonfinite(got[k]) && overflows_inside(oracle, conditions, c.op, got[k].dtype()))
        return Verdict::discard();
    }
    if (!d.empty()) return Verdict::fail(d, value_program(c, want[k], got[k], k));
  }
  return Verdict::pass();
}

namespace {

Verdict matches_reference(Case& c) {
  if (c.op.has(kRandom)) return random_matches_reference(c);
  return within_reference(c, call_boxed(c.op, c.args));
}

/// At most 20 significant bits, fewer in narrow dtypes.
int few_bits_of(DType d) { return std::min(20, int(-std::log2(unit_roundoff(d))) - 1); }

/// Whether rounding could not have touched this number: it has no more than these significant bits, counted
/// where f128 keeps them (1 bit of sign, 15 of exponent, 112 of the fraction), which takes no arithmetic.
bool has_few_bits(f128 v, int bits) {
  const auto words = std::bit_cast<std::array<uint64_t, 2>>(v);  // little-endian
  const uint64_t low = words[0], high = words[1] & ~(uint64_t{1} << 63), unused = high << (15 + bits);
  const int exponent = int(high >> 48), of_half = 0x3ffe;
  if (exponent == 0x7fff || (high == 0 && low == 0)) return true;
  return low == 0 && unused == 0 && std::abs(exponent - of_half) < 14;
}

}  // namespace

Tensor exact_parts(const Tensor& wide, const Tensor& got) {
  Tensor want = narrow(wide, got.dtype());
  if (!is_inexact(got.dtype())) return want;
  const Tensor mine = plain_copy(got);
  const Reals exact = flatten({wide});
  const size_t bytes = size_t(itemsize(to_real(got.dtype())));
  const int bits = few_bits_of(got.dtype());
  for (size_t i = 0; i < exact.size(); ++i)
    if (!has_few_bits(exact[i], bits) ||
        (is_complex(got.dtype()) && !has_few_bits(exact[i ^ 1], bits)))  // parts are made together
      std::memcpy(static_cast<char*>(want.raw_data()) + i * bytes,
                  static_cast<char*>(mine.raw_data()) + i * bytes, bytes);
  return want;
}

namespace {

bool computes(const Op& op) { return stays_on_device(op) && !op.has(kRandom); }

/// Whether the sign of a zero is the operator's: not that of a sum, where it is the order's (-0 + 0, and
/// inside complex products).
bool told_by_sign(const Op& op, const Tensor& y) {
  return !is_complex(y.dtype()) && (op.shape == ShapeClass::Broadcast || op.is_view());
}

/// Keeps what calls give that has a number of many bits.
class SeesManyBits final : public SeesResults {
 public:
  explicit SeesManyBits(int bits) : bits_(bits) {}
  /// Whether one of them is none of these, nor a view of the same memory.
  bool saw_besides(const Tensors& results) const {
    return std::ranges::any_of(seen_, [&](const Tensor& t) {
      return std::ranges::none_of(
          results, [&](const Tensor& y) { return y.defined() && y.raw_data() == t.raw_data(); });
    });
  }

 private:
  void sees(const Tensor& t) override {
    const Reals all = flatten({t});
    if (std::ranges::any_of(all, [this](f128 v) { return !has_few_bits(v, bits_); })) seen_.push_back(t);
  }
  int bits_;
  Tensors seen_;
};

}  // namespace

bool rounds_inside(const Op& op, const Values& given, DType d) {
  if (!op.composite) return false;
  const Values args = to_reference(given);
  const BoxedArgs boxed(op, args);
  Tensors list, results(size_t(op.schema.n_results));
  Frame frame{&op, boxed.data(), results.data(), &list};
  SeesManyBits seen(few_bits_of(d));
  const ScopedObserver scope(&seen);
  op.composite(frame);
  return seen.saw_besides(results);
}

namespace {

Verdict equals_where_exact(Case& c) {
  const Tensors got = call_boxed(c.op, c.args);
  const Tensors want = reference_forward(c.op, to_reference(c.args));
  if (got.size() != want.size())
    return Verdict::fail(
        {What::Results, format("got {} results, the reference {}", got.size(), want.size())});
  for (size_t k = 0; k < got.size(); ++k)
    if (const Finding d = differs(got[k], exact_parts(want[k], got[k]), told_by_sign(c.op, got[k]));
        !d.empty()) {
      Oracle oracle(c, c.inexact());
      if (has_nonfinite(got[k]) && overflows_inside(oracle, {}, c.op, got[k].dtype()))
        return Verdict::discard();  // 64! times 0 in f32
      const bool rounded = is_inexact(got[k].dtype()) && rounds_inside(c.op, c.args, got[k].dtype());
      if (rounded && within_reference(c, got).kind == Verdict::Pass) return Verdict::discard();
      return Verdict::fail(d, value_program(c, want[k], got[k], k));
    }
  return Verdict::pass();
}

/// Sizes of the result by the class's definition, written a second time; nothing for classes that have none.
std::optional<Dims> expected_sizes(const Case& c) {
  if (c.op.shape == ShapeClass::Broadcast) {
    Dims out;
    for (const Case::Slot& s : c.tensors()) {
      const Tensor t = c.at(s);
      while (out.size() < t.rank()) out.insert(0, 1);
      for (int d = 1; d <= t.rank(); ++d)
        if (t.size(-d) != 1) out[out.size() - d] = t.size(-d);
    }
    return out;
  }
  const int dim = c.op.schema.find("dim"), keep = c.op.schema.find("keepdim");
  if (c.op.shape != ShapeClass::Reduce || dim < 0 || keep < 0) return std::nullopt;
  const Tensor x = c.at(c.tensors()[0]);
  const std::vector<bool> reduced = named_dims(c, x.rank());
  Dims out;
  for (int d = 0; d < x.rank(); ++d) {
    if (!reduced[size_t(d)]) out.push_back(x.size(d));
    else if (std::get<bool>(c.args[size_t(keep)])) out.push_back(1);
  }
  return out;
}

/// Row by row, a size of 0 counts as 1 (PyTorch's contiguous tensors): "" or the strides of a fresh result.
Finding strides_differ(const Case& c, const Tensors& results) {
  for (const Tensor& y : results) {
    if (std::ranges::any_of(c.tensors(), [&](const Case::Slot& s) { return c.at(s).shares_storage(y); }))
      continue;
    Dims want(y.rank());
    int64_t step = 1;
    for (int d = y.rank() - 1; d >= 0; --d) {
      want[d] = step;
      step *= std::max<int64_t>(y.size(d), 1);
    }
    if (!std::ranges::equal(y.strides(), Ints(want)))
      return {What::Strides, format("got {} with strides {}, expected {}", y, Dims(y.strides()), want)};
  }
  return "";
}

Verdict empty_is_right(Case& c) {
  bool empty = false;
  for (const Case::Slot& s : c.tensors()) empty |= c.at(s).numel() == 0;
  if (!empty) return Verdict::discard();
  const Verdict v = equals_where_exact(c);
  if (v.kind != Verdict::Pass) return v;
  const std::optional<Dims> sizes = expected_sizes(c);
  const Tensors ys = call_boxed(c.op, c.args);
  Finding wrong = strides_differ(c, ys);
  if (sizes && !std::ranges::equal(ys[0].sizes(), Ints(*sizes)))
    wrong = format("got {}, expected sizes {}", ys[0], *sizes);
  if (wrong.empty()) return v;
  return Verdict::fail(wrong,
                       cpp_declarations(c.args) + "  std::cout << " + cpp_call(c.op, c.args) + "[0];\n");
}

}  // namespace

Verdict agrees_with_reference(Case& c) { return matches_reference(c); }

void add_value_laws(std::vector<Law>& laws) {
  laws.push_back({1,
                  "matches_reference",
                  "value",
                  "Results lie within k units of roundoff times their condition of the f128 reference.",
                  {.dtypes = kInexact, .largest = -1, .devices = true, .one_large = true},
                  true,
                  stays_on_device,
                  matches_reference});
  laws.push_back({2,
                  "equals_where_exact",
                  "value",
                  "On small integers, results that need no rounding equal the reference bit by bit.",
                  {.exact = true},
                  true,
                  computes,
                  equals_where_exact});
  laws.push_back({13,
                  "empty_is_right",
                  "value",
                  "With a size of 0, results have the right shape and strides, and reductions give their "
                  "identity element.",
                  {.exact = true, .empty = true, .largest = -1},  // named sizes are not 0
                  true,
                  computes,
                  empty_is_right});
}

}  // namespace lamella::verify
