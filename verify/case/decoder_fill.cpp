// The elements of drawn tensors: two words choose their class and seed, a hash makes them.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <numeric>
#include <utility>

#include "lamella/verify/case/decoder.h"
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

}  // namespace

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
bool Decoder::repeat_earlier(const Elements& t, Domain domain) const {
  if (made_.empty() || !sharing_ || made_.back().domain != domain) return false;
  const Tensor& from = made_.back().tensor;
  if (from.dtype() != t.type || from.numel() == 0) return false;
  const size_t bytes = size_t(itemsize(t.type));
  const char* const source = static_cast<const char*>(from.raw_data());
  for (int64_t i = 0; i < t.count; ++i) {
    int64_t rest = i % from.numel(), offset = 0;
    for (int d = from.rank() - 1; d >= 0; rest /= from.size(d), --d)
      offset += rest % from.size(d) * from.stride(d);
    std::memcpy(static_cast<char*>(t.at) + size_t(i) * bytes, source + size_t(offset) * bytes, bytes);
  }
  return true;
}

/// In all elements, in one of four, or in about one of all.
void Decoder::put_ends(const Elements& t, uint32_t w, uint64_t seed) const {
  const int64_t n = t.count;
  const uint64_t apart = w >> 16 & 1 ? 1 : w >> 17 & 1 ? 4 : uint64_t(std::max<int64_t>(n, 1));
  const DType real = to_real(t.type);
  for (int64_t i = 0; i < n; ++i)
    for (int part = 0; part < (is_complex(t.type) ? 2 : 1); ++part)
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
void Decoder::put_beside_ordinary(const Elements& t, uint32_t w, uint64_t seed) const {
  const DType real = to_real(t.type);
  const uint32_t apart = 2u << (w & 3);
  for (int64_t i = 0; i < t.count; ++i)
    for (int part = 0; part < (is_complex(t.type) ? 2 : 1); ++part) {
      const uint64_t h = hash(seed, uint64_t(i) + 16384);
      const uint64_t place = hash(special_places_, uint64_t(i));
      const uint64_t of_part = hash(h, h >> 40 & 1 ? 0 : uint64_t(part));
      if ((place >> 32) % apart == 0 && of_part % 8 != 7) store_bits(t, i, part, special_bits(real, of_part));
    }
}
void Decoder::put_far(const Elements& t, uint32_t w, uint64_t seed) const {
  const DType real = to_real(t.type);
  for (int64_t i = 0; i < t.count; ++i)
    for (int part = 0; part < (is_complex(t.type) ? 2 : 1); ++part)
      store_bits(t, i, part, far_bits(real, w & 1, hash(seed, 2 * uint64_t(i) + uint64_t(part) + 32768)));
}

/// Rank-0 operands of a wider dtype, beyond the range of f16; bf16 and f32 hold them.
static double beyond_halves(uint32_t w) {
  static constexpr double kBeyond[] = {0x1p16, -0x1p17, 0x1.8p16, 0x1p-26};
  return kBeyond[w % std::size(kBeyond)];
}

namespace {
/// No two alike, `step` apart, in an order of the seed.
void put_distinct(const Elements& t, double step, uint64_t seed) {
  const int64_t n = t.count;
  const bool below_zero = is_inexact(t.type) || is_signed_integer(t.type);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = shuffled(seed, i, n) - (below_zero ? n / 2 : 0);
    if (is_inexact(t.type)) store(t, i, double(at) * step, bell(hash(seed, uint64_t(i))));
    else store_integer(t, i, at);
  }
}

constexpr int64_t kChunk = 32;
/// Of a kind; `whole_range`: the ends of the dtype's instead.
void put_integers(const Elements& t, Kind kind, uint64_t seed, Domain domain, bool narrow, bool whole_range) {
  int64_t whole[kChunk];
  const int64_t n = t.count;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t count = std::min(kChunk, n - begin);
    integer_values(whole, begin, count, kind, seed, n, t.type, domain, narrow);
    for (int64_t i = 0; i < count && whole_range && !is_bool(t.type); ++i)
      whole[i] = end_integer(t.type, hash(seed, uint64_t(begin + i)));
    store_integers(t, begin, count, whole);
  }
}
}  // namespace

Elements Decoder::unplaced(const Dims& sizes, DType dtype) {
  Unplaced& kept = unplaced_elements();
  const int64_t n = checked_numel(sizes, "draw");
  const size_t bytes = size_t(n * itemsize(dtype));
  if (bytes > kept.room || !kept.at) [[unlikely]] {
    std::free(std::exchange(kept.at, nullptr));
    kept.room = std::bit_ceil(bytes + 1024);
    kept.at = std::malloc(kept.room);
    if (!kept.at) throw std::bad_alloc();
  }
  return {kept.at, n, dtype};
}

/// Of tiny numbers, where the largest have `e`; `named` is what an operator is told to compute in.
static int least_exponent(bool tame, DTypeMask named, int e) {
  if (tame || e < 20) return -6;
  return named & (kHalfTypes | mask(DType::F32)) ? -e : -3 * e;
}

Elements Decoder::fill(const Dims& sizes, DType dtype, Domain domain) {
  const Elements t = unplaced(sizes, dtype);
  const int64_t n = t.count;
  const uint32_t w = next("values of");
  const uint64_t seed = next("values of");
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
void Decoder::put_specials(const Elements& t, uint32_t patches, Domain domain) {
  const int64_t n = t.count;
  for (uint32_t p = 0; p < patches && p < 4 && n > 0; ++p) {
    const uint32_t v = next("values of");
    const int64_t at = int64_t(v / 8) % n;
    if (!is_inexact(t.type)) {
      store_integer(t, at, domain == Domain::Any ? v % 2 : 1);
      continue;
    }
    double re = kSpecials[v % 8];
    if (options().exact) {
      re = into_domain(std::trunc(re), domain == Domain::Any ? domain : Domain::Positive);
      if (re != std::trunc(re)) re = 1;
    } else if (domain != Domain::Any) {
      re = into_domain(re, domain);
    }
    store(t, at, re, 0);
  }
}

}  // namespace lamella::verify
