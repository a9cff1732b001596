// Every law for every operator: a GoogleTest for each law, or several where one would take long; cases drawn
// by RapidCheck, shrunk by our reducer.
#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/detail/TestParams.h>
#include <rapidcheck/gtest.h>
#include <set>

#include "lamella/dispatch/table.h"
#include "lamella/mutate/laws_harness.h"
#include "lamella/ops/all.h"
#include "lamella/verify/run/kept_case.h"
#include "lamella/verify/run/runner.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

constexpr int kCases = 24, kOracleCases = 6;
constexpr int kProgramCases = 31;  ///< of programs: 2 * 10^4 in all
constexpr uint64_t kTries = 1000;  ///< for one case that is not discarded
constexpr uint64_t kSeed = 20261121;

uint64_t seed_of(std::string_view law, std::string_view op) {
  uint64_t h = kSeed ^ 0xcbf29ce484222325u;
  for (const std::string_view text : {law, op})
    for (const char c : text) h = (h ^ uint8_t(c)) * 0x100000001b3u;
  return h;
}

/// Full 32-bit words, of a length that does not depend on RapidCheck's size.
rc::Gen<Choices> choice_vectors() {
  return rc::gen::noShrink(rc::Gen<Choices>([](const rc::Random& random, int) {
    rc::Random r = random;
    Choices words(16 + size_t(r.next() % 112));
    for (uint32_t& w : words) w = uint32_t(r.next());
    return rc::shrinkable::just(words);
  }));
}

std::string report(const Law& law, const Op& op, const Choices& choices) {
  const Shrunk s = shrink(law, op, choices);
  return format("{} breaks law {} ({})\n{}\n{}\nproptests/regressions/NAME.txt:\n", op.name, law.number,
                law.statement, s.verdict.message, s.verdict.program) +
         to_file_text(kept(record_of(law, op, s.choices, s.verdict)), s.verdict.message, "");
}

/// Laws that take seconds, each divided by operators among so many tests. No other takes one.
constexpr struct Shards {
  std::string_view law;
  int tests;
} kShards[] = {{"no_confusion", 6},        {"stacks", 4},         {"captures", 4},
               {"out_of_memory", 4},       {"traces_tell", 2},    {"boxed_calls_are_judged", 2},
               {"programs_on_threads", 2}, {"state_restored", 2}, {"graphs_leave_nothing", 2},
               {"schedules_are_serial", 2}};
int shards_of(std::string_view law) {
  const auto at = std::ranges::find(kShards, law, &Shards::law);
  return at == std::end(kShards) ? 1 : at->tests;
}

/// The operators that a law is asked of.
std::vector<const Op*> operators_of(const Law& law) {
  std::vector<const Op*> out;
  for (const Op* op : OpTable::current().rows())
    if (op->form == OpForm::Functional && !op->has(kTestOnly) && law.applies(*op)) out.push_back(op);
  return out;
}

size_t pairs_run = 0;  ///< by this process

void check_pair(const Law& law, const Op& op) {
  rc::detail::TestMetadata metadata;
  metadata.id = std::string(law.id) + "/" + op.name;
  rc::detail::TestParams params;
  params.seed = seed_of(law.id, op.name);
  const bool programs = law.id.starts_with("programs_");
  params.maxSuccess = law.oracle ? kOracleCases : programs ? kProgramCases : kCases;
  params.maxDiscardRatio = 1000;
  size_t executed = 0;
  const auto property = [&] {
    const Choices choices = *choice_vectors();
    const Verdict v = run_check(law, op, choices);
    if (v.kind == Verdict::Fail) RC_FAIL(report(law, op, choices));
    executed += v.kind == Verdict::Pass;
  };
  const auto result = rc::detail::checkTestable(property, metadata, params);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  EXPECT_TRUE(result.template is<rc::detail::SuccessResult>()) << metadata.id << ": " << text.str();
  for (uint64_t i = 0; i < kTries && executed == 0; ++i)
    executed += run_check(law, op, choices_of(params.seed, law, op, i)).kind != Verdict::Discard;
  EXPECT_GT(executed, 0u) << metadata.id << ": every case is discarded: the law says nothing of it";
  ++pairs_run;
}

/// Shard `shard` of the law's operators.
class LawTest : public testing::Test {
 public:
  LawTest(const Law& law, int shard) : law_(law), shard_(size_t(shard)) {}
  static std::vector<const Op*> part(const Law& law, size_t shard) {
    const std::vector<const Op*> all = operators_of(law);
    std::vector<const Op*> out;
    for (size_t i = shard; i < all.size(); i += size_t(shards_of(law.id))) out.push_back(all[i]);
    return out;
  }
  void TestBody() override {
    for (const Op* op : part(law_, shard_)) check_pair(law_, *op);
  }

 private:
  const Law& law_;
  size_t shard_;
};

std::string name_of(const Law& law, int shard) {
  return std::string(law.id) + (shards_of(law.id) > 1 ? "/" + std::to_string(shard) : "");
}

[[maybe_unused]] const bool laws_added = [] {
  install_operators();  // this runs before main
  install_harness_laws();
  for (const Law& law : laws())
    for (int k = 0; k < shards_of(law.id); ++k)
      testing::RegisterTest("Laws", name_of(law, k).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [&law, k]() -> LawTest* { return new LawTest(law, k); });
  return true;
}();

/// The names of the tests of the suite that GoogleTest knows, which are those of ctest.
std::set<std::string> registered() {
  std::set<std::string> out;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s)
    for (int t = 0;
         std::string("Laws") == all.GetTestSuite(s)->name() && t < all.GetTestSuite(s)->total_test_count();
         ++t)
      out.insert(all.GetTestSuite(s)->GetTestInfo(t)->name());
  return out;
}

/// Each pair of the table has its place in one registered test.
TEST(LawTests, AreOfEveryPairOnce) {
  std::set<std::string> names = registered();
  size_t pairs = 0;
  for (const Law& law : laws()) {
    std::multiset<const Op*> asked;
    for (int k = 0; k < shards_of(law.id); ++k) {
      EXPECT_EQ(names.erase(name_of(law, k)), 1u) << law.id;
      for (const Op* op : LawTest::part(law, size_t(k))) asked.insert(op);
    }
    size_t due = 0;
    for (const Op* op : all_operators()) {
      if (!law.applies(*op)) continue;
      EXPECT_EQ(asked.count(op), 1u) << law.id << " " << op->name;
      ++due;
    }
    EXPECT_EQ(asked.size(), due) << law.id;
    pairs += due;
  }
  EXPECT_TRUE(names.empty()) << *names.begin() << " is of no law";
  EXPECT_GT(pairs, 13'000u);
}

/// A test runs all pairs that it has, no fewer.
TEST(LawTests, RunAllThatTheyHave) {
  for (const char* id : {"vmap_sizes", "numbers_are_kept"}) {
    const Law& law = *find_law(id);
    const size_t before = pairs_run;
    LawTest(law, 0).TestBody();
    EXPECT_EQ(pairs_run - before, operators_of(law).size()) << id;
  }
}

TEST(LawTests, ShardLawsThatThereAre) {
  for (const Shards& s : kShards) EXPECT_NE(find_law(s.law), nullptr) << s.law;
}
}  // namespace
