// Looking through a graph for what leads to the targets of a run.
#include "lamella/transforms/tapes/wanted.h"

#include <algorithm>

namespace lamella {

Wanted::Wanted(std::span<const NodeOutput> roots, std::span<const NodeOutput> targets) {
  uint64_t lowest = ~uint64_t{0};
  for (const NodeOutput& t : targets) {
    find(t.node.get());
    lowest = std::min(lowest, t.node->order);
  }
  marked_.assign(nodes_.size(), true);
  for (const NodeOutput& root : roots) find(root.node.get());
  for (size_t at = 0; at < nodes_.size(); ++at) {  // of those at or below the lowest target none leads on
    Node& node = *nodes_[at];
    for (uint32_t i = 0; node.order > lowest && i < node.n_edges; ++i) find(node.edges()[i].node);
  }
  marked_.resize(nodes_.size());
  std::vector<Node*> rising(nodes_.rbegin(), nodes_.rend());  // what a node was computed from comes first
  if (!std::ranges::is_sorted(rising, {}, &Node::order)) std::ranges::sort(rising, {}, &Node::order);
  for (Node* const node : rising)
    if (any_edge(*node)) marked_[places_.find(node)] = true;
  if (std::ranges::find(marked_, false) == marked_.end()) nodes_.clear();  // nobody has to look again
}

void Wanted::find(Node* node) {
  if (!node || (!nodes_.empty() && places_.find(node) != PointerIndex::kAbsent)) return;
  places_.insert(node, uint32_t(nodes_.size()));
  nodes_.push_back(node);
}

bool Wanted::is_marked(const Node* node) const {
  const uint32_t at = places_.find(node);
  return at != PointerIndex::kAbsent && marked_[at];
}

bool Wanted::any_edge(Node& node) const {
  for (uint32_t i = 0; i < node.n_edges; ++i)
    if (is_marked(node.edges()[i].node)) return true;
  return false;
}

}  // namespace lamella
