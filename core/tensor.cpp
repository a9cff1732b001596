// Tensor headers: creating, viewing, destroying.
#include "lamella/core/tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lamella/core/device_hooks.h"
#include "lamella/core/family.h"
#include "lamella/core/guard.h"
#include "lamella/core/layout.h"
#include "lamella/core/limits.h"

namespace lamella {

namespace detail {
extern std::atomic<int64_t> live_storages, live_bytes;
void queued_storage(RefCounted* s);
static void queued_tensor(RefCounted* t) { TensorImpl::destroy(static_cast<TensorImpl*>(t)); }
}  // namespace detail

MemoryStats memory_stats() {
  // What other threads gave back to this one is not alive.
  if (ThreadRecord* const record = detail::this_thread_record; record && record->pending.load())
    detail::drain(record);
  const detail::BlocksInUse use = detail::blocks_in_use();
  return {detail::live_storages.load(), use.blocks, detail::live_bytes.load() + use.bytes};
}

namespace {
/// Blocks of this thread that wait for their next life, as objects; beyond the cap they go back to malloc.
using TensorPool = detail::FreeList;
constexpr size_t kCap = detail::kFreeListCap;
enum Kind { kShell, kFull, kBare };
thread_local constinit TensorPool pools[]{{.block_bytes = TensorImpl::kBlock},
                                          {.block_bytes = TensorImpl::kBlock},
                                          {.block_bytes = TensorImpl::kBareBlock}};  // by kind
Kind kind_of(const TensorImpl* impl) { return impl->bare ? kBare : impl->full ? kFull : kShell; }

TensorImpl* head_of(const TensorPool& pool) { return static_cast<TensorImpl*>(pool.head); }
/// Who waits in a pool waits in no owner's queue.
TensorImpl* next_of(const TensorImpl* waiting) { return static_cast<TensorImpl*>(waiting->next_queued); }

Storage* embedded(TensorImpl* impl) { return static_cast<Storage*>(impl->suffix()); }

constexpr uint64_t kPlainKeys = uint64_t{1} << int(Device::CPU);

/// Full blocks wait as what most of them become: a number-free CPU tensor that holds its own elements.
void make_plain(TensorImpl* impl) {
  impl->keys = kPlainKeys;
  impl->device = Device::CPU;
  impl->number = false;
  impl->offset = 0;
  impl->storage = embedded(impl);
  impl->storage->device = Device::CPU;
}
/// One look for all three: few tensors have any. (A full block's is never of another layout.)
bool is_alone(const TensorImpl* impl) {
  return !(reinterpret_cast<uintptr_t>(impl->wrap) | reinterpret_cast<uintptr_t>(impl->family_));
}
bool is_plain(const TensorImpl* impl, const Storage* own) {
  return impl->storage == own && impl->keys == kPlainKeys && is_alone(impl) && !impl->number;
}

void free_block(TensorImpl* impl) {
  const size_t bytes = pools[kind_of(impl)].block_bytes;
  detail::unpoison(impl, bytes);
  if (impl->full) embedded(impl)->~Storage();
  impl->~TensorImpl();
  detail::free_counted(impl, bytes);
}

/// Gives the blocks back when the thread ends.
struct PoolOwner {
  ~PoolOwner() {
    for (TensorPool& pool : pools) {
      while (TensorImpl* impl = head_of(pool)) {
        detail::unpoison(impl, pool.block_bytes);
        pool.head = next_of(impl);
        free_block(impl);
      }
      pool.count = kCap;  // what dies later on this thread goes straight to malloc
    }
  }
};
thread_local PoolOwner pool_owner;

[[gnu::noinline]] TensorImpl* new_block(Kind kind) {
  for (TensorPool& pool : pools)
    if (!pool.enlisted) detail::enlist(pool);
  detail::carriers_list = &pools[kFull];
  (void)&pool_owner;
  detail::thread_record();  // the first one may fail: before there is a block to lose
  auto* impl = new (detail::allocate_counted(pools[kind].block_bytes)) TensorImpl;
  impl->destroy_queued = detail::queued_tensor;
  impl->bare = kind == kBare;
  impl->full = kind == kFull;
  if (!impl->full) return impl;
  auto* s = new (impl->suffix()) Storage;
  s->destroy_queued = detail::queued_storage;
  s->data = reinterpret_cast<char*>(s) + sizeof(Storage);
  s->embedded = true;
  make_plain(impl);
  return impl;
}

inline void pop(TensorPool& pool, TensorImpl* head) {
  detail::unpoison(head, pool.block_bytes);
  pool.head = next_of(head);
  --pool.count;
}

/// Whether other threads left objects for this one to free.
inline bool has_pending() {
  const ThreadRecord* const record = detail::this_thread_record;  // null while the thread ends
  return record && record->pending.load(std::memory_order_relaxed);
}

inline void push(TensorPool& pool, TensorImpl* impl) {
  impl->next_queued = head_of(pool);
  pool.head = impl;
  ++pool.count;
  detail::poison(impl, pool.block_bytes);
}

inline TensorImpl* take_block(Kind kind) {
  if (has_pending()) [[unlikely]]
    detail::drain(detail::this_thread_record);
  TensorPool& pool = pools[kind];
  TensorImpl* const impl = head_of(pool);
  if (!impl) [[unlikely]]
    return new_block(kind);
  pop(pool, impl);
  return impl;
}

/// Nobody refers to the header or its embedded storage any more.
void give_block(TensorImpl* impl) {
  impl->revive();
  if (impl->full) {
    embedded(impl)->revive();
    make_plain(impl);
  }
  TensorPool& pool = pools[kind_of(impl)];
  pool.count < kCap ? push(pool, impl) : free_block(impl);
}

[[gnu::noinline]] void drop_family(TensorImpl* impl) {
  Family* const family = std::exchange(impl->family_, nullptr);
  if (family->members) [[unlikely]]
    family->leave(impl);
  if (family->release()) Family::destroy(family);
}

[[gnu::noinline]] void drop_layout(TensorImpl* impl) {
  TensorLayout* const layout = std::exchange(impl->layout, nullptr);
  if (layout->release()) TensorLayout::destroy(layout);
}

/// The wrapper, the layout and the family, if any.
inline void drop_company(TensorImpl* impl) {
  if (TensorExtra* const wrap = std::exchange(impl->wrap, nullptr))
    wrap->in_block ? wrap->~TensorExtra() : delete wrap;
  if (impl->layout) [[unlikely]]
    drop_layout(impl);
  if (impl->family_) [[unlikely]]
    drop_family(impl);
}

/// Room for sizes and strides of `n` dims.
inline void set_rank(TensorImpl* impl, size_t n) {
  if (impl->rank > TensorImpl::kInlineRank || n > size_t(TensorImpl::kInlineRank)) [[unlikely]] {
    int64_t* const fresh = n > size_t(TensorImpl::kInlineRank) ? new int64_t[2 * n] : nullptr;
    if (impl->rank > TensorImpl::kInlineRank) delete[] impl->heap;
    impl->heap = fresh;
  }
  impl->rank = uint8_t(n);
}
}  // namespace

namespace detail {
/// The last view of an embedded storage died after its header.
void free_embedded(Storage* s) {
  give_block(reinterpret_cast<TensorImpl*>(reinterpret_cast<char*>(s) - TensorImpl::kHeader));
}
}  // namespace detail

static inline TensorImpl* empty_header(Kind kind) {
  TensorImpl* const impl = take_block(kind);
  impl->storage = nullptr;
  impl->offset = 0;
  impl->number = false;
  return impl;
}
TensorImpl* TensorImpl::create() { return empty_header(kShell); }
TensorImpl* TensorImpl::create_bare() { return empty_header(kBare); }

/// Most, in line: a function that needs no registers of its own.
void TensorImpl::destroy(TensorImpl* impl) {
  TensorPool& pool = pools[kFull];
  Storage* const own = embedded(impl);  // only a full block's storage lies there
  if (is_plain(impl, own) && impl->rank <= kInlineRank && own->unique() && pool.count < kCap) [[likely]]
    return push(pool, impl);
  destroy_slowly(impl);
}

/// What leads elsewhere goes first; then tensors that were results of recorded calls are plain, too.
[[gnu::noinline]] void TensorImpl::destroy_slowly(TensorImpl* impl) {
  drop_company(impl);
  Storage* const s = impl->storage;
  if (impl->rank > kInlineRank) [[unlikely]]
    return destroy_rarely(impl);
  if (impl->full) {
    TensorPool& pool = pools[kFull];
    if (s != embedded(impl) || !s->unique() || pool.count >= kCap) return destroy_rarely(impl);
    make_plain(impl);
    return push(pool, impl);
  }
  TensorPool& pool = pools[impl->bare ? kBare : kShell];
  if (pool.count >= kCap) return destroy_rarely(impl);
  push(pool, impl);
  if (s && s->release()) Storage::destroy(s);
}

void TensorImpl::destroy_rarely(TensorImpl* impl) {
  if (impl->rank > kInlineRank) [[unlikely]]
    set_rank(impl, 0);
  Storage* const s = impl->storage;
  if (!s) return give_block(impl);
  if (!impl->full || s != embedded(impl)) give_block(impl);
  else impl->revive();  // its block lives on with its storage
  if (s->release()) Storage::destroy(s);
}

void TensorImpl::set_shape(Ints sizes, Ints strides) {
  set_rank(this, sizes.size());
  int64_t* const s = mutable_sizes();
  int64_t* const t = mutable_strides();
  int64_t n = 1;
  bool dense = true;
  for (int d = rank - 1; d >= 0; --d) {
    dense &= sizes[size_t(d)] == 1 || strides[size_t(d)] == n;
    n *= s[d] = sizes[size_t(d)];
    t[d] = strides[size_t(d)];
  }
  numel = n;
  contiguous = dense || n == 0;
}

void TensorImpl::set_shape_of(const TensorImpl& other) {
  if (rank > kInlineRank || other.rank > kInlineRank) [[unlikely]]
    return set_shape({other.sizes(), other.rank}, {other.strides(), other.rank});
  rank = other.rank;
  numel = other.numel;
  contiguous = other.contiguous;
  std::memcpy(dims, other.dims, sizeof dims);
}

void TensorImpl::set_contiguous(Ints sizes) {
  set_rank(this, sizes.size());
  int64_t* const s = mutable_sizes();
  int64_t* const t = mutable_strides();
  int64_t step = 1, n = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const int64_t size = sizes[size_t(d)];
    s[d] = size;
    t[d] = step;
    n *= size;
    step *= size > 1 ? size : 1;
  }
  numel = n;
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

/// A size beside a 0 counts as strides do: zeros({2^62, 0}) is refused, which has no elements, and which
/// PyTorch makes (it refuses {2^62, 4, 0}, by the order of the sizes). Strides, views and reductions over the
/// empty dim would go on with numbers that overflow, as in pt#147352.
int64_t checked_numel(Ints sizes, const char* op) {
  LAMELLA_CHECK(sizes.size() <= kMaxDims, Shape, "{}: size has {} entries, expected at most {} dims", op,
                sizes.size(), kMaxDims);
  int64_t span = 1;
  int64_t numel = 1;
  for (const int64_t s : sizes) {
    LAMELLA_CHECK(s >= 0, Shape, "{}: size = {} has a negative entry; expected sizes >= 0", op, Dims(sizes));
    const bool over = __builtin_mul_overflow(span, std::max<int64_t>(s, 1), &span);
    LAMELLA_CHECK(!over && span <= kMaxNumel, Overflow,
                  "{}: size = {} has more elements than memory can hold; expected at most 2^58", op,
                  Dims(sizes));
    numel *= s;
  }
  return numel;
}

namespace {
/// What a full block waiting in the pool does not know yet of its next life.
inline void begin(TensorImpl* impl, size_t rank, int64_t numel, DType dtype, size_t nbytes) {
  impl->dtype = dtype;
  impl->rank = uint8_t(rank);
  impl->contiguous = true;
  impl->numel = numel;
  Storage* const s = embedded(impl);
  s->nbytes = nbytes;
  s->birth = detail::birth_serial;
  s->version.store(0, std::memory_order_relaxed);
  detail::poison(static_cast<char*>(s->data) + nbytes, TensorImpl::kInlineBytes - nbytes);
}

}  // namespace

TensorImpl* TensorImpl::make_slowly(Ints sizes, DType dtype, Device device) {
  check_dtype("make_tensor", dtype), check_device("make_tensor", device);
  // The short way may have opened the block on top of the pool and not taken it.
  if (kPoisons && head_of(pools[kFull])) detail::poison(head_of(pools[kFull]), kBlock);
  const int64_t numel = checked_numel(sizes, "empty");
  const size_t nbytes = size_t(numel) * size_t(itemsize(dtype));
  const bool small = nbytes <= TensorImpl::kInlineBytes && is_host(device) && !detail::guards_elements();
  StorageRef large;
  if (!small && device != Device::Meta) large = allocate_storage(nbytes, device);
  TensorImpl* const impl = small ? take_block(kFull) : TensorImpl::create_bare();
  if (small) {
    begin(impl, 0, numel, dtype, nbytes);
    impl->storage->device = device;
  } else {
    impl->dtype = dtype;
    impl->storage = large.detach();
  }
  impl->device = device;
  impl->keys = uint64_t{1} << int(device);
  auto out = Ref<TensorImpl>::adopt(impl);
  impl->set_contiguous(sizes);
  return out.detach();
}

/// The short way fills in the block on top of the pool and takes it only when the elements fit.
TensorImpl* TensorImpl::make_on_cpu(Ints sizes, DType dtype) {
  TensorPool& pool = pools[kFull];
  TensorImpl* const impl = head_of(pool);
  if (!impl || has_pending() || !is_valid(dtype)) [[unlikely]]
    return make_slowly(sizes, dtype, Device::CPU);
  detail::unpoison(impl, kBlock);
  uint64_t n = 1, step = 1;
  size_t d = sizes.size();
  if (d == 1) {
    n = uint64_t(sizes[0]);
    if (n > kInlineBytes) return make_slowly(sizes, dtype, Device::CPU);
    impl->dims[0] = int64_t(n);
    impl->dims[kInlineRank] = 1;
    d = 0;
  } else if (d > size_t(kInlineRank)) return make_slowly(sizes, dtype, Device::CPU);
  while (d-- > 0) {
    const uint64_t size = uint64_t(sizes[d]);
    if (size > kInlineBytes) return make_slowly(sizes, dtype, Device::CPU);
    impl->dims[d] = int64_t(size);
    impl->dims[d + kInlineRank] = int64_t(step);
    n *= size;
    step *= size > 1 ? size : 1;
  }
  const uint64_t nbytes = n * uint64_t(itemsize(dtype));
  if (nbytes > kInlineBytes) return make_slowly(sizes, dtype, Device::CPU);
  pop(pool, impl);
  begin(impl, sizes.size(), int64_t(n), dtype, nbytes);
  return impl;
}

Tensor make_view_unchecked(const Tensor& base, Ints sizes, Ints strides, int64_t offset) {
  return make_view_unchecked(base, sizes, strides, offset, base.dtype());
}

Tensor make_view_unchecked(const Tensor& base, Ints sizes, Ints strides, int64_t offset, DType dtype) {
  TensorImpl* impl = TensorImpl::create_bare();
  Tensor out = Tensor::adopt(impl);  // what follows may fail
  const TensorImpl* b = base.impl();
  impl->dtype = dtype;
  impl->device = b->device;
  impl->keys = uint64_t{1} << int(b->device);
  impl->set_shape(sizes, strides);
  impl->offset = offset;
  impl->storage = b->storage;
  if (b->storage) b->storage->retain();
  return out;
}

Tensor make_alias(const Tensor& t) {
  const TensorImpl* const b = t.impl();
  TensorImpl* const impl = TensorImpl::create_bare();
  impl->dtype = b->dtype;
  impl->device = b->device;
  impl->number = b->number;
  impl->keys = uint64_t{1} << int(b->device);
  if (b->rank <= TensorImpl::kInlineRank) [[likely]] {  // as that of every shell from the pool is
    impl->rank = b->rank;
    impl->numel = b->numel;
    impl->contiguous = b->contiguous;
    std::memcpy(impl->dims, b->dims, sizeof impl->dims);
  } else {
    Tensor holder = Tensor::adopt(impl);  // for the heap may be out of memory
    impl->set_shape_of(*b);
    holder.impl()->retain();
  }
  impl->offset = b->offset;
  impl->storage = b->storage;
  if (b->storage) b->storage->retain();
  if (b->layout) [[unlikely]] {
    impl->keys = uint64_t{1} << b->layout->key;
    impl->layout = b->layout;
    b->layout->retain();
  }
  return Tensor::adopt(impl);
}

Tensor make_view(const Tensor& base, Ints sizes, Ints strides, int64_t offset) {
  return make_view(base, sizes, strides, offset, base.dtype());
}

Tensor make_view(const Tensor& base, Ints sizes, Ints strides, int64_t offset, DType dtype) {
  LAMELLA_CHECK(base.impl()->storage || base.device() == Device::Meta, Storage,
                "view: {} has no storage; expected a plain tensor", base);
  LAMELLA_CHECK(
      !base.impl()->wrap, Usage,
      "view: {}{} carries derivatives, which strides alone would lose; expected a plain tensor: call "
      "a view operator, or detach it first",
      base, base.impl()->wrap->str());
  LAMELLA_CHECK(dtype == base.dtype() || (is_complex(base.dtype()) && dtype == to_real(base.dtype())), DType,
                "view: dtype = {} for {}; expected its own, or that of its real part", dtype, base);
  LAMELLA_CHECK(sizes.size() == strides.size(), Shape,
                "view: sizes has {} entries and strides {}, expected as many of each", sizes.size(),
                strides.size());
  const int64_t numel = checked_numel(sizes, "view");
  __int128 last = offset;
  auto reach = last;
  for (size_t d = 0; d < sizes.size(); ++d) {
    LAMELLA_CHECK(strides[d] >= 0, Shape, "view: stride = {} is negative for dim {}; expected >= 0",
                  strides[d], d);
    const __int128 span = __int128(std::max<int64_t>(sizes[d], 1)) * strides[d];
    last += span - strides[d];
    reach += span;
  }
  if (base.impl()->storage) {
    const int64_t room = int64_t(base.impl()->storage->nbytes) / itemsize(dtype);
    const bool fits = numel == 0 ? offset <= room : last < room;
    LAMELLA_CHECK(
        offset >= 0 && fits, Storage,
        "view: sizes = {}, strides = {} at offset = {}; expected to stay within the storage of {} elements",
        Dims(sizes), Dims(strides), offset, room);
  }
  // Strides over one element or none lead nowhere, but views of this view multiply and add them.
  LAMELLA_CHECK(
      reach < kMaxNumel, Overflow,
      "view: sizes = {}, strides = {} at offset = {}; expected strides that reach less than 2^58 elements",
      Dims(sizes), Dims(strides), offset);
  const Tensor out = make_view_unchecked(base, sizes, strides, offset, dtype);
  Family::join(out, Family::of(base));
  return out;
}

void* Tensor::checked_data(DType wanted) const {
  LAMELLA_CHECK(impl_, Undefined, "data: the tensor is undefined; expected a defined one");
  LAMELLA_CHECK(
      impl_->storage, Level,
      "data: {} has no memory of its own (it is wrapped by a transform, or meta); expected a plain tensor",
      *this);
  LAMELLA_CHECK(impl_->dtype == wanted, DType, "data: got {}, expected {}", *this, wanted);
  LAMELLA_CHECK(is_host(impl_->device), Device,
                "data: {} is on {}, whose memory the host cannot read; expected a tensor on cpu: to_device "
                "copies it there",
                *this, name(impl_->device));
  return impl_->data();
}

}  // namespace lamella
