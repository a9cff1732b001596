// Values that tapes keep in another form.
#pragma once

#include <memory>
#include <string_view>

#include "lamella/dispatch/call.h"

LAMELLA_API_BEGIN
namespace lamella {

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

}  // namespace lamella
LAMELLA_API_END
