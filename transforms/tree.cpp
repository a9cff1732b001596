// Paths of trees, and the errors that name them.
#include "lamella/transforms/tree.h"

#include <algorithm>

#include "lamella/transforms/tree_grad.h"

namespace lamella {

std::string TreePath::str() const {
  const std::string before = parent ? parent->str() : "";
  switch (kind) {
    case Root: return std::string(name);
    case Field: return before + (name.empty() ? format(".fields[{}]", index) : format(".{}", name));
    case Key: return before + format("[\"{}\"]", name);
    default: return before + format("[{}]", index);
  }
}

std::ostream& operator<<(std::ostream& out, const TreePath& path) { return out << path.str(); }

namespace detail {
std::string_view field_name(std::string_view names, size_t i) {
  for (; i > 0; --i) names.remove_prefix(std::min(names.size(), names.find(',') + 1));
  names = names.substr(0, names.find(','));
  while (names.starts_with(' ')) names.remove_prefix(1);
  return names;
}

void raise_tree_size(const TreePath& path, size_t got, size_t expected) {
  fail(ErrorCode::Shape, "tree: {} has size {}, expected {} as the tree beside it", path.str(), got,
       expected);
}

void raise_tree_key(const TreePath& path, std::string_view key, bool missing) {
  if (missing)
    fail(ErrorCode::Shape, "tree: {} has no key \"{}\"; expected the keys of the tree beside it", path.str(),
         key);
  fail(ErrorCode::Shape, "tree: {} has the key \"{}\", which the tree beside it has not; expected its keys",
       path.str(), key);
}
void raise_dims_size(std::string_view what, const TreePath& path, size_t got, size_t expected) {
  fail(ErrorCode::MappedSize, "vmap: {} for {} has size {}; expected {}, or one dim for all of it", what,
       path, got, expected);
}

void raise_dims_of_leaf(std::string_view what, const TreePath& path, const Tensor& leaf) {
  fail(ErrorCode::MappedSize, "vmap: {} for {} ({}) is a list; expected a dim or none", what, path,
       str(Value(leaf)));
}

void MappedLeaves::operator()(const TreePath& path, const Tensor& leaf, int dim) {
  leaves.push_back(leaf);
  dims.push_back(dim);
  if (dim == kNone) return;
  const int rank = leaf.rank();
  LAMELLA_CHECK(-rank <= dim && dim < rank, DimOutOfRange,
                "vmap: in_dims = {} is out of range for {} ({}); expected {} <= dim < {}", dim, path, leaf,
                -rank, rank);
  const int64_t n = leaf.size(dim);
  LAMELLA_CHECK(size_ < 0 || n == size_, MappedSize,
                "vmap: {} ({}) has {} lanes, {} has {}; expected equal sizes", path.str(), leaf, n,
                first_.empty() ? "size" : first_, size_);
  if (size_ < 0) first_ = format("{} ({})", path, leaf);
  size_ = n;
}

void check_differentiable(std::string_view what, const TreePath& path, const Tensor& leaf) {
  LAMELLA_CHECK(is_inexact(leaf.dtype()), DType, "{}: {} is {}, expected floating point or complex", what,
                path.str(), leaf);
}

void check_type(std::string_view what, const TreePath& path, const Tensor& got, const Tensor& like) {
  if (!got.defined()) return;
  LAMELLA_CHECK(got.dtype() == like.dtype(), DType, "{}: {} is {}, expected {}", what, path.str(), got, like);
  LAMELLA_CHECK(std::ranges::equal(got.sizes(), like.sizes()), Shape, "{}: {} is {}, expected {}", what,
                path.str(), got, like);
}
}  // namespace detail

}  // namespace lamella
