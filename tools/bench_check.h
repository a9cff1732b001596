// Right before fast: what an alternative gives on the timed inputs beside the oracle, and a sample of the
// laws.
#pragma once

#include <csignal>

#include "bench_work.h"

namespace lamella::tools::bench {

/// What results are compared with: the Reference column where that takes a moment, else the same operator's
/// built-in kernels in a wider dtype, else these kernels themselves.
struct Witness {
  std::string name;  ///< "reference", "f64", "built_in"
  Tensors want;
  Tensors sizes;     ///< for what adds: the operator at |x|, which its rounding errors are measured by
  double terms = 1;  ///< that one result is made of
};
/// To be asked while calls run the library's own kernel.
Witness witness_of(const Work& work);

struct Judgement {
  double roundings =
      0;              ///< the largest error, in roundings of the result (for sums: of the sum of magnitudes)
  std::string wrong;  ///< empty, or the element, both numbers and what was allowed
};
/// `built_in`: the error of the library's own kernel, of which another one may have some more.
Judgement judge(const Work& work, const Witness& witness, const Tensors& got, double built_in);

/// Runs the laws for so long on the operator as it is now chosen, in a process of its own; what is wrong: the
/// law, its message and a program. Empty where nothing is.
std::string broken_law(const std::string& op, double seconds, const volatile std::sig_atomic_t& stop);

}  // namespace lamella::tools::bench
