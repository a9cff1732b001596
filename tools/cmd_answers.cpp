// `lamella answers`: what every law says when a call below it is answered wrongly.
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>

#include "lamella/mutate/answers.h"
#include "lamella/mutate/laws_harness.h"

#include "command_line.h"
#include "commands.h"
#include "law_option.h"
#include "plugin.h"
#include "progress.h"
#include "whole_file.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

struct Row {
  const Law* law;
  std::vector<Heard> heard;  ///< by kind
};

std::vector<Row> hear_all(const std::vector<std::string>& ids, bool verbose) {
  std::vector<Row> out;
  std::vector<const Law*> asked;
  const std::vector<const Law*> named = tools::laws_named(ids);
  for (const Law& law : laws())
    if ((ids.empty() && law.group != "harness") || std::ranges::find(named, &law) != named.end())
      asked.push_back(&law);
  tools::Countdown progress(asked.size());
  for (const Law* law : asked) {
    Row row{law, {}};
    for (const WrongAnswer& w : wrong_answers()) {
      row.heard.push_back(hear(*law, w.kind));
      const Heard& h = row.heard.back();
      static constexpr const char* kSaid[] = {"refused", "no call", "PASSES"};
      if (verbose)
        std::printf("%-28s %-8s %-8s %4d checks  %s %s\n", std::string(law->id).c_str(),
                    std::string(w.id).c_str(), kSaid[h.kind], h.checks, h.op.c_str(),
                    h.message.substr(0, 120).c_str());
    }
    progress.step(std::string(law->id));
    out.push_back(std::move(row));
  }
  progress.clear();
  return out;
}

/// What a page has so far: cells by law, and which reasons it explains.
struct Page {
  std::string text;
  std::map<std::string, std::vector<std::string>> cells;
  std::vector<std::string> reasons;  ///< "[1]"
  std::vector<std::string> chances;  ///< those that begin with "By schedule": refused in some runs
  std::vector<std::string> told;     ///< lines of the table of the harness's own laws
  std::vector<std::string> apart;    ///< laws that see no call, "- `id`: `Suite.Test`", shown red by a test

  explicit Page(const std::string& path) {
    std::ifstream in(path);
    LAMELLA_CHECK(in.good(), Usage, "answers: there is no file \"{}\"", path);
    for (std::string line; std::getline(in, line);) {
      text += line + '\n';
      if (line.starts_with("- [")) {
        reasons.push_back(line.substr(2, line.find(']') - 1));
        if (line.find("] By schedule") != std::string::npos) chances.push_back(reasons.back());
      }
      if (line.starts_with("- `") && line.find("`: `") != std::string::npos)
        apart.push_back(line.substr(3, line.find('`', 3) - 3));
      std::istringstream parts(line);
      std::vector<std::string> found;
      for (std::string cell; std::getline(parts, cell, '|');) found.push_back(trimmed(cell));
      if (found.size() == 5 && (found[1] == "130" || found[1] == "131")) told.push_back(line);
      if (found.size() == wrong_answers().size() + 3 && found[2].starts_with('`'))
        cells[found[2].substr(1, found[2].size() - 2)] = {found.begin() + 3, found.end()};
    }
  }
  static std::string trimmed(const std::string& s) {
    const size_t from = s.find_first_not_of(' ');
    return from == std::string::npos ? "" : s.substr(from, s.find_last_not_of(' ') - from + 1);
  }
  std::string cell(const Law& law, size_t kind) const {
    const auto at = cells.find(std::string(law.id));
    return at == cells.end() ? "" : at->second[kind];
  }
  bool explains(const std::string& cell) const { return std::ranges::find(reasons, cell) != reasons.end(); }
  bool is_apart(const Law& law) const { return std::ranges::find(apart, law.id) != apart.end(); }
  bool uses(const std::string& reason) const {
    return std::ranges::any_of(
        cells, [&](const auto& row) { return std::ranges::find(row.second, reason) != row.second.end(); });
  }
};

/// A cell that fits what was heard: what the page has, if it does.
std::string right_cell(const Page& page, const Law& law, size_t kind, const Heard& h) {
  const std::string now = page.cell(law, kind);
  if (std::ranges::find(page.chances, now) != page.chances.end()) return now;
  if (h.kind == Heard::Refused) return "refused";
  if (h.kind == Heard::NoCall) return "–";
  return page.explains(now) ? now : "[?]";
}

std::string table_of(const Page& page, const std::vector<Row>& rows) {
  std::string head = "| law | id |", line = "| --- | --- |", body;
  for (const WrongAnswer& w : wrong_answers()) head += " " + std::string(w.id) + " |", line += " --- |";
  for (const Row& row : rows) {
    body += format("| {} | `{}` |", row.law->number, row.law->id);
    for (size_t k = 0; k < row.heard.size(); ++k)
      body += " " + right_cell(page, *row.law, k, row.heard[k]) + " |";
    body += '\n';
  }
  return head + '\n' + line + '\n' + body;
}

constexpr std::string_view kToldHead = "| law | id | what it is told | |\n";

/// The page with the table that begins with `head` made anew, and what stands below it as it is.
std::string with_table(const std::string& text, std::string_view head, const std::string& table) {
  const size_t at = text.find(head), end = text.find("\n\n", at);
  LAMELLA_CHECK(at != std::string::npos, Usage, "answers: the page has no table to rewrite");
  return text.substr(0, at) + table + (end == std::string::npos ? "" : text.substr(end + 1));
}

