// The tape: counted records of operator calls, and running them backwards. Levels and base autograd share it.
#pragma once

#include "lamella/transforms/tapes/kept.h"

LAMELLA_API_BEGIN
namespace lamella {

inline constexpr uint64_t kAutogradBit = KeySet::of(kAutogradKey).bits;

struct Node;
struct TapeInput;
struct Receivers;  ///< tapes/steps.h
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
    /// Something under a name that no formula asks for.
    Saved(BoundSave name, std::unique_ptr<Kept> kept) : what(name), key_(0) {
      put(kept.release(), Held::Elsewhere);
    }
    Saved(const Saved&) = delete;
    /// As formulas receive it, by the conventions of frames: sizes through `ints`, the rest as Kept says.
    /// Error value when its memory was written after it was saved.
    const void* pointer(const Op& op, Ints& ints, TensorSpan& list, Tensors& unpacked) const;
    /// Null when it lies in the node itself.
    Kept* kept() const { return held_ == Held::Elsewhere ? as<Kept*>() : nullptr; }

   private:
    /// Wrapper: a tensor without memory of its own, and its last level.
    enum class Held : uint8_t { None, Number, Ints, Tensor, Wrapper, MoreInts, Elsewhere };
    void keep(const Frame& f);
    void keep_tensor(const Op& op, const Tensor& t, std::span<const TapeInput> inputs);
    void keep_specially(const Op& op, const Tensor& t);
    void holds();
    void keep_ints(Ints ints);
    void keep_more_ints(Ints ints);
    void drop();
    template <class T> const T& as() const { return *reinterpret_cast<const T*>(bytes_); }
    template <class T> void put(T v, Held held) {
      new (bytes_) T(std::move(v));
      held_ = held;
    }
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
/// What a call that has returned gave.
inline std::span<Tensor> results_of(const Frame& f) {
  if (gives_list(f)) return *f.list;
  return {f.results, size_t(f.op->schema.n_results)};
}

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

/// Cotangents of the targets of `to` given those of `roots`; undefined for targets that do not contribute.
/// Runs rules as ordinary calls; without hooks, only nodes that may lead to a target.
Tensors run_backward(std::span<const NodeOutput> roots, const Tensors& cotangents, const Receivers& to);
/// Likewise, and lets go of the roots when it begins: a node that nobody else holds, and what it saved, is
/// freed as soon as it has run, so that memory falls on the way.
Tensors run_backward_once(std::vector<NodeOutput>& roots, Tensors cotangents, const Receivers& to);

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

}  // namespace lamella
LAMELLA_API_END
