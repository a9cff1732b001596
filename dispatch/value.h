// A boxed argument: what `call("cumsum", args)`, tapes and plug-ins pass when types are known only at run
// time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "lamella/core/tensor.h"
#include "lamella/dispatch/given.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Tensors to tensors: what transforms take and give.
using Function = std::function<Tensors(const Tensors&)>;
/// An argument that is a function; counted, since tapes keep it.
using FunctionRef = std::shared_ptr<const Function>;

using Value = std::variant<std::monostate, Tensor, Tensors, int64_t, Dims, double, bool, Scalar, DType,
                           std::string, FunctionRef, Device>;
using Values = std::vector<Value>;

inline bool is_none(const Value& v) { return std::holds_alternative<std::monostate>(v); }
/// "f32[2,3]", "1", "[0,1]", "None", "\"floor\"", "a function": how error texts and traces show an argument.
std::string str(const Value& v);

/// A list of tensors as typed calls take it. Borrows.
class TensorArg : public TensorSpan {
 public:
  TensorArg(TensorSpan v) : TensorSpan(v) {}
  TensorArg(const Tensors& v) : TensorSpan(v.data(), v.size()) {}
  TensorArg(std::initializer_list<Tensor> v) : TensorSpan(v.begin(), v.size()) {}
};

}  // namespace lamella
LAMELLA_API_END
