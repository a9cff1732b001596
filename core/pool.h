// Fixed-size blocks from a free list of the thread: tensor headers, tape nodes. Under the thread sanitizer
// every block comes from malloc.
#pragma once

#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "lamella/core/allocation.h"

LAMELLA_API_BEGIN
namespace lamella {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kPooling = false;
#else
inline constexpr bool kPooling = true;
#endif
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kPoisons = true;
#else
inline constexpr bool kPoisons = false;
#endif

namespace detail {
/// NOTE: [poisoned pools] Under the address sanitizer nobody may touch a block that waits in a pool, nor what
/// is left of a block behind a tensor's elements; each block is one of malloc's, with red zones around it.
/// Elsewhere these are nothing.
inline void poison([[maybe_unused]] void* p, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(p, bytes);
#endif
}
inline void unpoison([[maybe_unused]] void* p, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(p, bytes);
#endif
}

struct FreeBlock {
  FreeBlock* next;
};
inline constexpr size_t kFreeListCap = 4096;

/// One thread's free blocks of one size. A list that is not in use looks empty and full.
struct FreeList {
  void* head = nullptr;
  size_t count = kFreeListCap;
  bool enlisted = false;
  FreeList* next_list = nullptr;  ///< of the thread
  void* aside = nullptr;          ///< what a trial set aside
  size_t aside_count = kPooling ? 0 : kFreeListCap;
  size_t block_bytes = 0;
};
void enlist(FreeList& list);

/// A block as allocate_block and free_raw have it, counted as one that tensors, tapes or pools hold.
void* allocate_counted(size_t bytes);
void free_counted(void* p, size_t bytes) noexcept;
/// Counted blocks that are in use: without those that wait in this thread's lists.
struct BlocksInUse {
  int64_t blocks, bytes;
};
BlocksInUse blocks_in_use();
}  // namespace detail

/// A stack of free blocks of one size. Freed blocks beyond the cap go back to malloc, so a producer/consumer
/// pair of threads cannot grow a list without bound.
template <size_t kBytes> class Pool {
 public:
  static void* allocate() {
    detail::FreeList& list = list_;
    if (void* const block = list.head) [[likely]] {
      detail::unpoison(block, kBytes);
      list.head = static_cast<detail::FreeBlock*>(block)->next;
      --list.count;
      return block;
    }
    return allocate_slow();
  }
  static void free(void* p) {
    detail::FreeList& list = list_;
    if (list.count < detail::kFreeListCap) [[likely]] {
      list.head = new (p) detail::FreeBlock{static_cast<detail::FreeBlock*>(list.head)};
      ++list.count;
      detail::poison(p, kBytes);
      return;
    }
    free_slow(p);
  }

 private:
  /// Gives the list back when the thread ends: what is freed later on this thread goes straight to malloc.
  struct Releaser {
    ~Releaser() {
      while (void* const block = list_.head) {
        detail::unpoison(block, kBytes);
        list_.head = static_cast<detail::FreeBlock*>(block)->next;
        detail::free_counted(block, kBytes);
      }
      list_.count = detail::kFreeListCap;
    }
  };
  static void enlist() {
    detail::enlist(list_);
    (void)&releaser_;
  }
  [[gnu::noinline]] static void* allocate_slow() {
    if (!list_.enlisted) enlist();
    return detail::allocate_counted(kBytes);
  }
  [[gnu::noinline]] static void free_slow(void* p) {
    if (list_.enlisted) return detail::free_counted(p, kBytes);
    enlist();
    if (list_.count < detail::kFreeListCap) free(p);
    else detail::free_counted(p, kBytes);
  }
  static_assert(kBytes % 64 == 0);
  static inline thread_local constinit detail::FreeList list_{.block_bytes = kBytes};
  static inline thread_local Releaser releaser_{};
};

}  // namespace lamella
LAMELLA_API_END
