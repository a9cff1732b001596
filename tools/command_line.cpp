// Reading options: what counts as a number, and which status a mistake has.
#include "command_line.h"

#include <charconv>
#include <limits>

#include "lamella/core/check.h"

namespace lamella::tools {

CommandLine::CommandLine(std::string what, std::string name) : CLI::App(std::move(what), std::move(name)) {
  option_defaults()->always_capture_default();
}

namespace {
/// CLI11 reads "-1" as 2^64 - 1 where no sign is meant.
void refuse_signs(const CLI::Option& option) {
  if (!option.get_type_name().starts_with("UINT")) return;
  for (const std::string& given : option.results())
    if (given.starts_with('-')) throw CLI::ValidationError(option.get_name(), given + " is negative");
}

/// CLI11 reads what is too large as the largest.
void refuse_too_large(const CLI::Option& option) {
  if (!option.get_type_name().starts_with("UINT")) return;
  uint64_t v = 0;
  for (const std::string& given : option.results())
    if (std::from_chars(given.data(), given.data() + given.size(), v).ec == std::errc::result_out_of_range)
      throw CLI::ValidationError(option.get_name(), given + " is too large");
}
}  // namespace

void CommandLine::read(int argc, char** argv) {
  for (CLI::Option* option : get_options())
    if (option->get_default_str() == "[]") option->default_str("");  // lists begin empty: no news
  try {
    parse(argc, argv);
    for (const CLI::Option* option : get_options()) refuse_signs(*option);
    for (const CLI::Option* option : get_options()) refuse_too_large(*option);
  } catch (const CLI::ParseError& e) { throw Exit{exit(e) == 0 ? 0 : 2}; }
}

CLI::Validator number_in(double least, double most) {
  const bool open = most == std::numeric_limits<double>::max();
  std::string range = open ? format("at least {}", least) : format("from {} to {}", least, most);
  const auto wrong = [=](std::string& text) {
    double v = 0;
    const bool read = CLI::detail::lexical_cast(text, v);
    return read && v >= least && v <= most ? std::string() : "\"" + text + "\" is not a number " + range;
  };
  return {wrong, range};
}

CLI::Validator positive() {
  const auto wrong = [](std::string& text) {
    double v = 0;
    const bool read = CLI::detail::lexical_cast(text, v);
    const bool good = read && v > 0 && v <= std::numeric_limits<double>::max();
    return good ? std::string() : "\"" + text + "\" is not a number above 0";
  };
  return {wrong, "above 0"};
}

}  // namespace lamella::tools
