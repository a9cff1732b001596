// Trees: tensors in lists, tuples, maps and structs, taken apart and put together again.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "lamella/dispatch/value.h"

/// Inside a struct: its members are the entries of a tree, and errors name them.
///   struct Layer { Tensor weight, bias;  LAMELLA_FIELDS(weight, bias) };
#define LAMELLA_FIELDS(...)                       \
  auto fields() { return std::tie(__VA_ARGS__); } \
  static constexpr std::string_view field_names() { return #__VA_ARGS__; }

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [trees] A tree is a Tensor (a leaf); a std::vector, std::array, std::tuple, std::pair, std::optional
/// or std::map<std::string, ...> of trees; or a struct whose member `fields()` returns std::tie(...) of trees
/// (LAMELLA_FIELDS writes it). Numbers, enums, strings and what else `is_tree_constant` names are carried
/// along. An undefined Tensor stands for a leaf that is not there: transforms leave it out and leave it
/// undefined. Leaves have the order in which the tree is written down; maps that of their keys.
template <class T> inline constexpr bool is_tree_constant =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, std::monostate> || std::is_same_v<T, Dims> || std::is_same_v<T, Scalar>;

/// Where in a tree: `args[0].layers[1].weight`. Lives on the stack; costs nothing until it is printed.
struct TreePath {
  enum Kind : uint8_t { Root, Field, Entry, Key } kind = Root;
  std::string_view name;  ///< of the root, of a field ("" when it has none), of a key
  size_t index = 0;       ///< among the fields or entries
  const TreePath* parent = nullptr;

  TreePath(const char* root) : name(root) {}
  explicit TreePath(std::string_view root) : name(root) {}
  TreePath(const TreePath& in, size_t entry) : kind(Entry), index(entry), parent(&in) {}
  TreePath(const TreePath& in, Kind k, std::string_view part, size_t i)
      : kind(k), name(part), index(i), parent(&in) {}
  std::string str() const;
};
std::ostream& operator<<(std::ostream& out, const TreePath& path);

namespace detail {
template <class T> inline constexpr bool is_vector = false;
template <class T, class A> inline constexpr bool is_vector<std::vector<T, A>> = true;
template <class T, size_t N> inline constexpr bool is_vector<std::array<T, N>> = true;
template <class T> inline constexpr bool is_optional = false;
template <class T> inline constexpr bool is_optional<std::optional<T>> = true;
template <class T> inline constexpr bool is_map = false;
template <class T, class... R> inline constexpr bool is_map<std::map<std::string, T, R...>> = true;
template <class T> inline constexpr bool is_tuple = false;
template <class... T> inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B> inline constexpr bool is_tuple<std::pair<A, B>> = true;

template <class T>
concept HasFields = requires(T& t) {
  t.fields();
};
template <class T>
concept NamesFields = requires {
  std::string_view(T::field_names());
};

/// Name `i` of "weight, bias".
std::string_view field_name(std::string_view names, size_t i);
template <class T> TreePath field_path(const TreePath& path, size_t i) {
  if constexpr (NamesFields<T>) return {path, TreePath::Field, field_name(T::field_names(), i), i};
  else if constexpr (HasFields<T>) return {path, TreePath::Field, "", i};
  else return {path, i};
}

/// The entries of a tuple or struct as a tuple of references, as mutable as `node`; one `fields()`, const or
/// not, serves both.
template <class T> auto entries_of(T& node) {
  using Plain = std::remove_const_t<T>;
  const auto as_node = [](auto&... part) {
    using detail::is_tuple;
    if constexpr (std::is_const_v<T>) return std::tie(std::as_const(part)...);
    else return std::tie(const_cast<std::remove_const_t<std::remove_reference_t<decltype(part)>>&>(part)...);
  };
  if constexpr (is_tuple<Plain>) return std::apply(as_node, node);
  else return std::apply(as_node, const_cast<Plain&>(node).fields());
}

[[noreturn]] void raise_tree_size(const TreePath& path, size_t got, size_t expected);
[[noreturn]] void raise_tree_key(const TreePath& path, std::string_view key, bool missing);

template <class T, class U> void check_keys(const TreePath& path, const T& node, const U& other) {
  for (const auto& [key, unused] : other)
    if (!node.contains(key)) raise_tree_key(path, key, false);
  for (const auto& [key, unused] : node)
    if (!other.contains(key)) raise_tree_key(path, key, true);
}

template <class V, size_t I, class... E>
void visit_entry(V& visit, const TreePath& at, std::integral_constant<size_t, I>, E&... entries) {
  visit(at, std::get<I>(entries)...);
}

/// visit(path, child, children of `more`...) for each child of `node`. Error shape where `more` is built
/// otherwise.
template <class V, class T, class... More>
void visit_children(V&& visit, const TreePath& path, T& node, More&... more) {
  using U = std::remove_const_t<T>;
  if constexpr (is_vector<U>) {
    ((more.size() == node.size() ? void() : raise_tree_size(path, more.size(), node.size())), ...);
    for (size_t i = 0; i < node.size(); ++i) visit(TreePath(path, i), node[i], more[i]...);
  } else if constexpr (is_map<U>) {
    (check_keys(path, node, more), ...);
    size_t i = 0;
    for (auto& [key, child] : node)
      visit(TreePath(path, TreePath::Key, key, i++), child, more.find(key)->second...);
  } else if constexpr (is_optional<U>) {
    ((more.has_value() == node.has_value() ? void()
                                           : raise_tree_size(path, more.has_value(), node.has_value())),
     ...);
    if (node) visit(path, *node, *more...);
  } else {
    static_assert(is_tuple<U> || HasFields<U>,
                  "this type is no tree (transforms/tree.h): give it `auto fields() { return "
                  "std::tie(members...); }`, or LAMELLA_FIELDS(members...)");
    auto all = entries_of(node);
    auto others = std::make_tuple(entries_of(more)...);
    [&]<size_t... I>(std::index_sequence<I...>) {
      (std::apply(
           [&](auto&... other) {
             visit_entry(visit, field_path<U>(path, I), std::integral_constant<size_t, I>(), all, other...);
           },
           others),
       ...);
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(all)>>());
  }
}
}  // namespace detail

/// visit(path, leaf, leaves of `more`...) for each tensor of `tree`, undefined ones too; `more` are trees of
/// the same structure. Error shape, naming the place, where they are not.
template <class V, class T, class... More>
void visit_leaves(V&& visit, const TreePath& path, T& tree, More&... more) {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, Tensor>) visit(path, tree, more...);
  else if constexpr (!is_tree_constant<U>)
    detail::visit_children([&](const TreePath& at, auto&... child) { visit_leaves(visit, at, child...); },
                           path, tree, more...);
}

