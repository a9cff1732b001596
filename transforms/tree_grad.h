// Derivatives of functions of trees: grad, value_and_grad, vjp, jvp.
#pragma once

#include <numeric>

#include "lamella/core/wording.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/jvp.h"
#include "lamella/transforms/tree_vmap.h"

LAMELLA_API_BEGIN
namespace lamella {

namespace detail {
/// Error dtype unless the leaf is floating or complex.
void check_differentiable(std::string_view what, const TreePath& path, const Tensor& leaf);
/// Error shape or dtype unless `got`, when it is defined, is of the type of `like`.
void check_type(std::string_view what, const TreePath& path, const Tensor& got, const Tensor& like);

template <int... Argnums> LAMELLA_CONSTEVAL bool are_distinct(int n) {
  const int all[] = {(Argnums < 0 ? Argnums + n : Argnums)...};
  for (size_t i = 0; i < sizeof...(Argnums); ++i)
    for (size_t j = 0; j < i; ++j)
      if (all[i] == all[j]) return false;
  return true;
}

/// The positions of the arguments that argnums name among n; the first when they name none.
template <int N, int... Argnums> LAMELLA_CONSTEVAL auto positions() {
  if constexpr (sizeof...(Argnums) == 0) return std::index_sequence<0>();
  else {
    static_assert(((-N <= Argnums && Argnums < N) && ...), "argnums: the function has fewer arguments");
    static_assert(are_distinct<Argnums...>(N), "argnums: an argument is named twice");
    return std::index_sequence<size_t(Argnums < 0 ? Argnums + N : Argnums)...>();
  }
}

/// Some arguments of a call as a tree.
template <size_t... I, class... A> auto pick(std::tuple<A...>& args, std::index_sequence<I...>) {
  return std::tie(std::get<I>(args)...);
}

/// Their defined leaves, which must be differentiable.
template <size_t... I, class... A>
Tensors differentiable_leaves(std::string_view what, std::tuple<A...>& args, std::index_sequence<I...>) {
  Tensors out;
  const TreePath root("args");
  const auto add = [&](const TreePath& path, const Tensor& t) {
    if (!t.defined()) return;
    check_differentiable(what, path, t);
    out.push_back(t);
  };
  (visit_leaves(add, TreePath(root, I), std::get<I>(args)), ...);
  return out;
}

/// A copy of picked arguments with these defined leaves: the tree alone when there is one.
template <class... A> auto with_leaves(const std::tuple<A&...>& picked, const Tensors& leaves) {
  std::tuple<A...> out(picked);
  set_defined_leaves(out, leaves);
  if constexpr (sizeof...(A) == 1) return std::get<0>(std::move(out));
  else return out;
}

/// What f returned, its tensors as the caller sees them, and the gradients of its first tensor.
template <class R, class G> struct WithGrads {
  R result;
  G grads;
};

template <int... Argnums, class F, class... A> auto run_grad(const F& f, const A&... args) {
  using R = TreeResult<F, A...>;
  constexpr auto at = positions<int(sizeof...(A)), Argnums...>();
  std::tuple<A...> held(args...);
  const Tensors inputs = differentiable_leaves("grad", held, at);
  std::optional<R> result;
  auto picked = pick(held, at);
  const AuxFunction on_leaves = [&](const Tensors& leaves) {
    set_defined_leaves(picked, leaves);
    result.emplace(std::apply(f, std::as_const(held)));
    if constexpr (std::is_same_v<R, Tensor>) return std::pair(Tensors{*result}, defined_leaves(*result));
    else return std::pair(Tensors{std::get<0>(*result)}, defined_leaves(*result));
  };
  std::vector<int> all(inputs.size());
  std::iota(all.begin(), all.end(), 0);
  const Tensors out = grad_has_aux(on_leaves, all)(inputs);  // gradients, then what f returned
  const auto split = out.begin() + std::ptrdiff_t(inputs.size());
  set_defined_leaves(*result, Tensors(split, out.end()));
  auto grads = with_leaves(picked, Tensors(out.begin(), split));
  return WithGrads<R, decltype(grads)>{std::move(*result), std::move(grads)};
}

template <class F, int... Argnums>
concept GradOfTrees = sizeof...(Argnums) > 0 || TreeFunction<F>;
}  // namespace detail

/// The gradient of a function of trees (NOTE: [tree functions]) that returns a real tensor of one element: of
/// its first argument, as a tree like it; `grad<1>(f)`, `grad<-1>(f)` of another one, `grad<0, 2>(f)` of
/// several, as a tuple. Errors: dtype, naming the leaf that is neither floating nor complex; as grad.
template <int... Argnums, class F>
requires detail::GradOfTrees<F, Argnums...>
auto grad(F f) {
  return [f = given(std::move(f), "grad")]<class... A>(
      const A&... args) requires std::invocable<const F&, const A&...> {
    return detail::run_grad<Argnums...>(f, args...).grads;
  };
}

/// (value, gradients).
template <int... Argnums, class F>
requires detail::GradOfTrees<F, Argnums...>
auto value_and_grad(F f) {
  return [f = given(std::move(f), "value_and_grad")]<class... A>(
      const A&... args) requires std::invocable<const F&, const A&...> {
    auto r = detail::run_grad<Argnums...>(f, args...);
    return std::pair(std::move(r.result), std::move(r.grads));
  };
}

/// Of f that returns (value, aux): (gradients, aux). The second is handed through.
template <int... Argnums, class F>
requires detail::GradOfTrees<F, Argnums...>
auto grad_has_aux(F f) {
  return [f = given(std::move(f), "grad_has_aux")]<class... A>(
      const A&... args) requires std::invocable<const F&, const A&...> {
    auto r = detail::run_grad<Argnums...>(f, args...);
    return std::pair(std::move(r.grads), std::get<1>(std::move(r.result)));
  };
}

/// Of f that returns (value, aux): (value, gradients, aux).
template <int... Argnums, class F>
requires detail::GradOfTrees<F, Argnums...>
auto value_and_grad_has_aux(F f) {
  return [f = given(std::move(f), "value_and_grad_has_aux")]<class... A>(
      const A&... args) requires std::invocable<const F&, const A&...> {
    auto r = detail::run_grad<Argnums...>(f, args...);
    auto& [value, aux] = r.result;
    return std::tuple(std::move(value), std::move(r.grads), std::move(aux));
  };
}

/// What vjp of a function of trees returns.
template <class R, class In> struct TreeVjp {
  R value;
  /// From a cotangent (a tree like the value, whose undefined leaves are zero) to the cotangents of all
  /// arguments: a tuple of trees like them, or the tree when there is one.
  std::function<In(const R& cotangent)> pullback;
};

/// f(args...) and its pullback. Errors: dtype, naming the leaf that is neither floating nor complex.
template <TreeFunction F, class... A>
requires std::invocable<const F&, const A&...>
auto vjp(const F& f, const A&... args) {
  given(f, "vjp");
  using R = detail::TreeResult<F, A...>;
  std::tuple<A...> held(args...);
  auto picked = detail::pick(held, std::index_sequence_for<A...>());
  const Tensors inputs = detail::differentiable_leaves("vjp", held, std::index_sequence_for<A...>());
  std::optional<R> result;
  const Function on_leaves = [&](const Tensors& leaves) {
    detail::set_defined_leaves(picked, leaves);
    result.emplace(std::apply(f, std::as_const(held)));
    return detail::defined_leaves(*result);
  };
  VjpResult r = vjp(on_leaves, inputs);
  detail::set_defined_leaves(*result, r.values);
  detail::set_defined_leaves(picked, inputs);
  using In = decltype(detail::with_leaves(picked, inputs));
  TreeVjp<R, In> out{std::move(*result), {}};
  out.pullback = [pull = std::move(r.pullback), held = std::move(held),
                  like = out.value](const R& cotangent) {
    Tensors cts;
    visit_leaves(
        [&](const TreePath& path, const Tensor& y, const Tensor& ct) {
          if (!y.defined()) return;
          detail::check_type("pullback", path, ct, y);
          cts.push_back(ct);
        },
        "cotangent", like, cotangent);
    auto all = held;
    return detail::with_leaves(detail::pick(all, std::index_sequence_for<A...>()), pull(cts));
  };
  return out;
}

/// What jvp of a function of trees returns.
template <class R> struct TreeJvp { R value, tangent; };

/// f(primals...) and its derivative in the direction `tangents`: tuples of trees, one per argument, or one
/// tree each. An undefined tangent is zero. Errors: shape and dtype, naming the leaf, when a tangent does not
/// match its primal or its primal is neither floating nor complex.
template <TreeFunction F, class... A>
auto jvp(const F& f, const std::tuple<A...>& primals, const std::tuple<A...>& tangents) {
  given(f, "jvp");
  using R = detail::TreeResult<F, A...>;
  std::tuple<A...> held(primals);
  Tensors values, directions;
  visit_leaves(
      [&](const TreePath& path, const Tensor& x, const Tensor& t) {
        if (!x.defined()) return;
        if (t.defined()) detail::check_differentiable("jvp", path, x);
        detail::check_type("jvp", path, t, x);
        values.push_back(x);
        directions.push_back(t);
      },
      "tangents", primals, tangents);
  std::optional<R> result;
  const Function on_leaves = [&](const Tensors& leaves) {
    detail::set_defined_leaves(held, leaves);
    result.emplace(std::apply(f, std::as_const(held)));
    return detail::defined_leaves(*result);
  };
  const JvpResult r = jvp(on_leaves, values, directions);
  TreeJvp<R> out{*result, std::move(*result)};
  detail::set_defined_leaves(out.value, r.values);
  detail::set_defined_leaves(out.tangent, r.tangents);
  return out;
}
template <TreeFunction F, class A>
requires std::invocable<const F&, const A&>
auto jvp(const F& f, const A& primal, const A& tangent) {
  return jvp(f, std::tuple<A>(primal), std::tuple<A>(tangent));
}

}  // namespace lamella
LAMELLA_API_END
