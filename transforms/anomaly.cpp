// Anomaly mode: an observer of calls, and a watch on tapes.
#include "lamella/transforms/anomaly.h"

#include <cmath>

#include "lamella/dispatch/frame_copy.h"
#include "lamella/dispatch/state.h"
#include "lamella/transforms/tapes/watch.h"

namespace lamella {

namespace {
using SiteRef = std::shared_ptr<const CallSite>;

/// A dim of a tape's argument that is a mapped one of a vmap inside the tape's level.
struct InnerLane {
  int param, element, dim;
  std::string level;
};

/// What a node knows of its call.
struct Note final : Packed {
  Tensor unpack() override { return {}; }  // nobody asks
  SiteRef site;
  std::string level;
  std::vector<InnerLane> lanes;
};

/// An operator call that is under way.
struct ActiveCall {
  const Frame* frame;
  int chosen;
  bool first;      ///< made by the program, not by an operator
  bool looked_at;  ///< it has no NaN among its arguments, and what it gives is looked at
  SiteRef site;
};

/// A write to memory: the version that it left.
struct Write {
  const Storage* memory = nullptr;
  uint32_t version = 0;
  std::string op;
  SiteRef site;
};

bool nan_among_arguments(const Frame& f) {
  bool found = false;
  for_each_tensor(f, [&](const Tensor& t, int, int) { found = found || first_nan(t); });
  for (int i = 0; i < f.op->arity && !found; ++i) {
    if (f.none(i)) continue;
    const ParamKind kind = f.op->schema.params[size_t(i)].kind;
    if (kind == ParamKind::Float) found = std::isnan(f.arg<double>(i));
    if (kind == ParamKind::Scalar) {
      const c128 number = f.arg<Scalar>(i).to_complex();
      found = std::isnan(number.real()) || std::isnan(number.imag());
    }
  }
  return found;
}

std::string place_text(const Element& e, const Tensor& t) {
  std::string index;
  for (const int64_t i : e.index) index += format("{}{}", index.empty() ? "" : ", ", i);
  return format("{} of {}{}", e.index.empty() ? "the element" : "[" + index + "]", type_str(t),
                e.lanes_text());
}

std::string called_at(const SiteRef& site) {
  const std::string lines = site ? call_site_text(*site) : "";
  return lines.empty() ? "" : ", called at" + lines;
}
}  // namespace

class AnomalyMode::State final : public Observer, public TapeWatch {
 public:
  explicit State(AnomalyOptions options)
      : options_(options), outer_(outer_observer()), observing_(this), watching_(this) {}

  void on_call(const Frame& f, KeySet keys, int chosen) override {
    if (outer_) outer_->on_call(f, keys, chosen);
    const ActiveCall* const around = active_.empty() ? nullptr : &active_.back();
    const bool first = !around || (around->frame->op->takes_functions && around->frame->op != f.op);
    if (first) born_.clear();
    const bool looks = options_.forward && rules_ == 0 && !f.op->has(kUnspecified) &&
                       (first || chosen < kAutogradKey) && !nan_among_arguments(f);
    active_.push_back({&f, chosen, first, looks, first ? site_of_call() : around->site});
  }

  void on_result(const Frame& f) override {
    if (outer_) outer_->on_result(f);
    const ActiveCall& call = active_.back();
    const bool writes = f.op->form != OpForm::Functional;
    if (writes && call.chosen < kAutogradKey) note_write(f.tensor(0), call.site);
    if (!call.looked_at) return;
    if (writes) return look_at(f.tensor(0), call);
    for (int k = 0; k < f.op->schema.n_results && f.results; ++k) look_at(f.results[k], call);
    if (f.op->schema.result_kind == ResultKind::TensorList && f.list)
      for (const Tensor& t : *f.list) look_at(t, call);
  }

  void on_return(const Frame& f) override {
    active_.pop_back();
    if (outer_) outer_->on_return(f);
  }

  std::shared_ptr<Packed> note(const Frame& values, int key) override {
    auto out = std::make_shared<Note>();
    out->site = active_.empty() ? site_of_call() : active_.back().site;
    out->level = key == 0 ? "base autograd" : live_key_name(key);
    for (const ActiveCall& call : active_)
      if (call.chosen > std::max(key, kAutogradKey)) note_lanes(*out, call, values);
    return out;
  }

  void arrived(Node& n, TensorSpan cotangents) override {
    for (const Tensor& ct : cotangents) {
      const std::optional<Element> e = first_nan(ct);
      if (!e) continue;
      const std::string op = n.op ? n.op->name : "";
      fail(FoundNaN{FoundNaN::Cotangent, op, {}, *e, type_str(ct), site_of(n)}, ErrorCode::Value,
           "backward: a cotangent of {} is NaN at {}, and no formula gave it; expected none: it was passed "
           "in, "
           "or came from a hook, or from inf - inf where cotangents meet{}",
           n.op ? n.op->name : "a leaf", place_text(*e, ct), recorded_by(n));
    }
  }

  void begin(Node& n) override {
    const Note* const note = note_of(n);
    rule_sites_.push_back(note ? note->site : nullptr);
    ++rules_;
  }
  void end() override {
    rule_sites_.pop_back();
    --rules_;
  }

