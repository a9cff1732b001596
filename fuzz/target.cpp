// What all fuzz targets share.
#include "target.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "lamella/verify/programs/drawn.h"

namespace lamella::fuzz {

std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

const Target* find_target(std::string_view name) {
  for (const Target& t : targets())
    if (t.name == name) return &t;
  return nullptr;
}

bool add_target(std::string_view name, void (*run)(const uint8_t*, size_t)) {
  std::vector<Target>& all = targets();
  all.insert(std::find_if(all.begin(), all.end(), [&](const Target& t) { return t.name > name; }),
             {name, run});
  return true;
}

void finding(std::string_view what) {
  std::fprintf(stderr, "finding: %.*s\n", int(what.size()), what.data());
  std::abort();
}

namespace {
uint64_t times_returned = 0;
}
uint64_t returned() { return times_returned; }

bool answers(void (*f)(void*), void* context) {
  constexpr size_t kLargest = size_t{4} << 20;
  const verify::Snapshot before;
  bool done = false;
  try {
    const MemoryTrial trial({.guard = false, .largest = kLargest});
    f(context);
    done = true;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::Internal) finding(e.what());
  } catch (const std::bad_alloc&) {}  // of the standard library
  const std::string changed = before.changed_beside_heap().text();
  if (!changed.empty()) finding(changed);
  times_returned += done;
  return done;
}

int64_t Bytes::integer() {
  static constexpr int64_t kExtreme[] = {
      INT64_MIN,        INT64_MIN + 1,    INT64_MAX,           INT64_MAX - 1, INT64_C(1) << 31,
      INT64_C(1) << 32, INT64_C(1) << 58, -(INT64_C(1) << 32), 65536,         255};
  const uint8_t b = byte();
  if (b < 192) return int64_t(b % 16) - 4;
  if (b < 240) return kExtreme[b % std::size(kExtreme)];
  int64_t wide = 0;
  for (int i = 0; i < 8; ++i) wide = int64_t(uint64_t(wide) << 8 | byte());
  return wide;
}

std::vector<uint32_t> Bytes::words() {
  std::vector<uint32_t> out((size_ - at_ + 3) / 4);
  if (!out.empty()) std::memcpy(out.data(), data_ + at_, size_ - at_);
  at_ = size_;
  return out;
}

}  // namespace lamella::fuzz
