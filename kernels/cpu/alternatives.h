// Second texts of kernels by family, for the list in alternatives.cpp.
#pragma once

#include "lamella/kernels/kernels.h"

namespace lamella::kernels::alternatives {

/// Whether a view has no gaps and its rows follow each other.
bool is_dense(const View& v);
/// Whether result and operand are dense, of one dtype and as long as each other.
bool same_dense(const KernelCall& call);

// What they do not take (other dtypes, other layouts) they leave to the kernel.
void softmax_online(const KernelCall& call);
void softmax_three_pass(const KernelCall& call);
void sum_pairwise(const KernelCall& call);
void sum_plain(const KernelCall& call);

}  // namespace lamella::kernels::alternatives
