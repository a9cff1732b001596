// gradcheck: right functions pass; wrong derivatives, and functions that are none, are found.
#include <set>

#include "lamella/core/generator.h"
#include "lamella/mutate/calibration_parts.h"
#include "lamella/mutate/mutants.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/functions/rounding.h"
#include "lamella/transforms/custom.h"
#include "lamella/verify/gradcheck/checker.h"
#include "lamella/verify/gradcheck/custom_rule.h"

namespace lamella::verify {

namespace {

const GradcheckOptions kEverything{.second_order = true, .batched = true};
Tensor point() { return row_of({0.5, -1.25, 2}); }
Tensors sines(const Tensors& xs) { return {sin(xs[0])}; }

std::string right_derivatives_pass() {
  const GradcheckReport r = gradcheck(sines, {point()}, kEverything);
  if (!r) return "sin: " + r.text();
  const Function product = [](const Tensors& xs) { return Tensors{xs[0] * exp(xs[1]), xs[0]}; };
  const GradcheckReport two = gradcheck(product, {point(), row_of({1, 2, -1})}, {.batched = true});
  return two ? "" : "x exp(y): " + two.text();
}

/// sin with a forward rule that is `wrong` of the right one.
Function sin_with(Tensor (*wrong)(const Tensor& right)) {
  return custom_jvp(sines, [wrong](const Tensors& xs, const Tensors&, const Tensors& ts) {
    return Tensors{wrong(ts[0] * cos(xs[0]))};
  });
}
Tensor raises(const Tensor&) { throw std::runtime_error("planted"); }

std::string wrong_derivatives_are_found() {
  struct Bug {
    const char* what;
    Tensor (*wrong)(const Tensor&);
  };
  for (const Bug& b : {Bug{"one part in 10^4 too large", [](const Tensor& t) { return t * 1.0001; }},
                       Bug{"of the wrong sign", [](const Tensor& t) { return neg(t); }},
                       Bug{"NaN", [](const Tensor& t) { return t * kNan; }},
                       Bug{"infinite", [](const Tensor& t) { return t * kInf; }},
                       Bug{"zero", [](const Tensor& t) { return t * 0; }}, Bug{"raised", raises}})
    for (const size_t most : {size_t{0}, size_t{1}})
      for (const bool forward : {true, false}) {
        const GradcheckReport r =
            gradcheck(sin_with(b.wrong), {point()}, {.jvp = forward, .vjp = !forward, .most_findings = most});
        if (r.passed() || r.wrong == 0 || r.findings.size() > most || (most && r.findings.empty()))
          return format("a derivative that is {} passes, where {} findings are kept", b.what, most);
      }
  return "";
}

/// What outer levels know of it is gone.
Tensor without_levels(const Tensor& t) {
  if (!t.impl()->wrap || !(t.keys() >> kFirstLevelKey)) return t;
  return without_levels(static_cast<const Wrapper*>(t.impl()->wrap)->value);
}

/// A batch rule that is wrong, and is asked of small tensors, too.
void with_rule(Op& row, std::string_view mutant) {
  std::ranges::find(mutants(), mutant, &Mutant::id)->plant(row);
  row.straight = 0;
}

/// Right in the first order, in one direction, or in the first lane.
struct Hidden {
  const char* what;
  const char* op;
  void (*plant)(Op& row);
};
std::string later_orders_are_checked() {
  for (const Hidden& h :
       {Hidden{"pushforward is a constant to other levels", "sin",
               [](Op& row) {
                 row.jvp[0].linear = false;
                 row.jvp[0].one = [](const RuleArgs& a) { return without_levels(right_row().jvp[0].one(a)); };
               }},
        Hidden{"pullback is a constant to other levels", "sin",
               [](Op& row) {
                 row.vjp[0].one = [](const RuleArgs& a) { return without_levels(right_row().vjp[0].one(a)); };
               }},
        Hidden{"lanes are all the first", "cos", [](Op& row) { with_rule(row, "first_lane_for_all"); }},
        Hidden{"lanes are in reverse", "cos", [](Op& row) { with_rule(row, "lanes_reversed"); }}}) {
    const PlantedRow planted(operator_named(h.op), h.plant);
    if (const GradcheckReport first = gradcheck(sines, {point()}); !first)
      return format("sin whose {} fails in the first order", h.what);
    if (gradcheck(sines, {point()}, kEverything)) return format("sin passes, whose {}", h.what);
  }
  return "";
}

/// One entry is wrong by a part in 10^4, beside what hides it in a sum or in its row.
std::string wrong_beside_others() {
  const Function inverses = [](const Tensors& xs) { return Tensors{sum(reciprocal(xs[0]))}; };
  const Tensors apart{row_of({0x1p20, 1})};
  if (const GradcheckReport r = gradcheck(inverses, apart); !r) return "sum of inverses: " + r.text();
  {
    const PlantedRow planted(operator_named("reciprocal"), [](Op& row) {
      row.vjp[0].one = [](const RuleArgs& a) { return right_row().vjp[0].one(a) * row_of({1.0001, 1}); };
    });
    if (gradcheck(inverses, apart)) return "a wrong slope passes beside one that is 2^40 times larger";
  }
  const Function wrong = sin_with([](const Tensor& t) { return t * 1.0001; });
  const Function jumps = [&wrong](const Tensors& xs) { return Tensors{floor(xs[0]) + wrong({xs[1]})[0]}; };
  return gradcheck(jumps, {row_of({1}), row_of({0.5})}) ? "a wrong slope passes beside a jump" : "";
}

/// A finding names the input that is wrong, whatever stands in front of it.
std::string inputs_are_named() {
  const Function wrong = [f = sin_with([](const Tensor& t) { return t * 1.5; })](const Tensors& xs) {
    return Tensors{f({xs[2]})[0] * xs[1]};
  };
  const Tensors xs{zeros({2}, DType::I64), row_of({2, 3}), row_of({0.5, 1})};
  const GradcheckReport r = gradcheck(wrong, xs, {.vjp = false});
  for (const GradcheckEntry& e : r.findings)
    if (e.input.tensor != 2)
      return format("a wrong slope in input 2 is said to be in input {}", e.input.tensor);
  return r.findings.empty() ? "a wrong slope behind an integer input passes" : "";
}

/// Flat on one side of a point and not on the other: a kink, at which either slope will do.
std::string kinks_are_told() {
  const Tensor at = row_of({0, 1, -1});
  for (const bool left : {true, false}) {
    const Function bent = [left](const Tensors& xs) {
      const Tensor none = zeros(xs[0].sizes(), xs[0].dtype());
      return Tensors{left ? minimum(xs[0], none) : maximum(xs[0], none)};
    };
    const GradcheckReport r = gradcheck(bent, {at});
    if (!r)
      return format("a slope at a kink that is flat on the {} is said to be wrong", left ? "right" : "left");
    if (r.not_smooth == 0)
      return format("a kink that is flat on the {} is not told", left ? "right" : "left");
  }
  return "";
}

std::string no_functions_are_refused() {
  double calls = 0;
  const Function moves = [&calls](const Tensors& xs) { return Tensors{xs[0] * (calls += 1)}; };
  const Function writes = [](const Tensors& xs) {
    if (!(xs[0].keys() >> kFirstLevelKey)) abs_(xs[0]);
    return Tensors{abs(xs[0])};
  };
  const std::pair<const char*, Function> all[] = {{"whose calls differ", moves},
                                                  {"that writes to its input", writes}};
  for (const auto& known : all) {
    try {
      (void)gradcheck(known.second, {point()});
      return format("a function {} is accepted", known.first);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::Usage) return format("a function {} raises {}", known.first, name(e.code()));
    }
  }
  return "";
}

std::string directions_have_signs() {
  GradcheckReport scratch;
  const Tensors xs{make_tensor(Dims{64}, DType::F64)};
  for (int64_t k = 0; k < 64; ++k) xs[0].data<double>()[k] = 1 + double(k) / 64;
  const GradcheckOptions options;
  const Checker checker(sines, xs, options, 1, "", scratch);
  for (const uint64_t salt : {1, 2, 3, 5}) {
    const Reals v = checker.direction(xs, {}, salt);
    const auto negative = std::ranges::count_if(v, [](f128 x) { return x < 0; });
    if (v.size() != 64 || negative < 12 || negative > 52)
      return format("of a direction's {} parts {} are negative", v.size(), negative);
    if (std::set<double>(v.begin(), v.end()).size() < 60) return "parts of a direction are alike";
  }
  return checker.direction(xs, {}, 1) == checker.direction(xs, {}, 2) ? "all directions are the same" : "";
}

/// Which inputs a rule sees mapped, or followed, while it is checked.
std::string every_subset_is_mapped() {
  std::set<int> seen;
  const Function product = custom_vjp(
      [](const Tensors& xs) {
        return std::pair(Tensors{xs[0] * xs[1] + xs[2]}, Tensors{xs[0], xs[1]});
      },
      [](const Tensors& kept, const Tensors& us) {
        return Tensors{us[0] * kept[1], us[0] * kept[0], us[0]};
      });
  const Function noted = [&](const Tensors& xs) {
    int bits = 0;
    for (size_t k = 0; k < xs.size(); ++k) bits |= int(xs[k].keys() >> kFirstLevelKey != 0) << k;
    seen.insert(bits);
    return product(xs);
  };
  const Tensors xs{row_of({1, 2}), row_of({3, 4}), row_of({5, -6})};
  const CustomRuleReport r = check_custom_rule(noted, xs, {.differences = false});
  if (!r) return "a right rule fails: " + r.text();
  for (int bits = 1; bits < 8; ++bits)
    if (!seen.contains(bits))
      return format("a rule is never mapped over the inputs of the bits {} alone", bits);
  const Function wrong = custom_vjp(
      [](const Tensors& a) {
        return std::pair(Tensors{a[0] * a[1]}, Tensors{a[0], a[1]});
      },
      [](const Tensors& kept, const Tensors& us) {
        return Tensors{us[0] * us[0] * kept[1], us[0] * kept[0]};
      });
  if (check_custom_rule(wrong, {xs[0], xs[1]}, {.differences = false}))
    return "a rule that is not linear in its cotangent passes";
  return "";
}

}  // namespace

