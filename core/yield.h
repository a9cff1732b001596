// Points at which the order of threads matters, marked: laws on schedules stop a thread there and let others
// go.
#pragma once

#include <atomic>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella::detail {

/// NOTE: [yield points] Slow paths that threads share (registering, blocks of serials, counts that are
/// merged, families of views) call yield_point() between their steps. It does nothing unless a law on
/// schedules has set the hook; nothing that a call of an operator always does has one.
inline std::atomic<void (*)()> yield_hook{nullptr};
inline void yield_point() {
  if (void (*const hook)() = yield_hook.load(std::memory_order_acquire)) [[unlikely]]
    hook();
}

/// Sets the hook for a scope. One at a time: it is the process's.
class ScopedYield {
 public:
  explicit ScopedYield(void (*hook)()) { yield_hook.store(hook, std::memory_order_release); }
  ~ScopedYield() { yield_hook.store(nullptr, std::memory_order_release); }
  ScopedYield(const ScopedYield&) = delete;
  ScopedYield& operator=(const ScopedYield&) = delete;
};

}  // namespace lamella::detail
LAMELLA_API_END
