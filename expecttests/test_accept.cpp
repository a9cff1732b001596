// What `lamella accept` relies on: reading and writing literals, applying records; and that its laws can
// fail.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <rapidcheck.h>
#include <rapidcheck/detail/TestParams.h>
#include <utility>

#include "lamella/core/check.h"
#include "lamella/text/inline_text.h"

#include "expect.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

/// The property in 1000 cases, the same ones in every run: the seed is the test's name.
template <class F> testing::AssertionResult holds(const F& property) {
  rc::detail::TestMetadata metadata;
  metadata.id = testing::UnitTest::GetInstance()->current_test_info()->name();
  rc::detail::TestParams params;
  params.seed = source_hash(metadata.id);
  params.maxSuccess = 1000;
  params.maxSize = 30;
  const auto result = rc::detail::checkTestable(property, metadata, params);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  const bool good = result.template is<rc::detail::SuccessResult>();
  return (good ? testing::AssertionSuccess() : testing::AssertionFailure()) << text.str();
}

/// Texts that have broken tokenisers, and single bytes.
std::string piece(int choice) {
  static const std::vector<std::string> kPieces = {
      ")\"",
      ")x\"",
      ")xx\"",
      "R\"(",
      "\\",
      "\n",
      "\"",
      "'",
      "\r\n",
      "\r",
      "\t",
      " ",
      "    ",
      "\\\n",
      "?"
      "?/",
      "//",
      "/*",
      "*/",
      "\xc3\xa9",
      "\n\n",
      "#",
      std::string(1, '\0'),
      "word",
      "a, b",
      "(",
      "{\n  ",
      "\n\\",
      "\\\\",
      "%d",
      "\xe2\x80\xae",
      "\xff",
      "\"\"",
      "a longer piece of text ",
  };
  return choice < 256 ? kPieces[size_t(choice) % kPieces.size()] : std::string(1, char(choice - 256));
}
std::string text_of(const std::vector<int>& choices) {
  std::string out;
  for (const int c : choices) out += piece(c);
  return out;
}
rc::Gen<std::string> texts() {
  return rc::gen::map(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 512)), text_of);
}

size_t longest_line(std::string_view text) {
  size_t longest = 0, column = 0;
  for (const char c : text) longest = std::max(longest, column = c == '\n' ? 0 : column + 1);
  return longest;
}

using Encoder = std::string (*)(std::string_view text, size_t indent, size_t column, bool crlf);

/// The law: what is written is found again, means the same, and keeps to the columns.
bool round_trips(Encoder encode, std::string_view text, size_t indent, bool crlf) {
  const std::string head = "// it's\n" + std::string(indent, ' ') + "EXPECT_INLINE(f(\"(\", ')'), ";
  const size_t column = head.size() - head.rfind('\n') - 1;
  const std::string source = head + encode(text, indent, column, crlf) + ");\nint after = 1'000;\n";
  const std::vector<InlineCall> calls = inline_calls(source, "EXPECT_INLINE");
  return calls.size() == 1 && calls[0].expected && unindent(*calls[0].expected) == text &&
         longest_line(source) <= 110;
}

TEST(Literals, AnyTextSurvivesWritingAndReading) {
  EXPECT_TRUE(holds([] {
    const auto text = *texts();
    const auto indent = size_t(*rc::gen::inRange(0, 12));
    RC_LOG() << inline_literal(text, indent, 0);
    RC_ASSERT(round_trips(inline_literal, text, indent, *rc::gen::arbitrary<bool>()));
  }));
}

TEST(Literals, TheLawFailsForBrokenWriters) {
  const std::vector<Encoder> broken = {
      [](std::string_view t, size_t, size_t, bool) { return "R\"(" + std::string(t) + ")\""; },
      [](std::string_view t, size_t, size_t, bool) { return "\"" + std::string(t) + "\""; },
      [](std::string_view t, size_t, size_t, bool) { return escaped_literal(t, "\n"); },  // no block's escape
      [](std::string_view t, size_t i, size_t, bool) { return inline_literal(t, i, 0, false); },  // too wide
      [](std::string_view t, size_t i, size_t c, bool) {
        return inline_literal(t.substr(0, t.find_last_not_of('\n') + 1), i, c, false);
      }};
  std::vector<int> failures(broken.size());
  std::mt19937 random(1);
  for (int n = 0; n < 2000; ++n) {
    std::vector<int> choices(random() % 12);
    for (int& c : choices) c = int(random() % 512);
    const std::string text = n % 2 ? text_of(choices) : std::string(random() % 120, 'x');
    EXPECT_TRUE(round_trips(inline_literal, text, 4, false));
    for (size_t k = 0; k < broken.size(); ++k) failures[k] += !round_trips(broken[k], text, 4, false);
  }
  for (size_t k = 0; k < broken.size(); ++k) EXPECT_GT(failures[k], 0) << "writer " << k;
}

