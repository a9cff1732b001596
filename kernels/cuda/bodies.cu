// Every body and fold as device code: compiled by nvcc where there is one (tools/check_bodies.py), not run.
// The loops of the CUDA column to come are others; that the one text of bodies serves a device is shown here.
#define LAMELLA_BACKEND cuda
#include <utility>

#include "lamella/kernels/bodies/all.h"

namespace lamella::kernels::cuda {
namespace {

template <class B, class R, class... A> __global__ void each(R* out, const A*... ins) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  out[i] = B{}(ins[i]...);
}

/// One thread folds two elements and two states: each way a fold has.
template <class F, class T> __global__ void folded(T* out, const T* in) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  const auto a = F::step(F::first(in[2 * i]), in[2 * i + 1]);
  out[i] = F::result(F::merge(a, F::first(out[i])));
}

template <class B, class... A> void emit_body() {
  const auto kernel = each<B, decltype(B{}(A{}...)), A...>;
  kernel<<<1, 1>>>(nullptr, static_cast<const A*>(nullptr)...);
}

template <size_t kRow, class T> void emit_row() {
  using B = BodyOf<kRow>;
  if constexpr (takes<T>(std::get<kRow>(kPointwise).takes)) {
    if constexpr (requires(T x) { B{}(x); }) emit_body<B, T>();
    else if constexpr (requires(T x) { B{}(x, x); }) emit_body<B, T, T>();
    else emit_body<B, uint8_t, T, T>();
  }
}

template <size_t kRow, class T> void emit_fold() {
  if constexpr (takes<T>(std::get<kRow>(kFolds).takes)) folded<FoldOf<kRow>, T><<<1, 1>>>(nullptr, nullptr);
}

template <class T, size_t... kRow, size_t... kFold>
void emit(std::index_sequence<kRow...>, std::index_sequence<kFold...>) {
  (emit_row<kRow, T>(), ...);
  (emit_fold<kFold, T>(), ...);
}
template <class... T> void emit_all() {
  (emit<T>(std::make_index_sequence<kPointwiseRows>{}, std::make_index_sequence<kFoldRows>{}), ...);
}

}  // namespace

/// Every row for every type that it takes.
void emit() {
  emit_all<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float, double,
           std::complex<float>, std::complex<double>>();
}

}  // namespace lamella::kernels::cuda
