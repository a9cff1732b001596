// Running cases and summing up: what `lamella reference` reports, whatever the kind of file.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace lamella::tools {

struct Failure {
  int case_number;
  std::string message;
};

/// One operator's verdicts. cases = passed + failed + not_implemented.
struct Tally {
  int cases = 0, passed = 0, failed = 0, not_implemented = 0;
  std::vector<Failure> failures;
  std::string note;  ///< why cases are not implemented, or the largest error found
  void fail(int case_number, std::string message) {
    ++failed;
    failures.push_back({case_number, std::move(message)});
  }
};

/// The text of tools/reference_exceptions.json.
extern const std::string_view kReferenceExceptions;

/// Cases in which PyTorch is wrong and a high-precision computation sides with the library; each has a
/// reason. The file is a JSON list of {"op", "case", "reason"}.
class Exceptions {
 public:
  /// From a JSON text; `name` is for errors. Error usage when it is malformed or an entry lacks its reason.
  Exceptions(std::string_view text, const std::string& name);
  /// Whether the case is listed; remembers that it was asked for.
  bool take(const std::string& op, int case_number);
  /// Listed cases that did not fail.
  std::vector<std::string> unused() const;
  int used() const { return int(used_.size()); }

 private:
  std::set<std::pair<std::string, int>> listed_, used_;
};

struct RunOptions {
  std::vector<std::string> operators;  ///< only these; all when empty
  std::string write_dir;               ///< where computed tensors go; empty: nowhere
};
bool selected(const RunOptions& options, const std::string& op, const std::string& variant);

/// Runs the cases of one file of a pack. Errors: value (malformed file), usage (cannot write).
void run_pack_file(const std::string& name, std::string bytes, const RunOptions& options,
                   Exceptions& exceptions, std::map<std::string, Tally>& tallies);
/// Likewise for one of NumPy's ULP sets (umath-validation-set-exp.csv): a case is a row.
void run_ulp_file(const std::string& name, const std::string& bytes, const RunOptions& options,
                  std::map<std::string, Tally>& tallies);

void write_file(const std::string& path, const std::string& bytes);

}  // namespace lamella::tools
