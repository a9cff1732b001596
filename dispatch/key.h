// Dispatch keys: 64 bits. Low bits are backends and base autograd; high bits are levels of live transform
// instances.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "lamella/core/device.h"
#include "lamella/core/limits.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [keys] Bits 0..5 are backends, numbered as Device. Bits 6..14 are layouts and types of tensors that
/// keep data of their own. Bit 15 is base autograd. Bits 16..63 belong to
/// transform instances, handed out on entry and returned on exit: nothing else is fixed. The highest bit
/// decides.
inline constexpr int kFirstTypeKey = 6, kTypeKeys = kMaxTypes;
inline constexpr int kAutogradKey = 15;
inline constexpr int kFirstLevelKey = 16;
inline constexpr int kKeyCount = 64;
static_assert(kFirstTypeKey + kTypeKeys == kAutogradKey && kFirstLevelKey + kMaxLevels == kKeyCount);

struct KeySet {
  uint64_t bits = 0;

  constexpr KeySet() = default;
  constexpr explicit KeySet(uint64_t b) : bits(b) {}
  static constexpr KeySet of(int key) { return KeySet(uint64_t{1} << key); }
  static constexpr KeySet of(Device d) { return of(int(d)); }
  /// Every key at or above `key`.
  static constexpr KeySet from(int key) { return KeySet(~uint64_t{0} << key); }
  constexpr bool has(int key) const { return bits >> key & 1; }
  constexpr bool empty() const { return bits == 0; }
  constexpr int highest() const { return 63 - std::countl_zero(bits); }
  constexpr KeySet operator|(KeySet o) const { return KeySet(bits | o.bits); }
  constexpr KeySet operator&(KeySet o) const { return KeySet(bits & o.bits); }
  constexpr KeySet operator-(KeySet o) const { return KeySet(bits & ~o.bits); }
  constexpr bool operator==(const KeySet&) const = default;
};

inline constexpr KeySet kBackendKeys{0x3f};
inline constexpr bool is_level_key(int key) { return key >= kFirstLevelKey; }

/// "cpu", "autograd", "level#3" for any key; live levels are named by dispatch/state.h.
std::string key_name(int key);

}  // namespace lamella
LAMELLA_API_END
