// Choosing operators for planted bugs, and running the laws against each in a process of its own.
#include "lamella/verify/mutants.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/verify/compare.h"
#include "lamella/verify/lanes.h"
#include "lamella/verify/runner.h"

namespace lamella::verify {

const Op* right_row = nullptr;

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = [] {
    std::vector<Mutant> list;
    add_rule_mutants(list);
    add_batch_mutants(list);
    add_dispatch_mutants(list);
    add_kernel_mutants(list);
    return list;
  }();
  return all;
}

namespace {
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

namespace {

/// The row with the bug, in a table of its own.
const OpTable* planted_table(const Planted& p) {
  right_row = p.op;
  const OpTable& table = OpTable::current();
  static constexpr const char* kSuffixes[] = {"", "_", "_out"};  // by OpForm
  const Op* target = table.find(p.op->name + kSuffixes[int(p.mutant->form)]);
  auto* row = new Op(*target);  // rows are never freed
  if (row->form == OpForm::Functional) row->base = row;
  p.mutant->plant(*row);
  return table.with(*row);
}

/// What a probe computes: enough to see that the bug is one.
Tensors probe(Mutant::Probe kind, const Op& op, const Choices& choices) {
  Case c(op, choices, {.dtypes = mask(DType::F64) | mask(DType::C128), .tame = true, .max_numel = 16});
  const Function f = c.smooth_function(c.inexact());
  const Tensors xs = c.values(c.inexact());
  if (kind == Mutant::Forward) return c.function(c.tensors())(c.values(c.tensors()));
  if (xs.empty()) return {};
  if (kind == Mutant::Jvp) {
    Tensors ts;
    for (const Tensor& x : xs) ts.push_back(c.direction(x));
    return jvp(f, xs, ts).tangents;
  }
  const auto gradients = [&](const Tensors& at) {
    const VjpResult r = vjp(f, at);
    Tensors cts;
    for (const Tensor& y : r.values) cts.push_back(c.direction(y));
    return r.pullback(cts);
  };
  if (kind == Mutant::Vjp) return gradients(xs);
  Tensors ts;
  for (const Tensor& x : xs) ts.push_back(c.direction(x));
  return jvp(gradients, xs, ts).tangents;
}

/// Whether the bug changes anything on drawn cases; where it does not, the operator is right all the same.
bool shows(const Planted& p) {
  if (p.mutant->probe == Mutant::None) return true;
  const OpTable* table = planted_table(p);
  const Op& wrong = table->row(p.op->id);
  for (uint64_t i = 0; i < 300; ++i) {
    const Choices choices = choices_of(i, laws().front(), *p.op, i);
    Tensors right, got;
    if (status_of([&] { right = probe(p.mutant->probe, *p.op, choices); }).raised) continue;
    const Status s = status_of([&] {
      const ScopedTable pinned(table);
      got = probe(p.mutant->probe, wrong, choices);
    });
    if (s.raised || !disagrees(got, right, Agreement::Rounding).empty()) return true;
  }
  return false;
}

void choose_for(const Mutant& m, const MutantOptions& o, std::vector<Planted>& out) {
  std::vector<const Op*> candidates;
  for (const Op* op : OpTable::current().rows()) {
    if (op->form != OpForm::Functional || op->has(kTestOnly) || !m.fits(*op)) continue;
    if (o.ops.empty() || std::ranges::find(o.ops, op->name) != o.ops.end()) candidates.push_back(op);
  }
  const auto order = [&](const Op* op) { return hashed(op->name, hashed(m.id, o.seed)); };
  std::ranges::sort(candidates, {}, order);
  std::vector<ShapeClass> used;
  const size_t most = o.ops.empty() ? size_t(o.per_mutant) : candidates.size();
  size_t taken = 0;
  for (const bool fresh_class : {true, false})  // first one of each shape class
    for (const Op* op : candidates) {
      if (taken >= most) return;
      const bool seen = std::ranges::find(used, op->shape) != used.end();
      if (seen == fresh_class && o.ops.empty()) continue;
      if (!fresh_class && !o.ops.empty()) return;
      const Planted p{&m, op};
      if (std::ranges::find(out, p.id(), &Planted::id) != out.end() || !shows(p)) continue;
      out.push_back(p);
      used.push_back(op->shape);
      ++taken;
    }
}

using Clock = std::chrono::steady_clock;

/// Whether the law fails here without the bug: then it has not noticed it.
bool fails_anyway(const Law& law, const Op& op, const Choices& choices) {
  const ScopedTable published(nullptr);
  return run_check(law, op, choices).kind == Verdict::Fail;
}

/// Number of checks until the law noticed, or 0.
int cases_to_notice(const Law& law, const Op& row, const MutantOptions& o) {
  const auto until = Clock::now() + std::chrono::milliseconds(law.oracle ? o.oracle_ms : o.law_ms);
  for (int i = 0; i < o.cases; ++i) {
    const Choices choices = choices_of(o.seed, law, row, uint64_t(i));
    if (run_check(law, row, choices).kind == Verdict::Fail && !fails_anyway(law, *right_row, choices))
      return i + 1;
    if (Clock::now() > until) return 0;
  }
  return 0;
}

std::vector<const Law*> laws_for(const Op& op) {
  std::vector<const Law*> out;
  for (const Law& law : laws())
    if (law.applies(op)) out.push_back(&law);
  std::stable_sort(out.begin(), out.end(), [](const Law* a, const Law* b) { return a->oracle < b->oracle; });
  return out;
}

/// In the child: writes "try LAW 0" and "caught LAW CASES" lines, from law `from` on.
void run_laws(const Planted& p, const MutantOptions& o, size_t from, int fd) {
  const auto say = [fd](const std::string& line) {
    [[maybe_unused]] const ssize_t n = write(fd, line.data(), line.size());
  };
  const OpTable* table = planted_table(p);
  const ScopedTable pinned(table);
  const std::vector<const Law*> order = laws_for(*p.op);
  for (size_t k = from; k < order.size(); ++k) {
    say("try " + std::string(order[k]->id) + " 0\n");
    const int n = cases_to_notice(*order[k], table->row(p.op->id), o);
    if (n == 0) continue;
    say("caught " + std::string(order[k]->id) + " " + std::to_string(n) + "\n");
    if (o.first_only) return;
  }
}

std::string read_all(int fd) {
  std::string out;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) out.append(buffer, size_t(n));
  return out;
}

}  // namespace

