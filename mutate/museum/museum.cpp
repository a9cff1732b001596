// Visiting the museum: the laws of an operator with a planted bug, case by case beside the right operator.
#include "lamella/mutate/museum/museum.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/verify/run/runner.h"

namespace lamella::verify {

const std::vector<Exhibit>& museum() {
  static const std::vector<Exhibit> all = [] {
    std::vector<Exhibit> list;
    add_rule_exhibits(list);
    add_value_rule_exhibits(list);
    add_second_order_exhibits(list);
    add_batch_exhibits(list);
    add_index_batch_exhibits(list);
    add_level_exhibits(list);
    add_kernel_exhibits(list);
    add_form_exhibits(list);
    add_view_exhibits(list);
    add_random_exhibits(list);
    add_autograd_exhibits(list);
    return list;
  }();
  return all;
}

namespace {

constexpr char kField = '\x1f', kRecord = '\x1e';  // of what a child writes

const OpTable* table_with(const Exhibit& e) {
  static constexpr const char* kSuffixes[] = {"", "_", "_out"};  // by OpForm
  const OpTable& table = OpTable::current();
  const Op* target = table.find(std::string(e.row.empty() ? e.op : e.row) + kSuffixes[int(e.form)]);
  LAMELLA_CHECK(target, UnknownOperator, "museum: {}: there is no operator \"{}\" of that form", e.id, e.op);
  auto* row = new Op(*target);  // rows are never freed
  if (row->form == OpForm::Functional) row->base = row;
  e.plant(*row);
  return table.with(*row);
}

/// The exhibit's own law first, then those without the oracle.
std::vector<const Law*> order_for(const Exhibit& e, const Op& op) {
  std::vector<const Law*> out;
  for (const Law& law : laws())
    if (law.applies(op)) out.push_back(&law);
  std::ranges::stable_sort(out, {}, [&](const Law* l) { return l->id == e.law ? -1 : int(l->oracle); });
  return out;
}

/// One exhibit in the process it lives in.
class Visit {
 public:
  Visit(const Exhibit& e, const MuseumOptions& o, int fd)
      : exhibit_(e), options_(o), fd_(fd), right_(*OpTable::current().find(e.op)), table_(table_with(e)) {}

  void run() {
    for (const Law* law : order_for(exhibit_, right_)) {
      const bool found = check(*law);
      if ((found && !options_.all_laws) || failed_) break;
    }
    say({"green", std::to_string(green_)});
  }

 private:
  void say(const std::vector<std::string>& fields) const {
    std::string line;
    for (const std::string& f : fields) line += f + kField;
    line += kRecord;
    [[maybe_unused]] const ssize_t n = write(fd_, line.data(), line.size());
  }

  Verdict on_right(const Law& law, const Choices& choices) const { return run_check(law, right_, choices); }
  Verdict on_wrong(const Law& law, const Choices& choices) const {
    const ScopedTable pinned(table_);
    return run_check(law, table_->row(right_.id), choices);
  }

  bool check(const Law& law) {
    say({"try", std::string(law.id)});
    const int own = law.oracle ? options_.oracle_cases : options_.cases;
    const int most = law.id == exhibit_.law ? own : own / 8;
    for (int i = 0; i < most; ++i) {
      alarm(60);  // a bug may loop for ever
      const Choices choices = choices_of(options_.seed, law, right_, uint64_t(i));
      const Verdict without = on_right(law, choices);
      if (without.kind == Verdict::Fail) {
        say({"alarm", format("{}: case {}: {}", law.id, i, without.message)});
        failed_ = true;
        return false;
      }
      green_ += without.kind == Verdict::Pass;
      if (on_wrong(law, choices).kind != Verdict::Fail) continue;
      show(law, choices, i + 1);
      return true;
    }
    return false;
  }

  void show(const Law& law, const Choices& choices, int cases) const {
    const ScopedTable pinned(table_);
    const Op& row = table_->row(right_.id);
    alarm(60);
    const Shrunk s = shrink(law, row, choices, {.milliseconds = options_.shrink_ms});
    const size_t words = s.choices.size() - size_t(std::ranges::count(s.choices, 0u));
    int64_t elements = 0;
    try {
      const Case c(row, s.choices, law.options);
      for (const Tensor& t : c.values(c.tensors())) elements += t.numel();
    } catch (const std::exception&) {}  // a bug may keep arguments from being drawn
    say({"red", std::string(law.id), std::to_string(cases), std::to_string(words), std::to_string(elements),
         s.verdict.message, s.verdict.program});
  }

  const Exhibit& exhibit_;
  const MuseumOptions& options_;
  int fd_;
  const Op& right_;
  const OpTable* table_;
  int green_ = 0;
  bool failed_ = false;
};

/// What a child says until it ends. It is ended where this process is asked to stop, which it would outlive.
std::string read_all(int fd, pid_t child, const volatile std::sig_atomic_t* stop) {
  std::string out;
  char buffer[4096];
  for (pollfd one{fd, POLLIN, 0};;) {
    if (stop && *stop) ::kill(child, SIGKILL);
    const int woken = ::poll(&one, 1, 200);  // in between the signal may come, and wake nobody
    if (woken < 0 && errno != EINTR) return out;
    if (woken <= 0) continue;
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n == 0 || (n < 0 && errno != EINTR)) return out;
    if (n > 0) out.append(buffer, size_t(n));
  }
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  for (size_t end; (end = text.find(at)) != std::string_view::npos; text.remove_prefix(end + 1))
    out.emplace_back(text.substr(0, end));
  return out;
}

void note(const std::vector<std::string>& f, MuseumResult& r, std::string& tried) {
  if (f[0] == "try") tried = f[1];
  if (f[0] == "green") r.green = std::stoi(f[1]);
  if (f[0] == "alarm") r.alarm = f[1];
  if (f[0] == "red")
    r.red.push_back({f[1], std::stoi(f[2]), size_t(std::stoull(f[3])), std::stoll(f[4]), f[5], f[6]});
}

}  // namespace

MuseumResult visit(const Exhibit& exhibit, const MuseumOptions& options) {
  OpTable::current();  // before the fork: children share what is built once
  laws();
  MuseumResult result{&exhibit, {}, 0, {}, {}};
  int ends[2];
  LAMELLA_CHECK(pipe(ends) == 0, Usage, "museum: no pipe");
  const pid_t child = fork();
  LAMELLA_CHECK(child >= 0, Usage, "museum: no process");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // who asks the parent to stop means both
    close(ends[0]);
    int status = 0;
    try {
      Visit(exhibit, options, ends[1]).run();
    } catch (const std::exception&) { status = 1; }
    _exit(status);
  }
  close(ends[1]);
  const std::string said = read_all(ends[0], child, options.stop);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  std::string tried;
  for (const std::string& record : split(said, kRecord)) note(split(record, kField), result, tried);
  if (WIFSIGNALED(status)) result.ended = format("{} under {}", strsignal(WTERMSIG(status)), tried);
  else if (WEXITSTATUS(status) != 0) result.alarm = "the exhibit could not be set up";
  return result;
}

}  // namespace lamella::verify
