// Laws of full Jacobians, of linear maps made of derivatives, and of what has none.
#include <algorithm>
#include <optional>
#include <quadmath.h>

#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/jacobian.h"
#include "lamella/transforms/linearize.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

/// Of arguments of one kind: the real ones, or the complex ones.
bool prepare_one_kind(Case& c, Subject& s) {
  if (!prepare(c, s)) return false;
  const bool complex = is_complex(s.xs[c.draw.below(uint32_t(s.xs.size()))].dtype());
  std::erase_if(s.slots, [&](const Case::Slot& slot) { return is_complex(c.at(slot).dtype()) != complex; });
  s.xs = c.values(s.slots);
  s.f = c.smooth_function(s.slots);
  return true;
}

/// The unit vectors of all elements of all arguments, times 1 or i, as tangents; no operator is called.
struct Unit {
  size_t input;
  int64_t element;
};
std::vector<Unit> units(const Subject& s) {
  std::vector<Unit> out;
  for (size_t j = 0; j < s.xs.size(); ++j)
    for (int64_t e = 0; e < s.xs[j].numel(); ++e) out.push_back({j, e});
  return out;
}
Tensors tangents(const Subject& s, const Unit& unit, bool imaginary) {
  Tensors out;
  for (size_t j = 0; j < s.xs.size(); ++j) {
    const int parts = is_complex(s.xs[j].dtype()) ? 2 : 1;
    Reals flat(size_t(s.xs[j].numel() * parts));
    if (j == unit.input) flat[size_t(unit.element * parts + imaginary)] = 1;
    size_t at = 0;
    out.push_back(narrow(unflatten(flat, at, s.xs[j]), s.xs[j].dtype()));
  }
  return out;
}

/// d f along i e is i times d f along e, for each element: f has a complex derivative here.
bool is_holomorphic(const Subject& s) {
  for (const Tensor& y : s.ys)
    if (!is_complex(y.dtype())) return false;
  for (const Unit& unit : units(s)) {
    const Reals along = flatten(jvp(s.f, s.xs, tangents(s, unit, false)).tangents),
                across = flatten(jvp(s.f, s.xs, tangents(s, unit, true)).tangents);
    f128 size = 0;
    for (const f128 v : along) size = fmaxq(size, fabsq(v));
    for (size_t i = 0; i < along.size(); i += 2)
      if (fabsq(across[i] + along[i + 1]) + fabsq(across[i + 1] - along[i]) > f128(64 * s.u) * size)
        return false;
  }
  return true;
}

/// Column `unit` of the blocks d y_i / d x_j, as pushforward gives it.
Tensors column(const Subject& s, const Tensors& blocks, const Unit& unit) {
  Tensors out;
  const size_t n = s.xs.size();
  for (size_t i = 0; i < s.ys.size(); ++i) {
    const Tensor& block = blocks[i * n + unit.input];
    const Reals all = flatten({block});
    const size_t parts = is_complex(block.dtype()) ? 2 : 1, width = size_t(s.xs[unit.input].numel());
    Reals flat;
    for (size_t row = 0; row < size_t(s.ys[i].numel()); ++row)
      for (size_t part = 0; part < parts; ++part)
        flat.push_back(all[(row * width + size_t(unit.element)) * parts + part]);
    size_t at = 0;
    const Tensor like = make_tensor(s.ys[i].sizes(), block.dtype());
    out.push_back(narrow(unflatten(flat, at, like), block.dtype()));
  }
  return out;
}

Finding wrong_block(const Subject& s, const Tensors& blocks, bool reverse) {
  if (blocks.size() != s.ys.size() * s.xs.size())
    return format("got {} blocks, expected {}", blocks.size(), s.ys.size() * s.xs.size());
  for (size_t k = 0; k < blocks.size(); ++k) {
    const Tensor &y = s.ys[k / s.xs.size()], &x = s.xs[k % s.xs.size()];
    Dims sizes(y.sizes());
    for (const int64_t n : x.sizes()) sizes.push_back(n);
    DType dtype = reverse ? x.dtype() : y.dtype();
    if (is_complex(y.dtype())) dtype = to_complex(dtype);
    if (!std::ranges::equal(blocks[k].sizes(), sizes) || blocks[k].dtype() != dtype)
      return format("block {} is {}, expected {}{}", k, blocks[k], name(dtype), sizes);
  }
  return "";
}

