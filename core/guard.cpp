// Guarded blocks: places between protected pages, and what a fault beside one was.
#include "lamella/core/guard.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "lamella/core/pool.h"

namespace lamella {

namespace {

constexpr size_t kPage = 4096, kRedZone = 64;
constexpr uint8_t kFresh = 0xFF, kRedByte = 0xFB, kFreedByte = 0xDD;

const std::array<uint8_t, kRedZone> untouched = [] {
  std::array<uint8_t, kRedZone> red;
  red.fill(kRedByte);
  return red;
}();

struct Place {
  uint32_t bytes = 0;
  GuardSide side = GuardSide::None;  ///< None: free
};

/// Places of one size, each behind a protected page; another one ends the shelf.
struct Shelf {
  size_t pages, count;
  char* base = nullptr;
  Place* places = nullptr;
  uint16_t* free = nullptr;  ///< a stack: what was used last is still in the caches
  size_t n_free = 0, n_open = 0;

  size_t step() const { return (pages + 1) * kPage; }
  size_t extent() const { return count * step() + kPage; }
  char* place(size_t k) const { return base + k * step() + kPage; }
};
constexpr size_t kCounts[] = {4096, 1024, 256, 64};
constexpr size_t kPlaces = 4096 + 1024 + 256 + 64, kOpenedAtOnce = 16;

std::mutex shelf_mutex;  // protects all of this but the two bounds
Shelf shelves[]{{1, kCounts[0]}, {4, kCounts[1]}, {16, kCounts[2]}, {64, kCounts[3]}};
std::array<Place, kPlaces> all_places;
std::array<uint16_t, kPlaces> all_free;
std::atomic<uintptr_t> shelves_begin{0};
std::atomic<size_t> shelves_extent{0};
bool refused = false;

bool is_on_shelf(const void* p) {
  return uintptr_t(p) - shelves_begin.load(std::memory_order_relaxed) <
         shelves_extent.load(std::memory_order_relaxed);
}

/// Addresses for all shelves, none of them to be touched yet.
bool build_shelves() {
  size_t whole = 0;
  for (const Shelf& s : shelves) whole += s.extent();
  void* const space = ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return false;
  char* at = static_cast<char*>(space);
  size_t first = 0;
  for (Shelf& s : shelves) {
    s.base = at;
    s.places = all_places.data() + first, s.free = all_free.data() + first;
    at += s.extent(), first += s.count;
  }
  shelves_begin.store(uintptr_t(space), std::memory_order_relaxed);
  shelves_extent.store(whole, std::memory_order_release);
  return true;
}

void open_more(Shelf& s) {
  for (size_t n = 0; n < kOpenedAtOnce && s.n_open < s.count; ++n) {
    if (::mprotect(s.place(s.n_open), s.pages * kPage, PROT_READ | PROT_WRITE) != 0) return;
    s.free[s.n_free++] = uint16_t(s.n_open++);
  }
}

/// The bytes on the side without the page that a write may not change.
struct RedZone {
  char* begin;
  size_t size;
};
RedZone red_zone(const Shelf& s, size_t k) {
  const Place& place = s.places[k];
  const size_t size = std::min(kRedZone, s.pages * kPage - place.bytes);
  if (place.side == GuardSide::Begin) return {s.place(k) + place.bytes, size};
  return {s.place(k) + s.pages * kPage - place.bytes - size, size};
}
char* block_at(const Shelf& s, size_t k) {
  const Place& place = s.places[k];
  return place.side == GuardSide::Begin ? s.place(k) : s.place(k) + s.pages * kPage - place.bytes;
}

const Shelf& shelf_of(const void* p) {
  size_t k = std::size(shelves) - 1;
  while (shelves[k].base > static_cast<const char*>(p)) --k;
  return shelves[k];
}

char* fault_text = nullptr;
size_t fault_size = 0;
const char *named_law = "", *named_op = "";
struct sigaction action_before {};

/// A fault is raised by the instruction itself, so the register is whole unless it is at fault itself.
void describe(const char* at, const char* what) {
  const Shelf& s = shelf_of(at);
  const size_t k = size_t(at - s.base) / s.step();
  const auto ends_here = [&](const Place& p) {
    return p.side == GuardSide::End || p.side == GuardSide::Blocks ||
           (p.side != GuardSide::None && p.bytes == s.pages * kPage);
  };
  const bool behind = k > 0 && ends_here(s.places[k - 1]);
  const bool before = k < s.count && s.places[k].side == GuardSide::Begin;
  char text[160];
  if (behind || before) {
    const size_t which = behind ? k - 1 : k;
    std::snprintf(text, sizeof text, "%s of byte %td of a block of %u bytes", what, at - block_at(s, which),
                  unsigned(s.places[which].bytes));
  } else {
    std::snprintf(text, sizeof text, "%s beside blocks that are free", what);
  }
  if (fault_text) {
    std::snprintf(fault_text, fault_size, "%s", text);
    return;
  }
  char line[320];
  const int n = std::snprintf(line, sizeof line, "%s, %s: %s\n", named_law, named_op, text);
  if (::write(2, line, std::min(size_t(n), sizeof line - 1)) < 0) return;
}

void on_fault(int, siginfo_t* info, void* context) {
  const char* const at = static_cast<const char*>(info->si_addr);
  const char* what = "access";
#if defined(__x86_64__)
  what = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2 ? "write" : "read";
#else
  (void)context;
#endif
  if (is_on_shelf(at)) describe(at, what);
  ::sigaction(SIGSEGV, &action_before, nullptr);  // the instruction runs again, to the end that it had before
}

void watch_faults() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, &action_before);
}

}  // namespace

