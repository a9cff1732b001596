// Drawing arguments: a few words choose shape, class of values, seed and layout; a hash makes the elements.
#include "lamella/verify/case/decoder.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "lamella/verify/case/decoder_values.h"

namespace lamella::verify {

using namespace drawn;

namespace {

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
  const size_t bytes = size_t(t.numel() * itemsize(t.dtype()));
  if (is_bool(t.dtype())) std::memset(t.raw_data(), 1, bytes);
  else if (!is_inexact(t.dtype())) std::memset(t.raw_data(), 0x5a, bytes);
  else if (t.numel() > 0) {
    store(t, 0, std::nan(""), std::nan(""));
    char* const p = static_cast<char*>(t.raw_data());
    for (size_t done = size_t(itemsize(t.dtype())); done < bytes; done *= 2)
      std::memcpy(p + done, p, std::min(done, bytes - done));
  }
}

/// Elements of `t` in row-major order to where strides say; they come from contiguous memory.
template <size_t kBytes> void scatter(const char* from, const Tensor& t) {
  char* const to = static_cast<char*>(t.raw_data());
  if (t.rank() == 0) return void(std::memcpy(to, from, kBytes));
  const int last = t.rank() - 1;
  const int64_t n = t.size(last), step = t.stride(last) * int64_t(kBytes);
  const int64_t rows = n == 0 ? 0 : t.numel() / n;
  Dims at(t.rank());
  int64_t begin = 0;
  for (int64_t row = 0; row < rows; ++row) {
    char* place = to + begin * int64_t(kBytes);
    for (int64_t i = 0; i < n; ++i, place += step, from += kBytes) std::memcpy(place, from, kBytes);
    for (int d = last - 1; d >= 0; --d) {
      begin += t.stride(d);
      if (++at[d] < t.size(d)) break;
      begin -= at[d] * t.stride(d);
      at[d] = 0;
    }
  }
}

void scatter(const void* source, const Tensor& t) {
  const char* const from = static_cast<const char*>(source);
  switch (itemsize(t.dtype())) {
    case 1: return scatter<1>(from, t);
    case 2: return scatter<2>(from, t);
    case 4: return scatter<4>(from, t);
    case 8: return scatter<8>(from, t);
    default: return scatter<16>(from, t);
  }
}

}  // namespace

/// "rank", "values of a1": words about a tensor name it as the printed program does.
void Decoder::name_part(std::string_view what) {
  std::string text(what);
  if (!sharing_) text = "a choice of the law";
  else if (what.ends_with(" of")) text += " a" + std::to_string(tensors_);
  options().parts->push_back(std::move(text));
}

void Decoder::begin_arguments() {
  const auto choices = choices_;
  const size_t at = at_;
  *this = Decoder(choices, options());
  at_ = at;
}

DType Decoder::dtype(DTypeMask supported) {
  static constexpr DType kOrder[] = {DType::F64,  DType::F32, DType::C128, DType::C64, DType::F16,
                                     DType::BF16, DType::I64, DType::I32,  DType::I16, DType::I8,
                                     DType::U8,   DType::U64, DType::U32,  DType::U16, DType::Bool};
  if (has_dtype_ && (supported & mask(dtype_))) return dtype_;
  const DTypeMask wanted = supported & options().dtypes ? supported & options().dtypes : supported;
  const auto n = uint32_t(std::popcount(wanted & kAllTypes));
  LAMELLA_ASSERT(n > 0);
  const uint32_t w = word("dtype") & kChoosesDType;
  const DType* at = kOrder;
  for (uint32_t skipped = w % 8 < 3 ? 0 : w / 8 % n;; ++at)
    if (wanted & mask(*at) && skipped-- == 0) break;
  const DType d = *at;
  if (!has_dtype_) dtype_ = d;
  has_dtype_ = true;
  return d;
}

Value Decoder::dtype_argument(DType of, DTypeMask supported, bool always) {
  if (!one_in(4) && !always) return {};
  supported = nameable(supported);
  const uint32_t w = word("dtype argument");
  const DType wide = is_complex(of) ? DType::C128 : DType::F64;
  if (w % 2 == 0 && supported & mask(wide)) return wide;
  const DType named = chosen(supported, w / 2);
  named_type_ = mask(to_real(named));
  return named;
}

