// Drawing arguments: a few words choose shape, class of values, seed and layout.
#include "lamella/verify/case/decoder.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "lamella/verify/case/decoder_values.h"

namespace lamella::verify {

using namespace drawn;

namespace {

/// One of `some`, which are in the order of their numbers.
DType chosen(DTypeMask some, uint32_t w) {
  for (uint32_t skipped = w % uint32_t(std::popcount(some)); skipped > 0; --skipped) some &= some - 1;
  return DType(std::countr_zero(some));
}

/// Filled so that reading it shows: NaN, or integers far out of any range.
void poison(const Tensor& t) {
  const int byte = is_bool(t.dtype())      ? 1
                   : is_inexact(t.dtype()) ? 0xff
                                           : 0x5a;  // NaN of each dtype has all bits
  std::memset(t.raw_data(), byte, size_t(t.numel() * itemsize(t.dtype())));
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
  const size_t at = at_;
  *this = Decoder(choices_, options(), tail_);
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
  const bool other = options().often_mixed ? w / 6 % 2 : w % 6 == 5;
  if (!other || !wanted) return first;
  const DType second = chosen(wanted, options().often_mixed ? w / 12 : w / 6);
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

/// One word: which dims are stored innermost, which are stepped, padded or repeated, and how far in the first
/// element lies.
Tensor Decoder::relayout(const Elements& from, const Dims& sizes, bool may_repeat) {
  const uint32_t w = options().layouts ? next("layout of") : 0;
  if (w % 8 < 3) {
    Tensor out = make_tensor(sizes, from.type);
    if (from.count > 0) std::memcpy(out.raw_data(), from.at, size_t(from.count * itemsize(from.type)));
    return out;
  }
  const int rank = sizes.size();
  const bool permute = w >> 3 & 1, step = w >> 4 & 1, pad = w >> 5 & 1;
  const bool repeat = may_repeat && (w >> 6 & 7) == 7 && rank > 0;
  const int repeated = repeat ? int(w >> 9) % rank : -1;
  const int stepped = step && rank > 0 ? int(w >> 12) % rank : -1;
  const int turn = permute && rank > 1 ? 1 + int(w >> 15) % (rank - 1) : 0;
  const int64_t offset = (w >> 20 & 3) * (w >> 22 & 1);
  Dims strides(rank);
  int64_t end = 1;
  for (int k = 0; k < rank; ++k) {
    const int d = (rank - 1 - k + turn) % rank;
    if (d == repeated) continue;  // stride 0
    strides[d] = end * (d == stepped ? 2 : 1);
    end = strides[d] * std::max<int64_t>(sizes[d], 1) + (pad ? 1 : 0);
  }
  const Tensor buffer = make_tensor(Dims{offset + end + (pad ? 2 : 0)}, from.type);
  if (repeat || buffer.numel() > from.count) poison(buffer);  // else nothing lies around or between
  Tensor out = make_view_unchecked(buffer, sizes, strides, offset);
  scatter(from.at, out);
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
  Tensor made = relayout(fill(sizes, dtype, domain), sizes, domain != Domain::Distinct);
  if (sharing_ && made_.empty()) made_.reserve(4);
  if (sharing_) made_.push_back({made, domain});
  ++tensors_;
  return made;
}

Tensor Decoder::index(const Dims& sizes, int64_t bound, DType dtype) {
  const Elements t = unplaced(sizes, dtype);
  const uint32_t seed = word("values of");
  for (int64_t i = 0; i < t.count; ++i) {
    const int64_t at = seed == 0 ? 0 : int64_t(hash(seed, uint64_t(i)) % uint64_t(bound));
    if (dtype == DType::I32) static_cast<int32_t*>(t.at)[i] = int32_t(at);
    else static_cast<int64_t*>(t.at)[i] = at;
  }
  return finished(relayout(t, sizes, true));
}

Tensor Decoder::boolean(const Dims& sizes) {
  const Elements t = unplaced(sizes, DType::Bool);
  const uint32_t seed = word("values of");
  for (int64_t i = 0; i < t.count; ++i)
    static_cast<bool*>(t.at)[i] = seed != 0 && hash(seed, uint64_t(i)) & 1;
  return finished(relayout(t, sizes, true));
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
  // Numbers that only f64 holds, if any: their products are rounded in whichever dtype they are made.
  static constexpr double kRounded[] = {0.1, -1.0 / 3, 3.3, 0.7};
  const bool rounded = !options().exact && (w >> 17 & 3) == 3;
  const double re = rounded ? kRounded[w % 4] : kNumbers[w % (options().exact ? 4 : 8)];
  if (is_complex(dtype)) return Scalar(c128(re, w / 8 % 4 ? kNumbers[w / 32 % 4] : 0));
  return Scalar(re);
}

Tensor Decoder::positive_definite(const Dims& batch, int64_t n, DType dtype) {
  Dims sizes(batch);
  sizes.push_back(n), sizes.push_back(n);
  const Elements t = unplaced(sizes, dtype);
  const uint32_t seed = word("values of");
  std::vector<c128> factor(size_t(n * n));
  for (int64_t b = 0; n > 0 && b < t.count / (n * n); ++b) {
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
  return finished(relayout(t, sizes, false));
}

Tensor Decoder::triangular(const Dims& batch, int64_t n, DType dtype) {
  Dims sizes(batch);
  sizes.push_back(n), sizes.push_back(n);
  const Elements t = unplaced(sizes, dtype);
  const uint64_t seed = word("values of");
  for (int64_t i = 0; i < t.count; ++i) {
    const bool diagonal = i / n % n == i % n;
    const uint64_t bits = hash(seed, uint64_t(i));
    const double sign = seed && bits & 1 ? -1 : 1;
    if (options().exact) store(t, i, diagonal ? sign : seed ? double(int64_t(bits % 5) - 2) : 0, 0);
    else if (diagonal) store(t, i, sign * (1 + (seed ? uniform(bits) : 0)), 0);
    else store(t, i, seed ? 0.7 * bell(bits) : 0, seed ? 0.7 * bell(hash(bits, 3)) : 0);
  }
  return finished(relayout(t, sizes, false));
}

Tensor Decoder::keys(const Dims& sizes) {
  const Elements t = unplaced(sizes, DType::U64);
  const uint64_t seed = word("values of");
  for (int64_t i = 0; i < t.count; ++i)
    static_cast<uint64_t*>(t.at)[i] = seed ? hash(seed, uint64_t(i)) : uint64_t(i);
  return finished(relayout(t, sizes, false));
}

}  // namespace lamella::verify
