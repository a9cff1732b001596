// Laws of derivatives that need no oracle: absent is zero, types follow inputs, values are untouched,
// pullbacks repeat, backward() is one of them.
#include <cstring>

#include "lamella/ops/functions/copy.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

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
    const Finding d = differs(got[k], want[k], false);
    if (d.empty()) continue;
    const std::string zeros = cpp_tensors("z", with_zeros);
    Subject z = s;
    std::string other = jvp_text(c, z);
    const std::string t = cpp_names("t", s.xs.size());
    other.replace(other.rfind(t), t.size(), cpp_names("z", s.xs.size()));
    return Verdict::fail("absent tangents: " + d,
                         cpp_got_want(c, cpp_tensors("t", with_absent) + zeros, jvp_text(c, s) + ".tangents",
                                      other + ".tangents"),
                         1);
  }
  const Tensors pulled = vjp(s.f, s.xs).pullback(Tensors(s.ys.size()));
  for (size_t k = 0; k < pulled.size(); ++k)
    if (const Finding d = differs(pulled[k], zeros_of(s.xs[k]), false); !d.empty())
      return Verdict::fail("absent cotangents: " + d,
                           cpp_declarations(c.args) + "  for (const Tensor& g : " + vjp_text(c, s) +
                               ".pullback(Tensors(" + std::to_string(s.ys.size()) +
                               "))) std::cout << str(g);  // expected zeros\n",
                           1);
  return Verdict::pass(1);
}

Verdict gradients_have_input_types(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors us = directions(c, s.ys), gs = vjp(s.f, s.xs).pullback(us);
  for (size_t k = 0; k < gs.size(); ++k) {
    const Tensor &g = gs[k], &x = s.xs[k];
    if (g.dtype() == x.dtype() && std::ranges::equal(g.sizes(), x.sizes()) && g.device() == x.device())
      continue;
    return Verdict::fail(
        format("the gradient of {} is {}", x, g),
        cpp_got_want(c, cpp_tensors("u", us), vjp_text(c, s) + ".pullback(" + cpp_names("u", us.size()) + ")",
                     cpp_list(cpp_names(c, s.slots))),
        1);
  }
  const JvpResult r = jvp(s.f, s.xs, directions(c, s.xs));
  for (size_t k = 0; k < r.values.size(); ++k) {
    const Tensor &t = r.tangents[k], &y = r.values[k];
    if (t.dtype() == y.dtype() && std::ranges::equal(t.sizes(), y.sizes()) && t.device() == y.device())
      continue;
    return Verdict::fail(
        format("the tangent of {} is {}", y, t),
        cpp_got_want(c, cpp_tensors("t", s.xs), jvp_text(c, s) + ".tangents", jvp_text(c, s) + ".values"), 1);
  }
  return Verdict::pass(1);
}

Verdict primals_are_plain(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors ts = directions(c, s.xs);
  const std::string plain =
      "(" + cpp_function(c, s.slots, true) + ")(" + cpp_list(cpp_names(c, s.slots)) + ")";
  if (has_jvp(c.op))
    if (const Finding d = differs(jvp(s.f, s.xs, ts).values, s.ys); !d.empty())
      return Verdict::fail("under jvp: " + d,
                           cpp_got_want(c, cpp_tensors("t", ts), jvp_text(c, s) + ".values", plain), 1);
  if (has_vjp(c.op))
    if (const Finding d = differs(vjp(s.f, s.xs).values, s.ys); !d.empty())
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
  const std::string program = cpp_declarations(c.args) + cpp_tensors("u", us) +
                              "  const VjpResult r = " + vjp_text(c, s) +
                              ";\n  const Tensors got = r.pullback(" + cpp_names("u", us.size()) + ");\n" +
                              "  const Tensors want = r.pullback(" + cpp_names("u", us.size()) + ");\n" +
                              "  for (size_t k = 0; k < got.size(); ++k)\n"
                              "    std::cout << str(got[k]) << \"\\nexpected \" << str(want[k]) << '\\n';\n";
  if (const Finding d = differs(second, kept); !d.empty())
    return Verdict::fail("the second pullback: " + d, program, 1);
  if (const Finding d = differs(first, kept); !d.empty())
    return Verdict::fail("the first result changed: " + d, program, 1);
  if (const Finding d = differs(us, copies); !d.empty())
    return Verdict::fail("a cotangent changed: " + d, program, 1);
  return Verdict::pass(1);
}

