// Packers, watches, and the notes of nodes.
#include "lamella/transforms/tapes/asked.h"

namespace lamella {

static void pack_with(Packer* p) {
  const int more = bool(p) - bool(asked_of_tapes.packer);
  asked_of_tapes.special_saves += more;
  asked_of_tapes.special_nodes += more;
  asked_of_tapes.packer = p;
}
ScopedPacker::ScopedPacker(Packer* p) : saved_(asked_of_tapes.packer) { pack_with(p); }
ScopedPacker::~ScopedPacker() { pack_with(saved_); }
Packer* packer_in_force() { return asked_of_tapes.packer; }

static void watch_by(TapeWatch* w) {
  asked_of_tapes.special_nodes += bool(w) - bool(asked_of_tapes.watch);
  asked_of_tapes.watch = w;
}
ScopedWatch::ScopedWatch(TapeWatch* w) : saved_(asked_of_tapes.watch) { watch_by(w); }
ScopedWatch::~ScopedWatch() { watch_by(saved_); }
TapeWatch* watch_in_force() { return asked_of_tapes.watch; }

std::shared_ptr<Packed> packed_form(const Op& op, const Tensor& value, int key) {
  if (!asked_of_tapes.packer || !value.defined() || value.impl()->number) return nullptr;
  return asked_of_tapes.packer->pack(op.name, value, key);
}

constexpr uint8_t kNoteIndex = 0xff;  ///< beyond all parameters

Packed* note_of(Node& node) {
  const Node::Saved* const last = node.n_saved > 0 ? node.saved() + node.n_saved - 1 : nullptr;
  if (!last || last->what.index != kNoteIndex) return nullptr;
  return &static_cast<const KeptForm*>(last->kept())->form();
}

void note_specially(Node& node, const Frame& f, int key) {
  TapeWatch* const watch = asked_of_tapes.watch;
  node.packed = asked_of_tapes.packer != nullptr;
  if (std::shared_ptr<Packed> note = watch ? watch->note(f, key) : nullptr)
    new (node.saved() + node.n_saved++)
        Node::Saved({BoundSave::Argument, kNoteIndex}, std::make_unique<KeptForm>(std::move(note)));
}

}  // namespace lamella
