// A mode that sees every call and passes it on.
#pragma once

#include "lamella/dispatch/call.h"
#include "lamella/dispatch/state.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

class PassOn final : public Transform {
 public:
  TransformKind kind() const override { return TransformKind::Mode; }
  std::string_view name() const override { return "pass_on"; }
  void call(Frame& frame, int key) override {
    const Below below(key);
    lamella::call(frame);
  }
};

}  // namespace lamella::verify
LAMELLA_API_END
