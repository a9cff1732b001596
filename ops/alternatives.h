// The library's further kernels, as alternatives of columns; and choosing kernels by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Adds the library's second kernels (docs/bench.md lists them) to the CPU columns of the operators that have
/// the first ones. What calls run stays what it was, and so does what a plug-in has there under such a name.
/// Idempotent. Not done at start: a table without them is what laws of registrations are about. Errors: none
/// of its own.
void add_alternatives();

/// Makes kernels what calls on the CPU run: "softmax=online" of an operator; of a composite or of a kernel
/// that several operators launch, "matmul=own" of each of them. Adds the library's first, if any are given.
/// `option` is who asks, for errors. Errors usage: a text without "=", what has no alternatives (listing what
/// has), a name that is none of its (listing them).
///
/// LAMELLA_KERNEL in the environment ("matmul=own,softmax=online") does so for every program at its first
/// call, which raises the errors. A plug-in's kernels are not there yet then.
void choose_kernels(std::string_view option, const std::vector<std::string>& given);

/// Operators whose columns of the CPU a call of `op` runs, by a choice: its own, or, of a composite, those
/// that launch the kernel of its name. None where nothing has alternatives.
std::vector<std::string> operators_with_kernels(std::string_view op);
/// Names of the alternatives, "built_in" first; that alone where there is no column.
std::vector<std::string> kernels_of(std::string_view op);
/// The one that calls run.
std::string chosen_kernel(std::string_view op);
/// For all of operators_with_kernels(op) that have the alternative.
void choose_kernel(std::string_view op, const std::string& kernel);

namespace ops {
void choose_kernels_of_environment();
}

}  // namespace lamella
LAMELLA_API_END
