// One case of a pack: a call with its arguments, and the names of what it should give.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>

#include "lamella/dispatch/value.h"

#include "safetensors.h"

namespace lamella::tools {

/// A call that the library has no words for: a keyword the operator lacks, a list of floats. Not a refusal.
class NotExpressible : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A pack that does not follow its format: neither a verdict on the library nor a refusal by it.
class MalformedPack : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An argument; positional ones have no name.
struct PackArgument {
  std::string name;
  Value value;
};
using PackArguments = std::vector<PackArgument>;

/// Where a tensor stands: which argument, and which element of it when that is a list (else -1).
struct PackSlot {
  size_t argument;
  int element;
};

struct PackCase {
  PackArguments args;
  std::vector<PackSlot> differentiable;  ///< tensors with "grad": true, in order
  std::vector<std::string> outputs;
  bool must_raise = false;
  bool has_vjp = false;
  std::vector<std::optional<std::string>> cotangents;  ///< per output; none: not differentiable
  std::vector<std::optional<std::string>> grads;       ///< per differentiable tensor; none: no gradient

  Tensors inputs() const;
  /// args with the differentiable tensors replaced.
  PackArguments with(const Tensors& xs) const;
};

/// Reads a case. Errors: NotExpressible, MalformedPack, and make_tensor's.
PackCase parse_case(const nlohmann::json& text, const SafetensorsReader& file);

}  // namespace lamella::tools
