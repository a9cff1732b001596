// Where a tensor's elements live, which is also the column of kernels that serves it.
#pragma once

#include <cstdint>
#include <string_view>

namespace lamella {

/// Reference: host memory served by the oracle's kernels. Meta: shape and dtype without elements.
enum class Device : uint8_t { CPU, Reference, CUDA, Meta, User0, User1 };

inline constexpr std::string_view name(Device d) {
  constexpr std::string_view kNames[] = {"cpu", "reference", "cuda", "meta", "user0", "user1"};
  return kNames[int(d)];
}

}  // namespace lamella
