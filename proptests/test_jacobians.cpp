// jacrev, jacfwd and hessian: complex numbers, argnums, several results, aux, groups of rows, draws.
#include <gtest/gtest.h>
#include <limits>

#include "lamella/lamella.h"

#include "support.h"

namespace test_jacobians {  // files of this room are compiled several at a time
namespace {
using namespace lamella;
using tests::first_line, tests::refusal;

const Tensor kReal = tensor_of({2}, {1, 2}, DType::F64);
Tensor two_complex() { return complex(kReal, tensor_of({2}, {3, -1}, DType::F64)); }
std::string text(const Tensors& ts) {
  std::string out;
  for (const Tensor& t : ts) out += (out.empty() ? "" : " ") + str(t);
  return out;
}
const UnaryFunction square = [](const Tensor& t) { return t * t; };
const JacobianOptions kHolomorphic{.holomorphic = true};

TEST(Jacobians, OfHolomorphicFunctionsAreNotConjugated) {
  const Tensor z = two_complex();
  const std::string want = "c128[2,2] [[2+6j, 0+0j], [0+0j, 4-2j]]";
  EXPECT_EQ(str(jacrev(square, kHolomorphic)(z) + 0), want);  // + 0: no negative zeros
  EXPECT_EQ(str(jacfwd(square, kHolomorphic)(z) + 0), want);
  const UnaryFunction cube = [](const Tensor& t) { return t * t * t; };
  const Tensor h = hessian(cube, kHolomorphic)(z);
  EXPECT_EQ(str(select(select(h, 0, 0), 0, 0) + 0), "c128[2] [6+18j, 0+0j]");
}

TEST(Jacobians, OfRealArgumentsKeepTheImaginaryPart) {
  const UnaryFunction f = [](const Tensor& t) { return complex(t * t, t * 3); };
  const std::string want = "c128[2,2] [[2+3j, 0+0j], [0+0j, 4+3j]]";
  EXPECT_EQ(str(jacrev(f)(kReal)), want);
  EXPECT_EQ(str(jacfwd(f)(kReal)), want);
  EXPECT_EQ(str(hessian(f)(kReal)),
            "c128[2,2,2] [[[2+0j, 0+0j], [0+0j, 0+0j]], [[0+0j, 0+0j], [0+0j, 2+0j]]]");
  const Tensor narrow = to(kReal, DType::F16);
  const UnaryFunction wide = [](const Tensor& t) {
    return complex(to(t, DType::F32), to(t * 3, DType::F32));
  };
  EXPECT_EQ(str(jacrev(wide)(narrow)), "c64[2,2] [[1+3j, 0+0j], [0+0j, 1+3j]]");
}

TEST(Jacobians, OfSeveralArgumentsAndResults) {
  const Function two = [](const Tensors& v) { return Tensors{v[0] * v[2], sum(v[2] * v[2])}; };
  const Tensors xs{kReal, arange(3), kReal * 2};
  const std::string want = "f64[2,2] [[1, 0], [0, 2]] f64[2,2] [[2, 0], [0, 4]] f64[2] [4, 8] f64[2] [0, 0]";
  for (const int64_t chunk : {0, 1, 2, 5}) {
    const JacobianOptions o{.argnums = {-1, 0}, .chunk = chunk};
    EXPECT_EQ(text(jacrev(two, o)(xs)), want) << chunk;
    EXPECT_EQ(text(jacfwd(two, o)(xs)), want) << chunk;
    const Tensors h = hessian(two, o)(xs);
    ASSERT_EQ(h.size(), 8u);
    EXPECT_EQ(str(h[4]), "f64[2,2] [[2, 0], [0, 2]]");                        // z z of the second
    EXPECT_EQ(str(h[1]), "f64[2,2,2] [[[1, 0], [0, 0]], [[0, 0], [0, 1]]]");  // z x of the first
    EXPECT_EQ(str(h[0]) + str(h[3]),
              "f64[2,2,2] [[[0, 0], [0, 0]], [[0, 0], [0, 0]]]"  // z z, x x
              "f64[2,2,2] [[[0, 0], [0, 0]], [[0, 0], [0, 0]]]");
  }
  const Tensor none = zeros({0}, DType::F64);
  EXPECT_EQ(str(jacrev(square, {.chunk = 1})(none)) + str(jacfwd(square, {.chunk = 1})(none)),
            "f64[0,0] []f64[0,0] []");
}

TEST(Jacobians, HandAuxThrough) {
  const AuxFunction f = [](const Tensors& v) { return std::pair(Tensors{v[0] * v[0]}, Tensors{sum(v[0])}); };
  const auto shown = [](const std::pair<Tensors, Tensors>& r) {
    return text(r.first) + "; " + text(r.second);
  };
  EXPECT_EQ(shown(jacrev_has_aux(f)({kReal})), "f64[2,2] [[2, 0], [0, 4]]; f64[] 3");
  EXPECT_EQ(shown(jacfwd_has_aux(f)({kReal})), "f64[2,2] [[2, 0], [0, 4]]; f64[] 3");
  EXPECT_EQ(shown(hessian_has_aux(f)({kReal})), "f64[2,2,2] [[[2, 0], [0, 0]], [[0, 0], [0, 2]]]; f64[] 3");
  const AuxFunction g = [](const Tensors& v) { return std::pair(Tensors{sum(v[0] * v[0])}, Tensors{v[0]}); };
  EXPECT_EQ(text(value_and_grad_has_aux(g)({kReal})), "f64[] 5 f64[2] [2, 4] f64[2] [1, 2]");
  const JvpResult r = jvp_has_aux(g, {kReal}, {kReal});
  EXPECT_EQ(text(r.values) + " " + text(r.tangents) + " " + text(r.aux), "f64[] 5 f64[] 10 f64[2] [1, 2]");
  EXPECT_EQ(str(r.aux[0] * 2), "f64[2] [2, 4]");  // no wrapper is left on it
}

TEST(Jacobians, DrawAsOneCallDoes) {
  const UnaryFunction noisy = [](const Tensor& t) { return t * rand({2}, {}, DType::F64) + rand({2}); };
  std::string want;
  for (const bool forward : {false, true})
    for (const int64_t chunk : {0, 1}) {
      manual_seed(3);
      const JacobianOptions o{.chunk = chunk, .randomness = Randomness::Same};
      const Tensor j = forward ? jacfwd(noisy, o)(kReal) : jacrev(noisy, o)(kReal);
      const std::string got = str(j) + " " + std::to_string(default_generator().counter());
      if (want.empty()) want = got;
      EXPECT_EQ(got, want) << forward << chunk;
    }
}

TEST(Vmap, InChunksIsVmap) {
  const Tensor x = reshape(arange(14, {}, {}, DType::F64), {7, 2}), w = kReal;
  const Function f = [](const Tensors& v) {
    return Tensors{v[0] * rand({2}, {}, DType::F64) + v[1], select(v[0], 0, 0), rand({2})};
  };
  for (const Randomness mode : {Randomness::Same, Randomness::Different}) {
    Tensors want;
    for (const int64_t chunk : {0, 1, 3, 7, 100}) {
      manual_seed(5);
      VmapOptions o{.in_dims = {0, kNone}, .out_dims = {-1, 0, 0}, .randomness = mode, .chunk = chunk};
      const Tensors got = vmap(f, o)({x, w});
      EXPECT_EQ(default_generator().counter(), 2u);
      if (want.empty()) want = got;
      EXPECT_EQ(text(got), text(want)) << chunk;
    }
  }
  const Function constant = [](const Tensors& v) { return Tensors{v[1] * 2, v[1]}; };
  const VmapOptions o{.in_dims = {0, kNone}, .out_dims = {kNone, 1}, .chunk = 3};
  const Tensors ys = vmap(constant, o)({x, w});
  EXPECT_EQ(str(ys[0]), "f64[2] [2, 4]");
  EXPECT_EQ(str(ys[1]), "f64[2,7] [[1, 1, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2, 2]]");
  VmapOptions sized{.in_dims = {kNone}, .size = 5, .chunk = 2};
  EXPECT_EQ(
      str(vmap(Function([](const Tensors& v) { return v; }), sized)({w})[0]),
      str(vmap(Function([](const Tensors& v) { return v; }), VmapOptions{{kNone}, {0}, {}, 5})({w})[0]));
}

TEST(Vmap, ChunksOfNoLanesRefuseWhatOthersDo) {
  const Function same = [](const Tensors& v) { return v; };
  for (const int64_t chunk : {0, 2})
    for (const int64_t lanes : {0, 3}) {
      const VmapOptions o{.out_dims = {5}, .chunk = chunk};
      EXPECT_EQ(first_line(refusal([&] {
                  vmap(same, o)({zeros({lanes, 2})});
                })),
                "dim_out_of_range: vmap: out_dims = 5 is out of range for f32[2]; expected -2 <= dim < 2");
    }
}

TEST(Vmap, NumbersOfLanesFitInAnInt64) {
  const Function f = [](const Tensors& v) { return v; };
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(refusal([&] { vmap(f, VmapOptions{.first_lane = most - 1})({ones({2})}); }),
            "value: vmap: first_lane = 9223372036854775806 of 2 lanes; expected lanes that an int64 numbers");
  EXPECT_EQ(str(vmap(f, VmapOptions{.first_lane = most - 2})({ones({2})})[0]), "f32[2] [1, 1]");
}

/// An entry of cat that adds nothing counts for the dtype, to which the others are converted at once.
TEST(Vmap, JoinsInTheDtypeOfAnEmptyEntry) {
  const Tensor x = tensor_of({2, 1}, {-2069970000, 70000}, DType::I32), half = ones({2, 1}, DType::F16);
  const Function join = [](const Tensors& v) {
    return Tensors{cat({v[0], v[1], zeros({0}, DType::F64)}, 0)};
  };
  EXPECT_EQ(str(vmap(join)({x, half})[0]), "f64[2,2] [[-2069970000, 1], [70000, 1]]");
}

TEST(Vmap, ChunksDrawAlikeWhereTheFunctionSeeds) {
  const Function f = [](const Tensors& xs) {
    const Tensor before = rand({}, {}, DType::F64);
    manual_seed(5);
    return Tensors{xs[0] * 0 + before, xs[0] * 0 + rand({}, {}, DType::F64)};
  };
  const auto drawn = [&](int64_t chunk) {
    manual_seed(3);
    return vmap(f, {.randomness = Randomness::Same, .chunk = chunk})({ones({4}, DType::F64)});
  };
  const Tensors want = drawn(0), got = drawn(2);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i].to_vector(), want[i].to_vector());
}

