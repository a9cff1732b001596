// How kernels become a table: each text says its names where it is written.
#pragma once

#include <span>

#include "lamella/kernels/kernels.h"

namespace lamella::kernels {

/// A kernel's text on one device. The oracle's states dtypes where verify's lists do not name the operator.
struct Text {
  std::string_view name;
  KernelFn run;
  Takes takes = Takes::All;
  Result result = Result::Unsaid;
  bool refuses_zero = false;  ///< an integer 0 as the second operand
};
using Texts = std::span<const Text>;

/// All kernels, those of bodies first, in the order of bodies/all.h.
const std::vector<Kernel>& all_kernels();

// A file of kernels states its own, as a family of operators does (ops/all.cpp).
namespace cpu {
std::vector<Kernel> pointwise_kernels();  ///< by row of bodies/all.h
std::vector<Kernel> fold_kernels();       ///< likewise
Texts argmax_kernels();
Texts factory_kernels();
Texts gather_kernels();
Texts linalg_kernels();
Texts matmul_kernels();
Texts move_kernels();
Texts nonzero_kernels();
Texts norm_kernels();
Texts random_kernels();
Texts scan_kernels();
Texts softmax_kernels();
Texts sort_kernels();
Texts var_kernels();
}  // namespace cpu

namespace reference {
Texts along_dim_texts();
Texts comparison_texts();
Texts contract_texts();
Texts factory_texts();
Texts index_texts();
Texts linalg_texts();
Texts arithmetic_texts();
Texts elementary_texts();
Texts reduce_texts();
Texts rounding_texts();
Texts scan_texts();
}  // namespace reference

}  // namespace lamella::kernels
