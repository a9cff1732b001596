// Escaping, and a stack of open elements.
#include "markup.h"

#include <cstdint>
#include <cstdio>

namespace lamella::tools {

namespace {
/// Bytes of the character that begins at `at` when XML 1.0 may hold it, else 0.
size_t character_at(std::string_view s, size_t at) {
  const auto byte = [&](size_t k) { return at + k < s.size() ? uint8_t(s[at + k]) : uint8_t(0); };
  const uint32_t first = byte(0);
  if (first < 0x80) return (first >= 0x20 && first != 0x7F) || first == '\t' || first == '\n' ? 1 : 0;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  uint32_t c = first & (0x7Fu >> length);
  for (size_t k = 1; k < length; ++k) {
    if ((byte(k) & 0xC0) != 0x80) return 0;
    c = (c << 6) | (byte(k) & 0x3Fu);
  }
  const bool too_long = (length == 3 && c < 0x800) || (length == 4 && c < 0x10000);
  const bool forbidden = (c >= 0xD800 && c < 0xE000) || c > 0x10FFFF || c == 0xFFFE || c == 0xFFFF ||
                         (c >= 0x7F && c < 0xA0);  // the last are allowed and discouraged
  return too_long || forbidden ? 0 : length;
}
}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_at(text, at);
    if (length == 0) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", unsigned(uint8_t(text[at++])));
      out += hex;
      continue;
    }
    const std::string_view c = text.substr(at, length);
    at += length;
    if (c == "&") out += "&amp;";
    else if (c == "<") out += "&lt;";
    else if (c == ">") out += "&gt;";
    else if (c == "\"") out += "&quot;";
    else if (c == "'") out += "&#39;";
    else out += c;
  }
  return out;
}

void Markup::start(std::string_view element, const Attributes& attributes) {
  out_.append("<").append(element);
  for (const Attribute& a : attributes) {
    out_.append(" ").append(a.name).append("=\"");
    for (const char c : escaped(a.value))  // a reader of XML turns other white space into blanks
      if (c == '\n') out_ += "&#10;";
      else if (c == '\t') out_ += "&#9;";
      else out_ += c;
    out_ += '"';
  }
}

Markup& Markup::open(std::string_view element, const Attributes& attributes) {
  start(element, attributes);
  out_ += '>';
  open_.emplace_back(element);
  return *this;
}

Markup& Markup::close() {
  out_ += "</" + open_.back() + ">";
  open_.pop_back();
  return *this;
}

Markup& Markup::text(std::string_view text) {
  out_ += escaped(text);
  return *this;
}

Markup& Markup::raw(std::string_view text) {
  out_ += text;
  return *this;
}

Markup& Markup::element(std::string_view element, std::string_view text, const Attributes& attributes) {
  return open(element, attributes).text(text).close();
}

Markup& Markup::single(std::string_view element, const Attributes& attributes) {
  start(element, attributes);
  out_ += '>';
  return *this;
}

std::string Markup::finish() {
  while (!open_.empty()) close();
  out_ += '\n';
  return std::move(out_);
}

}  // namespace lamella::tools
