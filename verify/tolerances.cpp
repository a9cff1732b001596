// Tolerances: floors with their reasons, and what was measured.
#include "lamella/verify/tolerances.h"

#include <algorithm>
#include <map>

namespace lamella::verify {

namespace {

/// Operators whose results or derivatives are right to roundoff, and not relative to a result that cancelled.
struct Floor {
  std::string_view op;
  double value, derivative;
  std::string_view reason;
};
constexpr Floor kFloors[] = {
    {"tanh", 0, 2, "1 - y*y cancels where y is close to 1: right to u, not relative to the tiny derivative"},
    {"softmax", 0, 1, "u - sum(u*y) cancels where one y is close to 1"},
    {"log_softmax", 2, 1, "the logarithm of a sum close to 1 is right to u; so is u - exp(y)*sum(u)"},
    {"layer_norm", 0, 4, "the parts of the cotangent along 1 and along y are taken out by subtraction"},
    {"native_layer_norm", 0, 4, "as layer_norm"},
    {"sign", 0, 4, "complex: the radial part of a direction is taken out by subtraction"},
    {"abs", 0, 4, "complex, second order: as sign"},
};

constexpr MeasuredErrors kMeasured[] = {
#include "measured_errors.inc"
    {}};

using Table = std::map<std::string_view, Tolerance>;

Table floors() {
  Table out;
  for (const Floor& f : kFloors) out[f.op].value_floor = f.value, out[f.op].derivative_floor = f.derivative;
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

}  // namespace

const Tolerance& tolerance(std::string_view op) {
  static const Table defaults = floors(), lowered = measured();
  const Table& table = DefaultTolerances::live ? defaults : lowered;
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
