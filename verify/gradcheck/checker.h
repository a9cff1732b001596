// One pass of gradcheck: first derivatives of one function at one point.
#pragma once

#include <algorithm>
#include <map>

#include "lamella/core/visit.h"
#include "lamella/verify/gradcheck/gradcheck.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Where each real part of these tensors sits.
std::vector<GradcheckPart> parts_of(const Tensors& ts);
/// Tensors like `like` holding `flat` in their own dtypes; undefined where all parts are zero.
Tensors tensors_of(const Reals& flat, const Tensors& like);

inline bool finite_part(f128 v) { return v - v == 0; }
inline bool all_finite(const Reals& v) { return std::ranges::all_of(v, finite_part); }
inline Reals unit(size_t n, size_t j) {
  Reals out(n);
  out[j] = 1;
  return out;
}

/// What derivative code under test raised: a finding, whatever it was.
struct DerivativeRaised {
  std::string check, text;
};
/// The exception that is being handled, in words.
std::string raised_text();
/// Calls f; what it raises leaves as a DerivativeRaised of `check`, or of the check inside that raised it.
template <class F> auto under_test(std::string_view check, F&& f) {
  try {
    return f();
  } catch (const DerivativeRaised&) { throw; } catch (...) {
    throw DerivativeRaised{std::string(check), raised_text()};
  }
}
/// Counts it, and keeps the first few.
void add_finding(GradcheckReport& report, const GradcheckOptions& options, GradcheckEntry e);
/// The finding that `label` + `check` raised.
GradcheckEntry raised_entry(const std::string& label, const DerivativeRaised& r);

/// checker.cpp draws directions and bisects; checker_entries.cpp judges entries, rows and sums of them.
class Checker {
 public:
  /// `units`: how many roundings a derivative may be off, times its condition. Findings go to `report` under
  /// `label` + "jvp".
  Checker(const Function& f, const Tensors& inputs, const GradcheckOptions& options, double units,
          std::string label, GradcheckReport& report);
  void run();
  /// Whether run() came to its end: nothing raised.
  bool ran() const { return ran_; }
  /// Compares numbers that should agree with entries (result i, variable j) of the Jacobian: vmap's.
  void compare_rows(const std::string& check, size_t i, const Reals& row);
  /// Reports what was found, unless a neighbour that is not differentiable excuses it.
  void conclude();

  const Tensors& results() const { return ys_; }
  size_t variables() const { return n_; }
  size_t values() const { return m_; }
  Reals pull(const Reals& u) const;
  Reals pull_in_base(const Reals& u) const;
  /// 20 random bits and a sign for each part of `like` (10 for f16, 7 for bf16, which hold no more), of the
  /// order of `scale` where that is larger than one.
  Reals direction(const Tensors& like, const Reals& scale, uint64_t salt) const;

 private:
  void choose_oracle();
  bool same_values(const Reals& wide) const;
  void first_derivatives();
  void check();
  Reals push(const Reals& t);
  bool agrees(size_t first, size_t last);
  bool within_condition(const Reals& got, const Reals& want, const Reals& t) const;
  bool straight(const std::pair<Reals, Reals>& beside, const Reals& slope) const;
  bool alike(size_t first, size_t last) const;
  void suspect(size_t first, size_t last);
  void check_column(size_t j);
  void judge(size_t i, size_t j, f128 got, const Slope& s);
  void note_kink(size_t i, size_t j, f128 got, const Slope& s);
  void check_linear();
  void check_pullback();
  void check_backward();
  void check_pullback_linear();
  bool is_known(std::optional<size_t> i, size_t j) const;
  Reals cotangent(const Reals& j_t) const;
  bool adjoint_holds(const Reals& t, const Reals& j_t) const;
  bool excused(size_t i, size_t j, const GradcheckEntry& e) const;

  const Reals& column(size_t j);    ///< of the derivatives under test
  const Slope& slope_of(size_t j);  ///< of the oracle
  const Reals& condition(size_t j, size_t shakes);
  f128 finite_condition(size_t i, size_t j, size_t shakes);
  bool exceeds(f128 gap, size_t i, size_t j, f128 rounding, f128 rest, f128& condition_of, double& bound);
  Rounding rounding(size_t i, size_t j) const;
  GradcheckEntry entry(const std::string& check, size_t i, size_t j, f128 got, f128 expected) const;
  void wrong(GradcheckEntry e);
  std::string bound_text(double u, double condition, f128 error, f128 step) const;

  Function f_, active_function_;
  Tensors inputs_, xs_, ys_;
  const GradcheckOptions& options_;
  double units_;        ///< roundings allowed
  Rounding coarsest_;   ///< of all inputs and results
  bool mixed_ = false;  ///< they differ: see NOTE: [rounding of an entry]
  Rounding inside_;     ///< where mixed: of operators in the function, of each result and variable
  std::vector<Rounding> of_result_, of_variable_;
  std::string label_;
  GradcheckReport& report_;
  size_t n_, m_;
  RealFunction own_;
  std::optional<RealFunction> wide_;
  const RealFunction* oracle_ = nullptr;
  std::optional<VjpResult> pullback_;
  bool ran_ = false;
  bool in_base_ = false;  ///< pull() is that of base autograd
  bool forward_ = false;  ///< jvp works; otherwise the Jacobian under test is the pullback's
  Reals t_, jt_;
  std::pair<Reals, Reals> beside_;  ///< the oracle's values on both sides along t_
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
LAMELLA_API_END
