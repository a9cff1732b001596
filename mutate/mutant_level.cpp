// The level that perturbs or records the calls of a rule, and the rules that open it.
#include "lamella/mutate/mutant_level.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>

#include "lamella/mutate/mutant_changes.h"
#include "lamella/ops/batch.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/strided.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/run/runner.h"

namespace lamella::verify {

LiveBug live_bug;

namespace {

bool is_plain(const Tensor& t) { return !(t.keys() >> kAutogradKey) && t.device() == Device::CPU; }

void note_elements(CallTraits& traits, const Tensor& y) {
  if (!is_inexact(y.dtype())) return;
  const Tensor flat = plain_copy(y);
  const int64_t n = flat.rank() ? flat.size(-1) : 1;
  visit_dtype(flat.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (is_floating_type<T> || is_complex_type<T>) {
      const T* const data = static_cast<const T*>(flat.raw_data());
      for (int64_t i = 0; i < flat.numel(); ++i) {
        traits.nonzero |= data[i] != T(0);
        traits.spread |= data[i] != data[i / n * n];
        if constexpr (is_complex_type<T>) traits.imaginary |= data[i].imag() != 0;
      }
    }
  });
}

TensorSpan results_of(const Frame& f) {
  const bool list = f.op->schema.result_kind == ResultKind::TensorList;
  return list && f.list ? TensorSpan(*f.list)
                        : TensorSpan(f.results, list ? 0 : size_t(f.op->schema.n_results));
}

void note(CallTraits& traits, const Frame& f) {
  const Op& op = *f.op;
  const Tensor* first = nullptr;
  int given = 0;
  for (const uint8_t i : op.tensor_params) {
    if (f.none(i) || op.schema.params[i].kind != ParamKind::Tensor || !f.tensor(i).defined()) continue;
    if (given++ == 0) first = &f.tensor(i);
  }
  traits.pair |= given >= 2;
  if (first) traits.rank = std::max(traits.rank, first->rank());
  for (const Tensor& y : results_of(f)) {
    if (!y.defined()) continue;
    traits.followed |= detached(y).impl() != y.impl();
    if (!is_plain(y)) continue;
    note_elements(traits, y);
    const bool same_type =
        first && first->dtype() == y.dtype() && std::ranges::equal(first->sizes(), y.sizes());
    traits.like_first |= same_type && is_plain(*first) && !differs(y, *first).empty();
  }
}

/// Counts the calls to each operator while the rule runs; the chosen one is made wrong, or all are noted.
class RuleLevel final : public Transform {
 public:
  TransformKind kind() const override { return TransformKind::Mode; }
  std::string_view name() const override { return "mutation"; }
  void call(Frame& f, int key) override {
    const Below below(key);
    if (live_bug.record) return record(f);
    if (f.op->name != live_bug.site.op || seen_++ != live_bug.site.nth) return lamella::call(f);
    live_bug.reached.fetch_add(1, std::memory_order_relaxed);
    const Tensors wrong = live_bug.perturbation->call(*f.op, own(f));
    if (f.op->schema.result_kind == ResultKind::TensorList) *f.list = wrong;
    else std::copy(wrong.begin(), wrong.end(), f.results);
  }

  /// The rule returns `results`: what was made and asked for nothing else is read.
  void finish(TensorSpan results) {
    for (const Tensor& y : results) read(y, false);
    for (const Made& m : made_)
      if (!m.asked_for) traits_of(m).read = true;
    made_.clear();
  }

