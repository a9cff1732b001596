// Owner-biased reference counts: plain arithmetic for the creating thread, atomic for every other (decision
// 0002). After Choi, Shull, Torrellas: Biased reference counting, PACT 2018.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

class RefCounted;

/// One per thread that ever owned a counted object; outlives the thread, so that objects may name a dead
/// owner.
struct ThreadRecord {
  std::atomic<bool> pending{false};
  std::mutex mutex;
  bool dead = false;
  RefCounted* queue = nullptr;  ///< objects whose shared count went negative: the owner must merge
};

namespace detail {
inline thread_local constinit ThreadRecord* this_thread_record = nullptr;  // inline: one load, no GOT
ThreadRecord* make_thread_record();
int64_t thread_records();  ///< made so far: each is kept
inline ThreadRecord* thread_record() {
  ThreadRecord* r = this_thread_record;
  return r ? r : make_thread_record();
}
void drain(ThreadRecord* record);
}  // namespace detail

/// NOTE: [biased counts] total = local + shared. `local` belongs to the owner alone; `shared` may go negative
/// when a handle made by the owner dies elsewhere: then the object is queued to the owner, which merges both
/// counts when it next creates a tensor or ends. Once merged (no owner) only `shared` counts.
class RefCounted {
 public:
  using Destroy = void (*)(RefCounted*);

  RefCounted() : owner_(detail::thread_record()) {}
  RefCounted(const RefCounted&) = delete;

  void retain() {
    if (owner_.load(std::memory_order_relaxed) == detail::this_thread_record) [[likely]]
      ++local_;
    else shared_.fetch_add(kOne, std::memory_order_relaxed);
  }
  /// True when the last reference is gone and the caller must destroy the object.
  [[nodiscard]] bool release() {
    if (owner_.load(std::memory_order_relaxed) == detail::this_thread_record) [[likely]] {
      if (local_ != 1) {
        --local_;
        return false;
      }
      if (shared_.load(std::memory_order_acquire) == 0) [[likely]]
        return true;  // the count stays 1: a block that goes back to its pool is ready for its next life
      local_ = 0;
      return release_owner();
    }
    return release_shared();
  }
  /// Only this handle exists; false negatives are possible after the object was shared.
  bool unique() const {
    return owner_.load(std::memory_order_relaxed) == detail::this_thread_record && local_ == 1 &&
           shared_.load(std::memory_order_acquire) == 0;
  }
  /// Whether this thread alone may destroy it: then a handle may be made even of an object whose last one is
  /// let go elsewhere just now.
  bool owned_here() const { return owner_.load(std::memory_order_relaxed) == detail::this_thread_record; }
  /// Makes a dead object the calling thread's, with one reference: it waits in a pool of this thread.
  void revive() {
    if (owner_.load(std::memory_order_relaxed) == detail::this_thread_record) [[likely]]
      return;
    owner_.store(detail::thread_record(), std::memory_order_relaxed);
    local_ = 1;
    shared_.store(0, std::memory_order_relaxed);
  }
  /// Called by the owner, or for it once it is dead: true when the object must be destroyed.
  [[nodiscard]] bool merge();

  Destroy destroy_queued = nullptr;  ///< how a merge destroys the object
  /// The next object in its owner's queue or, of a tensor, in its pool: giving one up takes no memory and
  /// cannot fail.
  RefCounted* next_queued;

 private:
  /// Unequal to every thread's record, and to the null of a thread that has none yet.
  static ThreadRecord* no_owner() { return reinterpret_cast<ThreadRecord*>(uintptr_t{1}); }
  bool release_owner();
  bool release_shared();
  static constexpr int32_t kMerged = 1, kQueued = 2, kOne = 4;

  std::atomic<ThreadRecord*> owner_;
  uint32_t local_ = 1;
  std::atomic<int32_t> shared_{0};
};

/// Counted handle to T; T derives from RefCounted and has `static void destroy(T*)`.
template <class T> class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  static Ref adopt(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  static Ref share(T* p) {
    if (p) p->retain();
    return adopt(p);
  }
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) p_->retain();
  }
  Ref(Ref&& o) noexcept : p_(o.p_) { o.p_ = nullptr; }
  Ref& operator=(const Ref& o) noexcept { return *this = Ref(o); }
  Ref& operator=(Ref&& o) noexcept {
    T* const fresh = o.detach();
    T* const old = p_;
    p_ = fresh;
    if (old && old->release()) T::destroy(old);
    return *this;
  }
  ~Ref() {
    if (p_ && p_->release()) T::destroy(p_);
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const Ref& o) const { return p_ == o.p_; }
  T* detach() {
    T* p = p_;
    p_ = nullptr;
    return p;
  }

 private:
  T* p_ = nullptr;
};

}  // namespace lamella
LAMELLA_API_END
