// rand_uniform and rand_normal: element i of a key's stream is a function of (key, i) alone.
#include <cmath>

#include "lamella/core/rng.h"
#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/parts.h"
#include "lamella/kernels/cpu/samples.h"

namespace lamella::kernels {
namespace {
using scalar::sample_normal, scalar::sample_normal_1;

template <class T> struct Uniform {
  static T at(uint64_t key, uint64_t i) {
    if constexpr (std::is_same_v<T, double>) return uniform_at(key, i);
    else {
      const uint32_t word = philox({uint32_t(i), uint32_t(i >> 32), 0u, 0u}, key)[0];
      // As many bits as the type holds exactly below 1.
      if constexpr (std::is_same_v<T, float>) return float(word >> 8) * 0x1p-24f;
      else if constexpr (std::is_same_v<T, f16>) return T(float(word >> 21) * 0x1p-11f);
      else return T(float(word >> 24) * 0x1p-8f);
    }
  }
};

template <class T, double (*kSample)(uint64_t, uint64_t)> struct NormalBy {
  static T at(uint64_t key, uint64_t i) { return convert_value<T>(kSample(key, i)); }
};

// Independent parts; the normal's have variance 1/2 each, so that the sample has variance 1.
template <class R> struct Uniform<std::complex<R>> {
  static std::complex<R> at(uint64_t key, uint64_t i) {
    return {Uniform<R>::at(lamella::fold_in(key, 0), i), Uniform<R>::at(lamella::fold_in(key, 1), i)};
  }
};
template <class R, double (*kSample)(uint64_t, uint64_t)> struct NormalBy<std::complex<R>, kSample> {
  static std::complex<R> at(uint64_t key, uint64_t i) {
    const double scale = std::sqrt(0.5);
    return {R(kSample(lamella::fold_in(key, 0), i) * scale), R(kSample(lamella::fold_in(key, 1), i) * scale)};
  }
};
template <class T> using Normal = NormalBy<T, sample_normal>;
template <class T> using NormalOfVersion1 = NormalBy<T, sample_normal_1>;

// Samples `from` to `to` of one stream into the trailing dims of `out`, row-major: the sample's number is the
// logical index, whatever the strides.
template <class T, template <class> class Sample>
void fill_stream(const View& out, int first, T* at, uint64_t key, int64_t from, int64_t to) {
  int64_t index[IterPlan::kMaxDims] = {};
  const int last = out.rank - 1;
  const int64_t n = first > last ? 1 : out.sizes[last], step = first > last ? 0 : out.strides[last];
  int64_t i = from % n;
  for (int64_t d = last - 1, left = from / n; d >= first; left /= out.sizes[d--]) {
    index[d] = left % out.sizes[d];
    at += index[d] * out.strides[d];
  }
  for (int64_t sample = from;; i = 0) {
    for (const int64_t end = std::min(n, i + to - sample); i < end; ++i)
      at[i * step] = Sample<T>::at(key, uint64_t(sample++));
    if (sample >= to) return;
    for (int d = last - 1; d >= first; --d) {
      at += out.strides[d];
      if (++index[d] < out.sizes[d]) break;
      at -= out.strides[d] * out.sizes[d];
      index[d] = 0;
    }
  }
}

bool is_gapless_from(const View& out, int first) {
  int64_t expected = 1;
  for (int d = out.rank - 1; d >= first; --d) {
    if (out.sizes[d] != 1 && out.strides[d] != expected) return false;
    expected *= out.sizes[d];
  }
  return true;
}

/// `run`: of the instruction set, for samples in a row; null: one by one.
template <class T, template <class> class Sample>
void fill_streams(const View& out, const View& keys, SampleRunFn run) {
  const View heads{out.data, out.dtype, keys.rank, out.sizes, out.strides};
  const IterPlan all = make_plan({&heads, 1}, {&keys, 1});
  const int64_t samples = out.numel() / std::max<int64_t>(all.numel, 1);
  if (!is_gapless_from(out, keys.rank)) run = nullptr;
  for_each_part(all, cost::of(samples, kCosts.drawn), of_lines(), [&](const IterPlan& plan) {
    for_each_outer(plan, 0, [&](char* const* at) {
      const uint64_t key = *reinterpret_cast<const uint64_t*>(at[1]);
      T* const stream = reinterpret_cast<T*>(at[0]);
      for_each_range(samples, kCosts.drawn, [&](int64_t from, int64_t to) {
        if (run) return run(stream + from, key, uint64_t(from), to - from);
        fill_stream<T, Sample>(out, keys.rank, stream, key, from, to);
      });
    });
  });
}

template <template <class> class Sample>
void random(const char* kernel, const KernelCall& call, SampleRunFn run) {
  const View &out = call.outs[0], &keys = call.ins[0];
  LAMELLA_ASSERT(call.ints[0] == keys.rank);
  LAMELLA_CHECK(out.rank <= IterPlan::kMaxDims, Shape, "rank {} is beyond the supported {}", out.rank,
                IterPlan::kMaxDims);
  if (out.numel() == 0 && is_inexact(out.dtype) && !is_internal(out.dtype)) return;
  switch (out.dtype) {
    case DType::F16: return fill_streams<f16, Sample>(out, keys, run);
    case DType::BF16: return fill_streams<bf16, Sample>(out, keys, run);
    case DType::F32: return fill_streams<float, Sample>(out, keys, run);
    case DType::F64: return fill_streams<double, Sample>(out, keys, run);
    case DType::C64: return fill_streams<c64, Sample>(out, keys, run);
    case DType::C128: return fill_streams<c128, Sample>(out, keys, run);
    default: fail_dtype(kernel, out.dtype);
  }
}

}  // namespace

namespace cpu {
namespace {
void rand_uniform(const KernelCall& call) {
  random<Uniform>("rand_uniform", call, isa().uniform(call.outs[0].dtype));
}
void rand_normal(const KernelCall& call) {
  if (call.ints[1] == 1) return random<NormalOfVersion1>("rand_normal", call, nullptr);
  random<Normal>("rand_normal", call, isa().normal(call.outs[0].dtype));
}
}  // namespace

Texts random_kernels() {
  static constexpr Text kTexts[] = {{"rand_uniform", rand_uniform}, {"rand_normal", rand_normal}};
  return kTexts;
}
}  // namespace cpu

}  // namespace lamella::kernels
