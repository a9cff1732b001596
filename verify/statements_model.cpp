// What engines may refuse, from the statements and the plain run's memory alone.
#include <algorithm>

#include "lamella/verify/statements.h"

namespace lamella::verify {

namespace {

/// Memory of one storage of the plain run while the statements pass.
struct Memory {
  uint32_t on = 0;       ///< inputs that its values may depend on
  uint32_t sure = 0;     ///< and those that they do: one result of a composite may be another's business
  uint32_t lanes = 0;    ///< inputs whose lanes it may have: zeros_like(x) has those of x
  bool wrapped = false;  ///< what a level knows: its handles stay so when a constant is written
  bool of_input = false, outside = false;
};

/// A read that a formula may ask for again.
struct Save {
  int storage;
  size_t at;      ///< the statement
  bool wrapped;   ///< levels replace it
  bool recorded;  ///< by base autograd: some operand carries history
};

/// Of a result that is no handle.
constexpr int kNowhere = -1;

class Model {
 public:
  Model(const std::vector<Statement>& statements, const std::vector<int>& storage,
        const std::vector<int>& header, size_t inputs, size_t captures, uint32_t mapped)
      : statements_(statements), storage_(storage), header_(header), mapped_(mapped) {
    const int n = storage.empty() ? 0 : *std::ranges::max_element(storage) + 1;
    memory_.resize(size_t(n));
    for (size_t k = 0; k < inputs + captures; ++k) {
      Memory& m = of(int(k));
      if (k < inputs) m.on = m.sure = m.lanes = 1u << k, m.wrapped = m.of_input = true;
      else m.outside = true;
    }
    next_ = inputs + captures;
  }

  Refusals run() {
    out_.leaf.resize(statements_.size()), out_.level.resize(statements_.size());
    for (size_t i = 0; i < statements_.size(); ++i) {
      const Statement& s = statements_[i];
      if (s.kind == StatementKind::Drop) continue;
      if (s.kind == StatementKind::Fresh) ++next_;
      else if (s.is_write()) write(s, i);
      else call(s, i);
    }
    for (const int storage : storage_)
      out_.saved.push_back(
          std::ranges::any_of(saves_, [&](const Save& v) { return v.storage == storage; }) ||
          std::ranges::any_of(results_, [&](const Save& v) { return v.storage == storage; }));
    return out_;
  }

 private:
  Memory& of(int handle) { return memory_[size_t(storage_[size_t(handle)])]; }

  /// Positions in the functional form; what the operands depend on together.
  struct Operand {
    int param, handle;
  };
  std::vector<Operand> operands(const Statement& s) const {
    std::vector<Operand> all;
    const int shift = s.kind == StatementKind::Out;
    for (size_t k = size_t(shift); k < s.links.size(); ++k)
      all.push_back({s.links[k].slot.param - shift, s.links[k].handle});
    return all;
  }

  /// Surely: through formulas; copy_ forgets what its target was. An engine may record all operands.
  uint32_t dependence(const Statement& s, uint32_t Memory::*field, bool formulas) {
    const Op& op = *s.op->base;
    if (!op.no_vjp.empty() || (!op.composite && op.vjp.empty())) return 0;
    uint32_t on = 0;
    for (const Operand& o : operands(s))
      if (!formulas || op.composite || op.vjp_of(o.param)) on |= of(o.handle).*field;
    return on;
  }
  uint32_t dependence(const Statement& s) { return dependence(s, &Memory::on, false); }
  uint32_t surely(const Statement& s) { return dependence(s, &Memory::sure, true); }
  uint32_t lanes(const Statement& s) {
    uint32_t all = 0;
    for (const Operand& o : operands(s)) all |= of(o.handle).lanes;
    return all;
  }

  /// Notes what the formulas of a recorded call ask for: all there is where the operator calls others.
  void save(const Statement& s, size_t i, const std::vector<int>& results) {
    const Op& op = *s.op->base;
    const std::vector<Operand> all = operands(s);
    const bool recorded = dependence(s) != 0;
    const auto note = [&](int storage) {
      if (storage == kNowhere) return;
      saves_.push_back({storage, i, memory_[size_t(storage)].wrapped, recorded});
    };
    const bool in_place = s.kind == StatementKind::InPlace;
    if (op.composite && s.kind == StatementKind::View) return;  // made of views
    for (const Operand& p : all) {
      const BoundFormula* const f = op.vjp_of(p.param);
      if (!op.composite && (!f || of(p.handle).on == 0)) continue;
      if (op.composite)
        for (const int r : results) note(r);
      for (const Operand& o : all) {
        const bool asked = op.composite || std::ranges::any_of(f->saves, [&](const BoundSave& b) {
                             return b.kind == BoundSave::Argument && b.index == o.param;
                           });
        // What a write saves of its own target is what was there before.
        if (asked && !(in_place && o.param == 0)) note(storage_[size_t(o.handle)]);
      }
      for (const BoundSave& b : op.composite ? std::vector<BoundSave>{} : f->saves)
        if (b.kind == BoundSave::Result && b.index < results.size())
          results_.push_back({results[b.index], i, true, recorded});
    }
  }

  static void add(Memory& m, uint32_t on, uint32_t sure, uint32_t lanes) {
    m.on |= on, m.sure |= sure, m.lanes |= lanes, m.wrapped |= sure != 0;
  }

  void call(const Statement& s, size_t i) {
    const uint32_t on = dependence(s);
    std::vector<int> results;
    uint32_t sure = s.op->composite && s.kept.size() > 1 ? 0 : surely(s);
    for (const bool kept : s.kept) {
      if (kept) add(of(int(next_)), on, sure, lanes(s));
      results.push_back(kept ? storage_[next_++] : kNowhere);
    }
    save(s, i, s.kind == StatementKind::View ? std::vector<int>{} : results);
  }

  void write(const Statement& s, size_t i) {
    const int target = s.target(), storage = storage_[size_t(target)];
    Memory& m = of(target);
    const uint32_t on = dependence(s) | m.on;
    save(s, i, {storage});
    out_.leaf[i] = m.of_input;
    bool others = false;  // handles that were let go may live on a tape
    for (size_t k = 0; k < next_; ++k)
      others |= storage_[k] == storage && header_[k] != header_[size_t(target)];
    // A level refuses what is its own in memory that is not; a vmap beside it, lanes in memory without lanes.
    const bool gains = !m.wrapped && on != 0,
               gains_lanes = (m.sure & mapped_) == 0 && (lanes(s) & mapped_) != 0;
    out_.level[i] =
        m.of_input || (gains && (m.outside || others)) || (gains_lanes && (m.on != 0 || m.outside || others));
    for (const std::vector<Save>* saves : {&saves_, &results_})
      for (const Save& v : *saves) {
        if (v.storage != storage || (saves == &results_ && v.at == i)) continue;
        out_.base_version |= v.recorded;
        out_.level_version |= !v.wrapped;
      }
    const uint32_t sure = surely(s);
    add(m, on, sure, lanes(s));
    m.sure = sure;
  }

  const std::vector<Statement>& statements_;
  const std::vector<int>&storage_, &header_;
  uint32_t mapped_;
  std::vector<Memory> memory_;
  std::vector<Save> saves_, results_;
  size_t next_ = 0;
  Refusals out_;
};

}  // namespace

Refusals Script::refusals(uint32_t mapped) const {
  return Model(statements_, storage_, header_, inputs_.size(), captures_.size(), mapped).run();
}

}  // namespace lamella::verify