 private:
  struct Made {
    Tensor tensor;  ///< held, so that no other takes its place
    std::string op;
    int nth;
    bool asked_for = false;
  };
  static CallTraits& traits_of(const Made& m) {
    auto& sites = *live_bug.record;
    return std::ranges::find_if(sites, [&](const CallSite& s) { return s.nth == m.nth && s.op == m.op; })
        ->traits;
  }
  void read(const Tensor& t, bool type_alone) {
    for (Made& m : made_) {
      if (!t.defined() || m.tensor.impl() != t.impl()) continue;
      m.asked_for = true;
      (type_alone ? traits_of(m).typed : traits_of(m).read) = true;
    }
  }
  void read_arguments(const Frame& f) {
    for (const uint8_t i : f.op->tensor_params) {
      if (f.none(i)) continue;
      if (f.op->schema.params[i].kind == ParamKind::Tensor) read(f.tensor(i), takes_type(*f.op));
      else
        for (const Tensor& t : f.tensors(i)) read(t, takes_type(*f.op));
    }
  }
  void record(Frame& f) {
    read_arguments(f);
    lamella::call(f);
    if (f.op->form != OpForm::Functional) return;
    const int nth = counts_[f.op->name]++;
    auto& sites = *live_bug.record;
    const auto same = [&](const CallSite& s) { return s.nth == nth && s.op == f.op->name; };
    auto at = std::find_if(sites.begin(), sites.end(), same);
    if (at == sites.end()) at = sites.insert(at, {f.op->name, nth, {}});
    note(at->traits, f);
    for (const Tensor& y : results_of(f)) made_.push_back({y, f.op->name, nth});
  }
  int seen_ = 0;
  std::vector<Made> made_;
  std::map<std::string, int> counts_;
};

/// Inside a rule that runs under another activation of the same level, calls belong to the innermost.
struct OpenRule {
  RuleLevel transform;
  Level level{transform};
};

Tensors spoilt(const RuleArgs& a) {
  live_bug.reached.fetch_add(1, std::memory_order_relaxed);
  return live_bug.spoil->run(*live_bug.formula, a);
}
/// What the formula as a whole returns is noted as a call to no operator.
void note_result(const Tensors& results) {
  CallSite whole;
  auto& sites = *live_bug.record;
  if (sites.empty() || !sites.front().op.empty()) sites.insert(sites.begin(), whole);
  for (const Tensor& t : results)
    if (t.defined() && is_plain(t)) note_elements(sites.front().traits, t);
}
Tensors wrong_many(const RuleArgs& a) {
  if (live_bug.spoil) return spoilt(a);
  OpenRule open;
  const Tensors results = run_formula(*live_bug.formula, a);
  if (live_bug.record) open.transform.finish(results), note_result(results);
  return results;
}
Tensor wrong_one(const RuleArgs& a) { return wrong_many(a)[0]; }
void wrong_batch(BatchCall& b) {
  OpenRule open;
  right_batch_rule(b);
  if (!live_bug.record) return;
  const bool list = b.frame.op->schema.result_kind == ResultKind::TensorList;
  const size_t n = list || !b.results ? 0 : size_t(b.frame.op->schema.n_results);
  open.transform.finish(list && b.list ? TensorSpan(*b.list) : TensorSpan(b.results, n));
}
/// What a composite makes is made where it was called: not in this level, which no program opened. A wrapper
/// of a level that has ended may have the key that this one would take, and would be taken for its own.
void wrong_composite(Frame& f) {
  const int free = kFirstLevelKey + dispatch_state().depth;
  if (free < kKeyCount && keys_of(f).bits >> free) return right_row().composite(f);
  const uint64_t birth = detail::birth_serial;
  OpenRule open;
  detail::birth_serial = birth;
  right_row().composite(f);
  if (live_bug.record) open.transform.finish(results_of(f));
}

/// "The operator itself, applied to the tangent"; here `saved` are all its arguments.
Tensors run_linear(const BoundFormula& f, const RuleArgs& a) {
  const Op& op = OpTable::current().row(right_row().id);
  std::vector<const void*> args(a.saved, a.saved + op.schema.params.size());
  Tensors list;
  TensorSpan span;
  if (op.schema.params[size_t(f.input)].kind == ParamKind::TensorList) {
    const auto& values = *static_cast<const TensorSpan*>(a.saved[f.input]);
    for (size_t k = 0; k < a.directions.size(); ++k)
      list.push_back(a.directions[k].defined() ? a.directions[k] : zeros_like(values[k]));
    span = TensorSpan(list);
    args[size_t(f.input)] = &span;
  } else {
    args[size_t(f.input)] = &a.directions[0];
  }
  Tensors parts(size_t(op.schema.n_results));
  Frame call{&op, args.data(), parts.data()};
  lamella::call(call);
  return parts;
}

}  // namespace

Tensors run_formula(const BoundFormula& f, const RuleArgs& args) {
  if (f.linear) return run_linear(f, args);
  return f.many ? f.many(args) : Tensors{f.one(args)};
}

void plant_in_formula(BoundFormula& wrong, const BoundFormula& right) {
  live_bug.formula = &right;
  live_bug.counted = true;
  if (right.linear) {
    wrong.linear = false;
    wrong.many = wrong_many;
    for (size_t i = 0; i < right_row().schema.params.size(); ++i)
      wrong.saves.push_back({BoundSave::Argument, uint8_t(i)});
    return;
  }
  if (right.one) wrong.one = wrong_one;
  if (right.many) wrong.many = wrong_many;
}

void right_batch_rule(BatchCall& b) {
  const Op& op = right_row();
  if (op.batch) return op.batch(b);
  op.shape == ShapeClass::Broadcast ? ops::batch_broadcast(b) : ops::batch_front(b);
}

void plant_in_batch_rule(Op& row) {
  live_bug.counted = true;
  row.batch = wrong_batch;
}

void plant_in_composite(Op& row) {
  live_bug.counted = true;
  row.composite = wrong_composite;
}

