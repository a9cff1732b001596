// argmax: the first greatest index along one dim; the first NaN wins.
#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/parts.h"

namespace lamella::kernels {
namespace {

constexpr int64_t kLines = kUsualThresholds.argmax_lines;  // room for them

// n lines at once, each best[j] against the tile's j-th element: the same loop serves both memory orders.
template <class T>
void arg_lines(const char* in, int64_t line_step, int64_t step, int64_t size, int64_t n, int64_t* index) {
  T best[kLines];
  for (int64_t j = 0; j < n; ++j) best[j] = *reinterpret_cast<const T*>(in + j * line_step), index[j] = 0;
  for (int64_t i = 1; i < size; ++i) {
    const char* row = in + i * step;
    for (int64_t j = 0; j < n; ++j) {
      const T x = *reinterpret_cast<const T*>(row + j * line_step);
      bool better;
      if constexpr (is_half_type<T>) {
        better = float(x) > float(best[j]) || (float(x) != float(x) && float(best[j]) == float(best[j]));
      } else {
        better = x > best[j] || (x != x && best[j] == best[j]);
      }
      if (better) best[j] = x, index[j] = i;
    }
  }
}

}  // namespace

namespace cpu {
namespace {
void argmax(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const int64_t dim = call.ints[0];
  if (is_complex(in.dtype) || is_internal(in.dtype)) fail_dtype("argmax", in.dtype);
  if (out.numel() == 0) return;
  const int64_t size = line_size(in, dim), step = line_step(in, dim);
  LAMELLA_ASSERT(size > 0);
  const IterPlan lines = plan_where(std::initializer_list<View>{out, in}, [dim](int d) { return d == dim; });
  // Lines that lie along memory are taken one by one, others side by side.
  const bool along = step <= std::abs(lines.stride(1, 0)) || lines.numel == 1;
  const int64_t width = along ? 1 : thresholds().argmax_lines;
  const bool gapless = along && (step == itemsize(in.dtype) || size == 1);
  const ArgmaxRowFn row = gapless ? isa().argmax(in.dtype) : nullptr;
  const Mover mover = make_mover(DType::I64, out.dtype);
  const Units units = along ? of_lines() : of_neighbours(lines.size(0));
  for_each_part(lines, cost::of(size, kCosts.argmax), units, [&](const IterPlan& plan) {
    for_each_block(plan, {width, 1}, [&](char* const* at, int64_t n, int64_t) {
      int64_t index[kLines];
      if (row) index[0] = row(at[1], size);
      else
        visit_dtype(in.dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          if constexpr (!is_complex_type<T> && !std::is_same_v<T, f128>) {
            arg_lines<T>(at[1], plan.stride(1, 0), step, size, n, index);
          }
        });
      mover.strided(at[0], plan.stride(0, 0), reinterpret_cast<const char*>(index), sizeof(int64_t), n);
    });
  });
}

}  // namespace

Texts argmax_kernels() {
  static constexpr Text kTexts[] = {{"argmax", argmax}};
  return kTexts;
}
}  // namespace cpu

}  // namespace lamella::kernels
