// What all views of one tensor share beside its memory: base autograd follows writes from one to the others.
#pragma once

#include <memory>
#include <unordered_set>

#include "lamella/core/tensor.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [families] A tensor and its views are a family: a write through any of them changes what all of them
/// are functions of. It is made when the first view is, and every member holds it; detach() and views made
/// under NoGrad start anew, over the same memory. Nothing of it is known to core but who belongs to it:
/// `history` is base autograd's, null as long as no member carries derivatives.
struct Family : RefCounted {
  const DType dtype;  ///< of the tensor that was viewed first; real and imaginary parts have another one
  std::atomic<TensorExtra*> history{nullptr};  ///< owned
  std::atomic<uint32_t> generation{0};         ///< counts the writes that `history` has followed
  std::mutex mutex;                            ///< for changes of both, and of `members`
  /// Where the memory was made under a level, which may have to turn all of them into wrappers.
  std::unique_ptr<std::unordered_set<TensorImpl*>> members;

  explicit Family(DType d) : dtype(d) {}
  /// That of `t`, made on demand; threads that view one tensor at a time agree on it.
  static Family& of(const Tensor& t) {
    Family* const family = t.impl()->family();
    return family ? *family : found(t);
  }
  /// Makes `view` a member, unless it is in a family already.
  static void join(const Tensor& view, Family& family) {
    if (view.impl()->family()) return;
    if (family.members) [[unlikely]]
      family.list(view.impl());
    family.retain();
    std::atomic_ref(view.impl()->family_).store(&family, std::memory_order_release);
  }
  static void destroy(Family* family);
  /// A member's header lets go; whoever calls has its reference.
  void leave(TensorImpl* member);
  /// Handles of all members; none where they are not listed, or where one belongs to another thread: that may
  /// be letting go of its last handle just now.
  Tensors handles();
  /// How many there are: in all threads, without blocks that wait in this one.
  static int64_t alive();

 private:
  void list(TensorImpl* member);
  static Family& found(const Tensor& t);  ///< a new one, unless another thread is faster
};

/// Whether another member of t's family got derivatives while `t` itself was plain.
inline bool has_late_history(const TensorImpl* t) {
  const Family* const f = t->family();
  return f && f->history.load(std::memory_order_acquire);
}

}  // namespace lamella
LAMELLA_API_END
