// Tolerances: what rows state, and what was measured.
#include "lamella/verify/case/tolerances.h"

#include <algorithm>
#include <map>
#include <string>

#include "lamella/core/check.h"
#include "lamella/dispatch/nearest.h"
#include "lamella/dispatch/table.h"
#include "lamella/verify/case/context.h"

namespace lamella::verify {

namespace {

constexpr MeasuredErrors kMeasured[] = {
#include "measured_errors.inc"
    {}};

using Table = std::map<std::string, Tolerance, std::less<>>;

/// What rows state: NOTE: [numerics].
Table floors() {
  Table out;
  for (const Op* op : OpTable::current().rows()) {
    const Numerics& n = op->numerics;
    if (op->form != OpForm::Functional) continue;
    if (n.floor == 0 && n.additions == 0 && n.transposed_additions == 0) continue;
    Tolerance& t = out[op->name];
    t.derivative_floor = n.floor, t.floor_times = n.times, t.floor_over_result = n.over_result;
    t.additions = n.additions, t.transposed_additions = n.transposed_additions;
  }
  return out;
}

Table measured() {
  Table out = floors();
  const auto lower = [](double& k, double largest) {
    if (largest >= 0) k = std::min(k, kMargin * largest);
  };
  for (const MeasuredErrors& m : kMeasured) {
    Tolerance& t = out[std::string(m.op)];
    lower(t.value, m.value), lower(t.jvp, m.jvp), lower(t.vjp, m.vjp), lower(t.hessian, m.hessian);
  }
  return out;
}

/// The most that an alternative of an operator adds in a row.
double most_in_a_row(const Op& op) {
  double most = 0;
  if (const Column* const c = op.column(int(Device::CPU)))
    for (const Alternative& a : c->alternatives) most = std::max(most, a.adds_in_a_row);
  return most;
}

/// see NOTE: [kernels that add in a row]. Laws that know no number of terms compare derivatives of at most 48
/// inputs, and tangents are added in a row, too.
Table in_a_row(Table table) {
  for (const Op* op : OpTable::current().rows()) {
    const double per_input = op->form == OpForm::Functional ? most_in_a_row(*op) : 0;
    if (per_input == 0) continue;
    Tolerance& t = table[op->name];
    t.additions = per_input, t.jvp = std::max(t.jvp, 1 + 48 * per_input / 2);
  }
  return table;
}
}  // namespace

void state_tolerance(std::string_view op, const Tolerance& k, std::string_view reason) {
  LAMELLA_CHECK(!reason.empty(), Usage,
                "state_tolerance: {} has no reason; expected why its k is another one", op);
  for (const double part : {k.value, k.jvp, k.vjp, k.hessian, k.derivative, k.second, k.additions,
                            k.transposed_additions, k.derivative_floor})
    LAMELLA_CHECK(part >= 0 && part <= kMostStated, Usage, "state_tolerance: {} got k = {}; expected 0 to {}",
                  op, part, kMostStated);
  const Op* const row = OpTable::current().find(op);
  const bool measured =
      !measured_errors(op).op.empty() || floors().contains(op);  // also where it is replaced
  LAMELLA_CHECK(row || measured, UnknownOperator,
                "state_tolerance: there is no operator \"{}\"{}; expected "
                "one's own, which is added first",
                op, nearest_operators(op));
  LAMELLA_CHECK(!measured && !(row && row->origin.empty()), Usage,
                "state_tolerance: {} is the library's; expected an operator of one's own", op);
  LAMELLA_CHECK(
      stated_tolerances().try_emplace(std::string(op), StatedTolerance{k, std::string(reason)}).second, Usage,
      "state_tolerance: {} has stated its k already (\"{}\")", op, stated_reason(op));
}

std::string_view stated_reason(std::string_view op) {
  const StatedTolerances& stated = stated_tolerances();
  const auto at = stated.find(op);
  return at == stated.end() ? std::string_view() : at->second.reason;
}

double additions_of_chosen_kernel(std::string_view op) {
  const Op* const row = OpTable::current().find(op);
  const Column* const column = row ? row->column(int(Device::CPU)) : nullptr;
  return column ? column->now().adds_in_a_row : 0;
}

const Tolerance& tolerance(std::string_view op) {
  static const Table defaults = floors(), lowered = measured();
  static const Table chained = in_a_row(defaults), chained_lowered = in_a_row(lowered);
  const bool is_chained = additions_of_chosen_kernel(op) > 0;
  const Table& usual = is_chained ? chained_lowered : lowered;
  const bool all_alike = run_context().default_tolerances;
  const Table& table = all_alike ? (is_chained ? chained : defaults) : usual;
  const StatedTolerances& stated = stated_tolerances();
  if (const auto own = stated.find(op); own != stated.end() && !all_alike) return own->second.k;
  const auto at = table.find(op);
  return at == table.end() ? kDefaultTolerance : at->second;
}

const MeasuredErrors& measured_errors(std::string_view op) {
  static constexpr MeasuredErrors kNone;
  for (const MeasuredErrors& m : kMeasured)
    if (m.op == op) return m;
  return kNone;
}

}  // namespace lamella::verify
