// Operator schemas: "sum(Tensor x, Dim[]? dim=None, bool keepdim=False) -> Tensor".
#pragma once

#include <string>
#include <vector>

#include "lamella/dispatch/value.h"

LAMELLA_API_BEGIN
namespace lamella {

enum class ParamKind : uint8_t {
  Tensor,
  TensorList,
  Int,
  Ints,
  Float,
  Bool,
  Scalar,
  DType,
  String,
  Function,
  Device
};

/// What a number means to shape classes: a Dim names a logical dimension (batch rules shift it), a Size is a
/// logical shape (batch rules prefix it), Plain is neither. A Rule is a function that a derivative calls:
/// what it captures is a constant to the levels that differentiate. NOTE: [callables] in dispatch/state.h.
enum class ParamRole : uint8_t { Plain, Dim, Size, Rule };

struct Param {
  std::string name;
  ParamKind kind = ParamKind::Tensor;
  ParamRole role = ParamRole::Plain;
  bool optional = false;
  bool mutated = false;  ///< Tensor(a!)
  bool keyword_only = false;
  bool has_default = false;
  Value default_value;
};

enum class ResultKind : uint8_t { Tensors, TensorList };

struct Schema {
  std::string name;
  std::vector<Param> params;
  ResultKind result_kind = ResultKind::Tensors;
  int n_results = 1;           ///< for Tensors; 0 for "()"
  bool returns_alias = false;  ///< Tensor(a): a view of the first tensor argument

  /// Index of the parameter, or -1.
  int find(std::string_view param) const;
};

/// Grammar: docs/schema.md. Error schema names the position and what was expected.
Schema parse_schema(std::string_view text);
/// Inverse of parse_schema: parse(print(s)) == s.
std::string str(const Schema& schema);
std::string str(const Param& param);

}  // namespace lamella
LAMELLA_API_END
