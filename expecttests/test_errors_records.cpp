// Error texts of kept cases that are damaged, or that a law no longer asks for, and of other decoders' blobs.
#include "lamella/verify/run/kept_case.h"

#include "expect.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

constexpr std::string_view kGood = R"(# a comment
law layout_is_invisible
operator neg
depth 4
answers 5
arguments begin
dtype f64
shape [2]
tensor f64[2] strides [2] offset 1 storage 0 of 32 bytes 3ff0000000000000 4000000000000000*3
arguments end
)";

/// What is said of the good case with `by` in the place of `was`.
std::string said_of(std::string_view was, std::string_view by) {
  std::string text(kGood);
  const size_t at = text.find(was);
  EXPECT_NE(at, std::string::npos) << was;
  text.replace(at, was.size(), by);
  try {
    const Verdict v = replay(kept_case_in(text, "case.txt"));
    return v.kind == Verdict::Pass ? "passes" : v.kind == Verdict::Discard ? "is discarded" : v.message;
  } catch (const Error& e) { return e.what(); }
}

TEST(RecordErrors, TheGoodOnePasses) { EXPECT_INLINE(said_of("a comment", "another one"), R"(passes)"); }

TEST(RecordErrors, LinesBeforeTheAnswers) {
  EXPECT_INLINE(said_of("law layout_is_invisible", "law no_such_law"), R"(
      replay: there is no law "no_such_law")");
  EXPECT_INLINE(said_of("operator neg", "operator no_such_operator"), R"(
      replay: there is no operator "no_such_operator" with samples)");
  EXPECT_INLINE(said_of("operator neg\n", ""), R"(case.txt: there is no line "operator …")");
  EXPECT_INLINE(said_of("depth 4", "depth four"), R"(case.txt: line 4 has "four"; expected a number)");
  EXPECT_INLINE(said_of("depth 4", "guard left"), R"(
      case.txt: line 4 guards "left"; expected none, end, begin or blocks)");
  EXPECT_INLINE(said_of("depth 4", "deepness 4"), R"(
      case.txt: line 4 is "deepness 4"; expected law, operator, depth, guard or answers)");
  EXPECT_INLINE(said_of("answers 5", "answers some"), R"(case.txt: line 5 has "some"; expected a number)");
}

TEST(RecordErrors, FilesOfChoices) {
  EXPECT_INLINE(said_of("depth 4", "choices 0 17 4"), R"(
      case.txt: line 4 is of choices, which only the decoder of their time reads; expected a line \
      "answers N" and answers)");
  EXPECT_INLINE(said_of("depth 4", "version 7"), R"(
      case.txt: line 4 is of choices, which only the decoder of their time reads; expected a line \
      "answers N" and answers)");
}

TEST(RecordErrors, WrongCounts) {
  EXPECT_INLINE(said_of("answers 5", "answers 6"), R"(case.txt: 5 answers; expected the 6 that it says)");
  EXPECT_INLINE(said_of("answers 5", "answers 4"), R"(
      case.txt: line 10 is "arguments end", behind the 4 answers that it says)");
  EXPECT_INLINE(said_of("answers 5\n", ""), R"(
      case.txt: line 5 is "arguments begin"; expected law, operator, depth, guard or answers)");
}

