// run_carried: what a user's transform carries goes along through calls, views, lists, writes and levels.
#include <cmath>
#include <gtest/gtest.h>

#include "lamella/transforms/carried.h"
#include "lamella/transforms/jvp.h"

#include "support.h"

namespace {
using namespace lamella;
using tests::f64;
using tests::first_line;
using tests::number;
using tests::refusal;

/// Twice the value: of a linear program what is carried is twice its result.
Tensor twice(const Tensor& t) { return t * 2; }
constexpr CarriedRules kTwice{"twice", twice};
/// Of what no argument led to: nothing is known.
Tensor nan_like(const Tensor& t) { return full(t.sizes(), NAN, t.dtype()); }
constexpr CarriedRules kUnknown{"unknown", nan_like};

std::vector<double> values(const Tensor& t) { return contiguous(t).to_vector(); }

TEST(Carried, OperatorsAreCalledOnBoth) {
  const Carried r =
      run_carried(kTwice, [](const Tensors& v) { return Tensors{v[0] * v[0] + 1.0}; }, {f64({3, 5})});
  EXPECT_EQ(r.values[0].to_vector(), (std::vector<double>{10, 26}));
  EXPECT_EQ(r.carried[0].to_vector(),
            (std::vector<double>{38, 102}));  // (2 x)^2 + 2: a number is a constant, too
}

TEST(Carried, ConstantsCarryWhatTheRulesSay) {
  const Tensor c = f64({10, 20});
  const Carried r = run_carried(kTwice,
                                [&](const Tensors& v) {
                                  return Tensors{v[0] + c, c};
                                },
                                {f64({3, 5})});
  EXPECT_EQ(r.carried[0].to_vector(), (std::vector<double>{26, 50}));
  EXPECT_EQ(r.carried[1].to_vector(), (std::vector<double>{20, 40}));
  const Carried unknown = run_carried(kUnknown, [&](const Tensors& v) { return Tensors{v[0]}; }, {c});
  EXPECT_TRUE(std::isnan(unknown.carried[0].to_vector()[0]));
  EXPECT_EQ(unknown.values[0].to_vector(), c.to_vector());
}

TEST(Carried, IntegersCarryThemselves) {
  const Carried r =
      run_carried(kTwice, [](const Tensors& v) { return Tensors{argmax(v[0], 0)}; }, {f64({3, 5})});
  EXPECT_EQ(r.values[0].item<int64_t>(), 1);
  EXPECT_EQ(r.carried[0].item<int64_t>(), 1);
}

TEST(Carried, ViewsListsAndCompositesKeepIt) {
  const Function f = [](const Tensors& v) {
    Tensors parts = split(transpose(v[0], 0, 1), 1, 0);
    parts.push_back(mean(v[0]));
    return parts;
  };
  const Tensor x = f64({2, 2}, {1, 2, 3, 4});
  const Carried r = run_carried(kTwice, f, {x});
  ASSERT_EQ(r.values.size(), 3u);
  const Tensors plain = f({x});
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(values(r.values[k]), values(plain[k])) << k;
    EXPECT_EQ(values(r.carried[k]), values(plain[k] * 2)) << k;
  }
}

TEST(Carried, WritesReplaceIt) {
  const Function f = [](const Tensors& v) {
    const Tensor own = zeros({2}, DType::F64);
    copy_(select(own, 0, 1), select(v[0], 0, 0));
    return Tensors{own};
  };
  const Carried r = run_carried(kTwice, f, {f64({3, 5})});
  EXPECT_EQ(r.values[0].to_vector(), (std::vector<double>{0, 3}));
  EXPECT_EQ(r.carried[0].to_vector(), (std::vector<double>{0, 6}));
}

/// Carried tensors are as good as others under levels around and within.
TEST(Carried, LevelsStandAroundAndWithin) {
  const Function carried = [](const Tensors& v) {
    return run_carried(
               kTwice, [](const Tensors& u) { return Tensors{u[0] * u[0]}; }, v)
        .carried;
  };
  EXPECT_EQ(vmap(carried)({f64({3, 5})})[0].to_vector(), (std::vector<double>{36, 100}));
  EXPECT_EQ(jvp(carried, {f64({3, 5})}, {f64({1, 1})}).tangents[0].to_vector(),
            (std::vector<double>{24, 40}));
  const auto slope = [](const Tensors& v) {
    return Tensors{grad([](const Tensor& t) { return sum(t * t * t); })(v[0])};
  };
  const Carried r = run_carried(kTwice, slope, {f64({1, 2})});
  EXPECT_EQ(r.values[0].to_vector(), (std::vector<double>{3, 12}));
  EXPECT_EQ(r.carried[0].to_vector(), (std::vector<double>{12, 48}));
}

TEST(Carried, ErrorsNameTheLevel) {
  EXPECT_NE(refusal([] {
              run_carried(kTwice, [](const Tensors& v) { return Tensors{sum(v[0], {3})}; }, {f64({1})});
            }).find("under: twice#1"),
            std::string::npos);
  Tensor escaped;
  run_carried(kTwice, [&](const Tensors& v) { return Tensors{escaped = v[0]}; }, {f64({1})});
  EXPECT_REFUSED(exp(escaped), "escaped_wrapper: exp: x is wrapped by");
}

Tensor of_zeros(const Tensor& t) { return zeros_like(t); }
constexpr CarriedRules kZeros{"zeros", of_zeros};

/// It crashed: what another level of this key wraps, as an argument beside this one's and as a result.
TEST(Carried, TensorsOfAnEndedLevelAreRefused) {
  const Tensors one = {f64({1})};
  Tensor escaped;
  run_carried(
      kZeros, [&](const Tensors& v) { return Tensors{escaped = v[0]}; }, one);
  EXPECT_REFUSED(run_carried(
                     kZeros, [&](const Tensors& v) { return Tensors{v[0] * escaped}; }, one),
                 "escaped_wrapper: mul: b is wrapped by");
  EXPECT_REFUSED(run_carried(
                     kZeros, [&](const Tensors&) { return Tensors{escaped}; }, one),
                 "escaped_wrapper: zeros_like: x is wrapped by");
  EXPECT_REFUSED(run_carried(
                     kZeros, [&](const Tensors& v) { return Tensors{copy_(v[0] * v[0], escaped)}; }, one),
                 "escaped_wrapper: copy: src is wrapped by");
}
}  // namespace
