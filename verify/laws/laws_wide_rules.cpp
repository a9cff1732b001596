// The law of range: a rule computes in the dtype of its arguments what it computes in f128, wherever that is
// a number of the dtype; what it multiplies or divides on the way neither overflows nor vanishes.
#include <algorithm>
#include <cmath>
#include <optional>
#include <quadmath.h>

#include "lamella/ops/functions/factory.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/jvp.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/modes.h"
#include "lamella/verify/oracle/oracle.h"
#include "lamella/verify/oracle/real_function.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

/// What is derived, and along which tangents and cotangents.
struct Derived {
  Tensors xs, ts, us;
  enum class Order : uint32_t { Forward, Backward, ForwardOfBackward, BackwardTwice } order;
  bool second() const { return order >= Order::ForwardOfBackward; }
};

/// Tangents, cotangents, or either of cotangents, in the dtype of the arguments.
Tensors derivatives(const Function& f, const Derived& d) {
  if (d.order == Derived::Order::Forward) return jvp(f, d.xs, d.ts).tangents;
  const Function pulled = [&f, &d](const Tensors& xs) { return vjp(f, xs).pullback(d.us); };
  if (d.order == Derived::Order::Backward) return pulled(d.xs);
  if (d.order == Derived::Order::ForwardOfBackward) return jvp(pulled, d.xs, d.ts).tangents;
  return vjp(pulled, d.xs).pullback(d.ts);
}

/// Where the same rule is asked: f128 on the Reference column; for halves also f64, which is as wide to them
/// and much faster.
struct Wider {
  bool reference = true;
  Tensors of(const Tensors& ts) const {
    Tensors out;
    for (const Tensor& t : ts)
      out.push_back(!t.defined() ? t : reference ? to_reference(t) : narrow(to_reference(t), DType::F64));
    return out;
  }
  /// The operator there, its other arguments, too.
  Function function(Case& c) const {
    const Values here = c.args;
    if (reference) c.args = to_reference(here), c.find_tensors();
    Function f = c.smooth_function(c.inexact());
    c.args = here, c.find_tensors();
    return f;
  }
};

/// Each part a roundoff greater or less.
Tensors shaken(const Tensors& wide, double u, size_t sample) {
  Tensors out;
  uint64_t state = sample * uint64_t{2862933555777941757u} + 3037000493u;
  for (const Tensor& t : wide) {
    Reals v = flatten({t});
    for (f128& p : v) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      p *= state >> 63 ? 1 + f128(u) : 1 - f128(u);
    }
    size_t from = 0;
    out.push_back(unflatten(v, from, t));
  }
  return out;
}

/// Derivatives there, and how far each part moves when numbers on the way are rounded another way: what a
/// rule may lose. For the first order of a pointwise operator only the arguments are: there a rule that
/// cancels is a poor one. Else all operands of what rules call (NOTE: [shaking]): layer_norm's is a
/// difference, and the product rule adds what may cancel (hypot).
struct Expected {
  Reals value, moves;
};
Reals moved(const Op& op, const Function& f, const Derived& d, double u, size_t sample) {
  if (op.shape == ShapeClass::Broadcast && !d.second())
    return flatten(derivatives(f, {shaken(d.xs, u, sample), d.ts, d.us, d.order}));
  Shaken mode(u, sample);
  const Level level(mode);
  return flatten(derivatives(f, d));
}
/// Of so many ways to round one in 2^16 moves no part of a difference of two numbers.
constexpr size_t kWays = 16;
void find_moves(Expected& e, const Op& op, const Function& f, const Derived& d, double u) {
  for (size_t k = 0; k < kWays; ++k) {
    Reals beside;  // of a matrix that has no factor any more, none
    (void)status_of([&] { beside = moved(op, f, d, u, k); });
    for (size_t i = 0; i < e.value.size(); ++i) {
      const f128 gap = i < beside.size() ? fabsq(beside[i] - e.value[i]) : kInfinity;
      e.moves[i] = gap == gap ? fmaxq(e.moves[i], gap) : kInfinity;
    }
  }
}

/// Nothing of the plain call is lost: then a rule that uses its results has them.
bool results_kept(const Tensors& got, const Tensors& wide) {
  const Reals w = flatten(wide);
  size_t at = 0;
  for (const Tensor& y : got) {
    const DType d = to_real(y.dtype());
    const f128 least = f128(smallest_number(d)) / f128(unit_roundoff(d));
    for (const f128 v : flatten({y})) {
      if (at == w.size() || !(v - v == 0)) return false;
      const f128 exact = fabsq(w[at++]);
      if (exact != 0 && exact < least) return false;
    }
  }
  return at == w.size();
}

