// Drawing statement programs: each statement is tried on plain numbers, and kept where it is tame and smooth.
#include "lamella/verify/programs/statements.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lamella/verify/case/lanes.h"
#include "lamella/verify/oracle/oracle.h"
#include "lamella/verify/programs/census.h"
#include "lamella/verify/programs/statements_draw.h"

namespace lamella::verify {

Tensor few_bits(const Tensor& like, uint64_t& state) {
  Tensor t = make_tensor(like.sizes(), like.dtype());
  auto* const data = static_cast<double*>(t.raw_data());
  for (size_t i = 0; i < part_count(t); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto w = uint32_t(state >> 40);
    data[i] = double(1 + w % 15) / 8 * (w >> 8 & 1 ? -1 : 1);
  }
  return t;
}

namespace {

constexpr double kLargest = 64;
constexpr int64_t kMostElements = 320, kMostOfInputs = 12;
constexpr size_t kMostHandles = 20;

bool tame(const Tensor& t, int64_t most) {
  if (t.numel() == 0 || t.numel() > most || t.rank() > 4) return false;
  bool ok = true;
  each_part<const double>(t, [&](double x) { ok &= std::abs(x) <= kLargest; });
  return ok;
}

bool is_handle(const Tensor& t) { return t.dtype() == DType::F64 || t.dtype() == DType::C128; }

/// All floating results are f64 or c128 and tame; at least one is there.
bool tame(const Tensors& ts, int64_t most) {
  size_t n = 0;
  for (const Tensor& t : ts) {
    if (!is_inexact(t.dtype())) continue;
    if (!is_handle(t) || !tame(t, most)) return false;
    ++n;
  }
  return n > 0;
}

/// The functional operator of a statement, and its arguments and links.
struct Functional {
  const Op* op;
  Values args;
  std::vector<Case::Slot> slots;

  Functional(const Statement& s, const Tensors& handles) : op(s.op->base), args(s.args) {
    for (const Statement::Link& l : s.links) {
      entry(args, l.slot) = handles[size_t(l.handle)];
      slots.push_back(l.slot);
    }
    if (s.kind != StatementKind::Out) return;
    args.erase(args.begin());
    slots.erase(slots.begin());
    for (Case::Slot& slot : slots) --slot.param;
  }
  Tensors call() const { return call_boxed(*op, args); }

  /// At operands that are put off by a step in directions of their own, elements that tie as well: no two are
  /// the same number.
  Tensors beside(double step, uint64_t state) const {
    Values moved = args;
    for (const Case::Slot& slot : slots) {
      const Tensor t = plain_copy(entry(moved, slot));
      for (size_t i = 0; i < part_count(t); ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        static_cast<double*>(t.raw_data())[i] += step * (double(state >> 40) * 0x1p-23 - 1);
      }
      entry(moved, slot) = t;
    }
    return call_boxed(*op, moved);
  }

  /// Slopes here are below 2^8 and change by less than 2^-7 within steps of 2^-12: no kink, no singularity.
  /// Where three tie, one direction in three sees a straight line through the kink: eight are asked.
  bool smooth(const Tensors& here) const {
    if (op->has(kLinear) || op->is_view()) return true;
    const uint64_t directions = op->has(kKinks) ? 8 : 1;
    for (uint64_t k = 0; k < directions; ++k)
      if (!smooth_along(12345 + 977 * k, here)) return false;
    return !has_zero() || settles(here);
  }

  /// As `settles`, of second differences: those of a smooth function differ by 2^-24 of the fourth
  /// derivative.
  bool bends_settle() const {
    constexpr double kLong = 0x1p-12, kShort = 0x1p-40, kDrift = 0x1p-16;
    if (op->has(kLinear) || op->is_view() || !has_zero()) return true;
    const WideDefault scope;
    const Reals here = flatten(call_boxed(*op, to_reference(args))), wide = bends(here, kLong),
                narrow = bends(here, kShort);
    for (size_t i = 0; i < here.size(); ++i)
      if (!(std::abs(double(wide[i] - narrow[i])) <= kDrift * (1 + std::abs(double(wide[i]))))) return false;
    return true;
  }

