// One typed function: an operator or one of its forms, as C++.
#pragma once

#include "rows.h"

namespace lamella::api {

enum class Form : uint8_t { Functional, InPlace, Out };

struct Function {
  const Row* row;
  Form form;
  Schema schema;  ///< of this form, as the table derives it
};
/// The operator, then its forms.
std::vector<Function> functions_of(const Row& row);

/// "Tensor sum(const Tensor& x, OptionalInts dim = {}, bool keepdim = false)", without defaults in a body.
std::string declaration(const Function& f, bool defaults);
std::string body(const Function& f);

/// Positions of the two tensors of which either may be a number: mul(x, 2). Empty: none may.
std::vector<int> number_places(const Function& f);
/// The inline function with a number in the place of that tensor, which promotes weakly.
std::string number_overload(const Function& f, int place);

/// Where the parameters begin that have defaults; -1: there is none.
int first_default(const Schema& schema);
/// "SumOptions": the aggregate of those, and the overloads that take it.
std::string options_name(const Row& row);
std::string options_struct(const Row& row);
std::string options_overload(const Function& f, int number_place = -1);

}  // namespace lamella::api
