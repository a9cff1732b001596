// What aggregates of arguments by name are made of: sum(x, {.dim = {1}, .keepdim = true}).
#pragma once

#include <array>
#include <optional>

#include "lamella/ops/number.h"

namespace lamella {

/// NOTE: [arguments by name] An operator whose arguments behind the tensors have defaults takes them by name,
/// too, from an aggregate with a member for each. Its first member is of this type, which nothing converts
/// to, so that a list without names, {1}, is never such an aggregate. {} could be either: the overload that
/// takes the aggregate is a template, and those stand back where conversions are as good.
struct Keywords {
  explicit Keywords() = default;
};

/// A list of integers by name: owned, as an aggregate may outlive the list that it was written with.
class IntsOption {
 public:
  IntsOption() = default;
  IntsOption(std::nullopt_t) {}
  IntsOption(Ints v) : value_(Dims(v)) {}
  IntsOption(const Dims& v) : value_(v) {}
  IntsOption(const std::vector<int64_t>& v) : value_(Dims(Ints(v))) {}
  IntsOption(std::initializer_list<int64_t> v) : value_(Dims(v)) {}
  operator OptionalInts() const { return value_ ? OptionalInts(*value_) : OptionalInts(); }
  operator IntArg() const { return value_ ? IntArg(*value_) : IntArg({}); }

 private:
  std::optional<Dims> value_;
};

}  // namespace lamella
