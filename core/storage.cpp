// Storage: where element memory comes from and goes.
#include "lamella/core/storage.h"

#include <memory>

#include "lamella/core/allocation.h"
#include "lamella/core/check.h"
#include "lamella/core/device_hooks.h"
#include "lamella/core/guard.h"
#include "lamella/core/tensor.h"
#include "lamella/core/thresholds.h"

namespace lamella {

namespace detail {
std::atomic<int64_t> live_storages{0}, live_bytes{0};

void free_storage_memory(void* p) { free_raw(p); }
void free_embedded(Storage* s);  // tensor.cpp
void queued_storage(RefCounted* s) { Storage::destroy(static_cast<Storage*>(s)); }
}  // namespace detail

namespace {
/// NOTE: [middling storages] Up to 4 KiB of data share a pooled block with their storage, in blocks of a
/// power of two: malloc's aligned allocation costs more than the arithmetic on them.
constexpr size_t kHead = (sizeof(Storage) + 63) / 64 * 64,
                 kLargestPooled = size_t(kUsualThresholds.pooled_bytes);

template <size_t kBytes> void free_pooled(void* s) {
  static_cast<Storage*>(s)->~Storage();
  Pool<kHead + kBytes>::free(s);
}

template <size_t kBytes> Storage* new_pooled(size_t nbytes) {
  if (nbytes > kBytes) {
    if constexpr (kBytes < kLargestPooled) return new_pooled<kBytes * 2>(nbytes);
    return nullptr;
  }
  detail::thread_record();  // the first one may fail: before there is a block to lose
  void* const block = Pool<kHead + kBytes>::allocate();
  auto* s = new (block) Storage;
  s->data = static_cast<char*>(block) + kHead;
  s->deleter = free_pooled<kBytes>;
  s->context = s;
  detail::unpoison(s->data, kBytes);
  detail::poison(static_cast<char*>(s->data) + nbytes, kBytes - nbytes);
  return s;
}

void count(int64_t storages, size_t nbytes) {
  detail::live_storages.fetch_add(storages, std::memory_order_relaxed);
  detail::live_bytes.fetch_add(storages * int64_t(nbytes), std::memory_order_relaxed);
}
}  // namespace

void Storage::destroy(Storage* s) {
  if (s->embedded) return detail::free_embedded(s);
  count(-1, s->nbytes);
  const bool pooled = s->context == s;
  if (s->deleter) s->deleter(s->context);
  if (!pooled) delete s;
}

StorageRef adopt_storage(void* data, size_t nbytes, void (*deleter)(void*), void* context) {
  auto* s = new Storage;
  s->destroy_queued = detail::queued_storage;
  s->data = data;
  s->nbytes = nbytes;
  s->birth = detail::birth_serial;
  s->deleter = deleter;
  s->context = context;
  count(1, nbytes);
  return StorageRef::adopt(s);
}

StorageRef allocate_storage(size_t nbytes, Device device) {
  if (!is_host(device)) [[unlikely]]
    return detail::allocate_on(device, nbytes);
  // Trials and guards look right beside the elements, which then get a block of their own.
  if (kPooling && nbytes <= kLargestPooled && !detail::elements_apart) {
    Storage* const s = new_pooled<128>(nbytes);
    s->destroy_queued = detail::queued_storage;
    s->nbytes = nbytes;
    s->birth = detail::birth_serial;
    s->device = device;
    count(1, nbytes);
    return StorageRef::adopt(s);
  }
  std::unique_ptr<void, void (*)(void*)> data(allocate_block(nbytes), detail::free_storage_memory);
  StorageRef s = adopt_storage(data.get(), nbytes, detail::free_storage_memory, data.get());
  data.release();
  s->device = device;
  return s;
}

}  // namespace lamella
