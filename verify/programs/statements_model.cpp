// What engines may refuse, from the statements and the plain run's memory alone.
#include <algorithm>

#include "lamella/verify/programs/statements.h"

namespace lamella::verify {

namespace {

/// Memory of one storage of the plain run while the statements pass.
struct Memory {
  uint32_t lanes = 0;  ///< inputs whose lanes it may have: zeros_like(x) has those of x
  bool of_input = false, outside = false;
  bool given = false;  ///< of an input or a capture
  /// A scope may have made views of it that no family knows of: no level turns it into its own later.
  bool scoped = false;
  bool composed = false;  ///< made by an operator that calls others: on the way it may have had views
  bool parts = false;     ///< of complex numbers are shown: a level takes no such memory
  int first = -1;         ///< the family that made it
};

/// Handles that follow each other's writes; detach and scopes begin others over the same memory.
struct Followers {
  uint32_t on = 0;       ///< inputs that its values may depend on
  uint32_t sure = 0;     ///< and those that they do: one result of a composite may be another's business
  bool wrapped = false;  ///< what a level knows: its handles stay so when a constant is written
  /// What a detached handle was given is lost to it when its base is written, and what is computed of it then
  /// is no value of the level.
  bool doubtful = false;
};

/// A result that is no handle.
constexpr int kNowhere = -1;

/// A read that a formula may ask for again.
struct Save {
  int storage;
  size_t at;      ///< the statement
  bool wrapped;   ///< levels replace it
  bool recorded;  ///< by base autograd: some operand carries history
  /// A handle whose derivative surely needs it, where one is: a result of a single formula.
  int needed_by = kNowhere;
};

class Model {
 public:
  struct Handles {
    const std::vector<int>&storage, &header;
    const std::vector<bool>&dense, &alive;
    const Tensors& types;  ///< sizes and dtypes
    /// To a level further out the program's own are wrappers, which it takes only while they have no views.
    bool further_out = false;
  };
  Model(const std::vector<Statement>& statements, std::vector<bool> constants, const Handles& h,
        size_t inputs, size_t captures, uint32_t mapped, uint32_t traced)
      : statements_(statements),
        constants_(std::move(constants)),
        storage_(h.storage),
        header_(h.header),
        dense_(h.dense),
        alive_(h.alive),
        types_(h.types),
        further_out_(h.further_out),
        mapped_(mapped),
        inputs_(inputs) {
    const std::vector<int>& storage = storage_;
    const int n = storage.empty() ? 0 : *std::ranges::max_element(storage) + 1;
    memory_.resize(size_t(n));
    followers_.resize(storage.size());
    for (size_t k = 0; k < inputs + captures; ++k) {
      enters(int(k));
      of(int(k)).given = true;
      if (k >= inputs) {
        of(int(k)).outside = true;
        continue;
      }
      of(int(k)).lanes = 1u << k, of(int(k)).of_input = true;
      of(int(k)).outside = !(traced >> k & 1);
      if (of(int(k)).outside) continue;
      followers_[k] = {1u << k, 1u << k, true};
    }
    next_ = inputs + captures;
  }

  Refusals run() {
    for (std::vector<bool>* const all :
         {&out_.leaf, &out_.argument, &out_.gaps, &out_.level, &out_.lanes, &out_.lanes_must})
      all->resize(statements_.size());
    fills_composed_.resize(statements_.size());
    for (size_t i = 0; i < statements_.size(); ++i) {
      const Statement& s = statements_[i];
      if (s.kind == StatementKind::Fresh) enters(int(next_++));
      else if (!s.op && s.kind != StatementKind::Custom) continue;
      for (size_t k = 0; k < s.links.size() && constants_[i]; ++k) of(s.links[k].handle).scoped = true;
      if (s.kind == StatementKind::Fresh) continue;
      if (s.is_write()) write(s, i);
      else call(s, i);
    }
    note_certain();
    for (const int storage : storage_)
      out_.saved.push_back(
          std::ranges::any_of(saves_, [&](const Save& v) { return v.storage == storage; }) ||
          std::ranges::any_of(results_, [&](const Save& v) { return v.storage == storage; }));
    return out_;
  }

