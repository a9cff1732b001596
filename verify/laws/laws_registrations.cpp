// The law of registrations: whoever finds an operator, while others register, finds all of it.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>

#include "lamella/core/plan.h"
#include "lamella/core/yield.h"
#include "lamella/dispatch/table.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/thread_schedule.h"
#include "lamella/verify/programs/drawn.h"

namespace lamella::verify {

namespace {

constexpr size_t kMostThreads = 3, kMostSteps = 3;
constexpr int kVersions = 1 + int(kMostThreads * kMostSteps);

/// What an operator's rows are told apart by: its results, and its text.
template <int Version> void version_kernel(const KernelCall& call) {
  const IterPlan plan = make_plan(call.outs, {});
  for_each_outer(plan, 0, [](char* const* at) { *reinterpret_cast<double*>(at[0]) = Version; });
}
template <int... V> constexpr std::array<KernelFn, kVersions> kernels_of(std::integer_sequence<int, V...>) {
  return {version_kernel<V>...};
}
constexpr auto kKernels = kernels_of(std::make_integer_sequence<int, kVersions>{});
constexpr std::string_view kTexts[kVersions] = {"version 0", "version 1", "version 2", "version 3",
                                                "version 4", "version 5", "version 6", "version 7",
                                                "version 8", "version 9"};

/// Two of these cannot be there together: the second one's name is that of the first one's in-place form.
constexpr std::string_view kAdded = "registration_added", kClash = "registration_added_";
constexpr std::string_view kReplaced = "registration_replaced";

OpDef definition(std::string_view schema, int version) {
  const KernelFn kernel = kKernels[size_t(version)];
  return {.schema = schema,
          .shape = ShapeClass::Broadcast,
          .kernel = {.cpu = kernel, .reference = kernel},
          .jvp = not_differentiable("a law's own operator"),
          .vjp = not_differentiable("a law's own operator"),
          .properties = kTestOnly,
          .samples = [](Draw&) -> lamella::Values { return {}; },
          .doc = kTexts[version]};
}

enum class StepKind : uint32_t { Add, AddClash, Replace, Ask, Call };
constexpr std::string_view kNames[] = {"add", "add the clash", "replace", "ask", "call"};

int version_of(const Op& op) {
  const auto at = std::ranges::find(kKernels, op.kernel.cpu);
  return at == kKernels.end() ? -1 : int(at - kKernels.begin());
}

/// "" when the operator is there with all its parts, which are of one definition, or not at all.
Finding not_whole(std::string_view name) {
  const OpTable& table = OpTable::current();
  const Op* const op = table.find(name);
  if (!op || op->form != OpForm::Functional) return "";  // the other one's form may have the name
  const int version = version_of(*op);
  const std::string what = format("{}, version {}: ", name, version);
  if (version < 0 || op->kernel.reference != op->kernel.cpu || op->doc != kTexts[version])
    return what + "its row is of several definitions";
  if (op->base != op || op->id >= table.size() || &table.row(op->id) != op)
    return what + "it is not its own row";
  const std::pair<OpForm, std::string> forms[] = {{OpForm::InPlace, op->name + "_"},
                                                  {OpForm::Out, op->name + "_out"}};
  for (const auto& [form, of] : forms) {
    const Op* const f = table.find(of);
    if (!f || f->form != form || f->base != op || f->kernel.cpu != op->kernel.cpu)
      return what + format("{} is not its form", of);
  }
  const ScopedTable pinned(&table);
  const Tensor x = full({2}, 0.5, DType::F64), out = full({2}, 0.25, DType::F64);
  const Tensor y = call(*op, {x})[0];
  call(*table.find(forms[1].second), {out, x});
  call(*table.find(forms[0].second), {x});
  for (const Tensor& t : {x, out, y})
    if (t.to_vector() != std::vector<double>(2, version)) return what + format("a call gave {}", str(t));
  return "";
}

/// One thread: its steps, and what became of them.
struct Registrar {
  int index;
  std::vector<StepKind> steps;
  const Function& f;
  const Tensors &xs, &want;
  const OpTable* pinned;
  std::map<std::string_view, int> added = {};  ///< how often it was let add a name
  bool replaced = false;
  Finding wrong = {};

