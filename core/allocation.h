// Raw memory of pools and storages, and trials of it: for tests, memory that runs out, is poisoned and
// guarded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// 64-byte aligned, or null when there is none.
void* allocate_raw(size_t bytes) noexcept;
void free_raw(void* p) noexcept;
/// Likewise; error out_of_memory instead of null.
void* allocate_block(size_t bytes);

namespace detail {
/// Whether this thread's memory is on trial or guarded (guard.h).
inline thread_local constinit bool memory_on_trial = false;
/// Sets that, and has pools stand aside while it is so.
void watch_memory();
/// For damaged_memory(): so many bytes were written beside a block of that size.
void note_damage(size_t bytes, size_t block);
}  // namespace detail

/// NOTE: [memory trials] While a trial lives, every block its thread asks for comes from malloc (pools stand
/// aside), is filled with `poison`, lies between red zones that are looked at when it is freed, and is filled
/// again then; the block numbered `fail_at` is refused, and so are blocks beyond `largest` bytes. Outside
/// trials none of this costs anything: a pool whose list is set aside looks empty and full, so only its slow
/// paths ask.
class MemoryTrial {
 public:
  struct Options {
    int64_t fail_at = -1;  ///< counted from 0; -1: none is refused
    bool sticky = false;   ///< and every later one too, until the trial ends
    uint8_t poison = 0xA5;
    bool guard = true;  ///< false: no poison, no red zones; sanitizers look at the block itself
    size_t largest = SIZE_MAX;
  };
  explicit MemoryTrial(Options options);
  ~MemoryTrial();
  MemoryTrial(const MemoryTrial&) = delete;
  /// Allocations asked for so far, with those that the program's operator new counts.
  int64_t asked() const;
  int64_t refused() const;
};

/// Counts one allocation of this thread's trial, if any: true when it is to be refused. For allocate_raw and
/// for an operator new that a program replaces (verify/case/heap.cpp).
bool allocation_is_refused() noexcept;
/// Guarded blocks that are alive, in all threads.
int64_t guarded_blocks();
/// What was found written beside a block since the last call: empty when nothing was. Live blocks are looked
/// at as well.
std::string damaged_memory();

}  // namespace lamella
LAMELLA_API_END