std::string line_of(const ToldWrongly& t) {
  return format("| {} | `{}` | {} | {} |", t.number, t.law, t.told,
                t.verdict.kind == Verdict::Fail ? "refused" : "PASSES");
}

std::string told_table(const std::vector<ToldWrongly>& all) {
  std::string out = std::string(kToldHead) + "| --- | --- | --- | --- |\n";
  for (const ToldWrongly& t : all) out += line_of(t) + '\n';
  return out;
}

/// Prints what the laws of the harness pass, and lines that the page lacks or has too many. How many there
/// are.
int print_told(const Page& page, const std::vector<ToldWrongly>& all) {
  int wrong = 0;
  std::vector<std::string> left = page.told;
  for (const ToldWrongly& t : all) {
    const std::string line = line_of(t);
    const size_t gone = std::erase(left, line);
    if (t.verdict.kind != Verdict::Fail || gone != 1) ++wrong, std::printf("%s\n", line.c_str());
  }
  for (const std::string& line : left) ++wrong, std::printf("nobody is told: %s\n", line.c_str());
  return wrong;
}

/// Prints the cells that do not fit. How many there are.
int print_wrong(const Page& page, const std::vector<Row>& rows) {
  int wrong = 0;
  for (const Row& row : rows)
    for (size_t k = 0; k < row.heard.size(); ++k) {
      const std::string now = page.cell(*row.law, k);
      if (now == right_cell(page, *row.law, k, row.heard[k])) continue;
      ++wrong;
      const Heard& h = row.heard[k];
      static constexpr const char* kSaid[] = {"is refused", "is asked of no call", "PASSES"};
      std::printf("law %d (%s): %s %s, the table has \"%s\" (%d checks) %s %s\n", row.law->number,
                  std::string(row.law->id).c_str(), std::string(wrong_answers()[k].what).c_str(),
                  kSaid[h.kind], now.c_str(), h.checks, h.op.c_str(), h.message.substr(0, 100).c_str());
    }
  return wrong;
}

/// Prints laws of which no wrong answer is refused and no test is named either, which law 130 would pass
/// whatever they say, and reasons that no cell gives. How many there are.
int print_idle(const Page& page, const std::vector<Row>& rows) {
  int wrong = 0;
  for (const Row& row : rows) {
    const bool refuses = std::ranges::any_of(row.heard, [](const Heard& h) { return h.kind == h.Refused; });
    if (refuses != page.is_apart(*row.law)) continue;
    ++wrong;
    std::printf("law %d (%s): %s\n", row.law->number, std::string(row.law->id).c_str(),
                refuses ? "refuses wrong answers, and the page has it among those that do not"
                        : "refuses no wrong answer, and the page names no test that shows it red");
  }
  for (const std::string& reason : page.reasons)
    if (!page.uses(reason)) ++wrong, std::printf("the reason %s stands in no cell\n", reason.c_str());
  return wrong;
}

std::string seen_text(const std::vector<Row>& rows) {
  std::string out =
      "// Which wrong answers laws refuse, a bit for each kind: `lamella answers --write-seen` wrote it.\n";
  for (const Row& row : rows) {
    uint32_t bits = 0;
    for (size_t k = 0; k < row.heard.size(); ++k) bits |= uint32_t(row.heard[k].kind == Heard::Refused) << k;
    char text[16];
    std::snprintf(text, sizeof text, "0x%x", bits);
    out += format("{\"{}\", {}},\n", row.law->id, text);
  }
  return out;
}
}  // namespace

int main_answers(int argc, char** argv) {
  tools::CommandLine app(
      "Answers single calls below each law wrongly and shows which kinds its verdict refuses "
      "(docs/answers.md)",
      "lamella answers");
  std::vector<std::string> ids, plugins;
  std::string write, write_seen, check;
  bool verbose = false;
  app.add_option("--law", ids, "laws to ask, by id, number or group (default: all)")->delimiter(',');
  app.add_option("--write", write, "rewrite the table in FILE; reasons below it are written by hand");
  app.add_option("--write-seen", write_seen, "write what is refused to FILE, for law 130");
  app.add_option("--check", check, "check that the table in FILE is what the laws say")->excludes("--write");
  app.add_flag("--verbose", verbose, "a line for each law and kind");
  app.add_option("--load", plugins, "shared library that brings operators or laws")->allow_extra_args(false);
  app.read(argc, argv);
  for (const std::string& file : plugins) tools::load_plugin(file);
  const std::string against = check.empty() ? write : check;
  std::optional<Page> page;  // first: asking all laws takes a minute
  if (!against.empty()) page.emplace(against);
  const std::vector<Row> rows = hear_all(ids, verbose);
  const std::vector<ToldWrongly> told = ids.empty() ? told_wrongly() : std::vector<ToldWrongly>{};
  if (!write_seen.empty()) tools::write_whole_file(write_seen, seen_text(rows));
  const int wrong = page ? print_wrong(*page, rows) + print_idle(*page, rows) : 0;
  const int passed = page && ids.empty() ? print_told(*page, told) : 0;
  if (!write.empty()) {
    std::string text = with_table(page->text, "| law | id | nan |", table_of(*page, rows));
    if (ids.empty()) text = with_table(text, kToldHead, told_table(told));
    tools::write_whole_file(write, text);
  }
  std::printf("%zu laws asked, %d answers are not as the table has them\n", rows.size(), wrong + passed);
  return wrong + passed ? 1 : 0;
}
