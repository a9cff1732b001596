// One flag for all signals that ask to stop.
#include "interrupt.h"

#include <initializer_list>

namespace lamella::tools {

namespace {
volatile std::sig_atomic_t asked_to_stop = 0;
void on_signal(int signal) { asked_to_stop = signal; }
}  // namespace

const volatile std::sig_atomic_t& stop_on_signals() {
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(s, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = on_signal;
    ::sigaction(s, &action, nullptr);
  }
  return asked_to_stop;
}

int status_of_stopped(int status) { return status == 0 && asked_to_stop ? 128 + asked_to_stop : status; }

}  // namespace lamella::tools
