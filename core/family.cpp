// Families of views: making them and letting them go.
#include "lamella/core/family.h"

#include <cstdlib>

namespace lamella {

namespace {
using FamilyPool = Pool<128>;
static_assert(sizeof(Family) <= 128);

void queued_family(RefCounted* f) { Family::destroy(static_cast<Family*>(f)); }

/// A family stays with the tensor that was viewed, maybe an argument: a trial of memory, which takes what
/// outlives a call for lost, is not asked.
void* family_block() {
  if (!detail::memory_on_trial) [[likely]]
    return FamilyPool::allocate();
  void* const block = std::aligned_alloc(64, 128);
  LAMELLA_CHECK(block, OutOfMemory, "out of memory: a family of views needs {} bytes", sizeof(Family));
  return block;
}

Family* make_family() {
  detail::thread_record();  // the first one may fail: before there is a block to lose
  Family* const family = new (family_block()) Family;
  family->destroy_queued = queued_family;
  return family;
}
}  // namespace

void Family::destroy(Family* family) {
  delete family->history.load(std::memory_order_relaxed);
  family->~Family();
  FamilyPool::free(family);
}

Family& Family::of(const Tensor& t) {
  if (Family* const family = t.impl()->family()) return *family;
  Family* const fresh = make_family();
  Family* seen = nullptr;
  if (std::atomic_ref(t.impl()->family_).compare_exchange_strong(seen, fresh, std::memory_order_acq_rel))
    return *fresh;
  destroy(fresh);
  return *seen;
}

void Family::join(const Tensor& view, Family& family) {
  if (view.impl()->family()) return;
  family.retain();
  std::atomic_ref(view.impl()->family_).store(&family, std::memory_order_release);
}

namespace detail {
void drop_family(TensorImpl* impl) {
  Family* const family = impl->family_;
  impl->family_ = nullptr;
  if (family->release()) Family::destroy(family);
}
}  // namespace detail

}  // namespace lamella
