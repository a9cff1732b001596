// The harness is proved on planted bugs: each is noticed by at least one law.
#include <gtest/gtest.h>

#include "lamella/verify/mutants.h"

namespace {
using namespace lamella::verify;

TEST(Mutants, EveryPlantedBugIsCaught) {
  MutantOptions options;
  options.per_mutant = 1;
  options.first_only = true;
  const std::vector<Planted> planted = choose_mutants(options);
  ASSERT_GE(planted.size(), 20u);
  for (const Planted& p : planted) {
    const MutantResult r = run_mutant(p, options);
    EXPECT_TRUE(r.killed()) << r.id << " (" << r.what << ") survived: " << r.reason;
  }
}
}  // namespace
