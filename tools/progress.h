// How far long work has come: a line of stderr that is drawn over itself, on a terminal only.
#pragma once

#include <chrono>
#include <string>

namespace lamella::tools {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  void show(const std::string& text);
  /// Before anything else is printed.
  void clear();

 private:
  bool visible_;
  size_t drawn_ = 0;  ///< columns
};

/// "3 of 102, 41 s more: add"
class Countdown {
 public:
  explicit Countdown(size_t of) : of_(of), begin_(std::chrono::steady_clock::now()) {}
  /// One more is done, the one called `what`; `note` goes between the numbers.
  void step(const std::string& what, const std::string& note = {});
  void clear() { line_.clear(); }

 private:
  ProgressLine line_;
  size_t of_, done_ = 0;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace lamella::tools
