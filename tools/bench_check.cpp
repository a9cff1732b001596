// Errors in roundings. The bound is verify's (docs/tolerances.md), and the laws are verify's own.
#include "bench_check.h"

#include <algorithm>
#include <cmath>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/oracle/oracle.h"
#include "lamella/verify/run/runner.h"

namespace lamella::tools::bench {

namespace {
using verify::Reals;

template <class Change> Values changed(const Values& args, Change change) {
  Values out = args;
  for (Value& v : out) {
    if (auto* t = std::get_if<Tensor>(&v); t && t->defined() && is_inexact(t->dtype())) *t = change(*t);
    if (auto* ts = std::get_if<Tensors>(&v))
      for (Tensor& t : *ts)
        if (is_inexact(t.dtype())) t = change(t);
  }
  return out;
}

Values magnitudes(const Values& args) {
  return changed(args, [](const Tensor& t) { return abs(t); });
}
Values widened(const Values& args) {
  return changed(args,
                 [](const Tensor& t) { return to(t, is_complex(t.dtype()) ? DType::C128 : DType::F64); });
}

bool is_narrow(DType d) { return is_inexact(d) && d != DType::F64 && d != DType::C128; }

/// A scalar loop in f128 takes 0.1 to 2 us for each step.
bool is_short(const Work& w) {
  constexpr double kSteps = 1e6;
  return std::max(w.elements, w.flops) <= kSteps;
}

/// Its results are sums, whose errors are those of partial sums.
bool adds(const Op& op) { return op.shape != ShapeClass::Broadcast && !op.is_view() && !op.has(kRandom); }

bool takes_magnitudes(const Op& op) {
  return adds(op) && op.shape != ShapeClass::Linalg && op.name != "cholesky";
}

double terms_of(const Work& w, const Tensors& want) {
  if (!adds(*w.op) || want.empty() || want[0].numel() == 0) return 1;
  const double results = double(want[0].numel());
  return w.flops > 0 ? w.flops / results : std::max(1.0, w.elements / results);
}

Values of_reference(const Op& op, const Values& args) {
  if (!op.has(kRandom)) return verify::to_reference(args);
  Values out = args;  // random numbers depend on their dtype: only the key goes there
  const int key = op.schema.find("key");
  if (key >= 0 && !is_none(out[size_t(key)]))
    out[size_t(key)] = verify::to_reference(std::get<Tensor>(out[size_t(key)]));
  return out;
}
}  // namespace

Witness witness_of(const Work& w) {
  const Op& own = OpTable::current().row(w.op->id);
  Witness out;
  if (is_short(w) && own.schema.find("device") < 0) {
    out.name = "reference";
    out.want = verify::reference_forward(own, of_reference(own, w.args));
    if (takes_magnitudes(own))
      out.sizes = verify::reference_forward(own, of_reference(own, magnitudes(w.args)));
  } else {
    const bool wider = is_narrow(w.dtype) && !own.has(kRandom) && own.schema.find("device") < 0;
    const Values args = wider ? widened(w.args) : w.args;
    out.name = wider ? "f64" : "built_in";
    out.want = call_boxed(own, args);
    if (takes_magnitudes(own)) out.sizes = call_boxed(own, magnitudes(args));
  }
  out.terms = terms_of(w, out.want);
  return out;
}

namespace {
/// The root of the mean square: where cancellation leaves nothing, errors are measured by the others.
double usual_size(const Reals& xs) {
  double sum = 0;
  for (const f128 x : xs) sum += double(x) * double(x);
  return xs.empty() ? 0 : std::sqrt(sum / double(xs.size()));
}

std::string counterexample(size_t result, size_t at, f128 got, f128 want, double error, double allowed) {
  return format("result {}, element {} (row-major): got {}, expected {}; off by {} roundings, allowed {}",
                result, at, double(got), double(want), error, allowed);
}

/// The largest error of one inexact result; says of the first that is beyond `allowed`.
void compare(const Tensor& got, const Tensor& want, bool of_sums, const Tensor* sizes, size_t index,
             double allowed, Judgement& out) {
  const Reals a = verify::flatten({got}), b = verify::flatten({want});
  const Reals s = sizes ? verify::flatten({*sizes}) : Reals();
  const double u = verify::unit_roundoff(got.dtype());
  const double floor = std::max(of_sums ? usual_size(b) : 0.0, verify::smallest_number(got.dtype()) / u);
  const size_t step = is_complex(got.dtype()) ? 2 : 1;  // a part's error is measured by the whole number
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (a[i] != a[i] && b[i] != b[i])) continue;
    double size = std::max(floor, std::fabs(double(b[i])));
    if (step == 2) size = std::max(size, std::fabs(double(b[i ^ 1])));
    if (i < s.size()) size = std::max(size, std::fabs(double(s[i])));
    const double gap = std::fabs(double(a[i] - b[i])), error = gap / (u * size);
    const bool finite = error - error == 0;
    if (finite) out.roundings = std::max(out.roundings, error);
    if (out.wrong.empty() && !(finite && error <= allowed))
      out.wrong = counterexample(index, i / step, a[i], b[i], error, allowed);
  }
}
}  // namespace

Judgement judge(const Work& w, const Witness& witness, const Tensors& got, double built_in) {
  constexpr double kMore = 8,
                   kLeast = 4;  // times the library's own error, and roundings that anything may have
  Judgement out;
  if (got.size() != witness.want.size()) {
    out.wrong = format("got {} results, expected {}", got.size(), witness.want.size());
    return out;
  }
  const double additions = verify::additions_of_chosen_kernel(w.op->name) * witness.terms;
  const double in_a_row = additions > 0 ? 1 + additions / 2 : 0;
  const double k = std::max({kLeast, verify::tolerance(w.op->name).value, in_a_row, kMore * built_in});
  const double allowed = k + std::log2(witness.terms);  // of additions in pairs, or of both signs in a row
  for (size_t i = 0; i < got.size(); ++i) {
    const Tensor& want = witness.want[i];
    if (!std::ranges::equal(got[i].sizes(), want.sizes())) {
      out.wrong = format("result {}: got {}, expected {}", i, got[i], want);
      return out;
    }
    const bool inexact = is_inexact(got[i].dtype());
    if (inexact) {
      const Tensor* const sizes = i < witness.sizes.size() ? &witness.sizes[i] : nullptr;
      compare(got[i], want, adds(*w.op), sizes, i, allowed, out);
    } else if (out.wrong.empty()) {
      const bool same = want.device() == Device::CPU && want.dtype() == got[i].dtype();
      out.wrong = verify::differs(got[i], same ? want : verify::narrow(want, got[i].dtype())).text();
    }
  }
  return out;
}

std::string broken_law(const std::string& op, double seconds, const volatile std::sig_atomic_t& stop) {
  if (seconds <= 0) return "";
  const Op* const row = OpTable::current().find(op);
  if (!row || !row->samples) return "";
  verify::RunOptions options;
  options.ops = {row};
  for (const verify::Law& law : verify::laws()) options.laws.push_back(&law);
  options.seconds = seconds, options.seed = 1;
  const verify::Report report = verify::run(options, stop);
  if (report.failures.empty()) return "";
  const verify::Failure& f = report.failures.front();
  return format("breaks the law {}: {}\n{}", f.law, f.message, verify::cpp_program(f.program));
}

}  // namespace lamella::tools::bench