 private:
  bool has_zero() const {
    Values now = args;
    return std::ranges::any_of(slots, [&](const Case::Slot& slot) {
      const Tensor t = plain_copy(entry(now, slot));
      const auto* const v = static_cast<const double*>(t.raw_data());
      return std::any_of(v, v + part_count(t), [](double x) { return x == 0; });
    });
  }

  static double part(const Tensor& t, size_t i) { return static_cast<const double*>(t.raw_data())[i]; }

  /// At 0 slopes may grow without end and so slowly that no secant is steep: that of pow(0, 1 - 2^-19) is
  /// 1.00004 at 2^-28, and infinite. They have to stay as they are between steps of 2^-16 and 2^-24, to
  /// 2^-18; a smooth one changes by 2^-32 of the third derivative there.
  bool settles(const Tensors& here) const {
    constexpr double kLong = 0x1p-16, kShort = 0x1p-24, kDrift = 0x1p-18;
    const Tensors a = beside(kLong, 4711), b = beside(-kLong, 4711), c = beside(kShort, 4711),
                  d = beside(-kShort, 4711);
    for (size_t k = 0; k < here.size(); ++k) {
      if (!is_handle(here[k])) continue;
      const Tensor up = plain_copy(a[k]), down = plain_copy(b[k]), near_up = plain_copy(c[k]),
                   near_down = plain_copy(d[k]);
      for (size_t i = 0; i < part_count(up); ++i) {
        const double wide = (part(up, i) - part(down, i)) / (2 * kLong);
        const double narrow = (part(near_up, i) - part(near_down, i)) / (2 * kShort);
        if (!(std::abs(wide - narrow) <= kDrift * (1 + std::abs(wide)))) return false;
      }
    }
    return true;
  }

  /// Second differences in f128, of all operands along one direction.
  Reals bends(const Reals& here, f128 step) const {
    const auto moved = [&](f128 by) {
      Values all = to_reference(args);
      uint64_t state = 4711;
      for (const Case::Slot& slot : slots) {
        Tensor& t = entry(all, slot) = plain_copy(entry(all, slot));
        each_part<f128>(t, [&](f128& part) {
          state = state * 6364136223846793005u + 1442695040888963407u;
          part += by * (double(state >> 40) * 0x1p-23 - 1);
        });
      }
      return flatten(call_boxed(*op, all));
    };
    Reals out = moved(step);
    const Reals down = moved(-step);
    for (size_t i = 0; i < out.size(); ++i) out[i] = (out[i] + down[i] - 2 * here[i]) / (step * step);
    return out;
  }

  bool smooth_along(uint64_t direction, const Tensors& here) const {
    constexpr double kStep = 0x1p-12, kSlope = 0x1p8, kBend = 0x1p-7;
    const Tensors up = beside(kStep, direction), down = beside(-kStep, direction);
    for (size_t k = 0; k < here.size(); ++k) {
      if (!is_handle(here[k])) continue;
      if (!std::ranges::equal(up[k].sizes(), here[k].sizes())) return false;
      const Tensor y = plain_copy(here[k]), u = plain_copy(up[k]), d = plain_copy(down[k]);
      for (size_t i = 0; i < part_count(y); ++i) {
        const double a = part(u, i), b = part(y, i), c = part(d, i);
        if (!(std::abs(a - c) <= 2 * kStep * kSlope) || !(std::abs(a - 2 * b + c) <= kStep * kBend))
          return false;
      }
    }
    return true;
  }
};

}  // namespace

class Drawer {
 public:
  Drawer(Script& p, Case& c, bool base) : p_(p), c_(c), base_(base) {}

