// Derivative rules as formulas: an observer that knows tensors by name.
#include "formula.h"

#include <algorithm>
#include <climits>

#include "lamella/lamella.h"
#include "lamella/verify/case/decoder.h"

namespace lamella::expect {
namespace {

std::string value_text(const Frame& f, int i) {
  switch (f.op->schema.params[size_t(i)].kind) {
    case ParamKind::Int: return str(Value(f.arg<int64_t>(i)));
    case ParamKind::Ints: return str(Value(Dims(f.ints(i))));
    case ParamKind::Float: return str(Value(f.arg<double>(i)));
    case ParamKind::Bool: return str(Value(f.arg<bool>(i)));
    case ParamKind::Scalar: return f.arg<Scalar>(i).str();
    case ParamKind::DType: return std::string(name(f.arg<DType>(i)));
    case ParamKind::Device: return std::string(name(f.arg<Device>(i)));
    case ParamKind::String: return f.arg<std::string>(i);
    default: return "";
  }
}

/// An operator's sample and one of its inputs, as a function of that input.
struct Subject {
  const Op& op;
  Values args;
  int input;
  std::vector<std::string>& named;  ///< long values of the operator's formulas: v1, v2, ...

  const std::string& name() const { return op.schema.params[size_t(input)].name; }
  Tensors tensors() const {
    if (const auto* t = std::get_if<Tensor>(&args[size_t(input)])) return {*t};
    return std::get<Tensors>(args[size_t(input)]);
  }
  Tensors operator()(const Tensors& xs) const {
    Values with = args;
    Value& v = with[size_t(input)];
    if (std::holds_alternative<Tensor>(v)) v = xs[0];
    else v = xs;
    Tensors ys = call(op, with);
    std::erase_if(ys, [](const Tensor& y) { return !is_inexact(y.dtype()); });
    return ys;
  }
  /// What a rule calls its own operator's argument: "dim", "x.sizes", "x.dtype"; empty if it is none of
  /// these.
  std::string own_name(const Param& p, const std::string& text) const {
    const int same = op.schema.find(p.name);
    const bool comparable =
        p.kind != ParamKind::Tensor && p.kind != ParamKind::Bool;  // one of two says little
    if (same >= 0 && p.kind == op.schema.params[size_t(same)].kind && comparable) {
      const Value& v = args[size_t(same)];
      if (!is_none(v) && str(v) == text) return p.name;
    }
    std::vector<size_t> order{size_t(input)};
    for (size_t i = 0; i < args.size(); ++i) order.push_back(i);
    for (const size_t i : order) {
      const auto* t = std::get_if<Tensor>(&args[i]);
      if (!t || !t->defined()) continue;
      const std::string& name = op.schema.params[i].name;
      if (p.kind == ParamKind::Ints && p.role == ParamRole::Size && str(Value(Dims(t->sizes()))) == text)
        return name + ".sizes";
      if (p.kind == ParamKind::DType && lamella::name(t->dtype()) == text) return name + ".dtype";
    }
    return "";
  }
};

/// Names what the calls at one depth return after what they were called on.
class Formula final : public Observer {
 public:
  /// The operator's own call, one level down, defines its results.
  explicit Formula(const Subject& subject) : subject_(subject), primal_(&subject.op) {
    for (size_t i = 0; i < subject.args.size(); ++i) {
      const std::string& name = subject.op.schema.params[i].name;
      if (const auto* t = std::get_if<Tensor>(&subject.args[i])) define(*t, name);
      if (const auto* ts = std::get_if<Tensors>(&subject.args[i])) define_all(*ts, name);
    }
  }
  /// Where the rule's own calls are: one level down in a jvp, at the top in a pullback.
  void look_at_depth(int depth) { at_ = depth; }