  /// By statement, after run(): derivatives come into what such an operator made without them.
  const std::vector<bool>& fills_composed() const { return fills_composed_; }

 private:
  /// Backward runs the formula of what is returned as it was made: the results of a program are its roots. It
  /// has to notice writes. Of other saves that is left open: whether a formula runs at all depends on which
  /// results later writes have hidden, and composites save what they please.
  void note_certain() {
    out_.certain.resize(storage_.size());
    for (const Save& v : saves_) {
      if (v.needed_by == kNowhere || !alive_[size_t(v.needed_by)]) continue;
      bool hidden = false, overwritten = false;
      for (const auto& [at, storage] : writes_) {
        hidden |= at > v.at && storage == storage_[size_t(v.needed_by)];
        overwritten |= at > v.at && storage == v.storage;
      }
      if (hidden) continue;
      out_.must_notice |= overwritten;
      for (size_t k = 0; k < storage_.size(); ++k)
        if (storage_[k] == v.storage) out_.certain[k] = true;
    }
  }

  Memory& of(int handle) { return memory_[size_t(storage_[size_t(handle)])]; }
  Followers& family(int handle) { return followers_[size_t(family_[size_t(handle)])]; }
  /// A handle that begins a family.
  void enters(int handle) {
    family_.push_back(handle);
    if (of(handle).first < 0) of(handle).first = handle;
  }

  /// Positions in the functional form; what the operands depend on together.
  struct Operand {
    int param, handle;
  };
  std::vector<Operand> operands(const Statement& s) const {
    std::vector<Operand> all;
    if (s.kind == StatementKind::Custom)
      for (const Statement::Link& l : s.links) all.push_back({l.slot.param, l.handle});
    if (s.kind == StatementKind::Custom) return all;
    const int shift = s.kind == StatementKind::Out;
    for (size_t k = size_t(shift); k < s.links.size(); ++k)
      all.push_back({s.links[k].slot.param - shift, s.links[k].handle});
    return all;
  }

  /// Surely: through formulas; copy_ forgets what its target was. An engine may record all operands.
  uint32_t dependence(const Statement& s, uint32_t Followers::*field, bool formulas) {
    uint32_t any = 0;
    if (constants_[size_t(&s - statements_.data())]) return 0;
    for (const Operand& o : operands(s)) any |= family(o.handle).*field;
    if (s.kind == StatementKind::Custom) return any;
    const Op& op = *s.op->base;
    if (!op.no_vjp.empty() || (!op.composite && op.vjp.empty())) return 0;
    uint32_t on = 0;
    for (const Operand& o : operands(s))
      if (!formulas || op.composite || op.vjp_of(o.param)) on |= family(o.handle).*field;
    return on;
  }
  uint32_t dependence(const Statement& s) { return dependence(s, &Followers::on, false); }
  uint32_t surely(const Statement& s) { return dependence(s, &Followers::sure, true); }
  /// A custom function runs in every lane, whatever its operands are.
  uint32_t lanes(const Statement& s) {
    uint32_t all = s.kind == StatementKind::Custom ? mapped_ : 0;
    for (const Operand& o : operands(s)) all |= of(o.handle).lanes;
    return all;
  }

