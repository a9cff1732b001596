// A counted run of bytes shared by all views of it.
#pragma once

#include "lamella/core/device.h"
#include "lamella/core/refcount.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Marks, in Storage::birth, memory made in inference mode. No serial has this bit.
inline constexpr uint64_t kInferenceBirth = uint64_t{1} << 63;

struct alignas(16) Storage : RefCounted {
  void* data = nullptr;
  size_t nbytes = 0;
  uint64_t birth = 0;  ///< serial of the innermost live level when it was made (0 outside all levels), and
                       ///< kInferenceBirth when that was in inference mode
  std::atomic<uint32_t> version{0};  ///< counts in-place writes
  Device device = Device::CPU;
  bool embedded = false;  ///< lives in the pooled block of a small tensor
  void (*deleter)(void* context) = nullptr;
  void* context = nullptr;

  static void destroy(Storage* s);
  void bump() { version.store(version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  /// Whether it was made under a level, which may still take it for its own (promotion).
  bool made_under_level() const { return birth & ~kInferenceBirth; }
  /// From now on it counts as made outside all levels: none takes it.
  void disown() { birth &= kInferenceBirth; }
  bool made_in_inference() const { return birth & kInferenceBirth; }
};

using StorageRef = Ref<Storage>;

/// What is alive in this process, for leak laws: storages with memory of their own, and blocks: headers of
/// tensors (of up to 64 bytes with their elements), nodes of tapes and what leaves collect, storages of up to
/// 4 KiB. Blocks that wait in pools for their next life do not count, but for those of other live threads.
struct MemoryStats {
  int64_t storages, blocks;
  int64_t bytes;  ///< of all blocks, and of the elements in storages
};
MemoryStats memory_stats();

namespace detail {
/// Birth that new storage gets; written when levels and inference modes open and close.
inline thread_local constinit uint64_t birth_serial = 0;
}  // namespace detail

/// 64-byte aligned memory in a storage of its own, from the device's hooks where it has some. Errors:
/// out_of_memory, device for one without memory.
StorageRef allocate_storage(size_t nbytes, Device device);
/// Memory owned by someone else: deleter(context) runs when the last view dies; not when this call fails.
StorageRef adopt_storage(void* data, size_t nbytes, void (*deleter)(void*), void* context);

}  // namespace lamella
LAMELLA_API_END
