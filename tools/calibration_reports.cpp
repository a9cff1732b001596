// Questions about the page of `lamella report`, its numbers and tables, about JSON, and about `lamella
// bench`.
#include <algorithm>
#include <cmath>

#include "lamella/ops/functions/factory.h"

#include "bench_check.h"
#include "calibration_aids.h"
#include "calibrations.h"
#include "drawn_report.h"
#include "report_tables.h"
#include "run_json.h"
#include "xml_reader.h"

namespace lamella::tools {

namespace {
using nlohmann::json;

/// What "12k" says, and the half of its last digit's unit.
std::pair<double, double> read_short(const std::string& text) {
  static const std::string units = "kMGT";
  size_t used = 0;
  double v = std::stod(text, &used), half = text.find('.') == std::string::npos ? 0.5 : 0.05;
  if (used < text.size()) {
    const double scale = std::pow(1000, 1 + double(units.find(text[used])));
    v *= scale, half *= scale;
  }
  return {v, half};
}

std::string short_numbers_are_near() {
  Dice dice(21);
  for (int round = 0; round < 4000; ++round) {
    double n = std::floor(std::pow(10, 14.9 * dice.share()));
    if (dice.one_in(3)) n = std::pow(10, double(dice.below(15))) - double(dice.below(9)) * 0.1;
    const std::string text = short_number(n);
    const auto [v, half] = read_short(text);
    if (std::abs(v - n) > half * (1 + 1e-9)) return format("{} is shown as {}", n, text);
    const size_t digits =
        size_t(std::count_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }));
    if (digits > 3) return format("{} is shown as {}, in {} digits", n, text, digits);
  }
  return "";
}

/// The rows of a table's body: of each its cells.
std::vector<std::vector<XmlElement>> rows_of(Markup&& out) {
  const XmlElement page = read_xml(out.finish());
  std::vector<std::vector<XmlElement>> rows;
  for (const XmlElement* body : page.all("tbody"))
    for (const XmlElement& row : body->children) rows.push_back(row.children);
  return rows;
}

/// How a pair looks: what it is, then how many cases it has had.
std::string looks_like(const json* cell) {
  if (!cell) return "na";
  const uint64_t cases = (*cell)["cases"];
  if ((*cell)["failures"] != 0) return "bad";
  if (cases == 0) return "gap";
  return "h" + std::to_string(std::min<size_t>(std::to_string(cases).size() - 1, 6));
}

std::string tables_show_gaps_and_failures() {
  Dice dice(22);
  for (int round = 0; round < 60; ++round) {
    const json run = drawn_report(dice);
    Markup out("");
    write_grid(out, grid_of_laws(run));
    const auto rows = rows_of(std::move(out));
    if (rows.size() != run["operators"].size())
      return format("{} operators in {} rows", run["operators"].size(), rows.size());
    size_t at = 0;
    for (const auto& [op, laws] : run["operators"].items()) {
      const std::vector<XmlElement>& row = rows[at++];
      if (row.size() != run["laws"].size() + 2 || row[0].text != op) return "a row lacks cells";
      uint64_t sum = 0;
      for (size_t k = 0; k < run["laws"].size(); ++k) {
        const auto cell = laws.find(run["laws"][k]["id"].get<std::string>());
        const json* there = cell == laws.end() ? nullptr : &*cell;
        const XmlElement& shown = row[k + 1];
        const std::string cases = there ? (*there)["cases"].dump() : "-1";
        sum += there ? (*there)["cases"].get<uint64_t>() : 0;
        if (shown["class"] != looks_like(there) || shown["data-v"] != cases)
          return format("{} looks {} and sorts as {}", there ? there->dump() : "no pair", shown["class"],
                        shown["data-v"]);
      }
      if (row.back()["data-v"] != std::to_string(sum))
        return format("{} sums up to {}", op, row.back()["data-v"]);
    }
  }
  return "";
}

std::string numbers_of_tables_are_numbers() {
  Dice dice(23);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<std::string>> rows;
    for (uint64_t n = dice.below(4); n > 0; --n)
      rows.push_back({dice.of({"0", "12", "1.5", "", "add", "1e3", "-"}), drawn_text(dice)});
    Markup out("");
    write_table(out, {"first", "second"}, rows);
    const auto shown = rows_of(std::move(out));
    if (shown.size() != rows.size()) return format("{} rows are {}", rows.size(), shown.size());
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::string& text = rows[r][0];
      const bool number = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
      if (shown[r].size() != 2 || shown[r][0].text != text || shown[r][0]["data-v"] != (number ? text : ""))
        return format("\"{}\" sorts as \"{}\"", text, shown[r][0]["data-v"]);
    }
  }
  return "";
}
/// Messages of plug-ins may hold any bytes.
std::string any_bytes_are_written() {
  const Folder scratch;
  const std::string path = (scratch.path / "run.json").string();
  for (const std::string bytes : {"\xff", "a\xc3", "\xed\xa0\x80", "ok"}) {
    write_json(path, json{{"message", bytes}});
    const std::string back = read_json(path)["message"];
    if ((bytes == "ok") != (back == bytes)) return format("a message is \"{}\" when it is read back", back);
  }
  return "";
}

/// Each of these is another number than 1, and of no kernel that is to be timed.
std::string wrong_kernels_are_not_timed() {
  bench::Work work;
  work.op = OpTable::current().find("exp");
  const bench::Witness witness{"reference", {full({3}, 1.0, DType::F32)}, {}};
  for (const double v : {1.0, 1.01, 0.0, std::nan(""), HUGE_VAL, -HUGE_VAL})
    for (const int64_t at : {0, 2}) {
      const Tensor got = full({3}, 1.0, DType::F32);
      got.data<float>()[at] = float(v);
      if (bench::judge(work, witness, {got}, 0).wrong.empty() != (v == 1))
        return format("{} at place {} is {} where 1 is due", v, at, v == 1 ? "refused" : "right");
    }
  return "";
}
}  // namespace

Calibrations calibrations_of_reports() {
  return {
      {"any_bytes_are_written", "A report is written whatever bytes its messages hold.",
       guarded<any_bytes_are_written>},
      {"wrong_kernels_are_not_timed", "A result that is NaN, infinite or another number is no right one.",
       guarded<wrong_kernels_are_not_timed>},
      {"short_numbers_are_near", "A number is shown in at most three digits, and none is nearer to it.",
       guarded<short_numbers_are_near>},
      {"tables_show_gaps_and_failures",
       "A pair looks failed, a gap, not applicable or like its number of cases as its counts say, and sorts "
       "by them.",
       guarded<tables_show_gaps_and_failures>},
      {"numbers_of_tables_are_numbers", "Cells of numbers sort as numbers, and no others do.",
       guarded<numbers_of_tables_are_numbers>},
  };
}

}  // namespace lamella::tools
