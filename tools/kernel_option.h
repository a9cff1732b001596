// Choosing kernels by name: --kernel OP=NAME of several commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command_line.h"

namespace lamella::tools {

/// Adds --kernel to a command; choose_kernels(given) is to be called after plug-ins are loaded.
void add_kernel_option(CommandLine& app, std::vector<std::string>& given);

/// Makes these what calls on the CPU run: "mm=own", or, of a composite or a kernel that several operators
/// launch, "matmul=own". Errors: usage for a text without "=", an operator that has no alternatives (listing
/// those that have) and a name that is none of its (listing them); unknown_operator.
void choose_kernels(const std::vector<std::string>& given);

/// Operators whose columns of the CPU `name` stands for; none where nothing has alternatives.
std::vector<std::string> operators_with_kernels(std::string_view name);
/// Names of a column's alternatives, the library's "built_in" first; that alone where there is no column.
std::vector<std::string> kernels_of(std::string_view name);
/// The one that calls run.
std::string chosen_kernel(std::string_view name);
/// For all operators that `name` stands for and that have the alternative.
void choose_kernel(std::string_view name, const std::string& kernel);

}  // namespace lamella::tools