DType Decoder::partner(DType first, DTypeMask supported) {
  if (!options().mixed) return first;
  const uint32_t w = word("other dtype");
  const DTypeMask wanted = supported & (options().dtypes | kIntegers | kBoolType) & ~mask(first);
  if (w % 6 != 5 || !wanted) return first;
  const DType second = chosen(wanted, w / 6);
  mixed_ = true;
  in_play_ |= mask(to_real(first)) | mask(to_real(second));
  return second;
}

int64_t Decoder::anywhere(int64_t usual, int64_t size) {
  const uint32_t w = word("attribute");
  return w % 8 == 7 ? end_attribute(w / 8, size) : usual;
}

int64_t Decoder::positive(int64_t usual, int64_t size) {
  const int64_t v = anywhere(usual, size);
  return v > 0 ? v : usual;
}

int Decoder::wide_exponent(DType d) const {
  if (options().tame) return 1;
  int e = std::min(options().max_exponent, largest_exponent(d));
  const DTypeMask others = in_play_ | named_type_;
  if (!others) return e;
  for (const DType other : {DType::F16, DType::BF16, DType::F32})
    if (others & mask(other)) e = std::min(e, largest_exponent(other));
  return e;
}

/// A scalar of a wider dtype is rounded to that of the tensor beside it: these need no rounding, so that the
/// oracle sees the same number.
double Decoder::fitting(double v) const {
  // Kernels compute halves in f32: numbers that halves cannot hold keep their digits there.
  if (options().ends) return in_play_ & (mask(DType::F32) | kHalfTypes) ? double(float(v)) : v;
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    if (in_play_ & mask(d)) v = rounded(v, d);
  return v;
}

/// Elements of an earlier argument once more, one after the other: rows and numbers with equal bits.
bool Decoder::repeat_earlier(Tensor& t, Domain domain) const {
  if (made_.empty() || !sharing_ || made_.back().domain != domain) return false;
  const Tensor& from = made_.back().tensor;
  if (from.dtype() != t.dtype() || from.numel() == 0) return false;
  const size_t bytes = size_t(itemsize(t.dtype()));
  const char* const source = static_cast<const char*>(from.raw_data());
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t rest = i % from.numel(), offset = 0;
    for (int d = from.rank() - 1; d >= 0; rest /= from.size(d), --d)
      offset += rest % from.size(d) * from.stride(d);
    std::memcpy(static_cast<char*>(t.raw_data()) + size_t(i) * bytes, source + size_t(offset) * bytes, bytes);
  }
  return true;
}

/// In all elements, in one of four, or in about one of all.
void Decoder::put_ends(Tensor& t, uint32_t w, uint64_t seed) const {
  const int64_t n = t.numel();
  const uint64_t apart = w >> 16 & 1 ? 1 : w >> 17 & 1 ? 4 : uint64_t(std::max<int64_t>(n, 1));
  const DType real = to_real(t.dtype());
  for (int64_t i = 0; i < n; ++i)
    for (int part = 0; part < (is_complex(t.dtype()) ? 2 : 1); ++part)
      if (const uint64_t h = hash(seed, uint64_t(i) + 4096 + 8192 * uint64_t(part)); (h >> 32) % apart == 0)
        store_bits(t, i, part, end_bits(real, h));
}

/// What the first tensor of a case chooses most others follow: 0 to the power 0, a quotient of two large
/// numbers.
uint32_t Decoder::special_choice(uint32_t w) {
  constexpr uint32_t kChosen = 64;
  const uint32_t own = w >> 24 & 63;
  if (!special_) special_ = own | kChosen, special_places_ = hash(w, 12);
  return w >> 30 == 3 ? own : special_ & 63;
}

