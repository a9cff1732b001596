// What shape functions share: broadcasting, promotion, dims. All work on sizes and dtypes alone.
#pragma once

#include "lamella/dispatch/call.h"

LAMELLA_API_BEGIN
namespace lamella::ops {

/// Sizes all of `shapes` broadcast to. Error broadcast names the operator and both types.
Dims broadcast(const Frame& frame, std::span<const Tensor* const> tensors);
/// Non-negative dim; rank 0 counts as rank 1. Error dim_out_of_range: "cumsum: dim = 3 is out of range for x:
/// f32[2,3]; expected -2 <= dim < 2".
int64_t wrap_dim(const Frame& frame, std::string_view arg, int64_t dim, const Tensor& x);
int64_t wrap_dim_of_rank(const Frame& frame, std::string_view arg, int64_t dim, int rank);
/// Sorted, distinct, non-negative; all dims when `dims` is None or, if `empty_is_all`, empty. Errors:
/// dim_out_of_range, duplicate.
Dims wrap_dims(const Frame& frame, std::string_view arg, std::optional<Ints> dims, const Tensor& x,
               bool empty_is_all = true);

/// PyTorch's result type: tensors with dims, then rank-0 tensors, then numbers; a lower group counts only by
/// a higher category.
DType result_type(std::span<const Tensor* const> tensors);
DType default_float(
    DType d);  ///< floating and complex as they are; integers and bool become the thread's default dtype

/// Class shape functions.
void infer_broadcast(const Frame&, Inferred&);   ///< out dtype = compute = result type
void infer_float(const Frame&, Inferred&);       ///< integers and bool promote to the default dtype
void infer_real_float(const Frame&, Inferred&);  ///< likewise; complex numbers are refused
void infer_compare(const Frame&, Inferred&);     ///< out bool, compute = result type
void infer_same(const Frame&, Inferred&);        ///< one out like the first tensor argument

/// Sum/amax-like: dims in parameter `dim` (Dim, Dim[] or None), `keepdim`. inferred.ints = the reduced dims.
void infer_reduce(const Frame& frame, Inferred& out, DType result, DType compute);
/// The frame's argument by name; the parameter must exist.
int param(const Frame& frame, std::string_view name);
/// "x", "b": the schema's name of the first tensor parameter and of parameter i.
inline const std::string& arg_name(const Frame& frame, int i) {
  return frame.op->schema.params[size_t(i)].name;
}
/// The functional operator's name: what error texts begin with, also for name_ and name_out.
inline const std::string& op_name(const Frame& frame) { return frame.op->base->name; }

}  // namespace lamella::ops
LAMELLA_API_END
