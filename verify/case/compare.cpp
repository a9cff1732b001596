// Comparing tensors element by element.
#include "lamella/verify/case/compare.h"

#include <array>
#include <cmath>
#include <cstring>
#include <quadmath.h>

#include "lamella/verify/case/case.h"
#include "lamella/verify/case/fault.h"

namespace lamella::verify {

namespace {

std::string index_text(const Tensor& t, int64_t flat) {
  Dims at(t.rank());
  for (int d = t.rank() - 1; d >= 0; --d) {
    at[d] = flat % t.size(d);
    flat /= t.size(d);
  }
  return format("{}", at);
}

std::string text(f128 v) {
  char decimal[64], hex[64];
  quadmath_snprintf(decimal, sizeof decimal, "%.20Qg", v);
  quadmath_snprintf(hex, sizeof hex, "%Qa", v);
  return format("{} ({})", decimal, hex);
}

/// One element as real and imaginary part.
struct Parts {
  f128 part[2];
};

Parts load(const Tensor& t, int64_t offset) {
  return visit_dtype(t.dtype(), [&]<class Tag>(Tag) -> Parts {
    using T = typename Tag::type;
    const T v = static_cast<const T*>(t.raw_data())[offset];
    if constexpr (is_complex_type<T>) return {{f128(v.real()), f128(v.imag())}};
    else if constexpr (is_half_type<T>) return {{f128(float(v)), 0}};
    else return {{f128(v), 0}};
  });
}

Finding both(const Tensor& t, int64_t flat, const Parts& got, const Parts& want) {
  std::string out = format("entry {}: got {}", index_text(t, flat), text(got.part[0]));
  if (is_complex(t.dtype())) out += " + i " + text(got.part[1]);
  out += ", expected " + text(want.part[0]);
  if (is_complex(t.dtype())) out += " + i " + text(want.part[1]);
  const What real = number_kind(got.part[0], want.part[0]);
  return {real == What::Nan ? real : number_kind(got.part[1], want.part[1]), std::move(out)};
}

bool same_number(f128 a, f128 b, bool signed_zero) {
  if (isnanq(a) || isnanq(b)) return (isnanq(a) && isnanq(b)) || faulty(Fault::NanIgnored);
  if (a != b) return false;
  return !signed_zero || a != 0 || signbitq(a) == signbitq(b) || faulty(Fault::SignOfZeroIgnored);
}

Finding differs_in_type(const Tensor& got, const Tensor& want) {
  if (got.defined() != want.defined()) return {What::Results, format("got {}, expected {}", got, want)};
  if (!got.defined()) return {};
  const bool sizes = std::ranges::equal(got.sizes(), want.sizes());
  if (sizes && (got.dtype() == want.dtype() || faulty(Fault::DTypeIgnored))) return {};
  return {type_kind(got, want), format("got {}, expected {}", got, want)};
}

std::vector<int64_t> offsets(const Tensor& t) {
  std::vector<int64_t> out;
  out.reserve(size_t(t.numel()));
  each_element(t, [&](int64_t o) { out.push_back(o); });
  return out;
}

/// Whether all elements have the same bits: nearly always, and then their numbers need not be looked at.
bool same_bytes(const Tensor& got, const std::vector<int64_t>& g, const Tensor& want,
                const std::vector<int64_t>& w) {
  const auto* const a = static_cast<const char*>(got.raw_data());
  const auto* const b = static_cast<const char*>(want.raw_data());
  const auto same = [&]<class Word>(Word) {
    constexpr auto kBytes = int64_t(sizeof(Word));
    for (size_t i = 0; i < g.size(); ++i) {
      Word x, y;
      std::memcpy(&x, a + g[i] * kBytes, sizeof x), std::memcpy(&y, b + w[i] * kBytes, sizeof y);
      if (x != y) return false;
    }
    return true;
  };
  switch (itemsize(got.dtype())) {
    case 1: return same(uint8_t());
    case 2: return same(uint16_t());
    case 4: return same(uint32_t());
    case 8: return same(uint64_t());
    case 16: return same(std::array<uint64_t, 2>());
    default: return same(std::array<uint64_t, 4>());
  }
}

}  // namespace

Finding other_number(const Tensors& got, const Tensors& want) {
  return {What::Results, format("got {} results, expected {}", got.size(), want.size())};
}

What type_kind(const Tensor& got, const Tensor& want) {
  return std::ranges::equal(got.sizes(), want.sizes()) ? What::DType : What::Shape;
}

Finding differs(const Tensor& got, const Tensor& want, bool signed_zero) {
  Finding type = differs_in_type(got, want);
  if (!type.empty() || !got.defined()) return type;
  const size_t bytes = size_t(itemsize(got.dtype()));
  if (got.is_contiguous() && want.is_contiguous() && got.dtype() == want.dtype() &&
      !std::memcmp(got.raw_data(), want.raw_data(), bytes * size_t(got.numel())))
    return {};
  const std::vector<int64_t> g = offsets(got), w = offsets(want);
  if (got.dtype() == want.dtype() && same_bytes(got, g, want, w)) return {};
  for (size_t i = 0; i < g.size() - size_t(faulty(Fault::LastEntryIgnored)); ++i) {
    const Parts a = load(got, g[i]), b = load(want, w[i]);
    if (!same_number(a.part[0], b.part[0], signed_zero) || !same_number(a.part[1], b.part[1], signed_zero))
      return both(got, int64_t(i), a, b);
  }
  return {};
}

Finding differs(const Tensor& got, const Tensor& want) { return differs(got, want, true); }

Finding differs(const Tensors& got, const Tensors& want) {
  if (got.size() != want.size()) return other_number(got, want);
  for (size_t k = 0; k < got.size(); ++k)
    if (Finding d = differs(got[k], want[k]); !d.empty())
      return got.size() > 1 ? format("result {}: ", k) + std::move(d) : d;
  return {};
}

namespace {
struct Range {
  f128 max, smallest;
};
Range range_of(DType d) {
  switch (to_real(d)) {
    case DType::F16: return {65504, 0x1p-24};
    case DType::BF16: return {0x1.fep127, 0x1p-133};
    case DType::F32: return {0x1.fffffep127, 0x1p-149};
    case DType::F64: return {0x1.fffffffffffffp1023, 0x1p-1074};
    default: return {kInfinity, 0};
  }
}

bool finite(f128 v) { return v - v == 0; }

/// A complex result whose modulus overflows f128 itself: both parts are that modulus times a cosine whose
/// angle, so large, f128 does not know either. It must be infinite too; which part is, and its sign, is open.
bool both_infinite(const Parts& got, const Parts& want, f128 bound) {
  const auto infinite = [](const Parts& z) {
    return (isinfq(z.part[0]) || isinfq(z.part[1])) && !isnanq(z.part[0]) && !isnanq(z.part[1]);
  };
  return isinfq(bound) && infinite(got) && infinite(want);
}

/// Whether one real part is acceptable; `excess` is |got - want| / bound.
bool close(f128 got, f128 want, f128 bound, const Range& range, f128& excess) {
  excess = kInfinity;
  if (got == want) return true;
  if (isnanq(want)) return isnanq(got);
  if (isnanq(got)) return faulty(Fault::NanWithinBounds);
  if (faulty(Fault::BoundsTooWide)) bound *= 1000;
  if (isinfq(want)) return false;
  // A bound without end excuses no overflow, but that of a value which the dtype does not hold.
  if (isinfq(got) && !finite(bound)) return (got > 0 ? want : -want) >= range.max;
  if (isinfq(got)) return (got > 0 ? want : -want) + bound >= range.max;  // overflow, as rounding does
  excess = bound > 0 ? fabsq(got - want) / bound : (got == want ? 0 : kInfinity);
  return fabsq(got - want) <= bound;
}
}  // namespace

Recording::Recording() : saved_(recording()) { recording() = this; }
Recording::~Recording() { recording() = saved_; }
bool Recording::alive() { return recording() != nullptr; }

Finding outside(const Tensor& got, const Tensor& want, const Tensor& bound) {
  const bool sizes = std::ranges::equal(got.sizes(), want.sizes());
  if (!sizes || is_complex(got.dtype()) != is_complex(want.dtype()))
    return {sizes ? What::DType : What::Shape,
            format("got {}, expected {}", got, type_str(got.dtype(), want.sizes()))};
  const std::vector<int64_t> g = offsets(got), w = offsets(want), b = offsets(bound);
  const Range range = range_of(got.dtype());
  Recording* const kept = recording();
  Finding worst;
  f128 worst_excess = -1, largest = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    const Parts x = load(got, g[i]), y = load(want, w[i]);
    const f128 limit = f128(static_cast<const double*>(bound.raw_data())[b[i]]) + 4 * range.smallest;
    if (is_complex(got.dtype()) && both_infinite(x, y, limit)) continue;
    for (int k = 0; k < 2; ++k) {
      f128 excess;
      if (kept && finite(x.part[k]) && finite(y.part[k]) && limit > 0)
        largest = fmaxq(largest, fabsq(x.part[k] - y.part[k]) / limit);
      if (close(x.part[k], y.part[k], limit, range, excess) || excess <= worst_excess) continue;
      worst_excess = excess;
      worst = both(got, int64_t(i), x, y) + format(", bound {}", text(limit));
    }
  }
  if (kept) kept->made.push_back({got, want, bound, double(largest)});
  return worst;
}

