// operator new of programs that run laws: counted for each thread, and refused by trials of memory.
#include "lamella/verify/case/heap.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <pthread.h>

#include "lamella/core/allocation.h"
#include "lamella/core/check.h"
#include "lamella/core/family.h"
#include "lamella/core/guard.h"
#include "lamella/core/pool.h"

namespace lamella::verify {

namespace {

/// NOTE: [kept objects] A case makes and frees some dozens of objects of up to a kilobyte (values, choices,
/// names, functions), which took malloc and free a fifth of its instructions. Each thread keeps a few freed
/// blocks of every size for the next object of that size. In guarded cases and trials all objects come from
/// malloc and go back to it, and sanitizers, which look at malloc's blocks, are never kept from one.
#if defined(__clang__)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kKeeps = false;  // clang defines no macro of its own for them
#else
constexpr bool kKeeps = kPooling && !kPoisons;
#endif
#else
constexpr bool kKeeps = kPooling && !kPoisons;
#endif
constexpr size_t kSizes = 64, kMostKept = 32;
struct Kept {
  Kept* next;
  uint64_t mark;  ///< kWaits in a block that waits: one that is freed twice is found by it
};
constexpr uint64_t kWaits = 0x6B6570742062F10Cu;
struct KeptList {
  Kept* first = nullptr;
  size_t room = 0;  ///< none before the thread is listed, nor once it has ended
};
thread_local constinit KeptList kept_lists[kSizes]{};

/// Blocks of list k have 16 k + 8 bytes or more, which is what malloc's blocks have, and never less than 24.
constexpr size_t list_of(size_t bytes) { return (bytes + 7) / 16; }
constexpr size_t size_of_list(size_t k) { return k ? 16 * k + 8 : 24; }

inline void keep(KeptList& list, void* p) {
  auto* const block = static_cast<Kept*>(p);
  block->next = list.first, block->mark = kWaits;
  list.first = block, --list.room;
}

void let_go() {
  for (KeptList& list : kept_lists) {
    while (Kept* const block = list.first) {
      list.first = block->next;
      std::free(block);
    }
    list.room = 0;
  }
}

/// One thread's objects: made less freed. Only the thread itself writes it.
struct Counter {
  std::atomic<int64_t> objects{0};
  std::atomic<Counter*> next{nullptr};
  enum State : uint8_t { New, Listed, Ended } state = New;
};
thread_local constinit Counter counter{};

struct Counters {
  std::mutex mutex;
  std::atomic<Counter*> first{nullptr};
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
    // Before it is off the list: who finds itself alone there asks no lock.
    all.of_ended.fetch_add(counter.objects.load(std::memory_order_relaxed), std::memory_order_relaxed);
    std::atomic<Counter*>* at = &all.first;
    while (*at != &counter) at = &at->load()->next;
    *at = counter.next.load();
    counter.state = Counter::Ended;
    let_go();
  }
};
thread_local End end;

/// In a child of fork() no other thread is there, and where its count was there will be another's stack. The
/// list is whole meanwhile: it is locked.
void alone_after_fork() {
  Counters& all = counters();
  for (const Counter* c = all.first; c; c = c->next)
    if (c != &counter) all.of_ended.fetch_add(c->objects.load(std::memory_order_relaxed));
  all.first = counter.state == Counter::Listed ? &counter : nullptr;
  counter.next = nullptr;
  all.mutex.unlock();
}
[[maybe_unused]] const int at_fork =
    pthread_atfork([] { counters().mutex.lock(); }, [] { counters().mutex.unlock(); }, alone_after_fork);

[[gnu::noinline]] void count_first_or_late(int64_t sign) {
  Counters& all = counters();
  if (counter.state == Counter::Ended) {
    all.of_ended.fetch_add(sign, std::memory_order_relaxed);
    return;
  }
  {
    const std::lock_guard lock(all.mutex);
    counter.next = all.first.load();
    all.first = &counter;
    counter.state = Counter::Listed;
  }
  if (kKeeps)
    for (KeptList& list : kept_lists) list.room = kMostKept;
  (void)&end;
  counter.objects.store(sign, std::memory_order_relaxed);
}

inline void count_listed(int64_t sign) {
  counter.objects.store(counter.objects.load(std::memory_order_relaxed) + sign, std::memory_order_relaxed);
}
inline void count(int64_t sign) {
  if (counter.state != Counter::Listed) [[unlikely]]
    return count_first_or_late(sign);
  count_listed(sign);
}

[[gnu::noinline]] void* made_anew(size_t bytes, size_t align) {
  if (allocation_is_refused()) throw std::bad_alloc();
  const size_t k = list_of(bytes);
  void* const p = align > 16 ? std::aligned_alloc(align, (bytes + align - 1) / align * align)
                             : std::malloc(kKeeps && k < kSizes ? size_of_list(k)
                                           : bytes              ? bytes
                                                                : 1);
  if (!p) throw std::bad_alloc();
  count(1);
  return p;
}
void* made(size_t bytes) {
  // A trial, which may refuse, has elements apart; and a thread that keeps blocks is listed.
  if (const size_t k = list_of(bytes); kKeeps && k < kSizes && !detail::elements_apart)
    if (Kept* const block = kept_lists[k].first) [[likely]] {
      kept_lists[k].first = block->next, ++kept_lists[k].room;
      block->mark = 0;
      count_listed(1);
      return block;
    }
  return made_anew(bytes, 1);
}

[[gnu::noinline]] void freed(void* p) noexcept {
  if (p) count(-1);
  std::free(p);
}
/// An object with the mark of those that wait, by chance or because it does.
[[gnu::noinline]] void freed_marked(void* p, KeptList& list) noexcept {
  for (const Kept* k = list.first; k; k = k->next)
    if (k == p) {
      std::fputs("operator delete: an object was freed twice\n", stderr);
      std::abort();
    }
  keep(list, p);
  count_listed(-1);
}
/// Likewise, of so many bytes, aligned as malloc aligns.
void freed(void* p, size_t bytes) noexcept {
  const size_t k = list_of(bytes);
  if (!kKeeps || !p || k >= kSizes || detail::elements_apart) return freed(p);
  KeptList& list = kept_lists[k];
  if (list.room == 0) return freed(p);
  if (static_cast<Kept*>(p)->mark == kWaits) [[unlikely]]
    return freed_marked(p, list);
  keep(list, p);
  count_listed(-1);
}
}  // namespace

