// What runs of planted bugs say about laws: the matrix of groups and laws, and the last column of
// docs/laws.md.
#pragma once

#include <map>

#include "lamella/mutate/mutants.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

struct Score {
  size_t mutants = 0, killed = 0, equivalent = 0;
  size_t survivors() const { return mutants - killed - equivalent; }
  /// Killed ones among those that are not equivalent.
  double rate() const;
};
Score score_of(const std::vector<MutantResult>& results, std::string_view group = {});

/// Laws and calibrations in order, with how many mutants of each group they noticed, and how many only they
/// did.
struct MatrixRow {
  std::string law;
  std::vector<std::pair<std::string, int>> kills;  ///< by group, in the order of kGroups
  int total = 0, alone = 0;
  double median_cases = 0;
};
inline constexpr std::string_view kGroups[] = {"rule", "batch", "composite", "dispatch", "kernel", "harness"};
std::vector<MatrixRow> matrix_of(const std::vector<MutantResult>& results);
std::string matrix_text(const std::vector<MatrixRow>& matrix);

/// How many checks, of all laws together, it took until the first law noticed: of half of the mutants that
/// were noticed, and of 95 % of them. 0 where none was.
struct ChecksToKill {
  size_t mutants = 0;
  double half = 0, most = 0;
};
ChecksToKill checks_to_kill(const std::vector<MutantResult>& results, std::string_view group = {});

/// Up to two mutants for each law: those that the fewest other laws notice, of different groups.
std::map<std::string, std::vector<std::string>> witnesses(const std::vector<MutantResult>& results);
/// The text of docs/laws.md with its last column made of `by_law`.
std::string with_column(const std::string& markdown,
                        const std::map<std::string, std::vector<std::string>>& by_law);
/// The last column read back: mutants by law.
std::map<std::string, std::vector<std::string>> read_column(const std::string& markdown);

}  // namespace lamella::verify
LAMELLA_API_END
