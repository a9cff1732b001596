// What a family file needs to define operators: the table's entry point, kernels by name, shape helpers.
#pragma once

#include "lamella/dispatch/rule.h"
#include "lamella/dispatch/table.h"
#include "lamella/draw/draw.h"
#include "lamella/kernels/kernels.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/devices.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/infer.h"

namespace lamella::ops {

/// A kernel of kernels/ by its name. `line_ok` and `takes`: see Kernels, `line_ok` and `line_dtypes`.
Kernels kernel(std::string_view name, bool (*line_ok)(const Frame&) = nullptr, DTypeMask takes = 0);
inline Kernels kernel(std::string_view name, DTypeMask takes) { return kernel(name, nullptr, takes); }

/// Both directions of a pointwise operator from one expression: jvp = t * d, vjp = dy * conj(d).
struct Derivative {
  std::vector<Formula> jvp, vjp;
};
namespace detail {
template <class F> struct PointwiseThunk {
  using Args = typename lamella::detail::signature<F>::args;
  template <size_t... I> static Tensor value(const RuleArgs& a, std::index_sequence<I...>) {
    return F{}(lamella::detail::from_frame<std::tuple_element_t<I, Args>>(a.saved[I])...);
  }
  static Tensor value(const RuleArgs& a) {
    return value(a, std::make_index_sequence<std::tuple_size_v<Args>>{});
  }
  static Tensor jvp(const RuleArgs& a) { return mul(a.directions[0], value(a)); }
  static Tensor vjp(const RuleArgs& a) { return mul(a.directions[0], conj(value(a))); }
};
}  // namespace detail
template <class F> Derivative derivative(std::string_view input, std::vector<std::string_view> saved, F) {
  using T = detail::PointwiseThunk<F>;
  LAMELLA_CHECK(saved.size() == std::tuple_size_v<typename T::Args>, Schema,
                "derivative(\"{}\"): the formula takes {} values, saves() names {}", input,
                std::tuple_size_v<typename T::Args>, saved.size());
  const auto takes = lamella::detail::takes_from<typename T::Args>(
      std::make_index_sequence<std::tuple_size_v<typename T::Args>>{}, 0);
  return {{{input, saved, takes, T::jvp, nullptr}}, {{input, saved, takes, T::vjp, nullptr}}};
}

/// Samples that many operators share.
inline Values unary(Draw& d, DTypeMask types, Domain domain = Domain::Any) {
  const DType t = d.dtype(types);
  return {d.tensor(d.shape(), t, domain)};
}
inline Values two_tensors(Draw& d, DType t, DType other, Domain a = Domain::Any, Domain b = Domain::Any) {
  const Dims s = d.shape();
  const bool first = d.flag();  // which operand broadcasts, and has the other dtype
  const Tensor x = first ? d.tensor(d.broadcastable(s, other), other, a) : d.tensor(s, t, a);
  return {x, first ? d.tensor(s, t, b) : d.tensor(d.broadcastable(s, other), other, b)};
}
/// Both of one dtype mostly: see Draw::partner.
inline Values binary(Draw& d, DTypeMask types, Domain a = Domain::Any, Domain b = Domain::Any) {
  const DType t = d.dtype(types);
  return two_tensors(d, t, d.partner(t, types), a, b);
}

/// For rules: what lies elsewhere comes to `device`, as cotangents do to the device of the primal.
inline constexpr auto on_device = [](Tensor t, Device device) {
  return t.device() == device ? t : to_device(t, device);
};
inline Tensor in_dtype(const Tensor& x, DType d) { return x.dtype() == d ? x : to(x, d); }

/// NOTE: [halves in rules] Rules along lines compute halves in f32: in f16 a sum of many cotangents overflows
/// where its products with small shares are ordinary numbers, and the share of one of thousands, or its
/// product, vanishes where the sum of all is an ordinary number.
inline Tensor widened(const Tensor& x) { return is_half(x.dtype()) ? in_dtype(x, DType::F32) : x; }

/// NOTE: [dtype=] Elements are converted to `dtype` before they are accumulated. Kernels do so as they read,
/// but half dtypes compute in f32, where what they cannot hold would survive: those are converted first.
inline Tensor as_accumulated(const Tensor& x, DType compute) {
  return compute == DType::F16 || compute == DType::BF16 ? in_dtype(x, compute) : x;
}

/// NOTE: [wide products] Derivatives of products are products of parts that the result never was: what comes
/// before an element may vanish and what comes after it overflow, and their product, the derivative, is an
/// ordinary number. Rules for dtypes of a narrow range compute such parts in f64 or c128.
inline DType wide_range(DType d) {
  if (is_internal(d)) return d;
  return is_complex(d) ? DType::C128 : DType::F64;
}

/// The class launch of reductions, with `x` in the place of the first argument.
void launch_reduce(const Launch& launch, const Tensor& x);
/// Runs the kernel of the frame's operator on these views: what launches end with.
/// An error that the kernel raises gets the operator's name in front.
void run(const Launch& launch, std::span<const View> outs, std::span<const View> ins, Ints ints = {},
         std::span<const Scalar> scalars = {});
/// Likewise with another kernel, and without a launch.
void run(const Launch& launch, const Kernels& kernel, std::span<const View> outs, std::span<const View> ins,
         Ints ints = {}, std::span<const Scalar> scalars = {});
void run_kernel(const Frame& frame, KernelFn kernel, const KernelCall& call);
/// Whether `sum` runs the library's own kernel on the CPU: what promises its bits asks.
bool sums_as_built_in();
/// What a device of a plug-in brings for `clone`: what launches of the library copy by there; null: nothing.
KernelFn clone_on(Device device);
/// `t` seen with `sizes` it broadcasts to; strides are written to `strides`, which must live as long as the
/// view. Error schema where it does not: then the operator's shape function is wrong.
View broadcast_view(const Frame& frame, const Tensor& t, Ints sizes, Dims& strides);

}  // namespace lamella::ops
