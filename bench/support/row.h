// One row of a benchmark: what is run, how it is counted, what it has to reach.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace bench {

enum class Count {
  Gated,  ///< counted, and held to the committed figure
  Shown,  ///< counted only: another library's work is in it
  Never,  ///< too long for a run that is some 50 times slower
};

struct Row {
  std::string name;
  int units = 1;  ///< calls in one run: figures are per call
  std::function<void()> run;
  std::function<void()> baseline = {};  ///< subtracted: the same work without what is measured
  double target_ns = 0;                 ///< 0: shown for comparison only
  Count count = Count::Gated;
  std::string loop = {};      ///< the row whose speed is this one's measure
  double target_of_loop = 0;  ///< least part of that speed
};

using Rows = std::vector<Row>;

}  // namespace bench
