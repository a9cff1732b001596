// Cases kept as decoded answers: what is played is what was drawn, bit by bit, and damage is noticed.
#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lamella/dispatch/table.h"
#include "lamella/mutate/laws_harness.h"
#include "lamella/ops/all.h"
#include "lamella/verify/case/player.h"
#include "lamella/verify/case/series.h"
#include "lamella/verify/run/apart.h"
#include "lamella/verify/run/kept_case.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

const Op& op(const char* name) { return *OpTable::current().find(name); }
bool every(const Op&) { return true; }

/// Asks for nothing but arguments.
Law asking(const DrawOptions& options) {
  return {0, "asks_nothing", "test", "Passes.", options, false, every, [](Case&) { return Verdict::pass(); }};
}

/// In which way two lists of arguments differ; their memory is compared whole.
class Alike {
 public:
  std::string differ(const Values& got, const Values& want) {
    if (got.size() != want.size()) return "another number of arguments";
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i].index() != want[i].index()) return format("argument {} is of another kind", i);
      if (const Tensor* t = std::get_if<Tensor>(&want[i])) tensor(std::get<Tensor>(got[i]), *t);
      else if (const Tensors* ts = std::get_if<Tensors>(&want[i])) list(std::get<Tensors>(got[i]), *ts);
      else if (const Scalar* s = std::get_if<Scalar>(&want[i])) scalar(std::get<Scalar>(got[i]), *s);
      else if (str(got[i]) != str(want[i])) wrong_ = str(got[i]) + ", was " + str(want[i]);
      if (!wrong_.empty()) return format("argument {}: ", i) + wrong_;
    }
    return "";
  }

 private:
  void scalar(const Scalar& got, const Scalar& want) {
    if (scalar_text(got) != scalar_text(want)) wrong_ = scalar_text(got) + ", was " + scalar_text(want);
  }
  void list(const Tensors& got, const Tensors& want) {
    if (got.size() != want.size()) wrong_ = "another number of tensors";
    for (size_t k = 0; k < want.size() && wrong_.empty(); ++k) tensor(got[k], want[k]);
  }
  void tensor(const Tensor& got, const Tensor& want) {
    if (got.defined() != want.defined()) wrong_ = "defined or not";
    if (!got.defined() || !want.defined()) return;
    const TensorImpl &a = *got.impl(), &b = *want.impl();
    if (a.dtype != b.dtype || a.device != b.device || a.offset != b.offset || a.keys != b.keys ||
        a.contiguous != b.contiguous || !std::ranges::equal(got.sizes(), want.sizes()) ||
        !std::ranges::equal(got.strides(), want.strides()))
      wrong_ = "dtype, sizes, strides or offset: " + str(got) + ", was " + str(want);
    else if (a.storage->nbytes != b.storage->nbytes || a.storage->embedded != b.storage->embedded)
      wrong_ = format("{} bytes, were {}", a.storage->nbytes, b.storage->nbytes);
    else if (std::memcmp(a.storage->data, b.storage->data, a.storage->nbytes) != 0)
      wrong_ = "bytes: " + str(got) + ", were " + str(want);
    else if (place(handles_, &a, &b) || place(storages_, a.storage, b.storage))
      wrong_ = "handles or storages are shared in another way";
  }
  /// Whether two things stand in pairs with others.
  static bool place(std::vector<std::pair<const void*, const void*>>& known, const void* a, const void* b) {
    for (const auto& [x, y] : known)
      if ((x == a) != (y == b)) return true;
    known.emplace_back(a, b);
    return false;
  }

  std::string wrong_;
  std::vector<std::pair<const void*, const void*>> handles_, storages_;
};

KeptCase through_text(const KeptCase& c) {
  return kept_case_in(to_file_text(c, "a message\nchoices 1 2", "int x;\n"), "text");
}

TEST(KeptCases, ArgumentsOfEachOperatorComeBackBitByBit) {
  const DrawOptions kinds[] = {{},
                               {.nonfinite = true, .ends = true},
                               {.exact = true, .devices = true},
                               {.tame = true, .max_numel = 6, .one_large = true},
                               {.empty = true}};
  int shared = 0, views = 0, cases = 0;
  for (const Op* o : all_operators())
    for (const DrawOptions& options : kinds)
      for (uint64_t i = 0; i < 8; ++i) {
        const Law law = asking(options);
        const Choices choices = choices_of(4, law, *o, i);
        const KeptCase kept = through_text(noted(law, *o, choices).kept);
        const Case drawn(*o, choices, options);
        std::string wrong;
        Player player(kept.answers, law.id, options, wrong);
        const Case played(*o, player);
        player.finish();
        ASSERT_EQ(wrong, "") << o->name;
        ASSERT_EQ(Alike().differ(played.args, drawn.args), "") << o->name << " " << i;
        ++cases;
        const auto has = [](const Answer& a, const char* part) {
          return a.text.find(part) != std::string::npos;
        };
        for (const Answer& a : kept.answers.all) {
          views += has(a, " strides ");
          shared += a.text.starts_with("same ") || (has(a, " storage ") && !has(a, " bytes "));
        }
      }
  EXPECT_GT(cases, 5000);
  EXPECT_GT(views, 500);
  EXPECT_GT(shared, 20);
}

/// What a law asks behind the arguments comes back as well: a second noting of the played case is the first.
class KeptOfLaw : public testing::Test {
 public:
  explicit KeptOfLaw(const Law& law) : law_(law) {}
  void TestBody() override {
    uint64_t index = 0;
    for (const Op* o : all_operators()) {
      if (!law_.applies(*o)) continue;
      ++index;
      if (law_.oracle && index % 6 != 1) continue;
      check(*o, law_.numbered ? index : index % 7);
      if (!law_.oracle && !law_.numbered) check(*o, 8 + index % 5);
      if (law_.group == "harness") break;
    }
    EXPECT_GT(index, 0u);
  }

