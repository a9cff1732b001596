// The tokeniser: phases 2 and 3 of translation, as far as finding a macro's string argument needs them.
#include "lamella/text/source_text.h"

#include <algorithm>

namespace lamella::verify {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\f' || c == '\v' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || uint8_t(c) >= 0x80;
}
bool continues_name(char c) { return starts_name(c) || is_digit(c); }

/// Length of a line splice at `at`, or 0. Blanks between backslash and newline are allowed, as GCC and Clang
/// do.
size_t splice_at(std::string_view text, size_t at) {
  if (at >= text.size() || text[at] != '\\') return 0;
  size_t end = at + 1;
  while (end < text.size() && is_blank(text[end])) ++end;
  return end < text.size() && text[end] == '\n' ? end + 1 - at : 0;
}

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}
  bool done() {
    while (const size_t n = splice_at(text_, at_)) at_ += n;
    return at_ >= text_.size();
  }
  /// The next character behind splices; NUL at the end.
  char peek() { return done() ? '\0' : text_[at_]; }
  /// The one after it.
  char peek2() {
    if (done()) return '\0';
    Cursor next = *this;
    ++next.at_;
    return next.peek();
  }
  char take() { return done() ? '\0' : text_[at_++]; }
  size_t at() const { return at_; }
  void jump(size_t to) { at_ = std::min(to, text_.size()); }
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

void skip_block_comment(Cursor& in) {
  in.take();
  in.take();
  while (!in.done()) {
    if (in.take() == '*' && in.peek() == '/') {
      in.take();
      return;
    }
  }
}

/// To the newline that ends the logical line; block comments may hold newlines.
void skip_line(Cursor& in) {
  while (!in.done() && in.peek() != '\n') {
    if (in.peek() == '/' && in.peek2() == '*') skip_block_comment(in);
    else if (in.peek() == '/' && in.peek2() == '/') {
      while (!in.done() && in.peek() != '\n') in.take();
    } else in.take();
  }
}

/// Behind the opening quote of an ordinary literal.
void skip_quoted(Cursor& in, char quote) {
  while (!in.done() && in.peek() != '\n') {
    const char c = in.take();
    if (c == quote) return;
    if (c == '\\' && !in.done() && in.peek() != '\n') in.take();
  }
}

/// Behind R" : bytes count as they are. Where the contents begin and end, and the end of the literal.
struct RawSpan {
  size_t begin, end, after;
};
std::optional<RawSpan> raw_span(std::string_view text, size_t at) {
  const size_t open = text.find('(', at);
  if (open == std::string_view::npos || open - at > 16) return std::nullopt;
  const std::string_view delimiter = text.substr(at, open - at);
  if (delimiter.find_first_of(" )\\\t\v\f\n\r\"") != std::string_view::npos) return std::nullopt;
  const size_t close = text.find(")" + std::string(delimiter) + "\"", open + 1);
  if (close == std::string_view::npos) return std::nullopt;
  return RawSpan{open + 1, close, close + delimiter.size() + 2};
}

/// "R" alone, "u8R", ...: the identifier with its splices removed.
std::string name_of(std::string_view text, size_t begin, size_t end) {
  std::string out;
  Cursor in(text.substr(0, end));
  in.jump(begin);
  while (!in.done()) out += in.take();
  return out;
}

bool is_one_of(std::string_view s, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), s) != names.end();
}

void skip_name(Cursor& in) {
  while (!in.done() && continues_name(in.peek())) in.take();
}

void skip_number(Cursor& in) {
  while (!in.done()) {
    const char c = in.peek(), next = in.peek2();
    const bool exponent = c == 'e' || c == 'E' || c == 'p' || c == 'P';
    if (exponent && (next == '+' || next == '-')) in.take();
    else if (c == '\'' && continues_name(next)) in.take();  // 1'000
    else if (!continues_name(c) && c != '.') return;
    in.take();
  }
}

class Tokeniser {
 public:
  explicit Tokeniser(std::string_view text) : in_(text) {}

  std::vector<Token> run() {
    while (!in_.done()) step();
    return std::move(tokens_);
  }

