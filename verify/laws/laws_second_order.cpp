// Second derivatives: every nesting of jvp and grad gives the Hessian of second differences.
#include <algorithm>
#include <quadmath.h>

#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/transforms/jacobian.h"
#include "lamella/transforms/linearize.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

bool oracle_both(const Op& op) { return both_ways(op) && stays_on_device(op); }

/// phi(x) = sum over results of Re<u, f(x)>, as a function of the tensors in slots.
ScalarFunction weighted(const Function& f, const Tensors& us) {
  return [f, us](const Tensors& xs) {
    const Tensors ys = f(xs);
    Tensor sum_of_all;
    for (size_t k = 0; k < ys.size(); ++k) {
      const Tensor term = sum(real(mul(ys[k], conj(us[k]))));
      sum_of_all = sum_of_all.defined() ? add(sum_of_all, term) : term;
    }
    return sum_of_all;
  };
}

Function gradient(const ScalarFunction& phi, size_t n) {
  std::vector<int> all;
  for (size_t k = 0; k < n; ++k) all.push_back(int(k));
  return grad(phi, all);
}

ScalarFunction along(const Function& f, const Tensors& vs) {  // x -> Re<f(x), v>
  return [f, vs](const Tensors& xs) {
    const Tensors gs = f(xs);
    Tensor out;
    for (size_t k = 0; k < gs.size(); ++k) {
      const Tensor term = sum(real(mul(gs[k], conj(vs[k]))));
      out = out.defined() ? add(out, term) : term;
    }
    return out;
  };
}

/// H v by one way to compute it.
struct SecondOrder {
  const char* name;
  Tensors product;
};

/// By the blocks d (d phi / d x_j) / d x_k.
Tensors hessian_times(const Function& phi, const Tensors& xs, const Tensors& vs) {
  JacobianOptions o{.argnums = {}};
  for (size_t k = 0; k < xs.size(); ++k) o.argnums.push_back(int(k));
  const Tensors blocks = hessian(phi, o)(xs);
  Tensors out;
  for (size_t j = 0; j < xs.size(); ++j) {
    const Tensor like = make_tensor(xs[j].sizes(), xs[j].dtype());
    Reals sums(size_t(like.numel()));
    for (size_t k = 0; k < xs.size(); ++k) {
      const Reals block = flatten({blocks[j * xs.size() + k]}), v = flatten({vs[k]});
      for (size_t row = 0; row < sums.size(); ++row)
        for (size_t i = 0; i < v.size(); ++i) sums[row] += block[row * v.size() + i] * v[i];
    }
    size_t at = 0;
    out.push_back(narrow(unflatten(sums, at, like), like.dtype()));
  }
  return out;
}

std::vector<SecondOrder> nestings(const ScalarFunction& phi, const Tensors& xs, const Tensors& vs) {
  const size_t n = xs.size();
  const Function phi_list = [phi](const Tensors& x) { return Tensors{phi(x)}; };
  const ScalarFunction slope = [phi_list, vs](const Tensors& x) { return jvp(phi_list, x, vs).tangents[0]; };
  std::vector<SecondOrder> out;
  out.push_back({"jvp of grad", jvp(gradient(phi, n), xs, vs).tangents});
  out.push_back({"grad of grad", gradient(along(gradient(phi, n), vs), n)(xs)});
  out.push_back({"grad of jvp", gradient(slope, n)(xs)});
  out.push_back({"hvp", hvp(phi, xs, vs).products});
  out.push_back({"vhp", vhp(phi, xs, vs).products});
  if (std::ranges::none_of(xs, [](const Tensor& x) { return is_complex(x.dtype()); }))
    out.push_back({"hessian times v", hessian_times(phi_list, xs, vs)});
  return out;
}

