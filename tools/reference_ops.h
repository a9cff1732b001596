// From a pack's names and argument conventions (PyTorch's) to operators of the table.
#pragma once

#include "lamella/dispatch/call.h"

#include "reference_case.h"

namespace lamella::tools {

/// An operator of the pack as the library has it.
class PackOperator {
 public:
  /// By PyTorch's name ("nn.functional.softmax") and the pack's variant ("" for most).
  PackOperator(const std::string& name, const std::string& variant);

  /// Null when the library lacks it.
  const Op* op() const { return op_; }
  /// Calls it, or its out= form when there is an argument "out". Errors: NotExpressible, and whatever the
  /// operator raises.
  Tensors operator()(const PackArguments& args) const;
  /// At full arity, without "out". Errors likewise, and those of boxed calls.
  Values arguments(const PackArguments& args) const;

 private:
  using Named = std::vector<std::pair<std::string, Value>>;
  Named bind(const PackArguments& args) const;
  Value fitted(const Param& param, Value value, const PackArguments& all) const;

  const Op* op_ = nullptr;
  std::string_view signature_;  ///< of the table's row; empty: the schema's own
};

}  // namespace lamella::tools