void add_gradcheck_calibrations(std::vector<Calibration>& all) {
  all.push_back({"right_derivatives_pass", "gradcheck passes right functions.", right_derivatives_pass});
  all.push_back({"wrong_derivatives_are_found",
                 "gradcheck fails whatever a derivative gets wrong, and however few findings are kept.",
                 wrong_derivatives_are_found});
  all.push_back({"later_orders_are_checked",
                 "gradcheck sees what is wrong in the second order, or in one lane.",
                 later_orders_are_checked});
  all.push_back({"wrong_beside_others",
                 "gradcheck sees one wrong slope beside a much larger one, and beside a jump.",
                 wrong_beside_others});
  all.push_back({"inputs_are_named", "gradcheck names the input whose slope is wrong.", inputs_are_named});
  all.push_back({"kinks_are_told", "gradcheck tells kinks, whichever side of them is flat.", kinks_are_told});
  all.push_back({"no_functions_are_refused",
                 "gradcheck refuses what gives two results, or writes to its inputs.",
                 no_functions_are_refused});
  all.push_back(
      {"directions_have_signs", "gradcheck's directions have parts of both signs.", directions_have_signs});
  all.push_back({"every_subset_is_mapped", "Custom rules are checked with every subset of inputs mapped.",
                 every_subset_is_mapped});
}

}  // namespace lamella::verify
