// Memory that only its device touches.
#include "lamella/core/device_hooks.h"

#include <atomic>
#include <cstring>
#include <memory>

#include "lamella/core/generator.h"
#include "lamella/core/scoped_device.h"
#include "lamella/core/tensor.h"

namespace lamella {

void detail::refuse_device(std::string_view who, Device d, std::string_view argument) {
  fail(ErrorCode::Device, "{}: {} = Device({}); expected cpu, reference, cuda, meta, user0 or user1", who,
       Argument{std::string(argument)}, int(d));
}

namespace {
std::atomic<const DeviceHooks*> all_hooks[kDeviceCount];  // never freed

const DeviceHooks& needed_hooks(Device device) {
  const DeviceHooks* const hooks = device_hooks(device);
  LAMELLA_CHECK(hooks, Device,
                "empty: device = {} has no memory: nothing has claimed it by add_device; expected cpu, "
                "reference, meta or a claimed one",
                name(device));
  return *hooks;
}

/// Who frees a block of a device, and how.
struct DeviceBlock {
  const DeviceHooks& hooks;
  void* data;
  size_t nbytes;
  DeviceBlock(const DeviceHooks& h, void* p, size_t n) : hooks(h), data(p), nbytes(n) {}
  static void free(void* block) {
    const std::unique_ptr<DeviceBlock> own(static_cast<DeviceBlock*>(block));
    if (own->data) own->hooks.free(own->data, own->nbytes);
  }
};
}  // namespace

const DeviceHooks* device_hooks(Device device) {
  return all_hooks[size_t(device)].load(std::memory_order_acquire);
}

Generator& generator_of(Device device) {
  const DeviceHooks* const hooks = device_hooks(device);
  return hooks && hooks->generator ? hooks->generator() : default_generator();
}

void synchronize(Device device) {
  const DeviceHooks* const hooks = device_hooks(device);
  if (hooks && hooks->synchronize) hooks->synchronize();
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t nbytes) {
  if (nbytes == 0) return;
  const bool reads = is_host(from_device), writes = is_host(to_device);
  if (reads && writes) {
    std::memcpy(to, from, nbytes);
  } else if (reads) {
    needed_hooks(to_device).copy_to(to, from, nbytes);
  } else if (to_device == from_device) {
    needed_hooks(to_device).copy_within(to, from, nbytes);
  } else {
    synchronize(from_device);
    const auto copy_from = needed_hooks(from_device).copy_from;
    if (writes) return copy_from(to, from, nbytes);
    const auto between = std::make_unique_for_overwrite<char[]>(nbytes);
    copy_from(between.get(), from, nbytes);
    needed_hooks(to_device).copy_to(to, between.get(), nbytes);
  }
}

ByteSpan bytes_spanned(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  if (impl.numel == 0) return {};
  const int64_t size = itemsize(impl.dtype);
  int64_t last = impl.offset;
  for (int d = 0; d < impl.rank; ++d) last += (impl.sizes()[d] - 1) * impl.strides()[d];
  return {impl.offset * size & ~int64_t{63}, (last + 1) * size};
}

Tensor in_copy(const Tensor& t, const StorageRef& copy, int64_t begin) {
  const TensorImpl& from = *t.impl();
  TensorImpl* const impl = TensorImpl::create_bare();
  const Tensor out = Tensor::adopt(impl);  // what follows may fail
  impl->dtype = from.dtype;
  impl->device = copy->device;
  impl->keys = uint64_t{1} << int(copy->device);
  impl->set_shape_of(from);
  impl->number = from.number;
  impl->offset = from.numel == 0 ? 0 : from.offset - begin / itemsize(from.dtype);
  impl->storage = StorageRef(copy).detach();
  return out;
}

Tensor on_host(const Tensor& t) {
  if (!t.impl()->storage || is_host(t.device())) return t;
  const ByteSpan bytes = bytes_spanned(t);
  const auto n = size_t(bytes.end - bytes.begin);
  const StorageRef copy = allocate_storage(n, Device::CPU);
  copy_bytes(copy->data, Device::CPU, static_cast<char*>(t.impl()->storage->data) + bytes.begin, t.device(),
             n);
  return in_copy(t, copy, bytes.begin);
}

ScopedDevice::ScopedDevice(Device device, const DeviceHooks& hooks) : device_(device) {
  LAMELLA_ASSERT(!device_hooks(device));
  all_hooks[size_t(device)].store(&hooks, std::memory_order_release);
}
ScopedDevice::~ScopedDevice() { all_hooks[size_t(device_)].store(nullptr, std::memory_order_release); }

namespace detail {
void set_device_hooks(Device device, const DeviceHooks& hooks) {
  all_hooks[size_t(device)].store(new DeviceHooks(hooks), std::memory_order_release);
}

StorageRef allocate_on(Device device, size_t nbytes) {
  const DeviceHooks& hooks = needed_hooks(device);
  auto block = std::make_unique<DeviceBlock>(hooks, nullptr, nbytes);
  StorageRef s = adopt_storage(nullptr, nbytes, nullptr, nullptr);
  if (nbytes > 0) {
    block->data = hooks.allocate(nbytes);
    LAMELLA_CHECK(block->data, OutOfMemory, "out of memory: a tensor on {} needs {} bytes", name(device),
                  nbytes);
  }
  s->data = block->data;
  s->device = device;
  s->context = block.release();
  s->deleter = DeviceBlock::free;
  return s;
}
}  // namespace detail

}  // namespace lamella
