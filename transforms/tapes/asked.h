// What the tapes of a thread are asked for beside derivatives. For the files that make them only.
#pragma once

#include "lamella/transforms/tapes/watch.h"

LAMELLA_API_BEGIN
namespace lamella {

struct AskedOfTapes {
  Packer* packer = nullptr;
  TapeWatch* watch = nullptr;
  const Storage* about_to_be_written = nullptr;
  int special_saves = 0;  ///< whether there is a packer, or memory is about to be written: one look for both
  int special_nodes = 0;  ///< how many there are of a packer and a watch: likewise
};
inline thread_local constinit AskedOfTapes asked_of_tapes{};

/// The form that the packer gives a value of `key`'s; null: it is kept as it is.
std::shared_ptr<Packed> packed_form(const Op& op, const Tensor& value, int key);
/// What is asked of a node beside its rule.
void note_specially(Node& node, const Frame& f, int key);

}  // namespace lamella
LAMELLA_API_END
