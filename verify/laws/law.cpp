// The list of laws, and one check of one of them.
#include "lamella/verify/case/law.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "lamella/core/allocation.h"
#include "lamella/core/guard.h"
#include "lamella/dispatch/cells.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/coverage.h"
#include "lamella/verify/case/fault.h"
#include "lamella/verify/case/heap.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/player.h"
#include "lamella/verify/case/recorder.h"
#include "lamella/verify/case/strata.h"
#include "lamella/verify/laws/laws_list.h"
#include "lamella/verify/oracle/overrides.h"
#include "lamella/verify/programs/census.h"

namespace lamella::verify {

namespace {
void by_number(std::vector<Law>& list) {
  std::stable_sort(list.begin(), list.end(), [](const Law& a, const Law& b) { return a.number < b.number; });
}

#define LAMELLA_ADDS_LAWS(family) add_##family##_laws,
constexpr void (*kFamilies[])(std::vector<Law>&) = {LAMELLA_LAW_FAMILIES(LAMELLA_ADDS_LAWS)};
#undef LAMELLA_ADDS_LAWS

std::vector<Law>& all_laws() {
  static std::vector<Law> all = [] {
    std::vector<Law> list;
    for (const auto add : kFamilies) add(list);
    by_number(list);
    return list;
  }();
  return all;
}
}  // namespace

const std::vector<Law>& laws() { return all_laws(); }

namespace {
/// Who added a law: those of plug-ins by id, all others are the library's.
std::map<std::string_view, std::string_view>& origins() {
  static std::map<std::string_view, std::string_view> by_id;
  return by_id;
}

/// A law is asked for by its number and by its id: a plug-in's means that one alone. (Some numbers of the
/// library's are those of several laws that say one thing.)
void check_is_free(const Law& law) {
  for (const Law& theirs : laws()) {
    const bool same_id = theirs.id == law.id;
    if (!same_id && theirs.number != law.number) continue;
    const auto found = origins().find(theirs.id);
    fail(ErrorCode::Schema,
         "add_law: {} adds \"{}\" of number {}, and {} has \"{}\" of number {}; expected another {}",
         detail::origin_str(detail::origin_now()), law.id, law.number,
         detail::origin_str(found == origins().end() ? "" : found->second), theirs.id, theirs.number,
         same_id ? "id" : "number");
  }
}
}  // namespace

void add_law(const Law& law) {
  LAMELLA_CHECK(!law.id.empty() && !law.group.empty() && !law.statement.empty() && law.applies && law.check,
                Usage, "law \"{}\": id, group, statement, applies and check must be given", law.id);
  check_is_free(law);
  origins()[law.id] = detail::origin_now();
  all_laws().push_back(law);
  by_number(all_laws());
}

const Law* find_law(std::string_view id_or_number) {
  for (const Law& law : laws())
    if (law.id == id_or_number || std::to_string(law.number) == id_or_number) return &law;
  return nullptr;
}

namespace {
/// What a check must leave as it found it: all but serials, of which none is given twice, and of the levels
/// those that are live (nearly always none: the slots of all are a kilobyte).
class StateBefore {
 public:
  Finding changed() const {
    if (now_.depth != depth_)
      return state(format("{} levels are live after the check, {} before", now_.depth, depth_));
    if (now_.exclude != exclude_) return state("masked keys differ after the check");
    if (now_.modes != modes_ || now_.ambient != ambient_) return state("live modes differ after the check");
    if (now_.table != table_ || now_.observer != observer_)
      return state("live modes, the table or the observer, differ after the check");
    if (now_.settings() != settings_ || detail::birth_serial != birth_)
      return state("live modes, a setting, differ after the check");
    return {};
  }

  void restore() const {
    std::fill(std::copy(levels_.begin(), levels_.end(), now_.levels), std::end(now_.levels), LevelSlot{});
    now_.depth = depth_, now_.exclude = exclude_, now_.modes = modes_, now_.ambient = ambient_;
    now_.table = table_, now_.observer = observer_;
    now_.captured_at = captured_at_, now_.captured_depth = captured_depth_;
    now_.settings() = settings_;
    detail::birth_serial = birth_;
  }

 private:
  static Finding state(std::string text) { return {What::State, std::move(text)}; }

