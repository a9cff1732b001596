// Refusals that name no argument, and why.
#pragma once

#include <string_view>
#include <vector>

namespace lamella::expect {

struct WithoutArgument {
  std::string_view text;  ///< "OP: TEXT" as `refused` shows it, any text in the place of *
  std::string_view reason;
};
const std::vector<WithoutArgument>& texts_without_argument();

/// Whether `text` is a form of `pattern`, in which * stands for any text.
bool fits(std::string_view pattern, std::string_view text);

}  // namespace lamella::expect
