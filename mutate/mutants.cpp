// The list of planted bugs: sites of the registry times perturbations.
#include "lamella/mutate/mutants.h"

#include <algorithm>
#include <map>

#include "lamella/mutate/calibration.h"
#include "lamella/mutate/mutant_level.h"
#include "lamella/ops/constant.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/run/context.h"
#include "lamella/verify/run/runner.h"

namespace lamella::verify {

namespace {
std::vector<Mutant>& mutant_list() {
  static std::vector<Mutant> all = [] {
    std::vector<Mutant> list;
    for (const auto& part : {batch_mutants(), dispatch_mutants(), kernel_mutants(), plan_mutants()})
      list.insert(list.end(), part.begin(), part.end());
    return list;
  }();
  return all;
}
std::vector<Perturbation>& perturbation_list() {
  static std::vector<Perturbation> all = call_perturbations();
  return all;
}
std::vector<std::string> inert_list;

uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
uint64_t hashed(std::string_view text, uint64_t seed) {
  for (const char c : text) seed = mixed(seed ^ uint64_t(static_cast<unsigned char>(c)));
  return seed;
}
}  // namespace

const std::vector<Mutant>& mutants() { return mutant_list(); }
const std::vector<Perturbation>& perturbations() { return perturbation_list(); }
void add_mutant(const Mutant& m) { mutant_list().push_back(m); }
void add_perturbation(const Perturbation& p) { perturbation_list().push_back(p); }
const std::vector<std::string>& inert_pairs() { return inert_list; }
bool takes_type(const Op& op) { return op.no_jvp == ops::kConstant; }
bool takes_type_alone(const Op& op) {
  const auto sized = [](const Param& p) { return p.role == ParamRole::Size; };
  return takes_type(op) && std::ranges::any_of(op.schema.params, sized);
}

namespace {
/// Whether one drawn case tells `p` from the right call.
bool tells(const Perturbation& p, const Op& op, uint64_t i) {
  const Choices choices = choices_of(i, laws().front(), op, i);
  const Case c(op, choices, {});
  Tensors right, wrong;
  if (status_of([&] { right = call_boxed(op, c.args); }).raised) return false;
  if (status_of([&] { wrong = p.call(op, c.args); }).raised) return true;
  return !differs(wrong, right).empty();
}
}  // namespace

bool inert(std::string_view perturbation, const Op& op) {
  static std::map<std::pair<std::string, std::string>, bool> known;
  const auto [at, fresh] = known.try_emplace({std::string(perturbation), op.name}, true);
  if (!fresh) return at->second;
  const auto p = std::ranges::find(perturbations(), perturbation, &Perturbation::id);
  for (uint64_t i = 0; i < 100000 && at->second; ++i) at->second = !tells(*p, op, i);
  if (at->second) inert_list.push_back(format("{} in {}", perturbation, op.name));
  return at->second;
}

namespace {

void add_rows(const Op& op, std::vector<Planted>& out) {
  for (const Mutant& m : mutants()) {
    if (!m.fits(op)) continue;
    const uint32_t sites = m.sites ? m.sites(op) : 1;
    for (int k = 0; sites >> k; ++k) {
      if (!(sites >> k & 1)) continue;
      out.push_back({format("{}{}:{}", m.id, m.sites ? format("({})", k) : "", op.name), std::string(m.group),
                     std::string(m.what), &op, m.form, [k, plant = m.plant](Op& row) {
                       live_bug.operand = k;
                       plant(row);
                     }});
    }
  }
}

/// Whether a batch rule's call moves what is looked at for its sizes or its dtype alone.
bool unseen(const Op& op, const Op& called, const Perturbation& p) {
  return called.is_view() && (takes_type_alone(op) || (takes_type(op) && p.of_values));
}

/// A mutant of each call that fits a perturbation.
void add_calls(const Op& op, const std::string& where, const std::string& group,
               const std::vector<CallSite>& sites, const std::function<void(Op&)>& plant_rule,
               std::vector<Planted>& out) {
  for (const CallSite& site : sites) {
    if (site.op.empty()) continue;
    const Op& called = *OpTable::current().find(site.op);
    for (const Perturbation& p : perturbations()) {
      if (p.of_derivatives && !has_vjp(op) && !has_jvp(op)) continue;
      if (group == "batch" && unseen(op, called, p)) continue;
      if (p.of_values && site.traits.typed && !site.traits.read) continue;
      if (!p.fits(called, site.traits) || (p.id == "swapped" && inert(p.id, called))) continue;
      out.push_back({format("{}/{}#{}:{}", where, site.op, site.nth, p.id), group,
                     format("In the call of {}: {}", site.op, p.what), &op, OpForm::Functional,
                     [site, plant_rule, id = p.id](Op& row) {
                       live_bug.site = site;
                       live_bug.perturbation = &*std::ranges::find(perturbations(), id, &Perturbation::id);
                       plant_rule(row);
                     }});
    }
  }
}

bool tensor_save(const Op& op, const BoundSave& s) {
  return s.kind == BoundSave::Result ||
         (s.kind == BoundSave::Argument && op.schema.params[s.index].kind == ParamKind::Tensor);
}

void add_whole(const Op& op, bool vjp, size_t index, const std::string& where, const CallTraits& result,
               std::vector<Planted>& out) {
  const BoundFormula& right = (vjp ? op.vjp : op.jvp)[index];
  for (const FormulaPerturbation& f : formula_perturbations()) {
    if (!f.fits(op, right, result)) continue;
    for (size_t k = 0; k < (f.each_save ? right.saves.size() : 1); ++k) {
      if (f.each_save && !tensor_save(op, right.saves[k])) continue;
      out.push_back({format("{}{}:{}", where, f.each_save ? format("/save#{}", k) : "", f.id), "rule",
                     std::string(f.what), &op, OpForm::Functional, [&op, vjp, index, k, &f](Op& row) {
                       auto& rules = vjp ? row.vjp : row.jvp;
                       if (!f.run) return void(rules.erase(rules.begin() + long(index)));
                       live_bug.operand = int(k);
                       live_bug.spoil = &f;
                       plant_in_formula(rules[index], (vjp ? op.vjp : op.jvp)[index]);
                     }});
    }
  }
}

Tensor hides_nothing(const RuleArgs&) {
  reached();
  return {};
}
Tensor hides_the_rest(const RuleArgs& args) {
  reached();
  return logical_not(live_bug.formula->hidden(args));
}

/// What a formula says of the elements it leaves out, forgotten or the wrong way round.
void add_hidden(const Op& op, size_t index, const std::string& where, std::vector<Planted>& out) {
  const auto add = [&](std::string_view id, std::string_view what, Tensor (*wrong)(const RuleArgs&)) {
    out.push_back({format("{}:{}", where, id), "rule", std::string(what), &op, OpForm::Functional,
                   [&op, index, wrong](Op& row) {
                     live_bug.formula = &op.vjp[index];
                     live_bug.counted = true;
                     row.vjp[index].hidden = wrong;
                   }});
  };
  add("hides_nothing", "The formula does not say which elements it leaves out.", hides_nothing);
  add("hides_the_rest", "The formula says it leaves out the elements it takes.", hides_the_rest);
}

void add_formulas(const Op& op, std::vector<Planted>& out) {
  for (const bool vjp : {false, true})
    for (size_t k = 0; k < (vjp ? op.vjp : op.jvp).size(); ++k) {
      const BoundFormula& right = (vjp ? op.vjp : op.jvp)[k];
      const std::string where =
          format("{}.{}({})", op.name, vjp ? "vjp" : "jvp", op.schema.params[size_t(right.input)].name);
      const std::vector<CallSite> sites = sites_of_formula(op, vjp, k);
      add_whole(op, vjp, k, where, sites.empty() ? CallTraits{} : sites.front().traits, out);
      if (vjp && right.hidden) add_hidden(op, k, where, out);
      add_calls(
          op, where, "rule", sites,
          [&op, vjp, k](Op& row) {
            plant_in_formula((vjp ? row.vjp : row.jvp)[k], (vjp ? op.vjp : op.jvp)[k]);
          },
          out);
    }
}

bool has_batch_rule(const Op& op) {
  const bool loops = !op.batch && (op.shape == ShapeClass::Dynamic || op.shape == ShapeClass::Other);
  return !op.composite && !op.has(kRandom) && takes_tensors(op) && !loops;
}

void add_harness(std::vector<Planted>& out) {
  for (const FaultInfo& f : faults())
    out.push_back({format("harness:{}", f.id), "harness", std::string(f.what), nullptr, OpForm::Functional,
                   [fault = f.fault](Op&) { change_context([=](RunContext& c) { c.fault = fault; }); }});
}

}  // namespace

std::vector<Planted> all_planted(const std::vector<std::string>& ops,
                                 const volatile std::sig_atomic_t* stop) {
  std::vector<Planted> out;
  for (const Op* op : all_operators()) {
    if (stop && *stop) break;  // all take a second or two
    if (!ops.empty() && std::ranges::find(ops, op->name) == ops.end()) continue;
    add_rows(*op, out);
    if (!op->composite) add_formulas(*op, out);
    else add_calls(*op, op->name + ".body", "composite", sites_of_composite(*op), plant_in_composite, out);
    if (has_batch_rule(*op))
      add_calls(*op, op->name + ".batch", "batch", sites_of_batch_rule(*op), plant_in_batch_rule, out);
  }
  if (ops.empty()) add_harness(out);
  return out;
}

std::vector<Planted> sample_of(std::vector<Planted> all, size_t n, uint64_t seed) {
  if (n == 0 || n >= all.size()) return all;
  std::stable_sort(all.begin(), all.end(), [&](const Planted& a, const Planted& b) {
    return hashed(a.id, seed) < hashed(b.id, seed);
  });
  all.resize(n);
  return all;
}

const OpTable* plant(const Planted& p) {
  const OpTable& table = OpTable::current();
  if (!p.op) {
    static Op none;
    p.plant(none);
    return &table;
  }
  live_bug.right = p.op;
  live_bug.spoil = nullptr;
  live_bug.counted = false;
  live_bug.reached = 0;
  static constexpr const char* kSuffixes[] = {"", "_", "_out"};          // by OpForm
  auto* row = new Op(*table.find(p.op->name + kSuffixes[int(p.form)]));  // rows are never freed
  if (row->form == OpForm::Functional) row->base = row;
  p.plant(*row);
  return table.with(*row);
}

}  // namespace lamella::verify
