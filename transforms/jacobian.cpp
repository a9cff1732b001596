// Full derivatives by mapping one direction at a time over a basis.
#include "lamella/transforms/jacobian.h"

#include <algorithm>

#include "lamella/dispatch/state.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/argnums.h"
#include "lamella/transforms/chunks.h"
#include "lamella/transforms/jvp.h"

namespace lamella {

namespace {
/// Rows `from` to `to` of the basis of tensors like `x`, times `unit`: sizes [to - from, sizes of x].
Tensor basis_like(const Tensor& x, int64_t from, int64_t to, const Scalar& unit) {
  const auto count = [&](int64_t a, int64_t b) { return arange(a, b, {}, {}, x.device()); };
  const Tensor hot = eq(unsqueeze(count(from, to), 1), unsqueeze(count(0, x.numel()), 0));
  Dims sizes{to - from};
  for (const int64_t s : x.sizes()) sizes.push_back(s);
  const Tensor one = full_like(x, unit);
  return where(reshape(hot, sizes), one, zeros_like(one));
}

Dims joined(Ints a, Ints b) {
  Dims out(a);
  for (const int64_t s : b) out.push_back(s);
  return out;
}

/// Which function is at work, for errors, and how.
struct Plan {
  std::string_view name;
  JacobianOptions options;
};

std::vector<size_t> chosen_inputs(const Plan& p, const Tensors& inputs) {
  LAMELLA_CHECK(p.options.chunk >= 0, Value, "{}: chunk = {}; expected chunk > 0, or 0 for all rows at once",
                p.name, p.options.chunk);
  std::vector<size_t> at = positions(p.options.argnums, inputs.size(), p.name);
  check_inputs(taken(inputs, at), p.name);
  for (const size_t i : at) {
    const bool is = is_complex(inputs[i].dtype());
    LAMELLA_CHECK(p.options.holomorphic || !is, DType,
                  "{}: input {} is {}; expected real floating point, or holomorphic = true for a function "
                  "with a complex derivative",
                  p.name, i, inputs[i]);
    LAMELLA_CHECK(!p.options.holomorphic || is, DType,
                  "{}: input {} is {} and holomorphic = true; expected complex", p.name, i, inputs[i]);
  }
  return at;
}

void check_results(const Plan& p, const Tensors& ys) {
  for (size_t i = 0; i < ys.size(); ++i) {
    LAMELLA_CHECK(is_inexact(ys[i].dtype()), DType, "{}: result {} is {}, expected floating point or complex",
                  p.name, i, ys[i]);
    LAMELLA_CHECK(!p.options.holomorphic || is_complex(ys[i].dtype()), DType,
                  "{}: result {} is {} and holomorphic = true; expected complex", p.name, i, ys[i]);
  }
}

/// Calls f(from, to) for groups of n rows and joins what it gives along `dim`.
Tensors in_groups(const Plan& p, int64_t n, int64_t dim,
                  const std::function<Tensors(int64_t from, int64_t to)>& f) {
  const int64_t step = p.options.chunk > 0 ? p.options.chunk : std::max<int64_t>(n, 1);
  if (n <= step) return f(0, n);
  std::vector<Tensors> parts;
  for (int64_t from = 0; from < n; from += step) {
    const Tensors part = f(from, std::min(n, from + step));
    parts.resize(part.size());
    for (size_t i = 0; i < part.size(); ++i) parts[i].push_back(part[i]);
  }
  Tensors out;
  for (const Tensors& part : parts) out.push_back(cat(part, dim));
  return out;
}

VmapOptions mapping(const Plan& p, int64_t from, int out_dim) {
  VmapOptions o;
  o.out_dims = {out_dim};
  o.randomness = p.options.randomness;
  o.first_lane = from;
  return o;
}

/// Pullbacks of the basis of result i times `unit`, for each input: sizes [numel of y, sizes of x].
Tensors pulled_back(const Plan& p, const VjpResult& r, size_t i, const Scalar& unit, SameDraws& draws) {
  const Tensor& y = r.values[i];
  return in_groups(p, y.numel(), 0, [&](int64_t from, int64_t to) {
    const Function rows = [&](const Tensors& u) {
      Tensors cotangents(r.values.size());
      cotangents[i] = u[0];
      return r.pullback(cotangents);
    };
    draws.again();
    return vmap(rows, mapping(p, from, 0))({basis_like(y, from, to, unit)});
  });
}

/// re + i im, in f32 at least.
Tensor of_parts(const Tensor& re, const Tensor& im) {
  const DType part = to_real(to_complex(re.dtype()));
  return complex(to(re, part), to(im, part));
}

std::pair<Tensors, Tensors> jacrev_at(const Plan& p, const AuxFunction& f, const Tensors& inputs) {
  const std::vector<size_t> at = chosen_inputs(p, inputs);
  const Tensors xs = taken(inputs, at);
  const VjpResult r = vjp_has_aux([&](const Tensors& v) { return f(replaced(inputs, at, v)); }, xs);
  check_results(p, r.values);
  SameDraws draws;
  Tensors blocks;
  for (size_t i = 0; i < r.values.size(); ++i) {
    const Tensor& y = r.values[i];
    // The pullback is u -> J^H u: of a holomorphic f conj(row) for a row of df/dz; for real inputs the real
    // part of it, which is d Re f for u = 1 and d Im f for u = i.
    Tensors rows = pulled_back(p, r, i, 1, draws);
    if (p.options.holomorphic) {
      for (Tensor& row : rows) row = conj(row);
    } else if (is_complex(y.dtype())) {
      const Tensors imaginary = pulled_back(p, r, i, c128(0, 1), draws);
      for (size_t j = 0; j < rows.size(); ++j) rows[j] = of_parts(rows[j], imaginary[j]);
    }
    for (size_t j = 0; j < xs.size(); ++j)
      blocks.push_back(reshape(rows[j], joined(y.sizes(), xs[j].sizes())));
  }
  return {blocks, r.aux};
}

/// aux must be the same for every row, that is, unknown to the level of vmap that maps them.
void check_aux(const Plan& p, const Tensors& aux, int vmap_key) {
  for (size_t i = 0; i < aux.size(); ++i)
    LAMELLA_CHECK(!aux[i].defined() || !(aux[i].keys() >> vmap_key & 1), Randomness,
                  "{}: aux {} is {} and depends on the row; expected randomness same", p.name, i, aux[i]);
}

std::pair<Tensors, Tensors> jacfwd_at(const Plan& p, const AuxFunction& f, const Tensors& inputs) {
  const std::vector<size_t> at = chosen_inputs(p, inputs);
  if (at.empty()) return jacrev_at(p, f, inputs);  // f runs for its aux alone
  const Tensors xs = taken(inputs, at);
  SameDraws draws;
  Tensors aux;
  std::vector<Tensors> blocks(xs.size());
  const AuxFunction of_chosen = [&](const Tensors& v) { return f(replaced(inputs, at, v)); };
  for (size_t j = 0; j < xs.size(); ++j) {
    const auto columns = [&](int64_t from, int64_t to) {
      const Function push = [&](const Tensors& t) {
        const int key = kFirstLevelKey + dispatch_state().depth - 1;
        Tensors tangents(xs.size());
        tangents[j] = t[0];
        JvpResult r = jvp_has_aux(of_chosen, xs, tangents);
        check_results(p, r.values);
        check_aux(p, r.aux, key);
        aux = std::move(r.aux);
        return std::move(r.tangents);
      };
      draws.again();
      return vmap(push, mapping(p, from, -1))({basis_like(xs[j], from, to, 1)});
    };
    blocks[j] = in_groups(p, xs[j].numel(), -1, columns);  // [sizes of y, numel of x]
  }
  Tensors out;
  for (size_t i = 0; !blocks.empty() && i < blocks[0].size(); ++i)
    for (size_t j = 0; j < xs.size(); ++j) {
      const Ints sizes = blocks[j][i].sizes();
      out.push_back(reshape(blocks[j][i], joined(sizes.first(sizes.size() - 1), xs[j].sizes())));
    }
  return {out, aux};
}

AuxFunction without_aux(Function f) {
  return [f = std::move(f)](const Tensors& xs) { return std::pair(f(xs), Tensors{}); };
}
Function first_of(AuxFunction f) {
  return [f = std::move(f)](const Tensors& xs) { return f(xs).first; };
}
UnaryFunction unary(Function f) {
  return [f = std::move(f)](const Tensor& x) { return f({x})[0]; };
}
Function listed(UnaryFunction f) {
  return [f = std::move(f)](const Tensors& xs) { return Tensors{f(xs[0])}; };
}

AuxFunction forward(AuxFunction f, Plan p) {
  return [f = std::move(f), p = std::move(p)](const Tensors& xs) { return jacfwd_at(p, f, xs); };
}
AuxFunction reverse(AuxFunction f, Plan p) {
  return [f = std::move(f), p = std::move(p)](const Tensors& xs) { return jacrev_at(p, f, xs); };
}
}  // namespace

AuxFunction jacrev_has_aux(AuxFunction f, JacobianOptions o) {
  return reverse(given(std::move(f), "jacrev"), {"jacrev", std::move(o)});
}
AuxFunction jacfwd_has_aux(AuxFunction f, JacobianOptions o) {
  return forward(given(std::move(f), "jacfwd"), {"jacfwd", std::move(o)});
}
AuxFunction hessian_has_aux(AuxFunction f, JacobianOptions o) {
  return forward(reverse(given(std::move(f), "hessian"), {"hessian", o}), {"hessian", o});
}

Function jacrev(Function f, JacobianOptions o) {
  return first_of(jacrev_has_aux(without_aux(given(std::move(f), "jacrev")), std::move(o)));
}
Function jacfwd(Function f, JacobianOptions o) {
  return first_of(jacfwd_has_aux(without_aux(given(std::move(f), "jacfwd")), std::move(o)));
}
Function hessian(Function f, JacobianOptions o) {
  return first_of(hessian_has_aux(without_aux(given(std::move(f), "hessian")), std::move(o)));
}

UnaryFunction jacrev(UnaryFunction f, JacobianOptions o) {
  return unary(jacrev(listed(given(std::move(f), "jacrev")), std::move(o)));
}
UnaryFunction jacfwd(UnaryFunction f, JacobianOptions o) {
  return unary(jacfwd(listed(given(std::move(f), "jacfwd")), std::move(o)));
}
UnaryFunction hessian(UnaryFunction f, JacobianOptions o) {
  return unary(hessian(listed(given(std::move(f), "hessian")), std::move(o)));
}

}  // namespace lamella
