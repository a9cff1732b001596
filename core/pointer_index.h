// Places of things by their address: open addressing, no allocation a thing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Addresses are those of blocks: multiples of 64, or nearly so.
class PointerIndex {
 public:
  static constexpr uint32_t kAbsent = ~uint32_t{0};
  /// The place, or kAbsent. REQUIRES: something was inserted.
  uint32_t find(const void* address) const {
    for (size_t i = home(address);; i = (i + 1) & mask())
      if (!slots_[i].address) return kAbsent;
      else if (slots_[i].address == address) return slots_[i].place;
  }
  /// A later place of the same address replaces the one before.
  void insert(const void* address, uint32_t place) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    used_ += put({address, place});
  }

 private:
  struct Slot {
    const void* address;
    uint32_t place;
  };
  size_t mask() const { return slots_.size() - 1; }
  size_t home(const void* address) const {
    return (reinterpret_cast<uintptr_t>(address) >> 6) * 0x9E3779B97F4A7C15u >> 20 & mask();
  }
  /// Whether it is new.
  bool put(Slot s) {
    size_t i = home(s.address);
    while (slots_[i].address && slots_[i].address != s.address) i = (i + 1) & mask();
    const bool fresh = !slots_[i].address;
    slots_[i] = s;
    return fresh;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2, Slot{nullptr, 0});
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.address) put(s);
  }
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace lamella
LAMELLA_API_END