std::vector<Planted> choose_mutants(const MutantOptions& options) {
  std::vector<Planted> out;
  for (const Mutant& m : mutants()) choose_for(m, options, out);
  return out;
}

namespace {
/// One child; returns how many laws it tried, and notes what it said and how it died.
size_t run_child(const Planted& p, const MutantOptions& options, size_t from, MutantResult& result,
                 bool& died) {
  int ends[2];
  LAMELLA_CHECK(pipe(ends) == 0, Usage, "mutate: no pipe");
  const pid_t child = fork();
  LAMELLA_CHECK(child >= 0, Usage, "mutate: no process");
  if (child == 0) {
    close(ends[0]);
    alarm(30);  // a bug may loop for ever
    run_laws(p, options, from, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  std::istringstream lines(read_all(ends[0]));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  std::string word, law;
  size_t tried = 0;
  for (int n = 0; lines >> word >> law >> n;) {
    tried += word == "try";
    if (word != "caught") continue;
    result.caught_by.push_back(law);
    result.cases.push_back(n);
  }
  died = WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
  if (died) {
    const bool hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    result.caught_by.push_back(law);
    result.cases.push_back(hung ? -2 : -1);
  }
  return tried;
}
}  // namespace

MutantResult run_mutant(const Planted& p, const MutantOptions& options) {
  MutantResult result{p.id(), std::string(p.mutant->group), std::string(p.mutant->what), {}, {}, {}};
  size_t from = 0;
  for (bool died = true; died;) {  // the laws after one that crashes have their turn
    from += run_child(p, options, from, result, died);
    if (options.first_only && result.killed()) break;
  }
  if (!result.killed())
    result.reason = format("no law failed within {} cases and {} ms each", options.cases, options.law_ms);
  return result;
}

}  // namespace lamella::verify
