// Parsing and printing schemas: a hand-written scanner, total on every input.
#include "lamella/dispatch/schema.h"

#include <charconv>

#include "lamella/core/limits.h"

namespace lamella {

namespace {
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) refuse(format("\"{}\"", token));
  }
  bool done() {
    skip();
    return at_ == text_.size();
  }
  std::string identifier() {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() && (isalnum(uint8_t(text_[at_])) || text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    if (start == at_ || isdigit(uint8_t(text_[start]))) refuse("a name");
    return std::string(text_.substr(start, at_ - start));
  }
  std::string_view until(std::string_view stops) {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() && stops.find(text_[at_]) == std::string_view::npos) ++at_;
    return text_.substr(start, at_ - start);
  }
  [[noreturn]] void refuse(std::string_view expected) const {
    std::string rest(text_.substr(at_, 20));
    for (char& c : rest)
      if (!isprint(uint8_t(c))) c = '?';  // a NUL would end the message
    fail(ErrorCode::Schema, "schema: got \"{}\" at position {}, expected {}", rest, at_, expected);
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

struct TypeName {
  std::string_view text;
  ParamKind kind;
  ParamRole role;
};
constexpr TypeName kTypes[] = {
    {"Tensor", ParamKind::Tensor, ParamRole::Plain}, {"int", ParamKind::Int, ParamRole::Plain},
    {"Dim", ParamKind::Int, ParamRole::Dim},         {"Size", ParamKind::Ints, ParamRole::Size},
    {"float", ParamKind::Float, ParamRole::Plain},   {"bool", ParamKind::Bool, ParamRole::Plain},
    {"Scalar", ParamKind::Scalar, ParamRole::Plain}, {"DType", ParamKind::DType, ParamRole::Plain},
    {"str", ParamKind::String, ParamRole::Plain},    {"Function", ParamKind::Function, ParamRole::Plain},
    {"Rule", ParamKind::Function, ParamRole::Rule},  {"Device", ParamKind::Device, ParamRole::Plain}};

void parse_type(Scanner& in, Param& p) {
  const std::string base = in.identifier();
  const TypeName* found = nullptr;
  for (const TypeName& t : kTypes)
    if (t.text == base) found = &t;
  if (!found) in.refuse(format("a type, not \"{}\"", base));
  p.kind = found->kind;
  p.role = found->role;
  if (in.take("(a!)")) p.mutated = true;
  if (in.take("[]")) {
    if (p.kind == ParamKind::Tensor) p.kind = ParamKind::TensorList;
    else if (p.kind == ParamKind::Int) p.kind = ParamKind::Ints;
    else in.refuse("a type that has lists");
  }
  p.optional = in.take("?");
}

template <class T> bool parse_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

Value parse_default(Scanner& in, const Param& p) {
  if (in.take("None")) {
    if (!p.optional) in.refuse("a default, not None, for a parameter that is not optional");
    return {};
  }
  // What does not fit the parameter falls through to the refusal below.
  if (p.kind == ParamKind::Bool && in.take("True")) return true;
  if (p.kind == ParamKind::Bool && in.take("False")) return false;
  if (p.kind == ParamKind::Ints && in.take("[]")) return Dims{};
  if (p.kind == ParamKind::String && in.take("'")) {
    std::string text(in.until("'"));
    in.expect("'");
    return text;
  }
  std::string_view text = in.until(",)");
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  int64_t i = 0;
  double d = 0;
  if (p.kind == ParamKind::Int && parse_number(text, i)) return i;
  if (p.kind == ParamKind::Scalar && text != "-0" && parse_number(text, i)) return Scalar(i);
  if (p.kind == ParamKind::Scalar && parse_number(text, d)) return Scalar(d);
  if (p.kind == ParamKind::Float && parse_number(text, d)) return d;
  in.refuse("a default that the parameter can hold");
}

std::string default_text(const Value& v) {
  if (const bool* b = std::get_if<bool>(&v)) return *b ? "True" : "False";
  if (const auto* s = std::get_if<std::string>(&v)) return "'" + *s + "'";
  std::string text = str(v);
  const Scalar* const number = std::get_if<Scalar>(&v);  // 1.0 is a float, 1 an integer: they promote apart
  const bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
  if (number && is_floating(number->kind()) && whole) text += ".0";
  return text;
}
}  // namespace

