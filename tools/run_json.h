// The JSON of `lamella verify`: what it says beside the counts, reading it back, and putting shards together.
#pragma once

#include <nlohmann/json.hpp>

#include "lamella/verify/run/runner.h"

namespace lamella::tools {

/// "1/4": the second of four.
struct Shard {
  int index = 0, of = 1;
  /// Error usage unless 0 <= index < of.
  static Shard parse(const std::string& text);
};

/// Adds to {checks, seed, failures, operators}: the version, shard, depth, laws, rate, what failures say, and
/// each pair's discards, seconds and strata. Pairs that apply and had no case appear with 0 cases.
void describe_run(nlohmann::json& out, const verify::Report& report, const verify::RunOptions& options,
                  int depth);

/// Writes in UTF-8; bytes that are not become U+FFFD. `path` "-": standard output. Error usage when it
/// cannot.
void write_json(const std::string& path, const nlohmann::json& value);
/// Error usage when the file cannot be read or is no JSON object.
nlohmann::json read_json(const std::string& path);
/// Error usage, naming `path`, unless it is a whole report of `lamella verify`.
void check_run(const nlohmann::json& run, const std::string& path);

/// One report from several of the same version, seed and depth, whose pairs are disjoint. The result does not
/// depend on their order, and merging it again changes nothing. Error usage otherwise.
nlohmann::json merge_runs(const std::vector<nlohmann::json>& runs, const std::vector<std::string>& paths);

/// JUnit XML: a suite for each operator, a test case for each law, failures with their programs.
std::string junit_xml(const nlohmann::json& run);

/// "add: ties, smooth" for each operator whose cases miss what coverage requires. None where that cannot be
/// judged: some of the laws or shards alone.
std::vector<std::string> missed_coverage(const nlohmann::json& run);
/// Names them on stderr, for command `who`. Whether there are any.
bool says_what_is_missed(const nlohmann::json& run, const char* who);
/// "2 of 3 shards are missing", "a run was interrupted": why a report is not that of a whole run.
std::vector<std::string> why_incomplete(const nlohmann::json& run);

/// Pairs (operator, law) that apply and had no case.
std::vector<std::pair<std::string, std::string>> gaps_of(const nlohmann::json& run);

}  // namespace lamella::tools
