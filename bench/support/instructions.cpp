// A stretch counts from the entry of lamella_bench_counted to its return, and callgrind then writes the sum
// down. Of two stretches of different length the difference has neither entry nor exit in it.
#include "support/instructions.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

/// callgrind knows it by this name; a copy made for one caller would have another.
extern "C" [[gnu::noipa]] void lamella_bench_counted(const std::function<void()>& f, int repeat) {
  for (int i = 0; i < repeat; ++i) f();
}

namespace bench {
namespace {
namespace fs = std::filesystem;

constexpr int kWarm = 4, kShort = 2, kLong = 18;

void run_stretches(const std::function<void()>& f) {
  for (int i = 0; i < kWarm; ++i) f();  // pools, tables and lazily bound symbols settle
  lamella_bench_counted(f, kShort);
  lamella_bench_counted(f, kLong);
}

/// A folder that goes away with its owner.
class ScratchFolder {
 public:
  ScratchFolder() {
    path_ = (fs::temp_directory_path() / "lamella-bench-XXXXXX").string();
    if (!mkdtemp(path_.data())) path_.clear();
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The sums that callgrind wrote at the end of each stretch, in order; the part written at exit is left out.
std::vector<double> read_sums(const std::string& path) {
  std::vector<double> sums;
  std::ifstream in(path);
  bool of_stretch = false;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("desc: Trigger:", 0) == 0) of_stretch = line.find("--dump-after") != std::string::npos;
    if (of_stretch && line.rfind("totals: ", 0) == 0) sums.push_back(std::atof(line.c_str() + 8));
  }
  return sums;
}

std::string quoted(const std::string& path) { return "'" + path + "'"; }

/// Runs the program under callgrind; gives the last line that it printed, or none if it failed.
std::string output_of(const std::string& command, bool& failed) {
  std::string last;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return failed = true, last;
  char line[256];
  while (std::fgets(line, sizeof line, pipe)) last = line;
  failed = pclose(pipe) != 0;
  while (!last.empty() && last.back() == '\n') last.pop_back();
  return last;
}

Counts not_counted(const Rows& rows, std::string why) {
  return {std::vector<double>(rows.size(), -1), "", std::move(why)};
}

}  // namespace

int run_counted(const Rows& rows, const std::string& isa) {
  for (const Row& row : rows) {
    if (row.count == Count::Never) continue;
    run_stretches(row.run);
    if (row.baseline) run_stretches(row.baseline);
  }
  std::printf("%s\n", isa.c_str());
  return 0;
}

Counts count_rows(const Rows& rows) {
  if (std::system("command -v valgrind >/dev/null 2>&1") != 0)
    return not_counted(rows, "valgrind is not installed");
  const ScratchFolder scratch;
  const std::string out = scratch.path() + "/counts";
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  bool failed = false;
  const std::string isa = output_of(
      "valgrind -q --tool=callgrind --toggle-collect=lamella_bench_counted"
      " --dump-after=lamella_bench_counted --combine-dumps=yes --callgrind-out-file=" +
          quoted(out) + " " + quoted(self) + " --counted",
      failed);
  const std::vector<double> sums = read_sums(out);
  size_t stretches = 0;
  for (const Row& row : rows)
    if (row.count != Count::Never) stretches += row.baseline ? 4 : 2;
  if (failed || sums.size() != stretches)
    return not_counted(rows, "valgrind could not run this program (" + std::to_string(sums.size()) + " of " +
                                 std::to_string(stretches) + " stretches)");
  Counts counts{{}, isa, ""};
  size_t next = 0;
  const auto take = [&] {
    next += 2;
    return (sums[next - 1] - sums[next - 2]) / (kLong - kShort);
  };
  for (const Row& row : rows) {
    double ir = row.count == Count::Never ? -1 : take();
    if (row.baseline) ir -= take();
    counts.per_call.push_back(row.count == Count::Never ? -1 : ir / row.units);
  }
  return counts;
}

}  // namespace bench
