// Experiments with errors: whoever counts what a program does is told of each as it is raised.
#pragma once

#include <string_view>

#include "lamella/core/check.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Told of each error that this thread raises, before the live transforms are added. It may not raise.
using ErrorWatcher = void (*)(ErrorCode code, std::string_view text);

class WatchErrors {
 public:
  explicit WatchErrors(ErrorWatcher watcher);
  ~WatchErrors();
  WatchErrors(const WatchErrors&) = delete;
  WatchErrors& operator=(const WatchErrors&) = delete;

 private:
  ErrorWatcher saved_;
};

}  // namespace lamella
LAMELLA_API_END
