// C++ text as tokens, and string literals in both directions: what `lamella accept` edits sources with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

enum class TokenKind : uint8_t { Identifier, Number, String, Character, Punctuator };

struct Token {
  TokenKind kind;
  size_t begin, end;  ///< bytes of the text; prefixes and suffixes of literals included
  int line;           ///< of its first byte, from 1
  bool in_directive;  ///< belongs to a #define, #if, ...
};

/// Comments and blanks are left out; line splices are seen through, as a compiler does. Total: what is not
/// terminated ends with its line (raw strings and comments: with the text).
std::vector<Token> tokenise(std::string_view text);

/// The bytes a literal stands for: ordinary with all escapes, or raw with any delimiter. None for wide and
/// suffixed ones, for bytes above \xff, and where compilers disagree (a lone CR in a raw string).
std::optional<std::string> decode_literal(std::string_view token);

/// R"(text)" with the shortest delimiter that does not occur in it; none where a raw string could not be read
/// (control characters, invalid UTF-8, characters that change the order of others).
std::optional<std::string> raw_literal(std::string_view text);
/// "text" with escapes, for any bytes: a piece a line and at most about 80 columns, each behind `between`.
std::string escaped_literal(std::string_view text, std::string_view between);

}  // namespace lamella::verify
LAMELLA_API_END
