// The list of operator families; the table is built from it on the first call.
#pragma once

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Makes the built-in operators known to dispatch; idempotent. The typed API calls it before main.
bool install_operators();

namespace ops {
void define_pointwise_unary();
void define_pointwise_binary();
void define_pointwise_other();
void define_rounding();
void define_pointwise_math();
void define_pointwise_composite();
void define_compare();
void define_complex();
void define_reduce();
void define_scan();
void define_along_dim();
void define_contract();
void define_linalg();
void define_view();
void define_view_scatter();
void define_strided();
void define_join();
void define_index();
void define_factory();
void define_random();
void define_copy();
void define_devices();
void define_norm();
void define_var();
void define_layout();
}  // namespace ops
}  // namespace lamella
LAMELLA_API_END
