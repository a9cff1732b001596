// A call in flight: which operator, pointers to the caller's arguments, and where results go. Borrowed; lives
// on the stack.
#pragma once

#include <optional>

#include "lamella/dispatch/key.h"
#include "lamella/dispatch/value.h"

LAMELLA_API_BEGIN
namespace lamella {

struct Op;
struct Frame;

namespace detail {
/// A dtype or device given as parameter i that is none of its list.
[[noreturn, gnu::cold]] void refuse_number(const Frame& frame, int i);
}  // namespace detail

inline const Tensor& undefined_tensor() {
  static const Tensor kUndefined;
  return kUndefined;
}

/// NOTE: [frames] args[i] points at the caller's value of parameter i: Tensor, TensorSpan, int64_t, Ints,
/// double, bool, Scalar, DType, std::string, FunctionRef or Device by the parameter's kind; null means None.
/// Nothing is copied and no count is touched: whatever outlives the call (tape, trace) takes its own handles.
/// Calls always have full arity: defaults are filled before.
struct Frame {
  const Op* op;
  const void* const* args;
  Tensor* results;          ///< op->schema.n_results slots
  Tensors* list = nullptr;  ///< results of operators that return Tensor[]

  bool none(int i) const { return args[i] == nullptr; }
  /// Errors dtype, device: a number that is none of the list, which every operator asks for here.
  template <class T> const T& arg(int i) const {
    const T& value = *static_cast<const T*>(args[i]);
    if constexpr (std::is_same_v<T, DType> || std::is_same_v<T, Device>)
      if (!is_valid(value)) [[unlikely]]
        detail::refuse_number(*this, i);
    return value;
  }
  template <class T> T arg_or(int i, T otherwise) const { return args[i] ? arg<T>(i) : otherwise; }
  /// Undefined when None.
  const Tensor& tensor(int i) const { return args[i] ? arg<Tensor>(i) : undefined_tensor(); }
  TensorSpan tensors(int i) const { return arg<TensorSpan>(i); }
  Ints ints(int i) const { return arg<Ints>(i); }
};

}  // namespace lamella
LAMELLA_API_END