  /// Notes what the formulas of a recorded call ask for: all there is where the operator calls others.
  void save(const Statement& s, size_t i, const std::vector<int>& results) {
    if (constants_[i]) return;
    const std::vector<Operand> all = operands(s);
    const bool recorded = dependence(s) != 0;
    const auto note = [&](int handle) {
      if (handle != kNowhere)
        saves_.push_back({storage_[size_t(handle)], i, family(handle).wrapped, recorded});
    };
    if (s.kind == StatementKind::Custom) {  // its rule may ask for anything
      for (const Operand& o : all) note(o.handle);
      for (const int r : results) note(r);
      return;
    }
    const Op& op = *s.op->base;
    const bool in_place = s.kind == StatementKind::InPlace;
    if (op.composite && s.kind == StatementKind::View) return;  // made of views
    for (const Operand& p : all) {
      const BoundFormula* const f = op.vjp_of(p.param);
      if (!op.composite && (!f || family(p.handle).on == 0)) continue;
      if (op.composite)
        for (const int r : results) note(r);
      for (const Operand& o : all) {
        const bool asked = op.composite || std::ranges::any_of(f->saves, [&](const BoundSave& b) {
                             return b.kind == BoundSave::Argument && b.index == o.param;
                           });
        // What a write saves of its own target is what was there before.
        if (!asked || (in_place && o.param == 0)) continue;
        note(o.handle);
        if (s.kind == StatementKind::Call && !op.composite && results.size() == 1 &&
            family(p.handle).sure != 0)
          saves_.back().needed_by = results[0];
      }
      for (const BoundSave& b : op.composite ? std::vector<BoundSave>{} : f->saves)
        if (b.kind == BoundSave::Result && b.index < results.size() && results[b.index] != kNowhere)
          results_.push_back({storage_[size_t(results[b.index])], i, true, recorded});
    }
  }

  static void add(Followers& f, uint32_t on, uint32_t sure) {
    f.on |= on, f.sure |= sure, f.wrapped |= sure != 0;
  }

  /// Whether it is a view of an operand in another dtype, also by an operator that is no statement of views.
  bool is_part(const Statement& s, int result) const {
    const auto at = size_t(result);
    return std::ranges::any_of(s.links, [&](const Statement::Link& l) {
      const auto from = size_t(l.handle);
      return storage_[from] == storage_[at] && types_[from].dtype() != types_[at].dtype();
    });
  }

  bool surely_wrapped(const Followers& f) const { return f.wrapped && !f.doubtful; }

  /// Whether it shows memory that no level has wrapped yet under a handle that follows no writes: did a level
  /// take the memory later, the handle would go on to show what was there.
  bool detaches(const Statement& s) {
    if (s.kind != StatementKind::View || !s.op || !s.op->vjp.empty() || s.op->composite) return false;
    return std::ranges::none_of(s.links,
                                [&](const Statement::Link& l) { return surely_wrapped(family(l.handle)); });
  }

  /// The families over this memory: NOTE: [constants that are written].
  void doubt(int storage) {
    for (size_t k = 0; k < next_; ++k)
      if (storage_[k] == storage) family(int(k)).doubtful = true;
  }
  bool reads_doubtful(const Statement& s) {
    return std::ranges::any_of(s.links, [&](const Statement::Link& l) { return family(l.handle).doubtful; });
  }

  void call(const Statement& s, size_t i) {
    const uint32_t on = dependence(s);
    std::vector<int> results;
    const uint32_t sure = s.op && s.op->composite && s.kept.size() > 1 ? 0 : surely(s);
    for (const bool kept : s.kept) {
      results.push_back(kept ? int(next_++) : kNowhere);
      if (!kept) continue;
      result(s, i, results.back());
      add(family(results.back()), on, sure);
      family(results.back()).doubtful |= reads_doubtful(s);
      of(results.back()).lanes |= lanes(s);
      // Composites and batch rules may view what they made, in the scope.
      of(results.back()).scoped |= (constants_[i] || detaches(s)) && s.op;
      of(results.back()).composed |= s.op && s.op->composite;
      of(results.back()).parts |= is_part(s, results.back());
    }
    save(s, i, s.kind == StatementKind::View ? std::vector<int>{} : results);
  }

  /// Its family is that of the operand it is a view of; one of its own where it is a constant, or memory of
  /// its own.
  void result(const Statement& s, size_t i, int handle) {
    const auto at = size_t(handle);
    bool wrapped = false;
    for (const Statement::Link& l : s.links) {
      const auto from = size_t(l.handle);
      const bool is_same = header_[from] == header_[at];
      if (is_same || (storage_[from] == storage_[at] && !constants_[i]))
        return family_.push_back(family_[from]);
      wrapped |= storage_[from] == storage_[at] && family(l.handle).wrapped;
    }
    enters(handle);
    family(handle).wrapped = wrapped;
  }

