// Numbers without a tensor keep their value: u64 beyond 2^63, and what a conversion cannot hold.
#include <cmath>
#include <gtest/gtest.h>

#include "lamella/core/math.h"
#include "lamella/lamella.h"
#include "lamella/verify/text/expression.h"

namespace {
using namespace lamella;

constexpr uint64_t kHighest = ~uint64_t{0};
constexpr uint64_t kValues[] = {uint64_t{1} << 63, (uint64_t{1} << 63) + 1, kHighest - 1, kHighest, 7};

TEST(Scalars, ArePrintedInTheDigitsOfTheirDtype) {
  EXPECT_EQ(str(tensor_of({2}, {0.1, -16777216}, DType::F32)), "f32[2] [0.1, -16777216]");
  EXPECT_EQ(str(tensor_of({3}, {0.1, 1e-7, 65504}, DType::F16)), "f16[3] [0.1, 1e-07, 65500]");
  EXPECT_EQ(str(tensor_of({2}, {0.1, 3e38}, DType::BF16)), "bf16[2] [0.1, 3e+38]");
  EXPECT_EQ(str(tensor_of({1}, {0.1}, DType::C64)), "c64[1] [0.1+0j]");
  EXPECT_EQ(str(tensor_of({1}, {0.1}, DType::F64)), "f64[1] [0.1]");
  const Tensor every = make_tensor(Dims{1}, DType::F16);
  for (int bits = 0; bits < 0x7c00; ++bits) {  // what is printed is read back as the same number
    every.data<f16>()->bits = uint16_t(bits);
    const std::string text = str(every);
    const double read = std::stod(text.substr(text.find('[', 4) + 1));
    ASSERT_EQ(str(tensor_of({1}, {read}, DType::F16)), text);
    ASSERT_EQ(Scalar(read).to<f16>().bits, bits) << text;
  }
}

/// See NOTE: [functions of f128].
TEST(Scalars, FunctionsOfF128HaveItsDigits) {
  const f128 x = f128(1) / 3, y = f128(3) / 4;
  const auto near = [](f128 got, f128 want) { return math::fabs(got - want) < 0x1p-108; };
  EXPECT_TRUE(near(math::log(math::exp(x)), x));
  EXPECT_TRUE(near(math::sin(x) * math::sin(x) + math::cos(x) * math::cos(x), 1));
  EXPECT_TRUE(near(math::expm1(x), math::exp(x) - 1) && near(math::log1p(x), math::log(1 + x)));
  EXPECT_TRUE(near(math::pow(x, y), math::exp(y * math::log(x))) &&
              near(math::hypot(x, y), math::sqrt(x * x + y * y)));
  EXPECT_TRUE(near(math::erf(x) + math::erfc(x), 1) && near(math::atan2(math::sin(x), math::cos(x)), x));
  EXPECT_FALSE(near(math::exp(0.5), math::exp(f128(0.5))));
  EXPECT_EQ(math::exp(0.5f), std::exp(0.5f));
}

TEST(Scalars, EveryU64IsRead) {
  for (const uint64_t v : kValues) {
    const Tensor t = make_tensor(Dims{1}, DType::U64);
    *t.data<uint64_t>() = v;
    EXPECT_EQ(t.item<uint64_t>(), v);
    EXPECT_EQ(t.item<double>(), double(v));
    EXPECT_EQ(t.item<float>(), float(v));
    EXPECT_TRUE(t.item<f128>() == f128(v));
    EXPECT_EQ(t.to_vector(), std::vector<double>{double(v)});
    EXPECT_EQ(str(t), "u64[1] [" + std::to_string(v) + "]");
    EXPECT_EQ(Scalar(v).str(), std::to_string(v));
    if (v > uint64_t{1} << 63) {
      EXPECT_THROW(-Scalar(v), Error);  // no integer type holds it
      continue;
    }
    EXPECT_EQ((-Scalar(v)).to<uint64_t>(), 0 - v);
    EXPECT_EQ((-Scalar(v)).to<double>(), -double(v));
  }
  EXPECT_EQ(Scalar(uint64_t{7}), Scalar(7));
  EXPECT_FALSE(Scalar(kHighest) == Scalar(-1));
}

TEST(Scalars, EveryU64IsWritten) {
  for (const uint64_t v : kValues)
    for (const Device device : {Device::CPU, Device::Reference}) {
      const Tensor like = to_device(ones({2}, DType::U64), device);
      EXPECT_EQ(to_device(full_like(like, v), Device::CPU).data<uint64_t>()[1], v);
      EXPECT_EQ(to_device(fill_(clone(like), v), Device::CPU).data<uint64_t>()[1], v);
      EXPECT_EQ(to_device(full_like(like, v, DType::F64), Device::CPU).data<double>()[1], double(v));
      EXPECT_EQ(to_device(like * Scalar(v), Device::CPU).data<uint64_t>()[1], v);
      EXPECT_EQ(to_device(add(like, like, v), Device::CPU).data<uint64_t>()[1], v + 1);
    }
  EXPECT_EQ(full({1}, kHighest).dtype(), DType::U64);
  EXPECT_EQ(full({1}, 7u).dtype(), DType::I64);
}

TEST(Scalars, ExpressionsReadWholeNumbersExactly) {
  const verify::Bindings x = verify::parse_shapes({"x=1"}, DType::U64);
  EXPECT_EQ(verify::evaluate("fill(x, 18446744073709551615)", x).item<uint64_t>(), kHighest);
  EXPECT_EQ(verify::evaluate("fill(x, 9007199254740993)", x).item<uint64_t>(), (uint64_t{1} << 53) + 1);
  EXPECT_EQ(verify::evaluate("full([1], -9223372036854775808)", x).item<int64_t>(), INT64_MIN);
}

/// docs/decisions/0017, by hand: what each dtype holds, and what it does not.
TEST(Scalars, FitWhatHoldsThem) {
  struct Ends {
    DType dtype;
    std::vector<Scalar> in, out;
  };
  const double nan = std::nan(""), inf = INFINITY;
  const Ends all[] = {
      {DType::Bool, {0, 7, -1, 0.5, nan, inf}, {c128(0, 1)}},
      {DType::U8, {0, 255, -1, -255, 255.0, 0.5, -0.5}, {256, -256, 255.5, -1.0, 300, nan, inf, -inf}},
      {DType::I8, {127, -128, 127.0, -128.0, 1.5}, {128, -129, 127.5, -128.5, nan, kHighest}},
      {DType::U32, {4294967295, -4294967295}, {4294967296, -4294967296}},
      {DType::I32, {2147483647.0, -2147483648.0}, {2147483648.0, -2147483649.0}},
      {DType::U64, {kHighest, -1, 0x1.fffffffffffffp63}, {0x1p64, -1.0, nan}},
      {DType::I64, {INT64_MAX, INT64_MIN, -0x1p63, true}, {kHighest, 0x1p63, nan, c128(1, 0)}},
      {DType::F16, {65504, -65504.0, nan, inf, 1e-30}, {65505, -65520.0, 1e300}},
      {DType::BF16, {0x1.fep127, -inf}, {0x1.ffp127}},
      {DType::F32, {0x1.fffffep127, kHighest, nan}, {0x1.fffffefp127, -1e39}},
      {DType::F64, {1e308, kHighest, inf}, {c128(1, 1)}},
      {DType::C64, {c128(1e38, nan), 1, inf}, {c128(1, 1e39), 1e39}},
      {DType::C128, {c128(1e308, -1e308)}, {}},
  };
  for (const Ends& e : all) {
    for (const Scalar& s : e.in) EXPECT_TRUE(s.fits(e.dtype)) << s.str() << " in " << name(e.dtype);
    for (const Scalar& s : e.out) {
      EXPECT_FALSE(s.fits(e.dtype)) << s.str() << " in " << name(e.dtype);
      EXPECT_THROW(full({2}, s, e.dtype), Error);
    }
  }
  EXPECT_EQ(str(full({1}, -1, DType::U8)), "u8[1] [255]");
  EXPECT_EQ(str(ones({2}, DType::U8) + Scalar(300)), "u8[2] [45, 45]");  // an operand, which wraps
}

/// Elements that are converted wrap or saturate; numbers that are stated are refused before.
TEST(Scalars, StatedNumbersAreElementsOrRefused) {
  const double values[] = {1e30, -1e30, std::nan(""), INFINITY, 300, -1, 0x1p63, 7.5, -0.5, 255, -128};
  for (const DType d : {DType::Bool, DType::U8, DType::I8, DType::I32, DType::U64, DType::I64, DType::F16})
    for (const double v : values) {
      const std::vector<double> one = {v};
      if (Scalar(v).fits(d))
        EXPECT_EQ(str(tensor_of(Dims{1}, one, d)), str(to(tensor_of(Dims{1}, one, DType::F64), d)));
      else EXPECT_THROW(tensor_of(Dims{1}, one, d), Error) << v << " in " << name(d);
    }
}

TEST(Scalars, WholeNumbersRoundOnceToF32) {
  const int64_t v = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;  // a tie for f32 if it reaches f64 first
  EXPECT_EQ(Scalar(v).to<float>(), float(v));
  EXPECT_EQ(full({1}, v, DType::F32).item<float>(), float(v));
}

TEST(Scalars, ComplexNumbersDoNotWidenGradients) {
  const Tensor x = complex(full({}, 1, DType::F32), full({}, 2, DType::F32));
  const Scalar i = c128(0, 1);
  const Function cases[] = {[&](const Tensors& a) { return Tensors{a[0] * i}; },
                            [&](const Tensors& a) { return Tensors{add(x, a[0], i)}; },
                            [&](const Tensors& a) { return Tensors{sub(x, a[0], -i)}; }};
  for (const Function& f : cases) {
    const VjpResult r = vjp(f, {x});
    EXPECT_EQ(r.values[0].dtype(), DType::C64);
    EXPECT_EQ(str(r.pullback({x})[0]), "c64[] 2-1j");  // x times the conjugate of i
  }
}

TEST(Scalars, BesideHalvesAreNotRoundedInDerivatives) {
  const ScalarFunction f = [](const Tensors& v) { return sum(xlogy(v[0], v[1])); };
  const Tensor x = tensor_of({1}, {2}, DType::BF16), y = tensor_of({}, {1.0009765625}, DType::F64);
  EXPECT_NEAR(grad(f)({x, y})[0].to_vector()[0], std::log(1.0009765625), 1e-5);
}

/// A tensor without dims counts as one of one dim of size 1.
TEST(Scalars, AreScatteredLikeVectorsOfOne) {
  const auto gradient = [](const Tensor& src, const Tensor& index, const Tensor& x) {
    const Function f = grad([&](const Tensors& v) { return sum(scatter_add(x, 0, index, v[0]) * x); });
    return str(f({src})[0]);
  };
  const Tensor one = tensor_of({}, {5}, DType::F64), three = tensor_of({3}, {5, 6, 7}, DType::F64);
  const Tensor at = zeros({}, DType::I64), at_one = zeros({1}, DType::I64);
  for (const Tensor& x : {one, three}) {
    EXPECT_EQ(gradient(one, at_one, x), "f64[] 5");
    EXPECT_EQ(gradient(one, at, x), "f64[] 5");
    EXPECT_EQ(gradient(three, at, x), "f64[3] [5, 0, 0]");
    EXPECT_EQ(gradient(three, at_one, x), "f64[3] [5, 0, 0]");
    const Function each = vmap([](const Tensors& v) {
      return Tensors{grad([&](const Tensors& w) { return sum(scatter_add(v[0], 0, v[1], w[0])); })({v[2]})};
    });
    const auto lanes = [](const Tensor& t) { return stack({t, t}, 0); };
    EXPECT_EQ(str(each({lanes(x), lanes(at), lanes(three)})[0]), "f64[2,3] [[1, 0, 0], [1, 0, 0]]");
    EXPECT_EQ(str(each({lanes(x), lanes(at_one), lanes(one)})[0]), "f64[2] [1, 1]");
  }
}
}  // namespace
