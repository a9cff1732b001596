// Being asked to stop.
#pragma once

#include <csignal>

namespace lamella::tools {

/// From now on SIGINT, SIGTERM and SIGHUP set this flag and end nothing: what was done so far is reported.
/// One that is ignored stays so (nohup).
const volatile std::sig_atomic_t& stop_on_signals();

}  // namespace lamella::tools
