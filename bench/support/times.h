// Times of rows: rounds that go through all rows, so that a disturbance meets all of them alike.
#pragma once

#include "support/row.h"

namespace bench {

/// ns per call. `least` is the least run less the least baseline; the quartiles are of differences per round.
struct Times {
  double least = 0, p25 = 0, median = 0, p75 = 0;
  std::vector<double> rounds;
};

std::vector<Times> time_rows(const Rows& rows, int rounds = 31);

/// Median over the rounds of how fast the row is beside another one, 1 being as fast.
double speed_beside(const Times& row, const Times& other);

}  // namespace bench
