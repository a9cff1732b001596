// Saved-tensor hooks: what tapes keep, in another form: on disk, in fewer bits.
#pragma once

#include <functional>

#include "lamella/core/tensor.h"
#include "lamella/dispatch/given.h"
#include "lamella/transforms/tapes/packer.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Gives a saved tensor back: of the same shape and dtype (else error shape), any number of times, on any
/// thread.
using Unpack = std::function<Tensor()>;
/// Takes what a level or base autograd would keep for its derivatives, and gives a function that gives it
/// back. It sees the value without history, one level down; nothing else of it is kept. An empty function:
/// keep it.
using Pack = std::function<Unpack(const Tensor&)>;

/// Error usage for an empty `pack`. While alive on this thread, tensors that are saved go through `pack`; the
/// innermost one is in force. `pack` runs outside base autograd and outside the hooks. What it raises leaves
/// the recorded call.
class SavedTensorHooks final : Packer {
 public:
  explicit SavedTensorHooks(Pack pack)
      : pack_(given(std::move(pack), "SavedTensorHooks", "pack")), scope_(this) {}

 private:
  std::shared_ptr<Packed> pack(std::string_view saver, const Tensor& value, int key) override;
  Pack pack_;
  ScopedPacker scope_;
};

}  // namespace lamella
LAMELLA_API_END
