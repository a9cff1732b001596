// The rare paths of biased counts: merging, and threads that end.
#include "lamella/core/refcount.h"

#include <memory>
#include <pthread.h>
#include <utility>
#include <vector>

#include "lamella/core/check.h"
#include "lamella/core/yield.h"

namespace lamella {
namespace detail {

namespace {
std::atomic<int64_t> records{0};

void merge_all(RefCounted* first) {
  for (RefCounted *object = first, *next; object; object = next) {
    next = object->next_queued;
    if (object->merge()) object->destroy_queued(object);
  }
}

/// Marks the record dead when the thread ends; whoever releases an object of it from then on merges by
/// itself.
void end_record(ThreadRecord* record) {
  drain(record);
  this_thread_record = nullptr;
  RefCounted* late;
  {
    std::lock_guard lock(record->mutex);
    record->dead = true;
    late = std::exchange(record->queue, nullptr);
  }
  merge_all(late);
}

thread_local constinit bool thread_is_ending = false;  // outlives what says so
struct ThreadEnd {
  ThreadRecord* record = nullptr;
  ~ThreadEnd() {
    thread_is_ending = true;
    if (record) end_record(record);
  }
};
thread_local ThreadEnd thread_end;

/// Of what is made later still, by destructors that run after ThreadEnd's: keys come after all of these.
void end_late(void* record) { end_record(static_cast<ThreadRecord*>(record)); }
pthread_key_t late_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    LAMELLA_CHECK(pthread_key_create(&made, end_late) == 0, Usage, "threads: the system has no key left");
    return made;
  }();
  return key;
}
}  // namespace

ThreadRecord* make_thread_record() {
  // Never freed: objects may outlive their thread and still name it. 100 bytes a thread.
  static std::mutex registry_mutex;
  static std::vector<ThreadRecord*>& registry = *new std::vector<ThreadRecord*>;
  auto record = std::make_unique<ThreadRecord>();
  {
    std::lock_guard lock(registry_mutex);
    registry.push_back(record.get());
  }
  records.fetch_add(1, std::memory_order_relaxed);
  if (thread_is_ending) pthread_setspecific(late_key(), record.get());
  else thread_end.record = record.get();
  return this_thread_record = record.release();
}

int64_t thread_records() { return records.load(std::memory_order_relaxed); }

void drain(ThreadRecord* record) {
  RefCounted* objects;
  {
    std::lock_guard lock(record->mutex);
    objects = std::exchange(record->queue, nullptr);
    record->pending.store(false, std::memory_order_relaxed);
  }
  yield_point();
  merge_all(objects);
}

}  // namespace detail

/// Every slow way to the last reference ends in revive(): whoever destroys may rely on owning the object.
bool RefCounted::merge() {
  const int32_t local = int32_t(local_);
  local_ = 0;
  owner_.store(no_owner(), std::memory_order_relaxed);
  detail::yield_point();
  int32_t old = shared_.load(std::memory_order_relaxed);
  int32_t merged;
  do merged = ((old & ~kQueued) | kMerged) + local * kOne;
  while (!shared_.compare_exchange_weak(old, merged, std::memory_order_acq_rel));
  if (merged >> 2 != 0) return false;
  revive();
  return true;
}

bool RefCounted::release_owner() {
  owner_.store(no_owner(), std::memory_order_relaxed);
  detail::yield_point();
  const int32_t old = shared_.fetch_or(kMerged, std::memory_order_acq_rel);
  if (old >> 2 != 0 || (old & kQueued)) return false;
  revive();
  return true;
}

bool RefCounted::release_shared() {
  ThreadRecord* const owner = owner_.load(std::memory_order_relaxed);
  detail::yield_point();
  int32_t old = shared_.load(std::memory_order_relaxed);
  int32_t now;
  do {
    now = old - kOne;
    if (now >> 2 < 0) now |= kQueued;
  } while (!shared_.compare_exchange_weak(old, now, std::memory_order_acq_rel));
  const bool newly_queued = (now & kQueued) && !(old & kQueued);
  if (!newly_queued) {
    if (!(now & kMerged) || now >> 2 != 0 || (now & kQueued)) return false;
    revive();
    return true;
  }
  // A negative count means unmerged, so `owner` was read before any merge and names the owner.
  detail::yield_point();
  std::unique_lock lock(owner->mutex);
  if (owner->dead) {
    lock.unlock();
    return merge();
  }
  next_queued = std::exchange(owner->queue, this);
  owner->pending.store(true, std::memory_order_relaxed);
  return false;
}

}  // namespace lamella
