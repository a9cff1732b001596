// A thread that stops before a chosen instruction while another one runs.
#pragma once

#include <cstdint>
#include <functional>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// NOTE: [between instructions] Threads that are to meet within some ten nanoseconds do so by chance, and on
/// a busy machine hardly ever. Here `body`, on a thread of its own, goes step by step (the processor's trap
/// flag) up to its instruction number `at`, and waits there until `other`, on another thread, is through, or
/// for some milliseconds, where that waits for what `body` holds. What is read there and written later is
/// stale. Returns how many instructions `body` took if it was through before `at`, `other` came after it
/// then; `at` if it was stopped; -1, after both have run at once, where there are no steps: another processor
/// or system, a sanitizer. Not from several threads at once.
int64_t run_interrupted(const std::function<void()>& body, int64_t at, const std::function<void()>& other);

}  // namespace lamella::verify
LAMELLA_API_END
