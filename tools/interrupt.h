// Being asked to stop.
#pragma once

#include <csignal>

namespace lamella::tools {

/// From now on SIGINT, SIGTERM and SIGHUP set this flag to their number and end nothing: what was done so far
/// is reported. One that is ignored stays so (nohup).
const volatile std::sig_atomic_t& stop_on_signals();

/// The status of a command that would end with `status`: 128 and the signal's number, as a shell says it,
/// where one was asked to stop and nothing was found wrong until then.
int status_of_stopped(int status);

}  // namespace lamella::tools
