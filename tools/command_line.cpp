// Reading options: what counts as a number, and which status a mistake has.
#include "command_line.h"

#include <charconv>
#include <limits>
#include <optional>

#include "lamella/core/check.h"

namespace lamella::tools {

CommandLine::CommandLine(std::string what, std::string name) : CLI::App(std::move(what), std::move(name)) {
  option_defaults()->always_capture_default();
}

namespace {
/// The number that a text is as a whole: "", " 7", "+7", "0x7" and "7x" are none, nor is what T does not
/// hold. CLI11 reads "" as 0, "-1" as 2^64 - 1 where no sign is meant, and what is too large as the largest.
template <typename T> std::optional<T> number_of(const std::string& text) {
  T v{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return v;
}

/// What is wrong with the text of an option of this type; empty: nothing. Nothing where a word is meant (a
/// variable of a script that is not set, say) would be read as an option that was not given.
std::string refusal(const std::string& text, const std::string& type) {
  bool good = !(type.starts_with("TEXT") && text.empty());
  std::string expected = "a text";
  if (type.starts_with("UINT"))
    good = number_of<uint64_t>(text).has_value(),
    expected = format("a whole number from 0 to {}", std::numeric_limits<uint64_t>::max());
  else if (type.starts_with("INT")) good = number_of<int64_t>(text).has_value(), expected = "a whole number";
  else if (type.starts_with("FLOAT")) good = number_of<double>(text).has_value(), expected = "a number";
  return good ? std::string() : format("got \"{}\", expected {}", text, expected);
}
}  // namespace

void CommandLine::read(int argc, char** argv) {
  for (CLI::Option* option : get_options())
    if (option->get_default_str() == "[]") option->default_str("");  // lists begin empty: no news
  for (CLI::Option* option : get_options())  // `transform` puts it before the option's other checks
    if (option->nonpositional())
      option->transform(CLI::Validator(
          [type = option->get_type_name()](std::string& text) { return refusal(text, type); }, ""));
  try {
    parse(argc, argv);
  } catch (const CLI::ParseError& e) { throw Exit{exit(e) == 0 ? 0 : 2}; }
}

CLI::Validator number_in(double least, double most) {
  const bool open = most == std::numeric_limits<double>::max();
  std::string range = open ? format("at least {}", least) : format("from {} to {}", least, most);
  const auto wrong = [=](std::string& text) {
    const double v = number_of<double>(text).value_or(std::numeric_limits<double>::quiet_NaN());
    return v >= least && v <= most ? std::string() : "\"" + text + "\" is not a number " + range;
  };
  return {wrong, range};
}

CLI::Validator positive() {
  const auto wrong = [](std::string& text) {
    const double v = number_of<double>(text).value_or(0);
    const bool good = v > 0 && v <= std::numeric_limits<double>::max();
    return good ? std::string() : "\"" + text + "\" is not a number above 0";
  };
  return {wrong, "above 0"};
}

}  // namespace lamella::tools
