// Scanning, parsing and evaluating expressions in one pass over a tree.
#include "lamella/verify/text/expression.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "lamella/dispatch/call.h"
#include "lamella/dispatch/nearest.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/transforms/jacobian.h"
#include "lamella/transforms/jvp.h"

namespace lamella::verify {

namespace {

struct Expr {
  /// A chain is `a + b - c`: operators of `keys` from left to right, each with the next of `args`. A tree of
  /// them would be as deep as a sum is long.
  enum Kind { Number, Variable, Call, Chain, List, None } kind = None;
  std::string name;
  double number = 0;
  std::optional<uint64_t> whole;  ///< magnitude of a number that was written without point or exponent
  std::vector<Expr> args;
  std::vector<std::string> keys;  ///< of named arguments, whose values are `named`; operators of a chain
  std::vector<Expr> named;
};

constexpr int kMaxNesting = 200;
constexpr uint64_t kHalf = uint64_t{1} << 63;

constexpr std::string_view kTransforms[] = {"vmap", "grad", "jvp", "jacrev", "jacfwd", "hessian"};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}
  Expr parse() {
    Expr e = sum();
    skip();
    if (at_ != text_.size()) refuse("the end");
    return e;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void refuse(std::string_view expected) {
    fail(ErrorCode::Schema, "expression: got \"{}\" at position {}, expected {}", text_.substr(at_, 12), at_,
         expected);
  }
  /// A whole number that no dtype holds would become a double that says nothing of it.
  [[noreturn]] void refuse_whole(size_t from, std::string_view limit) {
    size_t end = from + 1;
    while (end < text_.size() && (isdigit(uint8_t(text_[end])) || text_[end] == ' ')) ++end;
    const std::string_view got = text_.substr(from, end - from);
    fail(ErrorCode::Schema,
         "expression: got {} at position {}, expected a whole number of at {} {}, or a double: with a point",
         got.substr(0, got.find_last_not_of(' ') + 1), from, limit[0] == '-' ? "least" : "most", limit);
  }
  static Expr call(std::string name, Expr arg) {
    Expr e;
    e.kind = Expr::Call;
    e.name = std::move(name);
    e.args.push_back(std::move(arg));
    return e;
  }
  /// `left op right`. Whatever `left` is in brackets for, it comes first: a chain becomes longer.
  static Expr chain(std::string op, Expr left, Expr right) {
    if (left.kind != Expr::Chain) {
      Expr e;
      e.kind = Expr::Chain;
      e.args.push_back(std::move(left));
      left = std::move(e);
    }
    left.keys.push_back(std::move(op));
    left.args.push_back(std::move(right));
    return left;
  }
  Expr sum() {
    if (++depth_ > kMaxNesting) refuse("at most 200 nested expressions");
    Expr left = product();
    for (;;) {
      if (take('+')) left = chain("add", std::move(left), product());
      else if (take('-')) left = chain("sub", std::move(left), product());
      else break;
    }
    --depth_;
    return left;
  }
  Expr product() {
    Expr left = factor();
    for (;;) {
      if (take('*')) left = chain("mul", std::move(left), factor());
      else if (take('/')) left = chain("div", std::move(left), factor());
      else return left;
    }
  }
  Expr factor() {
    skip();
    const size_t start = at_;
    if (take('-')) {
      if (++depth_ > kMaxNesting) refuse("at most 200 nested expressions");
      Expr e = factor();
      --depth_;
      if (e.kind != Expr::Number) return call("neg", std::move(e));
      if (e.number > 0 && e.whole && *e.whole > kHalf) refuse_whole(start, "-9223372036854775808");
      e.number = -e.number;  // the sign of a whole number too: whole numbers have no -0
      return e;
    }
    if (take('(')) return list_or_group(')');
    if (take('[')) return list_or_group(']');
    if (at_ < text_.size() && (isdigit(uint8_t(text_[at_])) || text_[at_] == '.')) return number();
    return name();
  }
  Expr list_or_group(char close) {
    Expr out;
    out.kind = Expr::List;
    bool comma = close == ']';
    while (!take(close)) {
      if (!out.args.empty()) {
        if (!take(',')) refuse("\",\" or a closing bracket");
        comma = true;
        if (take(close)) break;
      }
      out.args.push_back(sum());
    }
    return comma || out.args.size() != 1 ? std::move(out) : Expr(std::move(out.args[0]));
  }
  Expr number() {
    Expr e;
    e.kind = Expr::Number;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), e.number);
    if (error != std::errc{}) refuse("a number");
    const std::string_view digits = text_.substr(at_, size_t(end - (text_.data() + at_)));
    uint64_t whole;
    const auto [stop, beyond] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
    if (beyond == std::errc{} && stop == end) e.whole = whole;
    if (beyond == std::errc::result_out_of_range && stop == end) refuse_whole(at_, "18446744073709551615");
    at_ += digits.size();
    return e;
  }
  std::string identifier() {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() && (isalnum(uint8_t(text_[at_])) || text_[at_] == '_')) ++at_;
    if (start == at_) refuse("a name, a number or a bracket");
    return std::string(text_.substr(start, at_ - start));
  }
  Expr name() {
    Expr e;
    e.name = identifier();
    if (e.name == "None") return e;
    e.kind = Expr::Variable;
    if (!take('(')) return e;
    e.kind = Expr::Call;
    while (!take(')')) {
      if (!e.args.empty() || !e.named.empty())
        if (!take(',')) refuse("\",\" or \")\"");
      argument(e);
    }
    return e;
  }
  void argument(Expr& e) {
    const size_t start = at_;
    skip();
    if (at_ < text_.size() && isalpha(uint8_t(text_[at_]))) {
      std::string key = identifier();
      if (take('=')) {
        e.keys.push_back(std::move(key));
        e.named.push_back(sum());
        return;
      }
      at_ = start;
    }
    e.args.push_back(sum());
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

class Evaluator {
 public:
  explicit Evaluator(Bindings env) : env_(std::move(env)) {}

  Tensor tensor(const Expr& e) {
    Value v = value(e);
    if (auto* t = std::get_if<Tensor>(&v)) return *t;
    if (const auto* i = std::get_if<int64_t>(&v)) return scalar_tensor(*i, DType::I64);
    if (const auto* s = std::get_if<Scalar>(&v)) return scalar_tensor(*s, s->kind());
    if (const auto* d = std::get_if<double>(&v)) return scalar_tensor(*d, dispatch_state().default_dtype);
    fail(ErrorCode::Usage, "expression: got {}, expected a tensor", str(v));
  }

 private:
  Value value(const Expr& e) {
    switch (e.kind) {
      case Expr::Number: return number(e);
      case Expr::None: return {};
      case Expr::Variable: return variable(e.name);
      case Expr::List: return list(e);
      case Expr::Chain: return chain(e);
      case Expr::Call: break;
    }
    if (e.name == "vmap") return apply_vmap(e);
    if (e.name == "grad") return apply_grad(e);
    if (e.name == "jvp") return apply_jvp(e);
    if (e.name == "jacrev" || e.name == "jacfwd" || e.name == "hessian") return apply_jacobian(e);
    return apply_operator(e);
  }
  /// Whole numbers exactly: i64, or u64 beyond it; else a double.
  static Value number(const Expr& e) {
    if (!e.whole) return e.number;
    if (e.number < 0) return int64_t(0 - *e.whole);
    return *e.whole < kHalf ? Value(int64_t(*e.whole)) : Value(Scalar(*e.whole));
  }
  Value variable(const std::string& name) {
    for (const auto& [n, t] : env_)
      if (n == name) return t;
    if (name == "True") return true;
    if (name == "False") return false;
    DType d;
    if (parse_dtype(name, d)) return d;
    fail(ErrorCode::Usage, "expression: there is no variable \"{}\"; declare it with --shapes {}=2x3", name,
         name);
  }
  Value list(const Expr& e) {
    Tensors tensors;
    Dims dims;
    for (const Expr& a : e.args) {
      Value v = value(a);
      if (auto* t = std::get_if<Tensor>(&v)) tensors.push_back(*t);
      else if (auto* i = std::get_if<int64_t>(&v)) dims.push_back(*i);
      else fail(ErrorCode::Usage, "expression: a list holds tensors or integers, got {}", str(v));
    }
    return tensors.empty() ? Value(dims) : Value(tensors);
  }
  Value chain(const Expr& e) {
    Value left = value(e.args[0]);
    for (size_t k = 0; k < e.keys.size(); ++k) {
      Values both{std::move(left), value(e.args[k + 1])};
      left = apply(*operator_of(e.keys[k]), std::move(both), {});
    }
    return left;
  }
  static const Op* operator_of(const std::string& name) {
    const Op* const op = OpTable::current().find(name);
    LAMELLA_CHECK(op, UnknownOperator, "expression: there is no operator \"{}\"{}", name,
                  nearest_operators(name, kTransforms));
    return op;
  }
  Value apply_operator(const Expr& e) {
    const Op* const op = operator_of(e.name);
    Values args;
    for (const Expr& a : e.args) args.push_back(value(a));
    std::vector<std::pair<std::string, Value>> named;
    for (size_t i = 0; i < e.named.size(); ++i) named.emplace_back(e.keys[i], value(e.named[i]));
    return apply(*op, std::move(args), named);
  }
  static Value apply(const Op& op, Values args, const std::vector<std::pair<std::string, Value>>& named) {
    weaken_numbers(op, args);
    const bool numbers = !args.empty() && std::ranges::all_of(args, [](const Value& v) {
      return std::holds_alternative<int64_t>(v) || std::holds_alternative<double>(v);
    });
    LAMELLA_CHECK(!numbers || op.schema.params.empty() || op.schema.params[0].kind != ParamKind::Tensor,
                  Usage, "expression: {} got numbers alone, expected a tensor among them: --shapes x=2x3",
                  op.name);
    const Tensors results = call(op, args, named);
    LAMELLA_CHECK(!results.empty(), Usage, "expression: {} has no result", op.name);
    return results[0];
  }
  /// sin(x) * 2: the number stands beside a tensor.
  static void weaken_numbers(const Op& op, Values& args) {
    const Tensor* like = nullptr;
    for (const Value& v : args)
      if (const auto* t = std::get_if<Tensor>(&v)) like = t;
    for (size_t i = 0; i < args.size() && i < op.schema.params.size() && like; ++i) {
      if (op.schema.params[i].kind != ParamKind::Tensor) continue;
      if (const auto* n = std::get_if<int64_t>(&args[i])) args[i] = number_like(*n, *like);
      else if (const auto* s = std::get_if<Scalar>(&args[i])) args[i] = number_like(*s, *like);
      else if (const auto* d = std::get_if<double>(&args[i])) args[i] = number_like(*d, *like);
    }
  }

  /// Variables an expression uses, in the order of declaration: the arguments of the function it denotes.
  void uses(const Expr& e, std::vector<bool>& used) const {
    for (size_t i = 0; i < env_.size(); ++i)
      if (e.kind == Expr::Variable && env_[i].first == e.name) used[i] = true;
    for (const Expr& a : e.args) uses(a, used);
  }
  struct Arguments {
    std::vector<size_t> at;
    Tensors values;
  };
  Arguments arguments_of(const Expr& e) const {
    LAMELLA_CHECK(!e.args.empty(), Usage, "expression: {} needs an expression", e.name);
    std::vector<bool> used(env_.size());
    uses(e.args[0], used);
    Arguments out;
    for (size_t i = 0; i < env_.size(); ++i)
      if (used[i]) {
        out.at.push_back(i);
        out.values.push_back(env_[i].second);
      }
    LAMELLA_CHECK(!out.at.empty(), Usage, "expression: {} needs a variable to act on", e.name);
    return out;
  }
  Function function_of(const Expr& body, std::vector<size_t> at) const {
    return [this, &body, at](const Tensors& xs) {
      Bindings env = env_;
      for (size_t k = 0; k < at.size(); ++k) env[at[k]].second = xs[k];
      return Tensors{Evaluator(std::move(env)).tensor(body)};
    };
  }
  const Expr* option(const Expr& e, std::string_view key) const {
    for (size_t i = 0; i < e.named.size(); ++i)
      if (e.keys[i] == key) return &e.named[i];
    return nullptr;
  }
  InDims dims_option(const Expr& e, std::string_view key) const {
    const Expr* o = option(e, key);
    if (!o) return {0};
    InDims out;
    const auto one = [&](const Expr& d) {
      const bool dim = d.kind == Expr::Number && d.whole && *d.whole <= 64;
      LAMELLA_CHECK(dim || d.kind == Expr::None, Usage, "expression: {}= takes dims and None", key);
      out.push_back(dim ? int(d.number) : kNone);
    };
    if (o->kind == Expr::List) std::ranges::for_each(o->args, one);
    else one(*o);
    return out;
  }
  Tensor apply_vmap(const Expr& e) {
    const Arguments a = arguments_of(e);
    VmapOptions options{dims_option(e, "in"), dims_option(e, "out"), Randomness::Different};
    return vmap(function_of(e.args[0], a.at), options)(a.values)[0];
  }
  /// The variable named by wrt=, or the first.
  size_t chosen(const Expr& e, const Arguments& a) const {
    const Expr* o = option(e, "wrt");
    if (!o) return 0;
    for (size_t k = 0; k < a.at.size(); ++k)
      if (env_[a.at[k]].first == o->name) return k;
    fail(ErrorCode::Usage, "expression: wrt={} is no variable of {}", o->name, e.name);
  }
  Tensor apply_grad(const Expr& e) {
    const Arguments a = arguments_of(e);
    const Function f = function_of(e.args[0], a.at);
    return grad([&](const Tensors& xs) { return f(xs)[0]; }, {int(chosen(e, a))})(a.values)[0];
  }
  Tensor apply_jvp(const Expr& e) {
    const Arguments a = arguments_of(e);
    Tensors tangents(a.values.size());
    tangents[chosen(e, a)] = ones_like(a.values[chosen(e, a)]);
    return jvp(function_of(e.args[0], a.at), a.values, tangents).tangents[0];
  }
  Tensor apply_jacobian(const Expr& e) {
    const Arguments a = arguments_of(e);
    const size_t k = chosen(e, a);
    const Function f = function_of(e.args[0], a.at);
    const UnaryFunction one = [&](const Tensor& x) {
      Tensors xs = a.values;
      xs[k] = x;
      return f(xs)[0];
    };
    const UnaryFunction g = e.name == "jacrev"   ? jacrev(one)
                            : e.name == "jacfwd" ? jacfwd(one)
                                                 : hessian(one);
    return g(a.values[k]);
  }

  Bindings env_;
};

}  // namespace