 private:
  void step() {
    const char c = in_.peek(), next = in_.peek2();
    if (c == '\n') {
      in_.take();
      fresh_line_ = true;
      directive_ = after_hash_ = false;
    } else if (is_blank(c)) in_.take();
    else if (c == '/' && next == '/') {
      while (!in_.done() && in_.peek() != '\n') in_.take();
    } else if (c == '/' && next == '*') skip_block_comment(in_);
    else token(c, next);
  }

  void token(char c, char next) {
    const size_t begin = in_.at();
    const bool hash = fresh_line_ && (c == '#' || (c == '%' && next == ':'));
    if (hash) directive_ = true;
    else if (after_hash_ && starts_name(c)) return directive_name();
    else if (after_hash_ && c == ':') return void(in_.take());  // the rest of %:
    after_hash_ = hash;
    fresh_line_ = false;
    if (starts_name(c)) name(begin);
    else if (is_digit(c) || (c == '.' && is_digit(next))) {
      skip_number(in_);
      push(TokenKind::Number, begin);
    } else if (c == '"' || c == '\'') quoted(begin, c);
    else {
      in_.take();
      push(TokenKind::Punctuator, begin);
    }
  }

  /// The rest of these lines is no C++: <it's.h>, #error don't.
  void directive_name() {
    after_hash_ = false;
    const size_t begin = in_.at();
    skip_name(in_);
    push(TokenKind::Identifier, begin);
    const std::string what = name_of(in_.text(), begin, in_.at());
    if (is_one_of(what, {"include", "include_next", "import", "error", "warning", "pragma"})) skip_line(in_);
  }

  void name(size_t begin) {
    skip_name(in_);
    const char quote = in_.peek();
    if (quote == '"' || quote == '\'') {
      const std::string prefix = name_of(in_.text(), begin, in_.at());
      if (quote == '"' && is_one_of(prefix, {"R", "u8R", "uR", "UR", "LR"})) return raw(begin);
      if (is_one_of(prefix, {"u8", "u", "U", "L"})) return quoted(begin, quote);
    }
    push(TokenKind::Identifier, begin);
  }

  void quoted(size_t begin, char quote) {
    in_.take();
    skip_quoted(in_, quote);
    skip_name(in_);  // a user's suffix
    push(quote == '"' ? TokenKind::String : TokenKind::Character, begin);
  }

  void raw(size_t begin) {
    in_.take();
    const auto span = raw_span(in_.text(), in_.at());
    in_.jump(span ? span->after : in_.text().size());
    skip_name(in_);
    push(TokenKind::String, begin);
  }

  void push(TokenKind kind, size_t begin) {
    const std::string_view passed = in_.text().substr(counted_, begin - counted_);
    line_ += int(std::count(passed.begin(), passed.end(), '\n'));
    counted_ = begin;
    tokens_.push_back({kind, begin, in_.at(), line_, directive_});
  }

  Cursor in_;
  std::vector<Token> tokens_;
  bool fresh_line_ = true, directive_ = false, after_hash_ = false;
  size_t counted_ = 0;
  int line_ = 1;
};

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += char(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr uint8_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out += char(kLead[more] | (c >> (6 * more)));
  for (int k = more - 1; k >= 0; --k) out += char(0x80 | ((c >> (6 * k)) & 0x3F));
}

int digit_value(char c, int base) {
  const int v = is_digit(c)            ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 99;
  return v < base ? v : -1;
}

/// At most `most` digits; none when there is not one, or not exactly `most` where `exact`.
std::optional<uint32_t> digits(Cursor& in, int base, int most, bool exact) {
  uint64_t value = 0;
  int n = 0;
  for (; n < most && !in.done() && digit_value(in.peek(), base) >= 0; ++n)
    value = std::min<uint64_t>(value * uint64_t(base) + uint64_t(digit_value(in.take(), base)), UINT32_MAX);
  if (n == 0 || (exact && n != most)) return std::nullopt;
  return uint32_t(value);
}

