// Every law for every operator: one GoogleTest each, cases drawn by RapidCheck, shrunk by our reducer.
#include <fstream>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/detail/TestParams.h>
#include <rapidcheck/gtest.h>

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

class LawTest : public testing::Test {
 public:
  LawTest(const Law& law, const Op& op) : law_(law), op_(op) {}
  void TestBody() override {
    rc::detail::TestMetadata metadata;
    metadata.id = std::string(law_.id) + "/" + op_.name;
    rc::detail::TestParams params;
    params.seed = seed_of(law_.id, op_.name);
    const bool programs = law_.id.starts_with("programs_");
    params.maxSuccess = law_.oracle ? kOracleCases : programs ? kProgramCases : kCases;
    params.maxDiscardRatio = 1000;
    size_t executed = 0;
    const auto property = [&] {
      const Choices choices = *choice_vectors();
      const Verdict v = run_check(law_, op_, choices);
      if (v.kind == Verdict::Fail) RC_FAIL(report(law_, op_, choices));
      executed += v.kind == Verdict::Pass;
    };
    const auto result = rc::detail::checkTestable(property, metadata, params);
    std::ostringstream text;
    rc::detail::printResultMessage(result, text);
    EXPECT_TRUE(result.template is<rc::detail::SuccessResult>()) << text.str();
    for (uint64_t i = 0; i < kTries && executed == 0; ++i)
      executed += run_check(law_, op_, choices_of(params.seed, law_, op_, i)).kind != Verdict::Discard;
    EXPECT_GT(executed, 0u) << "every case is discarded: the law says nothing about this operator";
  }

 private:
  const Law& law_;
  const Op& op_;
};

[[maybe_unused]] const bool laws_added = [] {
  install_operators();  // this runs before main
  install_harness_laws();
  for (const Law& law : laws())
    for (const Op* op : OpTable::current().rows()) {
      if (op->form != OpForm::Functional || op->has(kTestOnly) || !law.applies(*op)) continue;
      testing::RegisterTest("Laws", (std::string(law.id) + "/" + op->name).c_str(), nullptr, nullptr,
                            __FILE__, __LINE__, [&law, op]() -> LawTest* { return new LawTest(law, *op); });
    }
  return true;
}();
}  // namespace
