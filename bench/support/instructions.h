// Instructions of rows, counted by callgrind: this program runs itself once more under valgrind.
#pragma once

#include "support/row.h"

namespace bench {

struct Counts {
  std::vector<double> per_call;  ///< one a row, -1 where not counted
  std::string isa;               ///< what the counted program said of its instruction set
  std::string why_not;           ///< empty if counted
};

/// Starts the running program under valgrind with the argument `--counted`; its main calls run_counted.
Counts count_rows(const Rows& rows);

/// What the program does there: says its instruction set, and runs each counted row in counted stretches.
int run_counted(const Rows& rows, const std::string& isa);

}  // namespace bench
