// Statement programs with constants in f128: NOTE: [constants of programs].
#include <algorithm>

#include "lamella/verify/programs/statements.h"

namespace lamella::verify {

class Twin {
 public:
  Twin(const Script& p, bool levels, Tensors moved, Tensors still, uint32_t jitter, const Injected& injected)
      : p_(p),
        levels_(levels),
        moved_(std::move(moved)),
        still_(std::move(still)),
        jitter_(jitter),
        injected_(injected),
        state_(jitter * uint64_t{0xD1B54A32D192ED03}),
        constants_(p.constants(levels)) {}

  f128 value() {
    for (const Tensor& c : p_.captures_) {
      still_.push_back(wide_as(c));
      moved_.push_back(wide_as(c));
    }
    for (size_t k = 0; jitter_ && k < moved_.size(); ++k) put_off_both(k);
    hooks_at(-1);
    for (size_t i = 0; i < p_.statements_.size(); ++i) {
      step(p_.statements_[i], i);
      hooks_at(int(i));
    }
    f128 sum = 0;
    for (size_t k = 0, r = 0; k < moved_.size(); ++k)
      if (p_.alive_[k]) sum += weighted(moved_[k], p_.weights_[r++]);
    return sum;
  }

 private:
  using Whole = std::vector<f128>;

  static Whole whole(const Tensor& t) {
    const Storage& memory = *t.impl()->storage;
    const auto* const data = static_cast<const f128*>(memory.data);
    return {data, data + memory.nbytes / sizeof(f128)};
  }

  void step(const Statement& s, size_t i) {
    if (s.kind == StatementKind::Scope || s.kind == StatementKind::Hook) return;
    if (s.is_write()) return write(s, i);
    const size_t known = still_.size();
    p_.execute(s, still_, true, i);
    if (!constants_[i]) p_.execute(s, moved_, true, i);
    for (size_t k = known; constants_[i] && k < still_.size(); ++k) moved_.push_back(constant(s, still_[k]));
    if (s.kind == StatementKind::Drop) moved_[size_t(s.target())] = {};
    if (!jitter_ || s.kind == StatementKind::View || s.kind == StatementKind::Drop) return;
    for (size_t k = known; k < still_.size(); ++k)
      if (still_[k].impl()->storage->unique()) put_off_both(k);  // a composite may give a view
  }

  /// What gives its argument itself gives its derivatives too.
  Tensor constant(const Statement& s, const Tensor& result) const {
    for (const Statement::Link& l : s.links)
      if (still_[size_t(l.handle)].is_same(result)) return moved_[size_t(l.handle)];
    return copy_as(result);
  }

  void write(const Statement& s, size_t i) {
    const auto target = size_t(s.target());
    const Whole before = whole(still_[target]);
    p_.execute(s, still_, true, i);
    if (!constants_[i]) p_.execute(s, moved_, true, i);
    if (jitter_) {
      uint64_t again = state_;
      put_off(still_[target], again);
      if (constants_[i]) state_ = again;
      else put_off(moved_[target], state_);
    }
    const Whole after = whole(still_[target]);
    std::vector<const Storage*> done;
    if (!constants_[i]) done.push_back(moved_[target].impl()->storage);
    for (size_t k = 0; k < moved_.size(); ++k) {
      if (!moved_[k].defined() || !still_[k].shares_storage(still_[target])) continue;
      const Storage* const memory = moved_[k].impl()->storage;
      if (std::ranges::find(done, memory) != done.end()) continue;
      done.push_back(memory);
      for (size_t e = 0; e < before.size(); ++e) static_cast<f128*>(memory->data)[e] += after[e] - before[e];
    }
  }

  void put_off_both(size_t k) {
    uint64_t again = state_;
    put_off(still_[k], again);
    put_off(moved_[k], state_);
  }

  void hooks_at(int made_at) {
    for (size_t i = 0; i < p_.statements_.size(); ++i) {
      const Statement& s = p_.statements_[i];
      if (s.kind != StatementKind::Hook || s.made_at != made_at || levels_) continue;
      const Tensor &moved = moved_[size_t(s.target())], &still = still_[size_t(s.target())];
      auto* const data = static_cast<f128*>(moved.raw_data());
      const auto* const from = static_cast<const f128*>(still.raw_data());
      for (size_t e = 0; e < part_count(moved); ++e) data[e] = from[e] + f128(s.factor) * (data[e] - from[e]);
    }
    if (!injected_.by.defined()) return;
    const Statement& at = p_.statements_[injected_.hook];
    if (at.made_at != made_at) return;
    inject(at);
  }

  /// Behind the hooks that the handle has: they give what it retains.
  void inject(const Statement& at) {
    f128 factor = 1;
    for (const Statement& s : p_.statements_)
      if (s.kind == StatementKind::Hook && s.made_at == at.made_at && s.target() == at.target())
        factor *= f128(s.factor);
    auto* const data = static_cast<f128*>(moved_[size_t(at.target())].raw_data());
    const auto* const by = static_cast<const double*>(injected_.by.raw_data());
    for (size_t e = 0; e < part_count(injected_.by); ++e) data[e] += factor * injected_.step * by[e];
  }

  const Script& p_;
  bool levels_;
  Tensors moved_, still_;
  uint32_t jitter_;
  const Injected& injected_;
  uint64_t state_;
  std::vector<bool> constants_;
};

f128 twin_value(const Script& p, bool levels, Tensors moved, Tensors still, uint32_t jitter,
                const Injected& injected) {
  return Twin(p, levels, std::move(moved), std::move(still), jitter, injected).value();
}

}  // namespace lamella::verify
