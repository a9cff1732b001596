// Drawing a line over itself.
#include "progress.h"

#include <cstdio>
#include <unistd.h>

#include "lamella/core/check.h"

namespace lamella::tools {

ProgressLine::ProgressLine() : visible_(::isatty(STDERR_FILENO)) {}

void ProgressLine::show(const std::string& text) {
  if (!visible_) return;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::clear() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
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
