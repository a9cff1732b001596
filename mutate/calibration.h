// Checks of the harness on questions whose answers are known: what a wrong harness gets wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lamella/verify/case/fault.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

struct Calibration {
  std::string_view id;
  std::string_view statement;  ///< one sentence that can be false
  std::string (*check)();      ///< empty when it holds; else what is wrong
  bool slow = false;           ///< takes seconds: not asked by every run
};
/// All of them; each file calibration_*.cpp contributes its list.
const std::vector<Calibration>& calibrations();
/// Those of a leaf, behind the others. REQUIRES: before the first is asked, on one thread.
void add_calibrations(const std::vector<Calibration>& of_leaf);

void add_compare_calibrations(std::vector<Calibration>&);  ///< comparisons, bounds, numbers of dtypes
void add_record_calibrations(std::vector<Calibration>&);   ///< blobs, files, what processes tell each other
void add_draw_calibrations(std::vector<Calibration>&);     ///< generators, seeds, shards, the census
void add_verdict_calibrations(std::vector<Calibration>&);  ///< exceptions, state and memory left behind
void add_reduce_calibrations(std::vector<Calibration>&);   ///< the reducer
void add_count_calibrations(std::vector<Calibration>&);    ///< coverage and reports
void add_worker_calibrations(std::vector<Calibration>&);   ///< which cases a worker runs
void add_process_calibrations(std::vector<Calibration>&);  ///< processes that crash, exit or do not end
void add_oracle_calibrations(std::vector<Calibration>&);   ///< conditions, kinks, values in f128
void add_gradcheck_calibrations(std::vector<Calibration>&);
void add_law_calibrations(std::vector<Calibration>&);     ///< bugs that laws are there for
void add_mutant_calibrations(std::vector<Calibration>&);  ///< what `lamella mutate` counts

}  // namespace lamella::verify
LAMELLA_API_END
