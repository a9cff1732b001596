// Laws of statement programs in time: written after the run, on several threads, and when all is over.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/tapes/reasons.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/program_engines.h"
#include "lamella/verify/programs/statements_draw.h"

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
Finding wrong_refusal(const EngineCase& s, const Status& later, bool may_refuse) {
  if (!later.raised) return "";
  if (later.because<WrittenLater>() && later.code == ErrorCode::Value && may_refuse) return "";
  return std::string("after a later write to ") + (may_refuse ? "what may be saved" : "what nothing saves") +
         ", the engine" + (s.levels ? "'s pullback" : "'s backward") + " raises " + str(later);
}

Verdict after_writes_under_grad(const Script& p, const Victim& victim) {
  EngineCase s =
      engine_case(p,
                  "  const VjpResult r = vjp(f, inputs);\n  Tensor victim = " + victim.cpp("r.values") +
                      ";\n  fill_(victim, 0.3125);\n  const Tensors gs = r.pullback(us);\n" + kPrintGradients,
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
  const Finding wrong =
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
          victim.cpp("ys") + ";\n    fill_(victim, 0.3125);\n  }\n  backward(root);\n" + kPrintLeaves,
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
  const Finding wrong =
      wrong_refusal(s, later, refusals.saved[size_t(victim.handle)] || refusals.base_version);
  if (wrong.empty() && !run.status.raised && !later.raised && refusals.certain[size_t(victim.handle)])
    return program_failure(
        s, {What::Accepted, "backward raises nothing, although a value that a formula needs was written"});
  if (!wrong.empty()) return program_failure(s, wrong);
  return later.raised ? Verdict::pass(1) : judge(s, run);
}

/// A value of an outer level that lies as `t` does: dense and itself, or a view of a base of that level,
/// which is all of t's memory, or one of two rows of it.
class OuterValue {
 public:
  OuterValue(const Tensor& t, const Tensor& one, uint32_t kind)
      : room_(int64_t(t.impl()->storage->nbytes) / itemsize(t.dtype())), row_(kind == 2) {
    whole_ = kind == 0 && t.is_contiguous() && room_ == t.numel();
    if (!whole_) find_steps(t);
    const Tensor flat = make_view_unchecked(t, Dims{room_}, Dims{1}, 0);
    base = (whole_ ? t : row_ ? stack(Tensors{flat, flat}, 0) : flat) * one;
    view = another_view();
  }
  Tensor base, view;
  Tensor another_view() const {
    if (whole_) return base;
    return permute(lamella::view(slice(row_ ? select(base, 0, 1) : base, 0, begin_, end_, step_), sizes_),
                   dims_);
  }
  std::string cpp(const std::string& name) const {
    if (whole_) return format("    {} = {} * one[0];\n    const Tensor b{} = {};\n", name, name, name, name);
    const std::string flat =
        format("make_view_unchecked({}, Dims", name) + text_of({room_}) + ", Dims{1}, 0)";
    return format("    const Tensor b{} = ", name) +
           (row_ ? "stack(Tensors{" + flat + ", " + flat + "}, 0)" : flat) + " * one[0];\n" +
           format("    {} = {};\n", name, cpp_view(name));
  }
  std::string cpp_view(const std::string& name) const {
    if (whole_) return "b" + name;
    return format("permute(view(slice({}, 0, {}, {}, {}), Dims",
                  row_ ? "select(b" + name + ", 0, 1)" : "b" + name, begin_, end_, step_) +
           text_of(sizes_) + "), Dims" + text_of(dims_) + ")";
  }

 private:
  static std::string text_of(const Dims& all) {
    std::string out = "{";
    for (int k = 0; k < all.size(); ++k) out += (k ? ", " : "") + std::to_string(all[k]);
    return out + "}";
  }
  /// Programs' memory is dense but for one step between all elements; its dims lie in any order.
  void find_steps(const Tensor& t) {
    std::vector<int> order;
    for (int k = 0; k < t.rank(); ++k) order.push_back(k);
    std::ranges::stable_sort(order, [&](int a, int b) { return t.stride(a) > t.stride(b); });
    dims_ = Dims(order.size());
    for (size_t k = 0; k < order.size(); ++k) {
      sizes_.push_back(t.size(order[k]));
      if (sizes_.back() > 1) step_ = t.stride(order[k]);
      dims_[size_t(order[k])] = int64_t(k);
    }
    begin_ = t.impl()->offset, end_ = begin_ + (t.numel() - 1) * step_ + 1;
  }
  int64_t room_, begin_ = 0, end_ = 0, step_ = 1;
  Dims sizes_, dims_;
  bool whole_ = false, row_;
};

/// All inside a level further out, whose values inputs and captures are: what is written later is what the
/// inner level's tape knows from outside, through the handle that the program got, its base or another view.
class UnderOuterLevel {
 public:
  UnderOuterLevel(const Script& p, const Victim& victim, Digits d)
      : p_(p), victim_(victim), by_grad_(d.below(2)), way_(d.below(4)), kinds_(d) {}

  Verdict check() {
    EngineRun run;
    Status later;
    const Function body = [&](const Tensors& one) { return written_between(one[0], run, later); };
    const Tensors one{ones({}, DType::F64)};
    EngineCase s = engine_case(p_, "", 2);
    s.further_out = true;
    run.status = status_of([&] {
      const Tensors gs = by_grad_ ? vjp(body, one).values : jvp(body, one, one).values;
      if (!later.raised) run.slopes = {dot(gs, s.ts)};
    });
    s.engine = text();
    const Refusals refusals = p_.refusals(true);
    const bool result = !victim_.input && !victim_.capture;
    const Finding wrong =
        wrong_refusal(s, later, result || refusals.saved[size_t(victim_.handle)] || refusals.level_version);
    if (!wrong.empty()) return program_failure(s, wrong);
    return later.raised ? Verdict::pass(2) : judge(s, run);
  }

 private:
  static Tensors views(const std::vector<OuterValue>& all) {
    Tensors out;
    for (const OuterValue& v : all) out.push_back(v.view);
    return out;
  }
  void make_values(const Tensor& one) {
    Digits d = kinds_;
    xs_.clear(), captures_.clear();
    for (const Tensor& x : p_.inputs()) xs_.emplace_back(copy_as(x), one, d.below(3));
    for (const Tensor& c : p_.fresh_captures()) captures_.emplace_back(c, one, d.below(3));
  }
  Tensors written_between(const Tensor& one, EngineRun& run, Status& later) {
    make_values(one);
    const Tensors captures = views(captures_);
    const VjpResult r = vjp([&](const Tensors& in) { return p_.run(in, captures, &run.seen); }, views(xs_));
    const OuterValue* const v = victim_.input     ? &xs_[victim_.at]
                                : victim_.capture ? &captures_[victim_.at]
                                                  : nullptr;
    const Tensor target = !v          ? r.values[victim_.at]
                          : way_ == 1 ? v->base
                          : way_ == 2 ? v->another_view()
                                      : v->view;
    // A result may be a constant: whether that takes a value of the level is another matter.
    if (way_ == 3 && v) mul_(target, one * 0.3125);
    else fill_(target, 0.3125);
    Tensors gs;
    later = status_of([&] { gs = r.pullback(p_.weights()); });
    for (size_t k = 0; k < gs.size(); ++k)
      if (!gs[k].defined()) gs[k] = zeros_like(p_.inputs()[k]);
    return later.raised ? Tensors{one} : gs;
  }
  std::string text() const {
    std::string out =
        "  const Tensors one{ones({}, DType::F64)};\n  const Function body = [&](const Tensors& "
        "one) {\n";
    for (size_t k = 0; k < xs_.size(); ++k) out += xs_[k].cpp(format("x{}", k));
    for (size_t k = 0; k < captures_.size(); ++k) out += captures_[k].cpp(format("c{}", k));
    const std::string name = victim_.cpp("r.values");
    const std::vector<OuterValue>& among = victim_.input ? xs_ : captures_;
    const bool result = !victim_.input && !victim_.capture;
    out += "    const VjpResult r = vjp(f, " + cpp_names("x", xs_.size()) + ");\n    Tensor victim = " +
           (result || way_ == 0 || way_ == 3 ? name
            : way_ == 1                      ? "b" + name
                                             : among[victim_.at].cpp_view(name)) +
           (way_ == 3 && !result ? ";\n    mul_(victim, one[0] * 0.3125);\n"
                                 : ";\n    fill_(victim, 0.3125);\n");
    return out + "    return r.pullback(us);\n  };\n  const Tensors gs = " +
           (by_grad_ ? "vjp(body, one).values;\n" : "jvp(body, one, one).values;\n") + kPrintGradients;
  }

  const Script& p_;
  const Victim& victim_;
  const bool by_grad_;
  const uint32_t way_;
  const Digits kinds_;
  std::vector<OuterValue> xs_, captures_;
};

Verdict after_writes(Case& c) {
  const Script p(c);
  if (p.raises() || p.values().empty()) return Verdict::discard();
  const Victim victim(c, p);
  if (p.values()[0].numel() > 0 && victim.handle < 0) return Verdict::discard();
  // A write that the plain call refuses is no write: an expanded result.
  const Tensor like = victim.input || victim.capture ? Tensor() : p.values()[victim.at];
  if (like.defined() && overlaps_itself(like)) return Verdict::discard();
  const bool in_base = c.draw.flag();
  Digits outer(c.draw.word());  // the last one: records without it mean what they did
  if (outer.below(4) == 3) return UnderOuterLevel(p, victim, outer).check();
  return in_base ? after_writes_in_base(p, victim) : after_writes_under_grad(p, victim);
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
Finding unlike_bits(const Tensors& got, const Tensors& want, std::string_view what) {
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
    if (const Finding w = unlike_bits(runs[1].ys, runs[0].ys, "result"); !w.empty())
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
      for (int k = 1; g.defined() && k < 2 * kTimes; ++k) add_(want.back(), g);
    }
  });
  const Verdict verdict = judge(s, run);
  if (verdict.kind == Verdict::Fail || run.status.raised) return verdict;
  const Finding w = unlike_bits(got, want, "the gradient, added up by two threads, of leaf");
  return w.empty() ? verdict : program_failure(s, w);
}