std::string options_text(const Subject& s, const JacobianOptions& o) {
  std::string numbers;
  for (size_t j = 0; j < s.xs.size(); ++j) numbers += (j ? ", " : "") + std::to_string(o.argnums[j]);
  return "{.argnums = {" + numbers + "}, .holomorphic = " + (o.holomorphic ? "true" : "false") +
         ", .chunk = " + std::to_string(o.chunk) + "}";
}
std::string jacobian_program(const Case& c, const Subject& s, const JacobianOptions& o) {
  const std::string rest = "(f, " + options_text(s, o) + ")(" + cpp_list(cpp_names(c, s.slots)) + ")";
  return cpp_declarations(c.args) + "  const Function f = " + cpp_function(c, s.slots, true) +
         ";\n  for (const Tensor& y : jacrev" + rest +
         ") std::cout << \"jacrev \" << str(y) << '\\n';\n  for (const Tensor& y : jacfwd" + rest +
         ") std::cout << \"jacfwd \" << str(y) << '\\n';\n";
}

/// Without `holomorphic` complex arguments are refused, in either direction.
Verdict refuses_complex(const Case& c, const Subject& s, JacobianOptions o) {
  o.holomorphic = false;
  for (const bool forward : {false, true}) {
    const Status status = status_of([&] { forward ? jacfwd(s.f, o)(s.xs) : jacrev(s.f, o)(s.xs); });
    if (!status.raised || status.code != ErrorCode::DType)
      return Verdict::fail("complex arguments that are not said to be holomorphic: " + str(status),
                           jacobian_program(c, s, o), 2);
  }
  return Verdict::pass(2);
}

/// Of a complex function of halves, for which there are no complex numbers: blocks are those of its results.
Finding wrong_of_halves(DType half, const JacobianOptions& o) {
  const Function f = [](const Tensors& xs) { return Tensors{xs[0] * Scalar(c128(1, 2))}; };
  const Tensors xs{full({2}, 0.5, half)};
  JacobianOptions own = o;
  own.argnums = {0}, own.holomorphic = false;
  const Tensor rows = jacrev(f, own)(xs)[0], columns = jacfwd(f, own)(xs)[0];
  const Finding d = differs(rows, columns);
  return d.empty() ? "" : format("of a complex function of {}: ", half) + d;
}

/// Of x * x, with more elements than halves count: each row has one number, which is 1 at 1/2.
Finding wrong_of_many_halves(int64_t n) {
  const Tensor rows =
      jacrev([](const Tensors& xs) { return Tensors{xs[0] * xs[0]}; })({full({n}, 0.5, DType::BF16)})[0];
  const Finding d = differs(sum(rows, IntArg{1}), ones({n}, DType::BF16));
  return d.empty() ? "" : format("rows of x * x for {} elements of bf16: ", n) + d;
}

/// A result that is not complex has no complex derivative, wherever it stands among others.
Finding takes_real_results(const Subject& s, const JacobianOptions& o, bool first) {
  const Function f = [&](const Tensors& xs) {
    Tensors ys = s.f(xs);
    ys.insert(first ? ys.begin() : ys.end(), abs(xs[0]));
    return ys;
  };
  for (const bool forward : {false, true}) {
    const Status status = status_of([&] { forward ? jacfwd(f, o)(s.xs) : jacrev(f, o)(s.xs); });
    if (!status.raised || status.code != ErrorCode::DType)
      return format("abs(x) {} results that are holomorphic: ", first ? "before" : "behind") + str(status);
  }
  return "";
}

Verdict jacobians_agree(Case& c) {
  Subject s;
  if (!prepare_one_kind(c, s)) return Verdict::discard();
  JacobianOptions o{.argnums = {}, .holomorphic = is_complex(s.xs[0].dtype())};
  const auto n = int(s.xs.size());
  for (int j = 0; j < n; ++j) o.argnums.push_back(c.draw.flag() ? j - n : j);
  o.chunk = c.draw.below(4);
  if (c.draw.one_in(4))
    if (const Finding d = wrong_of_halves(o.chunk % 2 ? DType::F16 : DType::BF16, o); !d.empty())
      return Verdict::fail(d, jacobian_program(c, s, o), 2);
  if (c.draw.one_in(128))
    if (const Finding d = wrong_of_many_halves(257 + c.draw.below(64)); !d.empty())
      return Verdict::fail(d, "  // " + d.text() + "\n", 2);
  if (o.holomorphic && !is_holomorphic(s)) return refuses_complex(c, s, o);
  if (o.holomorphic && c.draw.one_in(3))
    if (const Finding d = takes_real_results(s, o, c.draw.flag()); !d.empty())
      return Verdict::fail(d, jacobian_program(c, s, o), 2);
  const Tensors rows = jacrev(s.f, o)(s.xs), columns = jacfwd(s.f, o)(s.xs);
  Finding d = wrong_block(s, rows, true);
  if (d.empty()) d = wrong_block(s, columns, false);
  if (!d.empty()) return Verdict::fail(d, jacobian_program(c, s, o), 2);
  if (!finite(rows) || !finite(columns)) return Verdict::discard();
  std::optional<Oracle> oracle;
  for (const Unit& unit : units(s)) {
    const Tensors t = tangents(s, unit, false), got = column(s, rows, unit), all = column(s, columns, unit),
                  want = jvp(s.f, s.xs, t).tangents;
    d = disagrees(all, want, Agreement::Rounding, {64, 1, s.u});
    if (d.empty() && flatten(got) != flatten(want)) {
      if (!oracle) oracle.emplace(c, s.slots);
      const Reals direction = flatten(t);
      d = beyond_rounding(c.op, s, got, flatten(want), oracle->pushforward_bounds(direction), 1);
    }
    if (!d.empty())
      return Verdict::fail(format("along element {} of input {}: ", unit.element, unit.input) + d,
                           jacobian_program(c, s, o), 2);
  }
  return Verdict::pass(2);
}

