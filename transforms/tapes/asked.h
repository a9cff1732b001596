// What the tapes of a thread are asked for beside derivatives. For the files that make them only.
#pragma once

#include "lamella/transforms/tapes/watch.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Which tensors of its lists an operator's formulas read, where that is known once it has run.
class ListsRead {
 public:
  /// Entry `k` of a list of `op`'s arguments, or of its results.
  virtual bool reads(const Op& op, bool results, size_t k) const = 0;

 protected:
  ~ListsRead() = default;
};

struct AskedOfTapes {
  Packer* packer = nullptr;
  const ListsRead* lists_read = nullptr;  ///< null: all are
  TapeWatch* watch = nullptr;
  const Storage* about_to_be_written = nullptr;
  int special_saves = 0;  ///< whether there is a packer, or memory is about to be written: one look for both
  int special_nodes = 0;  ///< how many there are of a packer and a watch: likewise
};
inline thread_local constinit AskedOfTapes asked_of_tapes{};

/// The form that the packer gives a value of `key`'s; null: it is kept as it is.
std::shared_ptr<Packed> packed_form(const Op& op, const Tensor& value, int key);
/// Whether entry `k` of the list `what` of `op` is read.
inline bool is_read(const Op& op, BoundSave what, size_t k) {
  const ListsRead* const lists = asked_of_tapes.lists_read;
  const bool given = what.kind == BoundSave::Argument || what.kind == BoundSave::Result;
  return !lists || !given || lists->reads(op, what.kind == BoundSave::Result, k);
}
/// What is asked of a node beside its rule.
void note_specially(Node& node, const Frame& f, int key);

}  // namespace lamella
LAMELLA_API_END
