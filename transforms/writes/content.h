// What a header stands for: the memory it shows, and what it was before promotion.
#pragma once

#include "lamella/dispatch/call.h"

LAMELLA_API_BEGIN
namespace lamella {

/// What promotion puts into a header (NOTE: [promotion of fresh storage]): a wrapper, and the tensor, of no
/// level or of levels further out, that the header was.
struct Promoted {
  Tensor before;
};
template <class W> struct PromotedWrapper : W, Promoted {};

/// The level that wraps a tensor last; 0: none.
inline int last_level(const TensorImpl& t) {
  return t.storage || !(t.keys >> kFirstLevelKey) ? 0 : KeySet(t.keys).highest();
}
/// A tape's handle `t`, of which `last` was the last level when the tape of level `key` saved it: as that
/// level saw it. Null when a level further out has promoted it, which to this one is a write.
const Tensor* before_promotion(const Tensor& t, int key, int last);

/// Where a write to a tensor ends: in the memory below wrappers of vmap, or in a wrapper that replaces its
/// value.
struct Content {
  const Tensor* holder;  ///< that tensor or wrapper
  uint64_t birth;        ///< as a storage's; 0 for memory of a caller
  bool shared;           ///< other tensors show it
  const Storage* memory() const { return holder->impl()->storage; }
};
Content content_of(const Tensor& t);
/// Puts a wrapper into a header, for what it was.
void become(TensorImpl* header, Wrapper* wrapper);
/// Handles of all that show t's memory, where all are plain, of one dtype, and known; else none.
Tensors plain_family(const Tensor& t);
/// Of a batch of memory in one dim, the lanes of the part that `plain` shows: they lie in those of the whole.
Tensor part_of_lanes(const Tensor& batch, const Tensor& plain, int64_t lanes);
/// Tells writes apart that a tensor has seen through any wrapper, for tapes that saved it.
uint32_t writes_through(const TensorImpl* impl);
inline uint32_t writes_seen(const TensorImpl& impl) {
  return impl.storage ? impl.storage->version.load(std::memory_order_relaxed) : writes_through(&impl);
}
/// What tensors had seen before a function of the user got them that may not write to them. Some may be
/// undefined.
class WritesSeen {
 public:
  explicit WritesSeen(TensorSpan ts);
  /// The first of the same tensors that was written since.
  std::optional<size_t> written(TensorSpan ts) const;

 private:
  std::vector<uint32_t> seen_;
};

}  // namespace lamella
LAMELLA_API_END
