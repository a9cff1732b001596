// Laws of statement programs: every engine gives what the plain program and its differences give.
#include <algorithm>
#include <cmath>
#include <thread>

#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/program_engines.h"
#include "lamella/verify/programs/script_lanes.h"

namespace lamella::verify {

namespace {

Verdict in_base_autograd(Case& c) {
  const Script p(c, true);
  const bool one_by_one = c.draw.one_in(4);
  const EngineCase s = engine_case(
      p,
      std::string(kMakeLeaves) + "  const Tensors ys = f(leaves);\n" +
          (one_by_one
               ? "  for (size_t k = 0; k < ys.size(); ++k)\n    if (is_grad_required(ys[k])) backward(ys[k], "
                 "us[k]);\n"
               : "  backward(weighted(ys));\n") +
          kPrintLeaves,
      1, false);
  EngineRun run;
  run.status = status_of([&] {
    const Tensors leaves = leaves_of(p.inputs());
    run_backward_on(p, leaves, one_by_one, run);
    run.slopes = {slope_of_leaves(leaves, s.ts, run.wrong)};
  });
  return judge(s, run);
}

/// Some of two inputs, in any order, also counted from the end. All of them where the program writes to
/// inputs: what grad does not differentiate is an ordinary tensor.
std::vector<int> some_argnums(Case& c, const Script& p) {
  static const std::vector<int> kChoices[] = {{0, 1}, {1}, {1, 0}, {-1}, {-2, 1}};
  const std::vector<bool> writes = p.refusals(true).argument;
  const bool all = p.inputs().size() < 2 || std::ranges::find(writes, true) != writes.end();
  if (all) return all_argnums(p);
  return kChoices[c.draw.below(5)];
}

Verdict under_grad(Case& c) {
  const Script p(c);
  const bool whole = c.draw.flag();
  const std::vector<int> argnums = whole ? some_argnums(c, p) : all_argnums(p);
  EngineCase s = engine_case(
      p,
      whole
          ? "  const std::vector<int> at" + cpp_dims(argnums).substr(6) +
                ";\n  const Tensors gs = grad([&](const Tensors& xs) { return weighted(f(xs)); }, "
                "at)(inputs);\n"
                "  double got = 0;\n  for (size_t k = 0; k < gs.size(); ++k)\n    got += along(gs[k], "
                "ts[size_t(at[k] < 0 ? at[k] + 2 : at[k])]);\n  std::cout << \"got      \" << got << '\\n';\n"
          : std::string("  const Tensors gs = vjp(f, inputs).pullback(us);\n") + kPrintGradients,
      1);
  const int n = int(s.ts.size());
  Tensors along;
  for (const int k : argnums) along.push_back(s.ts[size_t(k < 0 ? k + n : k)]);
  for (int k = 0; k < n; ++k)
    if (std::ranges::none_of(argnums, [&](int at) { return at == k || at + n == k; }))
      s.ts[size_t(k)] = {}, s.traced &= ~(1u << k);
  EngineRun run;
  run.status = status_of([&] {
    const Tensors captures = p.fresh_captures(), xs = copies(p.inputs());
    if (whole) {
      const auto f = [&](const Tensors& in) {
        return weighted_sum(p.run(in, captures, &run.seen), p.weights());
      };
      run.slopes = {dot(grad(f, argnums)(xs), along)};
      return;
    }
    const VjpResult r = vjp([&](const Tensors& in) { return p.run(in, captures, &run.seen); }, xs);
    run.ys = r.values;
    run.slopes = {dot(r.pullback(p.weights()), s.ts)};
  });
  return judge(s, run);
}

Verdict under_jvp(Case& c) {
  const Script p(c);
  const uint32_t absent = c.draw.one_in(3) ? 1 + c.draw.below(2) : 0;  // bits: inputs without a tangent
  EngineCase s = engine_case(p, "", 1);
  s.saves = false;
  std::string list;
  for (size_t k = 0; k < s.ts.size(); ++k) {
    if (absent >> k & 1) s.ts[k] = {};
    else s.mapped |= 1u << k;
    list += (k ? ", " : "") + (s.ts[k].defined() ? format("t{}", k) : std::string("Tensor()"));
  }
  s.engine = "  const Tensors dys = jvp(f, inputs, Tensors{" + list +
             "}).tangents;\n  double got = 0;\n  for (size_t k = 0; k < dys.size(); ++k) got += "
             "along(dys[k], us[k]);\n  std::cout << \"got      \" << got << '\\n';\n";
  EngineRun run;
  run.status = status_of([&] {
    const Tensors captures = p.fresh_captures();
    const JvpResult r =
        jvp([&](const Tensors& in) { return p.run(in, captures, &run.seen); }, copies(p.inputs()), s.ts);
    run.ys = r.values;
    run.slopes = {dot(r.tangents, p.weights())};
  });
  return judge(s, run);
}

/// Gradients of a lane along the directions.
double slope_of_lane(const Tensors& gradients, const InDims& out, const Tensors& ts, int64_t l) {
  Tensors in_lane;
  for (size_t k = 0; k < gradients.size(); ++k) in_lane.push_back(lane(gradients[k], out[k + 1], l));
  return dot(in_lane, ts);
}

std::string argnums_text(const Script& p) { return p.inputs().size() > 1 ? "{0, 1}" : "{0}"; }

Verdict vmap_of_grad(Case& c) {
  const Script p(c);
  EngineCase s = engine_case(p, "", 2);
  const ScriptLanes lanes(c, p, s);
  InDims out{0};  // of the value, and of each gradient
  for (const Tensor& x : p.inputs()) out.push_back(int(c.draw.below(uint32_t(x.rank()) + 1)));
  s.engine = "  const Function g = value_and_grad([&](const Tensors& xs) { return weighted(f(xs)); }, " +
             argnums_text(p) + ");\n" + lanes.cpp("g") +
             "  const Tensors gs = mapped(batch);  // out_dims: {0}\n  for (int64_t l = 0; l < "
             "gs[0].size(0); ++l) {\n    "
             "double got = "
             "0;\n    for (size_t k = 0; k < ts.size(); ++k) got += along(select(gs[k + 1], 0, l), ts[k]);\n "
             "   std::cout << \"got      \" << got << '\\n';\n  }\n";
  EngineRun run;
  run.status = status_of([&] {
    const Tensors captures = p.fresh_captures();
    const Function g = value_and_grad(
        [&](const Tensors& in) { return weighted_sum(p.run(in, captures, &run.seen), p.weights()); },
        all_argnums(p));
    VmapOptions options = lanes.options();
    options.out_dims = out;
    const Tensors all = vmap(g, options)(lanes.xs), gradients(all.begin() + 1, all.end());
    for (int64_t l = 0; l < lanes.size; ++l) {
      run.values.push_back(lane(all[0], 0, l).item<double>());
      run.slopes.push_back(slope_of_lane(gradients, out, s.ts, l));
    }
  });
  return judge(s, run);
}

Verdict grad_of_vmap(Case& c) {
  const Script p(c);
  EngineCase s = engine_case(p, "", 2);
  s.summed = true;
  const ScriptLanes lanes(c, p, s);
  s.engine =
      "  const Function h = [&](const Tensors& xs) { return Tensors{weighted(f(xs))}; };\n" + lanes.cpp("h") +
      "  const Tensors gs = grad([&](const Tensors& xs) { return sum(mapped(xs)[0]); }, " + argnums_text(p) +
      ")(batch);\n  double got = 0;\n  for (size_t k = 0; k < gs.size(); ++k) got += along(gs[k], ts[k]);\n  "
      "std::cout << \"got      \" << got << '\\n';\n";
  EngineRun run;
  run.status = status_of([&] {
    const Tensors captures = p.fresh_captures();
    const Function mapped = vmap(
        [&](const Tensors& in) { return Tensors{weighted_sum(p.run(in, captures, &run.seen), p.weights())}; },
        lanes.options());
    const Tensors gs = grad([&](const Tensors& in) { return sum(mapped(in)[0]); }, all_argnums(p))(lanes.xs);
    double total = 0;
    for (size_t k = 0; k < gs.size(); ++k) {
      if (lanes.dims[k] == kNone) total += dot({gs[k]}, {s.ts[k]});
      else
        for (int64_t l = 0; l < lanes.size; ++l) total += dot({lane(gs[k], lanes.dim(k), l)}, {s.ts[k]});
    }
    run.slopes = {total};
  });
  return judge(s, run);
}

Verdict second_under_levels(const Script& p, bool absent) {
  EngineCase s = engine_case(p, "", 2);
  s.second = true, s.ss = p.more_directions();
  if (absent) s.ts[0] = {};  // the inner level alone carries this input
  s.engine =
      cpp_tensors("s", s.ss) + "  const Tensors ss" + cpp_names("s", s.ss.size()) +
      ";\n  const Function g = grad([&](const Tensors& xs) { return weighted(f(xs)); }, " + argnums_text(p) +
      ");\n  Tensors ts_given = ts;\n  " + (absent ? "ts_given[0] = Tensor();\n  " : "") +
      "const Tensors hs = jvp(g, inputs, ts_given).tangents;\n  double got = 0;\n  for (size_t k = 0; k < "
      "hs.size(); ++k) got += along(hs[k], ss[k]);\n  std::cout << \"got      \" << got << "
      "'\\n';\n";
  EngineRun run;
  run.status = status_of([&] {
    const Tensors captures = p.fresh_captures();
    const Function g =
        grad([&](const Tensors& in) { return weighted_sum(p.run(in, captures, &run.seen), p.weights()); },
             all_argnums(p));
    run.curve = dot(jvp(g, copies(p.inputs()), s.ts).tangents, s.ss);
  });
  return judge(s, run);
}

Verdict second_in_base(const Script& p) {
  EngineCase s = engine_case(p, "", 2, false);
  s.second = true, s.ss = p.more_directions();
  s.engine =
      std::string(kMakeLeaves) + cpp_tensors("s", s.ss) + "  const Tensors ss" + cpp_names("s", s.ss.size()) +
      ";\n  backward(weighted(f(leaves)), {}, {.create_graph = true});\n  Tensor slope = zeros({}, "
      "DType::F64);\n  for (size_t k = 0; k < leaves.size(); ++k) {\n    if (grad_of(leaves[k]).defined()) "
      "slope = slope + sum(real(conj(grad_of(leaves[k])) * ss[k]));\n    clear_grad(leaves[k]);\n  }\n"
      "  if (is_grad_required(slope)) backward(slope);\n" +
      kPrintLeaves;
  EngineRun run;
  run.status = status_of([&] {
    const Tensors leaves = leaves_of(p.inputs());
    {
      run.ys = p.run(leaves, p.fresh_captures(), &run.seen);
      const Tensor root = weighted_sum(run.ys, p.weights());
      if (!is_grad_required(root)) return;
      backward(root, {}, {.create_graph = true});
    }
    Tensors gradients;
    for (const Tensor& leaf : leaves) {
      gradients.push_back(grad_of(leaf));
      clear_grad(leaf);
    }
    Tensors found, directions;
    for (size_t k = 0; k < leaves.size(); ++k) {
      if (!gradients[k].defined()) continue;
      found.push_back(gradients[k]);
      directions.push_back(s.ss[k]);
    }
    const Tensor along = weighted_sum(found, directions);
    if (is_grad_required(along)) backward(along);
    run.curve = slope_of_leaves(leaves, s.ts, run.wrong);
  });
  return judge(s, run);
}

Verdict second_order(Case& c) {
  const Script p(c);
  if (c.draw.flag()) return second_in_base(p);
  return second_under_levels(p, c.draw.one_in(3));
}

}  // namespace

void add_program_laws(std::vector<Law>& laws) {
  const auto add = [&](int number, std::string_view id, std::string_view group, std::string_view statement,
                       Verdict (*check)(Case&)) {
    laws.push_back({number, id, group, statement, program_options(), false, has_programs, check});
  };
  add(74, "programs_in_base_autograd", "derivative",
      "A program of calls, views and writes gives in base autograd the values, errors and gradients of the "
      "plain "
      "program and its differences.",
      in_base_autograd);
  add(74, "programs_under_grad", "derivative", "So it does under grad and vjp.", under_grad);
  add(74, "programs_under_jvp", "derivative", "So it does under jvp, with and without tangents.", under_jvp);
  add(75, "programs_vmap_grad", "compose", "vmap of the gradient of a program gives the lanes' gradients.",
      vmap_of_grad);
  add(75, "programs_grad_vmap", "compose",
      "The gradient of the sum over lanes of a program is that of the lanes, summed where an input is "
      "shared.",
      grad_of_vmap);
  add(76, "programs_second_order", "compose",
      "jvp of the gradient of a program, and backward twice, are second differences of the plain program.",
      second_order);
}

}  // namespace lamella::verify
