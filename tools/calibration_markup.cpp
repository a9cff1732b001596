// Questions about markup: texts come out of it as they went in.
#include <cctype>
#include <cstdio>

#include "calibration_aids.h"
#include "calibrations.h"
#include "drawn_report.h"
#include "markup.h"
#include "run_json.h"
#include "xml_reader.h"

namespace lamella::tools {

namespace {
using nlohmann::json;

/// What a text is read back as: bytes that are no character of XML are spelt out.
std::string spelt(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::string_view rest = text;
    const int32_t c = take_utf8(rest);
    if (c >= 0 && is_xml(c)) out += text.substr(0, text.size() - rest.size());
    else {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", unsigned(uint8_t(text[0])));
      out += hex;
      rest = text.substr(1);
    }
    text = rest;
  }
  return out;
}

std::string differs_as_text(const char* where, const std::string& got, const std::string& given) {
  const std::string d = first_difference(got, spelt(given));
  return d.empty() ? "" : format("a text in {}: {}", where, d);
}

std::string texts_are_read_back() {
  Dice dice(9);
  for (int round = 0; round < 1500; ++round) {
    const std::string inside = drawn_text(dice), first = drawn_text(dice), second = drawn_text(dice);
    Markup out("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.open("all", {{"first", first}, {"second", second}}).element("one", inside);
    out.open("two").text(first).element("three", second, {{"of", inside}}).close();
    const XmlElement all = read_xml(out.finish());
    if (all.children.size() != 2 || all.children[1].children.size() != 1)
      return "elements are read back as others";
    const XmlElement &two = all.children[1], &three = two.children[0];
    for (const std::string& d :
         {differs_as_text("an attribute", all["first"], first),
          differs_as_text("an attribute", all["second"], second),
          differs_as_text("an element", all.children[0].text, inside),
          differs_as_text("an element", two.text, first), differs_as_text("an element", three.text, second),
          differs_as_text("an attribute", three["of"], inside)})
      if (!d.empty()) return d;
  }
  return "";
}

/// What a suite says it counts against the test cases in it.
std::string miscounted(const XmlElement& suite) {
  const std::vector<const XmlElement*> tests = suite.all("testcase");
  size_t failed = 0, skipped = 0;
  for (const XmlElement* t : tests)
    failed += !t->all("failure").empty(), skipped += !t->all("skipped").empty();
  const std::pair<const char*, size_t> counts[] = {
      {"tests", tests.size()}, {"failures", failed}, {"skipped", skipped}, {"errors", 0}};
  for (const auto& [what, n] : counts)
    if (suite[what] != std::to_string(n))
      return format("{} says {} {}, and has {}", suite["name"], suite[what], what, n);
  return "";
}

/// Whether a case's failure holds the texts of its own failures in the report, and nothing of others.
std::string mixed_up(const json& run, const std::string& op, const std::string& law, const XmlElement& test) {
  std::string own;
  for (const json& f : run["failures"])
    if (f["operator"] == op && f["law"] == law)
      own += f["message"].get<std::string>() + "\n\n" + f["program"].get<std::string>() + "\n";
  const std::vector<const XmlElement*> failures = test.all("failure");
  const std::string got = failures.empty() ? "" : failures[0]->text;
  const std::string d = first_difference(got, spelt(own));
  return d.empty() ? "" : format("{}, {}: {}", op, law, d);
}

std::string junit_says_what_reports_say() {
  Dice dice(10);
  for (int round = 0; round < 60; ++round) {
    const json run = drawn_report(dice);
    const XmlElement all = read_xml(junit_xml(run));
    if (const std::string wrong = miscounted(all); !wrong.empty()) return wrong;
    size_t cells = 0;
    for (const auto& [op, laws] : run["operators"].items()) cells += laws.size();
    if (all.all("testcase").size() != cells)
      return format("{} pairs, {} test cases", cells, all.all("testcase").size());
    for (const XmlElement& suite : all.children) {
      if (const std::string wrong = miscounted(suite); !wrong.empty()) return wrong;
      for (const XmlElement* test : suite.all("testcase")) {
        const std::string op = suite["name"], law = (*test)["name"];
        const json& cell = run["operators"].at(op).at(law);
        const bool failed = cell["failures"] != 0, none = !failed && cell["cases"] == 0;
        if (failed == test->all("failure").empty() || none == test->all("skipped").empty())
          return format("{}, {} with {} is shown otherwise", op, law, cell.dump());
        if (const std::string wrong = mixed_up(run, op, law, *test); !wrong.empty()) return wrong;
      }
    }
  }
  return "";
}
}  // namespace

Calibrations calibrations_of_markup() {
  return {
      {"texts_are_read_back",
       "Elements and attributes with any bytes are well-formed, and are read back as they were given, what "
       "XML has not spelt as \\xNN.",
       guarded<texts_are_read_back>},
      {"junit_says_what_reports_say",
       "JUnit XML counts the test cases that are in it, and shows each pair's verdict with its own failures.",
       guarded<junit_says_what_reports_say>},
  };
}

}  // namespace lamella::tools
