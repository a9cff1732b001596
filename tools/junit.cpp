// JUnit XML from a report of `lamella verify`.
#include <algorithm>

#include "markup.h"
#include "run_json.h"

namespace lamella::tools {

using nlohmann::json;

namespace {
std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", seconds);
  return text;
}

struct Suite {
  size_t tests = 0, failures = 0, skipped = 0;
  double seconds = 0;

  void add(const json& cell) {
    ++tests;
    failures += cell["failures"] != 0;
    skipped += cell["failures"] == 0 && cell["cases"] == 0;
    seconds += cell["seconds"].get<double>();
  }
  Markup::Attributes attributes(std::string name) const {
    return {{"name", std::move(name)},
            {"tests", std::to_string(tests)},
            {"failures", std::to_string(failures)},
            {"errors", "0"},
            {"skipped", std::to_string(skipped)},
            {"time", seconds_text(seconds)}};
  }
};

void write_case(Markup& out, const json& run, const std::string& op, const std::string& law,
                const json& cell) {
  out.open(
      "testcase",
      {{"classname", "lamella." + op}, {"name", law}, {"time", seconds_text(cell["seconds"].get<double>())}});
  if (cell["failures"] != 0) {
    std::string message, programs;
    for (const json& f : run["failures"]) {
      if (f["operator"] != op || f["law"] != law) continue;
      if (message.empty()) message = f["message"];
      programs += f["message"].get<std::string>() + "\n\n" + f["program"].get<std::string>() + "\n";
    }
    const std::string counts = cell["failures"].dump() + " of " + cell["cases"].dump() + " cases failed";
    out.open("failure", {{"message", counts + (message.empty() ? "" : ": " + message)}, {"type", law}});
    out.text(programs).close();
  } else if (cell["cases"] == 0) {
    out.open("skipped", {{"message", "no case: " + cell["discards"].dump() + " discarded"}}).close();
  }
  out.close().raw("\n");
}
}  // namespace

std::string junit_xml(const json& run) {
  Suite all;
  for (const json& cells : run["operators"])
    for (const json& cell : cells) all.add(cell);
  Markup out("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
  out.open("testsuites", all.attributes("lamella verify, seed " + run["seed"].dump())).raw("\n");
  for (const auto& [op, cells] : run["operators"].items()) {
    Suite suite;
    for (const json& cell : cells) suite.add(cell);
    out.open("testsuite", suite.attributes(op)).raw("\n");
    for (const auto& [law, cell] : cells.items()) write_case(out, run, op, law, cell);
    out.close().raw("\n");
  }
  return out.finish();
}

}  // namespace lamella::tools
