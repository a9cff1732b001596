// Format strings, read by the compiler: how many values they take, and which of them name who refuses what.
#pragma once

#include <concepts>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

#include "lamella/core/export.h"

/// What only compilers run. Clang before 16 dies of constructors that are consteval: there it is constexpr,
/// and what such a function would refuse GCC and newer ones refuse.
#if defined(__clang__) && __clang_major__ < 16
#define LAMELLA_CONSTEVAL constexpr
#else
#define LAMELLA_CONSTEVAL consteval
#endif

LAMELLA_API_BEGIN
namespace lamella {

/// A value of a text that says which argument the text is about, where it is not the text's first word.
struct Argument {
  std::string name;
  std::string shown = {};  ///< what stands in the text, if not the name
};

namespace detail {
LAMELLA_CONSTEVAL bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}
LAMELLA_CONSTEVAL bool is_any_of(std::string_view word, std::initializer_list<std::string_view> words) {
  for (const std::string_view w : words)
    if (w == word) return true;
  return false;
}
/// Not constexpr: what calls it does not compile, and the compiler says its name.
inline void the_text_has_another_number_of_holes_than_values() {}

/// A value of a text: written, the argument that it names, and whether it was a text before.
struct Shown {
  std::string text, argument = {};
  bool is_text = false;
};
template <class A> Shown shown(const A& a) {
  if constexpr (std::same_as<A, Argument>) {
    return {a.shown.empty() ? a.name : a.shown, a.name};
  } else if constexpr (std::convertible_to<const A&, std::string_view>) {
    return {std::string(std::string_view(a)), {}, true};
  } else {
    std::ostringstream out;
    out << std::boolalpha << a;
    return {std::move(out).str()};
  }
}
}  // namespace detail

/// NOTE: [wording] The house's errors are worded alike: "OP: ARGUMENT = GOT ...; expected ...". So a format
/// string itself tells its parts: what is before the first colon is the operator or function, a word or a
/// hole; kernels, which do not know who runs them, leave it out. Behind it a word or hole of which something
/// is said (" = ", " is ", " has ", ...) is the argument, as are `argument "{}"`, an element `tensors[{}]`
/// and `input {}` of functions whose arguments have numbers. Where it stands elsewhere the value is an
/// Argument. Of several, the first.
class Wording {
 public:
  /// Of a word, a hole, or a word and a hole; length 0: there is none.
  struct Part {
    size_t begin = 0, length = 0;
    int hole = -1;  ///< the number of the hole that is in it
  };
  std::string_view text;
  size_t holes = 0;
  Part op, argument;

  LAMELLA_CONSTEVAL explicit Wording(std::string_view t) : text(t) {
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
    const std::string_view word = t.substr(argument.begin, argument.length);
    const bool counted = detail::is_any_of(word, {"argument", "input", "primal", "tangent", "cotangent"});
    Part whole = argument;
    if (argument.hole < 0 && followed_by(argument, counted ? " {}" : "[{}]")) {
      whole.length += counted ? 3 : 4;
      if (counted) argument = {whole.begin, whole.length, before};
    }
    if (!something_is_said_of(whole) || detail::is_any_of(word, {"there", "it", "its", "the"})) argument = {};
  }

 private:
  LAMELLA_CONSTEVAL bool something_is_said_of(Part p) const {
    for (const std::string_view said : {" = ", " is ", " are ", " has ", " have ", " holds ", ": ", " (",
                                        " and ", " names ", " for ", " was "})
      if (followed_by(p, said)) return true;
    return false;
  }
  LAMELLA_CONSTEVAL Part part_at(size_t at, int hole) const {
    if (text.substr(at, 2) == "{}") return {at, 2, hole};
    size_t n = 0;
    for (; at + n < text.size(); ++n)
      if (text.substr(at + n, 2) == "::") ++n;
      else if (!detail::is_word_char(text[at + n])) break;
    return {at, n, -1};
  }
  LAMELLA_CONSTEVAL bool followed_by(Part p, std::string_view what) const {
    return p.length > 0 && text.substr(p.begin + p.length, what.size()) == what;
  }
};

/// A format string for values of these types.
template <class... A> class FormatFor : public Wording {
 public:
  LAMELLA_CONSTEVAL FormatFor(const char* t) : Wording(t) {
    if (holes != sizeof...(A)) detail::the_text_has_another_number_of_holes_than_values();
  }
};
template <class... A> using FormatOf = FormatFor<std::type_identity_t<A>...>;

namespace detail {
std::string filled(const Wording& wording, std::initializer_list<Shown> values);
}

}  // namespace lamella
LAMELLA_API_END
