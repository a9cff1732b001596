// Changing what a run has chosen: NOTE: [context].
#pragma once

#include <functional>

#include "lamella/verify/case/context.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// For the life of the process: what a user chose, and a planted bug behind a fork.
void change_context(const std::function<void(RunContext&)>& change);

/// For a scope, and all threads.
class ScopedContext {
 public:
  explicit ScopedContext(const std::function<void(RunContext&)>& change) : saved_(run_context()) {
    change_context(change);
  }
  ~ScopedContext() {
    change_context([this](RunContext& c) { c = saved_; });
  }
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

 private:
  RunContext saved_;
};

}  // namespace lamella::verify
LAMELLA_API_END
