// The reducer, blobs of cases and what the decoder makes of words.
#include <cmath>
#include <gtest/gtest.h>

#include "lamella/dispatch/table.h"
#include "lamella/ops/functions.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/programs/chain.h"
#include "lamella/verify/programs/stack.h"
#include "lamella/verify/run/record.h"
#include "lamella/verify/run/runner.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

const Op& op(const char* name) { return *OpTable::current().find(name); }
bool every(const Op&) { return true; }

/// Laws that are false in a known way.
Law false_law(Verdict (*check)(Case&)) {
  return {0, "no_such_law", "test", "Is false.", {}, false, every, check};
}
Verdict large_sums(Case& c) {
  const Tensor x = c.at(c.tensors()[0]);
  return x.rank() == 2 && x.size(1) >= 3 ? Verdict::fail("got 1, expected 2") : Verdict::pass();
}
Verdict narrow_types(Case& c) {
  return c.at(c.tensors()[0]).dtype() == DType::F32 ? Verdict::fail("got 1, expected 2") : Verdict::pass();
}
Verdict two_kinds(Case& c) {
  const Tensor x = c.at(c.tensors()[0]);
  if (x.rank() >= 2) return Verdict::fail({{What::Raised, "shape"}, "raised: shapes are wrong"});
  return x.numel() > 0 ? Verdict::fail("got 1, expected 2") : Verdict::pass();
}
Verdict capricious(Case&) {
  static int calls = 0;
  return ++calls % 2 ? Verdict::fail("got 1, expected 2") : Verdict::pass();
}

/// The first failing case, reduced.
Shrunk reduced(const Law& law, const Op& o, const FailureKind& kind = {}) {
  for (uint64_t i = 1; i < 5000; ++i) {
    const Choices choices = choices_of(7, law, o, i);
    const Verdict v = run_check(law, o, choices);
    if (v.kind == Verdict::Fail && v.failure == kind) return shrink(law, o, choices);
  }
  ADD_FAILURE() << "no case fails";
  return {};
}

TEST(Reducer, FindsTheSimplestCaseWithinItsLimits) {
  const Law law = false_law(large_sums);
  const Shrunk s = reduced(law, op("neg"));
  EXPECT_EQ(s.verdict.kind, Verdict::Fail);
  EXPECT_LE(s.executions, 200);
  const Case c(op("neg"), s.choices, law.options);
  const Tensor x = c.at(c.tensors()[0]);
  EXPECT_EQ(x.dtype(), DType::F64);
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(x.size(0), 2) << x;
  EXPECT_EQ(x.size(1), 3) << x;
}

TEST(Reducer, SaysWhatMayVary) {
  const Shrunk s = reduced(false_law(narrow_types), op("neg"));
  EXPECT_NE(std::find(s.fixed.begin(), s.fixed.end(), "dtype"), s.fixed.end());
  for (const char* const part : {"rank", "values of a0", "layout of a0"})
    EXPECT_NE(std::find(s.free.begin(), s.free.end(), part), s.free.end()) << part;
}

TEST(Reducer, KeepsTheKindOfFailure) {
  const FailureKind rare{What::Raised, "shape"};
  EXPECT_EQ(str(reduced(false_law(two_kinds), op("neg"), rare).verdict.failure), "raises shape");
  EXPECT_EQ(str(reduced(false_law(two_kinds), op("neg")).verdict.failure), "value");
}

/// see NOTE: [kinds of failure]
TEST(Findings, KeepTheirKindInOtherWords) {
  const Tensor x = tensor_of({2}, {1, 2}, DType::F64), nan = tensor_of({2}, {1, std::nan("")}, DType::F64);
  const auto kind = [](const Finding& f) { return str(("lane 3: " + f + " (of 4)").kind()); };
  EXPECT_EQ(kind(differs(nan, x)), "nan");
  EXPECT_EQ(kind(differs(x, nan)), "value");
  EXPECT_EQ(kind(differs(to(x, DType::F32), x)), "dtype");
  EXPECT_EQ(kind(differs(reshape(x, {1, 2}), x)), "shape");
  EXPECT_EQ(kind(differs(Tensors{x, x}, Tensors{x})), "number of results");
  EXPECT_EQ(kind(differs(Tensors{Tensor()}, Tensors{x})), "number of results");
  EXPECT_EQ(kind(str(status_of([] {}))), "raises nothing");
  EXPECT_EQ(kind(str(status_of([&] { add(x, zeros({3})); }))), "raises broadcast");
  EXPECT_EQ(str(failure_kind(std::bad_alloc())), "raises std::bad_alloc");
  try {
    add(x, zeros({3}));
  } catch (const Error& e) { EXPECT_EQ(str(raised_by(e).kind()), "raises broadcast of add"); }
}

