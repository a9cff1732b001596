// Fixed-size blocks from a free list of the thread: tensor headers, tape nodes. Under sanitizers every block
// comes from malloc.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace lamella {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kPooling = false;
#else
inline constexpr bool kPooling = true;
#endif

/// A stack of free blocks of one size. Freed blocks beyond the cap go back to malloc, so a producer/consumer
/// pair of threads cannot grow a list without bound.
template <size_t kBytes> class Pool {
 public:
  static void* allocate() {
    List& list = list_;
    if (kPooling && list.head) [[likely]] {
      Node* node = list.head;
      list.head = node->next;
      --list.count;
      return node;
    }
    return allocate_slow();
  }
  static void free(void* p) {
    List& list = list_;
    if (kPooling && list.count < kCap) [[likely]] {
      list.head = new (p) Node{list.head};
      ++list.count;
      if (!list.registered) [[unlikely]]
        enlist();
      return;
    }
    std::free(p);
  }

 private:
  static constexpr size_t kCap = 4096;
  struct Node {
    Node* next;
  };
  struct List {
    Node* head;
    size_t count;
    bool registered;
  };
  /// Gives the list back when the thread ends.
  struct Releaser {
    ~Releaser() {
      while (list_.head) {
        Node* node = list_.head;
        list_.head = node->next;
        std::free(node);
      }
      list_.count = kCap;  // what is freed later on this thread goes straight to malloc
    }
  };
  static void enlist() {
    list_.registered = true;
    (void)&releaser_;
  }
  static void* allocate_slow() {
    if (!list_.registered) enlist();
    void* p = std::aligned_alloc(64, kBytes);
    if (!p) throw std::bad_alloc();
    return p;
  }
  static_assert(kBytes % 64 == 0);
  static inline thread_local constinit List list_{nullptr, 0, false};
  static inline thread_local Releaser releaser_{};
};

}  // namespace lamella
