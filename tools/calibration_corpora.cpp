// Questions about recorded failures, and about counterexamples that are run.
#include <csignal>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/verify/run/kept_case.h"

#include "calibration_aids.h"
#include "calibrations.h"
#include "verify_more.h"

namespace lamella::tools {

namespace {
namespace fs = std::filesystem;
using verify::Record;

/// A case of a law that is cheap.
Record drawn_record(Dice& dice) {
  const verify::Law& law = *verify::find_law(dice.of({"layout_is_invisible", "poison_is_invisible"}));
  const Op& op = *OpTable::current().find(dice.of({"neg", "mul"}));
  return verify::record_of(law, op, verify::choices_of(5, law, op, dice.below(1000)), {});
}

/// All failures of a run: of each operator, law and kind the first.
std::string failures_are_kept_apart() {
  Dice dice(13);
  std::map<std::tuple<std::string, std::string, verify::FailureKind>, Record> failures;
  using verify::What;
  const verify::FailureKind kinds[] = {
      {What::Raised, "shape"}, {What::Shape}, {What::Crashed, "Segmentation fault (signal 11)"}, {}};
  for (int k = 0; k < 24; ++k) {
    const Record r = drawn_record(dice);
    failures.try_emplace({r.op, r.law, kinds[dice.below(4)]}, r);
  }
  verify::Report report;
  for (const auto& [key, r] : failures) {
    verify::Failure f;
    std::tie(f.op, f.law, f.kind) = key;
    f.message = "message", f.program = "  program();\n", f.blob = verify::to_blob(r);
    report.failures.push_back(std::move(f));
  }
  const Folder scratch;
  const fs::path folder = scratch.path / "corpus";
  for (const int time : {1, 2}) {
    store_failures(folder, report);
    if (verify::record_files(folder).size() != failures.size())
      return format("{} failures are {} files when stored {} times", failures.size(),
                    verify::record_files(folder).size(), time);
  }
  std::multiset<std::string> wanted, got;
  for (const auto& [key, r] : failures) wanted.insert(verify::to_file_text(verify::kept(r), "", ""));
  for (const fs::path& file : verify::record_files(folder))
    got.insert(verify::to_file_text(verify::read_kept_case(file), "", ""));
  return got == wanted ? "" : "records are read back as others";
}

std::string unreadable_records_fail() {
  Dice dice(14);
  const Folder scratch;
  const fs::path folder = scratch.path / "corpus";
  size_t bad = 0, number = 0;
  fs::create_directory(folder);
  for (int k = 0; k < 12; ++k) {
    std::string text = verify::to_file_text(verify::kept(drawn_record(dice)), "message", "  program();\n");
    const auto replace = [&](const std::string& line, const std::string& by) {
      const size_t at = text.find("\n" + line) + 1;
      text.replace(at, text.find('\n', at) - at, by);
    };
    switch (k % 6) {
      case 0: replace("law ", "law no_such_law"); break;
      case 1: replace("operator ", "operator no_such_operator"); break;
      case 2: replace("answers ", "answers one two"); break;
      case 3: text = k == 3 ? "" : dice.bytes(300); break;
      default: --bad;
    }
    ++bad;
    write_plainly(folder / (std::to_string(number++) + ".txt"), text);
  }
  size_t failed = 0;
  {
    const Caught caught(scratch.path / "output");
    failed = replay_corpus(folder);
  }
  return failed == bad ? "" : format("of {} records, {} of them unreadable, {} fail", number, bad, failed);
}

std::string shown_programs_have_little_time() {
  const Folder scratch;
  const fs::path output = scratch.path / "output";
  const std::optional<int> ended = run_aside(
      [] {
        std::printf("said");
        const unsigned left = ::alarm(0);
        return left > 0 && left <= 60 ? 7 : 8;
      },
      output);
  const int status = ended.value_or(-1);
  if (!ended || !WIFEXITED(status)) return "a program that returns ends by a signal";
  if (WEXITSTATUS(status) != 7) return "a program may run for more than a minute";
  if (read_plainly(output) != "said") return "what a program prints is lost";
  const int killed = run_aside([] { return ::raise(SIGKILL); }, output).value_or(0);
  return WIFSIGNALED(killed) ? "" : "a program that is killed ends as if it returned";
}
}  // namespace

Calibrations calibrations_of_corpora() {
  return {
      {"failures_are_kept_apart",
       "Each failure of an operator, law and kind has a record of its own, which is read back as it was.",
       guarded<failures_are_kept_apart>},
      {"unreadable_records_fail", "Of recorded cases those that cannot be read or replayed count as failing.",
       guarded<unreadable_records_fail>},
      {"shown_programs_have_little_time",
       "A counterexample that is run has less than a minute, and its end and its output are known.",
       guarded<shown_programs_have_little_time>},
  };
}

}  // namespace lamella::tools
