// Questions about results of other libraries: what agrees with them, and what a case of a pack is worth.
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lamella/dispatch/state.h"
#include "lamella/dispatch/table.h"
#include "lamella/ops/operators.h"

#include "calibration_aids.h"
#include "calibrations.h"
#include "reference_compare.h"
#include "reference_run.h"
#include "safetensors.h"

namespace lamella::tools {

namespace {
using nlohmann::json;
constexpr double kInfinite = std::numeric_limits<double>::infinity(),
                 kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// Parts of numbers agree alone where one is not finite, together where they are.
bool agree_plainly(c128 got, c128 want, double t) {
  double scale = 1, apart = 0;
  for (const auto& [g, w] : {std::pair(got.real(), want.real()), std::pair(got.imag(), want.imag())}) {
    if (std::isfinite(w)) scale = std::max(scale, std::abs(w));
    if (std::isfinite(g) && std::isfinite(w)) apart = std::hypot(apart, g - w);
    else if (std::isnan(g) != std::isnan(w) || (!std::isnan(g) && g != w)) return false;
  }
  return apart <= t * scale;
}

std::string tolerances_are_as_stated() {
  Dice dice(18);
  const std::pair<DType, double> kinds[] = {{DType::F64, 1e-9},    {DType::F32, 1e-5}, {DType::F16, 2e-3},
                                            {DType::BF16, 1.6e-2}, {DType::C64, 1e-5}, {DType::C128, 1e-9}};
  for (int round = 0; round < 1200; ++round) {
    const auto& [dtype, t] = kinds[dice.below(std::size(kinds))];
    const auto part = [&] {
      return dice.of({0.0, -0.0, 1.0, -1.0, 100.0, kInfinite, -kInfinite, kNoNumber});
    };
    const auto near = [&, t = t](double v) {
      return dice.one_in(3) ? part()
                            : v + dice.of({0.0, 0.0, 0.4, -0.4, 3.0, -3.0}) * t * std::max(1.0, std::abs(v));
    };
    const c128 want(part(), is_complex(dtype) ? part() : 0.0);
    const c128 got(near(want.real()), is_complex(dtype) ? near(want.imag()) : 0.0);
    const auto as = [d = dtype](c128 v) { return is_complex(d) ? Scalar(v) : Scalar(v.real()); };
    const Tensor g = scalar_tensor(as(got), dtype), w = scalar_tensor(as(want), dtype);
    const bool agree = agree_plainly(g.item<c128>(), w.item<c128>(), t);
    if (beyond_tolerance(g, w).empty() != agree)
      return format("{} for {} is {}", g, w, agree ? "beyond the tolerance" : "within the tolerance");
  }
  return "";
}

template <class T, class Bits> std::string steps_differ(Dice& dice, DType dtype) {
  const T least = std::numeric_limits<T>::denorm_min(), largest = std::numeric_limits<T>::max();
  const T to = dice.of({T(0), T(1), T(-1), least, -least, T(3.5e-8), largest, -largest, T(kInfinite)});
  T from = to;
  const uint64_t steps = dice.below(40);
  const T away = dice.one_in(2) ? T(kInfinite) : T(-kInfinite);
  uint64_t taken = 0;
  for (; taken < steps && from != away; ++taken) from = std::nextafter(from, away);
  if (to == 0 && dice.one_in(2)) from = -from;
  const uint64_t got = ulps_apart(std::bit_cast<Bits>(from), std::bit_cast<Bits>(to), dtype);
  if (got != taken)
    return format("{} and {} are {} steps apart, got {}", double(from), double(to), taken, got);
  const uint64_t across = ulps_apart(std::bit_cast<Bits>(to), std::bit_cast<Bits>(T(-to)), dtype);
  const uint64_t wide = 2 * uint64_t(std::bit_cast<Bits>(std::abs(to)));
  return across == wide ? "" : format("{} and its negative are {} apart, got {}", double(to), wide, across);
}

std::string ulps_are_steps() {
  Dice dice(19);
  for (int round = 0; round < 400; ++round)
    for (const std::string& d :
         {steps_differ<float, uint32_t>(dice, DType::F32), steps_differ<double, uint64_t>(dice, DType::F64)})
      if (!d.empty()) return d;
  return "";
}

std::string hexadecimal(uint64_t v) {
  std::ostringstream out;
  out << "0x" << std::hex << v;
  return out.str();
}

/// A set of negatives, each some steps off; in any spelling of lines.
std::string ulp_sets_are_judged() {
  Dice dice(20);
  for (int round = 0; round < 40; ++round) {
    const std::string end = dice.of({"\n", "\r\n", " \n", " \r\n"});
    std::string text = "dtype,input,output,ulperrortol" + end;
    int rows = 0, failed = 0;
    for (uint64_t n = dice.below(8); n > 0; --n) {
      if (dice.one_in(4)) text += dice.of({"# a note", "", "#"}) + end;
      const bool wide = dice.one_in(2);
      const uint64_t sign = uint64_t{1} << (wide ? 63 : 31);
      const uint64_t input =
          wide ? std::bit_cast<uint64_t>(1 + dice.share()) : std::bit_cast<uint32_t>(float(1 + dice.share()));
      const uint64_t off = dice.below(4), limit = dice.below(4);
      text += std::string(wide ? "np.float64," : "np.float32,") + hexadecimal(input) + "," +
              hexadecimal((input + off) | sign) + "," + std::to_string(limit) + end;
      ++rows, failed += off > limit;
    }
    std::map<std::string, Tally> tallies;
    const std::string raised =
        raised_by([&] { run_ulp_file("umath-validation-set-neg.csv", text, {}, tallies); });
    if (!raised.empty()) return raised;
    const Tally& t = tallies["neg.ulp"];
    if (t.cases != rows || t.failed != failed || t.passed != rows - failed)
      return format("{} rows, {} beyond their limits: {} and {} are counted", rows, failed, t.cases,
                    t.failed);
  }
  return "";
}

/// How the library answers the call of a case.
enum class Answered { Rightly, Wrongly, WithNothing, WithValueError, WithInternalError, WithForeignError };
Answered answered = Answered::Rightly;
InferFn right_rule = nullptr;

void infer_as_planned(const Frame& frame, Inferred& out) {
  if (answered == Answered::WithValueError) fail(ErrorCode::Value, "planted");
  if (answered == Answered::WithInternalError) fail(ErrorCode::Internal, "planted");
  if (answered == Answered::WithForeignError) throw std::runtime_error("planted");
  right_rule(frame, out);
}

/// The right answer, or a result that is not there.
Cell right_cell = nullptr;
void give_as_planned(Frame& frame, int key) {
  right_cell(frame, key);
  if (answered == Answered::WithNothing) frame.results[0] = Tensor();
}

/// A pack of one case, add(x, y): its output off by `off`, and a gradient if it is one.
std::string pack_of_one(bool must_raise, double off, const char* cotangent, double gradient) {
  const Tensor x = tensor_of({2}, {1, 2}, DType::F64);
  const Tensor y = must_raise ? tensor_of({3}, {1, 2, 3}, DType::F64) : x;
  json c = {{"op", "add"}, {"variant", ""}, {"dtype", "float64"}, {"kwargs", json::object()}};
  c["args"] = {{{"tensor", "x"}, {"grad", cotangent != nullptr}}, {{"tensor", "y"}}};
  c["outputs"] = json::array();
  if (must_raise) c["error"] = true;
  else c["outputs"].push_back("out");
  if (cotangent) {
    const json named = *cotangent ? json(cotangent) : json();
    c["vjp"] = {{"cotangents", json::array({named})}, {"grads", {"grad"}}};
  }
  return write_safetensors({{"x", x},
                            {"y", y},
                            {"out", tensor_of({2}, {2 + off, 4}, DType::F64)},
                            {"ct", tensor_of({2}, {5, 6}, DType::F64)},
                            {"grad", tensor_of({2}, {gradient, 6}, DType::F64)}},
                           {{"cases", json::array({c}).dump()}});
}

/// Whether the one case of a pack passes.
bool passes(const std::string& pack) {
  Exceptions none("[]", "none");
  std::map<std::string, Tally> tallies;
  run_pack_file("pack.safetensors", pack, {}, none, tallies);
  const Tally& t = tallies["add"];
  LAMELLA_CHECK(t.cases == 1 && t.passed + t.failed == 1, Value, "{} cases, {} passed, {} failed", t.cases,
                t.passed, t.failed);
  return t.passed == 1;
}

std::string cases_pass_for_the_right_reason() {
  Op row = *OpTable::current().find("add");
  right_rule = row.infer;
  row.infer = infer_as_planned, row.straight = 0, row.base = &row;
  Cell& cell = row.cells[int(Device::CPU)];
  right_cell = cell, cell = give_as_planned;
  const OpTable table =
      OpTable::current().with_each([&](const Op& op) { return op.id == row.id ? &row : nullptr; });
  const ScopedTable pinned(&table);
  for (const bool must_raise : {false, true})
    for (const Answered how :
         {Answered::Rightly, Answered::Wrongly, Answered::WithNothing, Answered::WithValueError,
          Answered::WithInternalError, Answered::WithForeignError}) {
      answered = how;
      const bool right = how == (must_raise ? Answered::WithValueError : Answered::Rightly) ||
                         (must_raise && (how == Answered::Rightly || how == Answered::Wrongly ||
                                         how == Answered::WithNothing));
      const bool passed = passes(pack_of_one(must_raise, how == Answered::Wrongly ? 1 : 0, nullptr, 0));
      answered = Answered::Rightly;
      if (passed != right)
        return format("a case {}, answered in way {}, {}", must_raise ? "to be refused" : "with an output",
                      int(how), passed ? "passes" : "fails");
    }
  return "";
}

std::string gradients_are_compared() {
  for (const double gradient : {5.0, 6.0, 0.0})
    for (const char* cotangent : {"ct", ""}) {
      const bool passed = passes(pack_of_one(false, 0, cotangent, gradient));
      if (passed != (*cotangent && gradient == 5))
        return format("a gradient of {} {} a cotangent, where {} is due, {}", gradient,
                      *cotangent ? "with" : "without", *cotangent ? "5" : "none",
                      passed ? "passes" : "fails");
    }
  return "";
}
}  // namespace

Calibrations calibrations_of_references() {
  return {
      {"tolerances_are_as_stated",
       "A number agrees with another exactly when their parts that are not finite are the same and the "
       "others "
       "lie within the dtype's tolerance.",
       guarded<tolerances_are_as_stated>},
      {"ulps_are_steps", "The distance in ULP is the number of steps from one float to the other.",
       guarded<ulps_are_steps>},
      {"ulp_sets_are_judged", "Of a set, whatever the ends of its lines, the rows beyond their limits fail.",
       guarded<ulp_sets_are_judged>},
      {"cases_pass_for_the_right_reason",
       "A case passes when its output is right, or when it must be refused and is refused as the caller's "
       "fault.",
       guarded<cases_pass_for_the_right_reason>},
      {"gradients_are_compared", "A gradient that a case names is due: another one fails, and so does none.",
       guarded<gradients_are_compared>},
  };
}

}  // namespace lamella::tools
