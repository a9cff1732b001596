// Operators whose derivative rules are functions of the user.
#include "lamella/transforms/custom.h"

#include <algorithm>
#include <mutex>

#include "lamella/core/generator.h"
#include "lamella/dispatch/given.h"
#include "lamella/draw/draw.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/transforms/argnums.h"
#include "lamella/transforms/jvp.h"
#include "lamella/transforms/machine/interpreter.h"
#include "lamella/transforms/tapes/asked.h"
#include "lamella/transforms/writes/content.h"

namespace lamella {

namespace {

Tensors joined(TensorSpan a, TensorSpan b, TensorSpan c) {
  Tensors all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}
Tensors part(const Tensors& all, size_t from, size_t n) {
  return {all.begin() + std::ptrdiff_t(from), all.begin() + std::ptrdiff_t(from + n)};
}
bool any_defined(const Tensors& all) { return std::ranges::any_of(all, &Tensor::defined); }

/// Where those of `all` are that derivatives are of.
std::vector<size_t> inexact_among(const Tensors& all) {
  std::vector<size_t> at;
  for (size_t i = 0; i < all.size(); ++i)
    if (is_inexact(all[i].dtype())) at.push_back(i);
  return at;
}
Tensors chosen(const Tensors& all, const std::vector<size_t>& at) {
  Tensors out;
  for (const size_t i : at) out.push_back(all[i]);
  return out;
}
/// One for each of `like`: `some` at the places `at`, else undefined.
Tensors placed(const Tensors& some, const std::vector<size_t>& at, size_t n) {
  Tensors out(n);
  for (size_t k = 0; k < at.size(); ++k) out[at[k]] = some[k];
  return out;
}

/// J^H u of a linear map, from its values at zeros: it is its own derivative.
Tensors transposed(const Function& linear, const Tensors& like, const Tensors& directions) {
  Tensors zeros;
  for (const Tensor& t : like) zeros.push_back(zeros_like(t));
  return vjp(linear, zeros).pullback(directions);
}

/// One function with its rule, at one call.
class Custom {
 public:
  Custom(std::string_view name, const Tensors& xs) : name_(name), n_xs_(xs.size()) {}
  virtual ~Custom() = default;

  virtual Tensors values_and_residuals(const Tensors& xs) = 0;
  /// Tangents of all results; cotangents of the arguments. Directions may be undefined: zero.
  virtual Tensors pushforward(const Tensors& xs, const Tensors& ys, Tensors tangents) = 0;
  virtual Tensors backward(const Tensors& xs, const Tensors& ys, Tensors cotangents) = 0;

  Tensors run(const Tensors& xs) {
    Tensors results = values_and_residuals(xs);
    LAMELLA_CHECK(results.size() <= kMaxCustomResults, Value,
                  "{}: the function gave {} values and residuals, expected at most {}", name_, results.size(),
                  kMaxCustomResults);
    return results;
  }
  /// `all`: arguments, results, then directions of either.
  Tensors push(const Tensors& all) {
    const size_t n = all.size() - 2 * n_xs_;
    return pushforward(part(all, 0, n_xs_), part(all, n_xs_, n), part(all, n_xs_ + n, n_xs_));
  }
  Tensors pull(const Tensors& all) {
    const size_t n = (all.size() - n_xs_) / 2;
    return backward(part(all, 0, n_xs_), part(all, n_xs_, n), part(all, n_xs_ + n, n));
  }

  /// How many of the results are values; known when the function has run.
  virtual size_t values_among(size_t n_results) const { return n_results; }
  /// Whether a rule reads an argument, or a result; known likewise. Those that none reads are undefined when
  /// a tape calls one: it has not kept them.
  virtual bool reads(bool /*result*/, size_t /*k*/) const { return true; }

