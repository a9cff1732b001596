// Drawing a line over itself.
#include "progress.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lamella/core/check.h"

namespace lamella::tools {

ProgressLine::ProgressLine() : visible_(::isatty(STDERR_FILENO)) {}

namespace {
/// A line that fills the last column wraps on some terminals, and what is wrapped is not drawn over.
size_t columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size_t(size.ws_col) - 1 : 79;
}
/// A terminal that takes no commands is drawn over with blanks.
bool takes_commands() {
  const char* const kind = std::getenv("TERM");
  return kind && std::strcmp(kind, "dumb") != 0;
}
}  // namespace

void ProgressLine::show(const std::string& text) {
  if (!visible_) return;
  clear();
  const std::string shown = text.substr(0, columns());
  std::fputs(shown.c_str(), stderr);
  std::fflush(stderr);
  drawn_ = shown.size();
}

void ProgressLine::clear() {
  if (drawn_ > 0)
    std::fputs(takes_commands() ? "\r\033[K" : ("\r" + std::string(drawn_, ' ') + "\r").c_str(), stderr);
  drawn_ = 0;
}

void Countdown::step(const std::string& what, const std::string& note) {
  ++done_;
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  if (done_ < of_)
    line_.show(format("{} of {}, {}{} s more: {}", done_, of_, note,
                      int(s / double(done_) * double(of_ - done_)), what));
  else line_.clear();
}

}  // namespace lamella::tools