TEST(Reducer, CallsACaseFlakyThatPassesAgain) {
  for (int before = 0; before < 3; ++before) {  // whichever of its answers comes when it is run again
    for (int k = 0; k < before; ++k) run_check(false_law(capricious), op("neg"), {1, 2, 3});
    EXPECT_TRUE(shrink(false_law(capricious), op("neg"), {1, 2, 3}).flaky) << before;
  }
}

TEST(Reducer, GivesEveryFailureAProgram) {
  const Verdict v =
      run_check(false_law(narrow_types), op("neg"), reduced(false_law(narrow_types), op("neg")).choices);
  EXPECT_NE(v.program.find("call(\"neg\""), std::string::npos) << v.program;
}

TEST(Blobs, RoundTrip) {
  for (uint64_t i = 0; i < 200; ++i) {
    const Record r{"captures", "add", choices_of(i, laws()[0], op("add"), i), {.depth = int(i % 5)}};
    const Record back = from_blob(to_blob(r));
    EXPECT_EQ(back.law, r.law);
    EXPECT_EQ(back.op, r.op);
    EXPECT_EQ(back.choices, r.choices);
    EXPECT_EQ(back.decoding.depth, r.decoding.depth);
  }
}

TEST(Blobs, RefuseWhatTheyAreNot) {
  const std::string good = to_blob({"captures", "add", {1, 2, 300}, {}});
  for (const std::string& bad :
       {std::string(), std::string("LC"), std::string("LC2"), std::string("LE"), "LD18." + good.substr(3),
        "LE" + good.substr(3), good.substr(0, good.size() - 2), good + "!"})
    EXPECT_THROW(from_blob(bad), Error) << bad;
  std::string damaged = good;
  damaged[8] = damaged[8] == 'A' ? 'B' : 'A';
  EXPECT_THROW(from_blob(damaged), Error);
}

/// Words that gave something else where the blob was printed are not replayed as another case.
TEST(Blobs, OfAProgramThatDrawsOtherwiseAreRefused) {
  const Record r{"captures", "add", {1, 2, 300}, {}};
  Record other = from_blob(to_blob(r));
  EXPECT_EQ(*other.meaning, meaning_of(r));
  EXPECT_EQ(replay(other).kind, replay(r).kind);
  ++*other.meaning;
  EXPECT_THROW(replay(from_blob(to_blob(other))), Error);
}

/// A checksum of eight bits let one in 256 pass.
TEST(Blobs, OneLetterChangedIsAlwaysSeen) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const Record r{"captures", "add", {1, 2, 300, 70000, 1u << 31, 7}, {}};
  const std::string good = to_blob(r);
  for (size_t at = 4; at < good.size(); ++at)
    for (const char c : kDigits) {
      std::string bad = good;
      bad[at] = c;
      try {
        EXPECT_EQ(to_blob(from_blob(bad)), good) << bad;  // the last letter has bits that say nothing
      } catch (const Error&) { EXPECT_NE(bad, good); }
    }
}

Choices words_from(uint32_t first) {
  Choices out;
  for (uint32_t k = first; k < first + 64; ++k) out.push_back(k * 2654435761u >> 7);
  return out;
}

std::string drawn(const char* name, const DrawOptions& options, uint32_t first) {
  const Choices words = words_from(first);
  const Case c(op(name), words, options);
  return cpp_declarations(c.args) + cpp_call(c.op, c.args);
}