Tensor plus(const Tensor& bound, double more) {
  const Tensor out = plain_copy(bound);
  for (int64_t i = 0; i < out.numel(); ++i) out.data<double>()[i] += more;
  return out;
}

double unit_roundoff(DType d) {
  switch (to_real(d)) {
    case DType::F16: return 0x1p-11;
    case DType::BF16: return 0x1p-8;
    case DType::F32: return 0x1p-24;
    case DType::F64: return 0x1p-53;
    case DType::F128: return 0x1p-113;
    default: return 0;
  }
}

f128 rounded_to(f128 x, DType d) {
  const Range range = range_of(d);
  if (!finite(x) || x == 0 || range.smallest == 0) return x;
  const f128 unit = fmaxq(scalbnq(1, ilogbq(x)) * f128(2 * unit_roundoff(d)), range.smallest);
  const f128 nearest = rintq(x / unit) * unit;  // both exact: unit is a power of two
  return copysignq(fabsq(nearest) > range.max ? kInfinity : nearest, x);
}

DType coarsest_dtype(const Tensors& ts) {
  DType out = DType::I64;
  for (const Tensor& t : ts)
    if (unit_roundoff(t.dtype()) > unit_roundoff(out)) out = t.dtype();
  return out;
}

double smallest_number(DType d) { return double(range_of(d).smallest); }
double largest_number(DType d) { return double(range_of(d).max); }

double half_range(DType d) {
  switch (to_real(d)) {
    case DType::F16: return 0x1p7;
    case DType::F64: return 0x1p500;
    default: return 0x1p60;
  }
}

}  // namespace lamella::verify
