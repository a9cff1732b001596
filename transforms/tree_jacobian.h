// Full derivatives of functions of trees: jacrev, jacfwd, hessian.
#pragma once

#include "lamella/transforms/jacobian.h"
#include "lamella/transforms/tree_grad.h"

LAMELLA_API_BEGIN
namespace lamella {

namespace detail {
/// The blocks that `make` gives for f, by leaves of the arguments `Argnums`: rows of one block for each leaf.
template <class Make, class F, class... A, class At>
auto run_jacobian(const Make& make, std::string_view what, const F& f, JacobianOptions options, At at,
                  const A&... args) {
  using R = TreeResult<F, A...>;
  std::tuple<A...> held(args...);
  auto picked = pick(held, at);
  const Tensors inputs = differentiable_leaves(what, held, at);
  options.argnums.resize(inputs.size());
  std::iota(options.argnums.begin(), options.argnums.end(), 0);
  std::optional<R> result;
  const Function on_leaves = [&](const Tensors& leaves) {
    set_defined_leaves(picked, leaves);
    result.emplace(std::apply(f, std::as_const(held)));
    if constexpr (std::is_same_v<R, Tensor>)
      LAMELLA_CHECK(result->defined(), Undefined,
                    "{}: the function returned an undefined tensor; expected a defined one", what);
    return defined_leaves(*result);
  };
  const Tensors blocks = make(on_leaves, options)(inputs);
  set_defined_leaves(picked, inputs);
  using In = decltype(with_leaves(picked, inputs));
  std::vector<In> rows;
  if (inputs.empty()) rows.assign(defined_leaves(*result).size(), with_leaves(picked, {}));
  for (auto from = blocks.begin(); from != blocks.end(); from += std::ptrdiff_t(inputs.size()))
    rows.push_back(with_leaves(picked, Tensors(from, from + std::ptrdiff_t(inputs.size()))));
  return std::pair(std::move(rows), std::move(*result));
}

/// One tree where the function's result or its arguments are one tensor, else one for each leaf of the
/// result.
template <class In, class R> auto shaped(std::pair<std::vector<In>, R> jacobian) {
  auto& [rows, result] = jacobian;
  if constexpr (std::is_same_v<R, Tensor>) return std::move(rows[0]);
  else if constexpr (std::is_same_v<In, Tensor>) {
    set_defined_leaves(result, rows);
    return std::move(result);
  } else return std::move(rows);
}

template <int... Argnums, class Make, class F>
auto jacobian_of(Make make, std::string_view what, F f, JacobianOptions options) {
  return [ make, what, f = given(std::move(f), what), options = std::move(options) ]<class... A>(
      const A&... args) requires std::invocable<const F&, const A&...> {
    constexpr auto at = positions<int(sizeof...(A)), Argnums...>();
    return shaped(run_jacobian(make, what, f, options, at, args...));
  };
}
}  // namespace detail

/// Of a function of trees (NOTE: [tree functions]) by its first argument, or by those that `Argnums` name
/// (several: as a tuple). A block d y / d x of sizes y.sizes ++ x.sizes stands in the place of x, in a tree
/// like the argument, when the function returns a tensor; in the place of y, in a tree like the result, when
/// the argument is a tensor; else the result is a std::vector of trees like the argument, one for each leaf
/// of the result in order. options.argnums is not read. Errors as jacrev's, dtype naming the leaf.
template <int... Argnums, class F>
requires detail::GradOfTrees<F, Argnums...>
auto jacrev(F f, JacobianOptions options = {}) {
  const auto make = [](const Function& g, const JacobianOptions& o) { return jacrev(g, o); };
  return detail::jacobian_of<Argnums...>(make, "jacrev", std::move(f), std::move(options));
}
template <int... Argnums, class F>
requires detail::GradOfTrees<F, Argnums...>
auto jacfwd(F f, JacobianOptions options = {}) {
  const auto make = [](const Function& g, const JacobianOptions& o) { return jacfwd(g, o); };
  return detail::jacobian_of<Argnums...>(make, "jacfwd", std::move(f), std::move(options));
}

/// Of a function that returns a tensor: blocks d2 y / dx dx', of sizes y.sizes ++ x.sizes ++ x'.sizes, in a
/// std::vector of trees over x', one for each leaf x in order; one tensor when the argument is one.
template <int... Argnums, class F>
requires detail::GradOfTrees<F, Argnums...>
auto hessian(F f, JacobianOptions options = {}) {
  return [ f = given(std::move(f), "hessian"), options = std::move(options) ]<class... A>(
      const A&... args) requires std::invocable<const F&, const A&...> {
    static_assert(std::is_same_v<detail::TreeResult<F, A...>, Tensor>,
                  "hessian: the function returns a tree");
    const auto make = [](const Function& g, const JacobianOptions& o) { return hessian(g, o); };
    constexpr auto at = detail::positions<int(sizeof...(A)), Argnums...>();
    auto rows = detail::run_jacobian(make, "hessian", f, options, at, args...).first;
    if constexpr (std::is_same_v<decltype(rows), Tensors>) return std::move(rows[0]);
    else {
      if (detail::defined_leaves(rows[0]).empty()) rows.clear();  // of arguments without leaves
      return rows;
    }
  };
}

}  // namespace lamella
LAMELLA_API_END
