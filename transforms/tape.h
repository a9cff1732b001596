// The tape: counted records of operator calls, and running them backwards. Levels and base autograd share it.
#pragma once

#include "lamella/dispatch/call.h"

namespace lamella {

struct Node;
using NodeRef = Ref<Node>;

/// What a node was computed from: result `output` of `node`, given as parameter `input` (entry `element` of a
/// list).
struct Edge {
  Node* node;  ///< counted
  uint8_t output, input;
  uint16_t element;
  bool fix;  ///< the input's sizes or dtype differ from the result's
};

/// NOTE: [nodes] One operator call: the row it used (pinned: rows are never freed), edges to what carries
/// derivatives, and only what the needed formulas declare. `order` exceeds that of every node it depends on,
/// so running nodes by descending order is a topological sort without a global counter. Nodes free each other
/// through a work list, never by recursion.
struct Node : RefCounted {
  /// A kept value, in place when it is a tensor or a number.
  class Saved {
   public:
    BoundSave what;
    Saved(const Frame& f, BoundSave saved) : what(saved) { keep(f); }
    ~Saved();
    Saved(const Saved&) = delete;
    /// As formulas receive it, by the conventions of frames; lists through `ints` and `list`. Error value
    /// when its memory was written after it was saved.
    const void* pointer(const Op& op, Ints& ints, TensorSpan& list) const;

   private:
    enum class Held : uint8_t { None, Tensor, Number, Boxed };
    void keep(const Frame& f);
    template <class T> const T& as() const { return *reinterpret_cast<const T*>(bytes_); }
    template <class T> void put(const T& v, Held held);
    Held held_ = Held::None;
    uint32_t version_ = 0;  ///< of the tensor's memory
    alignas(8) unsigned char bytes_[sizeof(Scalar)];
  };
  const Op* op = nullptr;  ///< null for leaves
  uint64_t order = 0;
  uint8_t n_edges = 0, n_saved = 0, n_outputs = 1, room_for_edges = 0, room_for_saved = 0;
  union {
    TensorExtra* leaf = nullptr;  ///< base autograd: the meta data that collects the gradient
    Node* next_dying;
  };
  Edge* edges() { return reinterpret_cast<Edge*>(this + 1); }
  Saved* saved() { return reinterpret_cast<Saved*>(edges() + room_for_edges); }

  static Node* create(int edges, int saved);
  static void destroy(Node* node);
};

/// Result `output` of `node`.
struct NodeOutput {
  NodeRef node;
  uint32_t output = 0;
};

/// One input that carries a derivative.
struct TapeInput {
  int param, element;
  const NodeOutput* from;
};

/// The memory a tensor's values lie in, also through wrappers; null on meta.
const Storage* memory_of(const TensorImpl* impl);

/// Records the call `values` (arguments and results as seen one level down).
NodeRef record(const Frame& values, std::span<const TapeInput> inputs);

/// What base autograd adds to a run of the tape.
struct TapeHooks {
  /// Receives the cotangent of each leaf that is no target.
  void (*on_leaf)(Node&, const Tensor&) = nullptr;
  /// A saved result of a node as its formulas shall see it; null: as it was saved.
  Tensor (*saved_result)(Node&, uint32_t output, const Tensor&) = nullptr;
};

/// Cotangents of `targets` given those of `roots`; undefined for targets that do not contribute. Runs rules
/// as ordinary calls.
Tensors run_backward(std::span<const NodeOutput> roots, const Tensors& cotangents,
                     std::span<const NodeOutput> targets, TapeHooks hooks = {});

/// Derivative formulas applied outside the tape: J^T dy with respect to parameter 0 of a (view) operator.
Tensor transpose_of(const Op& op, const Values& args, const Tensor& dy);

inline constexpr int kMaxSaves = 6, kMaxSizes = 2;  ///< of one formula

/// Saved values as formulas receive them, straight from a frame.
class FrameSaves {
 public:
  FrameSaves(const Frame& frame, const BoundFormula& formula);
  const void* const* data() const { return pointers_; }

 private:
  const void* pointers_[kMaxSaves];
  Ints ints_[kMaxSizes];
  DType dtypes_[kMaxSaves];
};

/// `t` summed over dims the input was broadcast along and cast to the input's dtype (the real part for a real
/// input).
Tensor fit_cotangent(const Tensor& t, Ints sizes, DType dtype);

}  // namespace lamella
