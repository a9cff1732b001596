// What laws of graphs share: a drawn chain with roots and cotangents, and what levels say of its gradients.
#pragma once

#include "lamella/verify/case/lanes.h"
#include "lamella/verify/programs/chain.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// A chain of operators, one time in three as one custom operator of as many results, what is made of each
/// result before it is a root, and a cotangent for each root. Numbers are so small that any order of summing
/// gives the same gradients, up to shares of ties.
class Graph {
 public:
  explicit Graph(Case& c);
  /// There is something to differentiate, nothing raises plainly or under vjp, and numbers stay small.
  bool valid() const { return valid_; }
  const Tensors& inputs() const { return inputs_; }
  const Chain& chain() const { return chain_; }
  /// Inputs to roots.
  Function function() const;
  /// Likewise with every result of the chain seen on the way.
  Tensors watched(const Tensors& xs, const Chain::Watch& watch) const;
  /// One for each root; undefined where ones are meant.
  const Tensors& given() const { return given_; }
  const Tensors& cotangents() const { return cotangents_; }
  /// The pullback of `cotangents`, by levels.
  const Tensors& gradients() const { return gradients_; }
  Tensors leaves() const;
  /// Declares the chain, `g` (inputs to roots), xs, us and the gradients wanted: `want`.
  std::string cpp() const;

 private:
  enum class Tail : uint8_t { None, Sum, Expand, Flat };
  Tensor ended(const Tensor& y, size_t k) const;

  Chain chain_;
  Tensors inputs_, given_, cotangents_, gradients_;
  std::vector<Tail> tails_;
  bool inputs_too_ = false, joined_ = false, valid_ = false;
};

/// Roots of a run in base autograd that require grad, with their cotangents.
struct LiveRoots {
  Tensors ys, us;
  LiveRoots(const Tensors& roots, const Tensors& given);
};

/// Gradients by leaf, undefined where there are none: empty when they are `times` what is wanted, up to
/// roundings of numbers much smaller than what one operator adds.
Finding unlike_gradients(const Tensors& got, const Tensors& want, double times = 1);
Tensors grads_of(const Tensors& leaves);

}  // namespace lamella::verify
LAMELLA_API_END
