// Laws of statement programs in time: written after the run, on several threads, and when all is over.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
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
  if (wrong.empty() && !run.status.raised && !later.raised && refusals.certain[size_t(victim.handle)])
    return program_failure(s, "backward raises nothing, although a value that a formula needs was written");
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

/// Two at once: this thread and another one, from the same moment on.
void on_two_threads(const std::function<void(int)>& f) {
  std::atomic<int> waiting{2};
  const auto run = [&](int which) {
    for (--waiting; waiting > 0;) std::this_thread::yield();
    f(which);
  };
  std::thread other(run, 1);
  run(0);
  other.join();
}

/// Bit by bit: threads compute what one computes.
std::string unlike_bits(const Tensors& got, const Tensors& want, std::string_view what) {
  for (size_t k = 0; k < want.size(); ++k) {
    if (got[k].defined() != want[k].defined()) return format("{} {} is missing on one thread", what, k);
    if (!want[k].defined()) continue;
    const Tensor a = plain_copy(got[k]), b = plain_copy(want[k]);
    if (std::memcmp(a.raw_data(), b.raw_data(), part_count(a) * sizeof(double)) != 0)
      return format("{} {} is {}, expected {}", what, k, str(a), str(b));
  }
  return "";
}

Tensors gradients_of(const Tensors& leaves) {
  Tensors out;
  for (const Tensor& leaf : leaves) out.push_back(grad_of(leaf));
  return out;
}

/// Each with leaves of its own, or all with the same ones.
Verdict each_on_its_thread(const Script& p, bool shared, const EngineCase& s) {
  EngineRun runs[2];
  const Tensors common = leaves_of(p.inputs());
  if (shared) p.hook_leaves(common);
  on_two_threads([&](int which) {
    EngineRun& run = runs[which];
    run.status = status_of([&] {
      run.seen.leaves_are_shared = shared;
      const Tensors leaves = shared ? common : leaves_of(p.inputs());
      run_backward_on(p, leaves, false, run);
      if (!shared) run.slopes = {slope_of_leaves(leaves, s.ts, run.wrong)};
      run.ys = copies(run.ys);
    });
  });
  if (runs[0].status.raised != runs[1].status.raised)
    return program_failure(s, "one of two threads raises " + str(runs[runs[1].status.raised].status));
  if (!runs[0].status.raised) {
    if (shared) runs[0].slopes = {slope_of_leaves(common, s.ts, runs[0].wrong) / 2};  // equal parts: exact
    else if (runs[0].slopes != runs[1].slopes) return program_failure(s, "gradients differ between threads");
    if (const std::string w = unlike_bits(runs[1].ys, runs[0].ys, "result"); !w.empty())
      return program_failure(s, w);
  }
  return judge(s, runs[0]);
}

/// One graph, run backwards again and again by both. All parts of a sum are the same number, so that their
/// order makes no difference.
Verdict one_graph_on_threads(const Script& p, const EngineCase& s) {
  constexpr int kTimes = 24;
  EngineRun run;
  Tensors got, want;
  run.status = status_of([&] {
    const Tensors leaves = leaves_of(p.inputs());
    run.ys = p.run(leaves, p.fresh_captures(), &run.seen);
    const Tensor root = weighted_sum(run.ys, p.weights());
    if (is_grad_required(root)) backward(root);
    run.slopes = {slope_of_leaves(leaves, s.ts, run.wrong)};
    if (!is_grad_required(root)) return;
    const Tensors once = gradients_of(leaves);
    for (const Tensor& leaf : leaves) clear_grad(leaf);
    on_two_threads([&](int) {
      for (int k = 0; k < kTimes; ++k) backward(root);
    });
    got = gradients_of(leaves);
    for (const Tensor& g : once) {
      want.push_back(g.defined() ? plain_copy(g) : Tensor());
      for (int k = 1; g.defined() && k < 2 * kTimes; ++k) want.back().add_(g);
    }
  });
  const Verdict verdict = judge(s, run);
  if (verdict.kind == Verdict::Fail || run.status.raised) return verdict;
  const std::string w = unlike_bits(got, want, "the gradient, added up by two threads, of leaf");
  return w.empty() ? verdict : program_failure(s, w);
}

Verdict on_threads(Case& c) {
  const Script p(c);
  // What one thread writes to a leaf, another one may be reading.
  const std::vector<bool> writes = p.refusals(false).argument;
  const uint32_t kind = c.draw.below(c.draw.options().version < 6 ? 2 : 3);
  const bool shared = kind == 1 && std::ranges::find(writes, true) == writes.end();
  static constexpr const char* kHow[] = {"each with leaves of its own, f and then backward",
                                         "with these leaves, f and then backward",
                                         "backward on this one graph"};
  const EngineCase s = engine_case(p,
                                   std::string(kMakeLeaves) +
                                       "  // here; the law does it on two threads at once: " + kHow[kind] +
                                       "\n  backward(weighted(f(leaves)));\n" + kPrintLeaves,
                                   1, false);
  return kind == 2 ? one_graph_on_threads(p, s) : each_on_its_thread(p, shared, s);
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

/// What a thread has made is let go after the thread has ended.
void outliving_its_thread(const Script& p) {
  const Tensors leaves = leaves_of(p.inputs());
  Tensors ys;
  std::thread([&] {
    (void)status_of([&] {
      ys = p.run(leaves, p.fresh_captures());
      const Tensor root = weighted_sum(ys, p.weights());
      if (is_grad_required(root)) backward(root);
    });
  }).join();
}

Verdict leave_nothing(Case& c) {
  const Script p(c);
  const uint32_t engine = c.draw.below(c.draw.options().version < 6 ? 6 : 7);
  static constexpr const char* kEngines[] = {
      "backward(weighted(f(leaves)))",
      "backward(weighted(f(leaves)), {}, {.create_graph = true})",
      "vjp(f, inputs).pullback(us)",
      "jvp(f, inputs, ts)",
      "jvp(grad(weighted of f))",
      "vmap(grad(weighted of f))",
      "backward(weighted(f(leaves))) on a thread that ends before its results"};
  const auto once = [&] {
    (void)status_of([&] {
      if (engine == 6) outliving_its_thread(p);
      else if (engine < 2) in_base(p, engine == 1);
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
  const int depth = engine == 4 || engine == 5 ? 2 : 1;
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
