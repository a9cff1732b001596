// The jvp level: a value and its tangent travel together.
#include "lamella/transforms/jvp.h"

#include <algorithm>

#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/machine/interpreter.h"
#include "lamella/transforms/machine/tape.h"

namespace lamella {

namespace {

struct JvpWrapper : ReplacingWrapper {
  Tensor tangent;  ///< undefined: zero
  Tensor companion() const override { return tangent; }
  std::string str() const override { return format(" in {} of {}", live_key_name(key), lamella::str(value)); }
};
static_assert(sizeof(JvpWrapper) <= TensorImpl::kSuffix);

JvpWrapper* jvp_wrapper(const Tensor& t) { return static_cast<JvpWrapper*>(t.impl()->wrap); }

class Jvp final : public Interpreter {
 public:
  TransformKind kind() const override { return TransformKind::Carried; }
  std::string_view name() const override { return "jvp"; }

  Tensor wrap(Tensor value, Tensor tangent) const {
    const TensorImpl& shape = *value.impl();  // the wrapper keeps it alive
    Tensor t = make_wrapper<JvpWrapper>(std::move(value), key_, serial_, shape);
    jvp_wrapper(t)->tangent = std::move(tangent);
    return t;
  }
  Tensor wrap_argument(const Tensor& value, const Tensor& tangent) const {
    Tensor t = wrap(value, tangent);
    jvp_wrapper(t)->argument = true;
    return t;
  }
  /// Splits a result into value and tangent (undefined when it does not depend on the primals).
  Tensor split(const Tensor& t, Tensor& value) const {
    static const Frame kReturn{nullptr, nullptr, nullptr};
    value = t;
    if (!wraps(t) || !wrapper_at<JvpWrapper>(t, key_, serial_)) return {};
    const JvpWrapper* w = wrapper(kReturn, t);
    value = w->value;
    return w->tangent;
  }

  std::unique_ptr<Interpreter> copy() const override { return std::make_unique<Jvp>(*this); }
  Left left(const Tensor& t) const override {
    Left out;
    out.depends = split(t, out.value).defined();
    return out;
  }
  Tensor fixed(const Tensor& t) const override {
    Tensor value;
    const Tensor tangent = split(t, value);
    return wrap(lamella::fixed(value), lamella::fixed(tangent));
  }

 protected:
  void functional(Frame& f) override {
    const Op& op = *f.op;
    if (op.composite) {
      const Reaching reaching(key_);
      return op.composite(f);
    }
    op.is_view() ? view(f) : op.simple ? plain(f) : with_lists(f);
  }

  void assign(const Frame& f, const Tensor& target, const Tensor& value) override {
    replace_value(f, target, value, key_, serial_, take);
  }

  Wrapper* shell(const Tensor& plain) override { return make_shell<JvpWrapper>(plain, plain); }

 private:
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

  JvpWrapper* wrapper(const Frame& f, const Tensor& t) const {
    return static_cast<JvpWrapper*>(current_wrapper(f, t, key_, serial_, take));
  }

  static void take(const Tensor& to, const Tensor& from) {
    JvpWrapper* t = jvp_wrapper(to);
    const bool wrapped = from.keys() >> t->key & 1;
    t->value = wrapped ? jvp_wrapper(from)->value : from;
    t->tangent = wrapped ? jvp_wrapper(from)->tangent : Tensor();
  }

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
      if (w->tangent.defined()) tangents[i] = &w->tangent;
    }
    Frame lower{&op, args, f.results, f.list};
    lamella::call(lower);
    Parts sums(op.schema.n_results);
    for (const uint8_t i : op.tensor_params)
      if (tangents[i]) push(lower, i, {tangents[i], 1}, sums);
    finish(f, sums);
  }

  /// A view of what the level wraps is wrapped, with or without a tangent: writes must reach it.
  [[gnu::noinline]] void view(Frame& f) {
    const int at = f.op->tensor_params[0];
    const Tensor& x = f.tensor(at);
    const JvpWrapper* w = wrapper(f, x);
    FrameCopy values(f);
    values.set(at, lies_as_seen(x, w->value) ? w->value : contiguous(w->value));
    Frame lower = values.into(f.results);
    lamella::call(lower);
    Parts sums(1);
    if (w->tangent.defined()) push(lower, at, {&w->tangent, 1}, sums);
    f.results[0] = wrap(std::move(f.results[0]), std::move(sums[0]));
    note_view(f, f.results[0], key_, serial_);
  }

