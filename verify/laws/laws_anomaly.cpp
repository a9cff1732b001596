// The law of anomaly mode: it changes no number, and names the call, the element and the lanes of a NaN.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/strided.h"
#include "lamella/transforms/anomaly.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/call_site.h"
#include "lamella/transforms/custom.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/subject.h"
#include "lamella/verify/programs/graph.h"

namespace anomaly_law {
/// All forward calls of the law come from here. Outside of lamella: in a program without lines, frames of
/// that namespace are taken for the library's.
[[gnu::noinline]] lamella::Tensors forward_call(const lamella::Function& f, const lamella::Tensors& xs) {
  lamella::Tensors ys = f(xs);
  std::erase_if(ys, [](const lamella::Tensor& y) { return !is_inexact(y.dtype()); });
  return ys;
}
}  // namespace anomaly_law

namespace lamella::verify {

namespace {

bool names_forward_call(const std::vector<std::string>& functions) {
  return std::ranges::any_of(
      functions, [](const std::string& f) { return f.find("forward_call") != std::string::npos; });
}

/// Whether places are named here at all: a program may have no symbols, a machine no addr2line.
bool forward_calls_have_names() {
  static const bool named = [] {
    CallSite site;
    anomaly_law::forward_call(
        [&](const Tensors&) {
          site = call_site();
          return Tensors{};
        },
        {});
    return names_forward_call(call_site_functions(site));
  }();
  return named;
}

/// What of FoundNaN plain runs can tell: all but where the forward call was made. A formula of no operator
/// stands for any.
struct NanPlace {
  FoundNaN::Where where = FoundNaN::Formula;
  std::string op = {}, input = {}, tangent_of = {}, type = {};
  std::vector<int64_t> index = {};
  std::vector<std::pair<std::string, int64_t>> lanes = {};  ///< innermost first
  auto operator<=>(const NanPlace&) const = default;

  static NanPlace of(const FoundNaN& f) {
    const Element& e = f.element;
    return {f.where, f.op, f.input, e.tangent_of, f.type, {e.index.begin(), e.index.end()}, e.lanes};
  }
  bool is_right(const FoundNaN& f) const {
    return where == FoundNaN::Formula && op.empty() ? f.where != FoundNaN::Result : *this == of(f);
  }
  std::string str() const {
    static constexpr const char* kSays[] = {"NaN of", "NaN of the formula of", "NaN in a cotangent of"};
    std::string out = format("{} {} {}", kSays[where], op.empty() ? "any operator" : op, input);
    if (!tangent_of.empty()) out += ", in the tangent at " + tangent_of;
    out += format(", at {} of {}", Dims(index), type);
    for (const auto& [level, i] : lanes) out += format(", lane {} of {}", i, level);
    return out;
  }
};
using NamedLanes = decltype(NanPlace::lanes);

std::vector<size_t> nan_at(const Tensor& t) {
  std::vector<size_t> out;
  const Reals parts = flatten({t});
  const size_t each = is_complex(t.dtype()) ? 2 : 1;
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i] != parts[i] && (out.empty() || out.back() != i / each)) out.push_back(i / each);
  return out;
}
bool any_nan(const Tensors& ts) {
  return std::ranges::any_of(ts, [](const Tensor& t) { return !nan_at(t).empty(); });
}

/// Whether any kernel of a plain run gives NaN, even one that nobody sees in the end.
class SeesNaN final : public SeesResults {
 public:
  bool seen = false;

 private:
  void sees(const Tensor& t) override { seen = seen || !nan_at(plain_copy(t)).empty(); }
};

enum class Way : uint8_t { Value, Jvp, Vjp, Base, VjpTwice, BaseTwice };
constexpr const char* kWays[] = {
    "f(in(0))",
    "jvp(f, in(0), in(1)).tangents",
    "vjp(f, in(0)).pullback(in(1))",
    "autograd::grad(f(leaves), leaves, in(1))",
    "vjp([](xs, us) { return vjp(f, xs).pullback(us); }, {in(0), in(1)}).pullback(in(2))",
    ("autograd::grad(autograd::grad(f(leaves), leaves, in(1), {.create_graph = true}), {leaves, in(1)}, "
     "in(2))")};
