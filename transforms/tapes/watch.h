// Looking at what tapes record and what formulas give: anomaly mode.
#pragma once

#include "lamella/transforms/machine/tape.h"

LAMELLA_API_BEGIN
namespace lamella {

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

/// NOTE: [notes of nodes] What the watch noted when the node was recorded lies among what the node saved,
/// under a name that no formula asks for. Null: it was recorded under none.
Packed* note_of(Node& node);

}  // namespace lamella
LAMELLA_API_END
