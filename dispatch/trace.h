// The dispatch trace: for every operator call each argument's keys, the thread's masks and the cell that was
// chosen. In every build.
#pragma once

#include <functional>

#include "lamella/dispatch/state.h"

LAMELLA_API_BEGIN
namespace lamella {

/// One line a call, indented by nesting:
/// "mul   a: f32[3] {grad#2 vmap#1 cpu}  b: f32[3] {cpu}   exclude {}  include {}   -> grad#2"
class Trace : public Observer {
 public:
  void on_call(const Frame& frame, KeySet keys, int chosen) override;
  void on_return(const Frame& frame) override;
  const std::string& text() const { return text_; }
  int calls() const { return calls_; }
  int kernels() const { return kernels_; }  ///< calls that reached a backend

 private:
  std::string text_;
  int depth_ = 0, calls_ = 0, kernels_ = 0;
};

/// Runs `f` and returns its trace.
std::string trace(const std::function<void()>& f);

/// "{grad#2 vmap#1 cpu}": highest first.
std::string live_keys_text(KeySet keys);

}  // namespace lamella
LAMELLA_API_END
