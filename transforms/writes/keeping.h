// What a write to memory means to tapes that saved values of it.
#pragma once

#include "lamella/dispatch/call.h"

LAMELLA_API_BEGIN
namespace lamella {

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

/// Raises unless writes to `target` can be followed: it is no leaf or view of one, and its family, if it has
/// derivatives, is of a tensor without gaps. Base autograd knows (history.cpp). `arg` of `op` in error texts,
/// which is `seen`: it may be a lane of the target.
void check_followed(const Op& op, std::string_view arg, const Tensor& target, const Tensor& seen);
inline void check_followed(const Op& op, std::string_view arg, const Tensor& target) {
  check_followed(op, arg, target, target);
}

}  // namespace lamella
LAMELLA_API_END
