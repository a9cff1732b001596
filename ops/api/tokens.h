// Words of a C++ file as its compiler's preprocessor leaves it: no comments, conditions decided.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamella::api {

struct Token {
  enum Kind : uint8_t { Word, Number, Text, Other } kind;
  std::string text;  ///< of a Text: what it says, without quotes and escapes
  bool is(std::string_view other) const { return kind == Other && text == other; }
};

/// Those that stand in `file` itself, as the line markers of `preprocessed` say. Total on every input.
std::vector<Token> tokens_of(std::string_view preprocessed, std::string_view file);

}  // namespace lamella::api
