// Options of the commands: one place reads them, so that every command answers a mistake alike.
#pragma once

#include <CLI/CLI.hpp>

namespace lamella::tools {

/// Thrown where a command is over before it did anything; main() returns the status.
struct Exit {
  int status;
};

/// A command's options; --help shows the default of each.
class CommandLine : public CLI::App {
 public:
  CommandLine(std::string what, std::string name);
  /// Ends with 0 after --help, with 2 after saying what is wrong (CLI11's own statuses reach 113).
  void read(int argc, char** argv);
};

/// Numbers from `least` to `most`; NaN, which CLI11's ranges let through, is none.
CLI::Validator number_in(double least, double most);
/// More than 0, and finite.
CLI::Validator positive();

}  // namespace lamella::tools
