// Derivative rules: one formula per input, with what it needs declared. NOTE: [rules] below.
#pragma once

#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "lamella/core/wording.h"
#include "lamella/dispatch/frame.h"
#include "lamella/dispatch/schema.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [rules] A formula is a captureless lambda. Its first parameter is the cotangent (vjp) or the tangent
/// of its input (jvp); the others receive, in order, what saves(...) names: an argument ("b"), the result
/// ("result", "result1"), or a property of a tensor argument ("x.sizes" as Ints, "x.dtype" as DType), or a
/// list's sizes and dtypes ("tensors.meta" as TensorSpan: tensors without elements; nothing else of them may
/// be read). Only what is declared is kept. A formula is called only when its input carries a derivative and,
/// for vjp, the cotangent is present: absent ones are the type of an undefined Tensor and never reach a
/// formula, save operators with several differentiable results (then the first parameter is TensorSpan).
struct RuleArgs {
  TensorSpan
      directions;  ///< cotangents of all results, or the tangent of this input (all entries of a list input)
  const void* const* saved;  ///< by the conventions of frames
};

/// What a formula's parameter can be given, in a schema's words.
struct Takes {
  ParamKind kind = ParamKind::Tensor;
  bool none = false;  ///< and None
};

struct Formula {
  std::string_view input;
  std::vector<std::string_view> saves;
  std::vector<Takes> takes;                  ///< as many as `saves`
  Tensor (*one)(const RuleArgs&) = nullptr;  ///< one result
  Tensors (*many)(const RuleArgs&) =
      nullptr;  ///< list inputs of a vjp; operators with several results in a jvp
  /// vjp of pointwise operators: a bool tensor, true for elements of the result that do not depend on this
  /// input, whatever the cotangent. NOTE: [hidden elements] in transforms/tapes/hidden.h.
  Tensor (*hidden)(const RuleArgs&) = nullptr;
  /// Says so: `f` has the parameters of the formula.
  template <class F> Formula hides(F f) &&;
};

inline std::vector<std::string_view> saves(std::initializer_list<std::string_view> names) { return names; }
template <class... S> std::vector<std::string_view> saves(S... names) { return {std::string_view(names)...}; }

namespace detail {
template <class F> struct signature : signature<decltype(&F::operator())> {};
template <class C, class R, class... A> struct signature<R (C::*)(A...) const> {
  using result = R;
  using args = std::tuple<std::remove_cvref_t<A>...>;
};

template <class T> decltype(auto) from_frame(const void* p) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return p ? *static_cast<const Tensor*>(p) : undefined_tensor();
  } else if constexpr (std::is_same_v<T, std::optional<int64_t>> || std::is_same_v<T, std::optional<Ints>> ||
                       std::is_same_v<T, std::optional<double>> || std::is_same_v<T, std::optional<DType>> ||
                       std::is_same_v<T, std::optional<Device>>) {
    using V = typename T::value_type;
    return p ? T(*static_cast<const V*>(p)) : T();
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return p ? std::string_view(*static_cast<const std::string*>(p)) : std::string_view();
  } else {
    return *static_cast<const T*>(p);
  }
}

