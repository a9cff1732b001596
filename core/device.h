// Where a tensor's elements live, which is also the column of kernels that serves it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Reference: host memory served by the oracle's kernels. Meta: shape and dtype without elements. User0,
/// User1: see NOTE: [devices].
enum class Device : uint8_t { CPU, Reference, CUDA, Meta, User0, User1 };

inline constexpr std::string_view name(Device d) {
  constexpr std::string_view kNames[] = {"cpu", "reference", "cuda", "meta", "user0", "user1"};
  return kNames[int(d)];
}

/// The device of that name, or none.
inline constexpr std::optional<Device> device_named(std::string_view text) {
  for (int d = 0; d <= int(Device::User1); ++d)
    if (text == name(Device(d))) return Device(d);
  return std::nullopt;
}

}  // namespace lamella
LAMELLA_API_END