/// NaN, infinities and zeros, in one of two to one of sixteen elements, the same ones in all tensors, and
/// most often in both parts of one, of which every other is alike; or numbers that are all near one end of
/// the exponents' range.
void Decoder::put_beside_ordinary(Tensor& t, uint32_t w, uint64_t seed) const {
  const DType real = to_real(t.dtype());
  const uint32_t apart = 2u << (w & 3);
  for (int64_t i = 0; i < t.numel(); ++i)
    for (int part = 0; part < (is_complex(t.dtype()) ? 2 : 1); ++part) {
      const uint64_t h = hash(seed, uint64_t(i) + 16384);
      const uint64_t place = hash(special_places_, uint64_t(i));
      const uint64_t of_part = hash(h, h >> 40 & 1 ? 0 : uint64_t(part));
      if ((place >> 32) % apart == 0 && of_part % 8 != 7) store_bits(t, i, part, special_bits(real, of_part));
    }
}
void Decoder::put_far(Tensor& t, uint32_t w, uint64_t seed) const {
  const DType real = to_real(t.dtype());
  for (int64_t i = 0; i < t.numel(); ++i)
    for (int part = 0; part < (is_complex(t.dtype()) ? 2 : 1); ++part)
      store_bits(t, i, part, far_bits(real, w & 1, hash(seed, 2 * uint64_t(i) + uint64_t(part) + 32768)));
}

/// Rank-0 operands of a wider dtype, beyond the range of f16; bf16 and f32 hold them.
static double beyond_halves(uint32_t w) {
  static constexpr double kBeyond[] = {0x1p16, -0x1p17, 0x1.8p16, 0x1p-26};
  return kBeyond[w % std::size(kBeyond)];
}

namespace {
/// No two alike, `step` apart, in an order of the seed.
void put_distinct(Tensor& t, double step, uint64_t seed) {
  const int64_t n = t.numel();
  const bool below_zero = is_inexact(t.dtype()) || is_signed_integer(t.dtype());
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = shuffled(seed, i, n) - (below_zero ? n / 2 : 0);
    if (is_inexact(t.dtype())) store(t, i, double(at) * step, bell(hash(seed, uint64_t(i))));
    else store_integer(t, i, at);
  }
}

constexpr int64_t kChunk = 32;
/// Of a kind; `whole_range`: the ends of the dtype's instead.
void put_integers(Tensor& t, Kind kind, uint64_t seed, Domain domain, bool narrow, bool whole_range) {
  int64_t whole[kChunk];
  const int64_t n = t.numel();
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t count = std::min(kChunk, n - begin);
    integer_values(whole, begin, count, kind, seed, n, t.dtype(), domain, narrow);
    for (int64_t i = 0; i < count && whole_range && !is_bool(t.dtype()); ++i)
      whole[i] = end_integer(t.dtype(), hash(seed, uint64_t(begin + i)));
    store_integers(t, begin, count, whole);
  }
}
}  // namespace

/// Of tiny numbers, where the largest have `e`; `named` is what an operator is told to compute in.
static int least_exponent(bool tame, DTypeMask named, int e) {
  if (tame || e < 20) return -6;
  return named & (kHalfTypes | mask(DType::F32)) ? -e : -3 * e;
}

