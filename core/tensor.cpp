// Tensor headers: creating, viewing, destroying.
#include "lamella/core/tensor.h"

#include <algorithm>

namespace lamella {

namespace detail {
extern std::atomic<int64_t> live_storages, live_bytes;
static std::atomic<int64_t> live_heap_tensors{0};
void queued_storage(RefCounted* s);
static void queued_tensor(RefCounted* t) { TensorImpl::destroy(static_cast<TensorImpl*>(t)); }
}  // namespace detail

MemoryStats memory_stats() { return {0, detail::live_storages.load(), detail::live_bytes.load()}; }

TensorImpl* TensorImpl::create() {
  auto* impl = new (Pool<kBlock>::allocate()) TensorImpl;
  impl->destroy_queued = detail::queued_tensor;
  if (detail::this_thread_record->pending.load(std::memory_order_relaxed)) [[unlikely]]
    detail::drain(detail::this_thread_record);
  return impl;
}

void TensorImpl::destroy(TensorImpl* impl) {
  if (impl->extra) [[unlikely]] {
    if (impl->extra->in_block) impl->extra->~TensorExtra();
    else delete impl->extra;
  }
  if (impl->heap) [[unlikely]]
    delete[] impl->heap;
  Storage* const storage = impl->storage;
  const bool embedded = storage && storage->embedded && static_cast<void*>(storage) == impl->suffix();
  impl->~TensorImpl();
  if (!embedded) Pool<kBlock>::free(impl);
  if (storage && storage->release()) Storage::destroy(storage);
}

void TensorImpl::set_shape(Ints sizes, Ints strides) {
  rank = uint8_t(sizes.size());
  if (rank > 5) {
    delete[] heap;
    heap = new int64_t[2 * sizes.size()];
  }
  numel = 1;
  contiguous = true;
  for (int d = int(sizes.size()) - 1; d >= 0; --d) {
    if (sizes[d] != 1 && strides[d] != numel) contiguous = false;
    numel *= sizes[d];
  }
  if (numel == 0) contiguous = true;
  std::copy(sizes.begin(), sizes.end(), mutable_sizes());
  std::copy(strides.begin(), strides.end(), mutable_strides());
}

void TensorImpl::set_contiguous(Ints sizes) {
  rank = uint8_t(sizes.size());
  if (rank > 5) {
    delete[] heap;
    heap = new int64_t[2 * sizes.size()];
  }
  int64_t* const s = mutable_sizes();
  int64_t* const t = mutable_strides();
  int64_t step = 1;
  numel = 1;
  for (int d = rank - 1; d >= 0; --d) {
    s[d] = sizes[d];
    t[d] = step;
    numel *= sizes[d];
    step *= sizes[d] > 1 ? sizes[d] : 1;
  }
  contiguous = true;
}

Dims contiguous_strides(Ints sizes) {
  Dims strides(int(sizes.size()));
  int64_t step = 1;
  for (int d = int(sizes.size()) - 1; d >= 0; --d) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

int64_t checked_numel(Ints sizes, const char* op) {
  int64_t span = 1;
  int64_t numel = 1;
  for (const int64_t s : sizes) {
    LAMELLA_CHECK(s >= 0, Shape, "{}: size = {} has a negative entry; expected sizes >= 0", op, Dims(sizes));
    const bool over = __builtin_mul_overflow(span, std::max<int64_t>(s, 1), &span);
    LAMELLA_CHECK(!over && span <= (int64_t{1} << 58), Overflow,
                  "{}: size = {} has more elements than memory can hold; expected at most 2^58", op,
                  Dims(sizes));
    numel *= s;
  }
  return numel;
}

Tensor make_tensor(Ints sizes, DType dtype, Device device) {
  int64_t numel = 1;
  if (sizes.size() == 1 && sizes[0] >= 0 && sizes[0] < (1 << 30)) numel = sizes[0];
  else numel = checked_numel(sizes, "empty");
  LAMELLA_CHECK(sizes.size() <= 64, Shape, "empty: got {} dims, expected at most 64", sizes.size());
  const size_t nbytes = size_t(numel) * size_t(itemsize(dtype));
  StorageRef large;
  if (nbytes > TensorImpl::kInlineBytes && device != Device::Meta) large = allocate_storage(nbytes, device);
  TensorImpl* impl = TensorImpl::create();
  impl->dtype = dtype;
  impl->device = device;
  impl->keys = uint64_t{1} << int(device);
  impl->set_contiguous(sizes);
  if (large) {
    impl->storage = large.detach();
  } else if (device != Device::Meta) {
    auto* s = new (impl->suffix()) Storage;
    s->destroy_queued = detail::queued_storage;
    s->data = reinterpret_cast<char*>(s) + sizeof(Storage);
    s->nbytes = nbytes;
    s->birth = detail::birth_serial;
    s->device = device;
    s->embedded = true;
    impl->storage = s;
  }
  return Tensor::adopt(impl);
}

Tensor make_view_unchecked(const Tensor& base, Ints sizes, Ints strides, int64_t offset) {
  TensorImpl* impl = TensorImpl::create();
  const TensorImpl* b = base.impl();
  impl->dtype = b->dtype;
  impl->device = b->device;
  impl->keys = uint64_t{1} << int(b->device);
  impl->set_shape(sizes, strides);
  impl->offset = offset;
  impl->storage = b->storage;
  if (b->storage) b->storage->retain();
  return Tensor::adopt(impl);
}

Tensor make_view(const Tensor& base, Ints sizes, Ints strides, int64_t offset) {
  LAMELLA_CHECK(base.impl()->storage || base.device() == Device::Meta, Storage, "view: {} has no storage",
                base);
  LAMELLA_CHECK(sizes.size() == strides.size(), Shape,
                "view: got {} sizes and {} strides, expected as many of each", sizes.size(), strides.size());
  const int64_t numel = checked_numel(sizes, "view");
  __int128 last = offset;
  for (size_t d = 0; d < sizes.size(); ++d) {
    LAMELLA_CHECK(strides[d] >= 0, Shape, "view: stride = {} is negative for dim {}; expected >= 0",
                  strides[d], d);
    last += __int128(std::max<int64_t>(sizes[d] - 1, 0)) * strides[d];
  }
  if (base.impl()->storage) {
    const int64_t room = int64_t(base.impl()->storage->nbytes) / itemsize(base.dtype());
    const bool fits = numel == 0 ? offset <= room : last < room;
    LAMELLA_CHECK(offset >= 0 && fits, Storage,
                  "view: sizes {}, strides {} at offset {} reach beyond the storage of {} elements",
                  Dims(sizes), Dims(strides), offset, room);
  }
  return make_view_unchecked(base, sizes, strides, offset);
}

bool overlaps_itself(const Tensor& t) {
  if (t.is_contiguous()) return false;
  Dims order;
  for (int d = 0; d < t.rank(); ++d)
    if (t.size(d) > 1) order.push_back(d);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return t.stride(int(a)) < t.stride(int(b)); });
  int64_t reach = 0;  // a dim is safe when one step of it clears everything the finer dims touch
  for (const int64_t d : order) {
    if (t.stride(int(d)) <= reach) return true;
    reach += (t.size(int(d)) - 1) * t.stride(int(d));
  }
  return false;
}

