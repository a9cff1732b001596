// Questions about the order in which a click sorts the page's tables: the page's own words, evaluated.
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "calibration_aids.h"
#include "calibrations.h"
#include "report_page.h"

namespace lamella::tools {

namespace {

/// What a sorted row shows in a column, and what it sorts by if that is not its text.
struct SortedCell {
  std::string text;
  std::optional<std::string> v;
};

/// A value of JavaScript, as far as the page's order needs them.
struct JsValue {
  enum Kind { Undefined, Truth, Number, Text, Row, Cell, DataSet } kind = Undefined;
  double number = 0;
  std::string text;
  const SortedCell* cell = nullptr;

  /// As `-` reads it.
  double as_number() const {
    char* end = nullptr;
    if (kind == Number) return number;
    const double v = kind == Text ? std::strtod(text.c_str(), &end) : std::nan("");
    return kind == Text && *end != '\0' ? std::nan("") : v;
  }
  bool is(const JsValue& o) const { return kind == o.kind && text == o.text && number == o.number; }
};

/// Evaluates `c ? x : y`, `&&`, `!==`, `-`, value(row), .dataset.v, .textContent and .localeCompare(text) of
/// rows a and b; anything else is an error, which asks for its meaning to be written down here.
class Order {
 public:
  Order(std::string_view text, const SortedCell& a, const SortedCell& b) : rest_(text), a_(a), b_(b) {}
  double operator()() {
    const double out = choice().as_number();
    skip();
    if (!rest_.empty()) refuse();
    return out;
  }

 private:
  [[noreturn]] void refuse() const {
    fail(ErrorCode::Value, "the order of rows cannot be read at \"{}\"", rest_.substr(0, 30));
  }
  void skip() {
    while (!rest_.empty() && std::isspace(uint8_t(rest_[0]))) rest_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    skip();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) refuse();
  }
  std::string name() {
    skip();
    size_t n = 0;
    while (n < rest_.size() && std::isalpha(uint8_t(rest_[n]))) ++n;
    if (n == 0) refuse();
    const std::string out(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return out;
  }
  JsValue choice() {
    const JsValue condition = conjunction();
    if (!take("?")) return condition;
    const JsValue yes = choice();
    expect(":");
    const JsValue no = choice();
    return condition.number != 0 ? yes : no;
  }
  JsValue conjunction() {
    JsValue left = comparison();
    while (take("&&"))
      left = {JsValue::Truth, double((left.number != 0) & (comparison().number != 0)), "", nullptr};
    return left;
  }
  JsValue comparison() {
    const JsValue left = difference();
    return take("!==") ? JsValue{JsValue::Truth, double(!left.is(difference())), "", nullptr} : left;
  }
  JsValue difference() {
    JsValue left = member();
    while (take("-")) left = {JsValue::Number, left.as_number() - member().as_number(), "", nullptr};
    return left;
  }
  JsValue member() {
    JsValue out = primary();
    while (take(".")) out = member_of(out, name());
    return out;
  }
  JsValue member_of(const JsValue& of, const std::string& key) {
    if (of.kind == JsValue::Cell && key == "dataset") return {JsValue::DataSet, 0, "", of.cell};
    if (of.kind == JsValue::Cell && key == "textContent") return {JsValue::Text, 0, of.cell->text, nullptr};
    if (of.kind == JsValue::DataSet && key == "v")
      return of.cell->v ? JsValue{JsValue::Text, 0, *of.cell->v, nullptr} : JsValue{};
    if (key != "localeCompare") refuse();
    expect("(");
    const JsValue other = choice();
    expect(")");
    const int order = of.text.compare(other.text);
    return {JsValue::Number, double((order > 0) - (order < 0)), "", nullptr};
  }
  JsValue primary() {
    const std::string word = name();
    if (word == "undefined") return {};
    if (word == "a" || word == "b") return {JsValue::Row, 0, "", word == "a" ? &a_ : &b_};
    if (word != "value") refuse();
    expect("(");
    JsValue row = choice();
    expect(")");
    if (row.kind != JsValue::Row) refuse();
    row.kind = JsValue::Cell;
    return row;
  }

  std::string_view rest_;
  const SortedCell &a_, &b_;
};

int sign(double v) { return (v > 0) - (v < 0); }

std::string columns_sort_by_what_they_hold() {
  const std::string page = report_page({}, {}), head = "const order = (a, b) =>";
  const size_t at = page.find(head), end = page.find(';', at);
  if (at == std::string::npos || end == std::string::npos) return "the page has no order of rows";
  const std::string order = page.substr(at + head.size(), end - at - head.size());
  Dice dice(24);
  for (int round = 0; round < 500; ++round) {
    const bool numbers = dice.one_in(2);
    const auto cell = [&] {
      const uint64_t n = dice.below(uint64_t(std::pow(10, double(1 + dice.below(6)))));
      const std::string text = std::to_string(n) + dice.of({"", ".5", ".25"});
      return numbers ? SortedCell{"shown", text} : SortedCell{"law " + text, std::nullopt};
    };
    const SortedCell a = cell(), b = cell();
    const int want = numbers ? sign(std::strtod(a.v->c_str(), nullptr) - std::strtod(b.v->c_str(), nullptr))
                             : -sign(a.text.compare(b.text));  // texts begin with the first one
    if (sign(Order(order, a, b)()) != want)
      return format("{} and {} are sorted otherwise", numbers ? *a.v : a.text, numbers ? *b.v : b.text);
  }
  return "";
}
}  // namespace

Calibrations calibrations_of_sorting() {
  return {{"columns_sort_by_what_they_hold",
           "A click sorts a column of numbers by these, the largest first, and one of texts by the alphabet.",
           guarded<columns_sort_by_what_they_hold>}};
}

}  // namespace lamella::tools
