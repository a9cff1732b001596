// Texts that tests hold in their own sources or in files: reading, comparing, replacing (`lamella accept`).
#pragma once

#include <span>

#include "lamella/text/source_text.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// NOTE: [blocks] A literal that begins with a newline is a block: the indentation of its last line, if that
/// is blank, else the least of all lines, is taken off each line; a line that ends in a backslash goes on in
/// the next one; a blank last line is the final newline. If the first line is a backslash alone, all behind
/// it is taken as it is. Any other literal means itself.
std::string unindent(std::string_view literal);

/// A literal whose unindent() is `text`, for any bytes, as it would be written in a source whose statement is
/// indented by `indent` blanks and has come to `column`: R"(short)", a block, or escapes. With `crlf`, lines
/// of the source end so.
std::string inline_literal(std::string_view text, size_t indent, size_t column, bool crlf = false);

/// Lines that differ, "-" expected and "+" got, with three equal lines around. Control characters are shown.
std::string line_diff(std::string_view expected, std::string_view got);

/// A call NAME(..., "text") whose last argument is made of string literals.
struct InlineCall {
  int first_line, last_line;
  size_t indent;                        ///< blanks before the first token of its line
  std::vector<Token> literals;          ///< to be concatenated
  std::optional<std::string> expected;  ///< none where decode_literal() has none
};
std::vector<InlineCall> inline_calls(std::string_view source, std::string_view macro);

/// A text that differed: what a test leaves behind, and what accept applies.
struct PendingText {
  std::string test, file;
  int line = 0;              ///< of the call in the source; 0: the text is the whole file
  uint64_t source_hash = 0;  ///< of the file when the test ran
  std::string expected, got;
};
uint64_t source_hash(std::string_view text);

/// The records as bytes, and back. Error schema for anything else.
std::string str(const PendingText& p);
std::vector<PendingText> parse_pending(std::string_view text);

/// What became of each record, in their order: empty if it was applied, else the reason.
struct AcceptedTexts {
  std::string source;  ///< of a whole file: empty if there should be none
  std::vector<std::string> refused;
};
/// Replaces literals bottom-up; all other bytes stay. Refused: records of another source than this one, of a
/// call that is not there, is there twice or is not readable, and records of one call that disagree. Of a
/// whole file `got` takes the place; a file that is not there has an empty source.
AcceptedTexts accept_texts(std::string_view source, std::span<const PendingText> records,
                           std::string_view macro = "EXPECT_INLINE");

}  // namespace lamella::verify
LAMELLA_API_END