  void gave(Node& n, const Edge& edge, const Tensor& ct) override {
    std::optional<Element> e = first_nan(ct);
    if (!e) return;
    if (const Note* const note = note_of(n))
      for (const InnerLane& lane : note->lanes)
        if (lane.param == edge.input && lane.element == int(edge.element))
          e->lanes.insert(e->lanes.begin(), {lane.level, e->index[lane.dim]});
    const std::string input(n.op->schema.params[edge.input].name);
    fail(FoundNaN{FoundNaN::Formula, n.op->name, input, *e, type_str(ct), site_of(n)}, ErrorCode::Value,
         "backward: the formula of {} for {} gave NaN at {}, from cotangents without; expected none{}",
         n.op->name, input, place_text(*e, ct), recorded_by(n));
  }

  void failed(Node& n, const Error& e) override { throw e.noted(recorded_by(n)); }

  std::string writer_of(const Tensor& t, uint32_t version) override {
    if (!t.impl()->storage) return "";
    for (const Write& w : writes_)
      if (w.memory == t.impl()->storage && w.version == version + 1)
        return format("; it was written by {}{}", w.op, called_at(w.site));
    return "";
  }

 private:
  static Observer* outer_observer() {
    Observer* const now = dispatch_state().observer;
    const auto* const other = dynamic_cast<State*>(now);
    return other ? other->outer_ : now;
  }

  SiteRef site_of_call() const {
    if (!rule_sites_.empty() && rule_sites_.back()) return rule_sites_.back();
    return std::make_shared<const CallSite>(call_site());
  }

  static const Note* note_of(Node& n) { return dynamic_cast<const Note*>(lamella::note_of(n)); }
  static SiteRef site_of(Node& n) {
    const Note* const note = n.op ? note_of(n) : nullptr;
    return note ? note->site : nullptr;
  }

  static std::string recorded_by(Node& n) {
    if (!n.op) return "";
    const Note* const note = note_of(n);
    if (!note) return format("\n  {} was recorded outside of anomaly mode", n.op->name);
    return format("\n  {} was recorded by {}{}", n.op->name, note->level, called_at(note->site));
  }

  /// The kernel that gives the first NaN is kept for when the call returns to the program, whose levels tell
  /// lanes and tangents.
  void look_at(const Tensor& t, const ActiveCall& call) {
    const std::optional<Element> e = first_nan(t);
    if (!e) return;
    const std::string& name = call.frame->op->name;
    if (born_.empty() && call.chosen < kAutogradKey) born_ = call.frame->op->base->name;
    if (!call.first) return;
    const std::string by = born_.empty() || born_ == call.frame->op->base->name ? "" : ", by " + born_;
    const std::string tangent = e->tangent_of.empty() ? "" : "in the tangent at " + e->tangent_of + ", ";
    fail(FoundNaN{FoundNaN::Result, name, {}, *e, type_str(t), call.site}, ErrorCode::Value,
         "{}: gave NaN {}at {}{}, from arguments without; expected none{}", name, tangent, place_text(*e, t),
         by, called_at(call.site));
  }

  /// Which dims of the tape's arguments are those that this call's vmap maps, told by how they lie in memory.
  static void note_lanes(Note& note, const ActiveCall& call, const Frame& values) {
    for_each_tensor(*call.frame, [&](const Tensor& t, int, int) {
      if (!t.defined() || !(t.keys() >> call.chosen & 1)) return;
      const auto* const w = static_cast<const Wrapper*>(t.impl()->wrap);
      if (!w || w->key != call.chosen || w->mapped_dim() < 0) return;
      const DimInMemory lane = dim_in_memory(w->value, w->mapped_dim());
      if (!lane.memory || lane.stride == 0) return;
      for_each_tensor(values, [&](const Tensor& x, int param, int element) {
        for (int d = 0; x.defined() && d < x.rank(); ++d) {
          const DimInMemory dim = dim_in_memory(x, d);
          if (dim.memory != lane.memory || dim.size != lane.size || dim.stride != lane.stride) continue;
          add_lane(note, {param, element, d, live_key_name(call.chosen)});
          return;
        }
      });
    });
  }

  static void add_lane(Note& note, InnerLane lane) {
    for (const InnerLane& l : note.lanes)
      if (l.param == lane.param && l.element == lane.element && l.level == lane.level) return;
    note.lanes.push_back(std::move(lane));
  }

  /// The latest ones are kept, in a ring.
  void note_write(const Tensor& target, const SiteRef& site) {
    const Storage* const memory = target.impl()->storage;
    if (!memory) return;
    Write w{memory, memory->version.load(std::memory_order_relaxed), active_.front().frame->op->name, site};
    if (writes_.size() < kMostWrites) writes_.push_back(std::move(w));
    else writes_[next_write_++ % kMostWrites] = std::move(w);
  }

  static constexpr size_t kMostWrites = 1 << 14;
  AnomalyOptions options_;
  Observer* outer_;
  std::vector<ActiveCall> active_;
  std::string born_;  ///< the kernel that gave the first NaN of the program's call
  int rules_ = 0;     ///< formulas that run
  std::vector<SiteRef> rule_sites_;
  std::vector<Write> writes_;
  size_t next_write_ = 0;
  ScopedObserver observing_;
  ScopedWatch watching_;
};

AnomalyMode::AnomalyMode(AnomalyOptions options) : state_(std::make_unique<State>(options)) {}
AnomalyMode::~AnomalyMode() = default;

}  // namespace lamella