namespace {
/// What op_ and op_out leave in their targets.
Tensors through_forms(const Case& c) {
  Tensors out;
  const OpTable& table = OpTable::current();
  const auto note_write = [&](const Tensor& t) {  // its version, and what lies around it
    const Storage& storage = *t.impl()->storage;
    out.push_back(tensor_of({}, {double(storage.version.load())}, DType::F64));
    out.push_back(make_tensor(Dims{int64_t(storage.nbytes)}, DType::U8));
    std::memcpy(out.back().raw_data(), storage.data, storage.nbytes);
    return t;
  };
  const auto keep = [&](const std::function<Tensor()>& f) {
    Tensor written;
    (void)status_of([&] { written = f(); });
    out.push_back(written);
  };
  if (const Op* in_place = table.find(c.op.name + "_"))
    keep([&] {
      Values args = c.args;
      args[0] = strided_copy(std::get<Tensor>(args[0]));
      call_boxed(*in_place, args);
      return note_write(std::get<Tensor>(args[0]));
    });
  if (const Op* into = table.find(c.op.name + "_out"))
    keep([&] {
      const Tensor target = plain_copy(call_boxed(*OpTable::current().find(c.op.name), c.args)[0]);
      std::memset(target.raw_data(), 0, size_t(target.numel() * itemsize(target.dtype())));
      Values args = c.args;
      args.insert(args.begin(), target);
      call_boxed(*into, args);
      return note_write(target);
    });
  return out;
}
}  // namespace

namespace {
/// What a call leaves behind: storages that stay alive, masks.
Tensors left_behind(const Case& c) {
  DispatchState& state = dispatch_state();
  const int64_t storages = memory_stats().storages;
  const uint64_t exclude = state.exclude;
  const Status s = status_of([&] { call_boxed(c.op, c.args); });
  const bool masked = state.exclude != exclude;
  state.exclude = exclude;
  return {tensor_of({3}, {double(memory_stats().storages - storages), double(masked), double(s.code)},
                    DType::F64)};
}

Tensors on_a_thread(const Case& c) {
  Tensors ys;
  const OpTable* table = dispatch_state().table;
  std::thread thread([&] {
    const ScopedTable pinned(table);
    (void)status_of([&] { ys = call_boxed(c.op, c.args); });
  });
  thread.join();
  return ys;
}

/// What happens to a wrapper of a level that has ended.
Tensors of_dead_level(const Case& c) {
  if (c.tensors().empty()) return {};
  const Tensor x = c.at(c.tensors()[0]);
  Tensor dead;
  const Function keep = [&](const Tensors& ts) { return Tensors{dead = ts[0]}; };
  vmap(keep, {{0}, {0}, Randomness::Error, -1})({stacked({x, x}, 0)});
  const Status s = status_of([&] { (void)c.function({c.tensors()[0]})({dead}); });
  return {tensor_of({2}, {double(s.raised), double(s.code)}, DType::F64)};
}

/// One level of vmap, or two.
Tensors mapped(Case& c, bool twice) {
  const std::vector<Case::Slot>& slots = c.tensors();
  if (slots.empty()) return {};
  const Batch b = draw_batch(c, slots, draw_mapped(c.draw, slots.size()), draw_lanes(c.draw));
  const Function f = vmap(c.function(slots), {b.in_dims, {0}, Randomness::Error, b.size});
  if (!twice) return f(b.xs);
  const Batch outer = draw_batch(c.draw, b.xs, draw_mapped(c.draw, slots.size()), 2, may_rotate(c));
  return vmap(f, {outer.in_dims, {0}, Randomness::Error, outer.size})(outer.xs);
}
}  // namespace

