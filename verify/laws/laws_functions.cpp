// The law of functions given to operators: they see what they capture, and the thread's state, as their
// caller does.
#include <algorithm>
#include <memory>
#include <optional>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/checkpoint.h"
#include "lamella/transforms/custom.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/subject.h"
#include "lamella/verify/programs/graph.h"

namespace lamella::verify {

namespace {

/// What a function sees of the thread when it runs.
struct Sight {
  uint64_t live = 0, masked = 0, modes = 0;
  const OpTable* table = nullptr;
  ThreadSettings settings;

  static Sight now() {
    const DispatchState& s = dispatch_state();
    uint64_t live = 0;
    for (int k = 0; k < s.depth; ++k)
      if (s.levels[k].transform) live |= uint64_t{1} << (kFirstLevelKey + k);
    return {live, s.exclude & (live | uint64_t{1} << kAutogradKey), s.modes, s.table, s};
  }
  Finding differs(const Sight& want) const {
    if (live != want.live) return format("live levels {}, its caller's are {}", live, want.live);
    if (masked != want.masked) return format("masked keys {}, its caller's are {}", masked, want.masked);
    if (modes != want.modes) return format("modes {}, its caller's are {}", modes, want.modes);
    if (table != want.table) return "another table";
    return settings.differs(want.settings);
  }
};

/// A level of a kind of its own, which notes the operators that it sees, and passes calls on.
class Witness final : public Transform {
 public:
  explicit Witness(TransformKind kind) : kind_(kind) {}
  TransformKind kind() const override { return kind_; }
  std::string_view name() const override { return "witness"; }
  void call(Frame& frame, int key) override {
    if (!frame.op->takes_functions) seen.push_back(frame.op->name);
    const Below below(key);
    lamella::call(frame);
  }
  std::vector<std::string> seen;

