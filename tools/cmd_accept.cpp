// `lamella accept`: writes the texts that expect tests got into their sources and pages.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include "lamella/core/check.h"
#include "lamella/text/inline_text.h"

#include "command_line.h"
#include "commands.h"
#include "whole_file.h"

namespace {
namespace fs = std::filesystem;
using lamella::verify::PendingText;

struct Record {
  fs::path from;
  PendingText text;
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  LAMELLA_CHECK(in && !fs::is_directory(path), Usage, "cannot read {}", path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// By source file, in the order of lines.
std::map<std::string, std::vector<Record>> pending_in(const fs::path& folder) {
  std::map<std::string, std::vector<Record>> out;
  if (!fs::exists(folder)) return out;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".pending") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files)
    for (PendingText& p : lamella::verify::parse_pending(read(file)))
      out[p.file].push_back({file, std::move(p)});
  for (auto& [file, records] : out)
    std::stable_sort(records.begin(), records.end(),
                     [](const Record& a, const Record& b) { return a.text.line < b.text.line; });
  return out;
}

std::string place(const PendingText& p) {
  if (p.line != 0) return p.file + ":" + std::to_string(p.line);
  return p.file + (p.got.empty() ? " (to be removed)" : p.expected.empty() ? " (new)" : "");
}

void show(const PendingText& p) {
  std::cout << place(p) << ": " << p.test << '\n' << lamella::verify::line_diff(p.expected, p.got);
}

/// What `lamella accept` made of a file; a page that holds nothing goes.
void write(const fs::path& path, const std::string& text, bool whole) {
  if (whole && text.empty()) {
    fs::remove(path);
    return;
  }
  if (whole && path.has_parent_path()) fs::create_directories(path.parent_path());
  lamella::tools::write_whole_file(path, text);
}

enum class Answer { Yes, No, Quit };
Answer ask() {
  for (std::string line;;) {
    std::cout << "accept? [y]es [n]o [q]uit " << std::flush;
    if (!std::getline(std::cin, line) || line == "q") return Answer::Quit;
    if (line == "y") return Answer::Yes;
    if (line == "n") return Answer::No;
  }
}

class Acceptance {
 public:
  Acceptance(bool interactive, bool dry_run) : interactive_(interactive), dry_run_(dry_run) {}

  /// One source file, edited once.
  void file(const std::string& path, const std::vector<Record>& records) {
    std::vector<PendingText> chosen;
    std::vector<const Record*> of;
    for (const Record& r : records) {
      if (!wanted(r)) continue;
      chosen.push_back(r.text);
      of.push_back(&r);
    }
    if (chosen.empty()) return;
    const std::string source = fs::exists(path) ? read(path) : std::string();
    const lamella::verify::AcceptedTexts result = lamella::verify::accept_texts(source, chosen);
    for (size_t i = 0; i < chosen.size(); ++i) report(*of[i], result.refused[i]);
    if (!dry_run_ && result.source != source) write(path, result.source, chosen[0].line == 0);
  }

  /// What was neither accepted nor outdated stays pending.
  int finish() {
    if (!dry_run_)
      for (const auto& [from, rest] : left_) keep(from, rest);
    std::cout << accepted_ << (dry_run_ ? " would be accepted, " : " accepted, ") << refused_ << " refused, "
              << skipped_ << " skipped\n";
    return refused_ ? 1 : 0;
  }

 private:
  bool wanted(const Record& r) {
    std::string& rest = left_[r.from];
    const bool asks = interactive_ && !quit_;
    if (asks || dry_run_) show(r.text);
    const Answer answer = asks ? ask() : interactive_ ? Answer::Quit : Answer::Yes;
    quit_ |= answer == Answer::Quit;
    if (answer == Answer::Yes) return true;
    rest += str(r.text);
    ++skipped_;
    return false;
  }

  void report(const Record& r, const std::string& refusal) {
    if (refusal.empty()) {
      ++accepted_;
      return;
    }
    ++refused_;
    left_[r.from] += str(r.text);
    std::cerr << place(r.text) << ": " << refusal << " (" << r.text.test << ")\n"
              << lamella::verify::line_diff(r.text.expected, r.text.got);
  }

  void keep(const fs::path& from, const std::string& rest) {
    if (rest.empty()) fs::remove(from);
    else lamella::tools::write_whole_file(from, rest);
  }

  bool interactive_, dry_run_, quit_ = false;
  int accepted_ = 0, refused_ = 0, skipped_ = 0;
  std::map<fs::path, std::string> left_;  ///< record files seen, and what remains of each
};
}  // namespace

int main_accept(int argc, char** argv) {
  lamella::tools::CommandLine app("Writes the texts that expect tests got into their sources and pages",
                                  "lamella accept");
  std::string folder = LAMELLA_PENDING_DIR;
  bool interactive = false, dry_run = false;
  app.add_flag("--interactive", interactive, "show each difference and ask");
  app.add_flag("--dry-run", dry_run, "show what would be accepted; change nothing");
  app.add_option("--pending", folder, "folder of the records that tests left");
  app.read(argc, argv);
  const auto pending = pending_in(folder);
  Acceptance acceptance(interactive, dry_run);
  for (const auto& [file, records] : pending) acceptance.file(file, records);
  return acceptance.finish();
}
