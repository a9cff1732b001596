// The law of users' rules: with them, or checkpointed, a function has the derivatives it has without.
#include <algorithm>

#include "lamella/core/generator.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/random.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/checkpoint.h"
#include "lamella/transforms/custom.h"
#include "lamella/transforms/tapes/reasons.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/subject.h"
#include "lamella/verify/programs/graph.h"

namespace lamella::verify {

namespace {

/// Who computes: the plain function, or it behind somebody's rule.
enum class RuleKind : uint8_t { Vjp, Jvp, Checkpoint, Results, ResultsForward };

Tensors joined_lists(const Tensors& a, const Tensors& b) {
  Tensors out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

/// Each argument times `by`: twice, and half of that again, is exact.
Tensors times(const Tensors& xs, double by) {
  Tensors out;
  for (const Tensor& x : xs) out.push_back(x * by);
  return out;
}

/// f by its pullback. `own`: the rule knows the arguments by residuals that are neither arguments nor
/// results: derivatives of derivatives go through the code that computes them.
Function by_pullback(const Function& f, bool own) {
  const AuxFunction forward = [f, own](const Tensors& xs) {
    const Tensors ys = f(xs);
    return std::pair(ys, joined_lists(ys, own ? times(xs, 2) : xs));
  };
  const BackwardRule rule = [f, own](const Tensors& residuals, const Tensors& cts) {
    const Tensors kept(residuals.begin() + long(cts.size()), residuals.end());
    return vjp(f, own ? times(kept, 0.5) : kept).pullback(cts);
  };
  return custom_vjp(forward, rule);
}

/// x + 1 and x * x of each argument: many results, whose rules know the arguments by the results alone.
Tensors shifts_and_squares(const Tensors& xs) {
  Tensors out;
  for (const Tensor& x : xs) out.push_back(x + 1);
  for (const Tensor& x : xs) out.push_back(x * x);
  return out;
}
Tensor slope_of_square(const Tensor& shifted, const Tensor& by) {
  return to((shifted - 1) * 2, by.dtype()) * by;
}
Tensors without_last(Tensors all) {
  all.pop_back();
  return all;
}
/// Likewise of arguments of which the last one, and with results of which the last one, has no derivatives.
/// The argument before it is not read.
Tensors read_of(const Tensors& all) { return without_last(without_last(all)); }
Tensors beside_integers(const Tensors& all) {
  return joined_lists(shifts_and_squares(read_of(all)), {ne(all[0], 0)});
}
/// By rules that give nothing, which is zero, for what is not read, and a direction for the integers as well,
/// which nobody asks for.
Function rule_beside_integers(bool forward) {
  if (forward)
    return custom_jvp(beside_integers, [](const Tensors&, const Tensors& values, const Tensors& all) {
      const Tensors ts = read_of(all);
      Tensors out = ts;
      for (size_t k = 0; k < ts.size(); ++k) out.push_back(slope_of_square(values[k], ts[k]));
      return joined_lists(out, {ts[0]});
    });
  return custom_vjp(
      [](const Tensors& all) {
        const Tensors ys = beside_integers(all);
        return std::pair(ys, Tensors(ys.begin(), ys.begin() + long(all.size()) - 2));
      },
      [](const Tensors& shifted, const Tensors& cts) {
        Tensors out;
        for (size_t k = 0; k < shifted.size(); ++k)
          out.push_back(cts[k] + slope_of_square(conj(shifted[k]), cts[shifted.size() + k]));
        return joined_lists(out, {Tensor(), cts[0]});
      });
}
Function shifts_and_squares_by_rule(bool forward) {
  return [rule = rule_beside_integers(forward)](const Tensors& xs) {
    return without_last(rule(joined_lists(xs, {xs[0], ones({2}, DType::I64)})));
  };
}

/// The function with a rule, and the same without.
struct RuledFunction {
  Function plain, ruled;
  std::string cpp;  ///< declares `ruled` after f0
  RuledFunction(const Chain& chain, RuleKind kind, bool own = false) : plain(chain.smooth_function()) {
    const Function f = plain;
    const auto after = [f](const Function& first) -> Function {
      return [f, first](const Tensors& xs) {
        const Tensors ys = first(xs);
        return joined_lists(f({ys.begin(), ys.begin() + long(xs.size())}), ys);
      };
    };
    switch (kind) {
      case RuleKind::Vjp:
        ruled = by_pullback(f, own);
        cpp =
            "custom_vjp([&](const Tensors& xs) { return std::pair(f0(xs), xs); },\n      [&](const Tensors& "
            "xs, "
            "const Tensors& cts) { return vjp(f0, xs).pullback(cts); })";
        if (own) cpp += ";  // which keeps 2 * x of each x instead, for f0 of half of it";
        break;
      case RuleKind::Jvp:
        ruled = custom_jvp(
            f, [f](const Tensors& xs, const Tensors&, const Tensors& ts) { return jvp(f, xs, ts).tangents; });
        cpp =
            "custom_jvp(f0, [&](const Tensors& xs, const Tensors&, const Tensors& ts) { return jvp(f0, xs, "
            "ts).tangents; })";
        break;
      case RuleKind::Checkpoint:
        ruled = checkpoint(f);
        cpp = "checkpoint(f0)";
        break;
      default:
        ruled = after(shifts_and_squares_by_rule(kind == RuleKind::ResultsForward));
        plain = after(shifts_and_squares);
        cpp = "f0;  // of x + 1, then x + 1 and x * x of each x, by a rule that saves results";
    }
  }
};

/// The same transforms around both.
struct RuledStage {
  Function plain, ruled;
  Tensors xs;
  std::string name;
  int depth = 0;
  bool constants = false;  ///< some inputs have no derivative at some level

  template <class Wrap> void wrap(Wrap&& w, const std::string& outer) {
    plain = w(std::move(plain)), ruled = w(std::move(ruled));
    name = outer + "(" + name + ")", ++depth;
  }
  /// In some of the inputs; the others are constants to it. Directions become inputs.
  void derive(Case& c, bool forward) {
    const size_t n = xs.size();
    const std::vector<bool> active = c.draw.one_in(3) ? draw_mapped(c.draw, n) : std::vector<bool>(n, true);
    for (const bool one : active) constants |= !one;
    const auto some = [active](const Tensors& all) {
      Tensors out;
      for (size_t k = 0; k < active.size(); ++k)
        if (active[k]) out.push_back(all[k]);
      return out;
    };
    // Values and gradients together: both have cotangents where a rule's node is passed again.
    const bool values_too = !forward && c.draw.flag();
    const Tensors likes = forward ? some(xs) : plain(xs);
    for (const Tensor& t : likes) xs.push_back(c.direction(t));
    wrap(
        [=](Function f) -> Function {
          return [=](const Tensors& in) {
            const Tensors primals(in.begin(), in.begin() + long(n)), along(in.begin() + long(n), in.end());
            const Function g = [&](const Tensors& chosen) {
              Tensors all = primals;
              for (size_t k = 0, at = 0; k < n; ++k)
                if (active[k]) all[k] = chosen[at++];
              return f(all);
            };
            if (forward) return jvp(g, some(primals), along).tangents;
            const VjpResult r = vjp(g, some(primals));
            return values_too ? joined_lists(r.pullback(along), r.values) : r.pullback(along);
          };
        },
        forward ? "jvp" : "vjp");
  }
  void map(Case& c) {
    const Batch b =
        draw_batch(c.draw, xs, draw_mapped(c.draw, xs.size()), 1 + int64_t(c.draw.below(3)), false);
    const VmapOptions options{b.in_dims, {0}, Randomness::Error, b.size};
    wrap([&](Function f) { return vmap(std::move(f), options); }, "vmap");
    xs = b.xs;
  }
  /// Base autograd around all: gradients of all inputs.
  void in_base(Case& c, bool second) {
    Tensors us;
    for (const Tensor& y : plain(xs)) us.push_back(c.direction(y));
    Tensors vs;
    for (const Tensor& x : xs) vs.push_back(c.direction(x));
    wrap(
        [us, vs, second](Function f) -> Function {
          return [f = std::move(f), us, vs, second](const Tensors& in) {
            Tensors leaves;
            for (const Tensor& x : in) leaves.push_back(requires_grad(x));
            const LiveRoots live(f(leaves), us);
            Tensors out(leaves.size());
            if (!live.ys.empty())
              out = autograd::grad(live.ys, leaves, live.us, {.create_graph = second, .allow_unused = true});
            if (second) {
              for (Tensor& g : out)
                if (!g.defined()) g = zeros({}, DType::F64);  // no root
              // Values and gradients together: both have cotangents where a rule's node is passed again.
              const LiveRoots again(joined_lists(out, live.ys), joined_lists(vs, live.us));
              out.assign(leaves.size(), Tensor());
              if (!again.ys.empty()) out = autograd::grad(again.ys, leaves, again.us, {.allow_unused = true});
            }
            for (size_t k = 0; k < out.size(); ++k)
              if (!out[k].defined()) out[k] = zeros(leaves[k].sizes(), leaves[k].dtype());
            return out;
          };
        },
        second ? "backward twice" : "backward");
    depth += second;
  }
};

/// Both functions of a kind under what `around` puts there.
Verdict rule_agrees(const Chain& chain, RuleKind kind, bool own,
                    const std::function<void(RuledStage&)>& around) {
  const RuledFunction functions(chain, kind, own);
  RuledStage s{functions.plain, functions.ruled, chain.inputs(), "f"};
  Tensors want, got;
  const Status plainly = status_of([&] {
    around(s);
    want = s.plain(s.xs);
  });
  if (plainly.raised || !finite(want) || largest_part(want) > 1e6) return Verdict::discard();
  const Status ruled = status_of([&] { got = s.ruled(s.xs); });
  if (ruled.raised && ruled.code == ErrorCode::Level && chain.writes()) return Verdict::discard();
  Finding wrong = ruled.raised ? "raises " + str(ruled) : "";
  // Rules are given zeros for what is absent, and 0 * inf is NaN where the function has no slope.
  if (wrong.empty() && s.constants && !finite(got)) return Verdict::discard();
  if (wrong.empty())
    wrong =
        disagrees(got, want, Agreement::Rounding, {256, std::max(64.0, largest_part(want)), coarsest(want)});
  if (wrong.empty()) return Verdict::pass(std::max(1, s.depth));
  return Verdict::fail(s.name + ": " + wrong,
                       chain.cpp(true) + "  const Function ruled = " + functions.cpp + ";\n" +
                           cpp_tensors("x", s.xs) + "  // " + s.name +
                           " of both, of inputs, then directions\n  const Tensors inputs" +
                           cpp_names("x", chain.inputs().size()) +
                           ";\n  for (const Function& g : {f0, ruled}) for (const Tensor& y : g(inputs)) "
                           "std::cout << str(y) << "
                           "'\\n';\n",
                       s.depth);
}

/// In base autograd a function with a rule may give a view of its argument: the result is a copy, which no
/// write to the argument reaches.
Finding shows_its_argument(const Tensor& given) {
  if (given.numel() == 0) return "";
  const Tensor x = mul(requires_grad(strided_copy(given)), 1);
  const Function f =
      custom_vjp([](const Tensors& xs) { return std::pair(Tensors{unsqueeze(xs[0], 0)}, Tensors{}); },
                 [](const Tensors&, const Tensors& cts) { return Tensors{select(cts[0], 0, 0)}; });
  const Tensor y = f({x})[0], before = plain_copy(detach(y));
  fill_(x, 77);
  const Finding d = differs(plain_copy(detach(y)), before);
  return d.empty()
             ? d
             : "the result of a function with a rule, after a write to the argument of which it is a view: " +
                   d;
}

Verdict custom_rules_agree(Case& c) {
  const Chain chain(c);
  if (!chain.valid()) return Verdict::discard();
  if (const Finding d = shows_its_argument(chain.inputs()[0]); !d.empty())
    return Verdict::fail(d, "  // " + d.text() + "\n", 1);
  const auto kind = RuleKind(c.draw.below(5));
  const bool own = kind == RuleKind::Vjp && c.draw.flag();
  const uint32_t layers = c.draw.below(3), base = c.draw.below(3);
  return rule_agrees(chain, kind, own, [&](RuledStage& s) {
    for (uint32_t k = 0; k < layers; ++k) {
      const uint32_t w = c.draw.below(3);
      if (w == 2) s.map(c);
      else s.derive(c, w == 1);
    }
    if (base) s.in_base(c, base == 2);
  });
}

/// Gradients of leaves, the function being given results; `writes`: these are overwritten before backward.
Tensors gradients_of(const Function& f, const Tensors& inputs, uint64_t seed, bool writes) {
  Generator own(seed);
  const ScopedGenerator on(own);
  Tensors leaves, xs, us;
  for (const Tensor& x : inputs) {
    leaves.push_back(requires_grad(strided_copy(x)));
    xs.push_back(clone(leaves.back()));
  }
  const Tensors ys = f(xs);
  for (const Tensor& y : ys) us.push_back(ones(y.sizes(), y.dtype()));
  (void)default_generator().next();
  for (const Tensor& x : xs)
    if (const NoGrad unrecorded; writes) fill_(x, 3);
  const LiveRoots live(ys, us);
  Tensors out(leaves.size());
  if (!live.ys.empty()) out = autograd::grad(live.ys, leaves, live.us, {.allow_unused = true});
  for (size_t k = 0; k < out.size(); ++k)
    if (!out[k].defined()) out[k] = zeros(leaves[k].sizes(), leaves[k].dtype());
  return out;
}

/// At a level a write gives an argument another value: the function runs again with what it was called with.
Finding follows_argument(const Chain& chain) {
  const auto writing = [](const Function& f) -> Function {
    return [f](const Tensors& xs) {
      Tensors own;
      for (const Tensor& x : xs) own.push_back(clone(x));
      const Tensors ys = f(own);
      for (const Tensor& x : own) fill_(x, 3);
      return ys;
    };
  };
  const auto gradients = [&](const Function& f) {
    const VjpResult r = vjp(writing(f), chain.inputs());
    Tensors us;
    for (const Tensor& y : r.values) us.push_back(ones(y.sizes(), y.dtype()));
    return r.pullback(us);
  };
  const Function f = chain.smooth_function();
  Tensors want, got;
  if (status_of([&] { want = gradients(f); }).raised || !finite(want) || largest_part(want) > 1e6) return "";
  const Status s = status_of([&] { got = gradients(checkpoint(f)); });
  if (s.raised) return chain.writes() ? "" : "an argument was written at a level: raises " + str(s);
  const Finding d =
      disagrees(got, want, Agreement::Rounding, {256, std::max(64.0, largest_part(want)), coarsest(want)});
  return d.empty() ? "" : "an argument was written at a level: " + d;
}

/// When a checkpointed function runs again it draws what it drew, and sees that an argument was written.
Finding runs_again_otherwise(const Chain& chain, uint32_t word) {
  const Function f = chain.smooth_function();
  const Function drawing = [f](const Tensors& xs) {
    Tensors scaled;
    for (const Tensor& x : xs) scaled.push_back(x * to(rand(x.sizes()), x.dtype()));
    return f(scaled);
  };
  const bool draws = word & 1;
  if (!draws)
    if (const Finding d = follows_argument(chain); !d.empty()) return d;
  const Function& of = draws ? drawing : f;
  Tensors want, got;
  if (status_of([&] { want = gradients_of(of, chain.inputs(), word, false); }).raised) return "";
  if (!finite(want) || largest_part(want) > 1e6) return "";
  const Status s = status_of([&] { got = gradients_of(checkpoint(of), chain.inputs(), word, !draws); });
  if (!draws && s.because<WrittenLater>()) return "";
  if (s.raised) return chain.writes() ? "" : Finding("raises " + str(s));
  const Finding d =
      disagrees(got, want, Agreement::Rounding, {256, std::max(64.0, largest_part(want)), coarsest(want)});
  return d.empty() ? "" : (draws ? "of a function that draws: " : "of arguments that were written: ") + d;
}

/// Where a checkpoint keeps what it runs again with: on tapes outside and inside of lanes.
Verdict checkpoints_map(Case& c) {
  const Chain chain(c);
  if (!chain.valid()) return Verdict::discard();
  if (const uint32_t word = c.draw.word(); word % 4 == 3)
    if (const Finding d = runs_again_otherwise(chain, word >> 2); !d.empty())
      return Verdict::fail(d, chain.cpp(true) + "  // checkpoint(f0): " + d.text() + "\n", 1);
  const uint32_t order = c.draw.below(4);
  return rule_agrees(chain, RuleKind::Checkpoint, false, [&](RuledStage& s) {
    if (order == 1) s.derive(c, false);
    s.map(c);
    if (order == 2) s.derive(c, false);
    if (order == 3) s.map(c);
    if (order != 2) s.in_base(c, false);
  });
}

}  // namespace

void add_graph_rule_laws(std::vector<Law>& laws) {
  laws.push_back(
      {90, "custom_rules_agree", "compose",
       "A function with a rule that is its derivative, of one result or many, or checkpointed, is the "
       "function itself under any derivatives and vmaps, and in base autograd.",
       chain_options(), false, chained_smoothly, custom_rules_agree});
  laws.push_back({90, "checkpoints_map", "compose",
                  "A checkpointed function whose arguments are mapped at any dim has the gradients of the "
                  "function, on tapes inside and outside of the lanes; run again it draws what it drew, and "
                  "refuses an argument that was written, or, at a level, has what it was.",
                  chain_options(), false, chained_smoothly, checkpoints_map});
}

}  // namespace lamella::verify
