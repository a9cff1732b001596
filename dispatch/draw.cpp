// Drawing arguments: a few words choose shape, class of values, seed and layout; a hash makes the elements.
#include "lamella/dispatch/draw.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace lamella {

namespace {

uint64_t hash(uint64_t seed, uint64_t i) {
  uint64_t z = seed * 0x9E3779B97F4A7C15u + i * 0xD1B54A32D192ED03u + 0x8CB92BA72F3D8DD7u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
/// In [0, 1), with all 53 bits.
double uniform(uint64_t bits) { return double(bits >> 11) * 0x1p-53; }
/// Bell-shaped, variance 1, always within 3.5.
double bell(uint64_t bits) {
  return (uniform(bits) + uniform(hash(bits, 1)) + uniform(hash(bits, 2)) + uniform(hash(bits, 3)) - 2) *
         1.7320508075688772;
}

enum class Kind : uint8_t {
  Iota,
  Bell,
  Small,
  Special,
  Powers,
  Wide,
  NearOne,
  Equal,
  Sorted,
  OneHot,
  Tiny,
  Extreme
};
constexpr Kind kMixture[] = {Kind::Iota,    Kind::Bell,    Kind::Bell,    Kind::Bell,   Kind::Bell,
                             Kind::Bell,    Kind::Bell,    Kind::Bell,    Kind::Bell,   Kind::Small,
                             Kind::Small,   Kind::Special, Kind::Special, Kind::Powers, Kind::Wide,
                             Kind::NearOne, Kind::Equal,   Kind::Sorted,  Kind::OneHot, Kind::Tiny};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Beside the dtype's largest number, for which 1e300 stands.
constexpr double kExtremes[] = {kInfinity, std::numeric_limits<double>::quiet_NaN(), -kInfinity, 1e300, 0, 1,
                                -1e300,    std::numeric_limits<double>::quiet_NaN()};

constexpr double kSpecials[] = {0, 1, -1, 0.5, -0.5, 2, -2, -0.0};

/// Exponents that keep products of a few elements within the dtype.
int largest_exponent(DType d) {
  switch (to_real(d)) {
    case DType::F64: return 60;
    case DType::F16: return 4;
    default: return 20;
  }
}

double extreme_value(uint64_t bits, DType d) {
  const double v = kExtremes[bits % 8];
  if (std::fabs(v) != 1e300) return v;
  const DType real = to_real(d);
  const double largest = real == DType::F16    ? 65504
                         : real == DType::BF16 ? 0x1.fep127
                         : real == DType::F32  ? double(std::numeric_limits<float>::max())
                                               : std::numeric_limits<double>::max();
  return std::copysign(largest, v);
}

/// `v` rounded to a floating dtype.
double rounded(double v, DType d) {
  switch (to_real(d)) {
    case DType::F16: return double(float(f16(float(v))));
    case DType::BF16: return double(float(bf16(float(v))));
    case DType::F32: return double(float(v));
    default: return v;
  }
}

/// One real number of a class; `i` of `n`.
double real_value(Kind kind, uint64_t seed, int64_t i, int64_t n, DType dtype, int e, int tiny, bool tame) {
  const uint64_t bits = hash(seed, uint64_t(i));
  switch (kind) {
    case Kind::Iota: return double(i % 5 + 1) / (tame ? 4 : 1);
    case Kind::Bell: return bell(bits);
    case Kind::Small: return double(int64_t(bits % 7) - 3);
    case Kind::Special: return kSpecials[bits % 8];
    case Kind::Powers: return std::ldexp(bits & 1 ? 1.0 : -1.0, int((bits >> 8) % uint64_t(2 * e + 1)) - e);
    case Kind::Wide: return std::ldexp(2 * uniform(bits) - 1, int(hash(bits, 5) % uint64_t(2 * e + 1)) - e);
    case Kind::NearOne: return (bits & 1 ? 1.0 : -1.0) * (1 - std::ldexp(1.0, -int(1 + (bits >> 8) % 40)));
    case Kind::Equal: return bell(hash(seed, 77));
    case Kind::Sorted:
      return (double(i) - double(n) / 2 + uniform(bits) / 2) / double(std::max<int64_t>(n, 4)) * 4 *
             (seed & 1 ? -1 : 1);
    case Kind::OneHot: return i == int64_t(seed % uint64_t(std::max<int64_t>(n, 1))) ? 1 : 0;
    case Kind::Extreme: return extreme_value(bits, dtype);
    default: return std::ldexp(bell(bits), tiny);
  }
}

double into_domain(double v, Domain domain) {
  if (domain == Domain::Positive) return std::max(std::fabs(v), 0.125);
  if (domain == Domain::NonZero && std::fabs(v) < 0.125) return std::signbit(v) ? v - 0.125 : v + 0.125;
  return v;
}

/// Whole numbers: small ones mostly, the dtype's whole range in two classes.
int64_t integer_value(Kind kind, uint64_t seed, int64_t i, int64_t n, DType dtype, Domain domain,
                      bool narrow) {
  const uint64_t bits = hash(seed, uint64_t(i));
  int64_t v;
  if (!narrow && (kind == Kind::Wide || kind == Kind::Powers)) {
    v = kind == Kind::Wide ? int64_t(bits) : int64_t((uint64_t{1} << bits % 64) - (bits >> 8 & 1));
    const int unused = 64 - 8 * int(itemsize(dtype));
    v = is_signed_integer(dtype) ? v << unused >> unused : int64_t(uint64_t(v) << unused >> unused);
    if (domain == Domain::Positive) v = v < 0 ? v & 0x7f : v;
  } else {
    switch (kind) {
      case Kind::Iota: v = i % 5 + 1; break;
      case Kind::Equal: v = int64_t(seed % 5); break;
      case Kind::Sorted: v = seed & 1 ? n - i : i; break;
      case Kind::OneHot: v = i == int64_t(seed % uint64_t(std::max<int64_t>(n, 1))); break;
      default: v = int64_t(bits % 9) - (is_signed_integer(dtype) ? 4 : 0);
    }
    if (domain == Domain::Positive) v = std::abs(v);
  }
  return v == 0 && (domain == Domain::Positive || domain == Domain::NonZero) ? 1 : v;
}

void store(Tensor& t, int64_t i, double re, double im) {
  void* const p = t.raw_data();
  switch (t.dtype()) {
    case DType::F16: static_cast<f16*>(p)[i] = f16(float(re)); return;
    case DType::BF16: static_cast<bf16*>(p)[i] = bf16(float(re)); return;
    case DType::F32: static_cast<float*>(p)[i] = float(re); return;
    case DType::F64: static_cast<double*>(p)[i] = re; return;
    case DType::C64: static_cast<c64*>(p)[i] = c64(float(re), float(im)); return;
    case DType::C128: static_cast<c128*>(p)[i] = c128(re, im); return;
    default: LAMELLA_ASSERT(false);
  }
}

void store_integer(Tensor& t, int64_t i, int64_t v) {
  char* const p = static_cast<char*>(t.raw_data()) + i * itemsize(t.dtype());
  if (is_bool(t.dtype())) *p = v & 1;
  else std::memcpy(p, &v, size_t(itemsize(t.dtype())));  // little-endian: the low bytes
}

/// Element i of a shuffle of 0..n-1: an affine map modulo n followed by a reflection.
int64_t shuffled(uint64_t seed, int64_t i, int64_t n) {
  if (seed == 0) return i;
  int64_t step = 1 + int64_t(seed % uint64_t(n));
  while (std::gcd(step, n) != 1) ++step;
  return (i * step + int64_t(seed >> 8) % n) % n;
}

/// One of `some`, which are in the order of their numbers.
DType chosen(DTypeMask some, uint32_t w) {
  for (uint32_t skipped = w % uint32_t(std::popcount(some)); skipped > 0; --skipped) some &= some - 1;
  return DType(std::countr_zero(some));
}

/// Filled so that reading it shows: NaN, or integers far out of any range.
void poison(Tensor& t) {
  if (is_bool(t.dtype())) std::memset(t.raw_data(), 1, size_t(t.numel()));
  else if (is_inexact(t.dtype()))
    for (int64_t i = 0; i < t.numel(); ++i) store(t, i, std::nan(""), std::nan(""));
  else std::memset(t.raw_data(), 0x5a, size_t(t.numel() * itemsize(t.dtype())));
}

}  // namespace

/// "rank", "values of a1": words about a tensor name it as the printed program does.
void Draw::name_part(std::string_view what) {
  std::string text(what);
  if (!sharing_) text = "a choice of the law";
  else if (what.ends_with(" of")) text += " a" + std::to_string(tensors_);
  options_.parts->push_back(text);
}

DType Draw::dtype(DTypeMask supported) {
  static constexpr DType kOrder[] = {DType::F64,  DType::F32, DType::C128, DType::C64, DType::F16,
                                     DType::BF16, DType::I64, DType::I32,  DType::I16, DType::I8,
                                     DType::U8,   DType::U64, DType::U32,  DType::U16, DType::Bool};
  if (has_dtype_ && (supported & mask(dtype_))) return dtype_;
  const DTypeMask wanted = supported & options_.dtypes ? supported & options_.dtypes : supported;
  DType candidates[kDTypeCount];
  uint32_t n = 0;
  for (const DType d : kOrder)
    if (wanted & mask(d)) candidates[n++] = d;
  LAMELLA_ASSERT(n > 0);
  const uint32_t w = word("dtype");
  const DType d = w % 8 < 3 ? candidates[0] : candidates[w / 8 % n];
  if (!has_dtype_) dtype_ = d;
  has_dtype_ = true;
  return d;
}

Value Draw::dtype_argument(DType of, DTypeMask supported, bool always) {
  if (!one_in(4) && !always) return {};
  supported = nameable(supported);
  const uint32_t w = word("dtype argument");
  const DType wide = is_complex(of) ? DType::C128 : DType::F64;
  if (w % 2 == 0 && supported & mask(wide)) return wide;
  const DType named = chosen(supported, w / 2);
  if (from(3)) named_ = mask(to_real(named));
  return named;
}

DType Draw::partner(DType first, DTypeMask supported) {
  if (!from(2) || !options_.mixed) return first;
  const uint32_t w = word("other dtype");
  const DTypeMask wanted = supported & (options_.dtypes | kIntegers | kBoolType) & ~mask(first);
  if (w % 6 != 5 || !wanted) return first;
  const DType second = chosen(wanted, w / 6);
  mixed_ = true;
  in_play_ |= mask(to_real(first)) | mask(to_real(second));
  return second;
}

/// Lengths about the widths of vectors may exceed the limit where it is no small one.
int64_t Draw::most_elements(int64_t size) const {
  return from(2) && size >= 7 && options_.max_numel >= 32 ? 3 * options_.max_numel : options_.max_numel;
}

int64_t Draw::size(bool nonzero) {
  static constexpr int8_t kSizes[] = {2, 3, 2, 1, 3, 2, 5, 3, 2, 1, 3, 4,
                                      2, 5, 3, 2, 1, 3, 2, 0, 3, 5, 2, -1};
  static constexpr int8_t kEdges[] = {7, 8, 9, 15, 16, 17, 31, 32};
  static constexpr int8_t kMoreEdges[] = {7, 8, 9, 11, 13, 15, 16, 17, 31, 32, 33, 64, 65};
  const uint32_t w = word("size");
  if (options_.empty && !nonzero && (w >> 8 & 1)) return 0;
  int64_t s = kSizes[w % 24];
  if (s < 0) s = from(2) ? kMoreEdges[w / 24 % 13] : kEdges[w / 24 % 8];
  if (s == 5 && from(2) && w / 24 % 4 == 3) s = kMoreEdges[w / 96 % 5];
  s = std::min(s, most_elements(s));
  return s == 0 && nonzero ? 1 : s;
}

Dims Draw::shape(int min_rank, int max_rank) {
  const int rank = int(range(min_rank, max_rank, "rank"));
  Dims out;
  int64_t numel = 1;
  for (int d = 0; d < rank; ++d) {
    int64_t s = size();
    if (s > 1 && numel * s > most_elements(s)) s = numel * 2 <= options_.max_numel ? 2 : 1;
    out.push_back(s);
    numel *= std::max<int64_t>(s, 1);
  }
  return out;
}

Dims Draw::broadcastable(const Dims& s) {
  const uint32_t w = word("broadcast");
  if (w % 2 == 0 || s.empty()) return s;
  const int dropped = int(w / 2 % uint32_t(s.size() + 1));
  Dims out;
  for (int d = dropped; d < s.size(); ++d) out.push_back((w >> 8 >> d) & 1 ? 1 : s[d]);
  return out;
}

Dims Draw::broadcastable(const Dims& s, DType d) {
  if (mixed_ && d != dtype_ && one_in(2)) return {};
  return broadcastable(s);
}

int64_t Draw::dim(int rank) {
  const int64_t r = std::max(rank, 1);
  const uint32_t w = word("dim");
  const int64_t d = int64_t(w % 64) % r;
  return w / 64 & 1 ? d - r : d;
}

Dims Draw::dims(int rank, int least) {
  Dims out;
  if (rank == 0) return out;
  const uint32_t w = word("dims");
  const int count = std::min(rank, least + int(w % uint32_t(rank - least + 1)));
  for (int k = 0; k < count; ++k) {
    const int64_t d = (int64_t(w / 16 % uint32_t(rank)) + k * (w >> 12 & 1 && rank % 2 ? 2 : 1)) % rank;
    out.push_back(w >> (16 + k) & 1 ? d - rank : d);
  }
  return out;
}

int Draw::wide_exponent(DType d) const {
  if (options_.tame) return 1;
  int e = std::min(options_.max_exponent, largest_exponent(d));
  for (const DType other : {DType::F16, DType::BF16, DType::F32})
    if ((in_play_ | named_) & mask(other)) e = std::min(e, largest_exponent(other));
  return e;
}

/// A scalar of a wider dtype is rounded to that of the tensor beside it: these need no rounding, so that the
/// oracle sees the same number.
double Draw::fitting(double v) const {
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    if (in_play_ & mask(d)) v = rounded(v, d);
  return v;
}

Tensor Draw::fill(const Dims& sizes, DType dtype, Domain domain) {
  Tensor t = make_tensor(sizes, dtype);
  const int64_t n = t.numel();
  const uint32_t w = word("values of");
  const uint64_t seed = word("values of");
  const bool narrow = options_.exact || options_.tame || mixed_;
  Kind kind = kMixture[w % std::size(kMixture)];
  const int e = wide_exponent(dtype);
  const int tiny = options_.tame || e < 20 ? -6 : named_ & (kHalfTypes | mask(DType::F32)) ? -e : -3 * e;
  if (from(2) && options_.nonfinite && kind == Kind::Bell && (w >> 12 & 7) == 7) kind = Kind::Extreme;
  if (options_.exact && kind != Kind::Iota && kind < Kind::Equal) kind = Kind::Small;
  if (domain == Domain::Distinct) {
    const double step = options_.exact ? 1 : options_.tame ? 0.125 : std::ldexp(1.0, int(w >> 8 & 7) - 4);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = shuffled(seed, i, n) - (is_inexact(dtype) || is_signed_integer(dtype) ? n / 2 : 0);
      if (is_inexact(dtype)) store(t, i, double(at) * step, bell(hash(seed, uint64_t(i))));
      else store_integer(t, i, at);
    }
    return t;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (!is_inexact(dtype)) {
      store_integer(t, i, integer_value(kind, seed, i, n, dtype, domain, narrow));
      continue;
    }
    double parts[2];
    for (int k = 0; k < 2; ++k) {
      const uint64_t s = k ? hash(seed, 1000) : seed;
      parts[k] = !options_.exact ? real_value(kind, s, i, n, dtype, e, tiny, options_.tame)
                                 : double(integer_value(kind, s, i, n, DType::I64, Domain::Any, true));
      if (k == 1 && kind == Kind::Iota) parts[k] = 0;
      if (mixed_ && sizes.empty()) parts[k] = fitting(parts[k]);
    }
    double re = into_domain(parts[0], domain);
    if (options_.exact && domain == Domain::Positive) re = std::fabs(re) < 1 ? 1 : std::fabs(re);
    else if (options_.exact && domain == Domain::NonZero && parts[0] == 0) re = 1;
    store(t, i, re, parts[1]);
  }
  const uint32_t patches = w / 32 % 8;
  for (uint32_t p = 0; p < patches && p < 4 && n > 0; ++p) {
    const uint32_t v = word("values of");
    const int64_t at = int64_t(v / 8) % n;
    if (is_inexact(dtype)) {
      double re = into_domain(kSpecials[v % 8], domain);
      if (options_.exact)
        re = into_domain(std::trunc(kSpecials[v % 8]), domain == Domain::Any ? domain : Domain::Positive);
      if (options_.exact && re != std::trunc(re)) re = 1;
      store(t, at, re, 0);
    } else {
      store_integer(t, at, domain == Domain::Any ? v % 2 : 1);
    }
  }
  return t;
}