Tensor evaluate(std::string_view text, const Bindings& variables) {
  const Expr e = Parser(text).parse();
  return Evaluator(variables).tensor(e);
}

Bindings parse_shapes(const std::vector<std::string>& shapes, DType dtype) {
  constexpr int64_t kMostElements = int64_t{1} << 24;
  Bindings out;
  for (const std::string& s : shapes) {
    const size_t eq = s.find('=');
    LAMELLA_CHECK(s.find(' ') == std::string::npos, Usage,
                  "shapes: got \"{}\", expected a word for each variable: --shapes x=2x3 y=3", s);
    LAMELLA_CHECK(eq != std::string::npos && eq > 0, Usage, "shapes: got \"{}\", expected NAME=2x3", s);
    Dims sizes;
    size_t at = eq + 1;
    while (at < s.size()) {
      int64_t n = 0;
      const auto [end, error] = std::from_chars(s.data() + at, s.data() + s.size(), n);
      LAMELLA_CHECK(error == std::errc{} && n >= 0, Usage, "shapes: got \"{}\", expected sizes like 2x3", s);
      sizes.push_back(n);
      at = size_t(end - s.data());
      if (at == s.size()) break;
      LAMELLA_CHECK(s[at] == 'x' && at + 1 < s.size(), Usage, "shapes: got \"{}\", expected sizes like 2x3",
                    s);
      ++at;
    }
    const int64_t numel = checked_numel(sizes, "shapes");
    LAMELLA_CHECK(numel <= kMostElements, Usage, "shapes: \"{}\" has {} elements, expected at most {}", s,
                  numel, kMostElements);
    std::vector<double> values;
    for (int64_t i = 0; i < numel; ++i) values.push_back(0.25 * double(i + 1));
    out.emplace_back(s.substr(0, eq), tensor_of(Ints(sizes), values, dtype));
  }
  return out;
}

}  // namespace lamella::verify
