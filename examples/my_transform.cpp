// A carried transform of one's own, and laws about it: beside each value goes its shadow, what the same
// program computes in f64 or c128. `lamella verify --load build/release/plugins/my_transform.so` asks the
// laws of all operators.
#include "lamella/plugin.h"
#include "lamella/transforms/machine/interpreter.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/law.h"

namespace {
using namespace lamella;

Tensor widened(const Tensor& t) {
  if (!t.defined() || !is_inexact(t.dtype())) return t;
  const DType wide = is_complex(t.dtype()) ? DType::C128 : DType::F64;
  return t.dtype() == wide ? t : to(t, wide);
}

/// What stands for a tensor at this level. Of type ReplacingWrapper, so that writes and views are followed.
struct ShadowWrapper : ReplacingWrapper {
  Tensor shadow;
  std::string str() const override { return format(" with a shadow of {}", live_key_name(key)); }
};
ShadowWrapper& wrapper_of(const Tensor& t) { return *static_cast<ShadowWrapper*>(t.impl()->wrap); }

class Shadow final : public Interpreter {
 public:
  TransformKind kind() const override { return TransformKind::Carried; }
  std::string_view name() const override { return "shadow"; }
  std::unique_ptr<Interpreter> copy() const override { return std::make_unique<Shadow>(*this); }

  Tensor wrap(Tensor value, Tensor shadow) const {
    const TensorImpl& shape = *value.impl();  // the wrapper keeps it alive
    Tensor t = make_wrapper<ShadowWrapper>(std::move(value), key_, serial_, shape);
    wrapper_of(t).shadow = std::move(shadow);
    return t;
  }
  /// Value and shadow of a result; what does not depend on the arguments is its own shadow.
  std::pair<Tensor, Tensor> split(const Tensor& t) const {
    static const Frame kReturn{nullptr, nullptr, nullptr};
    const ReplacingWrapper* const w = current_wrapper(kReturn, t, key_, serial_, take);
    if (!w) return {t, widened(t)};
    return {w->value, static_cast<const ShadowWrapper*>(w)->shadow};
  }
  Left left(const Tensor& t) const override { return {split(t).first}; }
  Tensor fixed(const Tensor& t) const override {
    const auto [value, shadow] = split(t);
    return wrap(lamella::fixed(value), lamella::fixed(shadow));
  }

 protected:
  /// Every operator twice, one level down: on the values, and on the shadows.
  void functional(Frame& f) override {
    if (f.op->composite) {  // its parts come here
      const Reaching reaching(key_);
      return f.op->composite(f);
    }
    FrameCopy values(f), shadows(f);
    for_each_tensor(f, [&](const Tensor& t, int param, int element) {
      if (!t.defined()) return;
      const auto [value, shadow] = split(t);
      const bool moved = f.op->is_view() && !lies_as_seen(t, value);
      values.set(param, element, moved ? contiguous(value) : value);
      shadows.set(param, element, f.op->is_view() ? contiguous(shadow) : shadow);
    });
    Tensor wide[kMaxResults];
    Tensors wide_list;
    Frame below = values.into(f.results, f.list), beside = shadows.into(wide, &wide_list);
    lamella::call(below);
    lamella::call(beside);
    const auto keep = [&](Tensor& result, const Tensor& shadow) {
      if (result.defined() && is_inexact(result.dtype())) result = wrap(std::move(result), widened(shadow));
    };
    if (f.op->schema.result_kind == ResultKind::TensorList)
      for (size_t k = 0; k < f.list->size(); ++k) keep((*f.list)[k], wide_list[k]);
    else
      for (int k = 0; k < f.op->schema.n_results; ++k) keep(f.results[k], wide[k]);
    if (f.op->is_view() && wraps(f.results[0])) note_view(f, f.results[0], key_, serial_);
  }
  void assign(const Frame& f, const Tensor& target, const Tensor& value) override {
    replace_value(f, target, value, key_, serial_, take);
  }
  Wrapper* shell(const Tensor& plain) override {
    auto* const w = make_shell<ShadowWrapper>(plain, plain);
    w->shadow = widened(plain);
    return w;
  }

