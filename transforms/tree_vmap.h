// vmap of functions of trees, with in_dims and out_dims as prefixes of them.
#pragma once

#include <functional>

#include "lamella/dispatch/given.h"
#include "lamella/transforms/tree.h"
#include "lamella/transforms/vmap.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [tree functions] A function of trees is any callable that the interfaces of lists (Function,
/// UnaryFunction and so on) cannot take: f(const Params&, const Tensor&) -> Tensor, say. Its arguments and
/// its result are trees; vmap, grad and the others make of it a function of the same trees. What it is given
/// are copies of the caller's trees that hold other tensors.
template <class F>
concept TreeFunction =
    !std::is_constructible_v<std::function<Tensors(const Tensors&)>, F> &&
    !std::is_constructible_v<std::function<Tensor(const Tensors&)>, F> &&
    !std::is_constructible_v<std::function<Tensor(const Tensor&)>, F> &&
    !std::is_constructible_v<std::function<std::pair<Tensors, Tensors>(const Tensors&)>, F>;

/// A prefix of a tree with a dim, or kNone, for each subtree: 0, {kNone, 0}, {{0, kNone}, 1}. An entry stands
/// for an argument, a member of a struct or tuple, an entry of a list, a value of a map (in the order of its
/// keys); a dim for all tensors below it.
class DimTree {
 public:
  DimTree(int dim) : dim_(dim) {}
  DimTree(std::initializer_list<DimTree> entries) : is_leaf_(false), entries_(entries) {}
  DimTree(const std::vector<int>& entries) : is_leaf_(false), entries_(entries.begin(), entries.end()) {}
  bool is_leaf() const { return is_leaf_; }
  int dim() const { return dim_; }
  const std::vector<DimTree>& entries() const { return entries_; }

 private:
  bool is_leaf_ = true;
  int dim_ = 0;
  std::vector<DimTree> entries_;
};

namespace detail {
[[noreturn]] void raise_dims_size(std::string_view what, const TreePath& path, size_t got, size_t expected);
[[noreturn]] void raise_dims_of_leaf(std::string_view what, const TreePath& path, const Tensor& leaf);

/// f(path, leaf, dim) for each defined leaf. `what` is in_dims or out_dims.
template <class F, class T>
void with_dims(F& f, std::string_view what, const TreePath& path, const T& tree, const DimTree& dims) {
  if constexpr (std::is_same_v<T, Tensor>) {
    if (!dims.is_leaf()) raise_dims_of_leaf(what, path, tree);
    if (tree.defined()) f(path, tree, dims.dim());
  } else if (dims.is_leaf()) {
    visit_leaves([&](const TreePath& at, const Tensor& t) { with_dims(f, what, at, t, dims); }, path, tree);
  } else if constexpr (!is_tree_constant<T>) {
    size_t n = 0, i = 0;
    visit_children([&](const TreePath&, const auto&) { ++n; }, path, tree);
    if (n != dims.entries().size()) raise_dims_size(what, path, dims.entries().size(), n);
    visit_children(
        [&](const TreePath& at, const auto& child) { with_dims(f, what, at, child, dims.entries()[i++]); },
        path, tree);
  }
}

/// Collects the defined leaves of vmap's arguments and the dim of each. Errors naming the place: mapped_size
/// and dim_out_of_range as vmap's.
class MappedLeaves {
 public:
  explicit MappedLeaves(int64_t size) : size_(size) {}
  void operator()(const TreePath& path, const Tensor& leaf, int dim);
  Tensors leaves;
  InDims dims;

 private:
  int64_t size_;
  std::string first_;
};

template <class T> Tensors defined_leaves(const T& tree) {
  Tensors out;
  visit_leaves(
      [&](const TreePath&, const Tensor& t) {
        if (t.defined()) out.push_back(t);
      },
      "", tree);
  return out;
}

/// Puts tensors in the places of the defined leaves.
template <class T> void set_defined_leaves(T& tree, const Tensors& leaves) {
  size_t n = 0;
  visit_leaves(
      [&](const TreePath&, Tensor& t) {
        if (t.defined()) t = leaves[n++];
      },
      "", tree);
  LAMELLA_ASSERT(n == leaves.size());
}

/// The result of a call on trees.
template <class F, class... A> using TreeResult = std::decay_t<std::invoke_result_t<const F&, const A&...>>;
}  // namespace detail

/// vmap of a function of trees. Errors as vmap's, naming the leaf, and mapped_size when in_dims or out_dims
/// is no prefix of the arguments or the result. An undefined leaf stays undefined. options.in_dims and
/// options.out_dims are not read.
template <TreeFunction F>
auto vmap(F f, DimTree in_dims = 0, DimTree out_dims = 0, VmapOptions options = {}) {
  return [
    f = given(std::move(f), "vmap"), in_dims = std::move(in_dims), out_dims = std::move(out_dims),
    options = std::move(options)
  ]<class... A>(const A&... args) requires std::invocable<const F&, const A&...> {
    std::tuple<A...> held(args...);
    detail::MappedLeaves mapped(options.size);
    detail::with_dims(mapped, "in_dims", "args", held, in_dims);
    VmapOptions o = options;
    o.in_dims = std::move(mapped.dims);
    std::optional<detail::TreeResult<F, A...>> result;
    o.result_dims = [&] {
      InDims dims;
      auto note = [&](const TreePath&, const Tensor&, int dim) { dims.push_back(dim); };
      detail::with_dims(note, "out_dims", "result", *result, out_dims);
      return dims;
    };
    const Function on_leaves = [&](const Tensors& leaves) {
      detail::set_defined_leaves(held, leaves);
      result.emplace(std::apply(f, std::as_const(held)));
      return detail::defined_leaves(*result);
    };
    detail::set_defined_leaves(*result, vmap(on_leaves, o)(mapped.leaves));
    return std::move(*result);
  };
}

}  // namespace lamella
LAMELLA_API_END
