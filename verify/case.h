// One decoded case: an operator with valid arguments, drawn from a vector of choices. Total: every vector decodes.
#pragma once

#include <string>
#include <vector>

#include "lamella/dispatch/draw.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/jvp.h"
#include "lamella/transforms/vmap.h"

namespace lamella::verify {

using Choices = std::vector<uint32_t>;

/// Arguments are at full arity. Laws draw what else they need (tangents, in_dims, stacks) from `draw`, after the arguments.
class Case {
 public:
  Case(const Op& op, const Choices& choices, const DrawOptions& options);

  const Op& op;
  Draw draw;
  Values args;

  /// Positions of tensors that can carry derivatives: (parameter, entry of a list or 0), floating or complex.
  struct Slot {
    int param, element;
  };
  const std::vector<Slot>& inexact() const { return inexact_; }
  /// Positions of all tensors.
  const std::vector<Slot>& tensors() const { return tensors_; }
  Tensor at(const Slot& slot) const;

  /// The operator as a function of the tensors in `slots`, the other arguments fixed; returns all results.
  Function function(std::vector<Slot> slots) const;
  /// Likewise, with integer and bool results left out.
  Function smooth_function(std::vector<Slot> slots) const;
  Tensors values(const std::vector<Slot>& slots) const;
  /// args with the tensors in `slots` replaced.
  Values with(const std::vector<Slot>& slots, const Tensors& xs) const;

  /// Tensor with the sizes and dtype of `like`, drawn: tangents and cotangents.
  Tensor direction(const Tensor& like);
  /// A non-empty subset of `slots`.
  std::vector<Slot> subset(const std::vector<Slot>& slots);

 private:
  std::vector<Slot> inexact_, tensors_;
};

/// C++ that builds `args` exactly (layouts and all), as declarations a0, a1, …: the head of every printed counterexample.
std::string cpp_declarations(const Values& args);
/// "cumsum(a0, 1)": the call in C++ with those names.
std::string cpp_call(const Op& op, const Values& args, const std::vector<std::string>& names = {});

}  // namespace lamella::verify