 private:
  TransformKind kind_;
};

enum class Layer : uint8_t { Lanes, Tangents, Pullback, Mode, Ambient };
constexpr std::string_view kLayerNames[] = {"vmap", "jvp", "vjp", "a mode", "an ambient level"};

/// Levels around a function of all tensors, outermost first. Directions are inputs, too.
struct Around {
  struct One {
    Layer layer;
    std::vector<bool> takes;  ///< the tensors that are mapped or traced
    int64_t lanes = 0;
  };
  std::vector<One> levels;
  bool has(Layer l) const {
    return std::ranges::any_of(levels, [l](const One& one) { return one.layer == l; });
  }
  bool derives() const { return has(Layer::Tangents) || has(Layer::Pullback); }
  /// Whether tensor k carries something at a level of derivatives.
  bool traces(size_t k) const {
    return std::ranges::any_of(levels, [k](const One& one) {
      return (one.layer == Layer::Tangents || one.layer == Layer::Pullback) && one.takes[k];
    });
  }
  std::string text() const {
    std::string out;
    for (const One& one : levels) {
      out += format("{} of ", kLayerNames[size_t(one.layer)]);
      for (size_t k = 0; k < one.takes.size(); ++k)
        if (one.takes[k]) out += format("x{} ", k);
    }
    return out;
  }
};

/// What is compared of one run.
struct Run {
  Tensors results;
  std::vector<Sight> sights;
  std::vector<std::vector<std::string>> seen;  ///< by each witness, as they end
};

Tensors some(const Tensors& all, const std::vector<bool>& which) {
  Tensors out;
  for (size_t k = 0; k < all.size(); ++k)
    if (which[k]) out.push_back(all[k]);
  return out;
}
Tensors put_back(Tensors all, const std::vector<bool>& which, const Tensors& chosen) {
  for (size_t k = 0, at = 0; k < all.size(); ++k)
    if (which[k]) all[k] = chosen[at++];
  return all;
}

/// f inside levels[from], levels[from + 1], …
Tensors inside(const Around& a, size_t from, const Function& f, const Tensors& xs, Run& run) {
  if (from == a.levels.size()) return f(xs);
  const Around::One& one = a.levels[from];
  const Function g = [&](const Tensors& chosen) {
    return inside(a, from + 1, f, put_back(xs, one.takes, chosen), run);
  };
  const Tensors chosen = some(xs, one.takes);
  switch (one.layer) {
    case Layer::Lanes: {
      Tensors rows;
      for (const Tensor& x : chosen) {
        Tensors lanes;
        for (int64_t i = 0; i < one.lanes; ++i)
          lanes.push_back(i == 0 || !is_inexact(x.dtype()) ? x : mul(x, 0.5));
        rows.push_back(stack(lanes, 0));
      }
      return vmap(g, {InDims(chosen.size(), 0), {0}, Randomness::Error, one.lanes})(rows);
    }
    case Layer::Tangents: {
      Tensors along;
      for (const Tensor& x : chosen) along.push_back(x + 1);
      const JvpResult r = jvp(g, chosen, along);
      Tensors out = r.values;
      out.insert(out.end(), r.tangents.begin(), r.tangents.end());
      return out;
    }
    case Layer::Pullback: {
      const auto r = vjp(g, chosen);
      Tensors us;
      for (const Tensor& y : r.values) us.push_back(ones(y.sizes(), y.dtype()));
      Tensors out = r.values;
      for (const Tensor& t : r.pullback(us)) out.push_back(t);
      return out;
    }
    default: {
      Witness witness(one.layer == Layer::Mode ? TransformKind::Mode : TransformKind::Ambient);
      Tensors out;
      {
        const Level level(witness);
        out = g(chosen);
      }
      run.seen.push_back(witness.seen);
      return out;
    }
  }
}

enum class Given : uint8_t { CustomVjp, CustomJvp, Checkpoint };
constexpr std::string_view kGivenNames[] = {"custom_vjp", "custom_jvp", "checkpoint"};

/// h with a result of integers before its own, which has no derivative.
Function behind_integers(const Function& h) {
  return [h](const Tensors& xs) {
    Tensors ys = h(xs);
    const Tensor count = make_tensor(Dims{2}, DType::I64);  // no operator that a level could see
    std::fill_n(count.data<int64_t>(), 2, 1);
    ys.insert(ys.begin(), count);
    return ys;
  };
}
/// A rule that gets its first argument as a residual of its own, twice as large: derivatives of the rule go
/// through what made that.
Function by_residual(const Function& h) {
  return custom_vjp(
      [h](const Tensors& xs) {
        Tensors kept = xs;
        kept.push_back(mul(xs[0], 2));
        return std::pair(h(xs), kept);
      },
      [h](const Tensors& kept, const Tensors& us) {
        Tensors xs(kept.begin(), kept.end() - 1);
        xs[0] = mul(kept.back(), 0.5);
        return vjp(h, xs).pullback(us);
      });
}

/// h as an operator gets it, with the rule that it has anyway.
Function given(Given how, const Function& h) {
  if (how == Given::Checkpoint) return checkpoint(h);
  if (how == Given::CustomJvp)
    return custom_jvp(h, [h](const Tensors& xs, const Tensors&, const Tensors& along) {
      return jvp(h, xs, along).tangents;
    });
  return custom_vjp([h](const Tensors& xs) { return std::pair(h(xs), xs); },
                    [h](const Tensors& xs, const Tensors& us) { return vjp(h, xs).pullback(us); });
}

/// One case: an operator of arguments and captures, what it is given to, and what is around.
struct Program {
  Function f;  ///< of all tensors
  Tensors xs;
  std::vector<bool> captured;  ///< of xs
  std::vector<Given> wraps;    ///< outermost first
  Around around;
  std::vector<bool> leaves;  ///< of xs; none: base autograd has nothing to do
  DType default_dtype = DType::F32;
  uint32_t crowd = 0;  ///< it gets so many leaves more, which f does not look at
  bool integers = false, residual = false, twice = false;  ///< see behind_integers(), by_residual()

  bool smooth = false;

  bool custom() const {
    return std::ranges::any_of(wraps, [](Given g) { return g != Given::Checkpoint; });
  }
  bool in_base() const {
    return std::ranges::any_of(leaves, [](bool is) { return is; });
  }
  bool derives() const { return in_base() || around.derives(); }

