// Choosing kernels by name: --kernel OP=NAME of several commands.
#pragma once

#include <string>
#include <vector>

#include "lamella/ops/alternatives.h"

#include "command_line.h"

namespace lamella::tools {

/// Adds --kernel to a command; choose_kernels(given) is to be called after plug-ins are loaded.
void add_kernel_option(CommandLine& app, std::vector<std::string>& given);

/// Makes these what calls on the CPU run. Errors: as lamella::choose_kernels.
void choose_kernels(const std::vector<std::string>& given);

}  // namespace lamella::tools
