// What composites are by definition: shapes and dtypes of results, and the plain loops that compute them.
#pragma once

#include "lamella/dispatch/table.h"
#include "lamella/kernels/definitions.h"

namespace lamella::ops::definition {

// NOTE: [definitions of composites] A composite runs other operators, on every column the same ones. Its row
// states besides what it is: `infer`, written from the operator's doc without the composite's code, and a
// kernel of the reference column. Composites whose results share no memory with x run it there; the oracle
// runs it for all. The row of an operator whose elements are unspecified has a shape alone.

/// An operator whose results are made element by element, from those of its tensors and its numbers: `F`
/// takes pointers to them in f128, and where it is written for any type in c256 and uint64_t, too. With the
/// row's `launch = run_elements`.
template <class F> Kernels by_elements(const StatedTypes& stated, F) {
  using kernels::reference::ElementFns;
  return {.reference =
              [](const KernelCall& call) {
                ElementFns fns;
                fns.real = [](const f128* x, const f128* numbers) -> f128 { return F{}(x, numbers); };
                if constexpr (std::is_invocable_v<F, const c256*, const c256*>) {
                  fns.complex = [](const c256* x, const c256* numbers) -> c256 { return F{}(x, numbers); };
                  fns.integer = [](const uint64_t* x, const uint64_t* numbers) -> uint64_t {
                    return F{}(x, numbers);
                  };
                }
                kernels::reference::each_element(call, fns);
              },
          .stated = stated};
}
/// All tensors of the frame, broadcast to the result, and all its numbers, in the schema's order.
void run_elements(const Launch& l);
/// An operator that moves elements: `F` turns the index of one in the result into that of its source.
template <class F> Kernels by_places(F) {
  return {.reference =
              [](const KernelCall& call) {
                kernels::reference::moved(call,
                                          [](int64_t* at, Ints sizes, Ints ints) { F{}(at, sizes, ints); });
              },
          .stated = {.result = StatedTypes::Result::First}};
}
void run_places(const Launch& l);  ///< x and the ints that were inferred

void shape_of_same(const Frame& f, Inferred& out);  ///< x's sizes and dtype
void shape_of_real(const Frame& f, Inferred& out);  ///< x's sizes, the dtype of its parts
void shape_of_reshape(const Frame& f, Inferred& out);
void run_copy(const Launch& l);       ///< contiguous, reshape, real
void run_conjugate(const Launch& l);  ///< conj

void shape_of_stack(const Frame& f, Inferred& out);
void run_stack(const Launch& l);
void shape_of_split(const Frame& f, Inferred& out);
void shape_of_split_with_sizes(const Frame& f, Inferred& out);

void shape_of_mean(const Frame& f, Inferred& out);
void shape_of_var(const Frame& f, Inferred& out);
void run_var(const Launch& l);
void shape_of_sum_to_size(const Frame& f, Inferred& out);
void shape_of_layer_norm(const Frame& f, Inferred& out);
void shape_of_native_layer_norm(const Frame& f, Inferred& out);
void run_layer_norm(const Launch& l);
void shape_of_matmul(const Frame& f, Inferred& out);
void shape_of_cholesky(const Frame& f, Inferred& out);
void shape_of_split_key(const Frame& f, Inferred& out);

}  // namespace lamella::ops::definition