/// What all dtypes of a case hold with most of their digits, and a few steps more.
struct Range {
  f128 least = 0, largest = kInfinity, faint = 0, half = kInfinity;
  double u = 0;  ///< the coarsest roundoff
  void narrow(const Tensors& ts) {
    for (const Tensor& t : ts) {
      const DType d = to_real(t.dtype());
      u = std::max(u, unit_roundoff(d));
      least = fmaxq(least, f128(smallest_number(d)) / f128(unit_roundoff(d)) * 16);
      faint = fmaxq(faint, is_half(d) ? f128(smallest_number(d)) * 64
                                      : least);  // of halves among the subnormal ones, too
      largest = fminq(largest, f128(largest_number(d)) / 16);
      half = fminq(half, half_range(d));
    }
  }
  bool holds(f128 v) const { return fabsq(v) >= least && fabsq(v) <= largest; }
  bool hints(f128 v) const { return fabsq(v) >= faint && fabsq(v) <= largest; }
  bool holds_all(const Tensors& ts) const {
    return std::ranges::all_of(flatten(ts), [this](f128 v) { return v == 0 || holds(v); });
  }
  bool holds_squares(const Tensors& ts) const {
    const auto is_so = [this](f128 v) { return v == 0 || (fabsq(v) <= half && fabsq(v) * half >= 1); };
    return std::ranges::all_of(flatten(ts), is_so);
  }
};

/// One element: of a complex one both parts, each as large as its modulus allows. What is lost is seen where
/// most digits are; a number is due wherever there is one.
bool is_right(const f128* got, const f128* want, const f128* moves, size_t width, const Range& range) {
  f128 size = 0, move = 0, gap = 0;
  bool finite = true;
  for (size_t k = 0; k < width; ++k) {
    size = hypotq(size, want[k]), move = fmaxq(move, moves[k]), gap = fmaxq(gap, fabsq(got[k] - want[k]));
    finite = finite && got[k] - got[k] == 0;
  }
  if (!(size <= range.largest) || move > fmaxq(size / 64, range.least)) return true;
  if (!finite) return false;
  return move > size / 64 || gap <= fmaxq(size / 4, range.hints(size) ? 0 : range.least);
}

Finding outside_of(const Tensors& got, const Expected& want, const Range& range) {
  size_t at = 0;
  for (size_t k = 0; k < got.size(); ++k) {
    if (!got[k].defined()) return {What::Results, format("result {} is undefined", k)};
    const Reals parts = flatten({got[k]});
    const size_t width = is_complex(got[k].dtype()) ? 2 : 1;
    if (at + parts.size() > want.value.size()) return {What::Results, "more parts than by the wider rule"};
    for (size_t i = 0; i < parts.size(); i += width, at += width) {
      if (is_right(&parts[i], &want.value[at], &want.moves[at], width, range)) continue;
      const size_t off =
          width == 2 && fabsq(parts[i] - want.value[at]) <= fabsq(parts[i + 1] - want.value[at + 1]);
      const f128 is = parts[i + off], due = want.value[at + off];
      return {number_kind(is, due), format("result {}, part {}: got {}, by the same rule in more digits {}",
                                           k, i + off, double(is), double(due))};
    }
  }
  if (at != want.value.size()) return {What::Results, "fewer parts than by the wider rule"};
  return "";
}

/// For a second derivative squares of what is given, and those of first order, are in the range, too, or 0.
bool slopes_held(const Function& wide, Derived d, const Range& range) {
  if (!d.second()) return true;
  if (!range.holds_squares(d.xs)) return false;
  for (const auto order : {Derived::Order::Forward, Derived::Order::Backward}) {
    d.order = order;
    if (!range.holds_all(derivatives(wide, d))) return false;
  }
  return true;
}

Tensors ones_of(const Tensors& like) {
  Tensors out;
  for (const Tensor& t : like) out.push_back(ones_like(t));
  return out;
}

