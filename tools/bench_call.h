// A call of an operator as text for the peer, and its attributes from text.
#pragma once

#include "bench_operand.h"

namespace lamella::tools::bench {

/// One argument: an operand, or an attribute's value.
struct Argument {
  const Param* param = nullptr;
  std::optional<Operand> operand = {};
  Value value = {};  ///< of attributes; none: left out
  bool is_default = false;
};

/// An attribute's value from text: "0", "[0,1]", "0,1", "true", "1.5", "f64", "none". Error usage, naming the
/// operator and the attribute.
Value parse_attribute(const Op& op, const Param& param, std::string_view text);
/// Error usage when the operands, the largest of which is made in f64, and results are more than the
/// machine's memory: who asks for it all the same is ended by the system, without a word.
void check_memory(const Op& op, const std::vector<Argument>& arguments, const Dims& sizes);
/// "dim=[-1]", for names of rows.
std::string shown(const Value& v);

/// What PyTorch is to run: the operators have its names, with few exceptions.
PeerText peer_text(const Op& op, const std::vector<Argument>& arguments, bool into);

}  // namespace lamella::tools::bench
