// What composites are by definition: shapes and dtypes of results, and the plain loops that compute them.
#pragma once

#include "lamella/dispatch/table.h"
#include "lamella/kernels/definitions.h"

namespace lamella::ops::definition {

// NOTE: [definitions of composites] A composite runs other operators, on every column the same ones. Its row
// states besides what it is: `infer`, written from the operator's doc without the composite's code, and a
// kernel of the reference column. Composites whose results share no memory with x run it there; the oracle
// runs it for all. The row of an operator whose elements are unspecified has a shape alone.

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