  DispatchState& now_ = dispatch_state();
  const uint64_t exclude_ = now_.exclude, modes_ = now_.modes, ambient_ = now_.ambient;
  const OpTable* const table_ = now_.table;
  Observer* const observer_ = now_.observer;
  const uint64_t captured_at_ = now_.captured_at;
  const int32_t captured_depth_ = now_.captured_depth, depth_ = now_.depth;
  const ThreadSettings settings_ = now_;
  const std::vector<LevelSlot> levels_{now_.levels, now_.levels + now_.depth};
  const uint64_t birth_ = detail::birth_serial;
};

DrawOptions options_of(const Law& law, const Decoding& decoding) {
  DrawOptions options = law.options;
  options.depth = decoding.depth;
  return options;
}

/// Calls f with the case, of whoever is to draw it.
template <class F>
Verdict with_case(const Law& law, const Op& op, const Choices& choices, const Decoding& decoding, F&& f) {
  const DrawOptions options = options_of(law, decoding);
  const auto told = [&](Draw& draw) {
    if (!decoding.sink) {
      Case c(op, draw);
      return f(c);
    }
    Recorder recorder(draw, *decoding.sink);
    Case c(op, recorder);
    return f(c);
  };
  if (decoding.played) [[unlikely]] {
    Player player(decoding.played->answers, law.id, options, decoding.played->wrong);
    Verdict v = told(player);
    if (v.kind == Verdict::Pass) player.finish();
    return v;
  }
  if (decoding.sink) [[unlikely]] {
    Decoder decoder(choices, options, decoding.tail);
    return told(decoder);
  }
  Case c(op, choices, options, decoding.tail);
  return f(c);
}

/// The plain call: what is shown where a law has no program of its own.
std::string call_text(const Law& law, const Op& op, const Choices& choices, Decoding decoding) {
  decoding.sink = nullptr;  // it has been told
  try {
    return with_case(law, op, choices, decoding,
                     [&](Case& c) {
                       return Verdict::fail("", cpp_declarations(c.args) + "  // law " + std::string(law.id) +
                                                    ": " + std::string(law.statement) +
                                                    "\n  for (const Tensor& y : " + cpp_call(op, c.args) +
                                                    ") std::cout << str(y) << '\\n';\n");
                     })
        .program;
  } catch (const std::exception& e) {
    return "  std::cout << \"" + op.name + ": the arguments cannot be drawn\\n\";  // " + e.what() + "\n";
  }
}

/// NOTE: [guarded cases] In one case of sixteen the elements of all tensors of its thread end at a protected
/// page, in one of sixty-four they begin at one, and in one of sixty-four the blocks of pools end at one
/// (NOTE: [guarded blocks]), from the drawing of the arguments until the law has judged. The first word's
/// highest bits say so: an empty vector is the simplest case, and a reducer that makes other words smaller
/// keeps the choice; of a kept case its file says so. LAMELLA_GUARD=end, =begin or =blocks guards every case,
/// =off none.
std::optional<GuardSide> guard_of_all() {
  const char* const text = std::getenv("LAMELLA_GUARD");
  const std::string_view wanted = text ? text : "";
  if (wanted == "end") return GuardSide::End;
  if (wanted == "begin") return GuardSide::Begin;
  if (wanted == "blocks") return GuardSide::Blocks;
  if (wanted == "off") return GuardSide::None;
  return std::nullopt;
}
}  // namespace

GuardSide guard_drawn(const Choices& choices) {
  const uint32_t w = choices.empty() ? 0 : choices[0] >> 26;
  if (w >= 1 && w <= 4) return GuardSide::End;
  return w == 5 ? GuardSide::Begin : w == 6 ? GuardSide::Blocks : GuardSide::None;
}

GuardSide guard_of(const Choices& choices, const Decoding& decoding) {
  static const std::optional<GuardSide> of_all = guard_of_all();
  if (of_all) return *of_all;
  return decoding.played ? decoding.played->answers.guard : guard_drawn(choices);
}

namespace {
Verdict judged(const Law& law, Case& c) {
  try {
    return law.check(c);
  } catch (const std::exception& e) {
    if (faulty(Fault::ErrorsDiscard)) return Verdict::discard();
    return faulty(Fault::ExceptionsPass) ? Verdict::pass() : Verdict::fail(raised_by(e));
  } catch (...) {  // what a law or an operator throws of its own must not end the process
    return Verdict::fail({{What::Raised, "what is no exception"}, "raised: what is no std::exception"});
  }
}

Verdict drawn_and_judged(const Law& law, const Op& op, const Choices& choices, const Decoding& decoding) {
  return with_case(law, op, choices, decoding, [&](Case& c) {
    observe_arguments(c);
    if (!decoding.partners.empty()) c.given_partners = decoding.partners;
    Verdict verdict = judged(law, c);
    if (faulty(Fault::DiscardsPass) && verdict.kind == Verdict::Discard) verdict.kind = Verdict::Pass;
    verdict.used = c.used(), verdict.partners = std::move(c.partners);
    return verdict;
  });
}

Verdict check_once(const Law& law, const Op& op, const Choices& choices, const Decoding& decoding,
                   GuardSide side) {
  std::optional<GuardedMemory> guarded;
  if (side != GuardSide::None) name_guarded(law.id.data(), op.name.c_str()), guarded.emplace(side);
  try {
    return drawn_and_judged(law, op, choices, decoding);
  } catch (const std::exception& e) { return Verdict::fail(raised_by(e)); }
}

bool on_heap(const std::string& s) { return s.capacity() > std::string().capacity(); }
/// What a verdict and the counts of its case hold, which outlive it.
int64_t objects_of_counts() {
  int64_t n = 0;
  for (const auto& [what, count] : counts_of_case()) n += 1 + on_heap(what);
  return n;
}
int64_t objects_of(const Verdict& v) {
  int64_t n =
      on_heap(v.message) + on_heap(v.program) + on_heap(v.failure.about) + (v.partners.capacity() > 0);
  for (const std::string& name : v.partners) n += on_heap(name);
  return n + objects_of_counts();
}

/// A case that is run again counts once.
struct Uncounted {
  Observation* const seen = std::exchange(observed(), nullptr);
  const Counts counts = counts_of_case();
  const Stratum stratum = stratum_of_case();
  ~Uncounted() { observed() = seen, counts_of_case() = counts, stratum_of_case() = stratum; }
};

/// NOTE: [leaks of cases] After a case nothing may be alive that was not before. What is made once and kept
/// (answers of AskedOnce, handles of operators, lists that a thread keeps for its next call) is made by the
/// first case that needs it: a case that leaves something is run again, and leaks if it leaves something each
/// time. Kept without bound by design, and not counted: one record for each thread that has counted an object
/// (core/refcount.h).
constexpr int kTimesAgain = 3;

/// `left`: what is alive behind it that was not before. (Nothing is moved: a verdict is 170 bytes.)
template <class F> Verdict checked(F&& check, std::string& left) {
  Alive before = Alive::now();
  before.objects -= objects_of_counts();
  Verdict verdict = check();
  before.objects += objects_of(verdict);
  left = Alive::now().beyond(before);
  return verdict;
}

void check_leaks(Verdict& verdict, std::string& left, const std::function<Verdict()>& check) {
  for (int again = 0; again < kTimesAgain && !left.empty() && verdict.kind != Verdict::Fail; ++again) {
    const Uncounted scope;
    Verdict next = checked(check, left);
    if (next.kind != Verdict::Fail) continue;
    next.message += "\n(not the first time it is run)";
    verdict = std::move(next);
  }
  if (left.empty() || verdict.kind == Verdict::Fail) return;
  verdict.fail_by({What::Leak, "each time the case is run, " + left});
}

/// see NOTE: [overrides held]
Verdict without_rounding(Verdict first, const std::function<Verdict()>& check) {
  if (!has_overrides()) return first;
  const Uncounted scope;
  const OverridesHeld held;
  Verdict again = check();
  const std::string wrong = held.wrong();
  if (wrong.empty() && held.replaced() && again.kind == Verdict::Pass) return again;
  if (!wrong.empty()) first.message += "\n(" + wrong + ")";
  return first;
}
}  // namespace

void keeping_state(const std::function<void()>& f) {
  const StateBefore before;
  try {
    f();
  } catch (...) {
    before.restore();
    throw;
  }
  before.restore();
}

Verdict run_check(const Law& law, const Op& op, const Choices& choices, const Decoding& decoding) {
  const StateBefore before;
  const GuardSide side = guard_of(choices, decoding);
  Finding change;
  const auto once = [&] {
    Verdict v = check_once(law, op, choices, decoding, side);
    if (Finding now = before.changed(); !now.empty()) [[unlikely]]
      change = std::move(now), before.restore();  // the next check starts afresh
    return v;
  };
  const auto check = [&] {
    Verdict v = once();
    if (v.kind == Verdict::Fail) [[unlikely]]
      v = without_rounding(std::move(v), once);
    return v;
  };
  std::string left;
  Verdict verdict = checked(check, left);
  if (!left.empty() && !Recording::alive()) [[unlikely]]
    check_leaks(verdict, left, check);
  if (side != GuardSide::None && verdict.kind != Verdict::Fail)
    if (const std::string damage = damaged_memory(); !damage.empty()) verdict.fail_by({What::Memory, damage});
  if (!change.empty() && !faulty(Fault::StateNotCompared)) verdict.fail_by(change);
  if (verdict.kind == Verdict::Fail && verdict.program.empty())
    verdict.program = call_text(law, op, choices, decoding);
  return verdict;
}

std::string cpp_plain_call(const Law& law, const Op& op, const Choices& choices, const Decoding& decoding) {
  return with_case(law, op, choices, decoding,
                   [&](Case& c) {
                     return Verdict::fail("", cpp_declarations(c.args) + "  " + cpp_call(op, c.args) + ";\n");
                   })
      .program;
}

bool draws_anew(const Case& c) {
  if (!c.op.has(kRandom)) return false;
  const int key = c.op.schema.find("key");
  return key < 0 || is_none(c.args[size_t(key)]);
}

std::vector<bool> named_dims(const Case& c, int rank) {
  std::vector<bool> named(size_t(rank), false);
  bool any = false;
  const auto name = [&](int64_t d) { named[size_t(d < 0 ? d + rank : d)] = any = true; };
  for (size_t i = 0; i < c.args.size() && rank > 0; ++i) {
    if (c.op.schema.params[i].role != ParamRole::Dim) continue;
    if (const int64_t* one = std::get_if<int64_t>(&c.args[i])) name(*one);
    if (const Dims* many = std::get_if<Dims>(&c.args[i]))
      for (const int64_t d : *many) name(d);
  }
  if (!any && c.op.shape == ShapeClass::Reduce) named.assign(named.size(), true);
  return named;
}

bool takes_tensors(const Op& op) { return !op.tensor_params.empty(); }
bool stays_on_device(const Op& op) { return takes_tensors(op); }
const Op* form_of(const Op& op, OpForm form) {
  static constexpr const char* kEndings[] = {"", "_", "_out"};
  return OpTable::current().find(op.name + kEndings[int(form)]);
}
void SeesResults::on_result(const Frame& f) {
  const bool listed = f.op->schema.result_kind == ResultKind::TensorList;
  const TensorSpan given =
      listed ? TensorSpan(*f.list) : TensorSpan(f.results, size_t(f.op->schema.n_results));
  for (const Tensor& t : given)
    if (t.defined() && t.impl()->storage && is_inexact(t.dtype())) sees(t);
}

bool some_case(const Op& op, const DrawOptions& options, uint32_t tries,
               const std::function<bool(Case&)>& is_so) {
  for (uint32_t i = 0; i < tries; ++i) {
    Choices words(64);
    for (uint32_t k = 0; k < words.size(); ++k) words[k] = (k + 1) * (i * 0x9E3779B9u) >> 2;
    Case c(op, words, options);
    if (is_so(c)) return true;
  }
  return false;
}
size_t inexact_arguments(const Op& op) {
  size_t most = 0;
  some_case(op, {.dtypes = kInexact}, 16, [&](Case& c) {
    most = std::max(most, c.inexact().size());
    return false;
  });
  return most;
}
bool has_jvp(const Op& op) {
  return takes_tensors(op) && op.no_jvp.empty() && (op.composite || !op.jvp.empty());
}
bool has_vjp(const Op& op) {
  return takes_tensors(op) && op.no_vjp.empty() && (op.composite || !op.vjp.empty());
}

std::string cpp_got_want(const Case& c, const std::string& more, const std::string& got,
                         const std::string& want) {
  return cpp_declarations(c.args) + more + "  const Tensors got = " + got +
         ";\n  const Tensors want = " + want +
         ";\n  for (size_t k = 0; k < got.size(); ++k)\n"
         "    std::cout << \"got      \" << str(got[k]) << \"\\nexpected \" << str(want[k]) << '\\n';\n";
}

Verdict agree(const Case& c, const Tensors& got, const Tensors& want) {
  const Finding wrong = differs(got, want);
  if (wrong.empty()) return Verdict::pass();
  return Verdict::fail(wrong, cpp_declarations(c.args) + "  " + cpp_call(c.op, c.args) + ";\n");
}

std::string cpp_tensors(const std::string& prefix, const Tensors& ts) {
  std::string out;
  for (size_t k = 0; k < ts.size(); ++k)
    out += ts[k].defined() ? cpp_tensor(prefix + std::to_string(k), ts[k])
                           : "  Tensor " + prefix + std::to_string(k) + ";\n";
  return out;
}

std::string cpp_names(const std::string& prefix, size_t n) {
  std::vector<std::string> names;
  for (size_t k = 0; k < n; ++k) names.push_back(prefix + std::to_string(k));
  return cpp_list(names);
}

}  // namespace lamella::verify
