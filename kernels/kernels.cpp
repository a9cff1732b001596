// The table of kernels: the CPU's, each with the oracle's text of the same name.
#include <algorithm>
#include <iterator>

#include "lamella/core/check.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels {
namespace {

std::vector<Kernel> of_the_cpu() {
  std::vector<Kernel> all = cpu::pointwise_kernels();
  std::ranges::copy(cpu::fold_kernels(), std::back_inserter(all));
  for (const auto& texts :
       {cpu::argmax_kernels(), cpu::factory_kernels(), cpu::gather_kernels(), cpu::linalg_kernels(),
        cpu::matmul_kernels(), cpu::move_kernels(), cpu::nonzero_kernels(), cpu::norm_kernels(),
        cpu::random_kernels(), cpu::scan_kernels(), cpu::softmax_kernels(), cpu::sort_kernels(),
        cpu::var_kernels()}) {
    for (const Text& text : texts) all.push_back({.name = text.name, .cpu = text.run});
  }
  return all;
}

std::vector<Kernel> joined() {
  std::vector<Kernel> all = of_the_cpu();
  for (const auto& texts :
       {reference::along_dim_texts(), reference::arithmetic_texts(), reference::comparison_texts(),
        reference::contract_texts(), reference::elementary_texts(), reference::factory_texts(),
        reference::index_texts(), reference::linalg_texts(), reference::reduce_texts(),
        reference::rounding_texts(), reference::scan_texts()}) {
    for (const Text& text : texts) {
      const auto at = std::ranges::find(all, text.name, &Kernel::name);
      if (at == all.end()) fail(ErrorCode::Internal, "the oracle alone has a kernel {}", text.name);
      at->reference = text.run, at->operands = text.takes, at->result = text.result;
      at->refuses_zero = text.refuses_zero;
    }
  }
  return all;
}

}  // namespace

const std::vector<Kernel>& all_kernels() {
  static const std::vector<Kernel> all = joined();
  return all;
}

const Kernel& named(std::string_view name) {
  const std::vector<Kernel>& all = all_kernels();
  const auto at = std::ranges::find(all, name, &Kernel::name);
  if (at == all.end()) fail(ErrorCode::Internal, "no kernel has the name {}", name);
  return *at;
}

}  // namespace lamella::kernels
