// Spike 0002: reference counts (plain, atomic, owner-biased); small tensors (three allocations, or one
// block).
#include <cstring>
#include <thread>

#include "lamella/core/tensor.h"

#include "timing.h"

namespace {
using namespace lamella;

struct Plain {
  int count = 1;
  void retain() { ++count; }
  bool release() { return --count == 0; }
  static void destroy(Plain* p) { delete p; }
};
struct Atomic {
  std::atomic<int> count{1};
  void retain() { count.fetch_add(1, std::memory_order_relaxed); }
  bool release() { return count.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  static void destroy(Atomic* p) { delete p; }
};
struct Biased : RefCounted {
  static void destroy(Biased* p) { delete p; }
};

template <class T> void pairs(const Ref<T>& handle, int64_t n) {
  while (n--) {
    Ref<T> copy = handle;
    spike::keep(copy);
  }
}

/// What a tensor costs when header, storage and data are separate allocations.
struct Header : Atomic {
  int64_t sizes[5], strides[5], numel, rank;
  Atomic* storage;
  void* data;
};
Header* make_apart(int64_t n) {
  auto* h = new Header;
  h->storage = new Atomic;
  h->data = std::aligned_alloc(64, size_t(n * 4 + 63) / 64 * 64);
  h->rank = 1;
  h->sizes[0] = h->numel = n;
  h->strides[0] = 1;
  return h;
}
void drop_apart(Header* h) {
  if (!h->release()) return;
  std::free(h->data);
  if (h->storage->release()) delete h->storage;
  delete h;
}

/// Tensors made here and dropped by another thread; the queue comes back with the next creation.
void hand_over(int64_t n, int64_t elements) {
  std::vector<Tensor> box;
  for (int64_t i = 0; i < n; ++i) box.push_back(make_tensor({&elements, 1}, DType::F32));
  std::thread([&] { box.clear(); }).join();
}
}  // namespace

int main() {
  const auto plain = Ref<Plain>::adopt(new Plain);
  const auto atomic = Ref<Atomic>::adopt(new Atomic);
  const auto biased = Ref<Biased>::adopt(new Biased);
  Ref<Biased> foreign;
  std::thread([&] { foreign = Ref<Biased>::adopt(new Biased); }).join();
  spike::Contest counts("copy and drop a handle");
  counts.add("plain", 1000000, [&](int64_t n) { pairs(plain, n); });
  counts.add("atomic", 1000000, [&](int64_t n) { pairs(atomic, n); });
  counts.add("owner-biased, by the owner", 1000000, [&](int64_t n) { pairs(biased, n); });
  counts.add("owner-biased, by another thread", 1000000, [&](int64_t n) { pairs(foreign, n); });
  counts.run();

  const int64_t four = 4;
  spike::Contest creation("make and drop f32[4]");
  creation.add("one pooled block, biased counts (make_tensor)", 200000, [&](int64_t n) {
    while (n--) spike::keep(make_tensor({&four, 1}, DType::F32));
  });
  creation.add("header, storage, data by malloc, atomic counts", 200000, [&](int64_t n) {
    while (n--) { drop_apart(make_apart(four)); }
  });
  creation.add("made here, dropped by another thread (make_tensor)", 20000,
               [&](int64_t n) { hand_over(n, 4); });
  creation.run();
  hand_over(1000, 1024);
  const int64_t waiting = memory_stats().bytes;
  (void)make_tensor({&four, 1}, DType::F32);
  std::printf(
      "1000 tensors of 4 KiB dropped elsewhere: %lld KiB wait for their owner, %lld after its next "
      "creation\n",
      (long long)waiting >> 10, (long long)memory_stats().bytes >> 10);
  std::printf("bytes: TensorImpl %zu, Storage %zu, block %zu\n", sizeof(TensorImpl), sizeof(Storage),
              TensorImpl::kBlock);
}
