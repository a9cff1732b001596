// The law of what is not finite: NaN and infinities, and finite numbers beside them.
#include <cmath>
#include <cstring>
#include <optional>
#include <quadmath.h>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/oracle.h"

namespace lamella::verify {

namespace {

enum class Class : uint8_t { Finite, NaN, Plus, Minus };
Class class_of(f128 v) {
  if (v != v) return Class::NaN;
  return v - v == 0 ? Class::Finite : v > 0 ? Class::Plus : Class::Minus;
}

/// The largest finite number of the arguments, the least but 0, how many there are, and the exponents of the
/// product of all that are large, and of all that are small.
struct Extent {
  f128 largest = 1, least = 1;
  size_t count = 0;
  int64_t up = 0, down = 0;
  void add(f128 v) {
    ++count;
    if (!(v - v == 0) || v == 0) return;
    largest = fmaxq(largest, fabsq(v)), least = fminq(least, fabsq(v));
    const int exponent = ilogbq(v);
    (exponent >= 0 ? up : down) += std::abs(exponent) + 1;
  }
};
Extent extent_of(const Case& c) {
  Extent out;
  for (const Case::Slot& s : c.tensors()) {
    const Tensor t = c.at(s);
    if (is_inexact(t.dtype()))
      for (const f128 v : flatten({t})) out.add(v);
    else
      for (const double v : t.to_vector()) out.add(v);
  }
  for (const Value& v : c.args)
    if (const Scalar* s = std::get_if<Scalar>(&v)) out.add(s->to_double());
  return out;
}

}  // namespace

bool may_overflow_inside(const Case& c, DType kept) {
  const Inside::Size size = c.op.overflows_in.size;
  if (size == Inside::Nothing) return false;
  const int at = c.op.overflows_in.argument;
  if (at >= 0 && std::get<Scalar>(c.args[size_t(at)]) == Scalar(1)) return false;
  for (const Value& v : c.args)  // a number that vanishes in the dtype makes NaN of an infinity
    if (const Scalar* n = std::get_if<Scalar>(&v); n && n->to_double() != 0)
      if (rounded_to(n->to_double(), kept) == 0) return true;
  const Extent e = extent_of(c);
  const f128 limit = largest_number(kept) / 2, terms = f128(e.count + 1);
  if (size == Inside::Sums) return e.largest * terms > limit;
  if (size == Inside::Products) return e.largest * e.largest * terms > limit;
  return e.largest > half_range(kept) || e.least < 1 / f128(half_range(kept)) ||
         std::max(e.up, e.down) >= ilogbq(f128(largest_number(kept)));
}

namespace {

/// Likewise in f32 for halves, except where an operator keeps a tensor of theirs in between.
bool may_overflow(const Case& c, DType result) {
  if (c.op.overflows_in.complex && !is_complex(result)) return false;
  const bool keeps_halves = c.op.shape == ShapeClass::Broadcast;
  return may_overflow_inside(c, is_half(result) && !keeps_halves ? DType::F32 : to_real(result));
}

/// Whether rounding may take this finite number to infinity, or back.
bool beside_overflow(Oracle& oracle, const Case& c, DType d, f128 want, size_t at) {
  const f128 largest = largest_number(d), unit = largest * f128(unit_roundoff(d));
  if (c.op.promises.once) return false;
  const Bounds bounds = oracle.tolerances(oracle.value_bounds(unit_roundoff(d)), d);
  const f128 bound = at < bounds.size() && std::isfinite(bounds[at]) ? bounds[at] : 0;
  return fabsq(fabsq(want) - largest) <= fmaxq(bound, 4 * unit) + unit;
}

/// In a complex product or quotient the formula decides which part is infinite or NaN.
bool mixes_parts(const Case& c, const Tensor& y) {
  return is_complex(y.dtype()) && !c.op.is_view() && !c.op.has(kLinear) && !c.op.promises.once;
}

/// Arguments of the reference, for which NOTE: [dtype=] is taken at its word: elements are converted first,
/// by the definition of rounding and not by an operator.
Values converted_first(const Case& c) {
  Values args = to_reference(c.args);
  const int at = c.op.schema.find("dtype");
  if (at < 0 || is_none(c.args[size_t(at)]) || c.tensors().empty() || c.tensors()[0].param != 0) return args;
  const DType named = std::get<DType>(c.args[size_t(at)]);
  const Tensor given = c.at(c.tensors()[0]);
  if (!is_inexact(named) || is_bool(given.dtype())) return args;
  Tensor wide = is_inexact(given.dtype()) ? std::get<Tensor>(args[0]) : integers_as_numbers(given);
  f128* const v = static_cast<f128*>(wide.raw_data());
  for (size_t i = 0; i < part_count(wide); ++i) v[i] = rounded_to(v[i], to_real(named));
  args[0] = wide;
  return args;
}

/// Conversion to f128 makes a NaN that signals quiet, and only of quiet ones pow(NaN, 0) is 1.
bool has_signal(const Case& c) {
  for (const Case::Slot& s : c.inexact()) {
    bool found = false;
    visit_dtype(to_real(c.at(s).dtype()), [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      if constexpr (is_floating_type<T> && sizeof(T) <= 8) {
        constexpr int kDigits = std::is_same_v<T, f16>    ? 11
                                : std::is_same_v<T, bf16> ? 8
                                : sizeof(T) == 4          ? 24
                                                          : 53;
        const Tensor x = plain_copy(c.at(s));
        const T* const p = static_cast<const T*>(x.raw_data());
        for (size_t i = 0; i < part_count(x); ++i) {
          uint64_t bits = 0;
          std::memcpy(&bits, p + i, sizeof(T));
          found |= !(p[i] == p[i]) && !(bits >> (kDigits - 2) & 1);
        }
      }
    });
    if (found) return true;
  }
  return false;
}

/// Whether a finite part is another number than the reference's: by more than 2^-6 of its size, which most
/// are not, and by more than law 1 allows. Where that is a sixteenth of the size, 8 roundoffs of an argument
/// turn the reference's own result (3^(1 + 1e138i)): differences end at its size and are no slope any more.
bool is_far(std::optional<Oracle>& oracle, Bounds& bounds, const Case& c, DType d, f128 gap, f128 size,
            size_t at) {
  if (gap <= size * 0x1p-6 + 64 * f128(smallest_number(d))) return false;
  if (c.op.shape != ShapeClass::Broadcast || may_overflow(c, d)) return false;
  if (!oracle) oracle.emplace(c, c.inexact());
  if (bounds.empty()) bounds = oracle->tolerances(oracle->value_bounds(unit_roundoff(d)), d);
  return at < bounds.size() && bounds[at] < double(size) * 0x1p-4 && gap > 2 * f128(bounds[at]) &&
         !oracle->turns(unit_roundoff(d), at, size * 0x1p-4);
}

/// Whether a complex number of an angle that nobody knows has a modulus beyond the range: either part may be
/// beyond it, too.
bool turns_out_of_range(Oracle& oracle, DType d, const f128* want, size_t at) {
  const f128 size = hypotq(want[0], want[1]);
  if (!(size - size == 0) || size < f128(largest_number(d))) return false;
  return oracle.turns(unit_roundoff(d), at, size * 0x1p-4) ||
         oracle.turns(unit_roundoff(d), at + 1, size * 0x1p-4);
}

Finding part_text(const Case& c, size_t part, f128 got, f128 want, f128 wide) {
  std::string out = format("part {}: got {}, expected {}", part, double(got), double(want));
  if (want != wide) out += format(" ({} rounded)", double(wide));
  if (c.op.overflows_in.size != Inside::Nothing)
    out += format("; allowed only where {} may overflow", c.op.overflows_in.what);
  return {number_kind(got, want), std::move(out)};
}

/// What is wrong with one inexact result; `first` is its first part among those of all inexact results.
Finding wrong_class(const Case& c, const Tensor& got, const Tensor& want, size_t first) {
  const Reals g = flatten({got}), wide = flatten({want});
  const DType d = got.dtype();
  const auto rounded = [&](size_t k) { return rounded_to(wide[k], to_real(d)); };
  const auto is_finite = [](f128 v) { return class_of(v) == Class::Finite; };
  const size_t step = mixes_parts(c, got) ? 2 : 1;
  std::optional<Oracle> oracle;
  Bounds bounds;  // once for all elements: the oracle evaluates all of them for each
  for (size_t i = 0; i < g.size(); i += step) {
    const bool same = step == 1 ? class_of(g[i]) == class_of(rounded(i))
                                : (is_finite(g[i]) && is_finite(g[i + 1])) ==
                                      (is_finite(rounded(i)) && is_finite(rounded(i + 1)));
    if (same) {
      f128 size = 0, gap = 0;
      for (size_t k = i; k < i + step && is_finite(g[k]) && is_finite(rounded(k)); ++k)
        size = fmaxq(size, fabsq(wide[k])), gap = fmaxq(gap, fabsq(g[k] - rounded(k)));
      if (is_far(oracle, bounds, c, d, gap, size, first + i))
        return part_text(c, i, g[i], rounded(i), wide[i]);
      continue;
    }
    if (may_overflow(c, d)) return "";
    // Of layer_norm: x - mean is 0 only up to roundoff, and so is its product with an infinite weight NaN.
    const bool cancels = c.op.shape == ShapeClass::Composite && c.op.overflows_in.size == Inside::Powers;
    if (cancels && !is_finite(g[i]) && !is_finite(rounded(i))) continue;
    if (class_of(g[i]) == Class::NaN && has_signal(c)) continue;
    if (!oracle) oracle.emplace(c, c.inexact());
    bool beside = step == 2 && turns_out_of_range(*oracle, d, &wide[i], first + i);
    for (size_t k = i; k < i + step; ++k)
      beside |=
          g[k] * wide[k] > 0 && is_finite(wide[k]) && beside_overflow(*oracle, c, d, wide[k], first + k);
    if (!beside) return part_text(c, i, g[i], rounded(i), wide[i]);
  }
  return "";
}

}  // namespace

Verdict classes_as_reference(Case& c, const Tensors& got) {
  const Tensors want = reference_forward(c.op, converted_first(c));
  if (got.size() != want.size())
    return Verdict::fail(
        {What::Results, format("got {} results, the reference {}", got.size(), want.size())});
  size_t first = 0;
  for (size_t k = 0; k < got.size(); ++k) {
    Finding wrong;
    if (!std::ranges::equal(got[k].sizes(), want[k].sizes())) {
      wrong = {type_kind(got[k], want[k]), format("got {}, expected {}", got[k], want[k])};
    } else if (is_inexact(got[k].dtype())) {
      wrong = wrong_class(c, got[k], want[k], first);
      first += part_count(got[k]);
    } else {
      wrong = differs(got[k], narrow(want[k], got[k].dtype()));
    }
    if (wrong.empty()) continue;
    return Verdict::fail(wrong,
                         cpp_got_want(c, cpp_tensor("w", narrow(want[k], got[k].dtype())),
                                      "{" + cpp_call(c.op, c.args) + "[" + std::to_string(k) + "]}", "{w}"));
  }
  return Verdict::pass();
}

namespace {

Verdict nonfinite_as_reference(Case& c) { return classes_as_reference(c, call_boxed(c.op, c.args)); }

bool has_reference(const Op& op) { return stays_on_device(op) && !op.has(kRandom) && !op.has(kUnspecified); }

}  // namespace

void add_nonfinite_laws(std::vector<Law>& laws) {
  laws.push_back({14,
                  "nonfinite_as_reference",
                  "value",
                  "Results are finite, infinite and NaN where the f128 reference, rounded once, is, and "
                  "pointwise ones near "
                  "it; integers are its.",
                  {.dtypes = kInexact, .nonfinite = true, .ends = true},
                  true,
                  has_reference,
                  nonfinite_as_reference,
                  16});
}

}  // namespace lamella::verify