Tensor Decoder::fill(const Dims& sizes, DType dtype, Domain domain) {
  Tensor t = make_tensor(sizes, dtype);
  const int64_t n = t.numel();
  const uint32_t w = word("values of");
  const uint64_t seed = word("values of");
  const bool narrow = options().exact || options().tame || mixed_;
  Kind kind = kMixture[w % std::size(kMixture)];
  const int e = wide_exponent(dtype);
  const int tiny = least_exponent(options().tame, named_type_, e);
  if (options().nonfinite && kind == Kind::Bell && (w >> 12 & 7) == 7) kind = Kind::Extreme;
  if (options().exact && kind != Kind::Iota && kind < Kind::Equal) kind = Kind::Small;
  if (domain != Domain::Distinct && (w >> 19 & 15) == 15 && repeat_earlier(t, domain)) return t;
  const bool at_ends = options().ends && domain != Domain::Distinct && w >> 15 & 1;
  const uint32_t special = special_choice(w);
  const bool beside = options().ends && domain != Domain::Distinct && !at_ends && is_inexact(dtype) &&
                      !(mixed_ && sizes.empty()) && (special & 3) != 3;
  if (beside) kind = Kind::Bell;
  if (at_ends && is_inexact(dtype) && w >> 23 & 1) domain = Domain::Any;
  if (domain == Domain::Distinct) {
    const double step = options().exact ? 1 : options().tame ? 0.125 : std::ldexp(1.0, int(w >> 8 & 7) - 4);
    return put_distinct(t, step, seed), t;
  }
  const bool beyond_signed = dtype == DType::U64 && w >> 20 & 1;
  const bool whole_range = (kind == Kind::Special || beyond_signed) && domain == Domain::Any && !narrow;
  if (!is_inexact(dtype)) put_integers(t, kind, seed, domain, narrow, whole_range);
  int64_t whole[kChunk];
  double re[kChunk], im[kChunk];
  for (int64_t begin = 0; begin < n && is_inexact(dtype); begin += kChunk) {
    const int64_t count = std::min(kChunk, n - begin);
    for (int k = 0; k <= int(is_complex(dtype)); ++k) {
      double* const parts = k ? im : re;
      const uint64_t s = k ? hash(seed, 1000) : seed;
      if (k == 1 && kind == Kind::Iota) std::fill_n(parts, count, 0.0);
      else if (!options().exact) real_values(parts, begin, count, kind, s, n, dtype, e, tiny, options().tame);
      else {
        integer_values(whole, begin, count, kind, s, n, DType::I64, Domain::Any, true);
        for (int64_t i = 0; i < count; ++i) parts[i] = double(whole[i]);
      }
      if (mixed_ && sizes.empty()) parts[0] = fitting(parts[0]);
    }
    for (int64_t i = 0; i < count && domain != Domain::Any; ++i) {
      const double drawn = std::exchange(re[i], into_domain(re[i], domain));
      if (options().exact && domain == Domain::Positive) re[i] = std::fabs(re[i]) < 1 ? 1 : std::fabs(re[i]);
      else if (options().exact && domain == Domain::NonZero && drawn == 0) re[i] = 1;
    }
    store_all(t, begin, count, re, im);
  }
  // Numbers beside a narrower dtype are converted to it: those have to fit.
  if (beside && (special >> 2 & 3) != 3) return put_beside_ordinary(t, special >> 4, seed), t;
  if (beside) return put_far(t, special >> 4, seed), t;
  if (is_inexact(dtype) && !(mixed_ && sizes.empty()))
    if (at_ends || (kind == Kind::Extreme && w >> 18 & 1)) return put_ends(t, w, seed), t;
  const bool beside_half = mixed_ && sizes.empty() && in_play_ & kHalfTypes && !is_half(dtype);
  if (beside_half && is_floating(dtype) && !options().exact && !options().tame && domain == Domain::Any &&
      (w >> 24 & 7) == 7)
    return store(t, 0, beyond_halves(w >> 27), 0), t;
  put_specials(t, w / 32 % 8, domain);
  return t;
}

/// Special numbers at `patches` places, at most four.
void Decoder::put_specials(Tensor& t, uint32_t patches, Domain domain) {
  const int64_t n = t.numel();
  for (uint32_t p = 0; p < patches && p < 4 && n > 0; ++p) {
    const uint32_t v = word("values of");
    const int64_t at = int64_t(v / 8) % n;
    if (is_inexact(t.dtype())) {
      double re = into_domain(kSpecials[v % 8], domain);
      if (options().exact)
        re = into_domain(std::trunc(kSpecials[v % 8]), domain == Domain::Any ? domain : Domain::Positive);
      if (options().exact && re != std::trunc(re)) re = 1;
      store(t, at, re, 0);
    } else {
      store_integer(t, at, domain == Domain::Any ? v % 2 : 1);
    }
  }
}

/// One word: which dims are stored innermost, which are stepped, padded or repeated, and how far in the first
/// element lies.
Tensor Decoder::relayout(const Tensor& t, bool may_repeat) {
  if (!options().layouts) return t;
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
  scatter(t.raw_data(), out);
  return out;
}