TEST(Vmap, ViewsInTheLoopAreWritten) {
  const UnaryFunction f = [](const Tensor& x) {
    const Tensor y = x * 1;
    mul_(slice(y, 0, 1, 3), sum(y));
    return y;
  };
  const Tensor x = reshape(to(arange(12), DType::F64), {3, 4});
  const std::vector<double> want = vmap(f)(x).to_vector();
  const ForceLoop loop;
  EXPECT_EQ(vmap(f)(x).to_vector(), want);
}

TEST(Vmap, InChunksNestsAndDifferentiates) {
  const Tensor x = reshape(arange(12, {}, {}, DType::F64), {3, 4});
  const auto mapped = [](int64_t chunk) {
    VmapOptions o;
    o.chunk = chunk;
    const Function rows = [o](const Tensors& v) {
      return vmap(Function([](const Tensors& u) { return Tensors{u[0] * u[0]}; }), o)(v);
    };
    return vmap(rows, o);
  };
  EXPECT_EQ(str(mapped(2)({x})[0]), str(x * x));
  const ScalarFunction total = [&](const Tensors& v) { return sum(mapped(2)(v)[0]); };
  EXPECT_EQ(str(grad(total)({x})[0]), str(x * 2));
}
}  // namespace
}  // namespace test_jacobians