/// Outside all levels: leaves, backward() and what it adds up, against vjp of the same result.
Verdict backward_equals_vjp(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const size_t k = c.draw.below(uint32_t(s.ys.size()));
  const Tensor u = c.direction(s.ys[k]);
  const Function one = [f = s.f, k](const Tensors& xs) { return Tensors{f(xs)[k]}; };
  const Tensors want = vjp(one, s.xs).pullback({u});
  Tensors leaves;
  for (const Tensor& x : s.xs) leaves.push_back(requires_grad(x));
  const Tensor y = one(leaves)[0];
  Finding d;
  if (is_grad_required(y)) {
    backward(y, u);
    for (size_t i = 0; i < leaves.size() && d.empty(); ++i) {
      const Tensor g = grad_of(leaves[i]);
      d = differs(g.defined() ? g : zeros_of(s.xs[i]), want[i], false);
    }
    backward(y, u);  // adds the same again, which is exact
    for (size_t i = 0; i < leaves.size() && d.empty(); ++i)
      if (grad_of(leaves[i]).defined()) d = differs(grad_of(leaves[i]), want[i] + want[i], false);
  } else {
    for (size_t i = 0; i < want.size() && d.empty(); ++i) d = differs(zeros_of(s.xs[i]), want[i], false);
  }
  if (d.empty()) d = differs(detach(y), s.ys[k]);
  if (d.empty()) return Verdict::pass(1);
  return Verdict::fail(
      d,
      cpp_declarations(c.args) + cpp_tensors("u", {u}) +
          "  const Function f = " + cpp_function(c, s.slots, true) +
          format(";\n  const Function one = [&](const Tensors& xs) {{ return Tensors{{f(xs)[{}]}}; }};\n",
                 k) +
          "  const Tensors want = vjp(one, " + cpp_list(cpp_names(c, s.slots)) +
          ").pullback({u0});\n  Tensors leaves;\n  for (const Tensor& x : Tensors" +
          cpp_list(cpp_names(c, s.slots)) +
          ") leaves.push_back(requires_grad(x));\n  backward(one(leaves)[0], u0);\n"
          "  for (size_t k = 0; k < leaves.size(); ++k)\n"
          "    std::cout << str(grad_of(leaves[k])) << \"\\nexpected \" << str(want[k]) << '\\n';\n",
      1);
}

}  // namespace

void add_rule_laws(std::vector<Law>& laws) {
  laws.push_back({25,
                  "absent_is_zero",
                  "derivative",
                  "An absent tangent or cotangent is a zero one.",
                  {.dtypes = kInexact, .max_numel = 16, .max_exponent = 20, .one_large = true},
                  false,
                  both_ways,
                  absent_is_zero});
  laws.push_back({28,
                  "gradients_have_input_types",
                  "derivative",
                  "A gradient has its input's sizes, dtype and device, a tangent its result's.",
                  {.dtypes = kInexact, .max_numel = 16, .one_large = true},
                  false,
                  both_ways,
                  gradients_have_input_types});
  laws.push_back(
      {29,
       "backward_equals_vjp",
       "derivative",
       "backward() adds to every leaf what vjp returns for it, and the same again when it is repeated.",
       {.dtypes = kInexact, .max_numel = 16, .max_exponent = 20, .one_large = true},
       false,
       has_vjp,
       backward_equals_vjp});
  laws.push_back({32,
                  "primals_are_plain",
                  "derivative",
                  "Values under jvp and vjp equal the plain call's bit by bit.",
                  {.dtypes = kInexact, .max_numel = 16, .one_large = true},
                  false,
                  [](const Op& op) { return has_jvp(op) || has_vjp(op); },
                  primals_are_plain});
  laws.push_back({33,
                  "pullbacks_repeat",
                  "derivative",
                  "A pullback gives the same cotangents every time and leaves those it receives alone.",
                  {.dtypes = kInexact, .max_numel = 16, .max_exponent = 20, .one_large = true},
                  false,
                  has_vjp,
                  pullbacks_repeat});
}

}  // namespace lamella::verify