  void draw() {
    const uint32_t shape = c_.draw.word(), count = c_.draw.word();
    p_.seed_ = shape;
    const uint32_t n = 1 + count % 16, own = count / 16 % n;
    writes_first_ = base_ && n >= 3 && count / 262144 % 2 == 1;
    make_inputs(shape);
    writes_inputs_ = count / 256 % 16 == 15;
    const bool keeps_raising = count / 4096 % 8 == 7;
    wants_alias_ = n >= 3 && count / 32768 % 8 > 2;
    for (uint32_t i = 0; i < n && !p_.raises_; ++i) {
      uint32_t word = c_.draw.word("statement");
      for (int tries = 0; tries < 3 && !try_statement(word, i == own, n - i, keeps_raising); ++tries)
        word = word * 0x9E3779B9u >> 3;
    }
    finish();
  }

 private:
  /// Whether these digits gave a statement; those of the word 0 give none, and are content.
  bool try_statement(uint32_t word, bool own, uint32_t left, bool keeps_raising) {
    Digits d(word);
    Scene scene{handles_, p_.inputs_.size(), writes_inputs_};
    scene.open = open_;
    for (const auto& [memory, by] : made_by_)
      if (by.first >= 0 && handles_[size_t(by.first)].defined()) {
        // Results of one node beside others are worth more: hooks are told apart there.
        const bool of_many = by.second >= 0 && !p_.statements_[size_t(by.second)].op;
        scene.hookable.insert(scene.hookable.end(), of_many ? 3 : 1, by);
      }
    const Wanted wanted = own ? Wanted::Anything : next_wanted(d, scene, left);
    scene.only_shared = wanted == Wanted::Write;
    if (!own && begins_with_write()) scene.only = int(p_.inputs_.size());
    std::optional<Statement> s = own ? own_statement(d, scene, c_) : draw_statement(d, scene, c_, wanted);
    if (!s || handles_.size() >= kMostHandles) return word == 0;
    const size_t before = p_.statements_.size();
    add(std::move(*s), keeps_raising);
    return p_.statements_.size() > before;
  }

  /// Half of all programs write through an alias: they make a result, a view of it, and write to either.
  Wanted next_wanted(Digits& d, const Scene& scene, uint32_t left) {
    if (begins_with_write()) return is_capture_written() ? Wanted::View : Wanted::Write;
    if (!(wants_alias_ || writes_first_) || p_.alias_writes_ > 0) return Wanted::Anything;
    if (left > 3 && d.below(2) == 0) return Wanted::Anything;
    bool result = false, shared = false;
    for (const int k : scene.live())
      if (!scene.is_of_input(k)) result = true, shared |= scene.is_shared(k);
    return shared ? Wanted::Write : result ? Wanted::View : Wanted::Result;
  }

  /// Until the first capture has been written, and viewed then: see NOTE: [written before viewed].
  bool begins_with_write() const {
    const size_t at = p_.inputs_.size();
    if (!writes_first_ || !handles_[at].defined()) return false;
    return !Scene{handles_, at, writes_inputs_}.is_shared(int(at));
  }
  bool is_capture_written() const {
    return std::ranges::any_of(p_.statements_, [&](const Statement& s) {
      return s.is_write() && s.target() == int(p_.inputs_.size());
    });
  }

