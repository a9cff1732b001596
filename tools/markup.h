// Writing HTML and XML: escaped text, and elements that close themselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamella::tools {

/// Text for an element or a quoted attribute of HTML or XML 1.0. Characters that XML cannot hold in any
/// spelling (controls, surrogates, U+FFFE) and bytes that are not UTF-8 become \xNN, byte by byte.
std::string escaped(std::string_view text);

/// A document under construction. Elements nest; close() ends the innermost.
class Markup {
 public:
  struct Attribute {
    std::string_view name;
    std::string value;
  };
  using Attributes = std::vector<Attribute>;

  explicit Markup(std::string head) : out_(std::move(head)) {}
  Markup& open(std::string_view element, const Attributes& attributes = {});
  Markup& close();
  Markup& text(std::string_view text);
  /// Nothing is escaped: style sheets, scripts, and breaks between lines.
  Markup& raw(std::string_view text);
  /// open, text, close
  Markup& element(std::string_view element, std::string_view text, const Attributes& attributes = {});
  /// Without an end tag: <meta>
  Markup& single(std::string_view element, const Attributes& attributes);
  /// Closes what is open.
  std::string finish();

 private:
  void start(std::string_view element, const Attributes& attributes);

  std::string out_;
  std::vector<std::string> open_;
};

}  // namespace lamella::tools
