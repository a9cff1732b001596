// Functions that somebody is handed: an empty one is refused where it is handed over.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

namespace detail {
[[noreturn, gnu::cold]] void refuse_empty_function(std::string_view who, std::string_view argument);
template <class F>
concept MayBeEmpty = std::is_pointer_v<F> || requires(const F& f) {
  f.operator bool();
};
}  // namespace detail

/// `f`, which `who` was given as `argument`. Error usage when nothing can be called: std::bad_function_call
/// would come later, from inside of the library, and name nobody.
template <class F> F&& given(F&& f, std::string_view who, std::string_view argument = "f") {
  if constexpr (detail::MayBeEmpty<std::remove_cvref_t<F>>)
    if (!f) [[unlikely]]
      detail::refuse_empty_function(who, argument);
  return std::forward<F>(f);
}

}  // namespace lamella
LAMELLA_API_END
