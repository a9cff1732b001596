// Types of tensors that keep data of their own: layouts (sparse, quantized) and users' wrapper types.
#pragma once

#include <string>

#include "lamella/core/layout.h"
#include "lamella/dispatch/frame.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [types] A type takes one of the keys 6 to 14 for good: its tensors outlive scopes, need no live
/// transform, and may require grad or be wrapped by levels, which all lie above. A call that has one among
/// its arguments, and is not taken by a level or base autograd first, reaches the type with the highest key,
/// so one that derives from another is asked before it. There the precedence of NOTE: [columns] holds; the
/// fallback of every type is
///   1. `handle`: it runs the operator and returns true, or it returns false: not mine, the next type is
///   asked,
///   2. `to_strided`: the arguments are made ordinary tensors, and the operator runs on those; counted,
///   3. an error that names the types that declined.
/// Composites are taken apart before a fallback is asked. Where a type wants other derivatives than those of
/// the operators (the gradient of a sparse operand is sparse), it has rules of its own: OpTable::set_rules.
struct TensorType {
  std::string name;
  bool (*handle)(Frame& frame, int key) = nullptr;
  /// The same values as an ordinary tensor, of the same sizes and dtype: what makes every operator work on a
  /// layout, slowly. Null for types that are more than their values, as a quantity is more than a number.
  /// Calls raise value where it gives anything else.
  Tensor (*to_strided)(const Tensor& t) = nullptr;
  /// The other way, for to_layout, with the same error; null: there is none.
  Tensor (*from_strided)(const Tensor& t) = nullptr;
  int derives_from = -1;       ///< key of another type
  std::string_view from = {};  ///< who registered it (ScopedOrigin); add_tensor_type says it
};

/// The key of a new type, one for which nobody has registered cells. Thread-safe. Errors schema: a name that
/// exists (then both origins are named), neither `handle` nor `to_strided`, a type to derive from that there
/// is not, no key left.
int add_tensor_type(TensorType type);
/// Null when no type has the key.
const TensorType* tensor_type(int key);
/// -1 when there is none.
int find_tensor_type(std::string_view name);
/// Empty when no type has the key.
std::string_view type_name(int key);
/// Whether a tensor of type `key` is one of type `ancestor`.
bool is_derived(int key, int ancestor);

/// For cells of a type: hands the call on to the next type among the arguments, as `handle` does by false.
void not_mine(Frame& frame, int key);

namespace detail {
/// What the type's from_strided makes of `value`; error value where that is no such tensor.
Tensor laid_out(const TensorType& type, const Tensor& value);
}  // namespace detail

/// How many calls ran on `to_strided` of their arguments since the program began, on this thread.
int64_t strided_fallbacks();

}  // namespace lamella
LAMELLA_API_END
