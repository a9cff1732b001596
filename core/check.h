// Errors: LAMELLA_CHECK is the caller's fault and names operator, argument, got, expected; LAMELLA_ASSERT is
// ours.
#pragma once

#include <any>
#include <concepts>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "lamella/core/wording.h"

LAMELLA_API_BEGIN
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

/// Every failure of the library, as a value. what() is one sentence, "OP: TEXT", then the live transforms,
/// innermost first.
class Error : public std::runtime_error {
 public:
  struct Parts {
    std::string op;  ///< the operator or function that refuses; "" where it is not known
    std::string
        argument;      ///< its argument that the text is about, the first of several; "" where there is none
    std::string text;  ///< the sentence behind the colon
    std::string levels;    ///< "\n  under: vmap#2 (size 8) of grad#1", or ""
    std::any reason = {};  ///< for who asks why: of a type that names the refusal, as WrittenLater; or none
  };
  Error(ErrorCode code, const std::string& text) : Error(code, Parts{{}, {}, text, {}}) {}
  Error(ErrorCode code, Parts parts);
  ErrorCode code() const { return code_; }
  const std::string& op() const { return parts_->op; }
  const std::string& argument() const { return parts_->argument; }
  const std::string& text() const { return parts_->text; }
  const std::string& levels() const { return parts_->levels; }
  const std::any& reason() const { return parts_->reason; }
  /// The same refusal by another operator, which runs this one for its caller, and of its own argument, if
  /// any.
  Error by(std::string_view op, std::string_view argument) const;
  /// The same, of what the operator had run: its own name, if it has one, stays in the text.
  Error within(std::string_view op) const;
  /// With more to say behind it.
  Error noted(std::string_view more) const;

 private:
  ErrorCode code_;
  std::shared_ptr<const Parts> parts_;  ///< copies of an exception may not fail
};

namespace detail {
/// Set by dispatch: describes the live transforms; part of every error.
extern std::string (*error_context)();
[[noreturn]] void raise(ErrorCode code, Error::Parts parts);
[[noreturn]] void raise(ErrorCode code, const Wording& wording, std::initializer_list<Shown> shown,
                        std::any reason = {});
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace detail

/// Replaces each {} by the next argument, written with operator<<. Their counts are compared when it is
/// compiled.
template <class... A> std::string format(FormatOf<A...> text, const A&... a) {
  return detail::filled(text, {detail::shown(a)...});
}

template <class... A>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorCode code, FormatOf<A...> text, const A&... a) {
  detail::raise(code, text, {detail::shown(a)...});
}
/// Likewise, with a reason.
template <class R, class... A>
requires(!std::same_as<R, ErrorCode>)
    [[noreturn, gnu::cold, gnu::noinline]] void fail(const R& reason, ErrorCode code, FormatOf<A...> text,
                                                     const A&... a) {
  detail::raise(code, text, {detail::shown(a)...}, reason);
}

}  // namespace lamella
LAMELLA_API_END

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