  void define(const Tensor& t, std::string text) {
    if (t.defined()) known_.emplace_back(t, std::move(text));
  }
  void define_all(const Tensors& ts, const std::string& text) {
    for (size_t k = 0; k < ts.size(); ++k) define(ts[k], text + format("[{}]", k));
  }
  std::string operator()(const Tensor& t) const {
    if (!t.defined()) return "absent";
    if (t.impl()->number) return number(t.item_scalar());
    for (size_t k = known_.size(); k-- > 0;)
      if (known_[k].first.is_same(t)) return known_[k].second;
    for (const auto& [other, text] : known_)  // another header of the same elements
      if (overlap(other, t) == Overlap::Same) return text;
    return "made inside";
  }
  /// "jvp a: mul(t, b)", after the lines of the long values it uses.
  std::string lines(std::string_view head, const Tensors& results) {
    std::string all, long_values = lines_;
    for (const Tensor& t : results) all += (all.empty() ? "" : "; ") + (*this)(t);
    if (all == last_name_) {
      all = subject_.named.back();
      subject_.named.pop_back();
      long_values.resize(long_values.size() - last_line_);
    }
    return long_values + format("{}: {}\n", head, all);
  }

  void on_call(const Frame&, KeySet, int) override { ++depth_; }
  void on_return(const Frame& f) override {
    if (--depth_ != at_) return;
    if (f.op == primal_) {
      for (int r = 0; r < f.op->schema.n_results; ++r) define(f.results[r], result_name(*f.op, r));
      primal_ = nullptr;
      return;
    }
    const std::string text = call_text(f);
    if (f.list) {
      for (size_t r = 0; r < f.list->size(); ++r) keep(f, (*f.list)[r], text + format("[{}]", r));
      return;
    }
    const int n = f.op->schema.n_results;
    for (int r = 0; r < n; ++r) keep(f, f.results[r], n > 1 ? text + format("[{}]", r) : text);
  }
  static std::string result_name(const Op& op, int r) {
    return op.schema.n_results > 1 ? format("result{}", r) : "result";
  }

 private:
  std::string number(const Scalar& value) const {
    const std::string text = value.str();
    for (size_t i = 0; i < subject_.args.size(); ++i) {
      const auto* own = std::get_if<Scalar>(&subject_.args[i]);
      if (own && own->str() == text && !(*own == Scalar(1))) return subject_.op.schema.params[i].name;
    }
    return text;
  }
  void keep(const Frame& f, const Tensor& t, std::string text) {
    const auto is_it = [&](const auto& known) { return known.first.is_same(t); };
    const bool known = std::any_of(known_.begin(), known_.end(), is_it);
    if (!t.defined() || (f.op->form == OpForm::Functional && known)) return;
    constexpr size_t kLong = 60;
    define(t, text.size() > kLong ? name_of(text) : text);
  }
  /// A value that other formulas of the operator use has their name for it.
  std::string name_of(const std::string& text) {
    const auto at = std::ranges::find(subject_.named, text);
    const std::string name = format("v{}", at - subject_.named.begin() + 1);
    if (at != subject_.named.end()) return name;
    subject_.named.push_back(text);
    const std::string line = "  " + name + " = " + text + "\n";
    last_name_ = name;
    last_line_ = line.size();
    lines_ += line;
    return name;
  }

  std::string call_text(const Frame& f) const {
    std::string out = f.op->name + "(";
    bool skipped = false;
    for (size_t i = 0; i < f.op->schema.params.size(); ++i) {
      const Param& p = f.op->schema.params[i];
      const std::string text = argument(f, p, int(i));
      const bool is_default =
          p.has_default && (is_none(p.default_value) ? text.empty() : text == str(p.default_value));
      skipped |= is_default;
      if (is_default) continue;
      out += (out.back() == '(' ? "" : ", ") + (skipped ? p.name + "=" : std::string()) + text;
    }
    return out + ")";
  }
  std::string argument(const Frame& f, const Param& p, int i) const {
    if (f.none(i)) return "";
    if (p.kind == ParamKind::Tensor) return f.tensor(i).defined() ? (*this)(f.tensor(i)) : "";
    if (p.kind != ParamKind::TensorList) {
      const std::string text = value_text(f, i), name = subject_.own_name(p, text);
      return name.empty() ? text : name;
    }
    std::string out = "[";
    for (const Tensor& t : f.tensors(i)) out += (out.back() == '[' ? "" : ", ") + (*this)(t);
    return out + "]";
  }