const char kSecondText[] =
    "  const auto dot = [](const Tensors& a, const Tensors& b) {\n"
    "    Tensor out = sum(real(mul(a[0], conj(b[0]))));\n"
    "    for (size_t k = 1; k < a.size(); ++k) out = add(out, sum(real(mul(a[k], conj(b[k])))));\n"
    "    return out;\n  };\n"
    "  const ScalarFunction phi = [&](const Tensors& xs) { return dot(f(xs), us); };\n"
    "  const Function g = grad(phi, argnums);\n"
    "  const Tensors jvp_of_grad = jvp(g, xs, vs).tangents;\n"
    "  const Tensors grad_of_grad = grad([&](const Tensors& x) { return dot(g(x), vs); }, argnums)(xs);\n"
    "  const Tensors grad_of_jvp = grad([&](const Tensors& x) {\n"
    "    return jvp([&](const Tensors& y) { return Tensors{phi(y)}; }, x, vs).tangents[0];\n  }, "
    "argnums)(xs);\n"
    "  const Tensors hvps = hvp(phi, xs, vs).products, vhps = vhp(phi, xs, vs).products;\n"
    "  for (size_t k = 0; k < xs.size(); ++k)\n"
    "    std::cout << \"hvp          \" << str(hvps[k]) << \"\\nvhp          \" << str(vhps[k]) << '\\n';\n"
    "  for (size_t k = 0; k < xs.size(); ++k)\n"
    "    std::cout << \"jvp of grad  \" << str(jvp_of_grad[k]) << \"\\ngrad of grad \" << "
    "str(grad_of_grad[k])\n"
    "              << \"\\ngrad of jvp  \" << str(grad_of_jvp[k]) << '\\n';\n";

std::string second_program(const Case& c, const Subject& s, const Tensors& us, const Tensors& vs,
                           const Tensors& want) {
  std::string argnums;
  for (size_t k = 0; k < s.xs.size(); ++k) argnums += (k ? ", " : "") + std::to_string(k);
  return cpp_declarations(c.args) + cpp_tensors("u", us) + cpp_tensors("v", vs) + cpp_tensors("w", want) +
         "  const Function f = " + cpp_function(c, s.slots, true) +
         ";\n  const Tensors xs = " + cpp_list(cpp_names(c, s.slots)) +
         ", us = " + cpp_names("u", us.size()) + ", vs = " + cpp_names("v", vs.size()) +
         ";\n  const std::vector<int> argnums = {" + argnums + "};\n" + kSecondText +
         "  for (const Tensor& w : Tensors" + cpp_names("w", want.size()) +
         ") std::cout << \"expected     \" << str(w) << '\\n';\n";
}

Verdict second_derivatives_agree(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors us = directions(c, s.ys), vs = directions(c, s.xs);
  Oracle oracle(c, s.slots);
  if (!oracle.twice_smooth() || flatten(s.xs).size() > 8) return Verdict::discard();
  const std::vector<SecondOrder> found = nestings(weighted(s.f, us), s.xs, vs);
  const Reals u = flatten(us), v = flatten(vs);
  const Matrix h = oracle.hessian(u), magnitude = oracle.hessian_bounds(u);
  const Tolerance& tol = tolerance(c.op.name);
  Reals exact(v.size());
  const Matrix noise = oracle.hessian_noise(u);
  Bounds bounds(v.size(),
                tol.hessian * s.u * derivative_floor(c) * over_results(tol, s.ys) * total(u) * total(v));
  for (size_t i = 0; i < v.size(); ++i)
    for (size_t j = 0; j < v.size(); ++j) {
      exact[i] += h(i, j) * v[j];
      bounds[i] += double(fabsq((f128(tol.hessian * s.u) * magnitude(i, j) + noise(i, j)) * v[j]));
    }
  for (const SecondOrder& n : found) {
    size_t at = 0, bound_at = 0;
    Tensors want;
    Finding difference;
    for (const Tensor& g : n.product) {
      want.push_back(unflatten(exact, at, g));
      if (!finite({narrow(want.back(), g.dtype())})) return Verdict::discard();  // beyond the dtype of g
      const Tensor bound =
          plus(unflatten(bounds, bound_at, g, 1), oracle.lost_to_underflow(g.dtype(), {&u, &v}));
      const Finding d = outside(g, want.back(), bound);
      if (difference.empty()) difference = d;
    }
    if (!difference.empty())
      return Verdict::fail(format("{}: ", n.name) + difference,
                           second_program(c, s, us, vs, narrowed(want, n.product)), 2);
  }
  return Verdict::pass(2);
}

}  // namespace

void add_second_order_laws(std::vector<Law>& laws) {
  laws.push_back({26,
                  "second_derivatives_agree",
                  "derivative",
                  "jvp of grad, grad of grad, grad of jvp, hvp, vhp and hessian give the Hessian of second "
                  "differences.",
                  {.dtypes = kWideTypes, .max_numel = 4, .max_exponent = 10},
                  true,
                  oracle_both,
                  second_derivatives_agree});
}

}  // namespace lamella::verify