  Run run(bool as_given) const {
    Run out;
    const Function innermost = [&](const Tensors& all) {
      const Function h = [this, all, &out](const Tensors& args) {
        if (!derives()) out.sights.push_back(Sight::now());
        std::vector<bool> is_argument = captured;
        is_argument.flip();
        return f(put_back(all, is_argument, args));
      };
      Function g = h;
      if (integers && as_given) g = behind_integers(g);
      for (size_t k = wraps.size(); as_given && k-- > 0;)
        g = residual && wraps[k] == Given::CustomVjp ? by_residual(g) : given(wraps[k], g);
      std::vector<bool> is_argument = captured;
      is_argument.flip();
      Tensors args = some(all, is_argument);
      for (uint32_t k = 0; k < crowd; ++k) args.push_back(requires_grad(ones({2}, DType::F64)));
      if (twice && as_given) args.push_back(args[0]);  // nor at this one
      Tensors ys = g(args);
      if (integers && as_given) ys.erase(ys.begin());
      return ys;
    };
    Tensors in = xs, of;
    for (size_t k = 0; k < in.size(); ++k)
      if (leaves[k]) of.push_back(in[k] = requires_grad(in[k]));
    const Tensors ys = inside(around, 0, innermost, in, out);
    if (in_base()) {
      Tensors us;
      for (const Tensor& y : ys) us.push_back(ones(y.sizes(), y.dtype()));
      const LiveRoots live(ys, us);
      Tensors grads(of.size());
      if (!live.ys.empty()) grads = autograd::grad(live.ys, of, live.us, {.allow_unused = true});
      for (size_t k = 0; k < of.size(); ++k)
        out.results.push_back(grads[k].defined() ? grads[k] : zeros(of[k].sizes(), of[k].dtype()));
    }
    for (const Tensor& y : ys) out.results.push_back(detach(y));
    return out;
  }
  std::string text() const {
    std::string out = "  // " + around.text();
    for (const Given g : wraps) out += format("{}(", kGivenNames[size_t(g)]);
    out += "f0, which captures";
    for (size_t k = 0; k < captured.size(); ++k)
      if (captured[k]) out += format(" x{}", k);
    if (crowd) out += format(", given {} leaves more", crowd);
    if (integers) out += ", behind a result of integers";
    if (residual) out += ", by a residual of twice the first argument";
    if (twice) out += ", and given the first argument twice";
    out += in_base() ? "; leaves" : "";
    for (size_t k = 0; k < leaves.size(); ++k)
      if (leaves[k]) out += format(" x{}", k);
    return out + "\n";
  }
};

/// Of a result of the case in tensor k, at the numbers of the case.
bool depends_on(const Program& p, size_t k) {
  const Function one = [&](const Tensors& x) {
    Tensors all = p.xs;
    all[k] = x[0];
    return p.f(all);
  };
  const auto r = vjp(one, {p.xs[k]});
  Tensors us;
  for (const Tensor& y : r.values) us.push_back(ones(y.sizes(), y.dtype()));
  for (const long double part : short_parts(r.pullback(us)))
    if (part != 0) return true;
  return false;
}

bool draw_program(Case& c, Program& p) {
  p.smooth = both_ways(c.op) && !c.inexact().empty();
  const std::vector<Case::Slot>& slots = p.smooth ? c.inexact() : c.tensors();
  if (slots.empty() || draws_anew(c)) return false;
  p.f = p.smooth ? c.smooth_function(slots) : c.function(slots);
  p.xs = c.values(slots);
  const size_t n = p.xs.size();
  // A second tensor of the first one's type is captured in its place where there is one alone.
  p.captured = draw_mapped(c.draw, n);
  p.leaves.assign(n, false);
  if (p.smooth && c.draw.one_in(3)) p.leaves = draw_mapped(c.draw, n);
  for (uint32_t k = 1 + c.draw.below(2); k > 0; --k) p.wraps.push_back(Given(c.draw.below(3)));
  for (uint32_t k = 1 + c.draw.below(3); k > 0; --k) {
    const uint32_t w = c.draw.below(6);
    static constexpr Layer kKinds[] = {Layer::Lanes, Layer::Mode,     Layer::Ambient,
                                       Layer::Lanes, Layer::Tangents, Layer::Pullback};
    Around::One one{kKinds[p.smooth ? w : w % 4], draw_mapped(c.draw, n), 1 + int64_t(c.draw.below(2))};
    p.around.levels.push_back(std::move(one));
  }
  if (c.draw.flag()) p.default_dtype = DType::F64;
  if (p.in_base() && c.draw.one_in(3)) p.crowd = 4 + c.draw.below(8);
  const uint32_t w = c.draw.below(16);
  const bool given_some = std::ranges::find(p.captured, false) != p.captured.end();
  p.integers = w & 1 && w & 2, p.residual = given_some && p.smooth && p.derives() && w & 4,
  p.twice = given_some && w & 8;
  return true;
}

Finding unlike(const Run& got, const Run& want, bool exactly) {
  if (got.sights.size() != want.sights.size())
    return format("the function ran {} times, expected {}", got.sights.size(), want.sights.size());
  for (size_t k = 0; k < got.sights.size(); ++k)
    if (const Finding d = got.sights[k].differs(want.sights[k]); !d.empty()) return "the function sees " + d;
  // Which calls a level makes of one depends on whether arguments have lanes, as all have inside a function.
  for (size_t k = 0; k < std::min(got.seen.size(), want.seen.size()); ++k)
    if (exactly ? got.seen[k] != want.seen[k] : got.seen[k].empty() != want.seen[k].empty())
      return format("a level around saw {} calls, of the function itself {}", got.seen[k].size(),
                    want.seen[k].size());
  return "";
}

/// Witnesses of these kinds, outermost first, for a scope.
class OpenWitnesses {
 public:
  explicit OpenWitnesses(const std::vector<TransformKind>& kinds) {
    for (const TransformKind kind : kinds) {
      witnesses_.push_back(std::make_unique<Witness>(kind));
      levels_.push_back(std::make_unique<Level>(*witnesses_.back()));
    }
  }
  ~OpenWitnesses() {
    while (!levels_.empty()) levels_.pop_back();
  }
  OpenWitnesses(const OpenWitnesses&) = delete;
  /// Of those whose bit is set.
  KeySet keys(uint32_t which) const {
    uint64_t bits = 0;
    for (size_t k = 0; k < levels_.size(); ++k)
      if (which >> k & 1) bits |= KeySet::of(levels_[k]->key()).bits;
    return KeySet(bits);
  }
  void tell(Run& run) const {
    for (const auto& w : witnesses_) run.seen.push_back(w->seen);
  }

