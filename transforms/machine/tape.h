// The tape: counted records of operator calls, and running them backwards. Levels and base autograd share it.
#pragma once

#include <any>
#include <functional>
#include <memory>

#include "lamella/dispatch/call.h"

LAMELLA_API_BEGIN
namespace lamella {

inline constexpr uint64_t kAutogradBit = KeySet::of(kAutogradKey).bits;

struct Node;
struct TapeInput;
using NodeRef = Ref<Node>;

/// What a node was computed from: result `output` of `node`, given as parameter `input` (entry `element` of a
/// list).
struct Edge {
  Node* node;  ///< counted
  uint32_t element;
  uint16_t output;
  uint8_t input;
  bool fix;  ///< the input's sizes or dtype differ from the result's
};

/// What base autograd keeps with a node: gradients and hooks.
struct NodeExtra {
  virtual ~NodeExtra() = default;
};

/// A saved tensor in another form. NOTE: [packed values]
class Packed {
 public:
  virtual ~Packed() = default;
  virtual Tensor unpack() = 0;
  /// The node that saved it has run.
  virtual void used() {}
};

/// NOTE: [packed values] While a Packer is in force on this thread, tensors that tapes save are offered to
/// it, and what it gives is kept in their stead: nothing of the tensor but what that holds. Backward unpacks
/// when a formula asks. Versions are the packer's to watch.
class Packer {
 public:
  virtual ~Packer() = default;
  /// `value` as it would be kept, by the level with this key (0: base autograd) for `saver`, an operator.
  /// Null: keep it.
  virtual std::shared_ptr<Packed> pack(std::string_view saver, const Tensor& value, int key) = 0;
  /// Whether a checkpointed function inside offers its arguments, which have histories.
  virtual bool takes_arguments() const { return false; }
};

/// Puts one in force for a scope; null: none.
class ScopedPacker {
 public:
  explicit ScopedPacker(Packer* packer);
  ~ScopedPacker();
  ScopedPacker(const ScopedPacker&) = delete;

 private:
  Packer* saved_;
};
Packer* packer_in_force();

/// What anomaly mode adds to the tapes of its thread: notes on nodes, and a look at what formulas give.
class TapeWatch {
 public:
  virtual ~TapeWatch() = default;
  /// Kept with the node that the call `values`, as given to record(), makes for level `key`; null: nothing.
  virtual std::shared_ptr<Packed> note(const Frame& values, int key) = 0;
  /// All cotangents of a node, or leaf, have come.
  virtual void arrived(Node& node, TensorSpan cotangents) = 0;
  /// Its formulas begin to run, and have run (not for leaves).
  virtual void begin(Node& node) = 0;
  virtual void end() = 0;
  /// What they gave along an edge; what this raises leaves backward.
  virtual void gave(Node& node, const Edge& edge, const Tensor& cotangent) = 0;
  /// They raised: raises it again, with what is known of the node.
  [[noreturn]] virtual void failed(Node& node, const Error& e) = 0;
  /// For the version error: what made the first write to t's memory after `version` others; "" unless known.
  virtual std::string writer_of(const Tensor& t, uint32_t version) = 0;
};

/// Puts one in force for a scope.
class ScopedWatch {
 public:
  explicit ScopedWatch(TapeWatch* watch);
  ~ScopedWatch();
  ScopedWatch(const ScopedWatch&) = delete;

 private:
  TapeWatch* saved_;
};
TapeWatch* watch_in_force();

/// NOTE: [nodes] One operator call: the row it used (pinned: rows are never freed), edges to what carries
/// derivatives, and only what the needed formulas declare. `order` exceeds that of every node it depends on,
/// so running nodes by descending order is a topological sort without a global counter. Nodes free each other
/// through a work list, never by recursion.
struct Node : RefCounted {
  /// A kept value, in place when it is a tensor or a number. NOTE: [tapes hold values] A tensor is
  /// kept through a header of the tape's own: were it the caller's, a later write could give that header a
  /// history that leads back to this node, which would then keep itself alive, or promotion turn it into a
  /// wrapper. Levels do so for what was made inside of them. What a value was computed from is known from the
  /// node's edges.
  class Saved {
   public:
    BoundSave what;
    /// `key` as for record().
    Saved(const Frame& f, BoundSave saved, int key, std::span<const TapeInput> inputs);
    ~Saved();
    Saved(const Saved&) = delete;
    /// As formulas receive it, by the conventions of frames; lists through `ints` and `list`, what was packed
    /// in `unpacked`. Error value when its memory was written after it was saved.
    const void* pointer(const Op& op, Ints& ints, TensorSpan& list, Tensors& unpacked) const;
    /// The node has run.
    void used() const;
    /// NOTE: [notes of nodes] A watch's note, under a name that no formula asks for.
    explicit Saved(std::shared_ptr<Packed> note);
    /// Null unless this is one.
    Packed* note() const;

