// Raw memory, and what trials do to it.
#include "lamella/core/allocation.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <unordered_map>

#include "lamella/core/check.h"
#include "lamella/core/guard.h"
#include "lamella/core/pool.h"

namespace lamella {

namespace {

struct Trial {
  MemoryTrial::Options options = {};
  int64_t asked = 0, refused = 0;
  bool live = false;
};
thread_local constinit Trial trial{};

constexpr size_t kRedZone = 64;
constexpr uint8_t kRedByte = 0xFB, kFreedByte = 0xDD;

/// The register of guarded blocks may not use the operator new that it helps to test.
template <class T> struct MallocAllocator {
  using value_type = T;
  MallocAllocator() = default;
  template <class U> MallocAllocator(const MallocAllocator<U>&) {}
  T* allocate(size_t n) {
    void* p = std::malloc(n * sizeof(T));
    if (!p) throw std::bad_alloc();
    return static_cast<T*>(p);
  }
  void deallocate(T* p, size_t) { std::free(p); }
  bool operator==(const MallocAllocator&) const { return true; }
};
using Register = std::unordered_map<void*, size_t, std::hash<void*>, std::equal_to<>,
                                    MallocAllocator<std::pair<void* const, size_t>>>;

std::atomic<int64_t> guarded{0};
std::mutex guard_mutex;  // protects the two below
int64_t damaged_bytes = 0;
size_t damaged_size = 0;

Register& blocks() {
  static Register& all = *new (std::malloc(sizeof(Register))) Register;  // outlives all tensors
  return all;
}

void look_at(const void* p, size_t bytes) {
  const auto* user = static_cast<const uint8_t*>(p);
  for (size_t i = 1; i <= kRedZone; ++i) {
    const int wrong = (user[-ptrdiff_t(i)] != kRedByte) + (user[bytes + i - 1] != kRedByte);
    damaged_bytes += wrong;
    if (wrong) damaged_size = bytes;
  }
}

void* allocate_guarded(size_t bytes) {
  const size_t whole = (bytes + 2 * kRedZone + 63) / 64 * 64;
  auto* base = whole > bytes ? static_cast<uint8_t*>(std::aligned_alloc(64, whole)) : nullptr;
  if (!base) return nullptr;
  std::memset(base, kRedByte, whole);
  std::memset(base + kRedZone, trial.options.poison, bytes);
  const std::lock_guard lock(guard_mutex);
  blocks().emplace(base + kRedZone, bytes);
  guarded.fetch_add(1, std::memory_order_relaxed);
  return base + kRedZone;
}

/// False when the block is no guarded one.
bool free_guarded(void* p) {
  const std::lock_guard lock(guard_mutex);
  const auto at = blocks().find(p);
  if (at == blocks().end()) return false;
  look_at(p, at->second);
  std::memset(p, kFreedByte, at->second);
  blocks().erase(at);
  guarded.fetch_sub(1, std::memory_order_relaxed);
  std::free(static_cast<uint8_t*>(p) - kRedZone);
  return true;
}

}  // namespace

bool allocation_is_refused() noexcept {
  if (!detail::memory_on_trial) [[likely]]
    return false;
  if (!trial.live) return false;
  const int64_t n = trial.asked++;
  const int64_t at = trial.options.fail_at;
  const bool refused = at >= 0 && (n == at || (trial.options.sticky && n > at));
  trial.refused += refused;
  return refused;
}

namespace {
void* watched_block(size_t bytes, bool& refused) {
  if (!trial.live) return detail::allocate_at_page(bytes);
  refused = allocation_is_refused() || bytes > trial.options.largest;
  return refused || !trial.options.guard ? nullptr : allocate_guarded(bytes);
}
}  // namespace

namespace {
/// Pages of 2 MB where the system gives them to those who ask: a fresh block is then mapped by a few faults
/// instead of thousands, and rows that lie far apart find their addresses in the processor's table. A system
/// that knows of none refuses; nothing depends on it.
constexpr size_t kLargePage = size_t{2} << 20, kAsksForLargePages = 2 * kLargePage;
void ask_for_large_pages(char* at, size_t bytes) {
#if defined(MADV_HUGEPAGE)
  const uintptr_t first = (reinterpret_cast<uintptr_t>(at) + kLargePage - 1) / kLargePage * kLargePage;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(at) + bytes) / kLargePage * kLargePage;
  if (first < end) (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

/// NOTE: [blocks of malloc] glibc's aligned allocation asks for more than it keeps and gives the rest back at
/// once, so that a freed block is too small for the next one of the same size: loops over tensors of
/// megabytes had fresh pages in each call, and a process that made and freed some grew without end. A block
/// of malloc's own is found again. It begins up to 64 bytes before ours, where the eight bytes in front of us
/// say.
void* aligned_block(size_t bytes) {
  const size_t whole = (bytes + 63) / 64 * 64 + 64;
  auto* const base = whole > bytes ? static_cast<char*>(std::malloc(whole)) : nullptr;
  if (!base) return nullptr;
  if (bytes >= kAsksForLargePages) ask_for_large_pages(base, whole);
  char* const p = base + 64 - reinterpret_cast<uintptr_t>(base) % 64;  // malloc's are at multiples of 16
  std::memcpy(p - sizeof base, &base, sizeof base);
  return p;
}
void free_aligned(void* p) {
  if (!p) return;
  void* base;
  std::memcpy(&base, static_cast<char*>(p) - sizeof base, sizeof base);
  std::free(base);
}
}  // namespace

void* allocate_raw(size_t bytes) noexcept {
  if (detail::memory_on_trial || detail::guard_side != GuardSide::None) [[unlikely]] {
    bool refused = false;
    void* const block = watched_block(bytes, refused);
    if (block || refused || (trial.live && trial.options.guard)) return block;
  }
  if constexpr (kPoisons) {  // of the exact size: the sanitizer sees what follows
    void* block = nullptr;
    return ::posix_memalign(&block, 64, bytes ? bytes : 1) == 0 ? block : nullptr;
  }
  return aligned_block(bytes);
}

void free_raw(void* p) noexcept {
  if (detail::free_at_page(p)) return;
  if (guarded.load(std::memory_order_relaxed)) [[unlikely]]
    if (free_guarded(p)) return;
  kPoisons ? std::free(p) : free_aligned(p);
}

void* allocate_block(size_t bytes) {
  void* p = allocate_raw(bytes);
  LAMELLA_CHECK(p, OutOfMemory, "out of memory: a tensor needs {} bytes", bytes);
  return p;
}

namespace detail {
namespace {
thread_local constinit FreeList* free_lists = nullptr;
std::atomic<int64_t> counted_blocks{0}, counted_bytes{0};

void count_block(int64_t sign, size_t bytes) {
  counted_blocks.fetch_add(sign, std::memory_order_relaxed);
  counted_bytes.fetch_add(sign * int64_t(bytes), std::memory_order_relaxed);
}
}  // namespace

void* allocate_counted(size_t bytes) {
  void* const p = allocate_block(bytes);
  count_block(1, bytes);
  return p;
}

void free_counted(void* p, size_t bytes) noexcept {
  count_block(-1, bytes);
  free_raw(p);
}

BlocksInUse blocks_in_use() {
  BlocksInUse use{counted_blocks.load(), counted_bytes.load()};
  for (const FreeList* l = free_lists; l; l = l->next_list) {
    // An empty list may be one that is not in use, whose count says nothing. Most lists are empty.
    if (!l->head && !l->aside) continue;
    const int64_t waiting = (l->head ? int64_t(l->count) : 0) + (l->aside ? int64_t(l->aside_count) : 0);
    use.blocks -= waiting, use.bytes -= waiting * int64_t(l->block_bytes);
  }
  return use;
}

namespace {
/// Who gives a list back when the thread ends may be gone before the list is first used: the first use of any
/// in a file constructs all of them. This is constructed before and destroyed behind them.
thread_local constinit bool lists_ended = false;
struct ListsEnd {
  ~ListsEnd() {
    lists_ended = true;
    for (FreeList* l = free_lists; l; l = l->next_list) {
      while (void* const block = l->head) {  // never a tensor: these had one owner for all kinds
        unpoison(block, l->block_bytes);
        l->head = static_cast<FreeBlock*>(block)->next;
        free_counted(block, l->block_bytes);
      }
      l->count = kFreeListCap;
    }
  }
};
thread_local ListsEnd lists_end;
}  // namespace

void enlist(FreeList& list) {
  (void)&lists_end;
  list.enlisted = true;
  if (lists_ended) return;  // it looks full: what dies on this thread goes straight to malloc
  list.next_list = free_lists;
  free_lists = &list;
  if (kPooling && !memory_on_trial) list.count = 0;
}
}  // namespace detail

namespace detail {
namespace {
thread_local constinit bool carriers_aside = false;

void set_aside(FreeList& l) {
  l.aside = l.head, l.aside_count = l.count;
  l.head = nullptr, l.count = kFreeListCap;
}
void bring_back(FreeList& l) {
  if (l.head) return;  // it began to be used meanwhile
  l.head = l.aside, l.count = l.aside_count;
  l.aside = nullptr, l.aside_count = kPooling ? 0 : kFreeListCap;
}
}  // namespace

void watch_memory() {
  const bool all = trial.live || guard_side == GuardSide::Blocks, carriers = all || guards_elements();
  elements_apart = trial.live || guards_elements();
  for (FreeList* l = free_lists; l; l = l->next_list) {
    const bool is = l == carriers_list ? carriers_aside : memory_on_trial;
    const bool wanted = l == carriers_list ? carriers : all;
    if (is != wanted) wanted ? set_aside(*l) : bring_back(*l);
  }
  memory_on_trial = all, carriers_aside = carriers;
}
}  // namespace detail

void detail::note_damage(size_t bytes, size_t block) {
  const std::lock_guard lock(guard_mutex);
  damaged_bytes += int64_t(bytes), damaged_size = block;
}

MemoryTrial::MemoryTrial(Options options) {
  LAMELLA_CHECK(!trial.live, Usage, "a trial of memory is live on this thread already");
  trial = {options, 0, 0, true};
  detail::watch_memory();
}

MemoryTrial::~MemoryTrial() {
  trial.live = false;
  detail::watch_memory();
}

int64_t MemoryTrial::asked() const { return trial.asked; }
int64_t MemoryTrial::refused() const { return trial.refused; }
int64_t guarded_blocks() { return guarded.load(std::memory_order_relaxed); }

std::string damaged_memory() {
  const std::lock_guard lock(guard_mutex);
  for (const auto& [p, bytes] : blocks()) look_at(p, bytes);
  if (!damaged_bytes) return "";
  std::string text = format("{} bytes beside a block of {} were written", damaged_bytes, damaged_size);
  damaged_bytes = 0;
  return text;
}

}  // namespace lamella