  void run() {
    for (size_t k = 0; k < steps.size() && wrong.empty(); ++k) {
      Schedule::yield();
      wrong = take(steps[k], 1 + index * int(kMostSteps) + int(k));
      if (!wrong.empty()) wrong = format("thread {}, {}: ", index, kNames[size_t(steps[k])]) + wrong;
    }
  }
  Finding take(StepKind step, int version) {
    switch (step) {
      case StepKind::Add: return add(kAdded, "registration_added(Tensor x) -> Tensor", version);
      case StepKind::AddClash: return add(kClash, "registration_added_(Tensor x) -> Tensor", version);
      case StepKind::Replace:
        OpTable::replace(definition("registration_replaced(Tensor x) -> Tensor", version));
        replaced = true;
        return OpTable::current().find(kReplaced) ? not_whole(kReplaced) : "it is not there";
      case StepKind::Ask: {
        for (const std::string_view name : {kAdded, kClash, kReplaced})
          if (const Finding found = not_whole(name); !found.empty()) return found;
        return "";
      }
      default: {
        const ScopedTable scope(pinned);
        return disagrees(f(xs), want, Agreement::Bitwise);
      }
    }
  }
  Finding add(std::string_view name, std::string_view schema, int version) {
    const Status s = status_of([&] { OpTable::add(definition(schema, version)); });
    if (!s.raised) ++added[name];
    else if (s.code != ErrorCode::Schema) return "expected error schema, got " + str(s);
    const Op* const op = OpTable::current().find(name);
    if (!s.raised && (!op || version_of(*op) != version)) return "what it added is not there";
    return not_whole(name);
  }
};

/// Registrations of a case go when it ends.
class Registrations {
 public:
  Registrations() : before_(&OpTable::current()) {}
  ~Registrations() { OpTable::take_back(before_); }
  Registrations(const Registrations&) = delete;
  size_t rows_before() const { return before_->size(); }

 private:
  const OpTable* before_;
};

Finding what_is_wrong(const std::vector<Registrar>& registrars, const std::vector<Finding>& raised,
                      size_t rows_before) {
  bool replaced = false;
  int adds = 0;
  for (size_t k = 0; k < registrars.size(); ++k) {
    const Registrar& r = registrars[k];
    if (!raised[k].empty()) return format("thread {} raised: ", k) + raised[k];
    if (!r.wrong.empty()) return r.wrong;
    replaced |= r.replaced;
    for (const auto& [name, times] : r.added) adds += times;
  }
  if (adds > 1) return format("{} was added {} times, under one name or one that clashes", kAdded, adds);
  const OpTable& table = OpTable::current();
  size_t there = 0;
  for (const std::string_view name : {kAdded, kClash, kReplaced}) {
    if (const Finding found = not_whole(name); !found.empty()) return "at the end: " + found;
    const Op* const op = table.find(name);
    there += op && op->form == OpForm::Functional;
  }
  if (there != size_t(adds) + replaced)
    return format("{} operators are there at the end, expected {}", there, size_t(adds) + replaced);
  if (table.size() != rows_before + 3 * there)
    return format("the table has {} rows more than before, expected 3 for each of {} operators",
                  table.size() - rows_before, there);
  return "";
}

/// Of rules that are set for two types, the lower one's first, those of the higher key are found first: so
/// calls go to types.
Finding rules_of_lower_type_first() {
  constexpr std::string_view kName = "registration_ruled";
  OpTable::add(definition("registration_ruled(Tensor x) -> Tensor", 0));
  for (const int key : {kFirstTypeKey, kFirstTypeKey + 1})
    OpTable::set_rules(kName, key, linear_in({"x"}), {wrt("x", [](Tensor dy) { return dy; })});
  const auto& rules = OpTable::current().find(kName)->rules_of_types;
  if (rules.size() != 2) return "an operator has not the rules that were set for two types";
  return rules[0].key > rules[1].key ? "" : "of rules for two types those of the lower key are found first";
}

/// Rows of a table that is found while the first one is made; 0: none was.
std::atomic<size_t> rows_found{0};
void look_for_table() {
  if (const OpTable* const t = detail::published_table.load(std::memory_order_acquire))
    rows_found = t->size();
}

/// No table is published, until the end: then the one that was, and one made meanwhile is gone.
class Unpublished {
 public:
  Unpublished() : before_(detail::published_table.load(std::memory_order_acquire)) {
    OpTable::publish(nullptr);
  }
  ~Unpublished() {
    const std::unique_ptr<const OpTable> made(detail::published_table.load(std::memory_order_acquire));
    OpTable::publish(before_);
    if (!made) return;
    for (const Op* row : made->rows()) delete row;
  }
  Unpublished(const Unpublished&) = delete;

