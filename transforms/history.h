// What base autograd knows of a tensor: where its values come from, also after writes through other members
// of its family. For the files of base autograd only.
#pragma once

#include <mutex>

#include "lamella/core/family.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/machine/tape.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [base histories] A handle knows which result of which node its values are (`from`). Members of one
/// family (NOTE: [families]) besides agree on what the whole is: `FamilyHistory::from`, in the shape of the
/// tensor that was viewed first. A write through any member replaces the whole by one in which its part is
/// what was written (`strided_scatter`), and counts a generation. A handle of an older generation, or one
/// that was plain until then, is the part of the whole that its strides name (`strided_copy`). Both are
/// recorded, never run. Nothing a tape keeps leads to a handle or a family: NOTE: [tapes hold values].
struct Meta : TensorExtra {
  static void* operator new(size_t) { return Pool<64>::allocate(); }
  static void operator delete(void* p) { Pool<64>::free(p); }
  Meta(NodeRef node, uint32_t output) : from{std::move(node), output} {}
  NodeOutput from;
  std::atomic<uint32_t> generation = 0;  ///< of the family when `from` was the handle's history
  bool leaf = false;
  bool retains = false;  ///< retain_grad: goes along when the handle is written
  std::string str() const override { return leaf ? " requires grad" : " with grad history"; }
  ~Meta() override;
};
static_assert(sizeof(Meta) <= 64);

/// What was asked of a node beside its rule: hooks, and gradients added up of its results (a leaf's of its
/// one). Graphs reach it, also from other threads, while handles come and go.
struct NodeState : NodeExtra {
  std::mutex mutex;
  bool alive = true;           ///< a leaf: cleared when its last handle dies
  Shape type;                  ///< a leaf's
  std::vector<bool> retained;  ///< results whose gradients are added up
  Tensors grads;               ///< of those, and of a leaf
  std::vector<std::shared_ptr<HookHandle::State>> hooks;
  bool retains(size_t output) const { return output < retained.size() && retained[output]; }
  void retain(size_t output) {
    if (retained.size() <= output) retained.resize(output + 1);
    retained[output] = true;
  }
  Tensor& grad(size_t output) {
    if (grads.size() <= output) grads.resize(output + 1);
    return grads[output];
  }
};

/// A hook of one of the three kinds.
struct HookHandle::State {
  uint32_t output = 0;  ///< of a tensor hook
  TensorHook tensor;
  AccumulatedHook accumulated;
  NodeHook node;
  std::atomic<bool> removed{false};
};

/// The state of a node, made on demand.
NodeState& state_of(Node& node);

/// Null for plain tensors and for those that a level wraps.
inline Meta* meta_of(const Tensor& t) {
  return t.defined() && (t.keys() & kAutogradBit) && !(t.keys() >> kFirstLevelKey)
             ? static_cast<Meta*>(t.impl()->wrap)
             : nullptr;
}

/// Whether the handle itself says where its values come from: no other member of its family knows better.
inline bool says_its_history(const TensorImpl& t) {
  const Family* const family = t.family();
  if (!family || !family->history.load(std::memory_order_acquire)) return true;
  return (t.keys & kAutogradBit) && !(t.keys >> kFirstLevelKey) &&
         static_cast<const Meta*>(t.wrap)->generation == family->generation.load(std::memory_order_acquire);
}

/// Gives the handle `t` a history; a header that has one already is replaced by one of its own.
void attach(Tensor& t, NodeOutput from);

/// Where the values of `t` come from today; a null node when it carries no derivatives. The same node until
/// the next write, whoever asks: a target of autograd::grad is what formulas before were recorded with.
NodeOutput history_of(const Tensor& t);

/// Likewise, and the handle keeps to it until the next write: what hooks and retain_grad hold on to. A handle
/// that others wrote since would otherwise be asked for another part of the whole each time.
NodeOutput settled_history(const Tensor& t);

/// Makes `view`, a result of a view operator on x, a member of x's family.
void enter_family(const Tensor& x, const Tensor& view);

/// Notes that `target` has been overwritten with values of this history (a null node: of none), for it and
/// its family.
void follow_write(const Tensor& target, const NodeOutput& written);

}  // namespace lamella
LAMELLA_API_END