/// The compiler is the oracle: what it made of each literal of this file against what the tokeniser read.
#define COMPILED(name, ...) \
  { name, std::string(__VA_ARGS__, sizeof(__VA_ARGS__) - 1) }
std::vector<std::pair<std::string, std::string>> compiled() {
  // clang-format off
  return {
      COMPILED("escapes", "\a\b\f\n\r\t\v\\\'\"\?\0\01\012\1234\x7f\xfF"),
      COMPILED("unicode", "\u00e9\u20ac\U0001F600é"),
      COMPILED("pieces", "\x1" "2" /* it's */ "\0" // "a comment"
               "\08" R"(\n)" ""),
      COMPILED("raw", R"("\u0041??/\)"),
      COMPILED("delimiter", R"xy(a)x"b)y"c)xy"),
      COMPILED("spliced", "a\
b\\
n"),
      COMPILED("raw lines", R"(
    one\
  two
)"),
      COMPILED("empty", "" R"()"),
      COMPILED("looks like a call", "COMPILED(\"x\", " R"(COMPILED("y", "z"))"),
      COMPILED("behind numbers", 1'000'0 > 0x1.8p+1 ? "yes" : "" "non"),
  };
  // clang-format on
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Literals, AgreeWithTheCompiler) {
  const std::string source = read(LAMELLA_SOURCE_DIR "/expecttests/test_accept.cpp");
  const auto values = compiled();
  const std::vector<InlineCall> calls = inline_calls(source, "COMPILED");
  ASSERT_EQ(calls.size(), values.size());
  for (size_t k = 0; k + 1 < calls.size(); ++k) {
    ASSERT_TRUE(calls[k].expected) << values[k].first;
    EXPECT_EQ(*calls[k].expected, values[k].second) << values[k].first;
  }
  EXPECT_EQ(values.back().second, "yes");  // an expression's last string is no argument by itself
  EXPECT_FALSE(calls.back().expected);
}

TEST(Literals, WhatCannotBeReadIsSaid) {
  for (const char* token : {"L\"a\"", "u8\"a\"", "\"a\"_s", "\"\\x100\"", "\"\\ud800\"", "\"\\q\"", "\"a",
                            "R\"(a\rb)\"", "R\"(a", "R\"a b(c)a b\"", "a", ""})
    EXPECT_FALSE(decode_literal(token)) << token;
}

TEST(Tokens, CoverTheTextInOrder) {
  EXPECT_TRUE(holds([] {
    const auto text = *texts();
    size_t at = 0;
    int line = 1;
    for (const Token& t : tokenise(text)) {
      RC_ASSERT(t.begin >= at && t.end > t.begin && t.end <= text.size());
      line += int(std::count(text.begin() + long(at), text.begin() + long(t.begin), '\n'));
      RC_ASSERT(t.line == line);
      line += int(std::count(text.begin() + long(t.begin), text.begin() + long(t.end), '\n'));
      at = t.end;
    }
  }));
}

/// A file of calls between things that look like calls.
struct File {
  struct Call {
    int form, around;
    std::string before, after;
    bool changes, last_line;
  };
  std::vector<Call> calls;
  bool crlf;

  static constexpr const char* kAround[] = {
      "// it's \"EXPECT_INLINE(x, R\"(\n",
      "/* EXPECT_INLINE(a, \"b\"); \n */ const char c = '\"';\n",
      "const int n = 1'000'000; auto e = 0x1p-3 + .5e+3;\n",
      "#define TWICE(x) EXPECT_INLINE(x, \"no\") \\\n  EXPECT_INLINE(x, \"no\")\n",
      "#include <it's.h>\n#error don't \"stop\n",
      "auto s = R\"x(EXPECT_INLINE(a, \"b\"); )\" )x\";\n",
      "// spliced \\\n EXPECT_INLINE(a, \"b\");\n",
      "auto w = LR\"(\")\" \"\\\"\" u8\"\\\\\";\n",
      "EXPECT_INLINE_TOO(1, \"x\"); MY_EXPECT_INLINE(1, \"x\"); EXPECT_INLINE;\n",
      "EXPECT_INLINE(1, x + \"text\"); EXPECT_INLINE(\"alone\");\n",
  };
  static constexpr const char* kForms[][2] = {
      {"EXPECT_INLINE(f(a, {b}), ", ");\n"},
      {"  EXPECT_INLINE(\n    g(\"x)\", ')'),  // it's\n    ", ");\n"},
      {"      EXPECT_INLINE([&] { return h[1'0]; }(), /* ( */ ", " /* ) */);\n"},
      {"  EXPECT_\\\nINLINE_OTHER(1, \"\"); EXPECT_INLINE(pair<a, b>(), ", "\n  ) << 1;\n"},
  };
  static constexpr size_t kIndents[] = {0, 2, 6, 0};

