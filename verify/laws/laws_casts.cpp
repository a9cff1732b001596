// The law of conversions: a tensor converted to another dtype holds each of its numbers as that number alone
// is converted, in any layout.
#include <cmath>
#include <cstring>

#include "lamella/core/visit.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/verify/case/decoder_values.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {

constexpr int kPublicDTypes = int(DType::F128);

/// Between two neighbours of f16, bf16, f32 or f64, right in the middle or beside it, with this many digits.
uint64_t odd_number(uint64_t h) {
  static constexpr int kDigits[] = {9, 12, 25, 54};
  const int digits = kDigits[h % 4];
  return (h >> 8 & ((uint64_t{1} << (digits - 1)) - 1)) | uint64_t{1} << (digits - 1) | 1;
}

/// Numbers that conversions round, cut or clamp: halfway between those that a narrower dtype holds, normal or
/// not, and about the ends of integers.
double awkward(uint64_t h, DType real) {
  static constexpr int kBits[] = {7, 8, 15, 16, 31, 32, 63, 64}, kLeast[] = {-25, -134, -150, -1075};
  static constexpr double kBeside[] = {0, -1, -0.5, 0.5, 1, 1.5};
  const uint64_t r = drawn::hash(h, 1);
  double v = 0;
  switch (h % 4) {
    case 0: v = std::ldexp(double(odd_number(r)), int(h >> 8 & 63) - 40); break;
    case 1: v = std::ldexp(double(r % 1024 | 1), kLeast[h >> 8 & 3]); break;
    case 2: v = std::ldexp(1.0, kBits[h >> 8 & 7]) + kBeside[r % std::size(kBeside)]; break;
    default: v = double(int64_t(r % 1024) - 512) / 2; break;
  }
  const double ulp = real == DType::F64 ? 0x1p-52 : 0x1p-23;
  static constexpr int kOff[] = {0, 0, 1, -1};
  v += v * ulp * kOff[h >> 16 & 3];
  return h >> 20 & 1 ? -v : v;
}

int64_t awkward_integer(uint64_t h, DType dtype) {
  const uint64_t r = drawn::hash(h, 1), n = odd_number(r) << (h >> 8 & 31);
  switch (h % 4) {
    case 0: return drawn::end_integer(dtype, r);
    case 1: return int64_t(n + (h >> 16 & 1) - (h >> 17 & 1));
    case 2: return int64_t(r);
    default: return int64_t(r % 5) - 2;
  }
}

void store_drawn(Tensor& t, int64_t offset, uint64_t h) {
  const DType d = t.dtype(), real = to_real(d);
  if (is_bool(d)) return void(static_cast<bool*>(t.raw_data())[offset] = h & 1);
  if (!is_inexact(d)) return drawn::store_integer(t, offset, awkward_integer(h, d));
  const uint64_t second = drawn::hash(h, 2);
  if (h >> 40 & 1) return drawn::store(t, offset, awkward(h, real), second & 1 ? awkward(second, real) : 0);
  for (int part = 0; part < 1 + int(is_complex(d)); ++part) {
    const uint64_t bits = part ? second : h;
    if ((bits >> 42 & 7) == 0) {  // NaN by one bit of its payload, which a narrower dtype may not have
      static constexpr int kFraction[] = {10, 7, 23, 52};
      const int fraction = kFraction[real == DType::F16    ? 0
                                     : real == DType::BF16 ? 1
                                     : real == DType::F32  ? 2
                                                           : 3];
      const uint64_t top = drawn::end_bits(real, 4) & ~(uint64_t{1} << (8 * itemsize(real) - 1));  // infinity
      drawn::store_bits(t, offset, part, top | uint64_t{1} << (bits >> 45 & 63) % uint64_t(fraction));
      continue;
    }
    drawn::store_bits(t, offset, part, bits >> 41 & 1 ? drawn::hash(bits, 3) : drawn::end_bits(real, bits));
  }
}

/// Sizes [rows, n] in fresh memory: gapless, by columns, stepped, behind other elements, or one row for all.
Tensor in_layout(uint32_t w, int64_t rows, int64_t n, DType dtype, bool may_repeat) {
  const int64_t offset = w >> 4 & 3;
  Dims strides{n, 1};
  switch (w % (may_repeat ? 5 : 4)) {
    case 1: strides = {1, rows}; break;
    case 2: strides = {2 * n + 1, 2}; break;
    case 3: strides = {n + 3, 1}; break;
    case 4: strides = {0, 1}; break;
    default: break;
  }
  const int64_t extent = (rows - 1) * strides[0] + (n - 1) * strides[1] + 1;
  const Tensor buffer = zeros({offset + extent}, dtype);
  return make_view_unchecked(buffer, Dims{rows, n}, strides, offset);
}