 private:
  /// A write: `to` stands for what `from` is.
  static void take(const Tensor& to, const Tensor& from) {
    const bool wrapped = from.keys() >> wrapper_of(to).key & 1;
    wrapper_of(to).value = wrapped ? wrapper_of(from).value : from;
    wrapper_of(to).shadow = wrapped ? wrapper_of(from).shadow : widened(from);
  }
};

struct Shadowed {
  Tensors values, shadows;
};

/// The public function: enters a level, calls, leaves it.
Shadowed shadowed(const Function& f, const Tensors& xs) {
  Shadow transform;
  const OpenLevel open(transform);
  Tensors wrapped;
  for (const Tensor& x : xs) wrapped.push_back(transform.wrap(x, widened(x)));
  const Tensors ys = f(wrapped);
  const Below below(open.level.key());
  Shadowed out;
  for (const Tensor& y : ys) {
    const auto [value, shadow] = transform.split(y);
    out.values.push_back(value), out.shadows.push_back(shadow);
  }
  return out;
}

// Tests: laws of the transform, asked of every operator and drawn arguments.
using namespace lamella::verify;

bool applies(const Op& op) { return takes_tensors(op) && !op.has(kRandom) && inexact_arguments(op) > 0; }

/// Composites may round to their dtype inside, as layer_norm does: what they are made of is asked by itself.
bool applies_whole(const Op& op) { return applies(op) && !op.composite; }

Verdict judged(const Case& c, const Tensors& got, const Tensors& want) {
  const Finding difference = differs(got, want);
  if (difference.empty()) return Verdict::pass();
  return Verdict::fail(difference, cpp_declarations(c.args) + "  " + cpp_call(c.op, c.args) + ";\n");
}

Verdict values_are_unchanged(Case& c) {
  const Function f = c.function(c.inexact());
  const Tensors xs = c.values(c.inexact());
  return judged(c, shadowed(f, xs).values, f(xs));
}

Verdict shadows_are_wide_calls(Case& c) {
  const Function f = c.function(c.inexact());
  Tensors xs = c.values(c.inexact());
  const Tensors got = shadowed(f, xs).shadows;
  for (Tensor& x : xs) x = widened(x);
  Tensors want = f(xs);
  for (Tensor& y : want) y = widened(y);
  return judged(c, got, want);
}

Verdict shadows_in_lanes(Case& c) {
  const Function f = c.function(c.inexact());
  const Function shadow = [&](const Tensors& xs) { return shadowed(f, xs).shadows; };
  const Tensors xs = c.values(c.inexact());
  if (xs.empty()) return Verdict::discard();  // an empty list
  Tensors lanes, wide;
  for (const Tensor& x : xs) lanes.push_back(stack({x, x * 0.5}, 0));
  for (const Tensor& x : lanes) wide.push_back(widened(x));
  const InDims dims(xs.size(), 0);
  Tensors want = vmap(f, dims)(wide);
  for (Tensor& y : want) y = widened(y);
  return judged(c, vmap(shadow, dims)(lanes), want);
}
}  // namespace

LAMELLA_PLUGIN() {
  add_law({.number = 1021,
           .id = "shadow_keeps_values",
           .group = "shadow",
           .statement = "Under shadow an operator gives the bits that it gives without.",
           .applies = applies,
           .check = values_are_unchanged});
  add_law({.number = 1022,
           .id = "shadow_is_wide",
           .group = "shadow",
           .statement = "The shadow of a result is the operator's result for widened arguments.",
           .applies = applies_whole,
           .check = shadows_are_wide_calls});
  add_law({.number = 1023,
           .id = "shadow_in_lanes",
           .group = "shadow",
           .statement = "Under vmap a shadow is what vmap gives for widened lanes.",
           .applies = applies_whole,
           .check = shadows_in_lanes});
}