int64_t heap_objects() {
  Counters& all = counters();
  // Kept for good, by design: objects may outlive the thread that counted them (core/refcount.h).
  const int64_t kept = detail::thread_records();
  const auto ended = [&] { return all.of_ended.load(std::memory_order_relaxed); };
  if (all.first.load(std::memory_order_acquire) == &counter && !counter.next.load(std::memory_order_acquire))
    return ended() + counter.objects.load(std::memory_order_relaxed) - kept;  // no other thread is listed
  const std::lock_guard lock(all.mutex);
  int64_t sum = ended();
  for (const Counter* c = all.first; c; c = c->next) sum += c->objects.load(std::memory_order_relaxed);
  return sum - kept;
}

Alive Alive::now() { return {memory_stats(), guarded_blocks(), Family::alive(), heap_objects()}; }

std::string Alive::beyond(const Alive& before) const {
  const bool none = memory.storages <= before.memory.storages && memory.blocks <= before.memory.blocks &&
                    memory.bytes <= before.memory.bytes && guarded <= before.guarded &&
                    families <= before.families && objects <= before.objects;
  if (none) [[likely]]
    return {};
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
using lamella::verify::made_anew;
// Weak: a program, or a sanitizer, that has its own keeps it, and nothing of operator new is counted there.
[[gnu::weak]] void* operator new(size_t bytes) { return made(bytes); }
[[gnu::weak]] void* operator new(size_t bytes, std::align_val_t align) {
  return made_anew(bytes, size_t(align));
}
[[gnu::weak]] void operator delete(void* p) noexcept { freed(p); }
[[gnu::weak]] void operator delete(void* p, size_t bytes) noexcept { freed(p, bytes); }
[[gnu::weak]] void operator delete(void* p, std::align_val_t) noexcept { freed(p); }
[[gnu::weak]] void operator delete(void* p, size_t, std::align_val_t) noexcept { freed(p); }