  static std::string lines(std::string_view text, bool crlf) {
    std::string out;
    for (const char c : text) out += crlf && c == '\n' ? "\r\n" : std::string(1, c);
    return out;
  }
  /// The source with each call's old text, and the line that the compiler would tell for each call.
  std::string source(std::vector<int>& at) const {
    std::string out;
    for (const Call& c : calls) {
      out += lines(kAround[c.around], crlf);
      const int first = 1 + int(std::count(out.begin(), out.end(), '\n')) + (c.form == 3);
      out += lines(kForms[c.form][0], crlf);
      const size_t line = out.rfind('\n') + 1;  // 0 where there is none
      out += inline_literal(c.before, kIndents[c.form], out.size() - line, crlf);
      out += lines(kForms[c.form][1], crlf);
      at.push_back(c.last_line ? int(std::count(out.begin(), out.end(), '\n')) : first);
    }
    return out;
  }
  std::string outside() const {
    std::string out;
    for (const Call& c : calls) {
      const std::string head = lines(kForms[c.form][0], crlf);
      out += lines(kAround[c.around], crlf) + head.substr(0, head.find_last_not_of(" \r\n") + 1) +
             lines(kForms[c.form][1], crlf);
    }
    return out;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for (const Call& c : calls) { out.push_back(c.changes ? c.after : c.before); }
    return out;
  }
};

rc::Gen<File> files() {
  const auto call = rc::gen::build<File::Call>(
      rc::gen::set(&File::Call::form, rc::gen::inRange(0, 4)),
      rc::gen::set(&File::Call::around, rc::gen::inRange(0, 10)), rc::gen::set(&File::Call::before, texts()),
      rc::gen::set(&File::Call::after, texts()), rc::gen::set(&File::Call::changes),
      rc::gen::set(&File::Call::last_line));
  return rc::gen::build<File>(rc::gen::set(&File::calls, rc::gen::container<std::vector<File::Call>>(call)),
                              rc::gen::set(&File::crlf));
}

std::vector<std::string> texts_in(const std::string& source) {
  std::vector<std::string> out;
  for (const InlineCall& c : inline_calls(source, "EXPECT_INLINE"))
    if (!c.literals.empty()) out.push_back(unindent(c.expected.value_or("unreadable")));
  return out;
}

/// The source without the calls' texts and the blanks before them.
std::string outside(std::string source) {
  const std::vector<InlineCall> calls = inline_calls(source, "EXPECT_INLINE");
  for (size_t k = calls.size(); k-- > 0;) {
    if (calls[k].literals.empty()) continue;
    const size_t from = source.find_last_not_of(" \r\n", calls[k].literals.front().begin - 1) + 1;
    source.erase(from, calls[k].literals.back().end - from);
  }
  return source;
}

std::vector<PendingText> records_of(const File& file, const std::string& source, const std::vector<int>& at) {
  std::vector<PendingText> out;
  for (size_t k = 0; k < file.calls.size(); ++k)
    if (file.calls[k].changes)
      out.push_back(
          {"Suite.test", "f.cpp", at[k], source_hash(source), file.calls[k].before, file.calls[k].after});
  return out;
}

TEST(Accept, ReplacesTheTextsAndNothingElse) {
  EXPECT_TRUE(holds([] {
    const auto file = *rc::gen::noShrink(files());
    std::vector<int> at;
    const std::string source = file.source(at);
    const std::vector<PendingText> records = records_of(file, source, at);
    const AcceptedTexts once = accept_texts(source, records);
    for (const std::string& refusal : once.refused) RC_ASSERT(refusal == "");
    RC_ASSERT(texts_in(once.source) == file.texts());
    RC_ASSERT(outside(once.source) == outside(source));
    RC_ASSERT(outside(source) == file.outside());
    RC_ASSERT(accept_texts(once.source, records).source == once.source);
  }));
}

