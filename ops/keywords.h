// What aggregates of arguments by name are made of: sum(x, {.dim = {1}, .keepdim = true}).
#pragma once

#include <array>
#include <optional>

#include "lamella/ops/number.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [arguments by name] An operator whose arguments behind the tensors have defaults takes them by name,
/// too, from an aggregate with a member for each. Its first member is of this type, which nothing converts
/// to, so that a list without names, {1}, is never such an aggregate. {} could be either: the overload that
/// takes the aggregate is a template, and those stand back where conversions are as good.
/// (g++ 12 reads {.dim = {{}}} as {{{}}}, too: an empty list is {.dim = {}}.)
struct Keywords {
  explicit Keywords() = default;
};

/// A list of integers by name: owned, as an aggregate may outlive the list that it was written with.
class IntsOption {
 public:
  IntsOption() = default;
  template <std::same_as<std::nullopt_t> T> IntsOption(T) {}  ///< not of {}: then {{}} could be it
  template <class T>
  requires std::is_convertible_v<const T&, IntArg> IntsOption(const T& v) : value_(Dims(IntArg(v))) {}
  IntsOption(std::initializer_list<ListedInt> v) : value_(Dims(ListedInt::all(v))) {}
  operator OptionalInts() const { return value_ ? OptionalInts(*value_) : OptionalInts(); }
  operator IntArg() const { return value_ ? IntArg(*value_) : IntArg({}); }

 private:
  std::optional<Dims> value_;
};

}  // namespace lamella
LAMELLA_API_END
