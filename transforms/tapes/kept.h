// What nodes keep outside of themselves: lists, strings, functions, and tensors in another form.
#pragma once

#include "lamella/dispatch/call.h"
#include "lamella/transforms/tapes/packer.h"

LAMELLA_API_BEGIN
namespace lamella {

/// A saved value that is neither a tensor nor few numbers, which lie in the node itself.
class Kept {
 public:
  virtual ~Kept() = default;
  /// As formulas of `op` receive it, by the conventions of frames: lists through `list`, what was packed in
  /// `unpacked`. Error value when its memory was written after it was saved.
  virtual const void* pointer(const Op& op, TensorSpan& list, Tensors& unpacked) = 0;
  /// The node has run.
  virtual void used() {}
};

/// What formulas of the call `f` ask for by this name: a list of tensors, a string or a function. `key` as
/// for record().
std::unique_ptr<Kept> kept_of(const Frame& f, BoundSave what, int key);

/// A tensor in another form, and the notes of nodes.
class KeptForm final : public Kept {
 public:
  explicit KeptForm(std::shared_ptr<Packed> form) : form_(std::move(form)) {}
  const void* pointer(const Op&, TensorSpan&, Tensors& unpacked) override {
    unpacked.assign(1, form_->unpack());
    return &unpacked[0];
  }
  void used() override { form_->used(); }
  Packed& form() const { return *form_; }

 private:
  std::shared_ptr<Packed> form_;
};

}  // namespace lamella
LAMELLA_API_END
