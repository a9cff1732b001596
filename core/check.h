// Errors: LAMELLA_CHECK is the caller's fault and names operator, argument, got, expected; LAMELLA_ASSERT is
// ours.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lamella {

enum class ErrorCode {
  Shape,
  DType,
  Device,
  DimOutOfRange,
  IndexOutOfRange,
  Value,
  Broadcast,
  Overlap,
  Overflow,
  Storage,
  Schema,
  UnknownOperator,
  NoKernel,
  NotDifferentiable,
  Level,
  LevelLimit,
  EscapedWrapper,
  MappedSize,
  Randomness,
  Undefined,
  OutOfMemory,
  Usage,
  Internal
};
std::string_view name(ErrorCode code);

/// Every failure of the library. what() is one sentence, then the live transforms, innermost first.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

namespace detail {
/// Set by dispatch: describes the live transforms; appended to every message.
extern std::string (*error_context)();
[[noreturn]] void raise(ErrorCode code, std::string text);
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

inline void format_rest(std::ostringstream& out, std::string_view text) { out << text; }
template <class A, class... Rest>
void format_rest(std::ostringstream& out, std::string_view text, const A& a, const Rest&... rest) {
  const size_t hole = text.find("{}");
  out << text.substr(0, hole);
  if (hole == std::string_view::npos) return;
  out << a;
  format_rest(out, text.substr(hole + 2), rest...);
}
}  // namespace detail

/// Replaces each {} by the next argument, written with operator<<.
template <class... A> std::string format(std::string_view text, const A&... a) {
  std::ostringstream out;
  out << std::boolalpha;
  detail::format_rest(out, text, a...);
  return std::move(out).str();
}

template <class... A>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorCode code, std::string_view text, const A&... a) {
  detail::raise(code, format(text, a...));
}

}  // namespace lamella

#define LAMELLA_CHECK(cond, code, ...)                          \
  do {                                                          \
    if (!(cond)) [[unlikely]]                                   \
      ::lamella::fail(::lamella::ErrorCode::code, __VA_ARGS__); \
  } while (0)

#define LAMELLA_ASSERT(cond)                                          \
  do {                                                                \
    if (!(cond)) [[unlikely]]                                         \
      ::lamella::detail::assertion_failed(#cond, __FILE__, __LINE__); \
  } while (0)
