// What calibrations share: rows of numbers, laws with known verdicts, operators with known bugs.
#pragma once

#include "lamella/dispatch/table.h"
#include "lamella/mutate/calibration.h"
#include "lamella/verify/run/runner.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor row_of(std::initializer_list<double> values, DType dtype = DType::F64);
/// 1, 2, 3, … in a dtype that may be any; bool in turns.
Tensor counted_up(Ints sizes, DType dtype);

/// The first operators of the table with one smooth real result per element.
std::vector<const Op*> smooth_ones();
const Op& operator_named(std::string_view name);

bool every_op(const Op&);
/// A law of its own, about nothing else than its check.
Law law_that(Verdict (*check)(Case&), std::string_view id = "calibration");
/// A case of an operator whose tensors are these.
Case case_with(const Op& op, const Tensors& xs);
/// A hash of a case's arguments and of the words behind them.
size_t print_of(Case& c);

/// While alive, an operator's row is a wrong one, made by `plant` of the right one. One at a time.
class PlantedRow {
 public:
  PlantedRow(const Op& right, void (*plant)(Op& row), std::string_view ending = "");
  ~PlantedRow();
  PlantedRow(const PlantedRow&) = delete;
  /// The functional row, wrong or of a wrong form.
  const Op& row() const { return table_->row(id_); }
  /// Cases of the law, at most `most`, until it fails; 0: it never did.
  int cases_until_seen(const Law& law, int most) const;

 private:
  uint32_t id_;
  const Op* before_;
  bool counted_before_;
  const OpTable* table_;
  ScopedTable pinned_;
};

}  // namespace lamella::verify
LAMELLA_API_END
