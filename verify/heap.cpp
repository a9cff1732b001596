// operator new of programs that run laws: counted for each thread, and refused by trials of memory.
#include "lamella/verify/heap.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>

#include "lamella/core/allocation.h"
#include "lamella/core/check.h"
#include "lamella/core/family.h"
#include "lamella/core/guard.h"

namespace lamella::verify {

namespace {

/// One thread's objects: made less freed. Only the thread itself writes it.
struct Counter {
  std::atomic<int64_t> objects{0};
  Counter* next = nullptr;
  enum State : uint8_t { New, Listed, Ended } state = New;
};
thread_local constinit Counter counter{};

struct Counters {
  std::mutex mutex;
  Counter* first = nullptr;
  std::atomic<int64_t> of_ended{0};
};
/// Made in place and never destroyed: objects are freed until the very end.
Counters& counters() {
  alignas(Counters) static char place[sizeof(Counters)];
  static Counters& all = *new (place) Counters;
  return all;
}

/// Gives the thread's count up when the thread ends.
struct End {
  ~End() {
    Counters& all = counters();
    const std::lock_guard lock(all.mutex);
    Counter** at = &all.first;
    while (*at != &counter) at = &(*at)->next;
    *at = counter.next;
    all.of_ended.fetch_add(counter.objects.load(std::memory_order_relaxed), std::memory_order_relaxed);
    counter.state = Counter::Ended;
  }
};
thread_local End end;

[[gnu::noinline]] void count_first_or_late(int64_t sign) {
  Counters& all = counters();
  if (counter.state == Counter::Ended) {
    all.of_ended.fetch_add(sign, std::memory_order_relaxed);
    return;
  }
  {
    const std::lock_guard lock(all.mutex);
    counter.next = all.first;
    all.first = &counter;
    counter.state = Counter::Listed;
  }
  (void)&end;
  counter.objects.store(sign, std::memory_order_relaxed);
}

inline void count(int64_t sign) {
  if (counter.state != Counter::Listed) [[unlikely]]
    return count_first_or_late(sign);
  counter.objects.store(counter.objects.load(std::memory_order_relaxed) + sign, std::memory_order_relaxed);
}

void* made(size_t bytes, size_t align) {
  if (allocation_is_refused()) throw std::bad_alloc();
  void* const p = align <= 16 ? std::malloc(bytes ? bytes : 1)
                              : std::aligned_alloc(align, (bytes + align - 1) / align * align);
  if (!p) throw std::bad_alloc();
  count(1);
  return p;
}
void freed(void* p) noexcept {
  if (p) count(-1);
  std::free(p);
}
}  // namespace

int64_t heap_objects() {
  Counters& all = counters();
  const std::lock_guard lock(all.mutex);
  int64_t sum = all.of_ended.load(std::memory_order_relaxed);
  for (const Counter* c = all.first; c; c = c->next) sum += c->objects.load(std::memory_order_relaxed);
  // Kept for good, by design: objects may outlive the thread that counted them (core/refcount.h).
  return sum - detail::thread_records();
}

Alive Alive::now() { return {memory_stats(), guarded_blocks(), Family::alive(), heap_objects()}; }

std::string Alive::beyond(const Alive& before) const {
  std::string out;
  const auto more = [&](int64_t now, int64_t then, const char* what) {
    if (now > then) out += format("{}{} {} more", out.empty() ? "" : ", ", now - then, what);
  };
  more(memory.storages, before.memory.storages, "storages");
  more(memory.blocks, before.memory.blocks, "blocks");
  more(memory.bytes, before.memory.bytes, "bytes of both");
  more(guarded, before.guarded, "guarded blocks");
  more(families, before.families, "families of views");
  more(objects, before.objects, "objects of operator new");
  return out.empty() ? "" : out + " are alive";
}

}  // namespace lamella::verify

using lamella::verify::freed;
using lamella::verify::made;
// Weak: a program, or a sanitizer, that has its own keeps it, and nothing of operator new is counted there.
[[gnu::weak]] void* operator new(size_t bytes) { return made(bytes, 1); }
[[gnu::weak]] void* operator new(size_t bytes, std::align_val_t align) { return made(bytes, size_t(align)); }
[[gnu::weak]] void operator delete(void* p) noexcept { freed(p); }
[[gnu::weak]] void operator delete(void* p, size_t) noexcept { freed(p); }
[[gnu::weak]] void operator delete(void* p, std::align_val_t) noexcept { freed(p); }
[[gnu::weak]] void operator delete(void* p, size_t, std::align_val_t) noexcept { freed(p); }
