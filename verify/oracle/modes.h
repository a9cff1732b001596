// Two modes that run a function otherwise than written: every operator on the Reference column, or with
// operands perturbed as roundoff would.
#pragma once

#include <map>
#include <mutex>

#include "lamella/core/visit.h"
#include "lamella/dispatch/table.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/oracle/oracle.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// While its level lives, operators compute in f128 on the Reference column. Tensors the function captured or
/// makes are moved there when an operator reads them; writing to a captured one is an error.
class OnReference : public Transform {
 public:
  TransformKind kind() const override { return TransformKind::Mode; }
  std::string_view name() const override { return "on_reference"; }
  void call(Frame& frame, int key) override;
};

/// Tables whose composites run on that column, by the table that they stand for. Rows and tables are never
/// freed, so one is kept for each.
class ReferenceTables {
 public:
  const OpTable* of(const OpTable& table);

 private:
  std::mutex mutex_;
  std::map<const OpTable*, const OpTable*> known_;
};
ReferenceTables& reference_tables();  ///< NOTE: [context]

/// Runs everything called in its scope so.
class ReferenceRun {
 public:
  ReferenceRun();

 private:
  ScopedTable table_;
  OnReference mode_;
  Level level_;
};

/// NOTE: [shaking] Every inexact operand of every operator that computes is multiplied by 1 ± `size`, with
/// signs that depend on `sample`, the call and the element alone: two evaluations nearby see the same signs,
/// so a difference of them is one of a perturbed, smooth function. How far a slope moves, over `size`, is its
/// condition with respect to roundoff inside the function; no derivative rule takes part. Operators that
/// round in absolute terms (the floors of tolerances.h) are shaken so too.
class Shaken : public Transform {
 public:
  Shaken(double size, size_t sample) : size_(size), sample_(sample) {}
  TransformKind kind() const override { return TransformKind::Mode; }
  std::string_view name() const override { return "shaken"; }
  void call(Frame& frame, int key) override;

 private:
  void write(Frame& frame, int key);
  Tensor shake(const Tensor& t, double size);
  Tensor shift(const Tensor& y, const Tolerance& tol, f128 operand_sum);
  double noise();  ///< +1 or -1
  double size_;
  size_t sample_;
  uint64_t counter_ = 0;
};

}  // namespace lamella::verify
LAMELLA_API_END
