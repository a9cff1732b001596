// What is alive in this process: blocks, storages, families, and objects of operator new, which this
// replaces.
#pragma once

#include <cstdint>
#include <string>

#include "lamella/core/storage.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// NOTE: [counted heap] A program that asks this has an operator new that counts, for each thread without a
/// lock, and that trials of memory may refuse (MemoryTrial), unless it has one of its own. Objects made on
/// one thread and freed on another, and by threads that have ended, are in the sum. What malloc alone knows
/// is not.
int64_t heap_objects();

/// All of it at one moment.
struct Alive {
  MemoryStats memory;
  int64_t guarded, families, objects;

  static Alive now();
  /// Empty when nothing is alive that was not `before`; what was kept for the next call may be gone.
  std::string beyond(const Alive& before) const;
};

}  // namespace lamella::verify
LAMELLA_API_END