Verdict on_threads(Case& c) {
  const Script p(c, true);
  // What one thread writes to a leaf, another one may be reading.
  const std::vector<bool> writes = p.refusals(false).argument;
  const uint32_t kind = c.draw.below(3);
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
  const uint32_t engine = c.draw.below(7);
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
  return program_failure(
      s, {What::Leak, format("{} leaves {} blocks ({} bytes) alive each time", kEngines[engine],
                             after.blocks - before.blocks, after.bytes - before.bytes)});
}

}  // namespace

void add_program_time_laws(std::vector<Law>& laws) {
  const auto add = [&](int number, std::string_view id, std::string_view group, std::string_view statement,
                       Verdict (*check)(Case&)) {
    laws.push_back({number, id, group, statement, program_options(), false, has_programs, check});
  };
  add(77, "programs_after_writes", "derivative",
      "Once a program has run, a write to its inputs, captures or results leaves its derivatives as they "
      "were, or raises the version error where a formula asks for what was written; under a level further "
      "out, whose values these are, too.",
      after_writes);
  add(78, "programs_on_threads", "dispatch",
      "On several threads a program has the gradients it has on one; leaves that threads share add them up.",
      on_threads);
  add(79, "programs_leave_nothing", "dispatch",
      "When a program is over in an engine, nothing of it is alive.", leave_nothing);
}

}  // namespace lamella::verify
