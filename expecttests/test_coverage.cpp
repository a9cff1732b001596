// Every refusal has its text: each constraint written in ops/ and transforms/ occurs in an expect test.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lamella/text/inline_text.h"

#include "expect.h"
#include "without_argument.h"

namespace {
using namespace lamella;
using namespace lamella::verify;
namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// All texts that the tests of this room expect.
std::string all_expected() {
  std::string out;
  for (const auto& entry : fs::directory_iterator(LAMELLA_SOURCE_DIR "/expecttests"))
    if (entry.path().extension() == ".cpp")
      for (const InlineCall& c : inline_calls(read(entry.path()), "EXPECT_INLINE"))
        out += unindent(c.expected.value_or("")) + "\n";
  return out;
}

/// The messages of a source's checks: the first string literal within each LAMELLA_CHECK(...) or fail(...).
std::vector<std::string> messages(const std::string& source) {
  std::vector<std::string> out;
  const std::vector<Token> tokens = tokenise(source);
  const auto text = [&](const Token& t) { return std::string_view(source).substr(t.begin, t.end - t.begin); };
  for (size_t k = 0; k + 1 < tokens.size(); ++k) {
    if ((text(tokens[k]) != "LAMELLA_CHECK" && text(tokens[k]) != "fail") || text(tokens[k + 1]) != "(")
      continue;
    std::string message;
    int depth = 0;
    for (size_t at = k + 1; at < tokens.size(); ++at) {
      depth += text(tokens[at]) == "(";
      depth -= text(tokens[at]) == ")";
      const bool is_text = tokens[at].kind == TokenKind::String;
      if (is_text && decode_literal(text(tokens[at]))->find(' ') != std::string::npos)
        message += *decode_literal(text(tokens[at]));
      else if (!message.empty() || depth == 0) break;
    }
    if (!message.empty()) out.push_back(message);
  }
  return out;
}

/// The longest part between {}: enough to tell one message from another.
std::string fixed_part(const std::string& message) {
  std::string longest;
  for (size_t at = 0; at <= message.size();) {
    const size_t end = std::min(message.find("{}", at), message.size());
    if (end - at > longest.size()) longest = message.substr(at, end - at);
    at = end + 2;
  }
  return longest;
}

/// What no call of a built-in operator can reach, and why.
const std::vector<std::string>& unreachable() {
  static const std::vector<std::string> kTexts = {
      "derivative(\"",                  // a rule that counts its values wrongly: when an operator is defined
      "\" is None; expected a tensor",  // frames built by hand; typed and boxed calls refuse earlier
      ": no batch rule, and it returns a list",  // lists come from composites alone
      "the definition refuses",                  // the composite does, in words of its own
  };
  return kTexts;
}

TEST(Coverage, EveryConstraintHasItsText) {
  const std::string expected = all_expected();
  int constraints = 0;
  std::string missing;
  for (const char* room : {"ops", "transforms"})
    for (const auto& entry : fs::directory_iterator(std::string(LAMELLA_SOURCE_DIR "/") + room)) {
      if (entry.path().extension() != ".cpp") continue;
      for (const std::string& message : messages(read(entry.path()))) {
        ++constraints;
        const std::string part = fixed_part(message);
        const bool excused =
            std::any_of(unreachable().begin(), unreachable().end(),
                        [&](const std::string& t) { return message.find(t) != std::string::npos; });
        if (!excused && expected.find(part) == std::string::npos)
          missing += entry.path().filename().string() + ": " + message + "\n";
      }
    }
  EXPECT_EQ(missing, "");
  EXPECT_GT(constraints, 100);
}

TEST(Coverage, EachReasonForNamingNoArgumentIsNeeded) {
  const std::string expected = all_expected();
  std::vector<std::string> lines;
  for (size_t at = 0, end; (end = expected.find('\n', at)) != std::string::npos; at = end + 1) {
    const size_t text = std::min(expected.find("] ", at) + 2, end);
    lines.push_back(expected.substr(text, end - text));
  }
  for (const expect::WithoutArgument& w : expect::texts_without_argument())
    EXPECT_TRUE(std::ranges::any_of(lines, [&](const auto& line) { return expect::fits(w.text, line); }))
        << "no refusal has this text: " << w.text;
}

TEST(Coverage, SeesAMessageThatHasNoText) {
  const std::string source =
      "void f() { LAMELLA_CHECK(x.rank() == (2), Shape, \"{}: planted \"\n  \"{} text\", a); }";
  ASSERT_EQ(messages(source).size(), 1u);
  EXPECT_EQ(fixed_part(messages(source)[0]), ": planted ");
}
}  // namespace