/// Behind a backslash.
bool decode_escape(Cursor& in, std::string& out) {
  constexpr std::string_view kNames = "ntrabfv'\"?\\", kValues = "\n\t\r\a\b\f\v'\"?\\";
  const char c = in.peek();
  std::optional<uint32_t> value;
  if (const size_t at = kNames.find(c); at != std::string_view::npos && c != '\0') {
    in.take();
    out += kValues[at];
    return true;
  }
  if (c >= '0' && c <= '7') value = digits(in, 8, 3, false);
  else if (c == 'x') {
    in.take();
    value = digits(in, 16, 1 << 20, false);
  } else if (c == 'u' || c == 'U') {
    in.take();
    value = digits(in, 16, c == 'u' ? 4 : 8, true);
    if (!value || *value > 0x10FFFF || (*value >= 0xD800 && *value < 0xE000)) return false;
    append_utf8(out, *value);
    return true;
  }
  if (!value || *value > 0xFF) return false;
  out += char(*value);
  return true;
}

std::optional<std::string> decode_raw(std::string_view token, size_t at) {
  const auto span = raw_span(token, at);
  if (!span || span->after != token.size()) return std::nullopt;
  std::string out;
  for (size_t i = span->begin; i < span->end; ++i) {
    if (token[i] != '\r') out += token[i];
    else if (token[i + 1] != '\n') return std::nullopt;
  }
  return out;
}

/// One UTF-8 character that an editor shows as it is; its length, or 0.
size_t plain_character(std::string_view text, size_t at) {
  const uint8_t c = uint8_t(text[at]);
  if (c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7F)) return 1;
  const size_t n = c >= 0xF0 && c <= 0xF4 ? 4 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xC2 && c < 0xE0 ? 2 : 0;
  if (n == 0 || at + n > text.size()) return 0;
  uint32_t value = c & (0xFFu >> (n + 1));
  for (size_t k = 1; k < n; ++k) {
    if ((uint8_t(text[at + k]) & 0xC0) != 0x80) return 0;
    value = value << 6 | (uint8_t(text[at + k]) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid = value >= kLeast[n] && value <= 0x10FFFF && !(value >= 0xD800 && value < 0xE000);
  const bool visible = value >= 0xA0 && value != 0xFEFF && !(value >= 0x200B && value <= 0x200F) &&
                       !(value >= 0x2028 && value <= 0x202E) && !(value >= 0x2066 && value <= 0x2069);
  return valid && visible ? n : 0;
}

std::string escaped(char c) {
  switch (c) {
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '\r': return "\\r";
    case '"': return "\\\"";
    case '\\': return "\\\\";
    default: break;
  }
  const uint8_t b = uint8_t(c);
  if (b >= 0x20 && b < 0x7F) return {c};
  return {'\\', char('0' + (b >> 6)), char('0' + (b >> 3 & 7)), char('0' + (b & 7))};
}

}  // namespace

std::vector<Token> tokenise(std::string_view text) { return Tokeniser(text).run(); }

std::optional<std::string> decode_literal(std::string_view token) {
  Cursor in(token);
  if (in.peek() == 'R' && in.peek2() == '"') {
    in.take();
    in.take();
    return decode_raw(token, in.at());
  }
  if (in.take() != '"') return std::nullopt;
  std::string out;
  while (!in.done() && in.peek() != '\n') {
    const char c = in.take();
    if (c == '"') return in.done() ? std::optional(out) : std::nullopt;
    if (c != '\\') out += c;
    else if (!decode_escape(in, out)) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string> raw_literal(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t n = plain_character(text, at);
    if (n == 0) return std::nullopt;
    at += n;
  }
  std::string delimiter;
  while (text.find(")" + delimiter + "\"") != std::string_view::npos) {
    if (delimiter.size() == 16) return std::nullopt;
    delimiter += 'x';
  }
  return "R\"" + delimiter + "(" + std::string(text) + ")" + delimiter + "\"";
}

std::string escaped_literal(std::string_view text, std::string_view between) {
  constexpr size_t kColumns = 80;
  std::string out, piece;
  const auto flush = [&] {
    out += std::string(between) + "\"" + piece + "\"";
    piece.clear();
  };
  for (const char c : text) {
    piece += escaped(c);
    if (c == '\n' || piece.size() >= kColumns) flush();
  }
  if (!piece.empty() || out.empty()) flush();
  return out;
}

}  // namespace lamella::verify
