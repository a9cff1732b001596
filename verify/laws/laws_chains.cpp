// Laws of whole programs: chains of drawn operators on numbers so small that nothing is rounded, so that
// every way to compute them gives the same numbers.
#include <algorithm>
#include <utility>

#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/chain.h"

namespace lamella::verify {

namespace {

const DrawOptions kExact{
    .dtypes = mask(DType::F64) | mask(DType::C128), .exact = true, .max_numel = 12, .mixed = false};

bool some_element(const Tensors& ts) {
  return std::ranges::any_of(ts, [](const Tensor& t) { return t.numel() > 0; });
}

constexpr int kAsked = 64, kOften = 4;

/// One of 16 of its results at least are numbers so small: those of native_layer_norm are square roots, and
/// logaddexp gives one of its operands where the other is far below.
bool reaches_small_numbers(const Op& op) {
  static AskedOnce asked;
  return asked(op, [&] {
    int small = 0;
    some_case(op, kExact, kAsked, [&small](Case& c) {
      Tensors ys;
      small +=
          !status_of([&] { ys = call_boxed(c.op, c.args); }).raised && some_element(ys) && small_numbers(ys);
      return false;
    });
    return small >= kOften;
  });
}

}  // namespace

DrawOptions chain_options() { return kExact; }

bool chained(const Op& op) {
  return inexact_arguments(op) > 0 && !op.has(kRandom) && !op.has(kUnspecified) &&
         op.shape != ShapeClass::Dynamic && reaches_small_numbers(op);
}
bool chained_smoothly(const Op& op) { return chained(op) && has_jvp(op) && has_vjp(op); }

namespace {

/// Writes of what a level knows into what it does not know are refused where views of it are about: the loop
/// shares nothing.
bool refused_write(const Chain& chain, const Status& s) {
  return chain.writes() && s.raised && s.code == ErrorCode::Level;
}

/// What lanes are compared of: a chain, or a derivative of one at inputs and directions.
struct ChainProgram {
  Function f;
  Tensors xs;
  int depth = 0;
  std::string name, cpp;  ///< declares it
};

/// `s` under a vmap of b: the same subject, one level deeper.
ChainProgram under_vmap(const ChainProgram& s, const Batch& b) {
  ChainProgram out{vmap(s.f, {b.in_dims, {0}, Randomness::Error, b.size}), b.xs, s.depth + 1, "v" + s.name,
                   s.cpp};
  out.cpp += format("  const Function {} = vmap({}, {{}, {0}, Randomness::Error, {}});\n", out.name, s.name,
                    cpp_dims(b.in_dims), b.size);
  return out;
}

/// The loop over lanes of b, unless something raises or is rounded.
bool loop_of(const Function& f, const Batch& b, std::vector<Tensors>& lanes) {
  for (int64_t i = 0; i < b.size; ++i) {
    if (status_of([&] { lanes.push_back(f(lane(b, i))); }).raised) return false;
    if (!small_numbers(lanes.back())) return false;
  }
  return true;
}

Finding lanes_unlike(const Tensors& got, const std::vector<Tensors>& lanes, const Function& f,
                     const Batch& b) {
  if (got.size() != lanes[0].size()) return other_number(got, lanes[0]);
  for (size_t i = 0; i < lanes.size(); ++i)
    for (size_t k = 0; k < got.size(); ++k) {
      // Not by bits: zeros may have either sign where absent derivatives are zeros.
      const Tensor mine = lane(got[k], 0, int64_t(i));
      if (disagrees(mine, lanes[i][k], Agreement::Rounding).empty()) continue;
      const Finding d =
          disagrees(mine, lanes[i][k], Agreement::Rounding, on_the_way([&] { f(lane(b, int64_t(i))); }));
      if (!d.empty()) return format("result {}, lane {}: ", k, i) + d;
    }
  return "";
}

/// No lanes: the results have the types of one lane's, and a dim of 0 before.
Finding empty_unlike(const Tensors& got, const Tensors& example) {
  if (got.size() != example.size()) return other_number(got, example);
  for (size_t k = 0; k < got.size(); ++k) {
    Dims sizes(example[k].sizes());
    sizes.insert(0, 0);
    if (got[k].dtype() != example[k].dtype() || !std::ranges::equal(got[k].sizes(), sizes))
      return format("result {} is {}, expected {}{}", k, got[k], example[k].dtype(), lamella::str(sizes));
  }
  return "";
}

/// What a lane of an empty batch would be: views ask for its strides.
Tensors lane_like(const Batch& b, Tensors examples) {
  for (size_t k = 0; k < examples.size(); ++k)
    if (b.in_dims[k] >= 0) examples[k] = in_layout_of_lane(b.xs[k], b.in_dims[k], examples[k]);
  return examples;
}

/// Both sides, printed lane by lane.
std::string lanes_text(const ChainProgram& s, const Batch& b) {
  std::string out = s.cpp + cpp_tensors("x", b.xs), lane_list;
  for (size_t k = 0; k < b.xs.size(); ++k)
    lane_list += (k ? ", " : "") +
                 (b.in_dims[k] < 0 ? format("x{}", k) : format("select(x{}, {}, i)", k, b.in_dims[k]));
  return out + under_vmap({s.f, {}, 0, s.name, ""}, b).cpp +
         format(
             "  const Tensors got = v{}({});\n  for (int64_t i = 0, k = 0; i < {}; ++i, k = 0)\n"
             "    for (const Tensor& want : {}(Tensors{{}}))\n      std::cout << \"got      \" << "
             "str(select(got[size_t(k++)], 0, i)) << \"\\nexpected \" << str(want) << '\\n';\n",
             s.name, cpp_names("x", b.xs.size()), b.size, s.name, lane_list);
}

Verdict compare_lanes(const Chain& chain, const ChainProgram& s, const Batch& b) {
  std::vector<Tensors> lanes;
  Tensors got, example;
  if (!loop_of(s.f, b, lanes)) return Verdict::discard();
  if (b.size == 0 && status_of([&] { example = s.f(lane_like(b, s.xs)); }).raised) return Verdict::discard();
  const Status status = status_of([&] { got = under_vmap(s, b).f(b.xs); });
  if (refused_write(chain, status)) return Verdict::discard();
  const Finding d = status.raised ? "the loop raises nothing, vmap raises " + str(status)
                    : b.size == 0 ? empty_unlike(got, example)
                                  : lanes_unlike(got, lanes, s.f, b);
  if (d.empty()) return Verdict::pass(s.depth + 1);
  return Verdict::fail(d, lanes_text(s, b), s.depth + 1);
}

/// One vmap of the subject, or two where `twice` says so, against the loop over lanes of the outer one.
Verdict check_lanes(Case& c, const Chain& chain, const ChainProgram& s, bool (*twice)(Draw&)) {
  const size_t n = s.xs.size();
  const Batch b = draw_batch(c.draw, s.xs, draw_mapped(c.draw, n), draw_lanes(c.draw), may_rotate(c));
  if (!twice(c.draw)) return compare_lanes(chain, s, b);
  const Batch two = draw_batch(c.draw, b.xs, draw_mapped(c.draw, n), draw_lanes(c.draw), may_rotate(c));
  for (int64_t i = 0; i < two.size; ++i) {  // the inner loop raises and rounds nothing
    std::vector<Tensors> lanes;
    if (!loop_of(s.f, {b.size, lane(two, i), b.in_dims}, lanes)) return Verdict::discard();
  }
  return compare_lanes(chain, under_vmap(s, b), two);
}

Verdict chains_under_vmap(Case& c) {
  const Chain chain(c);
  if (!chain.valid()) return Verdict::discard();
  return check_lanes(c, chain, {chain.function(), chain.inputs(), 0, "f", chain.cpp()},
                     [](Draw& d) { return d.flag(); });
}

/// The jvp of s.f along drawn tangents, or its vjp; both are inputs, and the primal results are returned,
/// too: small numbers there as well.
bool derive(Case& c, ChainProgram& s, bool forward) {
  Tensors likes = s.xs;
  if (!forward && status_of([&] { likes = s.f(s.xs); }).raised) return false;
  Tensors all = s.xs;
  const size_t n = all.size();
  for (const Tensor& t : likes) all.push_back(c.direction(t));
  const std::string below = std::exchange(s.name, "d" + s.name);
  const auto list = [&](size_t from, size_t to) {
    std::string out;
    for (size_t k = from; k < to; ++k) out += format("{}in[{}]", k > from ? ", " : "", k);
    return "{" + out + "}";
  };
  const std::string xs = list(0, n), along = list(n, all.size());
  s.cpp += format("  const Function {} = [&](const Tensors& in) {\n    Tensors out = ", s.name) +
           (forward ? "jvp(" + below + ", " + xs + ", " + along + ").tangents;\n"
                    : "vjp(" + below + ", " + xs + ").pullback(" + along + ");\n") +
           "    for (const Tensor& y : " + below + "(" + xs + ")) out.push_back(y);\n    return out;\n  };\n";
  s.f = [f = std::move(s.f), forward, n](const Tensors& in) {
    const Tensors xs(in.begin(), in.begin() + long(n)), along(in.begin() + long(n), in.end());
    Tensors out = forward ? jvp(f, xs, along).tangents : vjp(f, xs).pullback(along);
    for (const Tensor& y : f(xs)) out.push_back(y);
    return out;
  };
  s.xs = std::move(all), ++s.depth;
  return true;
}

Verdict chains_per_lane(Case& c) {
  const Chain chain(c);
  const bool forward = c.draw.flag();
  if (!chain.valid()) return Verdict::discard();
  ChainProgram s{chain.smooth_function(), chain.inputs(), 0, "f0", chain.cpp(true)};
  if (!derive(c, s, forward)) return Verdict::discard();
  if (c.draw.flag() && !derive(c, s, c.draw.flag())) return Verdict::discard();
  return check_lanes(c, chain, s, [](Draw& d) { return d.flag(); });
}

/// Re<u, y>, exact for small numbers.
double exact_product(const Tensors& u, const Tensors& y) {
  double out = 0;
  for (size_t k = 0; k < u.size(); ++k) out += real(sum(conj(u[k]) * y[k])).item<double>();
  return out;
}

std::string adjoint_text(size_t inputs, size_t results) {
  return format(
      R"(  const Tensors ts{}, us{}, forth = jvp(f0, {}, ts).tangents, back = vjp(f0, {}).pullback(us);
  double got = 0, expected = 0;
  for (size_t k = 0; k < us.size(); ++k) got += real(sum(conj(us[k]) * forth[k])).item<double>();
  for (size_t k = 0; k < ts.size(); ++k) expected += real(sum(conj(ts[k]) * back[k])).item<double>();
  std::cout << "got      " << got << "\nexpected " << expected << '\n';
)",
      cpp_names("t", inputs), cpp_names("u", results), cpp_names("x", inputs), cpp_names("x", inputs));
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
  Finding wrong = s.raised ? "derivatives raise " + str(s) : "";
  if (wrong.empty() && !(small_numbers(forth) && small_numbers(back))) return Verdict::discard();
  if (wrong.empty()) {
    const double a = exact_product(us, forth), b = exact_product(ts, back);
    if (a != b) wrong = format("<u, J t> = {}, <J^H u, t> = {}", a, b);
  }
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(wrong,
                       chain.cpp(true) + cpp_tensors("x", chain.inputs()) + cpp_tensors("t", ts) +
                           cpp_tensors("u", us) + adjoint_text(chain.inputs().size(), us.size()),
                       1);
}

}  // namespace

void add_chain_laws(std::vector<Law>& laws) {
  laws.push_back({37, "chains_under_vmap", "compose",
                  "vmap of a program of up to eight operators is its loop, in place and through views.",
                  kExact, false, chained, chains_under_vmap});
  laws.push_back({23, "chains_are_adjoint", "derivative",
                  "Re<u, J t> = Re<J^H u, t> exactly, for programs of up to eight operators.", kExact, false,
                  chained_smoothly, chains_are_adjoint});
  laws.push_back({43, "chains_per_lane", "compose",
                  "vmap of a program's derivatives, up to the second, is the loop of them.", kExact, false,
                  chained_smoothly, chains_per_lane});
}

}  // namespace lamella::verify
