// What the levels of derivatives share: their wrappers hold a value and what derives from it.
#pragma once

#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/transforms/machine/interpreter.h"

LAMELLA_API_BEGIN
namespace lamella {

/// `Derived`: where the value comes from on a tape, or its tangent; empty when it carries no derivatives.
template <class D> struct DerivingWrapper : ReplacingWrapper {
  using Derived = D;
  Derived derived;
  std::string str() const override { return format(" in {} of {}", live_key_name(key), lamella::str(value)); }
};

/// A level whose wrappers are `W`. `Self` has what runs a functional call: plain(frame), with_lists(frame),
/// also for lists of results, and of_view(lower, at, w), what derives from the view that the call `lower` of
/// `w`'s value gave; besides carries(derived), whether it is not empty, and kept(derived), for a header that
/// later writes do not reach.
template <class Self, class W> class DerivingLevel : public Interpreter {
 public:
  using Derived = typename W::Derived;
  TransformKind kind() const override { return TransformKind::Carried; }

  Tensor wrap(Tensor value, Derived derived) const {
    const TensorImpl& shape = *value.impl();  // the wrapper keeps it alive
    Tensor t = make_wrapper<W>(std::move(value), key_, serial_, shape);
    wrapper_in(t)->derived = std::move(derived);
    return t;
  }
  Tensor wrap_argument(const Tensor& value, Derived derived) const {
    Tensor t = wrap(value, std::move(derived));
    wrapper_in(t)->argument = true;
    return t;
  }
  /// Splits a result into its value and what derives from it; that is empty when it does not depend on the
  /// arguments.
  Derived split(const Tensor t, Tensor& value) const {
    static const Frame kReturn{nullptr, nullptr, nullptr};
    value = t;
    if (!wraps(t) || !wrapper_at<W>(t, key_, serial_)) return {};
    const W* w = wrapper(kReturn, t);
    value = w->value;
    return w->derived;
  }

  /// What a function gives its caller: values, what derives from each, and auxiliary values.
  struct Returned {
    Tensors values, aux;
    std::vector<Derived> derived;
  };
  template <class F> Returned run(const F& f, const Tensors& wrapped, std::string_view what) const {
    auto [values, aux] = f(wrapped);
    Returned out{std::move(values), std::move(aux), {}};
    const Below below(key_);
    for (Tensor& y : out.values) {
      LAMELLA_CHECK(y.defined(), Undefined,
                    "{}: the function returned an undefined tensor; expected defined ones", what);
      out.derived.push_back(split(y, y));
    }
    for (Tensor& a : out.aux)
      if (a.defined()) split(a, a);
    return out;
  }

  std::unique_ptr<Interpreter> copy() const override { return std::make_unique<Self>(self()); }
  Left left(const Tensor& t) const override {
    Left out;
    out.depends = Self::carries(split(t, out.value));
    return out;
  }
  Tensor fixed(const Tensor& t) const override {
    Tensor value;
    Derived derived = split(t, value);
    return wrap(lamella::fixed(value), Self::kept(std::move(derived)));
  }

 protected:
  void functional(Frame& f) override {
    const Op& op = *f.op;
    if (op.composite) [[unlikely]] {
      const Reaching reaching(key_);
      return op.composite(f);
    }
    if (op.is_view()) return view(f);
    op.simple ? self().plain(f) : self().with_lists(f);
  }
  void with_functions(Frame& f) override { self().with_lists(f); }
  void assign(const Frame& f, const Tensor& target, const Tensor& value) override {
    replace_value(f, target, value, key_, serial_, take);
  }
  Wrapper* shell(const Tensor& plain) override { return make_shell<W>(plain, plain); }

  static W* wrapper_in(const Tensor& t) { return static_cast<W*>(t.impl()->wrap); }
  W* wrapper(const Frame& f, const Tensor& t) const {
    return static_cast<W*>(current_wrapper(f, t, key_, serial_, take));
  }
  /// Values of wrapped arguments, into `values`; each(param, element, derived) for those that carry
  /// derivatives.
  template <class Each> void unwrap(const Frame& f, FrameCopy& values, Each&& each) const {
    for_each_tensor(f, [&](const Tensor& t, int i, int element) {
      const W* w = wrapper(f, t);
      if (!w) return;
      values.set(i, element, w->value);
      if (Self::carries(w->derived)) each(i, element, w->derived);
    });
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }

  static void take(const Tensor& to, const Tensor& from) {
    W* t = wrapper_in(to);
    const bool wrapped = from.keys() >> t->key & 1;
    t->value = wrapped ? wrapper_in(from)->value : from;
    t->derived = wrapped ? wrapper_in(from)->derived : Derived{};
  }

  /// A view of what the level wraps is wrapped, with or without derivatives: writes must reach it.
  [[gnu::noinline]] void view(Frame& f) {
    const int at = f.op->tensor_params[0];
    const Tensor& x = f.tensor(at);
    W* w = wrapper(f, x);
    FrameCopy values(f);
    values.set(at, lies_as_seen(x, w->value) ? w->value : contiguous(w->value));
    Frame lower = values.into(f.results);
    lamella::call(lower);
    Derived derived = Self::carries(w->derived) ? self().of_view(lower, at, *w) : Derived{};
    f.results[0] = wrap(std::move(f.results[0]), std::move(derived));
    note_view(f, f.results[0], key_, serial_);
  }
};

}  // namespace lamella
LAMELLA_API_END