   private:
    /// Wrapper: a tensor without memory of its own, and its last level.
    enum class Held : uint8_t { None, Number, Ints, Tensor, Wrapper, MoreInts, List, Boxed, Packed };
    void keep(const Frame& f);
    void keep_elsewhere(const Frame& f);
    void keep_tensor(const Op& op, const Tensor& t, std::span<const TapeInput> inputs);
    void keep_specially(const Op& op, const Tensor& t);
    void holds();
    void keep_ints(Ints ints);
    void keep_more_ints(Ints ints);
    void drop();
    template <class T> const T& as() const { return *reinterpret_cast<const T*>(bytes_); }
    template <class T> void put(T v, Held held);
    Held held_ = Held::None;
    uint8_t key_;  ///< of the level that saved it
    union {
      uint32_t version_ = 0;  ///< writes that the tensor had seen
      uint32_t n_ints_;
    };
    alignas(8) unsigned char bytes_[sizeof(Scalar)];
    static constexpr size_t kFewInts = sizeof(Scalar) / sizeof(int64_t);  ///< lie in bytes_
    static constexpr size_t kPooledInts = 8;                              ///< in a block of a pool
  };
  const Op* op = nullptr;  ///< null for leaves
  uint64_t order = 0;
  uint32_t n_edges = 0, room_for_edges = 0;
  uint32_t n_outputs = 1;
  uint8_t n_saved = 0, room_for_saved = 0;
  bool packed = false;         ///< some saved value may be
  NodeExtra* extra = nullptr;  ///< owned; base autograd's
  Node* next_dying = nullptr;
  Edge* edges() { return reinterpret_cast<Edge*>(this + 1); }
  Saved* saved() { return reinterpret_cast<Saved*>(edges() + room_for_edges); }

  /// The watch's, if it was recorded under one.
  Packed* note();

  static Node* create(size_t edges, int saved);
  static void destroy(Node* node);
};

/// Result `output` of `node`.
struct NodeOutput {
  NodeRef node;
  uint32_t output = 0;
};

/// Batch rules offer room for a list to every operator: the schema says whether there is one.
inline bool gives_list(const Frame& f) { return f.op->schema.result_kind == ResultKind::TensorList; }

/// One input that carries a derivative.
struct TapeInput {
  int param, element;
  const NodeOutput* from;
};

/// Records the call `values` (arguments and results as seen one level down) for level `key`; 0: base
/// autograd.
NodeRef record(const Frame& values, std::span<const TapeInput> inputs, int key = 0);

/// `t` as level `key` (0: base autograd) saved it for `saver`, when it had seen `version` writes and `last`
/// was its last level. Error value when it was written since.
const Tensor* as_saved(std::string_view saver, const Tensor& t, int key, int last, uint32_t version);

/// While alive on this thread, what is recorded keeps copies of values that lie in `memory`, which is about
/// to be written.
class KeepingCopies {
 public:
  explicit KeepingCopies(const Storage* memory);
  ~KeepingCopies();
  KeepingCopies(const KeepingCopies&) = delete;

 private:
  const Storage* saved_;
};

/// What base autograd adds to a run of the tape.
class TapeHooks {
 public:
  /// Before a node with extra runs: it may replace the cotangents of its outputs, which are complete now.
  virtual void before(Node& node, std::span<Tensor> cotangents) = 0;
  /// Whether after() is to be called for this node, which has extra.
  virtual bool watches(Node& node) = 0;
  /// Before what a watched node gives reaches its inputs: one cotangent an edge (undefined: none), which it
  /// may replace.
  virtual void after(Node& node, Tensors& to_inputs, TensorSpan cotangents) = 0;
  /// A leaf that received a cotangent.
  virtual void on_leaf(Node& leaf, const Tensor& cotangent) = 0;
  /// A saved value with the history it had: that of result `output` of `from`. Asked only when
  /// `keeps_history`.
  virtual Tensor with_history(const Tensor& value, Node& from, uint32_t output) = 0;
  bool keeps_history = false;  ///< derivatives of the gradients will be asked for

 protected:
  ~TapeHooks() = default;
};

/// Cotangents of `targets` given those of `roots`; undefined for targets that do not contribute. Runs rules
/// as ordinary calls; without hooks, only nodes that may lead to a target.
Tensors run_backward(std::span<const NodeOutput> roots, const Tensors& cotangents,
                     std::span<const NodeOutput> targets, TapeHooks* hooks = nullptr);
/// Likewise, and lets go of the roots when it begins: a node that nobody else holds, and what it saved, is
/// freed as soon as it has run, so that memory falls on the way.
Tensors run_backward_once(std::vector<NodeOutput>& roots, Tensors cotangents,
                          std::span<const NodeOutput> targets, TapeHooks* hooks = nullptr);

/// Derivative formulas applied outside the tape: J^T dy with respect to parameter 0 of a (view) operator.
Tensor transpose_of(const Op& op, const Values& args, const Tensor& dy);

/// Saved values as formulas receive them, straight from a frame.
class FrameSaves {
 public:
  FrameSaves(const Frame& frame, const BoundFormula& formula);
  const void* const* data() const { return pointers_; }

 private:
  const void* pointers_[kMaxSaves];
  Ints ints_[kMaxSavedSizes];
  DType dtypes_[kMaxSaves];
  Device devices_[kMaxSaves];
  TensorSpan list_;
};

/// `t` summed over dims the input was broadcast along and cast to the input's dtype (the real part for a real
/// input).
Tensor fit_cotangent(const Tensor& t, Ints sizes, DType dtype);

/// Raises unless writes to `target` can be followed: it is no leaf or view of one, and its family, if it has
/// derivatives, is of a tensor without gaps. Base autograd knows (history.cpp). `arg` of `op` in error texts,
/// which is `seen`: it may be a lane of the target.
void check_followed(const Op& op, std::string_view arg, const Tensor& target, const Tensor& seen);
inline void check_followed(const Op& op, std::string_view arg, const Tensor& target) {
  check_followed(op, arg, target, target);
}

}  // namespace lamella
LAMELLA_API_END