/// One word: which dims are stored innermost, which are stepped, padded or repeated, and how far in the first
/// element lies.
Tensor Draw::relayout(const Tensor& t, bool may_repeat) {
  if (!options_.layouts) return t;
  const uint32_t w = word("layout of");
  if (w % 8 < 3) return t;
  const int rank = t.rank();
  const bool permute = w >> 3 & 1, step = w >> 4 & 1, pad = w >> 5 & 1;
  const bool repeat = may_repeat && (w >> 6 & 7) == 7 && rank > 0;
  const int repeated = repeat ? int(w >> 9) % rank : -1;
  const int stepped = step && rank > 0 ? int(w >> 12) % rank : -1;
  const int turn = permute && rank > 1 ? 1 + int(w >> 15) % (rank - 1) : 0;
  const int64_t offset = (w >> 20 & 3) * (w >> 22 & 1);
  Dims strides(rank);
  int64_t next = 1;
  for (int k = 0; k < rank; ++k) {
    const int d = (rank - 1 - k + turn) % rank;
    if (d == repeated) continue;  // stride 0
    strides[d] = next * (d == stepped ? 2 : 1);
    next = strides[d] * std::max<int64_t>(t.size(d), 1) + (pad ? 1 : 0);
  }
  Tensor buffer = make_tensor(Dims{offset + next + (pad ? 2 : 0)}, t.dtype());
  poison(buffer);
  const Tensor out = make_view_unchecked(buffer, t.sizes(), strides, offset);
  const size_t bytes = size_t(itemsize(t.dtype()));
  const char* from = static_cast<const char*>(t.raw_data());
  char* const to = static_cast<char*>(out.raw_data());
  Dims at(rank);
  for (int64_t i = 0; i < t.numel(); ++i, from += bytes) {
    int64_t element = 0;
    for (int d = 0; d < rank; ++d) element += at[d] * strides[d];
    std::memcpy(to + size_t(element) * bytes, from, bytes);
    for (int d = rank - 1; d >= 0 && ++at[d] == t.size(d); --d) at[d] = 0;
  }
  return out;
}