/// One time in twelve an earlier argument of this type once more: its own handle, another one, or the
/// transpose.
Tensor Decoder::shared(const Dims& sizes, DType dtype, Domain domain) {
  if (!sharing_ || !options().mixed || !options().layouts) return {};
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

Tensor Decoder::tensor(const Dims& sizes, DType dtype, Domain domain) {
  if (Tensor again = shared(sizes, dtype, domain); again.defined()) return finished(again);
  Tensor made = relayout(fill(sizes, dtype, domain), domain != Domain::Distinct);
  if (sharing_ && made_.empty()) made_.reserve(4);
  if (sharing_) made_.push_back({made, domain});
  ++tensors_;
  return made;
}

Tensor Decoder::index(const Dims& sizes, int64_t bound, DType dtype) {
  Tensor t = make_tensor(sizes, dtype);
  const uint32_t seed = word("values of");
  for (int64_t i = 0; i < t.numel(); ++i) {
    const int64_t at = seed == 0 ? 0 : int64_t(hash(seed, uint64_t(i)) % uint64_t(bound));
    if (dtype == DType::I32) t.data<int32_t>()[i] = int32_t(at);
    else t.data<int64_t>()[i] = at;
  }
  return finished(relayout(t, true));
}

Tensor Decoder::boolean(const Dims& sizes) {
  Tensor t = make_tensor(sizes, DType::Bool);
  const uint32_t seed = word("values of");
  for (int64_t i = 0; i < t.numel(); ++i) t.data<bool>()[i] = seed != 0 && hash(seed, uint64_t(i)) & 1;
  return finished(relayout(t, true));
}

Scalar Decoder::scalar(DType dtype) {
  static constexpr double kNumbers[] = {1, 2, -1, 3, 0.5, -2, 2.5, -0.75};
  const uint32_t w = word("number");
  if (!options().exact && !options().tame && (w >> 20 & 7) == 7) {
    if (is_integer(dtype)) return Scalar(wide_integer(w >> 23));
    if (options().ends && is_floating(dtype)) return Scalar(wide_number(w >> 23));
  }
  if (dtype == DType::U64 && !options().exact && w % 8 == 7) return Scalar(~uint64_t{0} - w / 8 % 4);
  if (!is_inexact(dtype)) return Scalar(int64_t(is_signed_integer(dtype) ? kNumbers[w % 4] : w % 4 + 1));
  const double re = kNumbers[w % (options().exact ? 4 : 8)];
  if (is_complex(dtype)) return Scalar(c128(re, w / 8 % 4 ? kNumbers[w / 32 % 4] : 0));
  return Scalar(re);
}

Tensor Decoder::positive_definite(const Dims& batch, int64_t n, DType dtype) {
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
        const double re = options().exact ? (diagonal ? double(1 + bits % 2) : double(int64_t(bits % 3) - 1))
                          : diagonal      ? 1 + uniform(bits)
                                          : 0.5 * bell(bits);
        const double im = options().exact || diagonal || !is_complex(dtype) ? 0 : 0.5 * bell(hash(bits, 3));
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

Tensor Decoder::triangular(const Dims& batch, int64_t n, DType dtype) {
  Dims sizes(batch);
  sizes.push_back(n), sizes.push_back(n);
  Tensor t = make_tensor(sizes, dtype);
  const uint64_t seed = word("values of");
  for (int64_t i = 0; i < t.numel(); ++i) {
    const bool diagonal = i / n % n == i % n;
    const uint64_t bits = hash(seed, uint64_t(i));
    const double sign = seed && bits & 1 ? -1 : 1;
    if (options().exact) store(t, i, diagonal ? sign : seed ? double(int64_t(bits % 5) - 2) : 0, 0);
    else if (diagonal) store(t, i, sign * (1 + (seed ? uniform(bits) : 0)), 0);
    else store(t, i, seed ? 0.7 * bell(bits) : 0, seed ? 0.7 * bell(hash(bits, 3)) : 0);
  }
  return finished(relayout(t, false));
}

Tensor Decoder::keys(const Dims& sizes) {
  Tensor t = make_tensor(sizes, DType::U64);
  const uint64_t seed = word("values of");
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<uint64_t>()[i] = seed ? hash(seed, uint64_t(i)) : uint64_t(i);
  return finished(relayout(t, false));
}

}  // namespace lamella::verify
