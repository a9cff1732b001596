// The rows of `lamella bench --suite`.
#pragma once

#include "bench_run.h"

namespace lamella::tools::bench {

/// Single operators at sizes where memory, arithmetic or the call itself decides, and programs under
/// transforms.
std::vector<Item> suite_items();
/// The same for one question; alternatives: all that the operator has, if `all_kernels`.
Item item_of(const Asked& asked, bool all_kernels);

}  // namespace lamella::tools::bench
