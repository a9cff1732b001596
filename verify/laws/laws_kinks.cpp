// The law of kinks: where one-sided derivatives differ, the derivative is the one the operator states.
#include <algorithm>
#include <cstring>
#include <quadmath.h>

#include "lamella/ops/functions/reduce.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/real_function.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

constexpr int kNudge = -30, kStep = -50;  ///< exponents: pieces are looked at this far from the kink

/// A derivative nearby, row by row: whether both sides agree there.
struct Piece {
  Matrix slopes;
  std::vector<bool> smooth;
};

Piece piece_at(const RealFunction& g, const Reals& x) {
  const Reals here = g(x);
  const size_t rows = here.size(), columns = x.size();
  Piece out{{rows, columns, Reals(rows * columns)}, std::vector<bool>(rows, true)};
  const f128 h = ldexpq(1, kStep);
  Reals at = x;
  for (size_t j = 0; j < columns; ++j) {
    at[j] = x[j] + h;
    const Reals right = g(at);
    at[j] = x[j] - h;
    const Reals left = g(at);
    at[j] = x[j];
    for (size_t i = 0; i < rows; ++i) {
      out.slopes.entries[i * columns + j] = (right[i] - left[i]) / (2 * h);
      if (fabsq(right[i] + left[i] - 2 * here[i]) > ldexpq(h, -20)) out.smooth[i] = false;
    }
  }
  return out;
}

/// What the derivative must be, row by row; rows of NaN where the pieces do not say.
using Stated = std::optional<Matrix>;

/// AtKinks::Shared: the mean of the smooth pieces that a step along one variable leads to.
Stated shared(const Case&, const RealFunction& g) {
  Reals x = g.point();
  const size_t rows = g.values().size(), columns = x.size();
  Matrix mean{rows, columns, Reals(rows * columns)};
  std::vector<int> pieces(rows, 0);
  for (size_t j = 0; j < columns; ++j)
    for (const int sign : {1, -1}) {
      x[j] = g.point()[j] + sign * ldexpq(1, kNudge);
      const Piece p = piece_at(g, x);
      x[j] = g.point()[j];
      for (size_t i = 0; i < rows; ++i) {
        if (!p.smooth[i]) continue;
        ++pieces[i];
        for (size_t k = 0; k < columns; ++k) mean.entries[i * columns + k] += p.slopes(i, k);
      }
    }
  for (size_t i = 0; i < rows; ++i)
    for (size_t k = 0; k < columns; ++k) mean.entries[i * columns + k] /= pieces[i];
  return mean;
}

/// The integer results, with the inexact arguments at x.
Tensors chosen_at(const Case& c, const Reals& x) {
  Values args = to_reference(c.args);
  const f128* from = x.data();
  for (const Case::Slot& s : c.inexact()) {
    Value& v = args[size_t(s.param)];
    const Tensor& t =
        std::holds_alternative<Tensor>(v) ? std::get<Tensor>(v) : std::get<Tensors>(v)[size_t(s.element)];
    write_parts(t, from);
    from += t.numel() * (is_complex(t.dtype()) ? 2 : 1);
  }
  Tensors ys = reference_forward(c.op, args);
  std::erase_if(ys, [](const Tensor& y) { return is_inexact(y.dtype()); });
  return ys;
}

/// AtKinks::Chosen: the piece in which equal elements differ as the integer results have it.
Stated chosen(const Case& c, const RealFunction& g) {
  const Tensors want = chosen_at(c, g.point());
  for (const int sign : {1, -1}) {
    Reals x = g.point();
    for (size_t j = 0; j < x.size(); ++j) x[j] += sign * int(j) * ldexpq(1, kNudge);
    if (!differs(chosen_at(c, x), want).empty()) continue;
    const Piece p = piece_at(g, x);
    if (std::ranges::find(p.smooth, false) == p.smooth.end()) return p.slopes;
  }
  return std::nullopt;
}

/// Elements of `t` broadcast to `sizes`, in row-major order.
Reals spread_over(const Tensor& t, Ints sizes) {
  Dims strides(int(sizes.size()), 0);
  for (int d = 1; d <= t.rank(); ++d)
    if (t.size(-d) == sizes[sizes.size() - size_t(d)]) strides[int(sizes.size()) - d] = t.stride(-d);
  return flatten({make_view_unchecked(t, sizes, strides, t.impl()->offset)});
}