/// What the decoder makes of these words, literally: where this changes, blobs that are around are refused,
/// and who changes it sees that here.
TEST(Decoder, WordsMeanWhatTheyMeant) {
  EXPECT_EQ(drawn("maximum", {}, 28), R"(  Tensor a0 = tensor_of({2}, {-2, 1}, DType::F16);
  Tensor a1 = tensor_of({2}, {-2, 1}, DType::F16);
call("maximum", Values{a0, a1}))");
  EXPECT_EQ(drawn("mean", {.dtypes = kFloat32And64, .max_numel = 6}, 40),
            R"(  Tensor a0_memory = tensor_of({9}, {1, NAN, NAN, NAN, -0x1.4762b43345837p-8, NAN, NAN, )"
            R"(NAN, 2}, DType::F64);
  Tensor a0 = make_view(a0_memory, Dims({1, 3}), Dims({1, 4}), 0);
call("mean", Values{a0, Dims{0}}))");
  EXPECT_EQ(drawn("tril", {.nonfinite = true}, 7),
            R"(  Tensor a0 = tensor_of({3, 1, 8}, {0, 1, 4, 4, 0, 7, 0, 4, 5, 1, 8, 4, 1, 5, 5, 7, 0, 8, )"
            R"(4, 2, 4, 8, 5, 1}, DType::U8);
call("tril", Values{a0, int64_t{-1}}))");
  EXPECT_EQ(drawn("slice", {.nonfinite = true, .ends = true}, 107),
            R"(  Tensor a0_memory = complex(tensor_of({5}, {-0.0, -0x1.aa0b86p-5, NAN, 0x1.b1e23ap-1, 0}, )"
            R"(DType::F32),
      tensor_of({5}, {-0.0, -0x1.2d67e4p-1, NAN, 0x1.792552p-2, 0}, DType::F32));
  Tensor a0 = make_view(a0_memory, Dims({2, 2}), Dims({1, 3}), 0);
call("slice", Values{a0, int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{2}}))");
}

TEST(Decoder, StacksMeanWhatTheyMeant) {
  std::string out;
  for (uint32_t first = 0; first < 4; ++first) {
    const DrawOptions options{.dtypes = mask(DType::F64), .tame = true, .max_numel = 4};
    const Choices words = words_from(100 * first);  // the case reads them as it draws
    Case c(op("mul"), words, options);
    const Stack s(c, {.max_depth = 4});
    out += s.str();
    for (const Tensor& x : s.inputs()) out += " " + type_str(x);
    out += "; ";
  }
  EXPECT_EQ(out,
            "vmap(vmap(vmap(vmap(mul)))) f64[2,2,2,7,2,1] f64[1,7]; vjp(vmap(mul)) f64[3] f64[3,2]; "
            "vmap(grad(vmap(mul))) f64[2,1,2,2,1]; grad(grad(mul)) f64[2] f64[]; ");
}

/// A recorded chain names its operators: others that are registered do not change it.
TEST(Decoder, TakesTheOperatorsThatARecordNames) {
  size_t named = 0;
  for (uint32_t first = 0; first < 6; ++first) {
    const DrawOptions options{.dtypes = mask(DType::F64), .exact = true, .max_numel = 4, .mixed = false};
    const Choices words = words_from(100 * first + 7);
    Case c(op("mul"), words, options);
    c.given_partners = {"add", "neg", "sub", "maximum", "transpose"};
    const Chain chain(c);
    for (size_t k = 0; k < std::min(c.partners.size(), c.given_partners.size()); ++k, ++named)
      EXPECT_EQ(c.partners[k], c.given_partners[k]);
  }
  EXPECT_GT(named, 5u);
}

/// How many of the operators' cases name an inexact dtype that a law of f32 and f64 does not want.
int unwanted() {
  const DrawOptions options{.dtypes = kFloat32And64};
  int count = 0;
  for (const Op* o : all_operators())
    for (uint64_t i = 0; i < 100; ++i) {
      const Choices choices = choices_of(5, laws()[0], *o, i);
      const Case c(*o, choices, options);
      for (const Value& v : c.args)
        if (const DType* d = std::get_if<DType>(&v)) count += is_inexact(*d) && !(mask(*d) & options.dtypes);
    }
  return count;
}
TEST(Decoder, ArgumentsNameDTypesThatTheLawWants) { EXPECT_EQ(unwanted(), 0); }

TEST(Decoder, TheEmptyVectorIsTheSimplestCase) {
  for (const Op* o : all_operators()) {
    const Choices none;
    const Case c(*o, none, {});
    for (const Case::Slot& s : c.tensors()) EXPECT_TRUE(c.at(s).is_contiguous()) << o->name;
  }
}
}  // namespace
