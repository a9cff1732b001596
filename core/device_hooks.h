// What a device brings with it: memory of its own, ways to copy, an end to wait for, numbers to draw from.
#pragma once

#include "lamella/core/storage.h"

LAMELLA_API_BEGIN
namespace lamella {

class Generator;
class Tensor;

/// NOTE: [devices] The CPU and the Reference column share host memory. What lies on another device is reached
/// by the hooks of its Device alone: storages ask them for memory and give it back to them, and whatever the
/// host reads (item, printing, a copy to the CPU) comes by `copy_from`, after `synchronize`. A device without
/// hooks has no memory; Meta needs none.
struct DeviceHooks {
  void* (*allocate)(size_t nbytes) = nullptr;  ///< 64-byte aligned, nbytes > 0; null when there is none left
  void (*free)(void* data, size_t nbytes) = nullptr;
  void (*copy_to)(void* to, const void* host, size_t nbytes) = nullptr;      ///< host to device
  void (*copy_from)(void* host, const void* from, size_t nbytes) = nullptr;  ///< device to host
  void (*copy_within)(void* to, const void* from, size_t nbytes) = nullptr;  ///< device to device
  void (*synchronize)() = nullptr;      ///< returns when all that was asked for is done; null: it always is
  Generator& (*generator)() = nullptr;  ///< of random operators without a key there; null: the thread's own
};

inline constexpr bool is_host(Device d) { return d == Device::CPU || d == Device::Reference; }
/// Null for a device that has none.
const DeviceHooks* device_hooks(Device device);
/// Who draws for `device` when the caller gives no key.
Generator& generator_of(Device device);
/// Waits until all that was asked of `device` is done.
void synchronize(Device device);
/// Between any two devices with memory, through the host where they are two that are not it. Error device for
/// one without hooks.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t nbytes);

/// The bytes that elements of a plain tensor span in its storage, from a multiple of 64 on.
struct ByteSpan {
  int64_t begin = 0, end = 0;
};
ByteSpan bytes_spanned(const Tensor& t);
/// `t` with its sizes and strides in `copy`, which holds the bytes of t's storage from `begin` on.
Tensor in_copy(const Tensor& t, const StorageRef& copy, int64_t begin);
/// t itself if the host can read it, else its elements with its strides in memory of the CPU.
Tensor on_host(const Tensor& t);

namespace detail {
/// For good; the caller has seen to it that nobody did so before.
void set_device_hooks(Device device, const DeviceHooks& hooks);
/// Memory by the device's hooks. Errors: device, out_of_memory.
StorageRef allocate_on(Device device, size_t nbytes);
}  // namespace detail

}  // namespace lamella
LAMELLA_API_END