bool twice(Way w) { return w >= Way::VjpTwice; }

Tensors joined(Tensors a, const Tensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Tensors copies(Tensors ts) {
  for (Tensor& t : ts) t = strided_copy(t);
  return ts;
}
Tensors part(const Tensors& ts, size_t from, size_t n) {
  return {ts.begin() + long(from), ts.begin() + long(from + n)};
}

/// The identity, with a formula that an operator refuses.
Function failing_backward() {
  return custom_vjp(
      [](const Tensors& xs) { return std::pair(Tensors{neg(neg(xs[0]))}, Tensors()); },
      [](const Tensors&, const Tensors& us) { return Tensors{make_view(us[0], Dims{-1}, Dims{1}, 0)}; });
}

/// The operator of the case and a call that makes NaN of infinities; derived in some way, within or around
/// vmaps.
struct WatchedProgram {
  Case& c;
  std::vector<Case::Slot> slots = c.subset(c.inexact());
  size_t n = slots.size();
  Way way = Way(c.draw.below(6));
  uint32_t tail = c.draw.below(8);  ///< 4: writes to the first input, whose mapped dims may be any
  bool inside = false;              ///< the vmap is of f, not of its derivative
  bool fails = false;               ///< the formula of what f calls last raises
  std::vector<Batch> maps;          ///< outermost first
  Tensors inputs;                   ///< primals; tangents or cotangents; cotangents of those
  size_t m = 0;                     ///< results of f
  explicit WatchedProgram(Case& drawn) : c(drawn) {}
  bool draw();
  void aim(uint32_t at, uint32_t which);

  Tensors own(const Tensors& xs) const {
    const auto call = [this](const Tensors& ts) { return call_boxed(c.op, c.with(slots, ts)); };
    return anomaly_law::forward_call(call, xs);
  }
  Tensor ended(const Tensor& y) const {
    const auto call = [this](const Tensors& ys) {
      if (tail == 4) return Tensors{mul_(ys[0], 0.0)};
      return Tensors{tail == 1 ? ys[0] * 0.0 : tail == 2 ? ys[0] - ys[0] : neg(ys[0])};
    };
    return anomaly_law::forward_call(call, {y})[0];
  }
  const char* ending() const { return tail == 1 ? "mul" : tail == 2 ? "sub" : tail == 3 ? "neg" : "mul_"; }
  Tensors f(const Tensors& xs) const {
    Tensors ys = own(xs);
    if (tail && !ys.empty()) ys.push_back(ended(tail == 4 ? xs[0] : ys[0]));
    if (fails && !ys.empty()) ys[0] = anomaly_law::forward_call(failing_backward(), {ys[0]})[0];
    return ys;
  }
  Function mapped_f() const {
    const Function g = [this](const Tensors& xs) { return f(xs); };
    if (!inside) return g;
    return vmap(
        g,
        {{maps[0].in_dims.begin(), maps[0].in_dims.begin() + long(n)}, {0}, Randomness::Error, maps[0].size});
  }
  Tensors derived(const Tensors& in) const {
    const Function g = mapped_f();
    const Tensors xs = part(in, 0, n), second = part(in, n, way == Way::Value ? 0 : way == Way::Jvp ? n : m);
    const auto pulled = [&](const Tensors& ts) { return vjp(g, part(ts, 0, n)).pullback(part(ts, n, m)); };
    switch (way) {
      case Way::Value: return g(xs);
      case Way::Jvp: {
        const JvpResult r = jvp(g, xs, second);
        return joined(r.values, r.tangents);
      }
      case Way::Vjp: return pulled(in);
      case Way::VjpTwice: return vjp(pulled, part(in, 0, n + m)).pullback(part(in, n + m, n));
      default: break;
    }
    Tensors leaves, us = second, out;
    for (const Tensor& x : xs) leaves.push_back(requires_grad(x));
    if (way == Way::BaseTwice)
      for (Tensor& u : us) u = requires_grad(u);
    const LiveRoots roots(g(leaves), us);
    if (roots.ys.empty()) return {};
    out = autograd::grad(roots.ys, leaves, roots.us, {way == Way::BaseTwice, true});
    if (way == Way::BaseTwice) {
      Tensors live, gs;
      for (size_t k = 0; k < n; ++k)
        if (out[k].defined() && is_grad_required(out[k])) live.push_back(out[k]), gs.push_back(in[n + m + k]);
      out = live.empty() ? live : autograd::grad(live, joined(leaves, us), gs, {false, true});
    }
    std::erase_if(out, [](const Tensor& g) { return !g.defined(); });
    for (Tensor& g : out) g = detach(g);
    return out;
  }
  Tensors run() const {
    Function g = [this](const Tensors& in) { return derived(in); };
    if (!inside)
      for (size_t k = maps.size(); k-- > 0;)
        g = vmap(g, {maps[k].in_dims, {0}, Randomness::Error, maps[k].size});
    return g(copies(inputs));
  }
  std::string cpp() const;
};

/// `t` with another number at one element.
Tensor spoiled(const Tensor& t, uint32_t at, double value) {
  const Tensor out = strided_copy(t);
  if (out.numel() == 0) return out;
  visit_dtype(out.dtype(), [&]<class Tag>(Tag) {
    each_element(out, [&, left = int64_t(at) % out.numel()](int64_t offset) mutable {
      if (left-- == 0) static_cast<typename Tag::type*>(out.raw_data())[offset] = typename Tag::type(value);
    });
  });
  return out;
}

/// One infinity where nothing else is spoiled: in the input that is written, whose mapped dims are not in
/// front, or in the last cotangents, which meet what formulas have recorded. Where any input is spoiled by
/// lot, one case in ten thousand has its only NaN in a write to lanes that lie so.
void WatchedProgram::aim(uint32_t at, uint32_t which) {
  const size_t first = tail == 4 ? 0 : n + m, last = tail == 4 ? 1 : twice(way) ? inputs.size() : 0;
  if (first >= last) return;
  Tensor& x = inputs[first + which / 2 % (last - first)];
  x = spoiled(x, at,
              which % 2 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
}

bool WatchedProgram::draw() {
  if (n == 0) return false;
  inputs = c.values(slots);
  // Results need not depend on what has no elements.
  if (std::ranges::all_of(inputs, [](const Tensor& x) { return x.numel() == 0; })) way = Way::Value;
  if (way == Way::Value) tail = std::min(tail, 4u);
  else if (tail >= 4) tail %= 2;
  const bool base = way == Way::Base || way == Way::BaseTwice;
  const uint32_t depth = c.draw.below(3), rotate = may_rotate(c);
  const auto map = [&] {
    const size_t all = inputs.size();
    const std::vector<bool> some = draw_mapped(c.draw, all);
    const bool whole = !c.draw.one_in(4);
    maps.insert(maps.begin(), draw_batch(c.draw, inputs, whole ? std::vector<bool>(all, true) : some,
                                         1 + c.draw.below(3), rotate));
    inputs = maps.front().xs;
  };
  inside = depth && (c.draw.flag() || base);
  if (inside) map();
  Tensors ys;
  if (status_of([&] { ys = mapped_f()(copies(part(inputs, 0, n))); }).raised || ys.empty()) return false;
  m = ys.size();
  const Tensors xs = inputs,
                second = way == Way::Value ? Tensors() : directions(c, way == Way::Jvp ? xs : ys);
  inputs = joined(inputs, second);
  if (twice(way)) inputs = joined(inputs, directions(c, xs));
  if (inside) {
    InDims& dims = maps[0].in_dims;
    if (way != Way::Value && way != Way::Jvp) dims.insert(dims.end(), m, 0);
    for (size_t k = 0; dims.size() < inputs.size(); ++k) dims.push_back(dims[k]);
  } else
    for (uint32_t k = base ? 0 : depth; k > 0; --k) map();
  static const double kInf = std::numeric_limits<double>::infinity();
  const double values[] = {kInf, 0, -kInf, 0, -1, 0, way <= Way::Jvp ? std::nan("") : 1, kInf};
  const uint32_t at = c.draw.word(), which = c.draw.word(), how = c.draw.word();
  for (size_t k = 0; k < inputs.size() && which % 4 == 3; ++k)
    if (which >> (2 + k % 28) & 1) inputs[k] = spoiled(inputs[k], at, values[how >> (3 * (k % 10)) & 7]);
  if (which % 4 == 1 || (tail == 4 && which % 4 == 0)) aim(at, which / 4);
  return true;
}

/// Where a formula raises, anomaly mode takes nothing from what the error says, neither its code nor the
/// levels, and puts the forward call behind it.
Finding unlike_without(const WatchedProgram& p) {
  const Status plain = status_of([&] { p.run(); });
  const Status watched = status_of([&] {
    const AnomalyMode on;
    p.run();
  });
  if (watched.raised != plain.raised || (plain.raised && watched.code != plain.code))
    return "where a formula raises: " + str(watched).text() + ", without anomaly mode " + str(plain);
  if (!watched.text.starts_with(plain.text))
    return "an error of a formula, \"" + plain.text + "\", becomes \"" + watched.text + "\"";
  if (plain.raised && watched.text.find("was recorded by", plain.text.size()) == std::string::npos)
    return "an error of a formula does not tell of the forward call: " + watched.text;
  return "";
}

std::string WatchedProgram::cpp() const {
  std::string out =
      cpp_declarations(c.args) + cpp_tensors("x", inputs) +
      format("  const AnomalyMode on;\n  // f: {} of {} tensors, then {}{}\n  // {}{}\n", c.op.name, n,
             tail ? ending() : "nothing", fails ? ", then neg(neg(y)) with a formula that raises" : "",
             kWays[size_t(way)], inside ? ", f being vmap(f)" : "");
  for (const Batch& b : maps) out += format("  // vmap of {} lanes, {}\n", b.size, cpp_dims(b.in_dims));
  return out + "  for (const Tensor& y : Tensors" + cpp_names("x", inputs.size()) +
         ") std::cout << str(y) << '\\n';\n";
}

/// What may be said of a program's NaN, by plain runs of single calls in single lanes: places by the order in
/// which calls give them.
class Witness {
 public:
  explicit Witness(const WatchedProgram& p) : p_(p) { lanes(p.inputs, 0, {NamedLanes()}); }
  /// One of them is right; none: there is no NaN.
  std::set<NanPlace> expected() const {
    for (const auto& [order, places] : places_)
      if (!places.empty() && !excused_.contains(order.first)) return places;
    return {};
  }

 private:
  /// `named`: how the lanes may be named; those of what is not mapped are not.
  void lanes(const Tensors& ins, size_t depth, const std::vector<NamedLanes>& named) {
    if (depth == p_.maps.size()) return one_lane(ins, named);
    const Batch& b = p_.maps[depth];
    const bool all = std::ranges::find(b.in_dims, kNone) == b.in_dims.end() &&
                     std::ranges::all_of(ins, [](const Tensor& t) { return t.numel() > 0; });
    const size_t level =
        depth + (p_.inside && p_.way != Way::Value && p_.way != Way::Base && p_.way != Way::BaseTwice
                     ? p_.way == Way::VjpTwice ? 3 : 2
                     : 1);
    for (int64_t i = 0; i < b.size; ++i) {
      std::vector<NamedLanes> inner = all ? std::vector<NamedLanes>() : named;
      for (NamedLanes l : named) {
        l.insert(l.begin(), {format("vmap#{}", level), i});
        inner.push_back(std::move(l));
      }
      lanes(lane({b.size, ins, b.in_dims}, i), depth + 1, inner);
    }
  }

  void note(int call, size_t result, NanPlace said, const Tensor& t, const std::vector<NamedLanes>& lanes) {
    said.type = type_str(t);
    for (size_t at : nan_at(t)) {
      said.index.assign(size_t(t.rank()), 0);
      for (int d = t.rank() - 1; d >= 0; at /= size_t(t.size(d)), --d)
        said.index[size_t(d)] = int64_t(at % size_t(t.size(d)));
      for (const NamedLanes& l : lanes) {
        said.lanes = l;
        places_[{call, result}].insert(said);
      }
    }
  }

  /// A call and its results, which are kept; its tangents too.
  void call(int number, const std::string& name, const Function& f, Tensors& xs, Tensors& ts,
            const std::vector<NamedLanes>& lanes) {
    if (any_nan(xs) || any_nan(ts)) excused_.insert(number);
    const JvpResult r = ts.empty() ? JvpResult{f(xs), {}} : jvp(f, xs, ts);
    const std::string level = format("jvp#{}", p_.inside ? 1 : 1 + p_.maps.size());
    for (size_t k = 0; k < r.values.size(); ++k) {
      note(number, 2 * k, {FoundNaN::Result, name}, r.values[k], lanes);
      if (!ts.empty()) note(number, 2 * k + 1, {FoundNaN::Result, name, {}, level}, r.tangents[k], lanes);
    }
    xs = r.values, ts = r.tangents;
  }

  void one_lane(const Tensors& ins, const std::vector<NamedLanes>& lanes) {
    const Function own = [this](const Tensors&xs) { return p_.own(xs); },
                   ended = [this](const Tensors&ys) { return Tensors{p_.ended(ys[0])}; };
    const Tensors xs = part(ins, 0, p_.n);
    Tensors ys = xs, ts = p_.way == Way::Jvp ? part(ins, p_.n, p_.n) : Tensors();
    call(0, p_.c.op.name, own, ys, ts, lanes);
    const Tensors first(ys.begin(), ys.begin() + 1);
    if (p_.tail) {
      Tensors y = p_.tail == 4 ? copies({xs[0]}) : first, t = ts.empty() ? ts : part(ts, 0, 1);
      call(1, p_.ending(), ended, y, t, lanes);
    }
    if (p_.way == Way::Vjp || p_.way == Way::Base) backward(xs, first, part(ins, p_.n, p_.m), lanes);
  }

  void backward(const Tensors& xs, const Tensors& first, Tensors us, const std::vector<NamedLanes>& lanes) {
    const Op& op = p_.c.op;
    // Which operators make up another one, and a batch rule, are their own affair.
    const bool exact = !op.composite && !p_.inside;
    const auto say = [&](int call, size_t k, const NanPlace& said, const Tensor& t) {
      if (exact) note(call, k, said, t, lanes);
      else if (any_nan({t})) places_[{2, 0}].insert(NanPlace());
    };
    if (p_.tail) {
      const Tensor more =
          vjp([this](const Tensors& ys) { return Tensors{p_.ended(ys[0])}; }, first).pullback({us.back()})[0];
      if (p_.tail == 1) say(2, 0, {FoundNaN::Formula, "mul", "a"}, more);
      // Of complex infinities: -1 times inf + 0i.
      const Function minus = [&](const Tensors& ys) { return Tensors{first[0] - ys[0]}; };
      if (p_.tail == 2)
        say(2, 0, {FoundNaN::Formula, "sub", "b"}, vjp(minus, first).pullback({us.back()})[0]);
      us.pop_back();
      us[0] = us[0] + more;
      say(3, 0, {FoundNaN::Cotangent, op.name}, us[0]);
    }
    const Tensors gs = vjp([this](const Tensors& ts) { return p_.own(ts); }, xs).pullback(us);
    for (size_t k = 0; k < gs.size(); ++k)
      say(4, 0, {FoundNaN::Formula, op.name, std::string(op.schema.params[size_t(p_.slots[k].param)].name)},
          gs[k]);
  }

  const WatchedProgram& p_;
  std::map<std::pair<int, size_t>, std::set<NanPlace>> places_;
  std::set<int> excused_;
};

Verdict anomalies_are_named(Case& c) {
  WatchedProgram p(c);
  if (!p.draw()) return Verdict::discard();
  Tensors plain, watched;
  std::set<NanPlace> expected;
  if (status_of([&] { plain = p.run(); }).raised) return Verdict::discard();
  if (status_of([&] { expected = Witness(p).expected(); }).raised) return Verdict::discard();
  if (expected.empty() && p.way >= Way::Vjp && any_nan(plain)) expected = {NanPlace()};
  // A rule for all lanes at once may multiply complex infinities otherwise than that for one.
  if (p.inside && p.way == Way::Jvp && !any_nan(p.inputs) && any_nan(plain) == expected.empty())
    return Verdict::discard();
  const Status s = status_of([&] {
    const AnomalyMode on;
    watched = p.run();
  });
  const FoundNaN* const found = s.because<FoundNaN>();
  Finding wrong;
  if (!s.raised) wrong = expected.empty() ? differs(watched, plain) : "nothing raised";
  else if (s.code != ErrorCode::Value) wrong = str(s);
  else if (expected.empty()) {
    // A NaN on the way that nobody sees in the end.
    SeesNaN seen;
    const ScopedObserver scope(&seen);
    p.run();
    if (!seen.seen || p.way < Way::Vjp || !(p.inside || c.op.composite || twice(p.way))) wrong = str(s);
  } else if (!found || std::ranges::none_of(expected, [&](const NanPlace& p) { return p.is_right(*found); }))
    wrong = str(s);
  if (wrong.empty() && found)
    for (const std::string& said : {found->op, found->input, found->type})
      if (s.text.find(said) == std::string::npos) wrong = "the text lacks \"" + said + "\": " + str(s);
  if (wrong.empty() && found && found->site && forward_calls_have_names())
    if (const auto names = call_site_functions(*found->site); !names.empty() && !names_forward_call(names))
      wrong = "another call is named than the forward one: " + str(s);
  if (wrong.empty() && !s.raised && p.way >= Way::Vjp && c.draw.one_in(3)) {
    p.fails = true;
    wrong = unlike_without(p);
  }
  const int depth = int(p.maps.size()) + (p.way == Way::Value ? 0 : twice(p.way) ? 2 : 1);
  if (wrong.empty()) return Verdict::pass(depth);
  for (const NanPlace& e : expected) wrong += "\n  expected: " + e.str();
  return Verdict::fail(wrong, p.cpp(), depth);
}

bool watchable(const Op& op) {
  return both_ways(op) && !op.has(kRandom) && !op.has(kUnspecified) && !op.takes_functions &&
         op.shape != ShapeClass::Dynamic;
}
}  // namespace

void add_anomaly_laws(std::vector<Law>& laws) {
  laws.push_back(
      {95,
       "anomalies_are_named",
       "derivative",
       "In anomaly mode a program without NaN gives the same bits; one that makes a NaN is refused "
       "with the forward call, the element and the lanes of the first, in values, tangents or "
       "cotangents; a NaN passed in is nobody's. What a formula raises is said as without, and the forward "
       "call behind it.",
       {.dtypes = kInexact, .tame = true, .max_numel = 6},
       false,
       watchable,
       anomalies_are_named,
       2});
}

}  // namespace lamella::verify