Overlap overlap(const Tensor& a, const Tensor& b) {
  if (!a.shares_storage(b) || a.numel() == 0 || b.numel() == 0) return Overlap::None;
  const auto range = [](const Tensor& t) {
    int64_t last = 0;
    for (int d = 0; d < t.rank(); ++d) last += (t.size(d) - 1) * t.stride(d);
    const auto* first = static_cast<const char*>(t.raw_data());
    return std::pair(first, first + (last + 1) * itemsize(t.dtype()));
  };
  const auto [a0, a1] = range(a);
  const auto [b0, b1] = range(b);
  if (a1 <= b0 || b1 <= a0) return Overlap::None;
  const bool same = a0 == b0 && a.dtype() == b.dtype() && std::ranges::equal(a.sizes(), b.sizes()) &&
                    std::ranges::equal(a.strides(), b.strides());
  return same ? Overlap::Same : Overlap::Partial;
}

void* Tensor::checked_data(DType wanted) const {
  LAMELLA_CHECK(impl_, Undefined, "data: the tensor is undefined");
  LAMELLA_CHECK(impl_->storage, Level,
                "data: {} has no memory of its own (it is wrapped by a transform, or meta)", *this);
  LAMELLA_CHECK(impl_->dtype == wanted, DType, "data: got {}, expected {}", *this, wanted);
  return impl_->data();
}

}  // namespace lamella
