// Columns of the CPU by name, for the command line.
#include "kernel_option.h"

namespace lamella::tools {

void add_kernel_option(CommandLine& app, std::vector<std::string>& given) {
  app.add_option("--kernel", given,
                 "OP=NAME: run this alternative of the operator on the CPU (`lamella bench OP` compares "
                 "them); repeatable")
      ->allow_extra_args(false);
}

void choose_kernels(const std::vector<std::string>& given) { lamella::choose_kernels("--kernel", given); }

}  // namespace lamella::tools
