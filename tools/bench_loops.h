// The limits: what a person would write by hand to move the same bytes, or to multiply and add at full rate.
#pragma once

#include <memory>

#include "bench_work.h"

namespace lamella::tools::bench {

/// A loop over memory of its own, of so many bytes altogether, warm after the first call. Of several ways
/// (stores that pass the caches by, or not) each is one; the quickest is the limit. Loop::Fma: `bytes` is the
/// number of operations, of `dtype` f32 or f64. For several threads each is there twice: on one, and shared
/// out among all, whichever is quicker.
struct Limit {
  std::string name;  ///< "copy", "streaming copy", "copy x2"
  std::function<void()> run;
  double share = 1;  ///< of the work that one run does: what is very long is measured in part
};
std::vector<Limit> limits_of(const Work& work, int threads);

}  // namespace lamella::tools::bench