TEST(RecordErrors, AnswersThatDoNotFit) {
  EXPECT_INLINE(said_of("dtype f64\n", "below 1 of 3\n"), R"(
      replay of law layout_is_invisible: line 7 is "below 1 of 3"; the law asks for "dtype")");
  EXPECT_INLINE(said_of("shape [2]", "shape [3]"), R"(
      replay of law layout_is_invisible: line 9 is "tensor f64[2] strides [2] offset 1 storage 0 of 32 \
      bytes 3ff0000000"; the law asks for f64[3])");
  EXPECT_INLINE(said_of("shape [2]", "shape [2,1,1,1,1,1,1,1,1]"), R"(
      replay of law layout_is_invisible: line 8 is "shape [2,1,1,1,1,1,1,1,1]"; the law asks for a \
      shape of rank 0 to 3)");
  EXPECT_INLINE(said_of("dtype f64\n", "dtype bool\n"), R"(
      replay of law layout_is_invisible: line 7 is "dtype bool"; the law asks for a dtype that the \
      operator supports)");
  EXPECT_INLINE(said_of("arguments end", "below 1 of 3"), R"(
      replay of law layout_is_invisible: line 10 is "below 1 of 3"; the law asks for "arguments")");
  // The law asks for one more, or for one less, than is there.
  EXPECT_INLINE(said_of("answers 5\narguments begin\n", "answers 4\n"), R"(
      replay of law layout_is_invisible: line 6 is "dtype f64"; the law asks for "arguments")");
  EXPECT_INLINE(said_of("arguments end\n", "arguments end\ndim 0\n"), R"(
      case.txt: line 11 is "dim 0", behind the 5 answers that it says)");
  EXPECT_INLINE(said_of("answers 5\narguments begin\ndtype f64\nshape [2]\n",
                        "answers 6\narguments begin\ndtype f64\nshape [2]\ndim 0\n"),
                R"(replay of law layout_is_invisible: line 9 is "dim 0"; the law asks for "tensor")");
}

TEST(RecordErrors, ListsThatEndTooEarly) {
  const std::string_view tail = kGood.substr(kGood.find("answers"));
  EXPECT_INLINE(said_of(tail, "answers 2\narguments begin\ndtype f64\n"), R"(
      replay of law layout_is_invisible: the law asks for "shape", and the record ends after 2 answers)");
  EXPECT_INLINE(said_of(tail, "answers 2 and the simplest\narguments begin\ndtype f64\n"), R"(is discarded)");
}

TEST(RecordErrors, DamagedNumbers) {
  EXPECT_INLINE(said_of("shape [2]", "shape 2"), R"(
      replay of law layout_is_invisible: line 8 is "shape 2"; "2" is no list; expected [2,3])");
  EXPECT_INLINE(said_of("shape [2]", "shape [2x]"), R"(
      replay of law layout_is_invisible: line 8 is "shape [2x]"; "2x" is no integer)");
  EXPECT_INLINE(said_of("dtype f64\n", "dtype f63\n"), R"(
      replay of law layout_is_invisible: line 7 is "dtype f63"; "f63" is no dtype)");
  EXPECT_INLINE(said_of("3ff0000000000000", "3ff000000000000"), R"(
      replay of law layout_is_invisible: line 9 is "tensor f64[2] strides [2] offset 1 storage 0 of 32 \
      bytes 3ff0000000"; "3ff000000000000" are no bytes; expected 3ff0000000000000 or 00*16)");
  EXPECT_INLINE(said_of("*3", "*x"), R"(
      replay of law layout_is_invisible: line 9 is "tensor f64[2] strides [2] offset 1 storage 0 of 32 \
      bytes 3ff0000000"; "x" is no integer)");
}

