// Linear maps by transposing pullbacks, which are linear in the cotangent.
#include "lamella/transforms/linearize.h"

#include <algorithm>
#include <numeric>

#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/transforms/argnums.h"
#include "lamella/transforms/jvp.h"

namespace lamella {

namespace {
/// `given` as a map takes them: undefined ones stand for zero.
Tensors filled(const Tensors& given, const Tensors& like, std::string_view what, std::string_view arg) {
  LAMELLA_CHECK(given.size() == like.size(), Shape, "{}: got {} {}, expected {}", what, given.size(),
                Argument{format("{}s", arg)}, like.size());
  Tensors out;
  for (size_t i = 0; i < given.size(); ++i) {
    const Tensor &t = given[i], &x = like[i];
    out.push_back(t.defined() ? t : zeros_like(x));
    if (!t.defined()) continue;
    LAMELLA_CHECK(t.dtype() == x.dtype(), DType, "{}: {} is {}, expected {}", what, format("{} {}", arg, i),
                  t, x);
    LAMELLA_CHECK(std::ranges::equal(t.sizes(), x.sizes()), Shape, "{}: {} is {}, expected {}", what,
                  format("{} {}", arg, i), t, x);
    LAMELLA_CHECK(t.device() == x.device(), Device, "{}: {} is on {}, expected {}", what,
                  format("{} {}", arg, i), name(t.device()), name(x.device()));
  }
  return out;
}

Tensors zeros_of(const Tensors& like) {
  Tensors out;
  for (const Tensor& t : like) out.push_back(zeros_like(t));
  return out;
}

std::vector<size_t> inexact_of(const Tensors& ts) {
  std::vector<size_t> out;
  for (size_t i = 0; i < ts.size(); ++i)
    if (is_inexact(ts[i].dtype())) out.push_back(i);
  return out;
}

std::vector<int> all_of(const Tensors& xs) {
  std::vector<int> out(xs.size());
  std::iota(out.begin(), out.end(), 0);
  return out;
}

/// Value and gradients of f, apart.
HessianProduct first_order(const Tensors& value_and_gradients) {
  return {value_and_gradients[0], {value_and_gradients.begin() + 1, value_and_gradients.end()}, {}};
}
}  // namespace

Linearized linearize(const Function& f, const Tensors& primals) {
  given(f, "linearize");
  check_inputs(primals, "linearize");
  const VjpResult r = vjp(f, primals);
  const std::vector<size_t> at = inexact_of(r.values);
  // u -> J^H u is linear, so where it is differentiated does not matter, and its own pullback is t -> J t.
  const Function pullback = [&](const Tensors& us) {
    return r.pullback(replaced(Tensors(r.values.size()), at, us));
  };
  const Pullback push = vjp(pullback, zeros_of(taken(r.values, at))).pullback;
  return {r.values, [push, at, primals, values = r.values](const Tensors& tangents) {
            Tensors out =
                replaced(Tensors(values.size()), at, push(filled(tangents, primals, "linearize", "tangent")));
            for (size_t k = 0; k < out.size(); ++k)
              if (!out[k].defined()) out[k] = zeros_like(values[k]);  // of integers
            return out;
          }};
}

Function linear_transpose(const Function& f, const Tensors& inputs) {
  given(f, "linear_transpose");
  check_inputs(inputs, "linear_transpose");
  const VjpResult r = vjp(f, zeros_of(inputs));
  return [pullback = r.pullback, values = r.values](const Tensors& cotangents) {
    Tensors us = filled(cotangents, values, "linear_transpose", "cotangent");
    for (Tensor& u : us) u = conj(u);
    Tensors out = pullback(us);
    for (Tensor& t : out) t = conj(t);
    return out;
  };
}

HessianProduct hvp(const ScalarFunction& f, const Tensors& xs, const Tensors& vs) {
  const JvpResult r = jvp(value_and_grad(given(f, "hvp"), all_of(xs)), xs, vs);
  HessianProduct out = first_order(r.values);
  out.products.assign(r.tangents.begin() + 1, r.tangents.end());
  return out;
}

HessianProduct vhp(const ScalarFunction& f, const Tensors& xs, const Tensors& vs) {
  VjpResult r = vjp(value_and_grad(given(f, "vhp"), all_of(xs)), xs);
  HessianProduct out = first_order(r.values);
  Tensors cotangents = filled(vs, xs, "vhp", "vector");
  cotangents.insert(cotangents.begin(), Tensor());
  out.products = std::move(r.pullback)(cotangents);
  return out;
}

}  // namespace lamella
