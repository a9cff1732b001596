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

inline constexpr int kDeviceCount = 6;
inline constexpr bool is_valid(Device d) { return int(d) < kDeviceCount; }
namespace detail {
[[noreturn, gnu::cold]] void refuse_device(std::string_view who, Device d, std::string_view argument);
}
/// Error device, naming function and argument, for a number that is none of the list.
inline void check_device(std::string_view who, Device d, std::string_view argument = "device") {
  if (!is_valid(d)) [[unlikely]]
    detail::refuse_device(who, d, argument);
}

/// "no device" of what is none.
inline constexpr std::string_view name(Device d) {
  constexpr std::string_view kNames[] = {"cpu", "reference", "cuda", "meta", "user0", "user1"};
  return is_valid(d) ? kNames[int(d)] : "no device";
}

/// The device of that name, or none.
inline constexpr std::optional<Device> device_named(std::string_view text) {
  for (int d = 0; d <= int(Device::User1); ++d)
    if (text == name(Device(d))) return Device(d);
  return std::nullopt;
}

}  // namespace lamella
LAMELLA_API_END
