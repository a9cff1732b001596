// A fuzz target is a function of bytes that must return: typed errors are part of the subject, and caught
// here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lamella/core/allocation.h"
#include "lamella/core/check.h"
#include "lamella/draw/draw.h"

namespace lamella::fuzz {

struct Target {
  std::string_view name;
  void (*run)(const uint8_t* data, size_t size);
};
/// All targets, by name.
std::vector<Target>& targets();
const Target* find_target(std::string_view name);

/// Registers a target: `const bool added = add_target("schema", run);`
bool add_target(std::string_view name, void (*run)(const uint8_t*, size_t));

/// Ends the process with a message: what a sanitizer would do.
[[noreturn]] void finding(std::string_view what);

/// Runs f with blocks of at most 4 MB; an Error other than `internal`, and memory refused, are answers.
/// Levels, masks and memory must be as before: a finding otherwise. True when f returned.
bool answers(void (*f)(void*), void* context);
/// How often `answers` was true: whether a target reaches beyond refusals.
uint64_t returned();
template <class F> bool answers(F&& f) {
  return answers([](void* g) { (*static_cast<std::remove_reference_t<F>*>(g))(); }, &f);
}

/// Numbers from bytes, 0 when there are no more.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t byte() { return at_ < size_ ? data_[at_++] : uint8_t{0}; }
  uint32_t below(uint32_t n) { return byte() % n; }
  /// Mostly small, sometimes extreme.
  int64_t integer();
  /// Little-endian words of what is left.
  std::vector<uint32_t> words();

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

}  // namespace lamella::fuzz