/// One time in twelve an earlier argument of this type once more: its own handle, another one, or the
/// transpose.
Tensor Draw::shared(const Dims& sizes, DType dtype, Domain domain) {
  if (!from(2) || !sharing_ || !options_.mixed || !options_.layouts) return {};
  for (const Made& m : made_) {
    if (m.domain != domain || m.tensor.dtype() != dtype || !sizes.equal(m.tensor.sizes())) continue;
    const uint32_t w = word("storage of");
    if (w % 12 != 11) return {};
    if (w / 12 % 2) return m.tensor;
    Dims strides(m.tensor.strides());
    if (sizes.size() >= 2 && sizes[0] == sizes[1] && w / 24 % 2) std::swap(strides[0], strides[1]);
    return make_view_unchecked(m.tensor, sizes, strides, m.tensor.impl()->offset);
  }
  return {};
}

Tensor Draw::tensor(const Dims& sizes, DType dtype, Domain domain) {
  if (Tensor again = shared(sizes, dtype, domain); again.defined()) return finished(again);
  Tensor made = relayout(fill(sizes, dtype, domain), domain != Domain::Distinct);
  if (sharing_) made_.push_back({made, domain});
  return finished(made);
}

Tensor Draw::index(const Dims& sizes, int64_t bound) {
  Tensor t = make_tensor(sizes, DType::I64);
  const uint32_t seed = word("values of");
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<int64_t>()[i] = seed == 0 ? 0 : int64_t(hash(seed, uint64_t(i)) % uint64_t(bound));
  return finished(relayout(t, true));
}

