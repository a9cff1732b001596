// Refusals that name no argument, and why. `refused` holds every other one to a name of the schema.
#include "without_argument.h"

#include <algorithm>
#include <iterator>

namespace lamella::expect {

namespace {
constexpr std::string_view kGiven = "what is wrong is what the user's function, rule or hook gave";
constexpr std::string_view kTensor = "a method's tensor, which has no name";
constexpr std::string_view kRow = "the operator's row is wrong, not a call of it";
constexpr std::string_view kLaw = "a law is wrong, not a call";
constexpr std::string_view kText = "one text is the only argument: a place in it is named";
constexpr std::string_view kInside = "a value inside the function, of which the caller knows nothing";
constexpr std::string_view kCount = "a count of what was given, none of which is wrong alone";
constexpr std::string_view kResult = "the result would have this size, or is written by an operator inside";
constexpr std::string_view kNothing = "what is missing was not given: no argument holds it";
constexpr std::string_view kAnywhere = "no argument is wrong: none of them may be what they are here";
constexpr std::string_view kItself = "what is called, which is no argument of its own call";
constexpr std::string_view kUnknown = "no argument has the name that was given";

// What the table is told.
constexpr WithoutArgument kOfRows[] = {
    {"*: alternative *", kRow},
    {"*: an alternative for *", kRow},
    {"*: what serves it for *", kRow},
    {"*: its schema * is replaced *", kRow},
    {"*: it would be *", kRow},
    {"*: to_strided of * gave *", kGiven},
    {"*: from_strided of * gave *", kGiven},
    {"*: *has no alternative*", kRow},
    {"*: the library sets its cell *", kRow},
    {"*: the library sets its rules *", kRow},
    {"*: a rule is given for *", kRow},
    {"*: its shape function *", kRow},
    {"*: its results are like its first tensor*", kRow},
    {"add_tensor_type: *", kRow},
};
}  // namespace

const std::vector<WithoutArgument>& texts_without_argument() {
  static const std::vector<WithoutArgument> others = {
      {"*: the function returned *", kGiven},
      {"*: the function gave *", kGiven},
      {"*: the rule gave *", kGiven},
      {"*: its result * depends on *", kGiven},
      {"*: tangent * of the rule is *", kGiven},
      {"*: cotangent * of the rule is *", kGiven},
      {"*: value * of the function is *", kGiven},
      {"*: residual * of the function is *", kGiven},
      {"*: result * is *", kGiven},
      {"*: aux * is *", kGiven},
      {"backward: a hook *", kGiven},
      {"backward: a saved-tensor hook *", kGiven},
      {"pullback: it was moved from*", kItself},
      {"accessor: got rank *", kTensor},
      {"data: *", kTensor},
      {"item: *", kTensor},
      {"to_vector: *", kTensor},
      {"stride: the tensor is undefined*", kTensor},
      {"*: no kernel for key *", kAnywhere},
      {"*: no type of its arguments *", kAnywhere},
      {"clamp: a kernel that it runs is missing *", kAnywhere},
      {"add: size = *", kResult},
      {"cat: size = *", kResult},
      {"mul: self is *", kResult},
      {"nonzero: its result is * in lane *", kAnywhere},
      {"nonzero: its shape depends on values*", kAnywhere},
      {"unsqueeze: its result has 64 dims in a lane*", kAnywhere},
      {"vmap: got * nested transforms*", kAnywhere},
      {"*: there is no operator *", kUnknown},
      {"sum: got an argument \"axis\"*", kUnknown},
      {"add_law: *", kLaw},
      {"*: gives * tensors, *", kCount},
      {"expression: *", kText},
      {"schema: *", kText},
      {"shapes: *", kText},
      {"backward: a cotangent of *", kInside},
      {"backward: a value that *", kInside},
      {"backward: the formula of *", kInside},
      {"*: gave NaN *", kInside},
      {"mul: f64[2,3] was made in inference mode *", kInside},
      {"*: got * arguments, expected at most *", kCount},
      {"vmap: no argument is mapped *", kNothing},
      {"got an undefined tensor beside the number *", kNothing},
      {"view: * has no storage*", kTensor},
      {"view: * carries derivatives*", kTensor},
  };
  static const std::vector<WithoutArgument> all = [] {
    std::vector<WithoutArgument> both = others;
    both.insert(both.end(), std::begin(kOfRows), std::end(kOfRows));
    return both;
  }();
  return all;
}

bool fits(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == text;
  if (text.substr(0, star) != pattern.substr(0, star)) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t at = star; at <= text.size(); ++at)
    if (fits(rest, text.substr(at))) return true;
  return false;
}

}  // namespace lamella::expect
