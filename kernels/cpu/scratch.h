// Arrays on the stack of a kernel. One element behind them may lie in a hole of the frame, where no canary of
// the compiler stands; the text with lowered thresholds has marks there, and ends the process if one changed.
#pragma once

#include <cstdint>

#include "lamella/kernels/cpu/lines.h"

namespace lamella::kernels::LAMELLA_BACKEND {

#if defined(LAMELLA_LOWERED)
template <class T, int64_t n> class Scratch {
 public:
  Scratch() {
    for (int64_t i = 0; i < kMarks; ++i) all_[n + i] = mark();
  }
  ~Scratch() {
    for (int64_t i = 0; i < kMarks; ++i)
      if (all_[n + i] != mark()) __builtin_trap();
  }
  Scratch(const Scratch&) = delete;
  operator T*() { return all_; }

 private:
  static constexpr int64_t kMarks = 4;
  static constexpr T mark() { return T(0x5a); }
  T all_[n + kMarks];
};
#else
template <class T, int64_t n> using Scratch = T[n];
#endif

}  // namespace lamella::kernels::LAMELLA_BACKEND
