// How many threads kernels may use, where this build has any.
#pragma once

#if __has_include("lamella/core/parallel.h")
#include "lamella/core/parallel.h"
#endif

namespace lamella::tools::bench {

#if __has_include("lamella/core/parallel.h")
inline constexpr bool kHasThreads = true;
inline void use_threads(int n) { set_threads(n); }
#else
inline constexpr bool kHasThreads = false;
inline void use_threads(int) {}
#endif

/// Results must be the same bits for each of these.
inline constexpr int kAskedThreads[] = {1, 2, 7};

}  // namespace lamella::tools::bench
