// A run: every kernel of every work is checked, then timed in rounds that limits and the peer take part in.
#pragma once

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "bench_times.h"
#include "bench_work.h"

namespace lamella::tools::bench {

/// One line: a work by one kernel.
struct Entry {
  std::string kernel;
  std::vector<Timing> rounds = {};
  double roundings = -1;   ///< the largest error; -1: not compared
  std::string wrong = {};  ///< a counterexample: nothing was timed
  double instructions = -1;
  bool is_default = false;  ///< what calls run
};

/// A work, by all of its kernels, beside its limit and the peer.
struct Result {
  std::string name, family, against, witness;
  double elements = 0, bytes = 0, flops = 0;
  int threads = 1;
  std::vector<Entry> entries;
  std::map<std::string, std::vector<Timing>> limits;  ///< by loop, of the whole work
  std::vector<Timing> peer;
  std::string no_peer;  ///< why not
  std::string failed;   ///< what it raised instead
};

struct Results {
  std::vector<Result> works;
  std::string peer;  ///< "PyTorch 2.15"
  bool interrupted = false;
};

/// What is to be made, checked and timed; made only then, so that few arguments are held at a time.
struct Item {
  std::string name;  ///< of what is made, as far as it is known before
  std::function<Work()> make;
  std::vector<std::string> kernels;  ///< alternatives to compare; empty: what calls run, alone
  bool is_required = false;          ///< the user asked for it: what the first one raises is raised
  int threads = 1;
};

struct RunSettings {
  int rounds = 15, runs = 1;
  double seconds = 0.01;   ///< for one kernel in one round, at least
  double law_seconds = 1;  ///< for each alternative
  std::string peer;        ///< "torch"; empty: none
  bool real_time = false;  ///< what is shown, instead of the thread's own time
};

Results run_items(const std::vector<Item>& items, const RunSettings& settings,
                  const volatile std::sig_atomic_t& stop);

/// The times that are shown.
std::vector<double> shown_times(const std::vector<Timing>& rounds, bool real_time);
/// The least time of the quickest loop; 0: there is none. `which`: its name.
double limit_of(const Result& result, bool real_time, std::string* which = nullptr);
/// Whether a time that is shown varies by more than kNoisy: of a kernel, of the limit or of the peer.
bool is_noisy(const Result& result, bool real_time);

}  // namespace lamella::tools::bench
