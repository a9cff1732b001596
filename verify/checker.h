// One pass of gradcheck: first derivatives of one function at one point.
#pragma once

#include <map>

#include "lamella/verify/gradcheck.h"

namespace lamella::verify {

/// Where each real part of these tensors sits.
std::vector<GradcheckPart> parts_of(const Tensors& ts);
/// Tensors like `like` holding `flat` in their own dtypes; undefined where all parts are zero.
Tensors tensors_of(const Reals& flat, const Tensors& like);

class Checker {
 public:
  /// `units`: how many roundings a derivative may be off, times its condition. Findings go to `report` under
  /// `label` + "jvp".
  Checker(const Function& f, const Tensors& inputs, const GradcheckOptions& options, double units,
          std::string label, GradcheckReport& report);
  void run();
  /// Compares numbers that should agree with entries (result i, variable j) of the Jacobian: vmap's.
  void compare_rows(const std::string& check, size_t i, const Reals& row);
  /// Reports what was found, unless a neighbour that is not differentiable excuses it.
  void conclude();

  const Tensors& results() const { return ys_; }
  size_t variables() const { return n_; }
  size_t values() const { return m_; }
  Reals pull(const Reals& u) const { return flatten(pullback_->pullback(tensors_of(u, ys_))); }
  /// Few bits, both signs, of the order of the variable.
  Reals direction(const Reals& scale, uint64_t salt) const;

 private:
  void choose_oracle();
  bool same_values(const Reals& wide) const;
  Reals push(const Reals& t);
  bool agrees(size_t first, size_t last);
  bool straight(const Reals& t, const Reals& slope);
  void suspect(size_t first, size_t last);
  void check_column(size_t j);
  void judge(size_t i, size_t j, f128 got, const Slope& s);
  void note_kink(size_t i, size_t j, f128 got, const Slope& s);
  void check_linear();
  void check_pullback();
  bool adjoint_holds() const;
  bool excused(size_t i, size_t j, const GradcheckEntry& e) const;

  const Reals& column(size_t j);    ///< of the derivatives under test
  const Slope& slope_of(size_t j);  ///< of the oracle
  const Reals& condition(size_t j, size_t shakes);
  bool exceeds(f128 gap, size_t i, size_t j, f128 rounding, f128 rest, f128& condition_of, double& bound);
  GradcheckEntry entry(const std::string& check, size_t i, size_t j, f128 got, f128 expected) const;
  void wrong(GradcheckEntry e);
  void raised(const std::string& check, const std::exception& e);
  std::string bound_text(double condition, f128 error, f128 step) const;

  Function f_, active_function_;
  Tensors inputs_, xs_, ys_;
  const GradcheckOptions& options_;
  double units_, u_ = 0, tiny_ = 0;  ///< roundings allowed, the coarsest roundoff, what underflow may lose
  std::string label_;
  GradcheckReport& report_;
  size_t n_, m_;
  RealFunction own_;
  std::optional<RealFunction> wide_;
  const RealFunction* oracle_ = nullptr;
  std::optional<VjpResult> pullback_;
  bool forward_ = false;  ///< jvp works; otherwise the Jacobian under test is the pullback's
  Reals t_, jt_, right_, left_;
  std::vector<Reals> rows_;
  std::map<size_t, Reals> columns_;
  std::map<std::pair<size_t, size_t>, Reals> conditions_;  ///< by variable and number of shakes
  std::map<size_t, Slope> slopes_;
  std::vector<bool> odd_rows_, odd_columns_;  ///< with an entry that is not differentiable
  std::vector<GradcheckEntry> undecided_;
  std::vector<std::pair<size_t, size_t>> undecided_at_;
};

/// gradcheck_more.cpp
void check_second_order(const Function& f, const Tensors& inputs, const GradcheckOptions& options,
                        GradcheckReport& report);
void check_batched(const Function& f, const Tensors& inputs, Checker& first, const GradcheckOptions& options,
                   GradcheckReport& report);

}  // namespace lamella::verify