/// Tensors like these, of 0 and one other number.
Tensors choices_of(Draw& d, const Tensors& like) {
  const int other = 1 << 2 * d.below(3);
  uint64_t state = d.word() * uint64_t{2862933555777941757u} + 3037000493u;
  Tensors out;
  for (const Tensor& t : like) {
    Reals parts(part_count(t));
    for (f128& p : parts) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      p = int(state >> 63) * other;
    }
    out.push_back(make_tensor(t.sizes(), t.dtype()));
    write_parts(out.back(), parts.data());
  }
  return out;
}

Verdict compared(Case& c, Subject& s, bool line) {
  Range range;
  range.narrow(s.xs), range.narrow(s.ys);
  DType kept = coarsest_dtype(s.ys);
  if (is_half(kept) && c.op.shape != ShapeClass::Broadcast) kept = DType::F32;
  const bool only_complex = c.op.overflows_in.complex && !is_complex(coarsest_dtype(s.ys));
  // Of what broadcasts, derivatives are sums, whose terms are asked where nothing does.
  const auto spread = [&s](const Tensor& x) { return x.numel() != s.ys[0].numel(); };
  if (c.op.shape == ShapeClass::Broadcast && std::ranges::any_of(s.xs, spread)) return Verdict::discard();
  if (!range.holds_all(s.xs) || (!only_complex && may_overflow_inside(c, kept))) return Verdict::discard();
  const Wider wider{!line};
  Derived d{s.xs, line ? choices_of(c.draw, s.xs) : ones_of(s.xs),
            line ? choices_of(c.draw, s.ys) : ones_of(s.ys), Derived::Order(c.draw.below(4))};
  const size_t along = c.draw.below(uint32_t(s.xs.size()));  // in one input: of x - x nothing would be left
  for (size_t k = 0; k < s.xs.size(); ++k)
    if (k != along) d.ts[k] = Tensor();
  const Tensors got = derivatives(s.f, d);
  const Function f = wider.function(c);
  const Derived there{wider.of(d.xs), wider.of(d.ts), wider.of(d.us), d.order};
  std::optional<ReferenceRun> run;
  if (wider.reference) run.emplace();
  Tensors exact;  // none where a matrix has a factor by roundings alone
  if (status_of([&] { exact = f(there.xs); }).raised) return Verdict::discard();
  if (!results_kept(s.ys, exact) || !slopes_held(f, there, range)) return Verdict::discard();
  Expected want{flatten(derivatives(f, there)), {}};
  want.moves.assign(want.value.size(), 0);
  Finding wrong = outside_of(got, want, range);
  if (!wrong.empty()) find_moves(want, c.op, f, there, range.u), wrong = outside_of(got, want, range);
  run.reset();
  if (wrong.empty()) return Verdict::pass(1);
  static constexpr const char* kNames[] = {
      "tangents: ", "cotangents: ", "tangents of cotangents: ", "cotangents of cotangents: "};
  const Finding said = kNames[int(d.order)] + wrong;
  const std::string what = format("{} of {} elements: ", s.xs[0].dtype(), s.xs[0].numel());
  if (line || d.second()) return Verdict::fail(said, "  // " + what + said.text() + "\n", 1);
  return Verdict::fail(
      said, d.order == Derived::Order::Forward ? jvp_program(c, s, d.ts, {}) : vjp_program(c, s, d.us, {}),
      1);
}

/// A line of halves, longer than sums of them can count: equal numbers, any, or a few large ones among them.
Tensor line_of_halves(Draw& d) {
  const uint32_t mix = d.below(4);
  const DType dtype = d.flag() ? DType::BF16 : DType::F16;
  uint64_t state = d.word() * uint64_t{2862933555777941757u} + 3037000493u;
  Reals parts(d.flag() ? 66000 + d.below(500) : 4500 + d.below(500));
  const f128 all = d.below(3) / f128(2);
  for (f128& p : parts) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const f128 any = f128(int64_t(state >> 40)) / (1 << 23) - 1;  // -1 to 1
    p = mix == 0     ? all
        : mix == 1   ? (fabsq(any) < f128(1) / 64 ? 0 : any)
        : mix == 2   ? 1 + any / 512
        : state % 97 ? any - 2
                     : any + 2;
  }
  const Tensor out = make_tensor(Dims{int64_t(parts.size())}, dtype);
  write_parts(out, parts.data());
  return out;
}

