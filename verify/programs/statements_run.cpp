// Running statement programs: plainly, under engines, and in f128 with every result put off a little.
#include <algorithm>
#include <cmath>
#include <memory>
#include <quadmath.h>

#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/programs/statements.h"

namespace lamella::verify {

std::string_view name(StatementKind kind) {
  static constexpr std::string_view kNames[] = {"calls",        "views",        "writes in place",
                                                "out=",         "fresh memory", "handles let go",
                                                "custom rules", "scopes",       "hooks"};
  return kNames[int(kind)];
}

size_t Script::writes() const {
  size_t n = 0;
  for (const Statement& s : statements_) n += s.is_write();
  return n;
}

std::vector<int> Script::result_handles() const {
  std::vector<int> out;
  for (size_t k = 0; k < alive_.size(); ++k)
    if (alive_[k]) out.push_back(int(k));
  return out;
}

Tensors Script::fresh_captures() const {
  Tensors out;
  for (const Tensor& t : captures_) out.push_back(copy_as(t));
  return out;
}

void Script::execute(const Statement& s, Tensors& handles, bool wide, size_t index) const {
  if (s.kind == StatementKind::Drop) {
    handles[size_t(s.target())] = {};
    return;
  }
  if (s.kind == StatementKind::Fresh) {
    handles.push_back(wide ? to_reference(s.fresh) : plain_copy(s.fresh));
    return;
  }
  if (s.kind == StatementKind::Custom) {
    const CustomFunction& f = custom_functions()[s.custom];
    Tensors operands;
    for (const Statement::Link& l : s.links) operands.push_back(handles[size_t(l.handle)]);
    for (Tensor& t : (wide ? f.plain : f.ruled)(operands)) handles.push_back(std::move(t));
    return;
  }
  Values args = wide ? wide_args_[index] : s.args;
  for (const Statement::Link& l : s.links) entry(args, l.slot) = handles[size_t(l.handle)];
  const Tensors results = call_boxed(*s.op, args);
  for (size_t k = 0; k < s.kept.size(); ++k)
    if (s.kept[k]) handles.push_back(results[k]);
}

void Script::Seen::note(const Tensor& t) {
  geometry.push_back(t.rank());
  for (int d = 0; d < t.rank(); ++d) geometry.push_back(t.size(d));
  for (int d = 0; d < t.rank(); ++d) geometry.push_back(t.size(d) > 1 ? t.stride(d) : 0);
}

Finding Script::Seen::unlike(const Seen& want) const {
  const auto shown = [](const std::vector<int64_t>& all, size_t at) {
    if (at >= all.size()) return std::string("nothing");
    const auto rank = size_t(all[at]);
    return "sizes " + lamella::str(Dims(Ints(&all[at + 1], rank))) + ", strides " +
           lamella::str(Dims(Ints(&all[at + 1 + rank], rank)));
  };
  for (size_t at = 0, k = 0; at < geometry.size() || at < want.geometry.size(); ++k) {
    const std::string a = shown(geometry, at), b = shown(want.geometry, at);
    if (a != b) return format("result {} of the statements: got {}, expected {}", k, a, b);
    at += 1 + 2 * size_t(geometry[at]);
  }
  return "";
}

namespace {
/// Scopes that are open; they end in the order in which scopes do, also when something raises.
class Scopes {
 public:
  Scopes() = default;
  ~Scopes() {
    while (!open_.empty()) open_.pop_back();
  }
  Scopes(const Scopes&) = delete;
  void apply(ScopeKind kind) {
    if (kind == ScopeKind::End) open_.pop_back();
    else if (kind == ScopeKind::NoGrad) open_.push_back(std::make_shared<NoGrad>());
    else if (kind == ScopeKind::EnableGrad) open_.push_back(std::make_shared<EnableGrad>());
    else open_.push_back(std::make_shared<NoGradLevels>());
  }

