// What measures the oracle's sharpness measures something: errors put in are seen, and the bound is used.
#include <gtest/gtest.h>

#include "lamella/dispatch/table.h"
#include "lamella/mutate/sensitivity.h"

namespace lamella::verify {
namespace {

const Op& exp_row() { return *OpTable::current().find("exp"); }

TEST(Sensitivity, ErrorsOfFourBoundsAreSeen) {
  for (const std::string_view id : bounded_laws()) {
    const Sensitivity s = sensitivity(exp_row(), *find_law(id), {.cases = 20, .seconds = 600});
    EXPECT_EQ(s.cases, 20) << id;
    EXPECT_EQ(s.caught, 20) << id << ", case " << s.missed;
  }
}

/// Calls that round once: half a unit at least, and no more than k of them.
TEST(Sensitivity, BoundsAreUsed) {
  for (const std::string_view id : bounded_laws()) {
    const ToleranceUse use = tolerance_use(exp_row(), *find_law(id), {.cases = 100, .seconds = 600});
    EXPECT_EQ(use.cases, 100) << id;
    EXPECT_GT(use.largest, 0.01) << id;
    EXPECT_LT(use.largest, 1) << id;
  }
}

/// A law that no case passes measures nothing, and says so.
TEST(Sensitivity, NoCaseThatPassesIsNoFigure) {
  Law never = *find_law("matches_reference");
  never.check = [](Case&) { return Verdict::discard(); };
  const SensitivityOptions few{.cases = 5, .seconds = 1};
  EXPECT_EQ(sensitivity(exp_row(), never, few).passed(), 0);
  EXPECT_EQ(tolerance_use(exp_row(), never, few).passed, 0);
}

}  // namespace
}  // namespace lamella::verify