/// AtKinks::Interval: bounds apart, or crossing where they meet.
Stated interval(const Case& c, const RealFunction& g) {
  const auto tensor = [&](size_t i) { return std::get<Tensor>(c.args[i]); };
  const auto nudged = [&](int apart) {
    Reals x = g.point();
    size_t at = 0;
    for (const Case::Slot& s : c.inexact())
      for (int64_t i = 0; i < c.at(s).numel(); ++i, ++at)
        x[at] += apart * (s.param == 1 ? -1 : s.param == 2 ? 1 : 0) * ldexpq(1, kNudge);
    return piece_at(g, x);
  };
  const Piece open = nudged(1), crossed = nudged(-1);
  Matrix out = open.slopes;
  if (is_none(c.args[1]) || is_none(c.args[2]) || !tensor(1).defined() || !tensor(2).defined()) return out;
  const Tensors ys = call_boxed(c.op, c.args);
  const Reals low = spread_over(to_reference(tensor(1)), ys[0].sizes()),
              high = spread_over(to_reference(tensor(2)), ys[0].sizes());
  for (size_t i = 0; i < out.rows; ++i)
    if (low[i] >= high[i])
      std::copy_n(crossed.slopes.entries.begin() + long(i * out.columns), out.columns,
                  out.entries.begin() + long(i * out.columns));
  return out;
}

Finding beyond(const Tensors& got, const Matrix& m, const Reals& direction, bool transposed, double u,
               Tensors& want) {
  const size_t n = transposed ? m.columns : m.rows;
  Reals sum(n);
  Bounds bounds(n);
  for (size_t i = 0; i < m.rows; ++i)
    for (size_t j = 0; j < m.columns; ++j) {
      const f128 term = m(i, j) * direction[transposed ? i : j];
      sum[transposed ? j : i] += term;
      bounds[transposed ? j : i] += 4 * u * double(fabsq(term));
    }
  const double size = total(direction);
  for (double& b : bounds) b += 0x1p-58 * size;  // of the pieces' slopes: 2^-113 over the step
  size_t at = 0, bound_at = 0;
  Finding wrong;
  for (const Tensor& g : got) {
    want.push_back(unflatten(sum, at, g));
    const Finding d = outside(g, want.back(), unflatten(bounds, bound_at, g, 1));
    if (wrong.empty()) wrong = d;
  }
  return wrong;
}

Verdict failed(const Case& c, const Subject& s, bool forward, const Tensors& directions, const Tensors& got,
               const Tensors& want, const Finding& wrong) {
  const std::string call = forward ? jvp_text(c, s) + ".tangents"
                                   : vjp_text(c, s) + ".pullback(" + cpp_names("u", directions.size()) + ")";
  const std::string more =
      cpp_tensors(forward ? "t" : "u", directions) + cpp_tensors("w", narrowed(want, got));
  return Verdict::fail((forward ? "the tangent at a kink: " : "the cotangent at a kink: ") + wrong,
                       cpp_got_want(c, more, call, cpp_names("w", want.size())), 1);
}

/// `got`, a tensor of as many elements as x, with 0 wherever x is.
Tensor zero_where_zero(const Tensor& got, const Tensor& x) {
  const Reals parts = flatten({x});
  const size_t width = is_complex(x.dtype()) ? 2 : 1, got_width = is_complex(got.dtype()) ? 2 : 1;
  Reals want = flatten({got});
  for (size_t i = 0; i < size_t(x.numel()); ++i)
    if (parts[i * width] == 0 && parts[i * width + width - 1] == 0)
      std::fill_n(want.begin() + long(i * got_width), got_width, 0);
  size_t from = 0;
  return narrow(unflatten(want, from, got), got.dtype());
}

/// The same of the derivative of that derivative in x, forward and backward, along a drawn direction.
Verdict second_zero_at_zero(Case& c, const Subject& s, const Tensors& d, bool forward) {
  const Function g = [&](const Tensors& xs) {
    return forward ? jvp(s.f, xs, d).tangents : vjp(s.f, xs).pullback(d);
  };
  for (const bool outer : {true, false}) {
    if (outer ? !has_jvp(c.op) : !has_vjp(c.op)) continue;
    const Tensors along = directions(c, outer ? s.xs : g(s.xs)),
                  got = outer ? jvp(g, s.xs, along).tangents : vjp(g, s.xs).pullback(along);
    const Finding wrong = differs(got[0], zero_where_zero(got[0], s.xs[0]), false);
    if (wrong.empty()) continue;
    const std::string inner = forward ? "jvp(f, xs, " + cpp_names("d", 1) + ").tangents"
                                      : "vjp(f, xs).pullback(" + cpp_names("d", 1) + ")",
                      xs = cpp_list(cpp_names(c, s.slots)), t = cpp_names("t", 1);
    return Verdict::fail(
        "the second derivative at a kink: " + wrong,
        cpp_got_want(
            c,
            cpp_tensors("d", d) + cpp_tensors("t", along) +
                "  const Function f = " + cpp_function(c, s.slots, true) +
                ";\n  const Function g = [&](const Tensors& xs) { return " + inner + "; };\n",
            outer ? "jvp(g, " + xs + ", " + t + ").tangents" : "vjp(g, " + xs + ").pullback(" + t + ")",
            "got"),
        2);
  }
  return Verdict::pass(2);
}

