// Hooks of base autograd in a run of the tape.
#pragma once

#include "lamella/transforms/machine/tape.h"

LAMELLA_API_BEGIN
namespace lamella {

/// What base autograd adds to a run of the tape.
class TapeHooks {
 public:
  /// The cotangents of the outputs of a node with extra are complete: it may replace them, for whoever asks.
  virtual void complete(Node& node, std::span<Tensor> cotangents) = 0;
  /// Before the formulas of such a node run: it may replace what they get.
  virtual void before(Node& node, std::span<Tensor> cotangents) = 0;
  /// Whether after() is to be called for this node, which has extra.
  virtual bool watches(Node& node) = 0;
  /// Before what a watched node gives reaches its inputs: one cotangent an edge (undefined: none), which it
  /// may replace.
  virtual void after(Node& node, Tensors& to_inputs, TensorSpan cotangents) = 0;
  /// A leaf that received a cotangent.
  virtual void on_leaf(Node& leaf, const Tensor& cotangent) = 0;
  /// What a leaf's gradient is like.
  virtual const Shape& type_of(Node& leaf) = 0;
  /// A saved value with the history it had: that of result `output` of `from`. Asked only when
  /// `keeps_history`.
  virtual Tensor with_history(const Tensor& value, Node& from, uint32_t output) = 0;
  bool keeps_history = false;  ///< derivatives of the gradients will be asked for

 protected:
  ~TapeHooks() = default;
};

}  // namespace lamella
LAMELLA_API_END