 private:
  std::vector<std::unique_ptr<Witness>> witnesses_;
  std::vector<std::unique_ptr<Level>> levels_;
};

/// A call whose functions base autograd keeps, and runs when levels of the call have ended and others, some
/// of them masked, have their places.
struct KeptFunction {
  Given how;
  std::vector<TransformKind> throughout, at_call, later;
  uint32_t masked;

  explicit KeptFunction(Draw& d) : how(Given(d.below(3))) {
    throughout.resize(d.below(2)), at_call.resize(1 + d.below(2)), later.resize(1 + d.below(2));
    for (auto* kinds : {&throughout, &at_call, &later})
      for (TransformKind& k : *kinds) k = d.flag() ? TransformKind::Mode : TransformKind::Ambient;
    masked = d.below(4);
  }
  /// What the functions, and the levels of that time, see then; `in_levels`: the call was made in some.
  Run run(const Function& f, const Tensors& xs, bool in_levels) const {
    Run out;
    const Function h = [&](const Tensors& at) {
      out.sights.push_back(Sight::now());
      return f(at);
    };
    const ScopedTable one(&OpTable::current());  // that of the call, which a checkpoint goes back to
    const OpenWitnesses outer(throughout);
    Tensors leaves, us;
    for (const Tensor& x : xs) leaves.push_back(requires_grad(x));
    std::optional<OpenWitnesses> ending;
    if (in_levels) ending.emplace(at_call);
    const Tensors ys = given(how, h)(leaves);
    ending.reset();
    for (const Tensor& y : ys) us.push_back(ones(y.sizes(), y.dtype()));
    const LiveRoots live(ys, us);
    if (live.ys.empty()) return {};
    out.sights.clear();
    const OpenWitnesses inner(later);
    const Excluding some(inner.keys(masked));
    out.results = autograd::grad(live.ys, leaves, live.us, {.allow_unused = true});
    std::erase_if(out.results, [](const Tensor& g) { return !g.defined(); });
    inner.tell(out);
    return out;
  }
};

/// A function that runs when a level of its call has ended is seen by those of that time, as if its call had
/// been made in no such level.
Finding unlike_later(Case& c, const Program& p) {
  const KeptFunction kept(c.draw);
  Run want, got;
  const Status plain = status_of([&] { want = kept.run(p.f, p.xs, false); }),
               inside = status_of([&] { got = kept.run(p.f, p.xs, true); });
  if (plain.raised != inside.raised) return "raises " + str(inside).text() + ", else " + str(plain);
  Finding d = unlike(got, want, true);
  if (d.empty()) d = disagrees(got.results, want.results, Agreement::Bitwise);
  if (d.empty()) return "";
  return format("in {}, called in {} levels that had ended when {} others, masked by bits {}, were there: ",
                kGivenNames[size_t(kept.how)], kept.at_call.size(), kept.later.size(), kept.masked) +
         d;
}

Verdict functions_see_all(Case& c) {
  Program p;
  if (!draw_program(c, p)) return Verdict::discard();
  const ScopedDefaultDType setting(p.default_dtype);
  Run want, got;
  if (status_of([&] { want = p.run(false); }).raised) return Verdict::discard();
  if (p.derives() && (!finite(want.results) || largest_part(want.results) > 1e6)) return Verdict::discard();
  const int depth = int(p.around.levels.size());
  // A rule says nothing of captures: what depends on one that carries derivatives is refused.
  bool may_refuse = false, must_refuse = false;
  for (size_t k = 0; k < p.xs.size() && p.custom(); ++k) {
    if (!p.captured[k] || !(p.leaves[k] || p.around.traces(k))) continue;
    may_refuse = true;
    must_refuse |= depends_on(p, k);
  }
  const Status s = status_of([&] { got = p.run(true); });
  Finding wrong;
  if (s.raised) {
    const bool refused = s.code == ErrorCode::Level || s.code == ErrorCode::Value;
    if (!may_refuse || !refused) wrong = "raises " + str(s);
  } else if (must_refuse) {
    wrong = "a capture carries derivatives, which no rule gives: expected error level or value, got none";
  } else if (!may_refuse) {
    wrong = p.derives() ? disagrees(got.results, want.results, Agreement::Rounding,
                                    {256, std::max(64.0, largest_part(want.results)), coarsest(want.results)})
                        : disagrees(got.results, want.results, Agreement::Bitwise);
    if (!wrong.empty() && p.derives() && !finite(got.results) && nears_the_end([&] { p.run(false); }))
      return Verdict::discard();
    if (wrong.empty() && !p.derives()) wrong = unlike(got, want, !p.around.has(Layer::Lanes));
  }
  if (wrong.empty() && p.smooth && c.draw.one_in(3)) wrong = unlike_later(c, p);
  if (wrong.empty()) return Verdict::pass(depth);
  return Verdict::fail(wrong, cpp_declarations(c.args) + p.text() + "  " + cpp_call(c.op, c.args) + ";\n",
                       depth);
}

bool takes_some(const Op& op) { return takes_tensors(op) && !op.has(kUnspecified) && !op.takes_functions; }

}  // namespace

void add_function_laws(std::vector<Law>& laws) {
  laws.push_back(
      {126,
       "functions_see_all",
       "compose",
       "A function given to an operator runs once, under the levels, modes, masks and settings of its "
       "caller, and is itself of what it captures, at every level, and one that is kept and runs later "
       "under those of that time; derivatives of captures, of which a rule says nothing, are refused.",
       {.tame = true, .max_numel = 6},
       false,
       takes_some,
       functions_see_all});
}

}  // namespace lamella::verify
