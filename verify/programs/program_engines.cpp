// Judging what engines make of statement programs.
#include "lamella/verify/programs/program_engines.h"

#include <algorithm>
#include <cmath>
#include <quadmath.h>

#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/tapes/reasons.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/programs/census.h"

namespace lamella::verify {

DrawOptions program_options() {
  return {.dtypes = mask(DType::F64), .layouts = false, .tame = true, .max_numel = 12, .mixed = false};
}

bool has_programs(const Op& op) {
  return inexact_arguments(op) > 0 && has_jvp(op) && has_vjp(op) && !op.has(kRandom) &&
         !op.has(kUnspecified) && !op.has(kSymmetricInput) && op.shape != ShapeClass::Dynamic;
}

EngineCase engine_case(const Script& p, std::string engine, int depth, bool levels) {
  EngineCase s{p, std::move(engine), depth, levels};
  s.lanes = {p.inputs()};
  s.ts = p.directions();
  return s;
}

Tensor weighted_sum(const Tensors& ys, const Tensors& weights) {
  Tensor total;
  for (size_t k = 0; k < ys.size(); ++k) {
    const Tensor &y = ys[k], &u = weights[k];
    const Tensor part = sum(is_complex(y.dtype()) ? real(mul(y, conj(u))) : mul(y, u));
    total = total.defined() ? add(total, part) : part;
  }
  return total.defined() ? total : zeros({}, DType::F64);
}

Tensors copies(const Tensors& ts) {
  Tensors out;
  for (const Tensor& t : ts) out.push_back(copy_as(t));
  return out;
}

std::vector<int> all_argnums(const Script& p) {
  std::vector<int> out;
  for (size_t k = 0; k < p.inputs().size(); ++k) out.push_back(int(k));
  return out;
}

Tensors leaves_of(const Tensors& xs) {
  Tensors out;
  for (const Tensor& x : xs) out.push_back(requires_grad(copy_as(x)));
  return out;
}

void run_backward_on(const Script& p, const Tensors& leaves, bool one_by_one, EngineRun& run) {
  run.ys = p.run(leaves, p.fresh_captures(), &run.seen);
  if (one_by_one) {
    for (size_t k = 0; k < run.ys.size(); ++k)
      if (is_grad_required(run.ys[k])) backward(run.ys[k], p.weights()[k]);
  } else {
    const Tensor root = weighted_sum(run.ys, p.weights());
    if (is_grad_required(root)) backward(root);
  }
  for (const Tensor& leaf : leaves)
    for (const Tensor& u : p.weights())
      if (const Tensor g = grad_of(leaf); g.defined() && g.shares_storage(u))
        run.wrong = "a gradient is the caller's cotangent";
  for (size_t k = 0; k < run.seen.retained.size(); ++k)
    run.retained.push_back(p.is_written_after(run.seen.hooks[k]) ? Tensor() : grad_of(run.seen.retained[k]));
}

double slope_of_leaves(const Tensors& leaves, const Tensors& ts, Finding& wrong) {
  Tensors gradients;
  for (size_t k = 0; k < leaves.size(); ++k) {
    const Tensor g = grad_of(leaves[k]);
    gradients.push_back(g);
    if (!g.defined()) continue;
    if (g.dtype() != leaves[k].dtype() || !std::ranges::equal(g.sizes(), leaves[k].sizes())) {
      wrong = format("the gradient of leaf {} is {}, expected {}", k, g, leaves[k]);
      return 0;
    }
    const bool dense =
        g.is_contiguous() && int64_t(g.impl()->storage->nbytes) == g.numel() * itemsize(g.dtype());
    const bool shared = std::ranges::any_of(
        gradients, [&](const Tensor& o) { return o.defined() && !o.is_same(g) && o.shares_storage(g); });
    if (!dense || shared || is_grad_required(g))
      wrong = format("the gradient of leaf {} is not dense, or shares memory, or has a history", k);
  }
  return dot(gradients, ts);
}

Verdict program_failure(const EngineCase& s, const Finding& wrong) {
  return Verdict::fail(wrong,
                       s.program.cpp() + cpp_tensors("t", s.program.directions()) + "  const Tensors ts" +
                           cpp_names("t", s.program.inputs().size()) + ", inputs" +
                           cpp_names("x", s.program.inputs().size()) + ";\n" + s.engine,
                       s.depth);
}

Finding wrong_status(const EngineCase& s, const EngineRun& run) {
  const Script& p = s.program;
  const size_t n = p.statements().size(), at = run.seen.at;
  const std::string where =
      at < n ? format("at statement {} of {} ", at + 1, n) : std::string("after the last statement ");
  const Refusals r = p.refusals(s.levels, s.mapped, s.traced, s.further_out);
  const std::vector<bool>& must = s.lanes_alone ? r.lanes_must : s.levels ? r.argument : r.leaf;
  for (size_t i = 0; i < std::min(at, n); ++i)
    if (must[i])
      return {What::Accepted, format("the engine accepts statement {} of {}, a write {}:", i + 1, n,
                                     s.lanes_alone ? "of lanes to what has none" : "to an input")};
  if (!run.status.raised && !s.levels && s.saves && r.must_notice && !p.raises())
    return {What::Accepted, "the engine raises nothing, although a value that a formula needs was written:"};
  if (!run.status.raised)
    return p.raises() ? Finding(What::Accepted,
                                format("the engine raises nothing, the plain program raises error {}:",
                                       lamella::name(p.code())))
                      : Finding();
  if (p.raises() && at == n - 1 && run.status.code == p.code()) return "";
  const ErrorCode code = run.status.code;
  if (at < n && s.lanes_alone && r.lanes[at] && code == ErrorCode::Level) return "";
  if (at < n && s.levels && !s.lanes_alone && (r.level[at] || r.argument[at]) && code == ErrorCode::Level)
    return "";
  if (at < n && s.further_out && code == ErrorCode::Level && p.refused_further_out()[at]) return "";
  if (at < n && !s.levels && r.leaf[at] && code == ErrorCode::Value) return "";
  const bool gaps = run.status.because<HasGaps>(), version = run.status.because<WrittenLater>();
  if (at < n && !s.levels && r.gaps[at] && gaps && code == ErrorCode::Value) return "";
  if (at == n && s.saves && version && (s.levels ? r.level_version : r.base_version)) return "";
  return (p.raises() ? "the plain program raises something else, "
                     : "the plain program raises nothing here, ") +
         ("the engine " + where) + ("raises " + str(run.status));
}

namespace {

Finding unlike(const Tensors& got, const Tensors& want) {
  if (got.size() != want.size()) return other_number(got, want);
  for (size_t k = 0; k < got.size(); ++k) {
    const Tensor &g = got[k], &w = want[k];
    if (g.dtype() != w.dtype() || !std::ranges::equal(g.sizes(), w.sizes()))
      return {type_kind(g, w), format("result {}: got {}, expected {}", k, g, w)};
    const Tensor a = plain_copy(g), b = plain_copy(w);
    const auto *const left = static_cast<const double*>(a.raw_data()), *const right =
                                                                           static_cast<const double*>(
                                                                               b.raw_data());
    for (size_t i = 0; i < part_count(a); ++i)
      if (const double x = left[i], y = right[i]; x != y)
        return format("result {}, element {}: got {}, expected {}", k, i, Scalar(x).str(), Scalar(y).str());
  }
  return "";
}

/// Empty when `got` is what is expected; not smooth: nothing is.
Finding beyond(double got, const Expected& e, const std::string& what, bool& smooth) {
  smooth &= e.smooth;
  if (within(fabsq(got - e.want), e.bound)) return "";
  char text[160];
  std::snprintf(text, sizeof text, "got %.17g, expected %.17g, bound %.3g", got, double(e.want), e.bound);
  return {number_kind(got, e.want), what + text};
}

Finding wrong_sum(const EngineCase& s, double got, bool& smooth) {
  std::vector<Differences> lanes;
  for (const Tensors& xs : s.lanes) lanes.emplace_back(s.program, xs, s.ts, s.levels);
  if (Differences::quick_sum(got, lanes)) return "";
  Expected sum;
  for (const Differences& d : lanes) {
    const Expected e = d.slope();
    sum.want += e.want, sum.bound += e.bound, sum.smooth &= e.smooth;
  }
  return beyond(got, sum, "derivative, summed over lanes: ", smooth);
}

/// Of handles whose memory is not written after retain_grad: what is retained follows later writes.
Finding wrong_retained(const EngineCase& s, const EngineRun& run, size_t k, bool& smooth) {
  const size_t hook = run.seen.hooks[k];
  if (s.program.is_written_after(hook)) return "";
  const Tensor& g = run.retained[k];
  const Tensor by = s.program.hook_direction(hook);
  if (g.defined() && !std::ranges::equal(g.sizes(), by.sizes()))
    return format("the gradient retained by statement {} is {}, expected {}", hook + 1, g, by);
  const Tensors none(s.ts.size());
  const Differences d(s.program, s.lanes[0], none, hook, by);
  const double got = g.defined() ? dot({g}, {by}) : 0;
  return d.quick_slope(got) ? ""
                            : beyond(got, d.slope(), format("retained by statement {}: ", hook + 1), smooth);
}

Finding wrong_numbers(const EngineCase& s, const EngineRun& run, bool& smooth) {
  Finding wrong;
  for (size_t l = 0; l < s.lanes.size() && wrong.empty(); ++l) {
    const Differences d(s.program, s.lanes[l], s.ts, s.levels);
    const std::string lane = s.lanes.size() > 1 ? format(", lane {}: ", l) : ": ";
    if (l < run.values.size() && !d.quick_value(run.values[l]))
      wrong = beyond(run.values[l], d.value(), "value" + lane, smooth);
    if (s.levels && s.program.has_constants(true) && s.program.writes_constants()) continue;
    if (s.second && !s.levels && s.program.hooks_read_results()) continue;
    if (wrong.empty() && s.second && !d.quick_curve(run.curve, s.ss))
      wrong = beyond(run.curve, d.curve(s.ss), "second derivative" + lane, smooth);
    if (!wrong.empty() && s.second && !std::isfinite(run.curve))
      smooth &= s.program.has_second_derivatives(s.lanes[l]);
    if (wrong.empty() && !s.second && !s.summed && l < run.slopes.size() && !d.quick_slope(run.slopes[l]))
      wrong = beyond(run.slopes[l], d.slope(), "derivative" + lane, smooth);
  }
  if (s.levels && s.program.has_constants(true) && s.program.writes_constants()) return wrong;
  for (size_t k = 0; k < run.retained.size() && wrong.empty() && !s.second; ++k)
    wrong = wrong_retained(s, run, k, smooth);
  return wrong.empty() && s.summed ? wrong_sum(s, run.slopes[0], smooth) : wrong;
}

}  // namespace

Verdict judge(const EngineCase& s, const EngineRun& run) {
  if (const Finding w = wrong_status(s, run); !w.empty()) return program_failure(s, w);
  if (run.status.raised) {
    counts_of_case()["refused"] += !s.program.raises();
    return Verdict::pass(s.depth);
  }
  if (run.seen.geometry != s.program.seen().geometry)
    return program_failure(s, run.seen.unlike(s.program.seen()));
  if (!run.wrong.empty()) return program_failure(s, run.wrong);
  if (!run.ys.empty())
    if (const Finding w = unlike(run.ys, s.program.values()); !w.empty()) return program_failure(s, w);
  bool smooth = true;
  const Finding w = wrong_numbers(s, run, smooth);
  if (!smooth) return Verdict::discard();
  return w.empty() ? Verdict::pass(s.depth) : program_failure(s, w);
}

}  // namespace lamella::verify