 private:
  void check(const Op& o, uint64_t index) const {
    const Noted drawn = noted(law_, o, choices_of(6, law_, o, index));
    const KeptCase kept = through_text(drawn.kept);
    Played played{kept.answers};
    Decoding decoding;
    decoding.played = &played;
    const Noted again = noted(law_, o, {}, decoding);
    ASSERT_EQ(played.wrong, "") << o.name;
    ASSERT_EQ(again.verdict.kind, drawn.verdict.kind) << o.name << again.verdict.message;
    ASSERT_EQ(again.verdict.depth, drawn.verdict.depth) << o.name;
    ASSERT_EQ(again.verdict.partners, drawn.verdict.partners) << o.name;
    ASSERT_EQ(to_file_text(again.kept, "", ""), to_file_text(drawn.kept, "", "")) << o.name;
  }
  const Law& law_;
};

[[maybe_unused]] const bool registered = [] {
  install_operators();  // this runs before main
  install_harness_laws();
  for (const Law& law : laws())
    testing::RegisterTest("KeptOfLaw", std::string(law.id).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [&law]() -> KeptOfLaw* { return new KeptOfLaw(law); });
  return true;
}();

/// A failing case fails again, in the same words; once the law holds there, it asks for what was not kept.
bool broken = true;
Verdict breaks_and_asks(Case& c) {
  const Tensor u = c.direction(c.at(c.tensors()[0]));
  if (broken) return Verdict::fail("got 1, expected 2");
  const int64_t d = c.draw.dim(u.rank());
  return d == 0 && c.draw.below(7) == 0 ? Verdict::pass() : Verdict::fail("no simplest answers");
}

TEST(KeptCases, FailuresFailAgainUntilTheyAreMended) {
  Law law = asking({});
  law.check = breaks_and_asks;
  for (uint64_t i = 0; i < 20; ++i) {
    broken = true;
    const Noted first = noted(law, op("mul"), choices_of(2, law, op("mul"), i));
    const KeptCase kept = through_text(first.kept);
    EXPECT_TRUE(kept.answers.open);
    for (const bool still : {true, false}) {
      broken = still;
      Played played{kept.answers};
      Decoding decoding;
      decoding.played = &played;
      const Verdict v = run_check(law, op("mul"), {}, decoding);
      EXPECT_EQ(played.wrong, "");
      EXPECT_EQ(v.kind, still ? Verdict::Fail : Verdict::Pass) << v.message;
      EXPECT_EQ(v.message, still ? first.verdict.message : "");
      EXPECT_EQ(v.program, still ? first.verdict.program : "");
    }
  }
}

/// see NOTE: [guarded cases]
TEST(KeptCases, MemoryIsGuardedAgain) {
  static GuardSide seen;
  Law law = asking({});
  law.check = [](Case&) { return seen = detail::guard_side, Verdict::pass(); };
  for (const uint32_t top : {0u, 1u, 5u, 6u}) {
    const Choices choices{top << 26 | 3, 1, 0, 7};
    const KeptCase kept = noted(law, op("neg"), choices).kept;
    const GuardSide first = seen;
    EXPECT_EQ(through_text(kept).answers.guard, guard_of(choices));
    seen = GuardSide::None;
    Played played{kept.answers};
    Decoding decoding;
    decoding.played = &played;
    run_check(law, op("neg"), {}, decoding);
    EXPECT_EQ(seen, first) << top;
  }
}

TEST(KeptCases, OneThatEndsItsProcessKeepsWhatItWasGiven) {
  Law law = asking({});
  law.id = "ends_the_process";
  law.check = [](Case& c) -> Verdict {
    (void)c.draw.below(9);
    ::_exit(3);
  };
  const Verdict v = check_apart(  // which has one law more
      [&] {
        add_law(law);
        const KeptCase c = kept(record_of(law, op("neg"), {5, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {}));
        const bool whole = c.answers.open && c.answers.all.size() > 4 && c.answers.all.back().kind == "below";
        return whole ? Verdict::pass() : Verdict::fail(to_file_text(c, "", ""));
      },
      60);
  EXPECT_EQ(v.kind, Verdict::Pass) << v.message;
}

/// Planted mistakes of a text: each is noticed by who compares arguments, or refused.
TEST(KeptCases, ALostStrideIsAnotherCase) {
  const Law law = asking({.dtypes = mask(DType::F64)});
  int lost = 0, noticed = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    const Choices choices = choices_of(8, law, op("neg"), i);
    KeptCase kept = noted(law, op("neg"), choices).kept;
    const size_t before = size_t(lost);
    for (Answer& a : kept.answers.all) {
      const size_t at = a.text.find(" strides "), end = a.text.find(" storage ");
      if (at == std::string::npos || end == std::string::npos || a.text.find("*") == std::string::npos)
        continue;
      Dims sizes = dims_in(a.text.substr(3, a.text.find(']') - 2));
      const std::string plain = format(" strides {} offset 0", contiguous_strides(sizes));
      if (a.text.substr(at, end - at) == plain) continue;
      a.text.replace(at, end - at, plain), ++lost;
    }
    if (before == size_t(lost)) continue;
    const Case drawn(op("neg"), choices, law.options);
    std::string wrong;
    Player player(kept.answers, law.id, law.options, wrong);
    try {
      const Case played(op("neg"), player);
      noticed += Alike().differ(played.args, drawn.args).empty() ? 0 : 1;
    } catch (const Error&) { ++noticed; }
  }
  EXPECT_GT(lost, 10);
  EXPECT_EQ(noticed, lost);
}

}  // namespace
