// Questions about options: which texts are numbers, which status a command has, what a shard is.
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "calibration_aids.h"
#include "calibrations.h"
#include "command_line.h"
#include "commands.h"
#include "run_json.h"

namespace lamella::tools {

namespace {
/// How `f` ends: its own status, or that of what it throws.
int status_of(const std::function<int()>& f) {
  try {
    return f();
  } catch (const Exit& e) { return e.status; } catch (const std::exception&) {
    return 2;
  }
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& w : words) out.push_back(w.data());
  out.push_back(nullptr);
  return out;
}

std::string commands_have_statuses() {
  const Folder scratch;
  const Caught caught(scratch.path / "output");
  int number = 0;
  for (int (*const command)(int, char**) :
       {main_verify, main_merge, main_mutate, main_answers, main_museum, main_reference, main_sensitivity,
        main_tolerances, main_report, main_bench, main_explain, main_ops, main_accept, main_doctor}) {
    ++number;
    for (const char* word : {"--help", "-h", "--no-such-option"}) {
      std::vector<std::string> words = {"lamella", word};
      std::vector<char*> argv = pointers_to(words);
      const int status = status_of([&] { return command(2, argv.data()); });
      if (status != (std::string_view(word).size() > 6 ? 2 : 0))
        return format("command {} ends with {} after {}", number, status, word);
    }
  }
  return "";
}

const std::vector<std::string>& number_texts() {
  static const std::vector<std::string> texts = {"0",
                                                 "1",
                                                 "7",
                                                 "-1",
                                                 "-0",
                                                 "-7",
                                                 "1.5",
                                                 "-1.5",
                                                 "1e3",
                                                 "1e-320",
                                                 "1e400",
                                                 "inf",
                                                 "-inf",
                                                 "nan",
                                                 "-nan",
                                                 "INF",
                                                 "NaN",
                                                 "infinity",
                                                 "",
                                                 "x",
                                                 "1x",
                                                 "1,5",
                                                 "--1",
                                                 "1 2",
                                                 "0.25",
                                                 "1.0",
                                                 "99999",
                                                 "-99999",
                                                 "1e308",
                                                 "0.0",
                                                 "-0.0",
                                                 "1e-400",
                                                 "18446744073709551615",
                                                 "18446744073709551616",
                                                 "-18446744073709551615",
                                                 "9223372036854775808",
                                                 "-9223372036854775809",
                                                 " 7",
                                                 "7 ",
                                                 "+7",
                                                 "0x1",
                                                 "1e"};
  return texts;
}

/// The number that a text is as a whole.
std::optional<double> plain_number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const double v = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || (errno == ERANGE && v == 0)) return std::nullopt;  // 1e-400 is lost
  if (text.find_first_of(" +x") != std::string::npos) return std::nullopt;
  return v;
}

/// A count is digits alone, at most `digits` of them or as large as `most`.
bool is_count(const std::string& text, const std::string& most) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return false;
  return text.size() < most.size() || (text.size() == most.size() && text <= most);
}

/// Whether a command with the option that `add` adds accepts the text.
bool accepts(const std::string& text, const std::function<void(CommandLine&)>& add) {
  CommandLine app("", "calibration");
  add(app);
  std::vector<std::string> words = {"calibration", "--option=" + text};
  std::vector<char*> argv = pointers_to(words);
  return status_of([&] {
           app.read(2, argv.data());
           return 0;
         }) == 0;
}

std::string options_are_numbers() {
  const Folder scratch;
  const Caught caught(scratch.path / "output");
  uint64_t large = 0;
  uint32_t small = 0;
  double real = 0;
  struct Kind {
    const char* name;
    std::function<void(CommandLine&)> add;
    std::function<bool(const std::string&)> is;
  };
  const Kind kinds[] = {
      {"a count of 64 bits", [&](CommandLine& app) { app.add_option("--option", large); },
       [](const std::string& t) { return is_count(t, "18446744073709551615"); }},
      {"a count of 32 bits", [&](CommandLine& app) { app.add_option("--option", small); },
       [](const std::string& t) { return is_count(t, "4294967295"); }},
      {"above 0", [&](CommandLine& app) { app.add_option("--option", real)->check(positive()); },
       [](const std::string& t) {
         const auto v = plain_number(t);
         return v && std::isfinite(*v) && *v > 0;
       }},
      {"from 0 to 1", [&](CommandLine& app) { app.add_option("--option", real)->check(number_in(0, 1)); },
       [](const std::string& t) {
         const auto v = plain_number(t);
         return v && *v >= 0 && *v <= 1;
       }},
  };
  for (const Kind& k : kinds)
    for (const std::string& text : number_texts())
      if (accepts(text, k.add) != k.is(text))
        return format("\"{}\" is {} as a number {}", text, k.is(text) ? "refused" : "accepted", k.name);
  return "";
}

std::string shards_are_parts() {
  for (int of = -2; of < 6; ++of)
    for (int index = -2; index < 7; ++index) {
      const std::string text = format("{}/{}", index, of);
      Shard s;
      const std::string raised = raised_by([&] { s = Shard::parse(text); });
      const bool part = 0 <= index && index < of;
      if (raised.empty() != part) return format("{} is {}", text, part ? raised : "accepted");
      if (part && (s.index != index || s.of != of)) return format("{} is read as {}/{}", text, s.index, s.of);
    }
  for (const char* text : {"", "/", "1", "0/", "/2", "0/2x", "x0/2", "0 /2", "0/2/3", "0/99999999999"})
    if (raised_by([&] { (void)Shard::parse(text); }).empty()) return format("\"{}\" is accepted", text);
  return "";
}
}  // namespace

Calibrations calibrations_of_command_line() {
  return {
      {"commands_have_statuses",
       "Every command ends with 0 after --help, and with 2 after an option that it has not.",
       guarded<commands_have_statuses>},
      {"options_are_numbers", "An option for a number takes the finite ones in its range, and nothing else.",
       guarded<options_are_numbers>},
      {"shards_are_parts", "i/n is a shard exactly when 0 <= i < n.", guarded<shards_are_parts>},
  };
}

}  // namespace lamella::tools
