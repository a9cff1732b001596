// One decoded case: an operator with valid arguments, drawn from a vector of choices. Total: every vector
// decodes.
#pragma once

#include <string>
#include <vector>

#include "lamella/dispatch/call.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/jvp.h"
#include "lamella/transforms/vmap.h"
#include "lamella/verify/case/decoder.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

using Choices = std::vector<uint32_t>;

/// Arguments are at full arity. Laws draw what else they need (tangents, in_dims, stacks) from `draw`, after
/// the arguments.
class Case {
 public:
  /// REQUIRES: the choices live as long: whoever draws on reads them.
  Case(const Op& op, const Choices& choices, const DrawOptions& options, const Tail& tail = {});
  Case(const Op& op, Choices&& gone, const DrawOptions& options, const Tail& tail = {}) = delete;
  /// Of whoever else draws; another case may have been drawn from it before.
  /// REQUIRES: `from` lives as long.
  Case(const Op& op, Draw& from);
  Case(Case&& from) noexcept;

  const Op& op;

 private:
  Decoder own_;

 public:
  Draw& draw;
  Values args;

  /// Positions of tensors that can carry derivatives: (parameter, entry of a list or 0), floating or complex.
  struct Slot {
    int param, element;
  };
  const std::vector<Slot>& inexact() const { return inexact_; }
  /// Positions of all tensors.
  const std::vector<Slot>& tensors() const { return tensors_; }
  /// Finds both anew: `args` were changed.
  void find_tensors();
  const Tensor& at(const Slot& slot) const;
  /// Words of its choices that were read.
  size_t used() const { return own_.used(); }

  /// The operator as a function of the tensors in `slots`, the other arguments fixed; returns all results.
  Function function(std::vector<Slot> slots) const;
  /// Likewise, with integer and bool results left out.
  Function smooth_function(std::vector<Slot> slots) const;
  Tensors values(const std::vector<Slot>& slots) const;
  /// args with the tensors in `slots` replaced.
  Values with(const std::vector<Slot>& slots, const Tensors& xs) const;

  /// Tensor with the sizes, dtype and device of `like`, drawn: tangents and cotangents.
  Tensor direction(const Tensor& like);
  /// An operator of `among`, by name: a record that names it means the same case whatever is registered
  /// later. Error value when a recorded one is not among them.
  const Op& partner(const std::vector<const Op*>& among);
  std::vector<std::string> partners;        ///< drawn so far
  std::vector<std::string> given_partners;  ///< of a record: to be taken first
  /// A non-empty subset of `slots`.
  std::vector<Slot> subset(const std::vector<Slot>& slots);

 private:
  void note_dtype() const;

  std::vector<Slot> inexact_, tensors_;
};

/// The tensor in that slot.
Tensor& entry(Values& args, const Case::Slot& slot);

/// C++ that builds `args` exactly (layouts and all), as declarations a0, a1, …: the head of every printed
/// counterexample.
std::string cpp_declarations(const Values& args);
/// Likewise for tensors of a law's own under the names it gives: tangents, cotangents, results wanted.
std::string cpp_tensor(const std::string& name, const Tensor& t);
/// `call("cumsum", {a0, int64_t{1}})`, of type Tensors: the call in C++; `names` replace a0, a1, … in order.
std::string cpp_call(const Op& op, const Values& args, const std::vector<std::string>& names = {});
/// A lambda of the tensors in `slots`, as Case::function (or smooth_function) is: "[&](const Tensors& xs) { …
/// }".
std::string cpp_function(const Case& c, const std::vector<Case::Slot>& slots, bool smooth = false);
/// a0, a1, … of the tensors in `slots`.
std::vector<std::string> cpp_names(const Case& c, const std::vector<Case::Slot>& slots);
/// "{a, b}"
std::string cpp_list(const std::vector<std::string>& names);
/// A whole translation unit around the body of main().
std::string cpp_program(const std::string& body);

/// An own contiguous copy on the same device; no operator is called.
Tensor plain_copy(const Tensor& t);
/// The same without elements, on Meta, where shape functions and checks are all that runs.
Tensor to_meta(const Tensor& t);
Values to_meta(const Values& args);
/// An own copy with the same strides (repeated elements stay repeated) and nothing around it.
Tensor strided_copy(const Tensor& t);
/// Calls f(offset in elements) for the elements in row-major order.
template <class F> void each_element(const Tensor& t, F&& f) {
  if (t.is_contiguous()) {
    for (int64_t i = 0; i < t.numel(); ++i) f(i);
    return;
  }
  const int last = t.rank() - 1;
  const int64_t n = t.numel(), row = t.size(last), step = t.stride(last);
  Dims at(t.rank());
  for (int64_t done = 0, begin = 0; done < n; done += row) {
    for (int64_t i = 0; i < row; ++i) f(begin + i * step);
    for (int d = last - 1; d >= 0; --d) {
      begin += t.stride(d);
      if (++at[d] < t.size(d)) break;
      begin -= at[d] * t.stride(d);
      at[d] = 0;
    }
  }
}

}  // namespace lamella::verify
LAMELLA_API_END
