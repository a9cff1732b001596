// fill and arange.
#include "lamella/core/visit.h"
#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/parts.h"

namespace lamella::kernels {
namespace {

template <class T> T from_scalar(const Scalar& s) {
  if (s.kind() == DType::U64) return convert_value<T>(s.to<uint64_t>());
  if (s.is_integral()) return convert_value<T>(s.to_int());
  return s.kind() == DType::C128 ? convert_value<T>(s.to_complex()) : convert_value<T>(s.to_double());
}

template <class F> void visit_stored(const char* kernel, DType dtype, F&& f) {
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, f128> || std::is_same_v<T, c256>) fail_dtype(kernel, dtype);
    else f(tag);
  });
}

// In i64 or f64, each element from its own index: no sum is carried.
template <class T> void arange_of(const View& out, const Scalar& start, const Scalar& step) {
  const int64_t n = out.sizes[0], stride = out.strides[0];
  T* o = out.as<T>();
  if constexpr (std::is_integral_v<T>) {
    const uint64_t first = uint64_t(start.to_int()), by = uint64_t(step.to_int());
    for_each_range(n, kCosts.line, [=](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) o[i * stride] = T(first + uint64_t(i) * by);
    });
  } else {
    const double first = start.to_double(), by = step.to_double();
    for_each_range(n, kCosts.line, [=](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) o[i * stride] = convert_value<T>(first + double(i) * by);
    });
  }
}

}  // namespace

namespace cpu {
namespace {

void fill(const KernelCall& call) {
  const View& out = call.outs[0];
  alignas(16) char value[kMaxItem];
  visit_stored("fill", out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *reinterpret_cast<T*>(value) = from_scalar<T>(call.scalars[0]);
  });
  const Mover copy = make_mover(out.dtype, out.dtype);
  for_each_part(make_plan({&out, 1}, {}), kCosts.line, of_elements(), [&](const IterPlan& plan) {
    for_each_block(plan, {plan.size(0), 1}, [&](char* const* at, int64_t n, int64_t) {
      copy.strided(at[0], plan.stride(0, 0), value, 0, n);
    });
  });
}

void arange(const KernelCall& call) {
  const View& out = call.outs[0];
  visit_stored("arange", out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool> || is_complex_type<T>) fail_dtype("arange", out.dtype);
    else arange_of<T>(out, call.scalars[0], call.scalars[1]);
  });
}
}  // namespace

Texts factory_kernels() {
  static constexpr Text kTexts[] = {{"fill", fill}, {"arange", arange}};
  return kTexts;
}
}  // namespace cpu

}  // namespace lamella::kernels
