// Laws of statement programs in time: written after the run, on several threads, and when all is over.
#include <algorithm>
#include <cmath>
#include <thread>

#include "lamella/ops/functions.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/laws_more.h"
#include "lamella/verify/program_engines.h"

namespace lamella::verify {

namespace {

/// What is written once the program has run: an input, a capture or a result.
struct Victim {
  size_t at = 0;
  int handle = -1;
  bool input = false, capture = false;

  Victim(Case& c, const Script& p) {
    const size_t n = p.inputs().size(), m = p.captures().size();
    at = c.draw.below(uint32_t(n + m + p.values().size()));
    input = at < n, capture = !input && at < n + m;
    handle = input || capture ? int(at) : p.result_handles()[at - n - m];
    if (capture) at -= n;
    if (!input && !capture) at -= n + m;
  }
  std::string cpp(const char* results) const {
    return input ? format("x{}", at) : capture ? format("c{}", at) : format("{}[{}]", results, at);
  }
  const Tensor& of(const Tensors& xs, const Tensors& captures, const Tensors& ys) const {
    return input ? xs[at] : capture ? captures[at] : ys[at];
  }
};

/// A version error is right where a formula may ask for the memory, and only there.
std::string wrong_refusal(const EngineCase& s, const Status& later, bool may_refuse) {
  if (!later.raised) return "";
  const bool version = later.text.find("was written in place later") != std::string::npos;
  if (version && later.code == ErrorCode::Value && may_refuse) return "";
  return std::string("after a later write to ") + (may_refuse ? "what may be saved" : "what nothing saves") +
         ", the engine" + (s.levels ? "'s pullback" : "'s backward") + " raises " + str(later);
}

Verdict after_writes_under_grad(const Script& p, const Victim& victim) {
  EngineCase s =
      engine_case(p,
                  "  const VjpResult r = vjp(f, inputs);\n  Tensor victim = " + victim.cpp("r.values") +
                      ";\n  victim.fill_(0.3125);\n  const Tensors gs = r.pullback(us);\n" + kPrintGradients,
                  1);
  EngineRun run;
  Status later;
  run.status = status_of([&] {
    const Tensors captures = p.fresh_captures(), xs = copies(p.inputs());
    const VjpResult r = vjp([&](const Tensors& in) { return p.run(in, captures, &run.seen); }, xs);
    fill_(victim.of(xs, captures, r.values), 0.3125);
    later = status_of([&] { run.slopes = {dot(r.pullback(p.weights()), s.ts)}; });
  });
  const Refusals refusals = p.refusals(true);
  const bool result = !victim.input && !victim.capture;  // its memory may be any value's of the level
  const std::string wrong =
      wrong_refusal(s, later, result || refusals.saved[size_t(victim.handle)] || refusals.level_version);
  if (!wrong.empty()) return program_failure(s, wrong);
  return later.raised ? Verdict::pass(1) : judge(s, run);
}

Verdict after_writes_in_base(const Script& p, const Victim& victim) {
  EngineCase s = engine_case(
      p,
      std::string(kMakeLeaves) +
          "  Tensors ys = f(leaves);\n  const Tensor root = weighted(ys);\n  {\n    const NoGrad "
          "off;\n    Tensor victim = " +
          victim.cpp("ys") + ";\n    victim.fill_(0.3125);\n  }\n  backward(root);\n" + kPrintLeaves,
      1, false);
  EngineRun run;
  Status later;
  run.status = status_of([&] {
    const Tensors captures = p.fresh_captures(), xs = copies(p.inputs());
    Tensors leaves;
    for (const Tensor& x : xs) leaves.push_back(requires_grad(x));
    const Tensors ys = p.run(leaves, captures, &run.seen);
    const Tensor root = weighted_sum(ys, p.weights());
    {
      const NoGrad off;
      fill_(victim.of(xs, captures, ys), 0.3125);
    }
    later = status_of([&] {
      if (is_grad_required(root)) backward(root);
      run.slopes = {slope_of_leaves(leaves, s.ts, run.wrong)};
    });
  });
  const Refusals refusals = p.refusals(false);
  const std::string wrong =
      wrong_refusal(s, later, refusals.saved[size_t(victim.handle)] || refusals.base_version);
  if (!wrong.empty()) return program_failure(s, wrong);
  return later.raised ? Verdict::pass(1) : judge(s, run);
}

Verdict after_writes(Case& c) {
  const Script p(c);
  if (p.raises() || p.values().empty()) return Verdict::discard();
  const Victim victim(c, p);
  if (p.values()[0].numel() > 0 && victim.handle < 0) return Verdict::discard();
  // A write that the plain call refuses is no write: an expanded result.
  const Tensor like = victim.input || victim.capture ? Tensor() : p.values()[victim.at];
  if (like.defined() && overlaps_itself(like)) return Verdict::discard();
  return c.draw.flag() ? after_writes_in_base(p, victim) : after_writes_under_grad(p, victim);
}

constexpr int kThreads = 2;

Verdict on_threads(Case& c) {
  const Script p(c);
  // What one thread writes to a leaf, another one may be reading.
  const std::vector<bool> writes = p.refusals(false).argument;
  const bool shared = c.draw.flag() && std::ranges::find(writes, true) == writes.end();
  const EngineCase s =
      engine_case(p,
                  std::string(kMakeLeaves) + "  // on " + std::to_string(kThreads) + " threads at once, " +
                      (shared ? "all with these leaves" : "each with its own") +
                      "; shown: of all threads together\n  backward(weighted(f(leaves)));\n" + kPrintLeaves,
                  1, false);
  EngineRun runs[kThreads];
  const Tensors common = leaves_of(p.inputs());
  if (shared) p.hook_leaves(common);
  std::vector<std::thread> threads;
  for (EngineRun& run : runs)
    threads.emplace_back([&] {
      run.status = status_of([&] {
        run.seen.leaves_are_shared = shared;
        const Tensors leaves = shared ? common : leaves_of(p.inputs());
        run_backward_on(p, leaves, false, run);
        if (!shared) run.slopes = {slope_of_leaves(leaves, s.ts, run.wrong)};
        run.ys = copies(run.ys);
      });
    });
  for (std::thread& t : threads) t.join();
  bool raised = false;
  for (const EngineRun& run : runs) raised |= run.status.raised;
  if (shared && !raised) {
    const double slope = slope_of_leaves(common, s.ts, runs[0].wrong);
    runs[0].slopes = {slope / kThreads};
  }
  Verdict verdict;
  for (const EngineRun& run : runs) {
    verdict = judge(s, run);
    if (verdict.kind != Verdict::Pass) break;
  }
  return verdict;
}

// What is alive when all is over.

void in_base(const Script& p, bool twice) {
  const Tensors leaves = leaves_of(p.inputs());
  EngineRun run;
  run.ys = p.run(leaves, p.fresh_captures());
  const Tensor root = weighted_sum(run.ys, p.weights());
  if (!is_grad_required(root)) return;
  try {
    backward(root, {}, {.create_graph = twice});
  } catch (const Error&) {}                            // what was added until then is let go as well
  for (const Tensor& leaf : leaves) clear_grad(leaf);  // a gradient with history holds its leaf
}

void under_levels(const Script& p, uint32_t kind) {
  const Tensors captures = p.fresh_captures(), xs = copies(p.inputs());
  const Function f = [&](const Tensors& in) { return p.run(in, captures); };
  const Function g =
      grad([&](const Tensors& in) { return weighted_sum(f(in), p.weights()); }, all_argnums(p));
  if (kind == 0) (void)vjp(f, xs).pullback(p.weights());
  else if (kind == 1) (void)jvp(f, xs, p.directions());
  else if (kind == 2) (void)jvp(g, xs, p.directions());
  else (void)vmap(g, {InDims(xs.size(), kNone), {0}, Randomness::Error, 2})(xs);
}

Verdict leave_nothing(Case& c) {
  const Script p(c);
  const uint32_t engine = c.draw.below(6);
  static constexpr const char* kEngines[] = {
      "backward(weighted(f(leaves)))", "backward(weighted(f(leaves)), {}, {.create_graph = true})",
      "vjp(f, inputs).pullback(us)",   "jvp(f, inputs, ts)",
      "jvp(grad(weighted of f))",      "vmap(grad(weighted of f))"};
  const auto once = [&] {
    (void)status_of([&] {
      if (engine < 2) in_base(p, engine == 1);
      else under_levels(p, engine - 2);
    });
  };
  once();  // what is made once and kept is made now
  MemoryStats before = memory_stats(), after{};
  for (int again = 0; again < 3; ++again) {  // what leaks, leaks each time
    if (again) before = after;
    once();
    after = memory_stats();
    if (before.blocks == after.blocks && before.bytes == after.bytes) break;
  }
  const int depth = engine >= 4 ? 2 : 1;
  if (before.blocks == after.blocks && before.bytes == after.bytes && before.storages == after.storages)
    return Verdict::pass(depth);
  const EngineCase s = engine_case(
      p,
      std::string(kMakeLeaves) +
          "  const auto before = memory_stats();\n  { backward(weighted(f(leaves))); }  // or: " +
          kEngines[engine] +
          "\n  for (const Tensor& leaf : leaves) clear_grad(leaf);\n  std::cout << \"got      \" << "
          "memory_stats().blocks << \"\\nexpected \" << before.blocks << '\\n';\n",
      depth);
  return program_failure(s, format("{} leaves {} blocks ({} bytes) alive each time", kEngines[engine],
                                   after.blocks - before.blocks, after.bytes - before.bytes));
}

}  // namespace

void add_program_time_laws(std::vector<Law>& laws) {
  const auto add = [&](int number, std::string_view id, std::string_view group, std::string_view statement,
                       Verdict (*check)(Case&)) {
    laws.push_back({number, id, group, statement, program_options(), false, has_programs, check});
  };
  add(77, "programs_after_writes", "derivative",
      "Once a program has run, a write to its inputs, captures or results leaves its derivatives as they "
      "were, or "
      "raises the version error where a formula asks for what was written.",
      after_writes);
  add(78, "programs_on_threads", "dispatch",
      "On several threads a program has the gradients it has on one; leaves that threads share add them up.",
      on_threads);
  add(79, "programs_leave_nothing", "dispatch",
      "When a program is over in an engine, nothing of it is alive.", leave_nothing);
}

}  // namespace lamella::verify