/// AtKinks::Zero: one element is made 0, and all that are must have derivatives of 0, of both orders.
Verdict zero_at_zero(Case& c, Subject& s) {
  const Tensor x = plain_copy(s.xs[0]);
  if (x.numel() == 0) return Verdict::discard();
  const int64_t at = int64_t(c.draw.below(uint32_t(x.numel())));
  const size_t bytes = size_t(itemsize(x.dtype()));
  std::memset(static_cast<char*>(x.raw_data()) + size_t(at) * bytes, 0, bytes);
  c.args = c.with(s.slots, {x});
  s.xs = {x};
  for (const bool forward : {true, false}) {
    if (forward ? !has_jvp(c.op) : !has_vjp(c.op)) continue;
    const Tensors d = directions(c, forward ? s.xs : s.ys);
    const Tensors got = forward ? jvp(s.f, s.xs, d).tangents : vjp(s.f, s.xs).pullback(d);
    const Tensor want = zero_where_zero(got[0], x);
    if (const Finding wrong = differs(got[0], want, false); !wrong.empty())
      return failed(c, s, forward, d, got, {to_reference(want)}, wrong);
    if (Verdict v = second_zero_at_zero(c, s, d, forward); v.kind == Verdict::Fail) return v;
  }
  return Verdict::pass(2);
}

Verdict kinks_as_stated(Case& c) {
  Subject s;
  s.slots = c.inexact();
  if (s.slots.empty()) return Verdict::discard();
  s.xs = c.values(s.slots);
  s.f = c.smooth_function(s.slots);
  s.ys = s.f(s.xs);
  if (s.ys.empty() || !finite(s.ys) || !finite(s.xs)) return Verdict::discard();
  if (c.op.at_kinks == AtKinks::Zero) return zero_at_zero(c, s);
  const RealFunction g(s.f, s.xs, OracleKind::Reference);
  for (const Tensor& t : s.ys) s.u = std::max(s.u, unit_roundoff(t.dtype()));
  for (const Tensor& t : s.xs) s.u = std::max(s.u, unit_roundoff(t.dtype()));
  const Stated m = c.op.at_kinks == AtKinks::Shared   ? shared(c, g)
                   : c.op.at_kinks == AtKinks::Chosen ? chosen(c, g)
                                                      : interval(c, g);
  if (!m) return Verdict::discard();
  for (const f128 v : m->entries)
    if (v != v) return Verdict::discard();  // no smooth piece within one step
  for (const bool forward : {true, false}) {
    if (forward ? !has_jvp(c.op) : !has_vjp(c.op)) continue;
    const Tensors d = directions(c, forward ? s.xs : s.ys);
    const Tensors got = forward ? jvp(s.f, s.xs, d).tangents : vjp(s.f, s.xs).pullback(d);
    Tensors want;
    const Finding wrong = beyond(got, *m, flatten(d), !forward, s.u, want);
    if (!wrong.empty()) return failed(c, s, forward, d, got, want, wrong);
  }
  return Verdict::pass(1);
}

bool has_kinks(const Op& op) {
  return op.at_kinks != AtKinks::Unstated && (has_jvp(op) || has_vjp(op)) && stays_on_device(op);
}

}  // namespace

void add_kink_laws(std::vector<Law>& laws) {
  laws.push_back(
      {30,
       "kinks_as_stated",
       "derivative",
       "At kinks and ties a derivative is, to a rounding, the one that the operator states; where that is "
       "0, so are second ones.",
       {.dtypes = kWideTypes, .exact = true, .max_numel = 5, .mixed = false},
       true,
       has_kinks,
       kinks_as_stated});
}

}  // namespace lamella::verify