 protected:
  /// What the user's function gave, or the user's rule: tensors that it was given are as they were.
  template <class F>
  auto watched(const Tensors& given, std::string_view who, std::string_view what, F&& f) const {
    const WritesSeen before(given);
    auto out = f();
    if (const auto i = before.written(given))
      LAMELLA_CHECK(false, Value, "{}: the {} wrote to its {} {}, {}; expected it to write to a clone", name_,
                    who, what, *i, given[*i]);
    return out;
  }
  void check_defined(const Tensors& ts, std::string_view what) const {
    for (size_t i = 0; i < ts.size(); ++i)
      LAMELLA_CHECK(ts[i].defined(), Undefined,
                    "{}: {} {} of the function is an undefined tensor; expected a defined one", name_, what,
                    i);
  }
  /// `got`, directions that a rule gave, are of the shapes and dtypes of `like`; those of integers are
  /// dropped.
  void check_rule(Tensors& got, const Tensors& like, std::string_view direction, std::string_view of) const {
    LAMELLA_CHECK(got.size() == like.size(), Shape, "{}: the rule gave {} {}s, expected {}, one for each {}",
                  name_, got.size(), direction, like.size(), of);
    for (size_t i = 0; i < got.size(); ++i) {
      if (!is_inexact(like[i].dtype())) got[i] = {};
      if (!got[i].defined()) continue;
      LAMELLA_CHECK(std::ranges::equal(got[i].sizes(), like[i].sizes()), Shape,
                    "{}: {} {} of the rule is {}, expected the sizes of {} {}, {}", name_, direction, i,
                    got[i], of, i, like[i]);
      LAMELLA_CHECK(got[i].dtype() == like[i].dtype(), DType,
                    "{}: {} {} of the rule is {}, expected the dtype of {} {}, {}", name_, direction, i,
                    got[i], of, i, like[i]);
      LAMELLA_CHECK(got[i].device() == like[i].device(), Device,
                    "{}: {} {} of the rule is on {}, expected {} as {} {}", name_, direction, i,
                    lamella::name(got[i].device()), lamella::name(like[i].device()), of, i);
    }
  }
  std::string_view name() const { return name_; }

