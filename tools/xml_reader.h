// A strict reader of small XML documents: what the program writes is read back with it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::tools {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  ///< directly in it
  std::vector<XmlElement> children;

  /// Those below it, at any depth, in order.
  std::vector<const XmlElement*> all(std::string_view name) const;
  const std::string& operator[](const std::string& attribute) const;
};

/// The one element of a document, as XML 1.0 reads it: white space of attributes becomes blanks unless it is
/// written as a reference. Error value for what is not well-formed, holds a character that XML has not or
/// discourages, or is no UTF-8.
XmlElement read_xml(std::string_view document);

/// The next character of UTF-8, taken from the front; -1 where there is none.
int32_t take_utf8(std::string_view& text);
/// Whether XML 1.0 has it, and does not discourage it.
bool is_xml(int32_t character);

}  // namespace lamella::tools