  void write(const Statement& s, size_t i) {
    const int target = s.target(), storage = storage_[size_t(target)];
    Memory& m = of(target);
    Followers& f = family(target);
    const uint32_t on = dependence(s) | f.on;
    save(s, i, {target});
    writes_.push_back({i, storage});
    const auto family = size_t(family_[size_t(target)]);
    out_.leaf[i] = family < inputs_ && !constants_[i];
    out_.argument[i] = m.of_input;
    out_.gaps[i] = !dense_[family];
    bool others = m.parts;  // handles that were let go may live on a tape
    const bool of_another_level = further_out_ || (m.lanes & mapped_) != 0;
    for (size_t k = 0; k < next_ && of_another_level; ++k)
      others |= storage_[k] == storage && header_[k] != header_[size_t(target)];
    // A level refuses what is its own in memory that is not; a vmap beside it, lanes in memory without lanes.
    const bool gains = !surely_wrapped(f) && on != 0,
               gains_lanes = (f.sure & mapped_) == 0 && (lanes(s) & mapped_) != 0;
    fills_composed_[i] = gains && m.composed;
    out_.level[i] = m.of_input || (gains && (m.outside || m.scoped || others)) ||
                    (gains_lanes && (f.on != 0 || m.outside || m.scoped || others));
    out_.lanes[i] = gains_lanes && (m.given || m.scoped || others);
    out_.lanes_must[i] = m.given && (m.lanes & mapped_) == 0 && (surely(s) & mapped_) != 0;
    for (const std::vector<Save>* saves : {&saves_, &results_})
      for (const Save& v : *saves) {
        if (v.storage != storage || (saves == &results_ && v.at == i)) continue;
        out_.base_version |= v.recorded;
        out_.level_version |= !v.wrapped;
      }
    const bool of_constant = dependence(s) != 0 && int(family) != m.first;
    out_.constants |= of_constant;
    if (of_constant) doubt(storage);
    const uint32_t sure = constants_[i] ? f.sure : surely(s);
    add(f, on, sure);
    m.lanes |= lanes(s);
    f.sure = sure;
  }

  const std::vector<Statement>& statements_;
  const std::vector<bool> constants_;
  const std::vector<int>&storage_, &header_;
  const std::vector<bool>&dense_, &alive_;
  const Tensors& types_;
  const bool further_out_;
  std::vector<int> family_;  ///< the first handle of each handle's
  uint32_t mapped_;
  size_t inputs_;
  std::vector<Memory> memory_;
  std::vector<Followers> followers_;  ///< by the first handle of each family
  std::vector<Save> saves_, results_;
  std::vector<std::pair<size_t, int>> writes_;  ///< statements and what they write
  size_t next_ = 0;
  Refusals out_;
  std::vector<bool> fills_composed_;
};

}  // namespace

Refusals Script::refusals(bool levels, uint32_t mapped, uint32_t traced, bool further_out) const {
  return Model(statements_, constants(levels), {storage_, header_, dense_, alive_, sizes_, further_out},
               inputs_.size(), captures_.size(), mapped, traced)
      .run();
}

/// To that level captures are what inputs are to the program's own, but that they may be written. Views of
/// what it wraps do not become values of the program's own level (decision 0005): reshape's copy of a capture
/// is one.
std::vector<bool> Script::refused_further_out() const {
  const Model::Handles handles{storage_, header_, dense_, alive_, sizes_, true};
  Model own(statements_, constants(true), handles, inputs_.size(), captures_.size(), 0, ~0u);
  (void)own.run();
  Refusals r =
      Model(statements_, constants(true), handles, inputs_.size() + captures_.size(), 0, 0, ~0u).run();
  for (size_t i = 0; i < r.level.size(); ++i)
    r.level[i] = (r.level[i] && !r.argument[i]) || own.fills_composed()[i];
  return r.level;
}

bool Script::writes_constants() const { return refusals(true).constants; }

}  // namespace lamella::verify
