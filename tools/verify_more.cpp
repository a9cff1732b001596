// Replays, explanations of laws, and whether a run checked what it should.
#include "verify_more.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lamella/mutate/mutant_table.h"
#include "lamella/verify/run/kept_case.h"

#include "whole_file.h"

namespace lamella::tools {

using namespace verify;
using nlohmann::json;

namespace {
std::vector<std::string> separated(std::istream& in, char by) {
  std::vector<std::string> out;
  for (std::string one; std::getline(in, one, by);)
    if (!one.empty()) out.push_back(one);
  return out;
}
std::vector<std::string> given(const std::string& blobs) {
  if (!blobs.starts_with('@')) {
    std::istringstream in(blobs);
    return separated(in, ',');
  }
  std::ifstream in(blobs.substr(1));
  LAMELLA_CHECK(in.good(), Value, "replay: {}: cannot be read", blobs.substr(1));
  return separated(in, '\n');
}
}  // namespace

namespace {
/// `what` it is of: "mul, law promotes_by_table".
int show_replay(const std::string& what, const Verdict& v, const std::function<std::string()>& plain_call,
                bool compile) {
  static constexpr const char* kKinds[] = {"passes", "is discarded", "FAILS"};
  std::printf("%s: %s\n", what.c_str(), kKinds[v.kind]);
  if (v.kind != Verdict::Fail) {
    std::printf("\n%s", plain_call().c_str());
    return 0;
  }
  const std::string program = cpp_program(v.program);
  std::printf("%s (%s)\n\n%s", v.message.c_str(), str(v.failure).c_str(), program.c_str());
  if (compile) std::printf("%s", compile_and_run(program).c_str());
  return 1;
}
}  // namespace

int replay_case(const std::string& blobs_or_file, bool compile) {
  std::error_code no_file;  // blobs may be longer than a file's name
  if (std::filesystem::is_regular_file(blobs_or_file, no_file)) {
    const KeptCase c = read_kept_case(blobs_or_file);
    return show_replay(
        c.op + ", law " + c.law, replay(c), [&] { return cpp_plain_call(c); }, compile);
  }
  const std::vector<std::string> all = given(blobs_or_file);
  LAMELLA_CHECK(!all.empty(), Value, "replay: there is no blob in \"{}\"", blobs_or_file);
  for (size_t k = 0; k + 1 < all.size(); ++k) (void)replay(from_blob(all[k]));
  const Record r = from_blob(all.back());
  const auto plain = [&] {
    return cpp_plain_call(*find_law(r.law), *OpTable::current().find(r.op)->base, r.choices, r.decoding);
  };
  return show_replay(r.op + ", law " + r.law, replay(r), plain, compile);
}

size_t replay_corpus(const std::string& directory) {
  std::error_code error;  // said before the run whose failures would not be kept
  std::filesystem::create_directories(directory, error);
  LAMELLA_CHECK(std::filesystem::is_directory(directory, error), Usage,
                "--corpus: \"{}\" is no folder, and none can be made there", directory);
  size_t failed = 0, run = 0;
  for (const auto& file : record_files(directory)) {
    ++run;
    std::string wrong;
    try {
      const Verdict v = replay(read_kept_case(file));
      if (v.kind == Verdict::Fail) wrong = v.message;
    } catch (const Error& e) { wrong = e.what(); }
    if (wrong.empty()) continue;
    ++failed;
    std::printf("---- %s still fails\n%s\n\n", file.filename().c_str(), wrong.c_str());
  }
  std::printf("corpus: %zu recorded cases, %zu fail\n\n", run, failed);
  return failed;
}

namespace {
/// Where no file is, or the one of this text: another case of that name, or answers edited by hand, stay.
std::filesystem::path free_place(const std::filesystem::path& folder, const std::string& name,
                                 const std::string& text) {
  for (int n = 1;; ++n) {
    std::filesystem::path path = folder / (name + (n == 1 ? "" : "-" + std::to_string(n)) + ".txt");
    if (!std::filesystem::exists(path)) return path;
    std::ifstream file(path, std::ios::binary);
    std::ostringstream there;
    there << file.rdbuf();
    if (there.str() == text) return path;
  }
}
}  // namespace

void store_failures(const std::string& directory, const Report& report) {
  std::filesystem::create_directories(directory);
  for (const Failure& f : report.failures) {
    if (f.blob.empty()) continue;
    std::string name = f.op + "-" + f.law + "-" + str(f.kind);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return !std::isalnum(uint8_t(c)) && c != '-'; }, '_');
    const std::string text = to_file_text(kept(from_blob(f.blob)), f.message, f.program);
    write_whole_file(free_place(directory, name, text), text);
  }
}