 private:
  const OpTable* before_;
};

/// The built-in operators are registered once more, as when the first thread asks for one. Another thread
/// that asks between any two of them finds no table, and waits for the whole one.
Finding first_table_unfinished() {
  rows_found = 0;
  const Unpublished none;
  const detail::ScopedYield between(look_for_table);
  const size_t all = detail::first_table().size();
  if (rows_found == 0) return "";
  return format("a table of {} rows is found while {} are registered", rows_found.load(), all);
}

Verdict registrations_are_whole(Case& c) {
  const std::vector<Case::Slot>& slots = c.tensors();
  if (slots.empty() || draws_anew(c)) return Verdict::discard();
  const Function f = c.function(slots);
  const Tensors xs = c.values(slots);
  Tensors want;
  if (status_of([&] { want = f(xs); }).raised) return Verdict::discard();
  const size_t threads = 2 + c.draw.below(uint32_t(kMostThreads) - 1);
  const Schedule schedule(c.draw.word(), c.draw.flag());
  std::vector<Registrar> registrars;
  for (size_t k = 0; k < threads; ++k) {
    Registrar r{int(k), {}, f, xs, want, dispatch_state().table};
    r.steps.resize(1 + c.draw.below(uint32_t(kMostSteps)));
    for (StepKind& s : r.steps) s = StepKind(c.draw.below(uint32_t(std::size(kNames))));
    registrars.push_back(std::move(r));
  }
  Finding wrong;
  std::string text;
  for (const Registrar& r : registrars) {
    text += format("  // thread {}:", r.index);
    for (const StepKind s : r.steps) text += format(" {};", kNames[size_t(s)]);
    text += "\n";
  }
  {
    const ScopedTable none(nullptr);
    const Registrations registrations;
    std::vector<std::function<void()>> bodies;
    for (Registrar& r : registrars) bodies.push_back([&r] { r.run(); });
    const std::vector<Finding> raised = schedule.run(bodies);
    wrong = what_is_wrong(registrars, raised, registrations.rows_before());
    if (wrong.empty()) wrong = rules_of_lower_type_first();
  }
  if (wrong.empty() && c.draw.one_in(64)) wrong = first_table_unfinished();
  if (wrong.empty()) return Verdict::pass();
  return Verdict::fail(wrong, cpp_declarations(c.args) + text + "  " + cpp_call(c.op, c.args) + ";\n");
}

bool runs_anywhere(const Op& op) { return takes_tensors(op) && !op.has(kUnspecified); }

}  // namespace

void add_registration_laws(std::vector<Law>& laws) {
  laws.push_back(
      {149,
       "registrations_are_whole",
       "dispatch",
       "While threads add and replace operators, whoever finds one finds its row, forms and kernels of "
       "one definition, and all of the library's own; of two that take one name one is refused and leaves "
       "nothing. Rules of types stand by their keys.",
       {.tame = true, .max_numel = 8},
       false,
       runs_anywhere,
       registrations_are_whole});
}

}  // namespace lamella::verify