void describe_faults(char* text, size_t size) {
  const std::lock_guard lock(shelf_mutex);
  fault_text = text, fault_size = size;
}

void name_guarded(const char* law, const char* op) { named_law = law, named_op = op; }

namespace detail {

void* allocate_at_page(size_t bytes) noexcept {
  const std::lock_guard lock(shelf_mutex);
  if (refused) return nullptr;
  if (!shelves[0].base) {
    if (refused = !build_shelves(); refused) return nullptr;
    watch_faults();
  }
  for (Shelf& s : shelves) {
    if (bytes > s.pages * kPage) continue;
    if (s.n_free == 0) open_more(s);
    if (s.n_free == 0) return nullptr;
    const size_t k = s.free[--s.n_free];
    s.places[k] = {uint32_t(bytes), guard_side};
    const RedZone red = red_zone(s, k);
    std::memcpy(red.begin, untouched.data(), red.size);
    char* const p = block_at(s, k);
    std::memset(p, kFresh, bytes);
    return p;
  }
  return nullptr;
}

bool free_at_page(void* p) noexcept {
  if (!is_on_shelf(p)) [[likely]]
    return false;
  const std::lock_guard lock(shelf_mutex);
  Shelf& s = const_cast<Shelf&>(shelf_of(p));
  // In front of the block's first byte: that of a block without bytes may be the next page.
  const size_t k = size_t(static_cast<char*>(p) - 1 - s.base) / s.step();
  Place& place = s.places[k];
  const RedZone red = red_zone(s, k);
  if (std::memcmp(red.begin, untouched.data(), red.size) != 0) {
    size_t wrong = 0;
    for (size_t i = 0; i < red.size; ++i) wrong += uint8_t(red.begin[i]) != kRedByte;
    note_damage(wrong, place.bytes);
  }
  unpoison(p, place.bytes);
  std::memset(p, kFreedByte, place.bytes);
  place = {};
  s.free[s.n_free++] = uint16_t(k);
  return true;
}

}  // namespace detail

GuardedMemory::GuardedMemory(GuardSide side) : saved_(detail::guard_side) {
  detail::guard_side = side;
  detail::watch_memory();
}
GuardedMemory::~GuardedMemory() {
  detail::guard_side = saved_;
  detail::watch_memory();
}

}  // namespace lamella