  std::vector<std::pair<Tensor, std::string>> known_;  ///< kept alive: addresses stay theirs
  const Subject& subject_;
  const Op* primal_;
  std::string lines_, last_name_;
  size_t last_line_ = 0;
  int at_ = 1, depth_ = 0;
};

std::string jvp_line(const Subject& s) {
  Formula f(s);
  const Tensors xs = s.tensors();
  Tensors ts;
  for (const Tensor& x : xs) ts.push_back(clone(x));
  if (ts.size() == 1) f.define(ts[0], "t");
  else f.define_all(ts, "t");
  const ScopedObserver scope(&f);
  return f.lines("jvp " + s.name(), jvp(s, xs, ts).tangents);
}

std::string vjp_line(const Subject& s) {
  Formula f(s);
  const ScopedObserver scope(&f);
  const VjpResult r = vjp(s, s.tensors());
  f.look_at_depth(-1);
  Tensors cts;
  for (const Tensor& y : r.values) cts.push_back(clone(y));
  if (cts.size() == 1) f.define(cts[0], "ct");
  else f.define_all(cts, "ct");
  f.look_at_depth(0);
  return f.lines("vjp " + s.name(), r.pullback(cts));
}

/// How much a sample shows: complex numbers, matrices of some elements, all optional tensors, shifts and dims
/// that are not 0.
int worth(const Op& op, const Values& args) {
  int out = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool tensor = op.schema.params[i].kind == ParamKind::Tensor;
    if (is_none(args[i])) {
      out -= tensor;
      continue;
    }
    if (const auto* dims = std::get_if<Dims>(&args[i]))
      out += std::ranges::any_of(*dims, [](int64_t n) { return n != 0; });
    const auto* t = std::get_if<Tensor>(&args[i]);
    if (!t) continue;
    out += 8 * (t->rank() == 2) + 4 * (t->rank() > 2) - 16 * (t->numel() < 2) + 64 * is_complex(t->dtype());
  }
  return out;
}

std::string direction(const Op& op, const char* what, const std::vector<BoundFormula>& rules,
                      std::string_view absent, std::vector<std::string>& named,
                      std::string (*line)(const Subject&)) {
  if (!absent.empty()) return format("{}: not differentiable: {}\n", what, absent);
  if (rules.empty()) return format("{}: by composition\n", what);
  std::string out;
  const Values args = shown_sample(op);
  for (const BoundFormula& rule : rules) {
    if (is_none(args[size_t(rule.input)]))
      out += format("{} {}: no sample has it\n", what, op.schema.params[size_t(rule.input)].name);
    else out += line({op, args, rule.input, named});
  }
  return out;
}
}  // namespace

Values shown_sample(const Op& op) {
  Values best;
  int most = INT_MIN;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    uint32_t words[64], state = seed;
    for (uint32_t& w : words) w = state = state * 1664525 + 1013904223;
    DrawOptions options;
    options.dtypes = mask(seed % 2 ? DType::C128 : DType::F64);
    verify::Decoder draw(seed < 2 ? std::span<const uint32_t>() : std::span<const uint32_t>(words), options);
    Values args = canonical(op, op.samples(draw));
    if (worth(op, args) <= most) continue;
    most = worth(op, args);
    best = std::move(args);
  }
  return best;
}

std::string formulas(const Op& op) {
  if (op.no_jvp == op.no_vjp && !op.no_jvp.empty())
    return "not differentiable: " + std::string(op.no_jvp) + "\n";
  if (op.jvp.empty() && op.vjp.empty() && op.no_jvp.empty() && op.no_vjp.empty())
    return "jvp, vjp: by composition\n";
  std::vector<std::string> named;
  const std::string jvp = direction(op, "jvp", op.jvp, op.no_jvp, named, jvp_line);
  return jvp + direction(op, "vjp", op.vjp, op.no_vjp, named, vjp_line);
}

std::string composed(const Op& op) {
  std::vector<std::string> named;
  const Subject s{op, shown_sample(op), 0, named};
  Formula f(s);
  const ScopedObserver scope(&f);
  return f.lines("composed", call(op, s.args));
}

}  // namespace lamella::expect
