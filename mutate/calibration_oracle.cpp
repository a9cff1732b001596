// The oracle: conditions of known size, kinks where they are, values in f128 that stay what they were.
#include <cmath>
#include <quadmath.h>

#include "lamella/mutate/calibration_parts.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/oracle/oracle.h"

namespace lamella::verify {

namespace {

/// What only moves elements has the condition 2 in each: its own size, and that of its slope.
std::string conditions_are_own() {
  int asked = 0;
  for (const Op* op : all_operators()) {
    const bool moves = is_view(*op) && op->tensor_params.size() == 1 && has_vjp(*op);
    if (!moves && op->name != "neg" && op->name != "clone") continue;
    for (uint64_t i = 0; i < 3; ++i) {
      const Choices choices = choices_of(4, laws().front(), *op, i);
      const Case c(*op, choices, {.dtypes = mask(DType::F64), .max_numel = 12});
      if (c.inexact().empty()) continue;
      Oracle oracle(c, c.inexact());
      const Reals y = flatten(oracle.values());
      const Bounds bounds = oracle.value_bounds(0x1p-53);
      for (size_t k = 0; k < y.size(); ++k) {
        const double own = 2 * double(fabsq(y[k]));
        if (std::abs(bounds[k] - own) > 0x1p-20 * own)
          return format("{}: the condition of {} is said to be {}", op->name, double(y[k]), bounds[k]);
      }
      ++asked;
    }
  }
  return asked < 20 ? format("{} operators move elements", asked) : "";
}

/// Rows are summed apart, so one row's bound says nothing of the other's.
std::string conditions_of_sums() {
  const Op& sum = operator_named("sum");
  const Choices none;
  Case c(sum, none, {});
  c.args[0] = tensor_of({2, 2}, {1, 3, 0x1p20, 0x1p21}, DType::F64);
  c.args[1] = Dims{1};
  c.find_tensors();
  Oracle oracle(c, c.inexact());
  const Bounds b = oracle.value_bounds(0x1p-53);
  if (b.size() != 2 || std::abs(b[0] - 8) > 1e-3 || std::abs(b[1] - 6 * 0x1p20) > 1)
    return format("sums of 4 and 3 x 2^20 have conditions {} and {}", b.at(0), b.size() > 1 ? b[1] : 0);
  return "";
}

std::string kinks_are_where_they_are() {
  struct Known {
    const char* op;
    std::vector<Tensor> xs;
    bool smooth;
  };
  const Tensor zero = row_of({0}), one = row_of({1}), two = row_of({2}), minus = row_of({-3});
  for (const Known& k :
       {Known{"abs", {zero}, false}, Known{"abs", {one}, true}, Known{"abs", {minus}, true},
        Known{"maximum", {one, two}, true}, Known{"maximum", {one, one}, false}, Known{"sign", {zero}, false},
        Known{"sign", {one}, true}, Known{"exp", {zero}, true}}) {
    const Case c = case_with(operator_named(k.op), k.xs);
    Oracle oracle(c, c.inexact());
    if (oracle.smooth() != k.smooth || oracle.twice_smooth() != k.smooth)
      return format("{} at {} is said to be {}", k.op, k.xs[0].to_vector()[0], k.smooth ? "bent" : "smooth");
  }
  return "";
}

/// Two points are opposite ones: of a kink they see both sides.
std::string hulls_hold_both_sides() {
  for (const size_t samples : {size_t{2}, Oracle::kFewSamples, Oracle::kManySamples}) {
    const Case c = case_with(operator_named("abs"), {row_of({0, 0, 0})});
    Oracle oracle(c, c.inexact());
    const auto hull = oracle.hull(samples);
    for (size_t k = 0; k < 3; ++k)
      if (!(hull.first(k, k) <= -1) || !(hull.second(k, k) >= 1))
        return format("slopes of abs at 0 lie between {} and {}, of {} points", double(hull.first(k, k)),
                      double(hull.second(k, k)), samples);
  }
  return "";
}

std::string reference_is_wide() {
  const std::pair<DType, DType> known[] = {{DType::F16, DType::F128}, {DType::BF16, DType::F128},
                                           {DType::F32, DType::F128}, {DType::F64, DType::F128},
                                           {DType::C64, DType::C256}, {DType::C128, DType::C256},
                                           {DType::I32, DType::I32},  {DType::Bool, DType::Bool}};
  for (const auto& k : known) {
    const DType narrow = k.first, wide = k.second;
    const Values args =
        to_reference(Values{narrow, counted_up(Dims{2}, narrow), Tensors{counted_up(Dims{2}, narrow)}});
    if (std::get<DType>(args[0]) != wide || std::get<Tensor>(args[1]).dtype() != wide ||
        std::get<Tensors>(args[2])[0].dtype() != wide)
      return format("{} becomes {}, {} and {} on the reference column, expected {}", narrow,
                    std::get<DType>(args[0]), std::get<Tensor>(args[1]).dtype(),
                    std::get<Tensors>(args[2])[0].dtype(), wide);
  }
  return "";
}

/// Of every operator that moves elements or computes them: differences are taken after the values.
std::string values_stay() {
  for (const Op* op : all_operators()) {
    if (op->tensor_params.size() != 1 || !has_vjp(*op) || op->has(kRandom) || op->has(kUnspecified)) continue;
    const Choices none;
    const Case c(*op, none, {.dtypes = mask(DType::F64), .max_numel = 6});
    if (c.inexact().empty()) continue;
    Oracle oracle(c, c.inexact());
    Tensors before;
    for (const Tensor& y : oracle.values()) before.push_back(plain_copy(y));
    (void)oracle.jacobian();
    (void)oracle.value_bounds(0x1p-53);
    if (const Finding d = differs(oracle.values(), before); !d.empty())
      return format("{}: values change while derivatives are computed: ", op->name) + d.text();
  }
  return "";
}

/// Differences of functions whose derivatives are known.
std::string differences_are_close() {
  struct Known {
    const char* op;
    double x, slope, bend;
  };
  for (const Known& k :
       {Known{"exp", 1, std::exp(1.0), std::exp(1.0)}, Known{"sin", 0.5, std::cos(0.5), -std::sin(0.5)},
        Known{"neg", 3, -1, 0}, Known{"reciprocal", 2, -0.25, 0.25}}) {
    const Case c = case_with(operator_named(k.op), {row_of({k.x})});
    Oracle oracle(c, c.inexact());
    const double slope = double(oracle.jacobian()(0, 0)), bend = double(oracle.hessian({1})(0, 0));
    if (std::abs(slope - k.slope) > 1e-15 || std::abs(bend - k.bend) > 1e-13)
      return format("{}' and {}'' at {} are said to be {} and {}", k.op, k.op, k.x, slope, bend);
  }
  return "";
}

}  // namespace

void add_oracle_calibrations(std::vector<Calibration>& all) {
  all.push_back(
      {"conditions_are_own", "What moves elements has the condition 2 in each.", conditions_are_own});
  all.push_back(
      {"conditions_of_sums", "The condition of a sum is that of its own terms.", conditions_of_sums});
  all.push_back({"kinks_are_where_they_are", "An operator with kinks is smooth beside them.",
                 kinks_are_where_they_are});
  all.push_back(
      {"hulls_hold_both_sides", "Points about a kink lie on both sides of it.", hulls_hold_both_sides});
  all.push_back({"reference_is_wide", "Tensors and dtypes among arguments are wide on the reference column.",
                 reference_is_wide});
  all.push_back({"values_stay", "The oracle's values stay while it takes differences.", values_stay});
  all.push_back({"differences_are_close", "First and second differences are those of known functions.",
                 differences_are_close});
}

}  // namespace lamella::verify