std::string map_program(const Case& c, const Subject& s, const Tensors& ts, const std::string& map,
                        const Tensors& want) {
  return cpp_declarations(c.args) + cpp_tensors("t", ts) + cpp_tensors("w", want) +
         "  const Function f = " + cpp_function(c, s.slots, true) +
         ";\n  const Tensors xs = " + cpp_list(cpp_names(c, s.slots)) + ", got = " + map + "(" +
         cpp_names("t", ts.size()) + "), want = " + cpp_names("w", want.size()) +
         ";\n  for (size_t k = 0; k < got.size(); ++k)\n"
         "    std::cout << \"got      \" << str(got[k]) << \"\\nexpected \" << str(want[k]) << '\\n';\n";
}

/// A function with a result of bool beside the others: the map has zeros of it, as jvp has.
Finding linear_beside_bool(const Subject& s, const Tensors& ts) {
  const Function f = [&s](const Tensors& xs) {
    Tensors ys = s.f(xs);
    ys.insert(ys.begin(), ne(xs[0], xs[0]));
    return ys;
  };
  const Tensor got = linearize(f, s.xs).map(ts)[0], want = jvp(f, s.xs, ts).tangents[0];
  if (!got.defined()) return format("a result of bool has no tangent, expected {}", want);
  return differs(got, want);
}

/// linearize is jvp, as often as it is called; the transpose of a linear operator's transpose is itself.
Verdict linear_maps_agree(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  Tensors ts = directions(c, s.xs);
  if (ts.size() > 1 && c.draw.below(3) == 1) ts[c.draw.below(uint32_t(ts.size()))] = Tensor();
  const Linearized linear = linearize(s.f, s.xs);
  const Tensors got = linear.map(ts), again = linear.map(ts), want = jvp(s.f, s.xs, ts).tangents;
  Finding d = differs(linear.values, s.ys);
  if (d.empty()) d = differs(again, got);
  if (d.empty() && c.draw.one_in(4)) d = linear_beside_bool(s, ts);
  if (!d.empty()) return Verdict::fail(d, map_program(c, s, ts, "linearize(f, xs).map", want), 2);
  if (!finite(want)) return Verdict::discard();
  Tensors full;
  for (size_t j = 0; j < ts.size(); ++j)
    full.push_back(ts[j].defined() ? plain_copy(ts[j]) : zeros(s.xs[j].sizes(), s.xs[j].dtype()));
  const Reals t = flatten(full);
  std::optional<Oracle> oracle;
  const auto compared = [&](const Tensors& found, const Tensors& expected) -> Finding {
    if (found.size() != expected.size()) return other_number(found, expected);
    for (size_t k = 0; k < found.size(); ++k)
      if (found[k].dtype() != expected[k].dtype())
        return {What::DType, format("result {} is {}, expected {}", k, found[k], expected[k])};
    if (flatten(found) == flatten(expected)) return {};
    if (!oracle) oracle.emplace(c, s.slots);
    return beyond_rounding(c.op, s, found, flatten(expected), oracle->pushforward_bounds(t), total(t));
  };
  if (d = compared(got, want); !d.empty())
    return Verdict::fail("linearize: " + d, map_program(c, s, ts, "linearize(f, xs).map", want), 2);
  if (!c.op.has(kLinear) || s.slots.size() != c.inexact().size()) return Verdict::pass(2);
  const Tensors itself = s.f(full), back = linear_transpose(linear_transpose(s.f, s.xs), s.ys)(full);
  if (d = compared(back, itself); d.empty()) return Verdict::pass(2);
  return Verdict::fail("transposed twice: " + d,
                       map_program(c, s, full, "linear_transpose(linear_transpose(f, xs), f(xs))", itself),
                       2);
}

Tensor zeros_as(const Tensor& t) { return zeros(t.sizes(), t.dtype()); }