 private:
  std::vector<std::shared_ptr<void>> open_;
};

void add_hook_to(const Tensor& t, double factor) {
  if (!is_grad_required(t)) return;
  add_hook(t, [factor](const Tensor& ct) { return factor == 1 ? Tensor() : mul(ct, factor); });
}
}  // namespace

void Script::hook(size_t index, const Tensors& handles, Seen* seen) const {
  const Statement& s = statements_[index];
  const Tensor& t = handles[size_t(s.target())];
  const bool others = seen && seen->leaves_are_shared && size_t(s.target()) < inputs_.size();
  if (!others) add_hook_to(t, s.factor);
  if (!s.retains || !is_grad_required(t) || is_leaf(t)) return;
  retain_grad(t);
  if (!seen) return;
  seen->retained.push_back(t);
  seen->hooks.push_back(index);
}

void Script::hook_leaves(const Tensors& leaves) const {
  for (const Statement& s : statements_)
    if (s.kind == StatementKind::Hook && size_t(s.target()) < leaves.size())
      add_hook_to(leaves[size_t(s.target())], s.factor);
}

bool Script::hooks_read_results() const {
  return std::ranges::any_of(statements_, [&](const Statement& h) {
    if (h.kind != StatementKind::Hook || h.factor == 1 || h.made_at < 0) return false;
    const Statement& s = statements_[size_t(h.made_at)];
    if (!s.op) return true;
    return std::ranges::any_of(s.op->base->vjp, [](const BoundFormula& f) {
      return std::ranges::any_of(f.saves, [](const BoundSave& b) { return b.kind == BoundSave::Result; });
    });
  });
}

bool Script::is_written_after(size_t hook) const {
  const int memory = storage_[size_t(statements_[hook].target())];
  for (size_t i = hook + 1; i < statements_.size(); ++i)
    if (statements_[i].is_write() && storage_[size_t(statements_[i].target())] == memory) return true;
  return false;
}

Tensor Script::hook_direction(size_t hook) const {
  const Tensor& t = sizes_[size_t(statements_[hook].target())];
  uint64_t state = seed_ + hook;
  return few_bits(t, state);
}

std::vector<bool> Script::constants(bool levels) const {
  std::vector<ScopeKind> open;
  std::vector<bool> out;
  bool now = false;
  for (const Statement& s : statements_) {
    if (s.kind == StatementKind::Scope) {
      if (s.scope == ScopeKind::End) open.pop_back();
      else open.push_back(s.scope);
      now = false;  // the innermost scope that says something of this engine
      for (const ScopeKind k : open)
        if (levels || k != ScopeKind::NoGradLevels) now = k != ScopeKind::EnableGrad;
    }
    const bool cuts = s.op && s.op->is_view() && s.op->vjp.empty();
    out.push_back(now || cuts);
  }
  return out;
}

bool Script::has_constants(bool levels) const {
  const std::vector<bool> all = constants(levels);
  for (size_t i = 0; i < statements_.size(); ++i) {
    const Statement& s = statements_[i];
    if (s.kind == StatementKind::Hook && !levels && s.factor != 1) return true;
    if (all[i] && (s.op || s.kind == StatementKind::Custom)) return true;
  }
  return false;
}

Tensors Script::run(const Tensors& xs, const Tensors& captures, Seen* seen) const {
  Tensors handles = xs;
  handles.insert(handles.end(), captures.begin(), captures.end());
  size_t known = handles.size();
  Scopes scopes;
  for (size_t i = 0; i < statements_.size(); ++i) {
    const Statement& s = statements_[i];
    if (seen) seen->at = i;
    if (s.kind == StatementKind::Scope) scopes.apply(s.scope);
    else if (s.kind == StatementKind::Hook) hook(i, handles, seen);
    else execute(s, handles, false, i);
    for (; seen && known < handles.size(); ++known) seen->note(handles[known]);
  }
  if (seen) seen->at = statements_.size();
  Tensors out;
  for (size_t k = 0; k < handles.size(); ++k)
    if (alive_[k]) out.push_back(std::move(handles[k]));
  return out;
}

namespace {

uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

void put_off(const Tensor& t, uint64_t& state) {
  each_part<f128>(t, [&](f128& part) {
    const uint64_t w = mixed(state += 0x9E3779B97F4A7C15u);
    const double e = std::ldexp(0.5 + double(w >> 12) * 0x1p-53, -30);
    part *= 1 + f128(w & 1 ? e : -e);
  });
}

f128 weighted(const Tensor& y, const Tensor& u) {
  f128 sum = 0;
  const auto* weight = static_cast<const double*>(u.raw_data());
  each_part<const f128>(y, [&](f128 part) { sum += part * *weight++; });
  return sum;
}

void Script::make_wide_args() const {
  if (wide_args_.empty())
    for (const Statement& s : statements_) wide_args_.push_back(s.op ? to_reference(s.args) : Values{});
}

f128 Script::wide_value(const Tensors& xs, uint32_t jitter) const {
  const WideDefault wide;
  make_wide_args();
  Tensors handles = xs;
  for (const Tensor& c : captures_) handles.push_back(wide_as(c));
  uint64_t state = jitter * uint64_t{0xD1B54A32D192ED03};
  if (jitter)
    for (const Tensor& t : handles) put_off(t, state);
  for (size_t i = 0; i < statements_.size(); ++i) {
    const Statement& s = statements_[i];
    const size_t known = handles.size();
    if (s.kind == StatementKind::Scope || s.kind == StatementKind::Hook) continue;
    execute(s, handles, true, i);
    if (!jitter || s.kind == StatementKind::View || s.kind == StatementKind::Drop) continue;
    if (s.is_write()) put_off(handles[size_t(s.target())], state);
    for (size_t k = known; k < handles.size(); ++k)
      if (handles[k].impl()->storage->unique()) put_off(handles[k], state);  // a composite may give a view
  }
  f128 sum = 0;
  for (size_t k = 0, r = 0; k < handles.size(); ++k)
    if (alive_[k]) sum += weighted(handles[k], weights_[r++]);
  return sum;
}

double dot(const Tensors& as, const Tensors& bs) {
  f128 sum = 0;
  for (size_t k = 0; k < as.size(); ++k) {
    if (!as[k].defined() || !bs[k].defined()) continue;
    std::vector<double> parts;
    each_part<const double>(bs[k], [&](double part) { parts.push_back(part); });
    size_t i = 0;
    each_part<const double>(as[k], [&](double part) { sum += f128(part) * parts[i++]; });
  }
  return double(sum);
}

namespace {
constexpr double kRoundings = 0x1p10 * 0x1p-53, kJitter = 0x1p30, kMostMoved = 0x1p20;
constexpr double kFirstStep = 0x1p-36, kSecondStep = 0x1p-28;
/// Part of the bound that a number's own size gives: most cases need no more, and the rest is costly.
constexpr double kQuick = kRoundings / 4;

bool near(double got, f128 want) { return std::fabs(double(got - want)) <= kQuick * std::fabs(double(want)); }
}  // namespace

f128 Differences::at(f128 h, const Tensors& ss, f128 k, uint32_t jitter) const {
  const WideDefault wide;
  Tensors xs, still;
  for (size_t i = 0; i < xs_.size(); ++i) {
    Tensor x = wide_as(xs_[i]);
    const auto move = [&](const Tensor& t, f128 step) {
      if (!t.defined() || step == 0) return;
      const auto* by = static_cast<const double*>(t.raw_data());
      each_part<f128>(x, [&](f128& part) { part += step * *by++; });
    };
    if (twin_) still.push_back(wide_as(xs_[i]));
    move(ts_[i], h);
    if (!ss.empty()) move(ss[i], k);
    xs.push_back(std::move(x));
  }
  if (twin_) {
    p_.make_wide_args();
    return twin_value(p_, levels_, std::move(xs), std::move(still), jitter, {hook_, by_, h});
  }
  return p_.wide_value(xs, jitter);
}

f128 Differences::slope(f128 h, uint32_t jitter) const {
  return (at(h, {}, 0, jitter) - at(-h, {}, 0, jitter)) / (2 * h);
}

f128 Differences::curve(const Tensors& ss, f128 h, uint32_t jitter) const {
  return (at(h, ss, h, jitter) - at(h, ss, -h, jitter) - at(-h, ss, h, jitter) + at(-h, ss, -h, jitter)) /
         (4 * h * h);
}

double Script::weight() const {
  double sum = 0;
  for (size_t k = 0; k < weights_.size(); ++k) {
    const auto* u = static_cast<const double*>(weights_[k].raw_data());
    each_part<const double>(values_[k],
                            [&](double y) { sum += std::fabs(*u++) * std::fmax(1, std::fabs(y)); });
  }
  return sum;
}

Expected Differences::bounded(f128 want, f128 own, const std::function<f128(uint32_t)>& again) const {
  double moved = std::fabs(double(want));
  for (const uint32_t j : {1u, 2u}) moved += kJitter * std::fabs(double(again(j) - want));
  // A tie that a step of 2^-30 breaks moves it by 2^30 steps: no rounding does that.
  const bool smooth = moved <= kMostMoved * (std::fabs(double(want)) + p_.weight());
  return {want, kRoundings * (moved + p_.weight()) + 2 * double(fabsq(own)), smooth};
}

Expected Differences::value() const {
  return bounded(at(0, {}, 0, 0), 0, [&](uint32_t j) { return at(0, {}, 0, j); });
}

Expected Differences::slope() const {
  const f128 want = slope(kFirstStep, 0);
  Expected out =
      bounded(want, slope(2 * kFirstStep, 0) - want, [&](uint32_t j) { return slope(kFirstStep, j); });
  const f128 here = at(0, {}, 0, 0), up = (at(kFirstStep, {}, 0, 0) - here) / kFirstStep,
             down = (here - at(-kFirstStep, {}, 0, 0)) / kFirstStep;
  out.smooth &= fabsq(up - down) <= 0x1p-24 * (fabsq(up) + fabsq(down) + p_.weight());
  return out;
}

Expected Differences::curve(const Tensors& ss) const {
  const f128 want = curve(ss, kSecondStep, 0), wider = curve(ss, 2 * kSecondStep, 0);
  Expected out = bounded(want, wider - want, [&](uint32_t j) { return curve(ss, kSecondStep, j); });
  out.bound += 0x1p-112 / (kSecondStep * kSecondStep) * std::fabs(double(at(0, {}, 0, 0)));
  out.smooth &= fabsq(wider - want) <= 0x1p-16 * (fabsq(wider) + fabsq(want) + p_.weight());
  // A function like x^2.5 at 0: twice the last step bounds what is left where each is at most half of the one
  // before.
  if (out.smooth && fabsq(wider - want) > kRoundings * p_.weight())
    out.smooth = 2 * fabsq(wider - want) <= fabsq(curve(ss, 4 * kSecondStep, 0) - wider);
  return out;
}

bool Differences::quick_value(double got) const { return near(got, at(0, {}, 0, 0)); }
bool Differences::quick_slope(double got) const { return near(got, slope(kFirstStep, 0)); }
bool Differences::quick_sum(double got, const std::vector<Differences>& slopes) {
  f128 want = 0;
  double size = 0;
  for (const Differences& d : slopes) {
    const f128 one = d.slope(kFirstStep, 0);
    want += one, size += std::fabs(double(one));
  }
  return std::fabs(double(got - want)) <= kQuick * size;
}
bool Differences::quick_curve(double got, const Tensors& ss) const {
  return near(got, curve(ss, kSecondStep, 0));
}

}  // namespace lamella::verify