TEST(Accept, RecordsSurviveWritingAndReading) {
  EXPECT_TRUE(holds([] {
    const PendingText p{*texts(), *texts(), *rc::gen::arbitrary<int>(), *rc::gen::arbitrary<uint64_t>(),
                        *texts(), *texts()};
    const std::vector<PendingText> back = parse_pending(str(p) + str(p));
    RC_ASSERT(back.size() == 2u);
    RC_ASSERT(str(back[0]) == str(p) && str(back[1]) == str(p));
  }));
}

PendingText record(const std::string& source, int line, std::string expected, std::string got) {
  return {"Suite.test", "f.cpp", line, source_hash(source), std::move(expected), std::move(got)};
}

TEST(Accept, RefusesWhatItCannotDecide) {
  const std::string source =
      "EXPECT_INLINE(f(), \"old\");\nEXPECT_INLINE(f(), \"a\"); EXPECT_INLINE(g(), \"a\");\n"
      "EXPECT_INLINE(f(), L\"wide\");\n";
  PendingText stale = record(source, 1, "old", "new");
  stale.source_hash ^= 1;
  const std::vector<PendingText> records = {record(source, 1, "old", "one"), record(source, 1, "old", "two"),
                                            record(source, 2, "a", "b"),     record(source, 3, "wide", "b"),
                                            record(source, 4, "old", "one"), stale};
  const AcceptedTexts out = accept_texts(source, records);
  EXPECT_EQ(out.source, source);
  std::string refused;
  for (const std::string& r : out.refused) refused += r + "\n";
  EXPECT_INLINE(refused, R"(
      runs of this line disagree; give each text a line of its own
      runs of this line disagree; give each text a line of its own
      two calls in this line hold the same text; put them in lines of their own
      no call in this line holds the text that the test compared with
      no call in this line holds the text that the test compared with
      the source has changed since the test ran; run it again
      )");
}

TEST(Accept, RunsThatAgreeAreOne) {
  const std::string source = "EXPECT_INLINE(f(), \"old\" /* kept */ \"\");\n";
  const std::vector<PendingText> records(3, record(source, 1, "old", "new"));
  EXPECT_EQ(accept_texts(source, records).source, "EXPECT_INLINE(f(), R\"(new)\" /* kept */ );\n");
}

/// From a failing comparison to a passing one, on a source of its own.
TEST(Accept, AFailureLeavesWhatAcceptNeeds) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "expect_accept_test";
  fs::create_directories(folder);
  const std::string path = (folder / "subject.cpp").string();
  std::ofstream(path) << "int x;\n  EXPECT_INLINE(f(), \"old\\nline\");\n";
  const std::string saved = std::exchange(expect::pending_folder(), folder.string());
  const auto result = expect::check(path.c_str(), 2, "new\nline", "old\nline");
  const auto same = expect::check(path.c_str(), 2, "old\nline", "old\nline");
  expect::pending_folder() = saved;
  EXPECT_TRUE(same);
  EXPECT_FALSE(result);
  EXPECT_INLINE(result.message(), R"(
      the text differs (- expected, + got):
      - old
      + new
        line
      if it is right, run: lamella accept
      )");
  std::string records;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".pending") records += read(entry.path().string());
  const AcceptedTexts out = accept_texts(read(path), parse_pending(records));
  fs::remove_all(folder);
  EXPECT_INLINE(out.source, R"x(
      int x;
        EXPECT_INLINE(f(), R"(
            new
            line)");
      )x");
}

/// A site that accept could not edit would be found only on the day it is needed.
TEST(Accept, EveryCallOfTheseTestsCanBeEdited) {
  int calls = 0;
  for (const auto& entry : std::filesystem::directory_iterator(LAMELLA_SOURCE_DIR "/expecttests")) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".cpp") continue;
    std::vector<std::pair<int, std::string>> seen;
    for (const InlineCall& c : inline_calls(read(path), "EXPECT_INLINE")) {
      ++calls;
      ASSERT_TRUE(c.expected) << path << ':' << c.first_line;
      const std::pair<int, std::string> site(c.first_line, unindent(*c.expected));
      EXPECT_EQ(std::count(seen.begin(), seen.end(), site), 0) << path << ':' << c.first_line;
      seen.push_back(site);
    }
  }
  EXPECT_GT(calls, 5);
}
}  // namespace
