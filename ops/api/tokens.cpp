// Words of a preprocessed file: a scanner that knows literals, and takes each other mark as it comes.
#include "tokens.h"

#include <algorithm>
#include <cctype>

namespace lamella::api {

namespace {
/// The lines between a marker `# 12 "file"` that names `file` and the next marker.
std::string own_lines(std::string_view text, std::string_view file) {
  std::string out;
  bool ours = false;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (!line.starts_with("# ")) {
      if (ours) (out += line) += '\n';
      continue;
    }
    const size_t open = line.find('"'), close = line.rfind('"');
    if (open != line.npos) ours = line.substr(open + 1, close - open - 1) == file;
  }
  return out;
}

bool is_word(char c) { return std::isalnum(uint8_t(c)) || c == '_'; }

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool next(Token& out) {
    while (at_ < text_.size() && std::isspace(uint8_t(text_[at_]))) ++at_;
    if (at_ == text_.size()) return false;
    const char c = text_[at_];
    if (c == '"') out = {Token::Text, quoted('"')};
    else if (c == '\'') out = {Token::Other, quoted('\'')};
    else if (std::isdigit(uint8_t(c))) out = {Token::Number, run(true)};
    else if (is_word(c)) word(out);
    else out = {Token::Other, std::string(text_.substr(at_++, 1))};
    return true;
  }

 private:
  /// A word, or the literal that it is the prefix of: R"(...)", u8"...".
  void word(Token& out) {
    out = {Token::Word, run(false)};
    if (at_ == text_.size() || text_[at_] != '"') return;
    out = {Token::Text, out.text.back() == 'R' ? raw() : quoted('"')};
  }
  std::string run(bool number) {
    const size_t start = at_++;
    while (at_ < text_.size() &&
           (is_word(text_[at_]) || (number && (text_[at_] == '.' || text_[at_] == '\''))))
      ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  std::string quoted(char quote) {
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] != '\\' || at_ + 1 == text_.size()) {
        out += text_[at_];
        continue;
      }
      const char c = text_[++at_];
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
    at_ += at_ < text_.size();
    return out;
  }
  std::string raw() {
    const size_t open = std::min(text_.find('(', at_), text_.size());
    const std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const size_t begin = std::min(open + 1, text_.size()),
                 end = std::min(text_.find(close, begin), text_.size());
    at_ = std::min(end + close.size(), text_.size());
    return std::string(text_.substr(begin, end - begin));
  }

  std::string_view text_;
  size_t at_ = 0;
};
}  // namespace

std::vector<Token> tokens_of(std::string_view preprocessed, std::string_view file) {
  const std::string lines = own_lines(preprocessed, file);
  Scanner in(lines);
  std::vector<Token> out;
  for (Token t; in.next(t);) out.push_back(t);
  return out;
}

}  // namespace lamella::api
