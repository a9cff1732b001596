// Raising: the message, then what dispatch knows of the live transforms.
#include "lamella/core/check.h"

#include <utility>

#include "lamella/core/error_watch.h"

namespace lamella {

std::string_view name(ErrorCode code) {
  static constexpr std::string_view kNames[] = {"shape",
                                                "dtype",
                                                "device",
                                                "dim_out_of_range",
                                                "index_out_of_range",
                                                "value",
                                                "broadcast",
                                                "overlap",
                                                "overflow",
                                                "storage",
                                                "schema",
                                                "unknown_operator",
                                                "no_kernel",
                                                "not_differentiable",
                                                "level",
                                                "level_limit",
                                                "escaped_wrapper",
                                                "mapped_size",
                                                "randomness",
                                                "undefined",
                                                "out_of_memory",
                                                "usage",
                                                "internal"};
  return kNames[int(code)];
}

namespace {
thread_local constinit ErrorWatcher error_watcher = nullptr;
}

WatchErrors::WatchErrors(ErrorWatcher watcher) : saved_(std::exchange(error_watcher, watcher)) {}
WatchErrors::~WatchErrors() { error_watcher = saved_; }

namespace detail {
std::string (*error_context)() = nullptr;

void raise(ErrorCode code, std::string text) {
  if (error_watcher) error_watcher(code, text);
  if (error_context) text += error_context();
  throw Error(code, text);
}

void assertion_failed(const char* condition, const char* file, int line) {
  raise(ErrorCode::Internal,
        format("internal error: {} does not hold at {}:{}; please report it", condition, file, line));
}
}  // namespace detail
}  // namespace lamella