  /// The operator's own arguments, and one more tensor; then constants.
  void make_inputs(uint32_t word) {
    static constexpr std::initializer_list<int64_t> kShapes[] = {{3},       {2, 3}, {2, 2}, {4},
                                                                 {2, 1, 3}, {},     {2},    {3, 2}};
    static constexpr std::initializer_list<int64_t> kLarge[] = {{17}, {4, 5}, {3, 2, 4}, {2, 33}};
    uint64_t state = word;
    Digits layouts(word / 24);
    const bool large = layouts.below(8) == 7, is_complex = layouts.below(4) >= (writes_first_ ? 2u : 3u);
    const auto blank = [](Ints sizes, bool complex) {
      return make_tensor(sizes, complex ? DType::C128 : DType::F64, Device::Meta);
    };
    const auto& shapes = large ? kLarge[word % 4] : kShapes[word % 8];
    for (const Tensor& t : c_.values(c_.inexact()))
      if (t.dtype() == DType::F64 && tame(t, kMostOfInputs) && p_.inputs_.size() < 2)
        p_.inputs_.push_back(plain_copy(t));
    if (p_.inputs_.size() < 2)
      p_.inputs_.push_back(few_bits(blank(Ints(shapes.begin(), shapes.size()), false), state));
    if (is_complex) p_.inputs_.back() = few_bits(blank(p_.inputs_.back().sizes(), true), state);
    for (uint32_t k = std::max(word / 8 % 3, uint32_t(writes_first_)); k > 0; --k) {
      const Tensor& like = p_.inputs_[k % p_.inputs_.size()];
      p_.captures_.push_back(few_bits(like, state));
    }
    for (Tensors* const ts : {&p_.inputs_, &p_.captures_})
      for (Tensor& t : *ts) {
        const uint32_t kind = layouts.below(2 * kLayouts);  // half of them are dense
        const bool first = writes_first_ && &t == &p_.captures_.front();
        t = laid_out(t, first ? kLaidForWrites[kind % kLayouts] : kind < kLayouts ? 0 : kind - kLayouts);
        hold(copy_as(t));
      }
    for (size_t k = 0; k < p_.inputs_.size(); ++k) made_by(int(k), -1);
    p_.seen_.geometry.clear();  // as seen inside, inputs are given
  }

  void hold(const Tensor& t) {
    handles_.push_back(t);
    p_.alive_.push_back(true);
    p_.sizes_.push_back(make_tensor(t.sizes(), t.dtype(), Device::Meta));
    p_.dense_.push_back(t.is_contiguous());
    p_.seen_.note(t);
    const auto number = [](auto& known, const void* p) {
      const auto at = std::ranges::find(known, p);
      const int n = int(at - known.begin());
      if (at == known.end()) known.push_back(p);
      return n;
    };
    keep_.push_back(t);  // so that addresses stay taken
    p_.storage_.push_back(number(storages_, t.impl()->storage));
    p_.header_.push_back(number(headers_, t.impl()));
  }

  /// That hooks of the handle belong to statement `at`: it made all of the handle's memory what it is.
  void made_by(int handle, int at) {
    const Tensor& t = handles_[size_t(handle)];
    const bool all = t.is_contiguous() && t.impl()->offset == 0 &&
                     int64_t(t.impl()->storage->nbytes) == t.numel() * itemsize(t.dtype());
    made_by_[p_.storage_[size_t(handle)]] = {all ? handle : -1, at};
  }

  void note_makers(const Statement& s, size_t known) {
    const int at = int(p_.statements_.size());
    if (s.is_write()) made_by(s.target(), at);
    // What a composite gives may be a view, or on the way to another result.
    for (size_t k = known; k < handles_.size(); ++k) {
      if (made_by_.contains(p_.storage_[k])) continue;
      made_by(int(k), at);
      if (s.op && s.op->composite) made_by_[p_.storage_[k]].first = -1;
    }
    if (s.is_write() && open_ > 0) made_by_[p_.storage_[size_t(s.target())]].first = -1;
  }

  /// Tries the statement; one that raises ends the program where that is wanted, and is left out elsewhere.
  void add(Statement s, bool keeps_raising) {
    if (s.kind == StatementKind::Drop) {
      handles_[size_t(s.target())] = {};
      p_.alive_[size_t(s.target())] = false;
      p_.statements_.push_back(std::move(s));
      return;
    }
    if (s.kind == StatementKind::Fresh) {
      hold(plain_copy(s.fresh));
      p_.statements_.push_back(std::move(s));
      return;
    }
    if (s.kind == StatementKind::Scope) open_ += s.scope == ScopeKind::End ? -1 : 1;
    if (!s.op && s.kind != StatementKind::Custom) return p_.statements_.push_back(std::move(s));
    try {
      const size_t known = handles_.size();
      if (!run(s)) return;
      note_makers(s, known);
      p_.statements_.push_back(std::move(s));
    } catch (const Error& e) {
      if (!keeps_raising || s.own) return;
      p_.raises_ = true, p_.code_ = e.code();
      p_.statements_.push_back(std::move(s));
    }
  }