/// The kinds whose values from_frame reads as a T.
template <class T> LAMELLA_CONSTEVAL Takes takes() {
  constexpr auto is = []<class... U>(std::type_identity<U>...) { return (std::is_same_v<T, U> || ...); };
  constexpr auto any = []<class U>(std::type_identity<U>) {
    return std::is_same_v<T, U> || std::is_same_v<T, std::optional<U>>;
  };
  constexpr bool none =
      !std::is_same_v<T, TensorSpan> && !std::is_same_v<T, Ints> &&
      !is(std::type_identity<int64_t>{}, std::type_identity<double>{}, std::type_identity<bool>{},
          std::type_identity<Scalar>{}, std::type_identity<DType>{}, std::type_identity<FunctionRef>{},
          std::type_identity<Device>{});
  if constexpr (std::is_same_v<T, Tensor>) return {ParamKind::Tensor, none};
  else if constexpr (std::is_same_v<T, TensorSpan>) return {ParamKind::TensorList, none};
  else if constexpr (any(std::type_identity<int64_t>{})) return {ParamKind::Int, none};
  else if constexpr (any(std::type_identity<Ints>{})) return {ParamKind::Ints, none};
  else if constexpr (any(std::type_identity<double>{})) return {ParamKind::Float, none};
  else if constexpr (std::is_same_v<T, bool>) return {ParamKind::Bool, none};
  else if constexpr (std::is_same_v<T, Scalar>) return {ParamKind::Scalar, none};
  else if constexpr (any(std::type_identity<DType>{})) return {ParamKind::DType, none};
  else if constexpr (any(std::type_identity<Device>{})) return {ParamKind::Device, none};
  else if constexpr (std::is_same_v<T, std::string_view>) return {ParamKind::String, none};
  else {
    static_assert(std::is_same_v<T, FunctionRef>,
                  "a formula takes Tensor, TensorSpan, int64_t, Ints, double, bool, Scalar, DType, Device, "
                  "std::string_view or FunctionRef, or std::optional of int64_t, Ints, double, DType or "
                  "Device");
    return {ParamKind::Function, none};
  }
}
template <class Args, size_t... I> std::vector<Takes> takes_from(std::index_sequence<I...>, size_t first) {
  const Takes all[] = {takes<std::tuple_element_t<I, Args>>()..., {}};
  return {all + first, all + sizeof...(I)};
}

template <class F> struct Thunk {
  using S = signature<F>;
  using Args = typename S::args;
  static typename S::result call(const RuleArgs& a) {
    return with_saves(a, std::make_index_sequence<std::tuple_size_v<Args> - 1>{});
  }
  template <size_t... I> static typename S::result with_saves(const RuleArgs& a, std::index_sequence<I...>) {
    if constexpr (std::is_same_v<std::tuple_element_t<0, Args>, Tensor>)
      return F{}(a.directions[0], from_frame<std::tuple_element_t<I + 1, Args>>(a.saved[I])...);
    else return F{}(a.directions, from_frame<std::tuple_element_t<I + 1, Args>>(a.saved[I])...);
  }
};
}  // namespace detail

/// The formula for `input`. Error schema, when the operator is added, if a name does not exist or the counts
/// differ.
template <class F> Formula wrt(std::string_view input, std::vector<std::string_view> saved, F) {
  using Args = typename detail::signature<F>::args;
  constexpr size_t n = std::tuple_size_v<Args>;
  Formula out{input, std::move(saved), detail::takes_from<Args>(std::make_index_sequence<n>{}, 1)};
  LAMELLA_CHECK(out.saves.size() + 1 == n, Schema,
                "wrt(\"{}\"): the formula takes {} values, saves() names {}", input, n - 1, out.saves.size());
  if constexpr (std::is_same_v<typename detail::signature<F>::result, Tensor>)
    out.one = detail::Thunk<F>::call;
  else out.many = detail::Thunk<F>::call;
  return out;
}
template <class F> Formula wrt(std::string_view input, F f) { return wrt(input, {}, f); }

template <class F> Formula Formula::hides(F f) && {
  hidden = wrt(input, saves, f).one;
  return std::move(*this);
}

/// All formulas of an operator in one direction, or the reason why there are none.
struct Rules {
  std::vector<Formula> formulas;
  std::string_view absent;  ///< reason
  std::vector<std::string_view>
      linear;  ///< jvp: inputs for which the operator itself, applied to the tangent, is the formula
  /// An operator that says nothing does not compile.
  Rules() = delete;
  template <std::same_as<Formula>... F>
  requires(sizeof...(F) > 0) Rules(F... f) : formulas{std::move(f)...} {}
  Rules(std::vector<Formula> f) : formulas(std::move(f)) {}
  explicit Rules(std::string_view reason) : absent(reason) {}
};

/// "No derivative" must be said, with the reason: the text appears in the error.
inline Rules not_differentiable(std::string_view reason) { return Rules(reason); }
/// The operator is linear in each of these inputs alone: its jvp is the operator with the tangent in the
/// input's place.
inline Rules linear_in(std::initializer_list<std::string_view> inputs) {
  Rules r(std::vector<Formula>{});
  r.linear = inputs;
  return r;
}
/// The derivative follows from the operators a composite calls.
inline Rules by_composition() { return Rules(std::vector<Formula>{}); }

}  // namespace lamella
LAMELLA_API_END
