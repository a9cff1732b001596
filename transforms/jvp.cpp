// The jvp level: a value and its tangent travel together.
#include "lamella/transforms/jvp.h"

#include <algorithm>

#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/transforms/argnums.h"
#include "lamella/transforms/machine/deriving.h"
#include "lamella/transforms/tapes/steps.h"

namespace lamella {

namespace {

struct JvpWrapper : DerivingWrapper<Tensor> {
  Tensor companion() const override { return derived; }
};
static_assert(sizeof(JvpWrapper) <= TensorImpl::kSuffix);

class Jvp final : public DerivingLevel<Jvp, JvpWrapper> {
 public:
  std::string_view name() const override { return "jvp"; }
  static bool carries(const Tensor& tangent) { return tangent.defined(); }
  static Tensor kept(const Tensor& tangent) { return lamella::fixed(tangent); }

 private:
  friend DerivingLevel;

  /// A tangent for each result; undefined ones are zero.
  class Parts {
   public:
    explicit Parts(int n) : n_(n) { std::uninitialized_value_construct_n(all(), n); }
    ~Parts() { std::destroy_n(all(), n_); }
    Parts(const Parts&) = delete;
    Tensor& operator[](int k) { return all()[k]; }
    Tensor* all() { return reinterpret_cast<Tensor*>(bytes_); }

   private:
    int n_;
    alignas(Tensor) unsigned char bytes_[kMaxResults * sizeof(Tensor)];
  };

  void plain(Frame& f) {
    const Op& op = *f.op;
    const void* args[kMaxArity];
    for (int i = 0; i < op.arity; ++i) args[i] = f.args[i];
    const Tensor* tangents[kMaxArity];
    for (const uint8_t i : op.tensor_params) {
      tangents[i] = nullptr;
      const JvpWrapper* w = f.args[i] ? wrapper(f, f.tensor(i)) : nullptr;
      if (!w) continue;
      args[i] = &w->value;
      if (w->derived.defined()) tangents[i] = &w->derived;
    }
    Frame lower{&op, args, f.results, f.list};
    lamella::call(lower);
    Parts sums(op.schema.n_results);
    for (const uint8_t i : op.tensor_params)
      if (tangents[i]) push(lower, i, {tangents[i], 1}, sums);
    finish(f, sums);
  }

  Tensor of_view(Frame& lower, int at, const JvpWrapper& w) const {
    Parts sums(1);
    push(lower, at, {&w.derived, 1}, sums);
    return std::move(sums[0]);
  }

  /// By parameter, entry by entry; none for what carries no tangents.
  void unwrap_into(const Frame& f, FrameCopy& values, Tensors (&tangents)[kMaxArity]) const {
    unwrap(f, values, [&](int i, int element, const Tensor& tangent) {
      tangents[i].resize(tensors_at(f, i).size());
      tangents[i][size_t(element)] = tangent;
    });
  }

  void with_lists(Frame& f) {
    const Op& op = *f.op;
    FrameCopy values(f);
    Tensors tangents[kMaxArity];
    unwrap_into(f, values, tangents);
    Frame lower = values.into(f.results, f.list);
    lamella::call(lower);
    Parts sums(op.schema.n_results);
    for (const uint8_t i : op.tensor_params)
      if (!tangents[i].empty()) push(lower, i, tangents[i], sums);
    finish(f, sums);
  }

  /// Such operators have one list of tensors, and a formula for it.
  void with_functions(Frame& f) override {
    FrameCopy values(f);
    Tensors tangents[kMaxArity];
    unwrap_into(f, values, tangents);
    Frame lower = values.into(f.results, f.list);
    lamella::call(lower);
    for (const uint8_t i : f.op->tensor_params) {
      if (tangents[i].empty()) continue;
      const BoundFormula& formula = *f.op->jvp_of(i);
      Tensors parts = for_results(formula.many({tangents[i], FrameSaves(lower, formula).data()}), *f.op, i,
                                  f.list->size());
      for (size_t k = 0; k < parts.size(); ++k)
        if (Tensor& result = (*f.list)[k]; parts[k].defined() && is_inexact(result.dtype()))
          result = wrap(std::move(result), std::move(parts[k]));
    }
  }

  /// Adds the part of input `i` to the tangents of the results.
  void push(Frame& lower, int i, TensorSpan tangent, Parts& sums) const {
    const Op& op = *lower.op;
    const BoundFormula* formula = op.jvp_of(i);
    const int n = op.schema.n_results;
    if (!formula || (n == 1 && !is_inexact(lower.results[0].dtype()))) return;
    if (n == 1 && !sums[0].defined()) return apply(*formula, lower, tangent, sums);
    Parts parts(n);
    apply(*formula, lower, tangent, parts);
    for (int k = 0; k < n; ++k) {
      if (!parts[k].defined()) continue;
      if (sums[k].defined()) sums[k] = add(sums[k], parts[k]);
      else sums[k] = std::move(parts[k]);
    }
  }

