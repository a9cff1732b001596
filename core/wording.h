// Format strings, read by the compiler: how many values they take, and which of them name who refuses what.
#pragma once

#include <concepts>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

namespace lamella {

namespace detail {
consteval bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}
/// Not constexpr: what calls it does not compile, and the compiler says its name.
inline void the_text_has_another_number_of_holes_than_values() {}

/// A value of a text: written, and whether it was a text before.
struct Shown {
  std::string text;
  bool is_text = false;
};
template <class A> Shown shown(const A& a) {
  if constexpr (std::convertible_to<const A&, std::string_view>) {
    return {std::string(std::string_view(a)), true};
  } else {
    std::ostringstream out;
    out << std::boolalpha << a;
    return {std::move(out).str()};
  }
}
}  // namespace detail

/// NOTE: [wording] The house's errors are worded alike: "OP: ARGUMENT = GOT ...; expected ...". So a format
/// string itself tells its parts: what is before the first colon is the operator or function, a word or a
/// hole; a word or hole before " = " or " is " behind that, or in `argument "{}"`, is the argument.
class Wording {
 public:
  /// Of a word or a hole; length 0: there is none.
  struct Part {
    size_t begin = 0, length = 0;
    int hole = -1;  ///< the number of the hole that it is
  };
  std::string_view text;
  size_t holes = 0;
  Part op, argument;

  consteval explicit Wording(std::string_view t) : text(t) {
    for (size_t i = 0; i + 1 < t.size(); ++i)
      if (t[i] == '{' && t[i + 1] == '}') ++holes, ++i;
    op = part_at(0, 0);
    if (!followed_by(op, ": ")) op = {};
    const size_t at = op.length ? op.begin + op.length + 2 : 0;
    const int before = op.hole >= 0 ? 1 : 0;
    constexpr std::string_view kQuoted = "argument \"{}\"";
    if (t.substr(at, kQuoted.size()) == kQuoted) {
      argument = {at + kQuoted.size() - 3, 2, before};
      return;
    }
    argument = part_at(at, before);
    const bool about = followed_by(argument, " = ") || followed_by(argument, " is ");
    if (!op.length || !about || t.substr(argument.begin, argument.length) == "there") argument = {};
  }

 private:
  consteval Part part_at(size_t at, int hole) const {
    if (text.substr(at, 2) == "{}") return {at, 2, hole};
    size_t n = 0;
    while (at + n < text.size() && detail::is_word_char(text[at + n])) ++n;
    return {at, n, -1};
  }
  consteval bool followed_by(Part p, std::string_view what) const {
    return p.length > 0 && text.substr(p.begin + p.length, what.size()) == what;
  }
};

/// A format string for values of these types.
template <class... A> class FormatFor : public Wording {
 public:
  consteval FormatFor(const char* t) : Wording(t) {
    if (holes != sizeof...(A)) detail::the_text_has_another_number_of_holes_than_values();
  }
};
template <class... A> using FormatOf = FormatFor<std::type_identity_t<A>...>;

namespace detail {
std::string filled(const Wording& wording, std::initializer_list<Shown> values);
}

}  // namespace lamella
