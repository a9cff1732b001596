// What planted bugs are made of: the right row beside the wrong one, formulas replaced, values without their
// history.
#pragma once

#include "lamella/dispatch/bind.h"
#include "lamella/mutate/museum/museum.h"
#include "lamella/ops/batch.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/view.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// The exhibits of one kind.
struct Wing {
  std::vector<Exhibit>& list;
  std::string_view kind;
  void add(std::string_view id, std::string_view source, std::string_view op, std::string_view law,
           void (*plant)(Op&), std::string_view summary, OpForm form = OpForm::Functional,
           std::string_view row = {}) const {
    list.push_back({id, kind, source, summary, op, law, plant, form, row});
  }
};

/// The published row of a name, and of a wrong row.
const Op& right(std::string_view name);
const Op& right_of(const Op& wrong);

/// The right batch rule of the operator of `b`, and its right cell; lower levels see the wrong row again.
void right_rule(BatchCall& b);
void right_cell(Frame& f, int key);
/// The right rule with the mapped dims of some arguments mistaken.
void rule_with_dims(BatchCall& b, int (*mistaken)(const BatchCall&, int param));

/// The conjugate transpose of the last two dims.
inline Tensor adjoint(const Tensor& x) { return conj(transpose(x, -2, -1)); }

/// In place of the formula for the same input.
void set_jvp(Op& row, const Formula& formula);
void set_vjp(Op& row, const Formula& formula);
/// Puts a cell at every level.
template <Cell C> void at_levels(Op& row) {
  for (int key = kFirstLevelKey; key < kKeyCount; ++key) row.cells[key] = C;
}
template <Device D, Cell C> void on(Op& row) { row.cells[int(D)] = C; }
/// Puts a value in a field: put<&Op::batch, second_not_moved>.
template <auto Field, auto Value> void put(Op& row) { row.*Field = Value; }
template <KernelFn K> void put_kernel(Op& row) {
  row.kernel.cpu = K;
  row.kernel.lines = {};  // small tensors take the kernel too
}

/// "vmap", "grad", "jvp": what lives at a level.
std::string_view transform_at(int key);
/// The wrapper of a tensor at a level, or null.
Wrapper* wrapper_of(const Tensor& t, int key);
/// `t` without what levels of derivatives know of it (only levels of one transform, when named).
Tensor constant(const Tensor& t, std::string_view transform = {});
/// Whether any element below all levels is zero.
bool has_zero(const Tensor& t);
/// A dim from the front.
inline int64_t from_front_dim(int64_t dim, int rank) { return dim < 0 ? dim + rank : dim; }
/// The call one level down, on what the wrappers hold.
void call_unwrapped(Frame& f, int key);

}  // namespace lamella::verify
LAMELLA_API_END
