// Storage: where element memory comes from and goes.
#include "lamella/core/storage.h"

#include <cstdlib>

#include "lamella/core/check.h"
#include "lamella/core/tensor.h"

namespace lamella {

namespace detail {
thread_local constinit uint64_t birth_serial = 0;
std::atomic<int64_t> live_storages{0}, live_bytes{0};

void free_storage_memory(void* p) { std::free(p); }
void queued_storage(RefCounted* s) { Storage::destroy(static_cast<Storage*>(s)); }
}  // namespace detail

void Storage::destroy(Storage* s) {
  if (s->embedded) {
    char* block = reinterpret_cast<char*>(s) - TensorImpl::kHeader;
    s->~Storage();
    Pool<TensorImpl::kBlock>::free(block);
    return;
  }
  detail::live_storages.fetch_sub(1, std::memory_order_relaxed);
  detail::live_bytes.fetch_sub(int64_t(s->nbytes), std::memory_order_relaxed);
  if (s->deleter) s->deleter(s->context);
  delete s;
}

StorageRef adopt_storage(void* data, size_t nbytes, void (*deleter)(void*), void* context) {
  auto* s = new Storage;
  s->destroy_queued = detail::queued_storage;
  s->data = data;
  s->nbytes = nbytes;
  s->birth = detail::birth_serial;
  s->deleter = deleter;
  s->context = context;
  detail::live_storages.fetch_add(1, std::memory_order_relaxed);
  detail::live_bytes.fetch_add(int64_t(nbytes), std::memory_order_relaxed);
  return StorageRef::adopt(s);
}

StorageRef allocate_storage(size_t nbytes, Device device) {
  const size_t rounded = (nbytes + 63) / 64 * 64;
  void* data = rounded >= nbytes ? std::aligned_alloc(64, rounded ? rounded : 64) : nullptr;
  LAMELLA_CHECK(data, OutOfMemory, "out of memory: a tensor needs {} bytes", nbytes);
  StorageRef s = adopt_storage(data, nbytes, detail::free_storage_memory, data);
  s->device = device;
  return s;
}

}  // namespace lamella
