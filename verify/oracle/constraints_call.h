// A call as constraints look at it, and the small predicates they are made of.
#pragma once

#include <functional>
#include <optional>

#include "lamella/verify/oracle/constraints.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// One call, and what was found wrong with it so far.
class Questioned {
 public:
  Questioned(const Op& op, const Values& args, Seen seen) : op_(op), args_(args), seen_(seen) {}

  const Value& value(std::string_view name) const { return args_[size_t(op_.schema.find(name))]; }
  bool given(std::string_view name) const;
  /// Undefined when it is not given.
  Tensor tensor(std::string_view name) const;
  Tensors list(std::string_view name) const { return std::get<Tensors>(value(name)); }
  int64_t integer(std::string_view name) const { return std::get<int64_t>(value(name)); }
  Dims integers(std::string_view name) const { return std::get<Dims>(value(name)); }
  bool flag(std::string_view name) const { return std::get<bool>(value(name)); }
  const Scalar& scalar(std::string_view name) const { return std::get<Scalar>(value(name)); }
  bool sees_values() const { return seen_ == Seen::Values; }

  void object(std::vector<ErrorCode> codes, std::vector<std::string_view> arguments) {
    ruling.objections.push_back({std::move(codes), std::move(arguments)});
  }
  void open(std::string_view why) { ruling.open = why; }
  const Op& op() const { return op_; }
  const Values& args() const { return args_; }

  Ruling ruling;

 private:
  const Op& op_;
  const Values& args_;
  Seen seen_;
};

inline constexpr ErrorCode kShape = ErrorCode::Shape, kDType = ErrorCode::DType, kValue = ErrorCode::Value,
                           kIndex = ErrorCode::IndexOutOfRange;

using Constraint = std::function<void(Questioned&)>;
using Name = std::string_view;
using Names = std::vector<std::string_view>;

/// Kinds of dtypes, as the documentation speaks of them.
enum class Kinds : uint8_t { NotBool, Real, RealNotBool, Floating, Inexact, Complex, Factorable, U64, Bool };
bool is_of(DType d, Kinds kinds);
/// 0 bool, 1 integer, 2 floating, 3 complex: that of a result is the highest of its operands.
int kind_of(DType d);

/// Counted from either end; rank 0 has the dims 0 and -1, as in PyTorch. Nothing when out of range.
std::optional<int> place(int64_t dim, int rank);

Constraint of_kind(Name tensor, Kinds kinds);           ///< dtype
Constraint result_of_kind(Names tensors, Kinds kinds);  ///< NotBool or Real, of the promoted operands: dtype
Constraint same_dtype(Name a, Name b);                  ///< dtype
Constraint dtype_of_kind(Name dtype, Name tensor, Kinds kinds);  ///< the dtype= argument, else the tensor's
Constraint broadcasting(Names tensors);                          ///< broadcast
Constraint of_rank(Name tensor, int least, int most);            ///< shape
Constraint one_dim(Name dim, Name tensor);                       ///< dim_out_of_range
Constraint new_dim(Name dim, Name tensor);                       ///< among rank + 1 places
Constraint distinct_dims(Name dims, Name tensor);  ///< dim_out_of_range, shape for one named twice
Constraint has_dims(Name tensor, Name dim);        ///< rank 1 at least
Constraint sizes(Name size);                       ///< shape for a negative one, overflow
Constraint at_least(Name integer, int64_t least, ErrorCode code);
Constraint equal_sizes(Name a, int dim_a, Name b, int dim_b);  ///< shape; silent where a rank is too low
Constraint number_fits(Name number, Name tensor,
                       Name dtype);  ///< a complex one in a real dtype: dtype; too large: overflow
Constraint multiplier(Name alpha, Names tensors);  ///< a number of the result's kind: dtype

/// Further files' rows (constraints_matrix.cpp, constraints_places.cpp).
using Rows = std::vector<std::pair<std::string_view, std::vector<Constraint>>>;
Rows matrix_rows();
Rows place_rows();

/// Offsets of a tensor's elements in its memory, in row-major order, in elements of its dtype.
std::vector<int64_t> offsets_of(Ints sizes, Ints strides, int64_t offset);
/// The elements of an integer tensor in row-major order.
std::vector<int64_t> integers_of(const Tensor& t);

}  // namespace lamella::verify
LAMELLA_API_END
