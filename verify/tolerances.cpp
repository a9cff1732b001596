// Tolerances: floors with their reasons, and what was measured.
#include "lamella/verify/tolerances.h"

#include <algorithm>
#include <map>
#include <string>

#include "lamella/core/check.h"
#include "lamella/dispatch/table.h"

namespace lamella::verify {

namespace {

/// Operators whose results or derivatives are right to roundoff, and not relative to a result that cancelled.
struct Floor {
  std::string_view op;
  double derivative;
  std::string_view reason;
  std::string_view times = {};
};
constexpr Floor kFloors[] = {
    {"tanh", 2, "1 - y*y cancels where y is close to 1: right to u, not relative to the tiny derivative"},
    {"softmax", 1, "u - sum(u*y) cancels where one y is close to 1"},
    {"log_softmax", 1, "u - exp(y)*sum(u) cancels likewise"},
    {"logsumexp", 1, "its derivative is softmax"},
    {"layer_norm", 4, "of the cotangent times weight the parts along 1 and along y are subtracted", "weight"},
    {"native_layer_norm", 4, "as layer_norm", "weight"},
    {"sign", 4, "complex: the radial part of a direction is taken out by subtraction"},
    {"abs", 4, "complex, second order: as sign"},
};

constexpr MeasuredErrors kMeasured[] = {
#include "measured_errors.inc"
    {}};

/// NOTE: [additions] Operators that add their terms one after another. An addition is off by u times the
/// partial sum P, and 2 |P| <= |y| + sum |terms|, which is the least that the condition can be: n additions
/// need k of n / 2, and one more for the terms themselves. Fewer are made where terms are products of two
/// inputs: a sum of n of them has n elements of each. So do their derivatives, and transposed ones add
/// cotangents of results: gather's are scattered, and a row of n results gives n terms of v's in mv.
struct Additions {
  std::string_view op;
  double per_input, per_result;
};
constexpr Additions kAdditions[] = {{"cumsum", 1, 1}, {"scatter_add", 1, 0},  {"index_add", 1, 0},
                                    {"gather", 0, 1}, {"index_select", 0, 1}, {"mm", 0.5, 1},
                                    {"bmm", 0.5, 1},  {"mv", 0.5, 1},         {"matmul", 0.5, 1}};

/// see NOTE: [kernels that add in a row]. `jvp`: laws that know no number of terms compare derivatives of at
/// most 48 inputs, and tangents are added in a row, too: 1 + 48 / 2.
struct KernelInARow {
  std::string_view op, kernel;
  double per_input, jvp;
};
constexpr KernelInARow kKernelsInARow[] = {{"sum", "plain", 1, 25}};

using Table = std::map<std::string_view, Tolerance>;

Table floors() {
  Table out;
  for (const Floor& f : kFloors) out[f.op].derivative_floor = f.derivative, out[f.op].floor_times = f.times;
  for (const Additions& a : kAdditions)
    out[a.op].additions = a.per_input, out[a.op].transposed_additions = a.per_result;
  return out;
}

Table measured() {
  Table out = floors();
  const auto lower = [](double& k, double largest) {
    if (largest >= 0) k = std::min(k, kMargin * largest);
  };
  for (const MeasuredErrors& m : kMeasured) {
    Tolerance& t = out[m.op];
    lower(t.value, m.value), lower(t.jvp, m.jvp), lower(t.vjp, m.vjp), lower(t.hessian, m.hessian);
  }
  return out;
}

Table in_a_row(Table table) {
  for (const KernelInARow& k : kKernelsInARow) {
    Tolerance& t = table[k.op];
    t.additions = k.per_input, t.jvp = std::max(t.jvp, k.jvp);
  }
  return table;
}

struct Stated {
  Tolerance k;
  std::string reason;
};
/// Rows stay where they are: tolerance() gives references away.
std::map<std::string, Stated, std::less<>>& stated() {
  static std::map<std::string, Stated, std::less<>> all;
  return all;
}
}  // namespace

void state_tolerance(std::string_view op, const Tolerance& k, std::string_view reason) {
  LAMELLA_CHECK(!reason.empty(), Usage,
                "state_tolerance: {} has no reason; expected why its k is another one", op);
  for (const double part : {k.value, k.jvp, k.vjp, k.hessian, k.derivative, k.second, k.additions,
                            k.transposed_additions, k.derivative_floor})
    LAMELLA_CHECK(part >= 0 && part <= kMostStated, Usage, "state_tolerance: {} got k = {}; expected 0 to {}",
                  op, part, kMostStated);
  LAMELLA_CHECK(measured_errors(op).op.empty() && !floors().contains(op), Usage,
                "state_tolerance: {} is the library's, and measured; expected an operator of one's own", op);
  LAMELLA_CHECK(stated().try_emplace(std::string(op), Stated{k, std::string(reason)}).second, Usage,
                "state_tolerance: {} has stated its k already (\"{}\")", op, stated_reason(op));
}

std::string_view stated_reason(std::string_view op) {
  const auto at = stated().find(op);
  return at == stated().end() ? std::string_view() : at->second.reason;
}

double additions_of_chosen_kernel(std::string_view op) {
  for (const KernelInARow& k : kKernelsInARow) {
    const Op* const row = k.op == op ? OpTable::current().find(op) : nullptr;
    const Column* const column = row ? row->column(int(Device::CPU)) : nullptr;
    if (column && column->now().name == k.kernel) return k.per_input;
  }
  return 0;
}

const Tolerance& tolerance(std::string_view op) {
  static const Table defaults = floors(), lowered = measured();
  static const Table chained = in_a_row(defaults), chained_lowered = in_a_row(lowered);
  const bool is_chained = additions_of_chosen_kernel(op) > 0;
  const Table& usual = is_chained ? chained_lowered : lowered;
  const Table& table = DefaultTolerances::live ? (is_chained ? chained : defaults) : usual;
  if (const auto own = stated().find(op); own != stated().end() && !DefaultTolerances::live)
    return own->second.k;
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
