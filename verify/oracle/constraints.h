// What an operator takes: a specification of its own, written from PyTorch's documentation and from what
// `doc` promises beside it. It uses none of the library's checks, shape functions or promotion.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lamella/dispatch/op.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Why a call is to be refused: any of these codes, in a text that names one of these arguments.
struct Objection {
  std::vector<ErrorCode> codes;
  std::vector<std::string_view> arguments;
};

/// What the specification says of a call. Where several things are wrong, any of them may be what is raised.
struct Ruling {
  std::vector<Objection> objections;
  std::string_view open;  ///< why nothing is promised; empty: something is
  bool refuses() const { return !objections.empty(); }
  bool accepts() const { return objections.empty() && open.empty(); }
  /// What is wrong with this refusal of `op` (the functional row); empty when it fits.
  std::string unfit(const Op& op, ErrorCode code, const std::string& text) const;
  /// "[shape] index or x; [dtype] src"
  std::string str() const;
};

/// Whether elements can be seen: under a vmap of no lanes there are none.
enum class Seen : uint8_t { Shapes, Values };

/// For full-arity arguments of the right kinds, on any device. Nothing is promised of operators that the
/// specification does not know (plug-ins').
Ruling ruling(const Op& op, const Values& args, Seen seen = Seen::Values);
/// Every operator of the library has some, if only "whatever tensors there are".
bool has_constraints(std::string_view op);

/// Whether one call may write a result of these sizes and dtype to `target` (named `argument`), besides what
/// ruling() says of its arguments. `args` may share memory with it.
Ruling writing(const Op& op, const Tensor& target, std::string_view argument, const Shape& result,
               const Values& args);

}  // namespace lamella::verify
LAMELLA_API_END
