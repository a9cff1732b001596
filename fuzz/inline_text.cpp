// Any text is a source: its tokens are in order, and accepting a new text for one of its calls changes that
// text alone. The first byte says which call, and how many bytes behind it are the new text.
#include "lamella/text/inline_text.h"

#include "target.h"

namespace lamella::fuzz {
namespace {
using namespace verify;

constexpr std::string_view kMacro = "EXPECT_INLINE";

void check_tokens(std::string_view source) {
  size_t end = 0;
  for (const Token& t : tokenise(source)) {
    if (t.begin < end || t.end <= t.begin || t.end > source.size()) finding("tokens overlap, or are empty");
    end = t.end;
    if (t.kind == TokenKind::String) (void)decode_literal(source.substr(t.begin, t.end - t.begin));
  }
}

void check_round_trip(std::string_view text) {
  const std::string literal = escaped_literal(text, "\n");
  std::string back;
  for (const Token& t : tokenise(literal))
    back += decode_literal(std::string_view(literal).substr(t.begin, t.end - t.begin)).value_or("?");
  if (back != text) finding("an escaped literal stands for another text");
}

void check_accept(const std::string& source, size_t which, const std::string& got) {
  const std::vector<InlineCall> calls = inline_calls(source, kMacro);
  if (calls.empty()) return;
  const InlineCall& call = calls[which % calls.size()];
  if (!call.expected) return;
  const PendingText record{"test", "file", call.last_line, source_hash(source), unindent(*call.expected),
                           got};
  if (parse_pending(str(record)).at(0).got != got) finding("a record does not survive writing");
  const AcceptedTexts once = accept_texts(source, std::span(&record, 1));
  if (!once.refused.at(0).empty()) {
    if (once.source != source) finding("refused, and the source changed");
    return;
  }
  const std::vector<InlineCall> after = inline_calls(once.source, kMacro);
  if (after.size() != calls.size()) finding("accepting changed the number of calls");
  if (unindent(after[which % calls.size()].expected.value_or("?")) != got)
    finding("the call does not hold the accepted text");
}

void run_inline_text(const uint8_t* data, size_t size) {
  if (size == 0) return;
  const size_t length = std::min<size_t>(data[0] / 16, size - 1);
  const std::string got(reinterpret_cast<const char*>(data) + 1, length);
  const std::string source(reinterpret_cast<const char*>(data) + 1 + length, size - 1 - length);
  answers([&] {
    check_tokens(source);
    check_round_trip(source);
    check_accept(source, data[0] % 16, got);
  });
}

[[maybe_unused]] const bool inline_text_added = add_target("inline_text", run_inline_text);
}  // namespace
}  // namespace lamella::fuzz