namespace {
std::string dtypes_text(DTypeMask m) {
  if (m == kAllTypes) return "all";
  std::string out;
  for (int d = 0; d < kDTypeCount; ++d)
    if (m & mask(DType(d))) out += (out.empty() ? "" : " ") + std::string(name(DType(d)));
  return out;
}

const char* values_text(const DrawOptions& o) {
  if (o.exact) return "small integers, so that results are exact";
  if (o.tame) return "of order 1";
  if (o.ends) return "the whole mixture, half of the tensors of the ends of their dtype";
  return o.nonfinite ? "the whole mixture, NaN and infinities too" : "the whole mixture";
}
}  // namespace

void explain_law(const Law& law) {
  std::printf("law %d, %s (%s)\n  %s\n", law.number, std::string(law.id).c_str(),
              std::string(law.group).c_str(), std::string(law.statement).c_str());
  const DrawOptions& o = law.options;
  std::printf(
      "cases\n  dtypes: %s%s\n  values: %s, within 2^±%d\n  elements: at most %lld a tensor%s%s%s%s%s\n",
      dtypes_text(o.dtypes).c_str(), o.mixed ? "; one further operand in six has another" : "",
      values_text(o), o.tame ? 1 : o.max_exponent, static_cast<long long>(o.max_numel),
      draws_medium(law) ? ", a size up to 96 in one case of sixteen" : "",
      draws_large(law) ? ", about 2000 in the second case"
      : o.one_large    ? ", about 2000 in the eighth case"
                       : "",
      draws_near(law) ? ", a size near a threshold in one of 200" : "",
      o.layouts ? "; any strides and offsets, poison around views" : "",
      o.empty ? "; half of the sizes are 0" : "");
  std::printf("bound\n  %s\n", law.oracle ? "computed for each case from the f128 oracle (docs/oracle.md)"
                                          : "none: bit by bit, or a few roundings where sums are reordered");
  std::vector<std::string> yes, no;
  for (const Op* op : all_operators()) (law.applies(*op) ? yes : no).push_back(op->name);
  std::printf("operators\n  applies to %zu of %zu%s", yes.size(), yes.size() + no.size(),
              no.empty() ? "" : "; not to");
  for (const std::string& name : no) std::printf(" %s", name.c_str());
  std::printf("\n");
  const auto column = read_column(std::string(kLawsTable));
  const auto named = column.find(std::string(law.id));
  std::printf("mutants\n");
  if (named == column.end() || named->second.empty())
    std::printf("  none is named in docs/laws.md; lamella mutate --law %s finds some\n",
                std::string(law.id).c_str());
  else
    for (const std::string& id : named->second)
      std::printf("  %s\n    lamella mutate --verbose --law %s --mutant '%s'\n", id.c_str(),
                  std::string(law.id).c_str(), id.c_str());
}

namespace {
constexpr double kMostDiscards = 0.5, kSlowSeconds = 0.02, kEnough = 200;

void print_health(const Report& report) {
  std::vector<std::string> lines;
  for (const auto& [key, t] : report.tallies) {
    const double tried = double(t.cases + t.discards);
    const std::string who = key.first + ", law " + key.second + ": ";
    if (tried >= kEnough && double(t.discards) > kMostDiscards * tried)
      lines.push_back(who + format("{} % of {} cases are discarded", int(100 * double(t.discards) / tried),
                                   uint64_t(tried)));
    if (tried >= 20 && t.seconds > kSlowSeconds * tried)
      lines.push_back(who + format("{} ms a case", int(1000 * t.seconds / tried)));
  }
  for (size_t k = 0; k < std::min<size_t>(lines.size(), 8); ++k)
    std::printf("health: %s\n", lines[k].c_str());
  if (lines.size() > 8) std::printf("health: and %zu more like these\n", lines.size() - 8);
}
}  // namespace