template <class T> bool is_nan_of(T x) {
  if constexpr (is_half_type<T>) return !(float(x) == float(x));
  else return !(x == x);
}
/// The same bits, or NaN both.
template <class T> bool same_number(T a, T b) {
  if constexpr (is_complex_type<T>) return same_number(a.real(), b.real()) && same_number(a.imag(), b.imag());
  else return std::memcmp(&a, &b, sizeof a) == 0 || (is_nan_of(a) && is_nan_of(b));
}

/// Each element as a number of its own: law 147 asks what numbers are read as and converted to.
std::vector<Scalar> numbers_of(const Tensor& x) {
  std::vector<Scalar> out;
  out.reserve(size_t(x.numel()));
  visit_dtype(x.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (!std::is_same_v<T, f128> && !std::is_same_v<T, c256>)
      each_element(x, [&](int64_t offset) {
        const T v = static_cast<const T*>(x.raw_data())[offset];
        if constexpr (is_half_type<T>) out.emplace_back(double(float(v)));
        else out.emplace_back(v);
      });
  });
  return out;
}

/// Empty when `got` holds these numbers; of the elements' own dtype all their bits.
Finding holds_others(const Tensor& got, const std::vector<Scalar>& want, const Tensor& x) {
  Finding wrong;
  if (!std::ranges::equal(got.sizes(), x.sizes())) return format("got {}, expected sizes {}", got, x);
  visit_dtype(got.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (!std::is_same_v<T, f128> && !std::is_same_v<T, c256>) {
      std::vector<T> given;
      if (got.dtype() == x.dtype())
        each_element(x, [&](int64_t o) { given.push_back(static_cast<const T*>(x.raw_data())[o]); });
      size_t i = 0;
      each_element(got, [&](int64_t o) {
        const T mine = static_cast<const T*>(got.raw_data())[o];
        bool same = false;
        if (given.empty()) {
          same = same_number(mine, want[i].to<T>());
        } else {
          const T own = given[i];
          same = std::memcmp(&mine, &own, sizeof mine) == 0;
        }
        if (!same && wrong.empty())
          wrong = format("element {} of {}, {}, as {}: another number than that one converted alone", i,
                         x.dtype(), want[i].str(), got.dtype());
        ++i;
      });
    }
  });
  return wrong;
}

Verdict casts_as_numbers(Case& c) {
  static constexpr int64_t kLengths[] = {8, 9, 1, 2, 7, 16, 17, 33, 40, 3};
  const uint32_t w = c.draw.word(), from = c.draw.word(), into = c.draw.word(), seed = c.draw.word();
  const int64_t rows = 1 + int64_t(w % 3);
  const int64_t n = w >> 8 & 31 ? kLengths[(w >> 13) % std::size(kLengths)] : 1020 + int64_t(w >> 13 & 15);
  Tensor x = in_layout(from, rows, n, c.at(c.tensors()[0]).dtype(), true);
  uint64_t i = 0;
  each_element(x, [&](int64_t offset) { store_drawn(x, offset, drawn::hash(seed, i++)); });
  const std::vector<Scalar> want = numbers_of(x);
  for (int k = 0; k < kPublicDTypes; ++k) {
    const DType to = DType(k);
    lamella::Values args = c.args;
    args[c.op.tensor_params[0]] = x, args[size_t(c.op.schema.find("dtype"))] = to;
    const Tensors ys = call_boxed(c.op, args);
    Finding wrong = ys.size() == 1 && ys[0].defined() && ys[0].dtype() == to ? holds_others(ys[0], want, x)
                                                                             : format("got no {}", to);
    if (wrong.empty()) {
      const Tensor y = in_layout(into, rows, n, to, false);
      copy_(y, x);
      wrong = holds_others(y, want, x);
      if (!wrong.empty()) wrong = "written to another tensor: " + wrong;
    }
    if (!wrong.empty())
      return Verdict::fail(wrong, cpp_tensor("a0", x) + "  std::cout << str(" + cpp_call(c.op, args) +
                                      "[0]) << '\\n';  // " + wrong.text() + "\n");
  }
  return Verdict::pass();
}

/// Operators that must be told the dtype of what they are given.
bool converts(const Op& op) {
  const int at = op.schema.find("dtype");
  return at >= 0 && !op.schema.params[size_t(at)].has_default && op.simple && op.tensor_params.size() == 1;
}

}  // namespace

void add_cast_laws(std::vector<Law>& laws) {
  laws.push_back({128,
                  "casts_as_numbers",
                  "value",
                  "A tensor converted to any dtype holds each element as that number alone is converted, "
                  "rounded once, in any layout.",
                  {.max_numel = 2, .mixed = false},
                  false,
                  converts,
                  casts_as_numbers});
}

}  // namespace lamella::verify