/// The operator along the one dim of such a line.
Verdict of_a_line(Case& c) {
  c.args[c.op.tensor_params[0]] = line_of_halves(c.draw);
  for (size_t i = 0; i < c.args.size(); ++i) {
    Value& v = c.args[i];
    if (std::holds_alternative<DType>(v)) v = Value();
    if (c.op.schema.params[i].role != ParamRole::Dim || is_none(v)) continue;
    if (std::holds_alternative<Dims>(v)) v = Dims{0};
    else v = int64_t{0};
  }
  c.find_tensors();
  Subject s;
  s.slots = c.inexact(), s.xs = c.values(s.slots), s.f = c.smooth_function(s.slots);
  if (status_of([&] { s.ys = s.f(s.xs); }).raised || s.ys.empty()) return Verdict::discard();
  return compared(c, s, true);
}

/// Powers of two up to the square root of the range or near its ends, ones and zeros among them: products and
/// quotients leave the range and come back. Where many are multiplied, of its eighth root. A pointwise
/// operator mostly gets one for all elements, since a case is asked where all are in the range; of others
/// small ones may come first and large ones last, or the other way round.
void put_powers(Case& c) {
  const uint32_t how = c.draw.below(4);
  const bool far = how == 3, anywhere = how & 1;
  Tensors xs = c.values(c.inexact());
  for (Tensor& x : xs) {
    Reals parts(part_count(x));
    const bool many = c.op.shape == ShapeClass::Composite || c.op.shape == ShapeClass::Linalg;
    const int root = ilogbq(half_range(to_real(x.dtype()))) / (many ? 4 : 1);
    const int most = far ? std::max(2 * root - 6, root) : root;
    const bool alike = c.op.shape == ShapeClass::Broadcast && !c.draw.one_in(3);
    uint32_t w = c.draw.word();
    for (f128& p : parts) {
      if (!alike && &p != &parts[0]) w = c.draw.word();
      const int near_end = most - int(w / 64 % uint32_t(anywhere ? most : most / 4 + 1));
      const int near_one = int(w / 64 % 3) - 1;
      const int e = w / 16 % 4 == 0 ? near_one : w / 16 % 4 == 1 ? -near_end : near_end;
      p = w % 8 == 7 ? 0 : ldexpq(w & 8 ? -1 : 1, e);
    }
    if (c.op.shape != ShapeClass::Broadcast && c.draw.one_in(4)) {
      const bool up = c.draw.flag();
      std::ranges::sort(parts,
                        [up](f128 a, f128 b) { return up ? fabsq(a) < fabsq(b) : fabsq(b) < fabsq(a); });
    }
    x = make_tensor(x.sizes(), x.dtype());
    write_parts(x, parts.data());
  }
  c.args = c.with(c.inexact(), xs), c.find_tensors();
}

bool has_lines(const Op& op) {
  const bool by_dim = op.shape == ShapeClass::Reduce || op.shape == ShapeClass::AlongDim;
  const auto is_dim = [](const Param& p) { return p.role == ParamRole::Dim; };
  // A product of so many leaves each range.
  return by_dim && op.overflows_in.size != Inside::Powers && op.tensor_params.size() == 1 &&
         std::ranges::count_if(op.schema.params, is_dim) == 1;
}

Verdict rules_keep_range(Case& c) {
  if (has_lines(c.op) && c.draw.one_in(12)) return of_a_line(c);
  if (c.inexact().empty()) return Verdict::discard();
  if (c.draw.flag()) put_powers(c);
  Subject s;
  s.slots = c.inexact(), s.xs = c.values(s.slots), s.f = c.smooth_function(s.slots);
  if (!finite(s.xs)) return Verdict::discard();
  if (status_of([&] { s.ys = s.f(s.xs); }).raised || s.ys.empty()) return Verdict::discard();
  return compared(c, s, false);
}

bool has_rules(const Op& op) { return both_ways(op) && stays_on_device(op); }

}  // namespace

void add_wide_rule_laws(std::vector<Law>& laws) {
  laws.push_back(
      {179,
       "rules_keep_range",
       "derivative",
       "Derivatives of first and second order are, within a quarter, those by the same rule in f128 "
       "(of long lines of halves in f64), where these, and what they are made of, are numbers "
       "within the dtype's range that do not hang on roundings.",
       {.dtypes = kInexact, .layouts = false, .max_numel = 12, .mixed = false},
       true,
       has_rules,
       rules_keep_range,
       8});  // four orders, and numbers that are far out in one case of four
}

}  // namespace lamella::verify
