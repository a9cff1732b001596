// Laws of jvp and vjp: they equal differences of the forward, each other's transpose, and leave values alone.
#include <cmath>
#include <quadmath.h>

#include "lamella/ops/functions.h"
#include "lamella/verify/compare.h"
#include "lamella/verify/law.h"
#include "lamella/verify/oracle.h"
#include "lamella/verify/tolerances.h"

namespace lamella::verify {

namespace {

constexpr DTypeMask kWide = kFloat32And64 | kComplex;
constexpr DrawOptions kOracleOptions{.dtypes = kWide, .max_numel = 6, .max_exponent = 20};

bool both_ways(const Op& op) { return has_jvp(op) && has_vjp(op); }

bool oracle_jvp(const Op& op) { return has_jvp(op) && stays_on_device(op); }
bool oracle_vjp(const Op& op) { return has_vjp(op) && stays_on_device(op); }
bool oracle_both(const Op& op) { return both_ways(op) && stays_on_device(op); }

/// The function under test: the operator in some of its inexact inputs.
struct Subject {
  std::vector<Case::Slot> slots;
  Tensors xs, ys;  ///< inputs, and inexact results of the plain call
  Function f;
  double u = 0;    ///< coarsest roundoff in play
};

bool finite(const Tensors& ts) {
  for (const f128 v : flatten(ts))
    if (!(v - v == 0)) return false;
  return true;
}

/// False when there is nothing to differentiate, or a result overflowed.
bool prepare(Case& c, Subject& s) {
  s.slots = c.subset(c.inexact());
  if (s.slots.empty()) return false;
  s.xs = c.values(s.slots);
  s.f = c.smooth_function(s.slots);
  s.ys = s.f(s.xs);
  if (s.ys.empty() || !finite(s.ys)) return false;
  for (const Tensor& t : s.xs) s.u = std::max(s.u, unit_roundoff(t.dtype()));
  for (const Tensor& t : s.ys) s.u = std::max(s.u, unit_roundoff(t.dtype()));
  return true;
}

Tensors directions(Case& c, const Tensors& like) {
  Tensors out;
  for (const Tensor& t : like) out.push_back(c.direction(t));
  return out;
}

std::string jvp_text(const Case& c, const Subject& s) {
  return "jvp(" + cpp_function(c, s.slots, true) + ",\n    " + cpp_list(cpp_names(c, s.slots)) + ", " +
         cpp_names("t", s.xs.size()) + ")";
}
std::string vjp_text(const Case& c, const Subject& s) {
  return "vjp(" + cpp_function(c, s.slots, true) + ",\n    " + cpp_list(cpp_names(c, s.slots)) + ")";
}

double total(const Reals& v) {
  f128 sum = 0;
  for (const f128 x : v) sum += fabsq(x);
  return double(sum);
}

/// A matrix of bounds times a direction, by intervals: from `low` to `high`.
void interval_product(const Matrix& low, const Matrix& high, const Reals& v, bool transposed, Reals& from, Reals& to) {
  const size_t n = transposed ? low.columns : low.rows;
  from.assign(n, 0), to.assign(n, 0);
  for (size_t i = 0; i < low.rows; ++i)
    for (size_t j = 0; j < low.columns; ++j) {
      const f128 d = v[transposed ? i : j], a = low(i, j) * d, b = high(i, j) * d;
      from[transposed ? j : i] += fminq(a, b);
      to[transposed ? j : i] += fmaxq(a, b);
    }
}

struct Compared {
  std::string difference;
  Tensors want;
};

/// Compares J t (or the transpose) with the oracle's, at a kink with the span of derivatives nearby.
Compared compare_derivative(Oracle& oracle, const Op& op, const Subject& s, const Tensors& got, const Reals& direction,
                            bool transposed) {
  const Tolerance& tol = tolerance(op.name);
  const Reals exact = transposed ? oracle.pullback(direction) : oracle.pushforward(direction);
  Bounds bounds = transposed ? oracle.pullback_bounds(direction) : oracle.pushforward_bounds(direction);
  const Bounds noise = transposed ? oracle.pullback_noise(direction) : oracle.pushforward_noise(direction);
  const double floor = tol.derivative_floor * total(direction);
  for (size_t i = 0; i < bounds.size(); ++i) bounds[i] = tol.derivative * s.u * (bounds[i] + floor) + noise[i];
  Compared out;
  size_t at = 0, bound_at = 0;
  const bool smooth = oracle.smooth();
  for (const Tensor& g : got) {
    out.want.push_back(unflatten(exact, at, g));
    const Tensor bound = unflatten(bounds, bound_at, g, 1);
    if (smooth && out.difference.empty()) out.difference = outside(g, out.want.back(), bound);
  }
  if (smooth) return out;
  const auto [low, high] = oracle.hull();
  Reals from, to;
  interval_product(low, high, direction, transposed, from, to);
  const Reals mine = flatten(got);
  for (size_t i = 0; i < mine.size(); ++i) {
    const f128 slack = 1e-6 * (fabsq(from[i]) + fabsq(to[i]) + total(direction));
    if (mine[i] < from[i] - slack || mine[i] > to[i] + slack || mine[i] != mine[i])
      out.difference = format("part {} at a kink: got {}, expected between {} and {}", i, double(mine[i]), double(from[i]),
                              double(to[i]));
  }
  return out;
}

Tensors narrowed(const Tensors& wide, const Tensors& like) {
  Tensors out;
  for (size_t k = 0; k < wide.size(); ++k) out.push_back(narrow(wide[k], like[k].dtype()));
  return out;
}

Verdict jvp_equals_differences(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors ts = directions(c, s.xs);
  const Tensors got = jvp(s.f, s.xs, ts).tangents;
  Oracle oracle(c, s.slots);
  const Compared r = compare_derivative(oracle, c.op, s, got, flatten(ts), false);
  if (r.difference.empty()) return Verdict::pass(1);
  return Verdict::fail(r.difference, cpp_got_want(c, cpp_tensors("t", ts) + cpp_tensors("w", narrowed(r.want, got)),
                                                  jvp_text(c, s) + ".tangents", cpp_names("w", got.size())), 1);
}

Verdict vjp_equals_differences(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors us = directions(c, s.ys);
  const Tensors got = vjp(s.f, s.xs).pullback(us);
  Oracle oracle(c, s.slots);
  const Compared r = compare_derivative(oracle, c.op, s, got, flatten(us), true);
  if (r.difference.empty()) return Verdict::pass(1);
  return Verdict::fail(r.difference,
                       cpp_got_want(c, cpp_tensors("u", us) + cpp_tensors("w", narrowed(r.want, got)),
                                    vjp_text(c, s) + ".pullback(" + cpp_names("u", us.size()) + ")",
                                    cpp_names("w", got.size())), 1);
}

/// Re<a, b> over all tensors, and the sum of magnitudes of its terms.
std::pair<f128, f128> inner(const Tensors& a, const Tensors& b) {
  const Reals x = flatten(a), y = flatten(b);
  f128 sum = 0, size = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i], size += fabsq(x[i] * y[i]);
  return {sum, size};
}

Verdict vjp_is_adjoint(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors ts = directions(c, s.xs), us = directions(c, s.ys);
  const Tensors forward = jvp(s.f, s.xs, ts).tangents, backward = vjp(s.f, s.xs).pullback(us);
  const auto [left, left_size] = inner(us, forward);
  const auto [right, right_size] = inner(backward, ts);
  const f128 gap = fabsq(left - right);
  const Tolerance& tol = tolerance(c.op.name);
  if (gap <= f128(tol.derivative * s.u) * (left_size + right_size)) return Verdict::pass(1);
  if (!(gap - gap == 0)) return Verdict::discard();  // overflow in one of the two
  Oracle oracle(c, s.slots);  // terms cancelled: how far may they be off?
  const Reals t = flatten(ts), u = flatten(us);
  const Bounds forward_bounds = oracle.pushforward_bounds(t), backward_bounds = oracle.pullback_bounds(u);
  f128 bound = tol.derivative_floor * total(t) * total(u);
  for (size_t i = 0; i < u.size(); ++i) bound += fabsq(u[i]) * forward_bounds[i];
  for (size_t j = 0; j < t.size(); ++j) bound += fabsq(t[j]) * backward_bounds[j];
  if (gap <= f128(tol.derivative * s.u) * bound) return Verdict::pass(1);
  const std::string text = cpp_declarations(c.args) + cpp_tensors("t", ts) + cpp_tensors("u", us) + "  const Tensors jt = " +
                           jvp_text(c, s) + ".tangents;\n  const Tensors ju = " + vjp_text(c, s) + ".pullback(" +
                           cpp_names("u", us.size()) + ");\n" +
                           format("  // <u, J t> = {} but <J^H u, t> = {}\n", double(left), double(right)) +
                           "  for (const Tensor& y : jt) std::cout << \"J t   \" << str(y) << '\\n';\n"
                           "  for (const Tensor& y : ju) std::cout << \"J^H u \" << str(y) << '\\n';\n";
  return Verdict::fail(format("<u, J t> = {}, <J^H u, t> = {}", double(left), double(right)), text, 1);
}

Tensor zeros_of(const Tensor& t) {
  Tensor z = make_tensor(t.sizes(), t.dtype());
  std::memset(z.raw_data(), 0, size_t(z.numel() * itemsize(z.dtype())));
  return z;
}

Verdict absent_is_zero(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const uint32_t w = c.draw.word();
  Tensors with_absent = directions(c, s.xs), with_zeros = with_absent;
  for (size_t k = 0; k < s.xs.size(); ++k) {
    if (w >> k & 1) continue;
    with_absent[k] = Tensor();
    with_zeros[k] = zeros_of(s.xs[k]);
  }
  const Tensors got = jvp(s.f, s.xs, with_absent).tangents, want = jvp(s.f, s.xs, with_zeros).tangents;
  if (!finite(got) || !finite(want)) return Verdict::discard();
  for (size_t k = 0; k < got.size(); ++k) {
    const std::string d = differs(got[k], want[k], false);
    if (d.empty()) continue;
    const std::string zeros = cpp_tensors("z", with_zeros);
    Subject z = s;
    std::string other = jvp_text(c, z);
    const std::string t = cpp_names("t", s.xs.size());
    other.replace(other.rfind(t), t.size(), cpp_names("z", s.xs.size()));
    return Verdict::fail("absent tangents: " + d, cpp_got_want(c, cpp_tensors("t", with_absent) + zeros,
                                                               jvp_text(c, s) + ".tangents", other + ".tangents"), 1);
  }
  const Tensors pulled = vjp(s.f, s.xs).pullback(Tensors(s.ys.size()));
  for (size_t k = 0; k < pulled.size(); ++k)
    if (const std::string d = differs(pulled[k], zeros_of(s.xs[k]), false); !d.empty())
      return Verdict::fail("absent cotangents: " + d,
                           cpp_declarations(c.args) + "  for (const Tensor& g : " + vjp_text(c, s) + ".pullback(Tensors(" +
                               std::to_string(s.ys.size()) + "))) std::cout << str(g);  // expected zeros\n", 1);
  return Verdict::pass(1);
}

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

/// H v by each of the four nestings; forward over forward gives only w H v, in `scalar`.
struct SecondOrder {
  const char* name;
  Tensors product;
};

std::vector<SecondOrder> nestings(const ScalarFunction& phi, const Tensors& xs, const Tensors& vs) {
  const size_t n = xs.size();
  const Function phi_list = [phi](const Tensors& x) { return Tensors{phi(x)}; };
  const ScalarFunction slope = [phi_list, vs](const Tensors& x) { return jvp(phi_list, x, vs).tangents[0]; };
  std::vector<SecondOrder> out;
  out.push_back({"jvp of grad", jvp(gradient(phi, n), xs, vs).tangents});
  out.push_back({"grad of grad", gradient(along(gradient(phi, n), vs), n)(xs)});
  out.push_back({"grad of jvp", gradient(slope, n)(xs)});
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
    "    return jvp([&](const Tensors& y) { return Tensors{phi(y)}; }, x, vs).tangents[0];\n  }, argnums)(xs);\n"
    "  for (size_t k = 0; k < xs.size(); ++k)\n"
    "    std::cout << \"jvp of grad  \" << str(jvp_of_grad[k]) << \"\\ngrad of grad \" << str(grad_of_grad[k])\n"
    "              << \"\\ngrad of jvp  \" << str(grad_of_jvp[k]) << '\\n';\n";

std::string second_program(const Case& c, const Subject& s, const Tensors& us, const Tensors& vs, const Tensors& want) {
  std::string argnums;
  for (size_t k = 0; k < s.xs.size(); ++k) argnums += (k ? ", " : "") + std::to_string(k);
  return cpp_declarations(c.args) + cpp_tensors("u", us) + cpp_tensors("v", vs) + cpp_tensors("w", want) +
         "  const Function f = " + cpp_function(c, s.slots, true) + ";\n  const Tensors xs = " +
         cpp_list(cpp_names(c, s.slots)) + ", us = " + cpp_names("u", us.size()) + ", vs = " + cpp_names("v", vs.size()) +
         ";\n  const std::vector<int> argnums = {" + argnums + "};\n" + kSecondText +
         "  for (const Tensor& w : Tensors" + cpp_names("w", want.size()) + ") std::cout << \"expected     \" << str(w) << '\\n';\n";
}

Verdict second_derivatives_agree(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors us = directions(c, s.ys), vs = directions(c, s.xs);
  Oracle oracle(c, s.slots);
  if (!oracle.smooth() || flatten(s.xs).size() > 8) return Verdict::discard();
  const std::vector<SecondOrder> found = nestings(weighted(s.f, us), s.xs, vs);
  const Reals u = flatten(us), v = flatten(vs);
  const Matrix h = oracle.hessian(u), magnitude = oracle.hessian_bounds(u);
  const Tolerance& tol = tolerance(c.op.name);
  Reals exact(v.size());
  const Matrix noise = oracle.hessian_noise(u);
  Bounds bounds(v.size(), tol.second * s.u * tol.derivative_floor * total(u) * total(v));
  for (size_t i = 0; i < v.size(); ++i)
    for (size_t j = 0; j < v.size(); ++j) {
      exact[i] += h(i, j) * v[j];
      bounds[i] += double(fabsq((f128(tol.second * s.u) * magnitude(i, j) + noise(i, j)) * v[j]));
    }
  for (const SecondOrder& n : found) {
    size_t at = 0, bound_at = 0;
    Tensors want;
    std::string difference;
    for (const Tensor& g : n.product) {
      want.push_back(unflatten(exact, at, g));
      const std::string d = outside(g, want.back(), unflatten(bounds, bound_at, g, 1));
      if (difference.empty()) difference = d;
    }
    if (!difference.empty())
      return Verdict::fail(format("{}: {}", n.name, difference), second_program(c, s, us, vs, narrowed(want, n.product)), 2);
  }
  return Verdict::pass(2);
}

Verdict gradients_have_input_types(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors us = directions(c, s.ys), gs = vjp(s.f, s.xs).pullback(us);
  for (size_t k = 0; k < gs.size(); ++k) {
    const Tensor &g = gs[k], &x = s.xs[k];
    if (g.dtype() == x.dtype() && std::ranges::equal(g.sizes(), x.sizes()) && g.device() == x.device()) continue;
    return Verdict::fail(format("the gradient of {} is {}", x, g),
                         cpp_got_want(c, cpp_tensors("u", us), vjp_text(c, s) + ".pullback(" + cpp_names("u", us.size()) + ")",
                                      cpp_list(cpp_names(c, s.slots))), 1);
  }
  const JvpResult r = jvp(s.f, s.xs, directions(c, s.xs));
  for (size_t k = 0; k < r.values.size(); ++k) {
    const Tensor &t = r.tangents[k], &y = r.values[k];
    if (t.dtype() == y.dtype() && std::ranges::equal(t.sizes(), y.sizes()) && t.device() == y.device()) continue;
    return Verdict::fail(format("the tangent of {} is {}", y, t),
                         cpp_got_want(c, cpp_tensors("t", s.xs), jvp_text(c, s) + ".tangents", jvp_text(c, s) + ".values"), 1);
  }
  return Verdict::pass(1);
}

Verdict primals_are_plain(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors ts = directions(c, s.xs);
  const std::string plain = "(" + cpp_function(c, s.slots, true) + ")(" + cpp_list(cpp_names(c, s.slots)) + ")";
  if (has_jvp(c.op))
    if (const std::string d = differs(jvp(s.f, s.xs, ts).values, s.ys); !d.empty())
      return Verdict::fail("under jvp: " + d, cpp_got_want(c, cpp_tensors("t", ts), jvp_text(c, s) + ".values", plain), 1);
  if (has_vjp(c.op))
    if (const std::string d = differs(vjp(s.f, s.xs).values, s.ys); !d.empty())
      return Verdict::fail("under vjp: " + d, cpp_got_want(c, "", vjp_text(c, s) + ".values", plain), 1);
  return Verdict::pass(1);
}

Verdict pullbacks_repeat(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors us = directions(c, s.ys);
  Tensors copies;
  for (const Tensor& u : us) copies.push_back(plain_copy(u));
  const VjpResult r = vjp(s.f, s.xs);
  const Tensors first = r.pullback(us);
  Tensors kept;
  for (const Tensor& g : first) kept.push_back(plain_copy(g));
  const Tensors second = r.pullback(us);
  const std::string program = cpp_declarations(c.args) + cpp_tensors("u", us) + "  const VjpResult r = " + vjp_text(c, s) +
                              ";\n  const Tensors got = r.pullback(" + cpp_names("u", us.size()) + ");\n" +
                              "  const Tensors want = r.pullback(" + cpp_names("u", us.size()) + ");\n" +
                              "  for (size_t k = 0; k < got.size(); ++k)\n"
                              "    std::cout << str(got[k]) << \"\\nexpected \" << str(want[k]) << '\\n';\n";
  if (const std::string d = differs(second, kept); !d.empty()) return Verdict::fail("the second pullback: " + d, program, 1);
  if (const std::string d = differs(first, kept); !d.empty()) return Verdict::fail("the first result changed: " + d, program, 1);
  if (const std::string d = differs(us, copies); !d.empty()) return Verdict::fail("a cotangent changed: " + d, program, 1);
  return Verdict::pass(1);
}

}  // namespace

void add_derivative_laws(std::vector<Law>& laws) {
  laws.push_back({21, "jvp_equals_differences", "derivative",
                  "jvp equals central differences of the f128 forward, within k units of roundoff times its condition.",
                  kOracleOptions, true, oracle_jvp, jvp_equals_differences});
  laws.push_back({22, "vjp_equals_differences", "derivative",
                  "vjp equals the transposed central differences of the f128 forward, within the same bound.",
                  kOracleOptions, true, oracle_vjp, vjp_equals_differences});
  laws.push_back({23, "vjp_is_adjoint", "derivative", "Re<u, J t> = Re<J^H u, t> for all t and u, at kinks too.",
                  {.dtypes = kInexact, .max_numel = 16, .max_exponent = 20}, false, both_ways, vjp_is_adjoint});
  laws.push_back({25, "absent_is_zero", "derivative", "An absent tangent or cotangent is a zero one.",
                  {.dtypes = kInexact, .max_numel = 16, .max_exponent = 20}, false, both_ways, absent_is_zero});
  laws.push_back({26, "second_derivatives_agree", "derivative",
                  "jvp of grad, grad of grad and grad of jvp give the Hessian of second differences.",
                  {.dtypes = kWide, .max_numel = 4, .max_exponent = 10}, true, oracle_both, second_derivatives_agree});
  laws.push_back({28, "gradients_have_input_types", "derivative",
                  "A gradient has its input's sizes, dtype and device, a tangent its result's.",
                  {.dtypes = kInexact, .max_numel = 16}, false, both_ways, gradients_have_input_types});
  laws.push_back({32, "primals_are_plain", "derivative", "Values under jvp and vjp equal the plain call's bit by bit.",
                  {.dtypes = kInexact, .max_numel = 16}, false,
                  [](const Op& op) { return has_jvp(op) || has_vjp(op); }, primals_are_plain});
  laws.push_back({33, "pullbacks_repeat", "derivative",
                  "A pullback gives the same cotangents every time and leaves those it receives alone.",
                  {.dtypes = kInexact, .max_numel = 16, .max_exponent = 20}, false, has_vjp, pullbacks_repeat});
}

}  // namespace lamella::verify