Tensor Draw::boolean(const Dims& sizes) {
  Tensor t = make_tensor(sizes, DType::Bool);
  const uint32_t seed = word("values of");
  for (int64_t i = 0; i < t.numel(); ++i) t.data<bool>()[i] = seed != 0 && hash(seed, uint64_t(i)) & 1;
  return finished(relayout(t, true));
}

Scalar Draw::scalar(DType dtype) {
  static constexpr double kNumbers[] = {1, 2, -1, 3, 0.5, -2, 2.5, -0.75};
  const uint32_t w = word("number");
  if (dtype == DType::U64 && !options_.exact && w % 8 == 7) return Scalar(~uint64_t{0} - w / 8 % 4);
  if (!is_inexact(dtype)) return Scalar(int64_t(is_signed_integer(dtype) ? kNumbers[w % 4] : w % 4 + 1));
  const double re = kNumbers[w % (options_.exact ? 4 : 8)];
  if (is_complex(dtype)) return Scalar(c128(re, w / 8 % 4 ? kNumbers[w / 32 % 4] : 0));
  return Scalar(re);
}

Tensor Draw::positive_definite(const Dims& batch, int64_t n, DType dtype) {
  Dims sizes(batch);
  sizes.push_back(n), sizes.push_back(n);
  Tensor t = make_tensor(sizes, dtype);
  const uint32_t seed = word("values of");
  std::vector<c128> factor(size_t(n * n));
  for (int64_t b = 0; n > 0 && b < t.numel() / (n * n); ++b) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        const uint64_t bits = seed ? hash(seed, uint64_t((b * n + i) * n + j)) : 1;
        const bool diagonal = i == j;
        const double re = options_.exact ? (diagonal ? double(1 + bits % 2) : double(int64_t(bits % 3) - 1))
                          : diagonal     ? 1 + uniform(bits)
                                         : 0.5 * bell(bits);
        const double im = options_.exact || diagonal || !is_complex(dtype) ? 0 : 0.5 * bell(hash(bits, 3));
        factor[size_t(i * n + j)] = {seed || diagonal ? re : 0, seed ? im : 0};
      }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        c128 sum = 0;
        for (int64_t k = 0; k <= j; ++k)
          sum += factor[size_t(i * n + k)] * std::conj(factor[size_t(j * n + k)]);
        store(t, (b * n + i) * n + j, sum.real(), i == j ? 0 : sum.imag());
        store(t, (b * n + j) * n + i, sum.real(), i == j ? 0 : -sum.imag());
      }
  }
  return finished(relayout(t, false));
}

Tensor Draw::triangular(const Dims& batch, int64_t n, DType dtype) {
  Dims sizes(batch);
  sizes.push_back(n), sizes.push_back(n);
  Tensor t = make_tensor(sizes, dtype);
  const uint64_t seed = word("values of");
  for (int64_t i = 0; i < t.numel(); ++i) {
    const bool diagonal = i / n % n == i % n;
    const uint64_t bits = hash(seed, uint64_t(i));
    const double sign = seed && bits & 1 ? -1 : 1;
    if (options_.exact) store(t, i, diagonal ? sign : seed ? double(int64_t(bits % 5) - 2) : 0, 0);
    else if (diagonal) store(t, i, sign * (1 + (seed ? uniform(bits) : 0)), 0);
    else store(t, i, seed ? 0.7 * bell(bits) : 0, seed ? 0.7 * bell(hash(bits, 3)) : 0);
  }
  return finished(relayout(t, false));
}

Tensor Draw::keys(const Dims& sizes) {
  Tensor t = make_tensor(sizes, DType::U64);
  const uint64_t seed = word("values of");
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<uint64_t>()[i] = seed ? hash(seed, uint64_t(i)) : uint64_t(i);
  return finished(relayout(t, false));
}

}  // namespace lamella