TEST(RecordErrors, StoragesThatDoNotFit) {
  EXPECT_INLINE(said_of("*3", "*2"), R"(
      replay of law layout_is_invisible: line 9 is "tensor f64[2] strides [2] offset 1 storage 0 of 32 \
      bytes 3ff0000000"; a storage has 24 bytes; expected the 32 that it says)");
  EXPECT_INLINE(said_of("32 bytes", "24 bytes"), R"(
      replay of law layout_is_invisible: line 9 is "tensor f64[2] strides [2] offset 1 storage 0 of 24 \
      bytes 3ff0000000"; sizes [2], strides [2], offset 1 lead behind the storage of 3 elements)");
  EXPECT_INLINE(said_of("32 bytes", "36 bytes"), R"(
      replay of law layout_is_invisible: line 9 is "tensor f64[2] strides [2] offset 1 storage 0 of 36 \
      bytes 3ff0000000"; a storage of 36 bytes; expected whole elements of f64, less than 2^30 bytes)");
  EXPECT_INLINE(said_of("strides [2]", "strides [3]"), R"(
      replay of law layout_is_invisible: line 9 is "tensor f64[2] strides [3] offset 1 storage 0 of 32 \
      bytes 3ff0000000"; sizes [2], strides [3], offset 1 lead behind the storage of 4 elements)");
  EXPECT_INLINE(said_of("strides [2]", "strides [-1]"), R"(
      replay of law layout_is_invisible: line 9 is "tensor f64[2] strides [-1] offset 1 storage 0 of 32 \
      bytes 3ff000000"; sizes [2], strides [-1], offset 1 lead behind the storage of 4 elements)");
  EXPECT_INLINE(said_of("strides [2]", "strides [2,1]"), R"(
      replay of law layout_is_invisible: line 9 is "tensor f64[2] strides [2,1] offset 1 storage 0 of \
      32 bytes 3ff00000"; sizes [2] with strides [2,1] at offset 1; expected as many strides, and an \
      offset of 0 or more)");
  EXPECT_INLINE(said_of("strides [2] offset 1 ", ""), R"(
      replay of law layout_is_invisible: line 9 is "tensor f64[2] storage 0 of 32 bytes \
      3ff0000000000000 40000000000000"; a storage of 4 elements for f64[2]; expected strides)");
  EXPECT_INLINE(said_of("tensor f64[2]", "tensor f64[1099511627776,1099511627776]"), R"(
      replay of law layout_is_invisible: line 9 is "tensor f64[1099511627776,1099511627776] strides [2] \
      offset 1 storag"; size = [1099511627776,1099511627776] has more elements than memory can hold; \
      expected at most 2^58)");
  EXPECT_INLINE(said_of("storage 0", "storage 3"), R"(
      replay of law layout_is_invisible: line 9 is "tensor f64[2] strides [2] offset 1 storage 3 of 32 \
      bytes 3ff0000000"; storage 3 comes as number 0)");
  EXPECT_INLINE(said_of(" storage 0 of 32 bytes 3ff0000000000000 4000000000000000*3", " storage 0"), R"(
      replay of law layout_is_invisible: line 9 is "tensor f64[2] strides [2] offset 1 storage 0"; \
      storage 0 is not known there)");
  EXPECT_INLINE(said_of("f64[2] strides [2] offset 1 storage 0 of 32 bytes 3ff0000000000000 "
                        "4000000000000000*3",
                        "same 0"),
                R"(
      replay of law layout_is_invisible: line 9 is "tensor same 0"; tensor 0 is not known there)");
  EXPECT_INLINE(said_of("f64[2] strides", "f32[2] strides"), R"(
      replay of law layout_is_invisible: line 9 is "tensor f32[2] strides [2] offset 1 storage 0 of 32 \
      bytes 3ff0000000"; the law asks for f64[2])");
}

std::string refused_blob(const std::string& blob) {
  try {
    const Record r = from_blob(blob);
    if (r.law == "captures") (void)replay(r);
    return "is read";
  } catch (const Error& e) { return e.what(); }
}

TEST(RecordErrors, Blobs) {
  EXPECT_INLINE(refused_blob("nonsense"), R"(replay: "nonsense" is no blob; expected LE.…)");
  EXPECT_INLINE(refused_blob("LD5.dmpwX2VxdWFsc19kaWZmZXJlbmNlcwBicm9rZW5faGFsZl9zcXVhcmUANAAABSm7iA"), R"(
      replay: "LD5.dmpwX2VxdWFsc19kaWZmZXJlbmNlcwBicm9r" is a blob of words without what they gave: \
      replay the file of the case; expected LE.…)");
  Record other{"captures", "add", {1, 2, 300}, {}};
  other.meaning = meaning_of(other) + 1;
  const std::string blob = to_blob(other);
  EXPECT_INLINE(refused_blob(blob), R"(
      replay: the words of this blob gave other arguments where it was printed, by another program; \
      replay the file of the case, which keeps its arguments)");
}
}  // namespace
