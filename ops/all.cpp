// The list of families, in the order of their rows.
#include "lamella/ops/all.h"

#include "lamella/dispatch/table.h"
#include "lamella/ops/alternatives.h"
#include "lamella/ops/structured.h"

namespace lamella {

namespace ops {
static void define_all() {
  define_pointwise_unary();
  define_pointwise_binary();
  define_pointwise_other();
  define_compare();
  define_complex();
  define_reduce();
  define_scan();
  define_along_dim();
  define_contract();
  define_linalg();
  define_view();
  define_view_scatter();
  define_strided();
  define_join();
  define_index();
  define_factory();
  define_random();
  define_copy();
  define_devices();
  define_norm();
  define_var();
  define_layout();
  define_rounding();
  define_pointwise_math();
  define_pointwise_composite();
  choose_kernels_of_environment();
}
}  // namespace ops

bool install_operators() {
  static const bool done = [] {
    ops::install_class_hooks();
    set_builtin_operators(ops::define_all);
    return true;
  }();
  return done;
}

}  // namespace lamella