/// The tensors of a tree in order, undefined ones too.
template <class T> Tensors tree_leaves(const T& tree) {
  Tensors out;
  visit_leaves([&](const TreePath&, const Tensor& t) { out.push_back(t); }, "tree", tree);
  return out;
}

/// A tree built as `like`, with these tensors as its leaves. Error shape when the counts differ.
template <class T> T tree_unflatten(const Tensors& leaves, const T& like) {
  T out = like;
  size_t n = 0;
  visit_leaves([&](const TreePath&, Tensor& t) { t = n < leaves.size() ? leaves[n] : Tensor(), ++n; }, "tree",
               out);
  LAMELLA_CHECK(n == leaves.size(), Shape, "tree_unflatten: got {} {}, expected {}", leaves.size(),
                Argument{"leaves"}, n);
  return out;
}

/// f(leaf, leaves of `more`...) -> Tensor at each defined leaf of `tree`. Error shape, naming the place,
/// where a tree of `more` is built otherwise.
template <class F, class T, class... More> T tree_map(F&& f, const T& tree, const More&... more) {
  T out = tree;
  visit_leaves(
      [&](const TreePath&, Tensor& t, const auto&... others) {
        if (t.defined()) t = f(std::as_const(t), others...);
      },
      "tree", out, more...);
  return out;
}

/// One line for each leaf: "tree.layers[1].weight: f32[2,3]".
template <class T> std::string tree_str(const T& tree, std::string_view root = "tree") {
  std::string out;
  visit_leaves(
      [&](const TreePath& at, const Tensor& t) {
        out += at.str() + ": " + (t.defined() ? type_str(t) : "undefined") + '\n';
      },
      TreePath(root), tree);
  return out;
}

}  // namespace lamella
LAMELLA_API_END