 private:
  std::string_view name_;
  size_t n_xs_;
};

/// With a header of its own for each: of a tensor that is given twice one says which argument it is.
Tensors told_apart(Tensors xs) {
  for (size_t i = 0; i < xs.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (xs[i].is_same(xs[k])) xs[i] = fixed(xs[i]);
  return xs;
}

/// NOTE: [residuals] Residuals that are arguments or values themselves are known from those; the others are
/// results of the operator behind the values. Their derivatives, which only derivatives of derivatives need,
/// are those of the code that computes them. Arguments are told apart first: a checkpoint runs the function
/// again with headers of its own, and has to see the same residuals.
class CustomVjp final : public Custom {
 public:
  CustomVjp(const AuxFunction& forward, const BackwardRule& rule, const Tensors& xs)
      : Custom("custom_vjp", xs), forward_(forward), rule_(rule), random_(random_state()) {}

  Tensors values_and_residuals(const Tensors& given) override {
    const Tensors xs = told_apart(given);
    auto [values, residuals] = watched(xs, "function", "argument", [&] { return forward_(xs); });
    check_defined(values, "value");
    check_defined(residuals, "residual");
    Layout layout{values.size(), 0, {}, likes(xs), likes(values)};
    Tensors out = values;
    for (const Tensor& r : residuals) {
      layout.from.push_back(source(r, xs, values, out.size()));
      if (layout.from.back().where == Source::Result && layout.from.back().index == out.size())
        out.push_back(r);
    }
    layout.n_results = out.size();
    keep(std::move(layout));
    return out;
  }

  size_t values_among(size_t) const override { return n_values_; }

  bool reads(bool result, size_t k) const override {
    const auto is = [&](const Source& s) { return (s.where == Source::Result) == result && s.index == k; };
    return std::ranges::any_of(from_, is) || (!result && n_results_ > n_values_);
  }

  Tensors backward(const Tensors& kept_xs, const Tensors& kept_ys, Tensors cotangents) override {
    const Tensors xs = whole(kept_xs, false), ys = whole(kept_ys, true);
    const Tensors values = part(ys, 0, n_values_);
    const Tensors extra = part(cotangents, n_values_, ys.size() - n_values_);
    cotangents.resize(n_values_);
    Tensors out(xs.size());
    if (any_defined(cotangents)) out = apply_rule(xs, ys, with_zeros(std::move(cotangents), values));
    if (!any_defined(extra)) return out;
    const std::vector<size_t> at = inexact_among(xs);
    const Tensors more = vjp(own_residuals(xs, at, ys.size()), chosen(xs, at)).pullback(extra);
    for (size_t k = 0; k < at.size(); ++k) {
      Tensor& x = out[at[k]];
      x = x.defined() ? add(x, more[k]) : more[k];
    }
    return out;
  }

  /// The tangents of values by transposing the rule: J t is the transpose of u -> J^H u at t.
  Tensors pushforward(const Tensors& kept_xs, const Tensors& kept_ys, Tensors tangents) override {
    const Tensors xs = whole(kept_xs, false), ys = whole(kept_ys, true);
    const Tensors values = part(ys, 0, n_values_);
    const std::vector<size_t> at = inexact_among(xs), of = inexact_among(values);
    const Function pull = [&](const Tensors& us) {
      return chosen(with_zeros(apply_rule(xs, ys, with_zeros(placed(us, of, n_values_), values)), xs), at);
    };
    tangents = chosen(tangents, at);
    Tensors out = placed(transposed(pull, chosen(values, of), tangents), of, n_values_);
    if (ys.size() == n_values_) return out;
    const Tensors extra = jvp(own_residuals(xs, at, ys.size()), chosen(xs, at), tangents).tangents;
    out.insert(out.end(), extra.begin(), extra.end());
    for (size_t k = 0; k < out.size(); ++k)
      if (!is_inexact(ys[k].dtype())) out[k] = {};
    return out;
  }

 private:
  /// What a tensor is, without its elements.
  struct Like {
    Dims sizes;
    DType dtype;
    Device device;
  };
  static std::vector<Like> likes(const Tensors& ts) {
    std::vector<Like> out;
    for (const Tensor& t : ts) out.push_back({t.sizes(), t.dtype(), t.device()});
    return out;
  }
  /// With a stand-in of the same type for what no rule reads: nobody asks for its one element.
  Tensors whole(Tensors kept, bool results) const {
    const std::vector<Like>& like = results ? values_ : xs_;
    for (size_t i = 0; i < kept.size() && i < like.size(); ++i) {
      if (kept[i].defined()) continue;
      const Dims strides(like[i].sizes.size(), 0);
      kept[i] =
          make_view_unchecked(make_tensor({}, like[i].dtype, like[i].device), like[i].sizes, strides, 0);
    }
    return kept;
  }

  struct Source {
    enum Where : uint8_t { Argument, Result } where;
    size_t index;
  };
  struct Layout {
    size_t n_values = 0, n_results = 0;
    std::vector<Source> from;
    std::vector<Like> xs, values;
  };

  static Source source(const Tensor& r, const Tensors& xs, const Tensors& values, size_t next) {
    for (size_t i = 0; i < xs.size(); ++i)
      if (r.is_same(xs[i])) return {Source::Argument, i};
    for (size_t k = 0; k < values.size(); ++k)
      if (r.is_same(values[k])) return {Source::Result, k};
    return {Source::Result, next};
  }

  /// The first run says it; later ones (at other levels, for derivatives of residuals) must agree.
  void keep(Layout layout) {
    const std::lock_guard lock(mutex_);
    const auto same = [](const Source& a, const Source& b) {
      return a.where == b.where && a.index == b.index;
    };
    LAMELLA_CHECK(
        !known_ || (layout.n_values == n_values_ && std::ranges::equal(layout.from, from_, same)), Value,
        "{}: the function gave {} values and {} residuals, expected {} and {}, as when it ran first", name(),
        layout.n_values, layout.from.size(), n_values_, from_.size());
    if (known_) return;
    n_values_ = layout.n_values, n_results_ = layout.n_results;
    from_ = std::move(layout.from);
    xs_ = std::move(layout.xs), values_ = std::move(layout.values);
    known_ = true;
  }

  Tensors apply_rule(const Tensors& xs, const Tensors& ys, const Tensors& cotangents) {
    Tensors residuals;
    for (const Source& s : from_)
      residuals.push_back(s.where == Source::Argument ? xs[s.index] : ys[s.index]);
    Tensors out = watched(residuals, "rule", "residual", [&] {
      return watched(cotangents, "rule", "cotangent",
                     [&] { return given(rule_, name(), "backward")(residuals, cotangents); });
    });
    check_rule(out, xs, "cotangent", "argument");
    return out;
  }

  /// The results behind the values as functions of the inexact arguments.
  Function own_residuals(const Tensors& xs, const std::vector<size_t>& at, size_t n) {
    return [this, &xs, at, n](const Tensors& some) {
      Tensors full = xs;
      for (size_t k = 0; k < at.size(); ++k) full[at[k]] = some[k];
      const ScopedRandomState as_then(random_);  // it draws what it drew
      return part(values_and_residuals(full), n_values_, n - n_values_);
    };
  }

  AuxFunction forward_;
  BackwardRule rule_;
  RandomState random_;
  std::mutex mutex_;
  bool known_ = false;
  size_t n_values_ = 0, n_results_ = 0;
  std::vector<Source> from_;
  std::vector<Like> xs_, values_;
};

class CustomJvp final : public Custom {
 public:
  CustomJvp(const Function& f, const ForwardRule& rule, const Tensors& xs)
      : Custom("custom_jvp", xs), f_(f), rule_(rule) {}

  Tensors values_and_residuals(const Tensors& xs) override {
    Tensors values = watched(xs, "function", "argument", [&] { return f_(xs); });
    check_defined(values, "value");
    return values;
  }
  Tensors pushforward(const Tensors& xs, const Tensors& ys, Tensors tangents) override {
    tangents = with_zeros(std::move(tangents), xs);
    Tensors out = watched(xs, "rule", "primal", [&] {
      return watched(ys, "rule", "value", [&] {
        return watched(tangents, "rule", "tangent",
                       [&] { return given(rule_, name(), "rule")(xs, ys, tangents); });
      });
    });
    check_rule(out, ys, "tangent", "value");
    return out;
  }
  Tensors backward(const Tensors& xs, const Tensors& ys, Tensors cotangents) override {
    const std::vector<size_t> at = inexact_among(xs), of = inexact_among(ys);
    const Function push = [&](const Tensors& ts) {
      return chosen(with_zeros(pushforward(xs, ys, placed(ts, at, xs.size())), ys), of);
    };
    return placed(transposed(push, chosen(xs, at), chosen(cotangents, of)), at, xs.size());
  }

 private:
  Function f_;
  ForwardRule rule_;
};

void define(std::string_view schema, std::string_view doc) {
  OpTable::add({.schema = schema,
                .shape = ShapeClass::Other,
                .composite =
                    [](Frame& f) {
                      const TensorSpan xs = f.tensors(3);
                      *f.list = (*f.arg<FunctionRef>(0))(Tensors(xs.begin(), xs.end()));
                    },
                .jvp = wrt("xs", saves("push", "xs", "result"),
                           [](TensorSpan ts, FunctionRef push, TensorSpan xs, TensorSpan ys) {
                             return (*push)(joined(xs, ys, ts));
                           }),
                .vjp = wrt("xs", saves("pull", "xs", "result"),
                           [](TensorSpan us, FunctionRef pull, TensorSpan xs, TensorSpan ys) {
                             return (*pull)(joined(xs, ys, us));
                           }),
                .properties = kAmbient | kTestOnly,
                .samples = [](Draw&) { return Values{}; },
                .doc = doc});
}

[[maybe_unused]] const bool installed = [] {
  add_builtin_operators([] {
    define("custom_vjp(Function f, Rule push, Rule pull, Tensor[] xs) -> Tensor[]",
           "f(xs), with a pullback by the user; transforms/custom.h.");
    define("custom_jvp(Function f, Rule push, Rule pull, Tensor[] xs) -> Tensor[]",
           "f(xs), with a pushforward by the user; transforms/custom.h.");
  });
  return true;
}();

/// While a function with rules is called: what its own nodes have to keep.
class KeptForRules final : public ListsRead {
 public:
  KeptForRules(const Op& op, const Custom& custom)
      : op_(op), custom_(custom), saved_(std::exchange(asked_of_tapes.lists_read, this)) {}
  ~KeptForRules() { asked_of_tapes.lists_read = saved_; }
  KeptForRules(const KeptForRules&) = delete;
  bool reads(const Op& op, bool results, size_t k) const override {
    return &op != &op_ || custom_.reads(results, k);
  }

 private:
  const Op& op_;
  const Custom& custom_;
  const ListsRead* saved_;
};

Tensors called(const OpHandle& op, const std::shared_ptr<Custom>& custom, const Tensors& xs) {
  for (size_t i = 0; i < xs.size(); ++i)
    LAMELLA_CHECK(xs[i].defined(), Undefined,
                  "{}: argument {} is an undefined tensor; expected a defined one", (*op).name, i);
  const auto method = [&](Tensors (Custom::*run)(const Tensors&)) {
    return std::make_shared<const Function>(
        [custom, run](const Tensors& all) { return ((*custom).*run)(all); });
  };
  const FunctionRef f = method(&Custom::run), push = method(&Custom::push), pull = method(&Custom::pull);
  const TensorSpan span(xs);
  const void* const args[] = {&f, &push, &pull, &span};
  Tensor unused;
  Tensors results;
  Frame frame{&*op, args, &unused, &results};
  {
    const KeptForRules kept(*frame.op, *custom);
    call(frame);
  }
  results.resize(custom->values_among(results.size()));
  return results;
}

}  // namespace

Function custom_vjp(AuxFunction forward, BackwardRule backward) {
  return [forward = given(std::move(forward), "custom_vjp", "forward"),
          backward = std::move(backward)](const Tensors& xs) {
    static constinit const OpHandle op("custom_vjp");
    return called(op, std::make_shared<CustomVjp>(forward, backward, xs), xs);
  };
}

Function custom_jvp(Function f, ForwardRule rule) {
  return [f = given(std::move(f), "custom_jvp"), rule = std::move(rule)](const Tensors& xs) {
    static constinit const OpHandle op("custom_jvp");
    return called(op, std::make_shared<CustomJvp>(f, rule, xs), xs);
  };
}

}  // namespace lamella