  bool run_custom(Statement& s) {
    Tensors operands;
    for (const Statement::Link& l : s.links) operands.push_back(handles_[size_t(l.handle)]);
    const Tensors results = custom_functions()[s.custom].plain(operands);
    if (!tame(results, kMostElements)) return false;
    s.kept.assign(results.size(), true);
    for (const Tensor& t : results) hold(t);
    return true;
  }

  bool run(Statement& s) {
    if (s.kind == StatementKind::Custom) return run_custom(s);
    if (s.kind != StatementKind::View) {
      const Functional f(s, handles_);
      const Tensors ys = f.call();
      if (!tame(ys, kMostElements) || !f.smooth(ys)) return false;
    }
    Values args = s.args;
    for (const Statement::Link& l : s.links) entry(args, l.slot) = handles_[size_t(l.handle)];
    const Scene scene{handles_, p_.inputs_.size(), writes_inputs_};
    const Tensors results = call_boxed(*s.op, args);
    if (s.is_write()) {
      p_.alias_writes_ += scene.is_shared(s.target());
      return true;
    }
    for (const Tensor& t : results) s.kept.push_back(is_handle(t) && tame(t, kMostElements));
    if (handles_.size() + results.size() > kMostHandles + 4) s.kept.assign(s.kept.size(), false);
    for (size_t k = 0; k < results.size(); ++k)
      if (s.kept[k]) hold(results[k]);
    return std::ranges::find(s.kept, true) != s.kept.end();
  }

  void finish() {
    uint64_t state = p_.seed_ + 1;
    for (const Tensor& t : p_.inputs_) p_.directions_.push_back(few_bits(t, state));
    for (size_t k = 0; k < handles_.size(); ++k) {
      if (!p_.alive_[k]) continue;
      p_.weights_.push_back(few_bits(handles_[k], state));
      p_.values_.push_back(handles_[k]);
    }
    count();
    p_.seen_.at = p_.raises_ ? p_.statements_.size() - 1 : p_.statements_.size();
  }

  void count() const {
    Counts& counts = counts_of_case();
    ++counts["programs"];
    counts["with a write through an alias"] += p_.alias_writes_ > 0;
    counts["that raise"] += p_.raises_;
    for (const Statement& s : p_.statements_) {
      ++counts[std::string(name(s.kind))];
      counts["detached"] += s.op && s.kind == StatementKind::View && s.op->vjp.empty() && !s.op->composite;
    }
    counts["with complex inputs"] += lamella::is_complex(p_.inputs_.back().dtype());
    counts["with constants"] += p_.has_constants(true);
  }

  Script& p_;
  Case& c_;
  Tensors handles_, keep_;
  std::vector<const void*> storages_, headers_;
  bool writes_inputs_ = false, wants_alias_ = false;
  bool base_;
  bool writes_first_ = false;  ///< see NOTE: [written before viewed]
  int open_ = 0;               ///< scopes
  /// By memory: the handle that is all of it, or -1, and the statement that made it what it is.
  std::map<int, std::pair<int, int>> made_by_;
};

Script::Script(Case& c, bool base) { Drawer(*this, c, base).draw(); }

bool Script::has_second_derivatives(const Tensors& xs) const {
  Tensors handles;
  for (const Tensor& x : xs) handles.push_back(plain_copy(x));
  for (const Tensor& c : fresh_captures()) handles.push_back(c);
  for (size_t i = 0; i < statements_.size(); ++i) {
    const Statement& s = statements_[i];
    if (s.kind == StatementKind::Scope || s.kind == StatementKind::Hook) continue;
    const bool computes = s.op && s.kind != StatementKind::View && s.kind != StatementKind::Custom;
    if (computes && !Functional(s, handles).bends_settle()) return false;
    execute(s, handles, false, i);
  }
  return true;
}

Tensors Script::more_directions() const {
  Tensors out;
  uint64_t state = seed_ + 77;
  for (const Tensor& t : inputs_) out.push_back(few_bits(t, state));
  return out;
}

}  // namespace lamella::verify
