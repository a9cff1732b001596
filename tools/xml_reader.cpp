// By the grammar of XML 1.0, as far as the program writes it: no document types, sections or instructions.
#include "xml_reader.h"

#include <algorithm>
#include <cctype>

#include "lamella/core/check.h"

namespace lamella::tools {

std::vector<const XmlElement*> XmlElement::all(std::string_view wanted) const {
  std::vector<const XmlElement*> out;
  for (const XmlElement& child : children) {
    if (child.name == wanted) out.push_back(&child);
    for (const XmlElement* below : child.all(wanted)) out.push_back(below);
  }
  return out;
}

const std::string& XmlElement::operator[](const std::string& attribute) const {
  static const std::string none;
  const auto at = attributes.find(attribute);
  return at == attributes.end() ? none : at->second;
}

int32_t take_utf8(std::string_view& text) {
  static constexpr int32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  if (text.empty()) return -1;
  const int first = uint8_t(text[0]);
  const int more = first < 0x80   ? 0
                   : first < 0xC0 ? -1
                   : first < 0xE0 ? 1
                   : first < 0xF0 ? 2
                   : first < 0xF8 ? 3
                                  : -1;
  if (more < 0 || text.size() <= size_t(more)) return -1;
  int32_t c = more == 0 ? first : first & (0x3F >> more);
  for (int k = 1; k <= more; ++k) {
    const int next = uint8_t(text[size_t(k)]);
    if (next / 64 != 2) return -1;
    c = c * 64 + next % 64;
  }
  if (c < kLeast[more] || c > 0x10FFFF || (0xD800 <= c && c <= 0xDFFF)) return -1;
  text.remove_prefix(size_t(more) + 1);
  return c;
}

bool is_xml(int32_t c) {
  if (c == '\t' || c == '\n') return true;
  return c >= 0x20 && !(0x7F <= c && c <= 0x9F) && c != 0xFFFE && c != 0xFFFF;
}

namespace {
class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : rest_(text), size_(text.size()) {}

  XmlElement document() {
    if (rest_.starts_with("<?xml ")) rest_.remove_prefix(std::min(rest_.find("?>") + 2, rest_.size()));
    skip();
    expect("<");
    XmlElement out = element();
    skip();
    if (!rest_.empty()) refuse("nothing behind the document's element");
    return out;
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) {
    fail(ErrorCode::Value, "XML: got \"{}\" at byte {}, expected {}", rest_.substr(0, 30),
         size_ - rest_.size(), expected);
  }
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void expect(std::string_view text) {
    if (!take(text)) refuse(text);
  }
  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size())); }
  std::string name() {
    size_t n = 0;
    while (n < rest_.size() && (std::isalnum(uint8_t(rest_[n])) || rest_[n] == '-')) ++n;
    if (n == 0) refuse("a name");
    const std::string out(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return out;
  }
  char reference() {
    static constexpr std::pair<std::string_view, char> kKnown[] = {
        {"&amp;", '&'},  {"&lt;", '<'},   {"&gt;", '>'}, {"&quot;", '"'},
        {"&#39;", '\''}, {"&#10;", '\n'}, {"&#9;", '\t'}};
    for (const auto& [text, c] : kKnown)
      if (take(text)) return c;
    refuse("a reference");
  }
  /// Text up to one of `ends`.
  std::string text(std::string_view ends, bool attribute) {
    std::string out;
    while (!rest_.empty() && ends.find(rest_[0]) == std::string_view::npos) {
      if (rest_[0] == '&') {
        out += reference();
        continue;
      }
      const std::string_view before = rest_;
      std::string_view after = rest_;
      const int32_t c = take_utf8(after);
      if (c < 0 || !is_xml(c)) refuse("a character of XML");
      rest_ = after;
      if (attribute && (c == '\n' || c == '\t')) out += ' ';
      else out += before.substr(0, before.size() - after.size());
    }
    return out;
  }
  XmlElement element() {
    XmlElement out;
    out.name = name();
    while (!take(">")) {
      expect(" ");
      const std::string key = name();
      expect("=\"");
      if (!out.attributes.emplace(key, text("\"<", true)).second) refuse("each attribute once");
      expect("\"");
    }
    for (;;) {
      out.text += text("<", false);
      expect("<");
      if (take("/")) break;
      out.children.push_back(element());
    }
    expect(out.name);
    expect(">");
    return out;
  }

  std::string_view rest_;
  size_t size_;
};
}  // namespace

XmlElement read_xml(std::string_view document) { return XmlReader(document).document(); }

}  // namespace lamella::tools
