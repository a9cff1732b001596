// Histories of handles and families: NOTE: [base histories].
#include "lamella/transforms/history.h"

#include <algorithm>
#include <unordered_map>

#include "lamella/ops/operators.h"
#include "lamella/transforms/inference.h"
#include "lamella/transforms/tapes/reasons.h"
#include "lamella/transforms/writes/keeping.h"

namespace lamella {

namespace {

/// What a member without a record of its own was last asked for.
struct Part {
  Dims sizes, strides;
  int64_t offset = 0;
  DType dtype = DType::F32;
  NodeOutput from;
  bool is_of(const TensorImpl& t) const {
    return from.node && dtype == t.dtype && offset == t.offset && sizes.equal({t.sizes(), t.rank}) &&
           strides.equal({t.strides(), t.rank});
  }
};

struct FamilyHistory : TensorExtra {
  Dims sizes;  ///< the whole: contiguous, at `offset` in the storage
  DType dtype = DType::F32;
  int64_t offset = 0;
  NodeOutput from;
  /// Of such members, until the next write. Whatever views the family now has a record: where one that has
  /// none dies, its address goes to none that shows something else.
  std::unordered_map<const TensorImpl*, Part> parts;
  bool followed = true;  ///< false: the whole is no run of elements; writes to it are refused
  int64_t numel() const {
    int64_t n = 1;
    for (const int64_t s : sizes) n *= s;
    return n;
  }
};

FamilyHistory* known(const Family& family) {
  return static_cast<FamilyHistory*>(family.history.load(std::memory_order_acquire));
}

const OpHandle kPart{"strided_copy"}, kReplaced{"strided_scatter"};

bool is_whole(const FamilyHistory& whole, const TensorImpl& t) {
  return t.dtype == whole.dtype && t.contiguous && t.offset == whole.offset && t.numel == whole.numel();
}

/// Where t begins in the whole, in elements of t: real and imaginary parts count two for each of the whole's.
int64_t offset_in(const FamilyHistory& whole, const TensorImpl& t) {
  return t.offset - (t.dtype == whole.dtype ? 1 : 2) * whole.offset;
}

/// The part of the whole that t shows, recorded without being computed: meta tensors stand for both.
NodeOutput part_of(const FamilyHistory& whole, const TensorImpl& t) {
  if (!whole.from.node) return {};
  if (is_whole(whole, t) && std::ranges::equal(Ints(whole.sizes), Ints{t.sizes(), t.rank})) return whole.from;
  const Tensor x = make_tensor(whole.sizes, whole.dtype, Device::Meta);
  const Ints size{t.sizes(), t.rank}, stride{t.strides(), t.rank};
  const int64_t offset = offset_in(whole, t);
  Tensor result = make_tensor(size, t.dtype, Device::Meta);
  const void* args[] = {&x, &size, &stride, &offset, &t.dtype};
  const TapeInput input{0, 0, &whole.from};
  return {record(Frame{&*kPart, args, &result}, {&input, 1}), 0};
}

/// The whole with t's part replaced.
NodeOutput with_part(const FamilyHistory& whole, const TensorImpl& t, const NodeOutput& part) {
  if (!whole.from.node && !part.node) return {};
  const Tensor x = make_tensor(whole.sizes, whole.dtype, Device::Meta);
  const Tensor src = make_tensor({t.sizes(), t.rank}, t.dtype, Device::Meta);
  const Ints stride{t.strides(), t.rank};
  const int64_t offset = offset_in(whole, t);
  Tensor result = x;
  const void* args[] = {&x, &src, &stride, &offset};
  TapeInput inputs[2];
  size_t n = 0;
  if (whole.from.node) inputs[n++] = {0, 0, &whole.from};
  if (part.node) inputs[n++] = {1, 0, &part};
  return {record(Frame{&*kReplaced, args, &result}, {inputs, n}), 0};
}

/// The whole as its first tracked member shows it.
std::unique_ptr<FamilyHistory> whole_of(const Tensor& x, const NodeOutput& from) {
  auto whole = std::make_unique<FamilyHistory>();
  whole->sizes = x.sizes();
  whole->dtype = x.dtype();
  whole->offset = x.impl()->offset;
  whole->from = from;
  whole->followed = x.is_contiguous();
  return whole;
}

/// The whole of a family that was plain: all its memory.
std::unique_ptr<FamilyHistory> plain_whole(const Tensor& t, DType dtype) {
  auto whole = std::make_unique<FamilyHistory>();
  const Storage* const memory = t.impl()->storage;
  whole->sizes = Dims{memory ? int64_t(memory->nbytes) / itemsize(dtype) : 0};
  whole->dtype = dtype;
  return whole;
}

/// Its handle is gone, or stands for another result: nobody can ask for this gradient any more, whose own
/// graph (create_graph) may lead back to the node.
void forget_retained(const NodeOutput& from) {
  NodeState& state = state_of(*from.node);
  Tensor last;  // dies after the lock is gone
  const std::lock_guard lock(state.mutex);
  if (!state.retains(from.output)) return;
  state.retained[from.output] = false;
  std::swap(last, state.grad(from.output));
}

void set_history(TensorImpl* impl, const NodeOutput& from, uint32_t generation) {
  auto* meta = static_cast<Meta*>(impl->wrap);
  if (!meta) {
    if (!from.node) return;
    impl->wrap = meta = new Meta({}, 0);
    impl->keys |= kAutogradBit;
  }
  if (meta->retains && meta->from.node) forget_retained(meta->from);
  meta->from = from;
  meta->generation.store(generation, std::memory_order_release);
  if (meta->retains && from.node) state_of(*from.node).retain(from.output);
}

}  // namespace

Meta::~Meta() {
  if (retains && from.node) forget_retained(from);
  if (!leaf || !from.node) return;
  NodeState& state = state_of(*from.node);
  Tensor last;  // dies after the lock is gone: what it leads to may hold leaves
  const std::lock_guard lock(state.mutex);
  state.alive = false;
  if (!state.grads.empty()) std::swap(last, state.grads[0]);
}

NodeState& state_of(Node& node) {
  static std::mutex making;
  if (NodeExtra* const extra = std::atomic_ref(node.extra).load(std::memory_order_acquire))
    return *static_cast<NodeState*>(extra);
  const std::lock_guard lock(making);
  if (!node.extra) std::atomic_ref(node.extra).store(new NodeState, std::memory_order_release);
  return *static_cast<NodeState*>(node.extra);
}

void attach(Tensor& t, NodeOutput from) {
  if (t.impl()->wrap) t = make_alias(t);
  t.impl()->wrap = new Meta(std::move(from.node), from.output);
  t.impl()->keys |= kAutogradBit;
}

NodeOutput history_of(const Tensor& t) {
  if (!t.defined() || t.keys() >> kFirstLevelKey) return {};
  const Meta* const meta = meta_of(t);
  Family* const family = t.impl()->family();
  if (!family || !known(*family)) return meta ? meta->from : NodeOutput{};
  const auto is_new = [&] {
    return meta && meta->generation.load(std::memory_order_acquire) ==
                       family->generation.load(std::memory_order_acquire);
  };
  if (is_new()) return meta->from;
  const std::lock_guard lock(family->mutex);
  if (is_new()) return meta->from;
  FamilyHistory& whole = *known(*family);
  if (!meta) {
    Part& kept = whole.parts[t.impl()];
    if (!kept.is_of(*t.impl()))
      kept = {t.sizes(), t.strides(), t.impl()->offset, t.dtype(), part_of(whole, *t.impl())};
    return kept.from;
  }
  NodeOutput from = part_of(whole, *t.impl());
  set_history(t.impl(), from, family->generation.load(std::memory_order_relaxed));
  return from;
}

NodeOutput settled_history(const Tensor& t) {
  Family* const family = t.defined() ? t.impl()->family() : nullptr;
  const uint32_t now = family ? family->generation.load(std::memory_order_acquire) : 0;
  NodeOutput from = history_of(t);
  if (!from.node || !family || !known(*family)) return from;
  const Meta* const meta = meta_of(t);
  if (!meta || meta->generation != now) set_history(t.impl(), from, now);
  return from;
}

void enter_family(const Tensor& x, const Tensor& view) {
  Family& family = Family::of(x);
  Family::join(view, family);
  Meta* const meta = meta_of(view);
  if (!meta) return;
  if (!known(family)) {
    auto whole = whole_of(x, history_of(x));
    const std::lock_guard lock(family.mutex);
    if (!known(family)) family.history.store(whole.release(), std::memory_order_release);
  }
  meta->generation = family.generation.load(std::memory_order_acquire);
}

void check_followed(const Op& op, std::string_view arg, const Tensor& target, const Tensor& seen) {
  const Meta* const meta = meta_of(target);
  LAMELLA_CHECK(
      !meta || !meta->leaf, Value,
      "{}: {} is {}, a leaf that requires grad; expected a result: write to a clone of it, or under "
      "NoGrad",
      op.name, arg, seen);
  LAMELLA_CHECK(!is_inference(target), Value,
                "{}: {} is {}, made in inference mode, and would get derivatives; expected a clone of it "
                "made outside",
                op.name, arg, seen);
  const Family* const family = target.impl()->family();
  const FamilyHistory* const whole = family ? known(*family) : nullptr;
  if (!whole) return;
  LAMELLA_CHECK(!whole->from.node || whole->from.node->op, Value,
                "{}: {} is {}, a view of a leaf that requires grad; expected a result: write to a clone of "
                "the leaf, or under NoGrad",
                op.name, arg, seen);
  if (!whole->followed)
    fail(HasGaps(), ErrorCode::Value,
         "{}: {} is {}, a view of a tensor that carries derivatives and has gaps between its elements; "
         "expected one without: write to a clone of it",
         op.name, arg, seen);
}

void follow_write(const Tensor& target, const NodeOutput& written) {
  TensorImpl* const impl = target.impl();
  Family* const family = impl->family();
  if (!family || (!written.node && !known(*family))) return set_history(impl, written, 0);
  const std::lock_guard lock(family->mutex);
  if (!known(*family))
    family->history.store(plain_whole(target, family->dtype).release(), std::memory_order_release);
  FamilyHistory& whole = *known(*family);
  LAMELLA_ASSERT(whole.followed);  // refused before anything was written
  if (is_whole(whole, *impl)) {
    whole.sizes = target.sizes();
    whole.from = written;
  } else {
    whole.from = with_part(whole, *impl, written);
  }
  whole.parts.clear();
  const uint32_t generation = family->generation.load(std::memory_order_relaxed) + 1;
  family->generation.store(generation, std::memory_order_release);
  set_history(impl, written, generation);
}

}  // namespace lamella