void print_self_check(const Report& report, const std::vector<const Op*>& ops, int depth, bool asked) {
  uint64_t met = 0, missed = 0, counted = 0;
  for (const Op* op : ops) {
    const auto at = report.coverage.find(op->name);
    if (at == report.coverage.end()) continue;
    counted += at->second.cases;
    if (!asked) continue;
    const std::vector<Shortfall> short_of = shortfalls(*op, at->second, depth);
    met += requirements(*op, at->second, depth).size() - short_of.size();
    missed += short_of.size();
    for (const Shortfall& s : short_of)
      std::printf("coverage: %s, %s: %llu of %llu cases, at least %g %% required\n", op->name.c_str(),
                  s.what.c_str(), static_cast<unsigned long long>(s.hits),
                  static_cast<unsigned long long>(s.cases), 100 * s.required);
  }
  if (asked)
    for (const Shortfall& s : threshold_requirements(report.coverage, ops)) {
      const bool short_of = falls_short(s);
      (short_of ? missed : met) += 1;
      if (short_of)
        std::printf("coverage: every operator, %s: %llu of %llu cases, at least %g %% required\n",
                    s.what.c_str(), static_cast<unsigned long long>(s.hits),
                    static_cast<unsigned long long>(s.of()), 100 * s.required);
    }
  std::printf("branches: %zu taken by one case in sixteen\n", report.branches.count());
  print_health(report);
  for (const auto& [law, counted] : report.counts) {
    std::string line;
    for (const auto& [what, n] : counted) line += format("{}{} {}", line.empty() ? "" : ", ", n, what);
    std::printf("counted: %s: %s\n", law.c_str(), line.c_str());
  }
  if (!asked) {
    std::printf("coverage: %llu cases looked at; shares are required of a whole run of all laws\n",
                static_cast<unsigned long long>(counted));
    return;
  }
  std::printf("coverage: %llu cases looked at, %llu requirements met or still open, %llu missed\n",
              static_cast<unsigned long long>(counted), static_cast<unsigned long long>(met),
              static_cast<unsigned long long>(missed));
}

json coverage_json(const Report& report, const std::vector<const Op*>& ops, int depth, bool all_laws) {
  json out = json::object();
  for (const Op* op : ops) {
    const auto at = report.coverage.find(op->name);
    if (at == report.coverage.end()) continue;
    json& row = out[op->name];
    row["cases"] = at->second.cases;
    for (size_t f = 0; f < kFeatures; ++f)
      row["features"][std::string(name(Feature(f)))] = at->second.features[f];
    if (!all_laws) continue;
    row["required"] = json::array();
    for (const Shortfall& s : requirements(*op, at->second, depth))
      row["required"].push_back(
          {{"what", s.what}, {"hits", s.hits}, {"cases", s.cases}, {"share", s.required}});
    row["missed"] = json::array();
    for (const Shortfall& s : shortfalls(*op, at->second, depth)) row["missed"].push_back(s.what);
  }
  const std::vector<Shortfall> sides = threshold_requirements(report.coverage, ops);
  if (!all_laws || sides.empty()) return out;
  json& row = out["every operator"] = {{"cases", 0}, {"required", json::array()}, {"missed", json::array()}};
  for (const Shortfall& s : sides) {
    row["required"].push_back(
        {{"what", s.what}, {"hits", s.hits}, {"cases", s.cases}, {"share", s.required}, {"due", s.due}});
    if (falls_short(s)) row["missed"].push_back(s.what);
  }
  return out;
}

}  // namespace lamella::tools