  void with_lists(Frame& f) {
    const Op& op = *f.op;
    FrameCopy values(f);
    Tensors tangents[kMaxArity];
    for_each_tensor(f, [&](const Tensor& t, int i, int element) {
      const JvpWrapper* w = wrapper(f, t);
      if (!w) return;
      values.set(i, element, w->value);
      if (!w->tangent.defined()) return;
      tangents[i].resize(tensors_at(f, i).size());
      tangents[i][size_t(element)] = w->tangent;
    });
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
    Tensors tangents;
    int list = -1;
    for_each_tensor(f, [&](const Tensor& t, int i, int element) {
      const JvpWrapper* w = wrapper(f, t);
      if (!w) return;
      values.set(i, element, w->value);
      if (!w->tangent.defined()) return;
      list = i;
      tangents.resize(tensors_at(f, i).size());
      tangents[size_t(element)] = w->tangent;
    });
    Frame lower = values.into(f.results, f.list);
    lamella::call(lower);
    if (tangents.empty()) return;
    const BoundFormula& formula = *f.op->jvp_of(list);
    Tensors parts = formula.many({tangents, FrameSaves(lower, formula).data()});
    for (size_t k = 0; k < parts.size(); ++k)
      if (Tensor& result = (*f.list)[k]; parts[k].defined() && is_inexact(result.dtype()))
        result = wrap(std::move(result), std::move(parts[k]));
  }

  /// Adds the part of input `i` to the tangents of the results.
  void push(Frame& lower, int i, TensorSpan tangent, Parts& sums) {
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

  void apply(const BoundFormula& formula, Frame& lower, TensorSpan tangent, Parts& parts) {
    const int n = lower.op->schema.n_results;
    if (formula.linear) {
      apply_linear(lower, formula.input, tangent, parts.all());
    } else if (formula.one) {
      parts[0] = formula.one({tangent, FrameSaves(lower, formula).data()});
    } else {
      Tensors all = formula.many({tangent, FrameSaves(lower, formula).data()});
      for (int k = 0; k < n; ++k) parts[k] = std::move(all[size_t(k)]);
    }
    for (int k = 0; k < n; ++k)
      if (parts[k].defined()) fit_tangent(parts[k], lower.results[k]);
  }

  void apply_linear(const Frame& lower, int i, TensorSpan tangent, Tensor* parts) {
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
  static void fit_tangent(Tensor& part, const Tensor& result) {
    const DType from = part.dtype(), to_dtype = result.dtype();
    if (from != to_dtype && is_complex(from) && !is_complex(to_dtype)) part = contiguous(real(part));
    if (from != to_dtype) part = to(part, to_dtype);
    if (!part.impl()->has_shape_of(*result.impl())) part = expand(part, result.sizes());
  }

  void finish(Frame& f, Parts& sums) {
    if (f.op->is_view() && f.op->jvp.empty()) return constant_view(f);
    for (int k = 0; k < f.op->schema.n_results; ++k) {
      if (!sums[k].defined() || !is_inexact(f.results[k].dtype())) continue;
      f.results[k] = wrap(std::move(f.results[k]), std::move(sums[k]));
    }
  }

  /// A view without a derivative sees what is written to its base.
  [[gnu::noinline]] void constant_view(Frame& f) {
    f.results[0] = wrap(std::move(f.results[0]), {});
    note_view(f, f.results[0], key_, serial_);
  }
};

}  // namespace

JvpResult jvp_has_aux(const AuxFunction& f, const Tensors& primals, const Tensors& tangents) {
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
    LAMELLA_CHECK(x.dtype() == t.dtype(), DType, "jvp: tangent {} is {}, expected {}", i, t, x);
    LAMELLA_CHECK(std::ranges::equal(x.sizes(), t.sizes()), Shape, "jvp: tangent {} is {}, expected {}", i, t,
                  x);
    LAMELLA_CHECK(x.device() == t.device(), Device, "jvp: tangent {} is on {}, expected {} as its primal", i,
                  name(t.device()), name(x.device()));
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
  return jvp_has_aux([&f](const Tensors& xs) { return std::pair(f(xs), Tensors{}); }, primals, tangents);
}

}  // namespace lamella
