// Laws of whole programs: chains of drawn operators on numbers so small that nothing is rounded, so that
// every way to compute them gives the same numbers.
#include "lamella/ops/functions.h"
#include "lamella/verify/chain.h"
#include "lamella/verify/lanes.h"

namespace lamella::verify {

namespace {

constexpr DTypeMask kExactTypes = mask(DType::F64) | mask(DType::C128);

bool chained(const Op& op) {
  return takes_tensors(op) && !op.has(kRandom) && op.shape != ShapeClass::Dynamic;
}
bool chained_smoothly(const Op& op) { return chained(op) && has_jvp(op) && has_vjp(op); }

std::string batch_text(const Batch& b, const std::string& name) {
  return cpp_tensors(name, b.xs) + "  // mapped: " + cpp_dims(b.in_dims) +
         ", lanes: " + std::to_string(b.size) + '\n';
}

/// Writes of lanes into what they share are refused where views of it are about: the loop shares nothing.
bool refused_write(const Chain& chain, const Status& s) {
  return chain.writes() && s.raised && s.code == ErrorCode::Level;
}

/// The loop over lanes of b, unless something raises or is rounded.
bool loop_of(const Function& f, const Batch& b, std::vector<Tensors>& lanes) {
  for (int64_t i = 0; i < b.size; ++i) {
    if (status_of([&] { lanes.push_back(f(lane(b, i))); }).raised) return false;
    if (!small_numbers(lanes.back())) return false;
  }
  return true;
}

std::string lanes_unlike(const Tensors& got, const std::vector<Tensors>& lanes) {
  if (got.size() != lanes[0].size()) return format("{} results, expected {}", got.size(), lanes[0].size());
  for (size_t i = 0; i < lanes.size(); ++i)
    for (size_t k = 0; k < got.size(); ++k) {
      // Not by bits: zeros may have either sign where absent derivatives are zeros.
      const std::string d = disagrees(lane(got[k], 0, int64_t(i)), lanes[i][k], Agreement::Rounding);
      if (!d.empty()) return format("result {}, lane {}: {}", k, i, d);
    }
  return "";
}

Verdict compare_lanes(const Chain& chain, const Function& f, const Batch& b, int depth, const char* what) {
  std::vector<Tensors> lanes;
  if (!loop_of(f, b, lanes)) return Verdict::discard();
  Tensors got;
  const Status s = status_of([&] { got = vmap(f, {b.in_dims, {0}, Randomness::Error, b.size})(b.xs); });
  if (refused_write(chain, s)) return Verdict::discard();
  const std::string d =
      s.raised ? "the loop raises nothing, vmap raises " + str(s) : lanes_unlike(got, lanes);
  if (d.empty()) return Verdict::pass(depth);
  return Verdict::fail(d, chain.cpp() + batch_text(b, "x") + "  // " + what + '\n', depth);
}

Verdict chains_under_vmap(Case& c) {
  const Chain chain(c);
  if (!chain.valid()) return Verdict::discard();
  const size_t n = chain.inputs().size();
  const Batch b =
      draw_batch(c.draw, chain.inputs(), draw_mapped(c.draw, n), 1 + c.draw.below(3), may_rotate(c));
  if (!c.draw.flag()) return compare_lanes(chain, chain.function(), b, 1, "vmap of f against the loop of f");
  const Batch two = draw_batch(c.draw, b.xs, draw_mapped(c.draw, n), 1 + c.draw.below(3), may_rotate(c));
  const Function inner = vmap(chain.function(), {b.in_dims, {0}, Randomness::Error, b.size});
  for (int64_t i = 0; i < two.size; ++i) {  // the inner loop raises and rounds nothing
    std::vector<Tensors> lanes;
    if (!loop_of(chain.function(), {b.size, lane(two, i), b.in_dims}, lanes)) return Verdict::discard();
  }
  return compare_lanes(chain, inner, two, 2, "vmap of vmap of f against the loop of vmap of f");
}

/// A chain at its inputs, with directions for them and for its results, and what they give.
struct Derived {
  size_t inputs = 0;
  Tensors all;  ///< inputs, then directions
  Function f;   ///< of all
};

bool derive(Case& c, const Chain& chain, bool forward, Derived& d) {
  const Function f = chain.smooth_function();
  Tensors likes = chain.inputs();
  if (!forward && status_of([&] { likes = f(chain.inputs()); }).raised) return false;
  d.all = chain.inputs();
  d.inputs = d.all.size();
  for (const Tensor& t : likes) d.all.push_back(c.direction(t));
  d.f = [f, forward, n = d.inputs](const Tensors& all) {
    const Tensors xs(all.begin(), all.begin() + long(n)), along(all.begin() + long(n), all.end());
    Tensors out = forward ? jvp(f, xs, along).tangents : vjp(f, xs).pullback(along);
    for (const Tensor& y : f(xs)) out.push_back(y);  // small numbers there, too
    return out;
  };
  return true;
}

Verdict chains_per_lane(Case& c) {
  const Chain chain(c);
  Derived d;
  const bool forward = c.draw.flag();
  if (!chain.valid() || !derive(c, chain, forward, d)) return Verdict::discard();
  const Batch b =
      draw_batch(c.draw, d.all, draw_mapped(c.draw, d.all.size()), 1 + c.draw.below(3), may_rotate(c));
  return compare_lanes(chain, d.f, b, 2,
                       forward ? "vmap of the jvp of f: primals, then tangents"
                               : "vmap of the vjp of f: primals, then cotangents");
}

/// Re<u, y>, exact for small numbers.
double exact_product(const Tensors& u, const Tensors& y) {
  double out = 0;
  for (size_t k = 0; k < u.size(); ++k) out += real(sum(conj(u[k]) * y[k])).item<double>();
  return out;
}

Verdict chains_are_adjoint(Case& c) {
  const Chain chain(c);
  if (!chain.valid()) return Verdict::discard();
  const Function f = chain.smooth_function();
  Tensors us, ts, ys, back, forth;
  const Status s = status_of([&] {
    for (const Tensor& x : chain.inputs()) ts.push_back(c.direction(x));
    for (const Tensor& y : f(chain.inputs())) us.push_back(c.direction(y));
    forth = jvp(f, chain.inputs(), ts).tangents;
    back = vjp(f, chain.inputs()).pullback(us);
  });
  if (refused_write(chain, s) || (s.raised && s.code == ErrorCode::NotDifferentiable))
    return Verdict::discard();
  std::string wrong = s.raised ? "derivatives raise " + str(s) : "";
  if (wrong.empty() && !(small_numbers(forth) && small_numbers(back))) return Verdict::discard();
  if (wrong.empty()) {
    const double a = exact_product(us, forth), b = exact_product(ts, back);
    if (a != b) wrong = format("<u, J t> = {}, <J^H u, t> = {}", a, b);
  }
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(wrong,
                       chain.cpp() + cpp_tensors("x", chain.inputs()) + cpp_tensors("t", ts) +
                           cpp_tensors("u", us) + "  // the jvp of f along t, the vjp of f along u\n",
                       1);
}

}  // namespace

void add_chain_laws(std::vector<Law>& laws) {
  const DrawOptions exact{.dtypes = kExactTypes, .exact = true, .max_numel = 12, .mixed = false};
  laws.push_back({37, "chains_under_vmap", "compose",
                  "vmap of a program of up to eight operators is its loop, in place and through views.",
                  exact, false, chained, chains_under_vmap});
  laws.push_back({23, "chains_are_adjoint", "derivative",
                  "Re<u, J t> = Re<J^H u, t> exactly, for programs of up to eight operators.", exact, false,
                  chained_smoothly, chains_are_adjoint});
  laws.push_back({43, "chains_per_lane", "compose", "vmap of a program's jvp and vjp is the loop of them.",
                  exact, false, chained_smoothly, chains_per_lane});
}

}  // namespace lamella::verify