namespace {
/// Parts of a list of tensors that a function takes as one.
Tensors part(const Tensors& all, size_t from, size_t to) {
  return {all.begin() + long(from), all.begin() + long(to)};
}
Tensors drawn_like(Case& c, const Tensors& like) {
  Tensors out;
  for (const Tensor& t : like) out.push_back(c.direction(t));
  return out;
}

/// The smooth results as a function of the inexact tensors, under vmap if asked for: then all tensors may be
/// mapped. Their values go to `xs`.
Function smooth(Case& c, bool mapped, Tensors& xs) {
  if (!mapped) {
    xs = c.values(c.inexact());
    return c.smooth_function(c.inexact());
  }
  const std::vector<Case::Slot>& slots = c.tensors();
  const Batch b = draw_batch(c, slots, draw_mapped(c.draw, slots.size()), draw_lanes(c.draw));
  for (const Tensor& x : b.xs)
    if (is_inexact(x.dtype())) xs.push_back(x);
  const Function f = vmap(c.smooth_function(slots), {b.in_dims, {0}, Randomness::Error, b.size});
  return [f, all = b.xs](const Tensors& at) {
    Tensors ts = all;
    size_t k = 0;
    for (Tensor& t : ts)
      if (is_inexact(t.dtype())) t = at[k++];
    return f(ts);
  };
}

Tensors backwards(Case& c, const Function& f, const Tensors& xs) {
  Tensors leaves, out;
  for (const Tensor& x : xs) leaves.push_back(requires_grad(x));
  for (const Tensor& y : f(leaves))
    if (is_grad_required(y)) backward(y, c.direction(detach(y)));
  for (const Tensor& leaf : leaves) out.push_back(grad_of(leaf));
  return out;
}

/// Derivatives of derivatives are those in the point and in the direction at once.
Tensors derivatives(Probe kind, Case& c) {
  Tensors xs;
  const Function f = smooth(c, kind == Probe::VjpOfVmap, xs);
  if (xs.empty()) return {};
  if (kind == Probe::Backward) return backwards(c, f, xs);
  const bool forward = kind == Probe::Jvp || kind == Probe::JvpOfJvp;
  const size_t n = xs.size();
  const Function g = [&](const Tensors& all) {
    const Tensors at = part(all, 0, n), along = part(all, n, all.size());
    return forward ? jvp(f, at, along).tangents : vjp(f, at).pullback(along);
  };
  Tensors all = xs;
  for (const Tensor& t : drawn_like(c, forward ? xs : f(xs))) all.push_back(t);
  if (kind != Probe::JvpOfJvp && kind != Probe::Second) return g(all);
  return jvp(g, all, drawn_like(c, all)).tangents;
}
}  // namespace

Tensors probe(Probe kind, const Op& op, const Choices& choices, const DrawOptions& options) {
  Case c(op, choices, options);
  switch (kind) {
    case Probe::Forms: return through_forms(c);
    case Probe::State: return left_behind(c);
    case Probe::Thread: return on_a_thread(c);
    case Probe::Dead: return of_dead_level(c);
    case Probe::Vmap: return mapped(c, false);
    case Probe::VmapOfVmap: return mapped(c, true);
    default: break;
  }
  if (kind == Probe::Forward) return c.function(c.tensors())(c.values(c.tensors()));
  return derivatives(kind, c);
}

namespace {
/// Calls noted while drawn cases run with the recording row in the table.
std::vector<CallSite> recorded(const Op& op, const std::function<void(Op&)>& plant_recorder,
                               std::span<const Probe> probes,
                               DTypeMask dtypes = mask(DType::F64) | mask(DType::C128)) {
  std::vector<CallSite> sites;
  Planted p{.id = op.name, .group = {}, .what = {}, .op = &op, .plant = plant_recorder};
  const OpTable* table = plant(p);
  live_bug.record = &sites;
  const ScopedTable pinned(table);
  const DrawOptions options{.dtypes = dtypes, .tame = true, .max_numel = 16};
  for (uint64_t i = 0; i < 48; ++i)
    for (const Probe kind : probes) {
      const Choices choices = choices_of(i, laws().front(), op, i);
      (void)status_of([&] { (void)probe(kind, table->row(op.id), choices, options); });
    }
  live_bug.record = nullptr;
  return sites;
}
}  // namespace

std::vector<CallSite> sites_of_formula(const Op& op, bool vjp, size_t index) {
  const Probe plain = vjp ? Probe::Vjp : Probe::Jvp, followed = vjp ? Probe::Second : Probe::JvpOfJvp;
  const Probe kinds[] = {plain, followed};
  return recorded(
      op,
      [&](Op& row) {
        if (vjp) plant_in_formula(row.vjp[index], op.vjp[index]);
        else plant_in_formula(row.jvp[index], op.jvp[index]);
      },
      kinds);
}

std::vector<CallSite> sites_of_batch_rule(const Op& op) {
  const Probe kinds[] = {Probe::Vmap, Probe::VjpOfVmap};
  return recorded(op, plant_in_batch_rule, kinds);
}

/// Composites treat some dtypes apart: half ones are widened first.
std::vector<CallSite> sites_of_composite(const Op& op) {
  const Probe kinds[] = {Probe::Forward, Probe::Vjp};
  return recorded(op, plant_in_composite, kinds, kAllTypes);
}

void observe(const Op& op, const std::function<void(Op&)>& plant_recorder) {
  const Planted recorder{.id = op.name, .group = {}, .what = {}, .op = &op, .plant = plant_recorder};
  const OpTable* table = plant(recorder);
  const ScopedTable pinned(table);
  for (uint64_t i = 0; i < 200; ++i)
    (void)status_of([&] {
      (void)probe(i % 4 ? Probe::Forward : Probe::Forms, table->row(op.id),
                  choices_of(i, laws().front(), op, i), {.dtypes = mask(DType::F64)});
    });
}

}  // namespace lamella::verify
