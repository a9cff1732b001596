// Oracle: tensors made of a number, a progression or a stream of random numbers.
#include "lamella/core/rng.h"
#include "lamella/kernels/reference/arith.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels::reference {
namespace {

/// scalars[0] + i * scalars[1] in W; each of the two operations rounds.
template <class W> void progression(const View& out, W start, W step) {
  for (Odometer at(sizes_of(out)); at.more(); at.next()) {
    store(out, at.offset(out), plus(start, times(W(at[0]), step)));
  }
}

/// Real sample i of the stream of a key, for a dtype.
using Sampler = double (*)(DType dtype, uint64_t key, uint64_t i);

std::array<uint32_t, 4> words(uint64_t key, uint64_t i) {
  return philox({uint32_t(i), uint32_t(i >> 32), 0u, 0u}, key);
}

/// As many leading bits of the first word as the significand holds, so that 1 is never reached by rounding.
double uniform(DType dtype, uint64_t key, uint64_t i) {
  switch (dtype) {
    case DType::F16: return double(words(key, i)[0] >> 21) * 0x1p-11;
    case DType::BF16: return double(words(key, i)[0] >> 24) * 0x1p-8;
    case DType::F32: return double(words(key, i)[0] >> 8) * 0x1p-24;
    default: return uniform_at(key, i);
  }
}

uint64_t joined(uint32_t low, uint32_t high) { return uint64_t(low) | uint64_t(high) << 32; }

/// Box and Muller, A note on the generation of random normal deviates, 1958: a pair from (0, 1] and a point
/// of the circle, an eighth of it to both sides of one of four directions.
double normal(DType, uint64_t key, uint64_t i) {
  const auto w = words(key, i / 2);
  const uint64_t size_bits = joined(w[0], w[1]), place_bits = joined(w[2], w[3]);
  const double size = std::sqrt(-2 * std::log(1 - double(size_bits / 4096) * 0x1p-52));
  constexpr double kHalfPi = 1.5707963267948966192313216916398;
  const double place = kHalfPi * (double(place_bits / 1024 % (uint64_t{1} << 52)) * 0x1p-52 - 0.5);
  const uint64_t way = place_bits >> 62;  // 0: across, 1: up, 2 and 3: their opposites
  const double across = way % 2 ? std::sin(place) : std::cos(place);
  const double up = way % 2 ? std::cos(place) : std::sin(place);
  return (way < 2 ? size : -size) * (i % 2 ? up : across);
}

/// Version 1 of the stream: from (0, 1] and [0, 1).
double normal_of_version_1(DType, uint64_t key, uint64_t i) {
  const auto w = words(key, i);
  const uint64_t first = joined(w[0], w[1]), second = joined(w[2], w[3]);
  const double u1 = 1 - double(first >> 11) * 0x1p-53, u2 = double(second >> 11) * 0x1p-53;
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  return std::sqrt(-2 * std::log(u1)) * std::cos(kTwoPi * u2);
}

/// Each key owns a stream; sample i belongs to the i-th index, in row-major order, of the dims behind
/// those of the keys. A complex sample has its parts from two keys derived from its own, both scaled by
/// `complex_scale`.
void fill_random(const KernelCall& call, const char* name, Sampler sample, double complex_scale) {
  const View &out = call.outs[0], &keys = call.ins[0];
  const int64_t key_rank = call.ints[0];
  const View streams = leading(out, key_rank), samples = trailing(out, key_rank);
  const DType part = to_real(out.dtype);
  if (!is_inexact(out.dtype)) no_kernel(name, out.dtype);
  for (Odometer stream(sizes_of(streams)); stream.more(); stream.next()) {
    const uint64_t key = load<uint64_t>(keys, stream.offset(keys), DType::U64);
    uint64_t i = 0;
    for (Odometer at(sizes_of(samples)); at.more(); at.next(), ++i) {
      const int64_t offset = stream.offset(streams) + at.offset(samples);
      if (is_complex(out.dtype)) {
        const double re = sample(part, lamella::fold_in(key, 0), i),
                     im = sample(part, lamella::fold_in(key, 1), i);
        store(out, offset, c128(re * complex_scale, im * complex_scale));
      } else {
        store(out, offset, sample(part, key, i));
      }
    }
  }
}

void fill(const KernelCall& call) {
  const View& out = call.outs[0];
  const Scalar& value = call.scalars[0];
  for (Odometer at(sizes_of(out)); at.more(); at.next()) {
    if (value.kind() == DType::U64) store(out, at.offset(out), value.to<uint64_t>());
    else if (value.is_integral()) store(out, at.offset(out), value.to_int());
    else if (is_complex(value.kind())) store(out, at.offset(out), value.to_complex());
    else store(out, at.offset(out), value.to_double());
  }
}

void arange(const KernelCall& call) {
  const View& out = call.outs[0];
  const Scalar &start = call.scalars[0], &step = call.scalars[1];
  if (is_integer(out.dtype)) return progression<int64_t>(out, start.to_int(), step.to_int());
  if (out.dtype == DType::F128) return progression<f128>(out, start.to<f128>(), step.to<f128>());
  if (is_floating(out.dtype)) return progression<double>(out, start.to_double(), step.to_double());
  no_kernel("arange", out.dtype);
}

void rand_uniform(const KernelCall& call) { fill_random(call, "rand_uniform", uniform, 1); }

void rand_normal(const KernelCall& call) {
  fill_random(call, "rand_normal", call.ints[1] == 1 ? normal_of_version_1 : normal, std::sqrt(0.5));
}

void fold_in(const KernelCall& call) {
  const View &out = call.outs[0], &key = call.ins[0], &data = call.ins[1];
  for (Odometer at(sizes_of(out)); at.more(); at.next()) {
    const uint64_t k = load<uint64_t>(key, at.offset(key), DType::U64);
    const uint64_t d = load<uint64_t>(data, at.offset(data), DType::U64);
    store(out, at.offset(out), lamella::fold_in(k, d));
  }
}

}  // namespace

Texts factory_texts() {
  static constexpr Text kTexts[] = {
      {"fill", fill},       {"arange", arange}, {"rand_uniform", rand_uniform}, {"rand_normal", rand_normal},
      {"fold_in", fold_in},
  };
  return kTexts;
}

}  // namespace lamella::kernels::reference