  void apply(const BoundFormula& formula, Frame& lower, TensorSpan tangent, Parts& parts) const {
    const int n = lower.op->schema.n_results;
    if (formula.linear) {
      apply_linear(lower, formula.input, tangent, parts.all());
    } else if (formula.one) {
      parts[0] = formula.one({tangent, FrameSaves(lower, formula).data()});
    } else {
      Tensors all = for_results(formula.many({tangent, FrameSaves(lower, formula).data()}), *lower.op,
                                formula.input, size_t(n));
      for (int k = 0; k < n; ++k) parts[k] = std::move(all[size_t(k)]);
    }
    for (int k = 0; k < n; ++k)
      if (parts[k].defined()) fit_tangent(parts[k], lower.results[k], *lower.op, formula.input);
  }

  static void apply_linear(const Frame& lower, int i, TensorSpan tangent, Tensor* parts) {
    const Op& op = *lower.op;
    const void* args[kMaxArity];
    for (int k = 0; k < op.arity; ++k) args[k] = lower.args[k];
    Tensors list;
    TensorSpan span;
    if (is_list(op, i)) {
      for (size_t k = 0; k < tangent.size(); ++k)
        list.push_back(tangent[k].defined() ? tangent[k] : zeros_like(lower.tensors(i)[k]));
      span = TensorSpan(list);
      args[size_t(i)] = &span;
    } else {
      args[size_t(i)] = &tangent[0];
    }
    Frame call{&op, args, parts};
    lamella::call(call);
  }

  /// Tangents have the result's type: broadcast inputs and promoted dtypes are brought up to it.
  static void fit_tangent(Tensor& part, const Tensor& result, const Op& op, int input) {
    const DType from = part.dtype(), to_dtype = result.dtype();
    if (from != to_dtype && is_complex(from) && !is_complex(to_dtype)) part = contiguous(real(part));
    if (from != to_dtype) part = to(part, to_dtype);
    if (!part.impl()->has_shape_of(*result.impl())) part = expanded_tangent(part, result, op, input);
  }

  void finish(Frame& f, Parts& sums) {
    if (f.op->is_view() && f.op->jvp.empty()) return constant_view(f);
    for (int k = 0; k < f.op->schema.n_results; ++k) {
      if (!sums[k].defined() || !is_inexact(f.results[k].dtype())) continue;
      f.results[k] = wrap(std::move(f.results[k]), std::move(sums[k]));
    }
  }
};

}  // namespace

JvpResult jvp_has_aux(const AuxFunction& f, const Tensors& primals, const Tensors& tangents) {
  given(f, "jvp");
  LAMELLA_CHECK(primals.size() == tangents.size(), Shape,
                "jvp: got {} {} and {} tangents; expected as many of each", primals.size(),
                Argument{"primals"}, tangents.size());
  Jvp transform;
  for (size_t i = 0; i < primals.size(); ++i) {
    const Tensor &x = primals[i], &t = tangents[i];
    LAMELLA_CHECK(x.defined(), Undefined, "jvp: primal {} is an undefined tensor; expected a defined one", i);
    if (!t.defined()) continue;
    LAMELLA_CHECK(is_inexact(x.dtype()), DType, "jvp: primal {} is {}, expected floating point or complex", i,
                  x);
    check_direction("jvp", "tangent", i, t, x, "its primal");
  }
  const OpenLevel open(transform);
  Tensors wrapped;
  for (size_t i = 0; i < primals.size(); ++i)
    wrapped.push_back(transform.wrap_argument(primals[i], tangents[i]));
  const auto [ys, aux] = f(wrapped);
  JvpResult out;
  const Below below(open.level.key());
  for (const Tensor& y : ys) {
    LAMELLA_CHECK(y.defined(), Undefined,
                  "jvp: the function returned an undefined tensor; expected defined ones");
    Tensor value;
    Tensor tangent = transform.split(y, value);
    out.values.push_back(value);
    out.tangents.push_back(tangent.defined() ? tangent : zeros_like(value));
  }
  for (const Tensor& a : aux) {
    out.aux.emplace_back();
    if (a.defined()) transform.split(a, out.aux.back());
  }
  return out;
}

JvpResult jvp(const Function& f, const Tensors& primals, const Tensors& tangents) {
  return jvp_has_aux([&f = given(f, "jvp")](const Tensors& xs) { return std::pair(f(xs), Tensors{}); },
                     primals, tangents);
}

}  // namespace lamella
