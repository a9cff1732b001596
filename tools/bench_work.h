// What is timed: an operator on arguments that were made for it, or a program of several.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lamella/dispatch/op.h"

namespace lamella::tools::bench {

/// The loop, written by hand, that moves the same bytes (or computes as much): its time is the limit.
enum class Loop : uint8_t { None, Read, Write, Copy, Add, Fma };

/// The same for the peer, as Python; empty: it has none.
struct PeerText {
  std::string setup, call;
  std::string into;  ///< the call with out=, to be taken where it works; empty: there is none
};

struct Work {
  std::string name;          ///< "sum f32[2048,2048] dim=[-1]"
  std::string family;        ///< what is the same at all sizes: rows of one drawing on the page
  const Op* op = nullptr;    ///< the functional row; null: a program
  Values args;               ///< of the operator, at full arity
  double elements = 0;       ///< of the largest operand or result
  double bytes = 0;          ///< read and written, each once; broadcast elements are not repeated
  double flops = 0;          ///< 0: it is about bytes
  DType dtype = DType::F32;  ///< of the arithmetic
  Loop loop = Loop::None;
  std::function<void()> run;         ///< one call
  std::function<Tensors()> results;  ///< what one call gives, for comparison; null: nothing is compared
  std::string against;               ///< the name of the work that this one's time is shown beside
  PeerText peer;
};

enum class Layout : uint8_t { Contiguous, Transposed, Stepped, Row, Column };
/// "contiguous", "transposed", "stepped", "broadcast" (one row for all), "column" (likewise).
std::optional<Layout> layout_of(std::string_view name);
std::string_view name(Layout layout);

/// What the command line or the suite asks for.
struct Asked {
  std::string op;
  Dims sizes;  ///< of the first operand; products take n as n x n
  DType dtype = DType::F32;
  Layout layout = Layout::Contiguous;  ///< of the last operand that has these sizes
  bool into = true;          ///< out= where there is such a form: pages are warm, nothing is allocated
  DType index = DType::I64;  ///< dtype of index tensors
  std::vector<std::pair<std::string, std::string>> set = {};  ///< attributes: {"dim", "0"}
};

/// Makes the arguments (the same for the same question) and calls it once. Errors: unknown_operator; usage
/// for sizes or a layout that do not fit, and attributes that it does not have; what the operator raises.
Work work_of(const Asked& asked);

/// "2^20" -> {1048576}; "2048x2048" -> {2048,2048}. Error usage.
Dims parse_sizes(std::string_view text);

}  // namespace lamella::tools::bench