int Schema::find(std::string_view param) const {
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].name == param) return int(i);
  return -1;
}

Schema parse_schema(std::string_view text) {
  // Before it is scanned.
  LAMELLA_CHECK(text.size() <= kMaxSchema, Schema, "schema: got {} characters, expected at most {}",
                text.size(), kMaxSchema);
  Scanner in(text);
  Schema schema;
  schema.name = in.identifier();
  in.expect("(");
  bool keyword_only = false;
  while (!in.take(")")) {
    if (!schema.params.empty() || keyword_only) in.expect(",");
    if (!keyword_only && in.take("*")) {
      keyword_only = true;
      continue;
    }
    Param p;
    p.keyword_only = keyword_only;
    parse_type(in, p);
    p.name = in.identifier();
    if (schema.find(p.name) >= 0) in.refuse(format("a new name, not \"{}\" again", p.name));
    if (in.take("=")) {
      p.has_default = true;
      p.default_value = parse_default(in, p);
    }
    schema.params.push_back(std::move(p));
  }
  in.expect("->");
  schema.n_results = 0;
  if (in.take("(")) {
    while (!in.take(")")) {
      if (schema.n_results++) in.expect(",");
      in.expect("Tensor");
      if (!in.take(")")) in.skip();
      else break;
    }
  } else {
    in.expect("Tensor");
    schema.n_results = 1;
    if (in.take("(a)") || in.take("(a!)")) schema.returns_alias = true;
    if (in.take("[]")) schema.result_kind = ResultKind::TensorList;
  }
  if (!in.done()) in.refuse("the end");
  return schema;
}

std::string str(const Param& p) {
  std::string out;
  for (const TypeName& t : kTypes) {
    const ParamKind base = p.kind == ParamKind::TensorList                          ? ParamKind::Tensor
                           : p.kind == ParamKind::Ints && p.role != ParamRole::Size ? ParamKind::Int
                                                                                    : p.kind;
    if (t.kind == base && t.role == p.role) out = t.text;
  }
  if (p.mutated) out += "(a!)";
  if (p.kind == ParamKind::TensorList || (p.kind == ParamKind::Ints && p.role != ParamRole::Size))
    out += "[]";
  if (p.optional) out += "?";
  out += " " + p.name;
  if (p.has_default) out += "=" + default_text(p.default_value);
  return out;
}

std::string str(const Schema& s) {
  std::string out = s.name + "(";
  bool keyword_only = false;
  for (size_t i = 0; i < s.params.size(); ++i) {
    if (i) out += ", ";
    if (s.params[i].keyword_only && !keyword_only) {
      out += "*, ";
      keyword_only = true;
    }
    out += str(s.params[i]);
  }
  out += ") -> ";
  if (s.result_kind == ResultKind::TensorList) return out + (s.returns_alias ? "Tensor(a)[]" : "Tensor[]");
  if (s.n_results == 1) {
    const bool writes = !s.params.empty() && s.params[0].mutated;
    return out + (!s.returns_alias ? "Tensor" : writes ? "Tensor(a!)" : "Tensor(a)");
  }
  out += "(";
  for (int i = 0; i < s.n_results; ++i) out += i ? ", Tensor" : "Tensor";
  return out + ")";
}

std::string str(const Value& v) {
  struct Printer {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(const Tensor& t) const { return type_str(t); }
    std::string operator()(const Tensors& ts) const {
      std::string out = "[";
      for (size_t i = 0; i < ts.size(); ++i) out += (i ? ", " : "") + type_str(ts[i]);
      return out + "]";
    }
    std::string operator()(int64_t i) const { return std::to_string(i); }
    std::string operator()(const Dims& d) const { return format("{}", d); }
    std::string operator()(double d) const { return Scalar(d).str(); }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(const Scalar& s) const { return s.str(); }
    std::string operator()(DType d) const { return std::string(name(d)); }
    std::string operator()(const std::string& s) const { return "\"" + s + "\""; }
    std::string operator()(const FunctionRef&) const { return "a function"; }
    std::string operator()(Device d) const { return std::string(name(d)); }
  };
  return std::visit(Printer{}, v);
}

}  // namespace lamella