/// Jvp and vjp of g against those of f where only some inputs are traced. Empty when they agree.
Finding constant_in(const Subject& s, const Function& g, const std::vector<bool>& cut, const Tensors& ts,
                    const Tensors& us) {
  Tensors some = ts;
  bool any = false;
  for (size_t j = 0; j < ts.size(); ++j)
    if (cut[j]) some[j] = Tensor();
    else any = true;
  const JvpResult forward = jvp(g, s.xs, ts);
  if (const Finding d = differs(forward.values, s.ys); !d.empty()) return "values: " + d;
  const Tensors tangents = any ? jvp(s.f, s.xs, some).tangents : Tensors();
  for (size_t i = 0; i < s.ys.size(); ++i)
    if (const Finding d = differs(forward.tangents[i], any ? tangents[i] : zeros_as(s.ys[i]), false);
        !d.empty())
      return format("tangent {}: ", i) + d;
  const Tensors got = vjp(g, s.xs).pullback(us), all = vjp(s.f, s.xs).pullback(us);
  for (size_t j = 0; j < got.size(); ++j)
    if (const Finding d = differs(got[j], cut[j] ? zeros_as(s.xs[j]) : all[j], false); !d.empty())
      return format("cotangent {}: ", j) + d;
  Tensors leaves;
  for (const Tensor& x : s.xs) leaves.push_back(requires_grad(plain_copy(x)));
  for (const Tensor& y : g(leaves))
    if (!any && is_grad_required(y)) return "a result requires grad";
  return "";
}

Verdict constants_stay(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors ts = directions(c, s.xs), us = directions(c, s.ys);
  std::vector<bool> cut;
  for (size_t j = 0; j < s.xs.size(); ++j) cut.push_back(c.draw.below(3) != 1);
  const Function detached = [&](const Tensors& xs) {
    Tensors some = xs;
    for (size_t j = 0; j < xs.size(); ++j)
      if (cut[j]) some[j] = stop_gradient(xs[j]);
    return s.f(some);
  };
  const Function in_scope = [&](const Tensors& xs) {
    const NoGrad no;
    Tensors ys = s.f(xs);
    for (Tensor& y : ys)  // real(x) of a real x is x
      if (std::ranges::any_of(xs, [&](const Tensor& x) { return y.is_same(x); })) y = stop_gradient(y);
    return ys;
  };
  Finding d = constant_in(s, detached, cut, ts, us);
  std::string what = "inputs detached: ";
  if (d.empty()) {
    what = "without recording: ";
    d = constant_in(s, in_scope, std::vector<bool>(s.xs.size(), true), ts, us);
  }
  if (d.empty()) return Verdict::pass(1);
  std::string cuts;
  for (size_t j = 0; j < cut.size(); ++j)
    if (cut[j]) cuts += format(" xs[{}] = stop_gradient(xs[{}]);", j, j);
  if (what[0] == 'w') cuts = " const NoGrad no;";
  const std::string xs = cpp_list(cpp_names(c, s.slots));
  return Verdict::fail(
      what + d,
      cpp_declarations(c.args) + cpp_tensors("t", ts) + cpp_tensors("u", us) +
          "  const Function f = " + cpp_function(c, s.slots, true) + ", g = [&](Tensors xs) {" + cuts +
          " return f(xs); };\n" + "  for (const Tensor& y : jvp(g, " + xs + ", " + cpp_names("t", ts.size()) +
          ").tangents) std::cout << \"tangent   \" << str(y) << '\\n';\n  for (const Tensor& y : vjp(g, " +
          xs + ").pullback(" + cpp_names("u", us.size()) +
          ")) std::cout << \"cotangent \" << str(y) << '\\n';\n",
      1);
}

bool both_on_device(const Op& op) { return both_ways(op) && stays_on_device(op); }

}  // namespace

void add_jacobian_laws(std::vector<Law>& laws) {
  const DrawOptions small{.dtypes = kWideTypes, .tame = true, .max_numel = 6};
  DrawOptions once_large = small;
  once_large.one_large = true;
  laws.push_back({80, "jacobians_agree", "derivative",
                  "Columns of jacfwd are pushforwards of unit vectors, and jacrev gives the same, of complex "
                  "functions too; what has no complex derivative is refused.",
                  small, false, both_on_device, jacobians_agree});
  laws.push_back({81,
                  "linear_maps_agree",
                  "derivative",
                  "linearize gives jvp, at every call; a linear operator transposed twice is itself.",
                  {.dtypes = kWideTypes, .tame = true, .max_numel = 8, .mixed = false},
                  false,
                  both_on_device,
                  linear_maps_agree});
  laws.push_back({82, "constants_stay", "derivative",
                  "Detached inputs, and all that is computed under NoGrad, have the same values and no "
                  "derivative; the others keep theirs.",
                  once_large, false, both_ways, constants_stay});
}

}  // namespace lamella::verify
