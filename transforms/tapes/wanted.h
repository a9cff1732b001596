// Which nodes of a graph a run backwards has to go through for some of its tensors.
#pragma once

#include "lamella/core/pointer_index.h"
#include "lamella/transforms/machine/tape.h"

LAMELLA_API_BEGIN
namespace lamella {

/// The targets and the nodes that lead to one. Tapes of levels need none: what they record depends on an
/// input. In base autograd other leaves meet in a graph: what leads to those alone does not run, so that its
/// saved values may have been written, and its hooks are not called.
class Wanted {
 public:
  /// All nodes.
  Wanted() = default;
  Wanted(std::span<const NodeOutput> roots, std::span<const NodeOutput> targets);
  bool has(const Node* node) const { return nodes_.empty() || is_marked(node); }
  /// Whether a formula of the node has to run.
  bool runs(Node& node) const { return nodes_.empty() || any_edge(node); }

 private:
  void find(Node* node);
  bool is_marked(const Node* node) const;
  bool any_edge(Node& node) const;

  std::vector<Node*> nodes_;  ///< that the roots depend on, and the targets
  PointerIndex places_;       ///< in nodes_
  std::vector<bool> marked_;
};

}  // namespace lamella
LAMELLA_API_END
