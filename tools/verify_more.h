// What `lamella verify` does beside running: replays, explanations, compiled counterexamples, checks of the
// run itself.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "lamella/verify/run/runner.h"

namespace lamella::tools {

/// Compiles a counterexample and runs it against the operators of this process (plug-ins too). What it
/// printed, behind a line that says how it went; or why it could not be compiled.
std::string compile_and_run(const std::string& program);

/// Runs `program` in a child of this process, its output in a file, for twenty seconds at most. How the child
/// ended, as waitpid() says it; none where it could not be started.
std::optional<int> run_aside(const std::function<int()>& program, const std::string& output);

/// Prints a recorded case and its verdict. 0 when it passes, 1 when it still fails. `blobs`: one or more,
/// separated by commas, or @FILE with one a line; those before the last one run first, in this process.
int replay_case(const std::string& blobs_or_file, bool compile);
/// Runs all records of a directory; prints those that fail. How many failed.
size_t replay_corpus(const std::string& directory);
/// Keeps each failure as a file of its own.
void store_failures(const std::string& directory, const verify::Report& report);

/// docs/laws.md.
extern const std::string_view kLawsTable;
/// What it says, to whom it applies, how cases are drawn, and which mutants redden it.
void explain_law(const verify::Law& law);

/// Coverage that falls short (asked for of a whole run of all laws: one law or shard alone need not draw
/// everything), and pairs that are slow or discard most cases.
void print_self_check(const verify::Report& report, const std::vector<const Op*>& ops, int depth, bool asked);
/// Counts, and what is required of them and missed; of a run of some laws, counts alone.
nlohmann::json coverage_json(const verify::Report& report, const std::vector<const Op*>& ops, int depth,
                             bool all_laws);

}  // namespace lamella::tools
