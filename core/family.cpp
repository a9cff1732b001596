// Families of views: making them and letting them go.
#include "lamella/core/family.h"

#include <cstdlib>

#include "lamella/core/yield.h"

namespace lamella {

namespace {
std::atomic<int64_t> family_blocks{0};  // of malloc

/// Blocks of families come from here alone. A family stays with the tensor that was viewed, which may be an
/// argument: trials of memory and memory_stats(), which take what outlives a call for lost, do not know them.
///
/// It has no destructor, for what dies in a thread's end, after Releaser, asks it still; of an object that is
/// being destroyed a compiler may drop the last words.
class Blocks {
 public:
  void* allocate() {
    if (void* const block = take()) return block;
    begin();
    void* const block = std::aligned_alloc(64, sizeof(Block));
    LAMELLA_CHECK(block, OutOfMemory, "out of memory: a family of views needs {} bytes", sizeof(Block));
    family_blocks.fetch_add(1, std::memory_order_relaxed);
    return block;
  }
  int64_t waiting() const { return free_ ? count_ : 0; }
  void free(void* p) {
    begin();
    if (count_ >= kMost) return give_back(p);
    static_cast<Block*>(p)->next = free_;
    free_ = static_cast<Block*>(p);
    ++count_;
    detail::poison(p, sizeof(Block));
  }
  void end() {
    while (void* const block = take()) give_back(block);
    count_ = kMost;  // what dies later on this thread goes straight to malloc
  }

 private:
  static void begin();
  union alignas(64) Block {
    Block* next;
    char bytes[sizeof(Family)];
  };
  void* take() {
    Block* const block = free_;
    if (!block) return nullptr;
    detail::unpoison(block, sizeof(Block));
    free_ = block->next, --count_;
    return block;
  }
  static void give_back(void* block) {
    family_blocks.fetch_sub(1, std::memory_order_relaxed);
    std::free(block);
  }
  static constexpr int kMost = kPooling ? 256 : 0;
  Block* free_ = nullptr;
  int count_ = 0;
};
thread_local constinit Blocks blocks;
struct Releaser {
  ~Releaser() { blocks.end(); }
};
thread_local Releaser releaser;
inline void Blocks::begin() { (void)&releaser; }

void queued_family(RefCounted* f) { Family::destroy(static_cast<Family*>(f)); }

Family* make_family(DType dtype) {
  detail::thread_record();  // the first one may fail: before there is a block to lose
  Family* const family = new (blocks.allocate()) Family(dtype);
  family->destroy_queued = queued_family;
  return family;
}
}  // namespace

void Family::destroy(Family* family) {
  delete family->history.load(std::memory_order_relaxed);
  family->~Family();
  blocks.free(family);
}

Family& Family::found(const Tensor& t) {
  std::unique_ptr<std::unordered_set<TensorImpl*>> members;
  if (const Storage* const memory = t.impl()->storage; memory && memory->made_under_level())
    members = std::make_unique<std::unordered_set<TensorImpl*>>(std::initializer_list<TensorImpl*>{t.impl()});
  Family* const fresh = make_family(t.dtype());
  fresh->members = std::move(members);
  detail::yield_point();
  Family* seen = nullptr;
  if (std::atomic_ref(t.impl()->family_).compare_exchange_strong(seen, fresh, std::memory_order_acq_rel))
    return *fresh;
  destroy(fresh);
  return *seen;
}

void Family::list(TensorImpl* member) {
  const std::lock_guard lock(mutex);
  members->insert(member);
}

void Family::leave(TensorImpl* member) {
  detail::yield_point();
  const std::lock_guard lock(mutex);
  members->erase(member);
}

Tensors Family::handles() {
  Tensors out;
  if (!members) return out;
  const std::lock_guard lock(mutex);
  for (const TensorImpl* const member : *members)
    if (!member->owned_here()) return out;
  out.reserve(members->size());
  for (TensorImpl* const member : *members) {
    member->retain();
    out.push_back(Tensor::adopt(member));
  }
  return out;
}

int64_t Family::alive() { return family_blocks.load(std::memory_order_relaxed) - blocks.waiting(); }

}  // namespace lamella
