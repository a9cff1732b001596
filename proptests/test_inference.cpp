// Inference mode: same values as without, marks on memory, what may not be done with marked tensors.
#include <gtest/gtest.h>
#include <thread>

#include "lamella/lamella.h"
#include "lamella/verify/case/case.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/run/runner.h"

namespace test_inference {  // files of this room are compiled several at a time
namespace {
using namespace lamella;

Tensor one_two() { return tensor_of({2}, {1, 2}, DType::F64); }
const UnaryFunction kCubes = [](const Tensor& t) { return sum(t * t * t); };

Tensor made_inside() {
  const InferenceMode on;
  return one_two();
}

TEST(Inference, GivesThePlainValuesOfEveryOperator) {
  const verify::Law& law = *verify::find_law("constants_stay");  // for what it draws
  int compared = 0;
  for (const Op* op : verify::all_operators()) {
    if (op->has(kRandom) || op->has(kUnspecified)) continue;
    for (uint64_t i = 0; i < 20; ++i) {
      const verify::Choices choices = verify::choices_of(7, law, *op, i);
      const verify::Case c(*op, choices, law.options);
      Tensors plain, inside;
      try {
        plain = c.function(c.tensors())(c.values(c.tensors()));
      } catch (const Error&) { continue; }
      {
        const InferenceMode on;
        inside = c.function(c.tensors())(c.values(c.tensors()));
      }
      ASSERT_EQ(verify::differs(inside, plain), "") << op->name;
      ++compared;
      for (const Tensor& y : inside) {
        bool shared = y.numel() == 0 || y.device() == Device::Meta;  // empty ones may be of no memory
        for (const auto& slot : c.tensors()) shared |= c.at(slot).shares_storage(y);
        EXPECT_TRUE(shared || is_inference(y)) << op->name;
      }
      for (const Tensor& y : plain) EXPECT_FALSE(is_inference(y)) << op->name;
    }
  }
  EXPECT_GT(compared, 1000);
}

TEST(Inference, MarksMemoryMadeInside) {
  const Tensor outside = one_two();
  Tensor made, view, of_outside, large;
  {
    const InferenceMode on;
    EXPECT_TRUE(is_inference_mode());
    made = outside * 2.0;
    view = select(made, 0, 0);
    of_outside = select(outside, 0, 0);
    large = zeros({1000});
  }
  EXPECT_FALSE(is_inference_mode());
  for (const Tensor& t : {made, view, large, select(made, 0, 1), detach(made), reshape(made, {2, 1})})
    EXPECT_TRUE(is_inference(t));
  for (const Tensor& t : {outside, of_outside, made * 2.0, clone(made), one_two()})
    EXPECT_FALSE(is_inference(t));
}

TEST(Inference, RecordsNothing) {
  const Tensor w = requires_grad(one_two());
  const InferenceMode on;
  EXPECT_FALSE(is_grad_required(w * w));
  const EnableGrad no_effect;
  EXPECT_FALSE(is_grad_required(w * w));
  add_(w, ones({}, DType::F64));  // as an optimiser does
  EXPECT_EQ(str(detach(w)), "f64[2] [2, 3]");
}

TEST(Inference, IsTurnedOffInside) {
  const Tensor w = requires_grad(one_two());
  const InferenceMode on;
  {
    const InferenceMode off(false);
    EXPECT_FALSE(is_inference_mode());
    const Tensor y = w * w;
    EXPECT_FALSE(is_inference(y));
    backward(sum(y));
    const InferenceMode again;
    EXPECT_TRUE(is_inference_mode());
  }
  EXPECT_TRUE(is_inference_mode());
  EXPECT_FALSE(is_grad_required(w * w));
  EXPECT_EQ(str(grad_of(w)), "f64[2] [2, 4]");
}

TEST(Inference, EndsWithAnException) {
  const uint64_t birth = lamella::detail::birth_serial, exclude = dispatch_state().exclude;
  const auto fails = [](const Tensor& t) {
    const InferenceMode on;
    return reshape(t, {7});
  };
  EXPECT_THROW(fails(one_two()), Error);
  EXPECT_THROW(grad(UnaryFunction(fails))(one_two()), Error);
  EXPECT_EQ(lamella::detail::birth_serial, birth);
  EXPECT_EQ(dispatch_state().exclude, exclude);
}

TEST(Inference, LetsLevelsInsideRecord) {
  const Tensor x = one_two(), rows = stack(Tensors{x, x * 2}, 0);
  const InferenceMode on;
  EXPECT_EQ(str(grad(kCubes)(x)), "f64[2] [3, 12]");
  EXPECT_EQ(str(jacfwd(kCubes)(x)), "f64[2] [3, 12]");
  EXPECT_EQ(str(vmap(grad(kCubes))(rows)), "f64[2,2] [[3, 12], [12, 48]]");
  EXPECT_EQ(str(hessian(kCubes)(x)), "f64[2,2] [[6, 0], [0, 12]]");
  EXPECT_TRUE(is_inference(grad(kCubes)(x)));
  int marked = 0;
  const UnaryFunction looks = [&](const Tensor& t) {
    marked += is_inference(t * t) && is_inference(zeros({2}));
    return sum(t);
  };
  (void)grad(looks)(x), (void)jacfwd(looks)(x), (void)vmap(looks)(rows);
  EXPECT_EQ(marked, 3);
}

/// Levels keep what they save apart from later writes as they do outside, also when the pullback leaves.
TEST(Inference, PullbacksMayLeave) {
  std::optional<Pullback> pullback;
  Tensor c;
  {
    const InferenceMode on;
    c = one_two();
    pullback = vjp([&](const Tensors& xs) { return Tensors{sum(xs[0] * c)}; }, {one_two()}).pullback;
  }
  EXPECT_EQ(str((*pullback)({ones({}, DType::F64)})[0]), "f64[2] [1, 2]");
  add_(c, ones({}, DType::F64));
  EXPECT_THROW((*pullback)({ones({}, DType::F64)}), Error);
}

TEST(Inference, IsConstantForLevelsOpenBefore) {
  const UnaryFunction f = [](const Tensor& t) {
    Tensor c;
    {
      const InferenceMode on;
      c = t * t;
      EXPECT_TRUE(is_inference(c));
    }
    return sum(c * t);
  };
  EXPECT_EQ(str(grad(f)(one_two())), "f64[2] [1, 4]");
  EXPECT_EQ(str(jacfwd(f)(one_two())), "f64[2] [1, 4]");
  EXPECT_EQ(str(vmap(grad(f))(unsqueeze(one_two(), 0))), "f64[1,2] [[1, 4]]");
}

TEST(Inference, IsRefusedByBaseAutograd) {
  const Tensor c = made_inside(), w = requires_grad(one_two());
  EXPECT_THROW(w * c, Error);
  EXPECT_THROW(w * select(c, 0, 0), Error);
  EXPECT_THROW(matmul(c, w), Error);
  EXPECT_THROW(add_(c, w), Error);
  EXPECT_THROW(add_out(c, w, w), Error);
  EXPECT_THROW(requires_grad(c), Error);
  EXPECT_THROW(requires_grad_(c), Error);
  EXPECT_EQ(str(c), "f64[2] [1, 2]");
  backward(sum((w + c) * clone(c)));  // add saves nothing
  EXPECT_EQ(str(grad_of(w)), "f64[2] [1, 2]");
}

TEST(Inference, IsRefusedInListsAndByHooks) {
  const Tensor c = made_inside(), w = requires_grad(one_two());
  EXPECT_THROW(vmap(UnaryFunction([&](const Tensor& t) { return t * w; }))(unsqueeze(c, 0)), Error);
  const SavedTensorHooks hooks([](const Tensor& t) { return [t] { return t; }; });
  EXPECT_THROW(w * c, Error);
}

TEST(Inference, CountsWrites) {
  const Tensor c = made_inside(), w = requires_grad(one_two()), y = w * 1.0, z = y * y;
  const uint32_t before = version_of(c);
  add_(c, ones({}, DType::F64));  // outside, without derivatives
  {
    const InferenceMode on;
    add_(c, ones({}, DType::F64));
    add_(detach(y), ones({}, DType::F64));
  }
  EXPECT_EQ(version_of(c), before + 2);
  EXPECT_THROW(backward(sum(z)), Error);  // mul saved y
}

TEST(Inference, StaysWithItsThread) {
  const InferenceMode on;
  const DispatchState::Captured state = DispatchState::capture();
  bool alone = true, captured = false, after = true;
  std::thread([&] {
    alone = is_inference_mode();
    {
      const ScopedState scope(state);
      captured = is_inference(one_two());
    }
    after = is_inference_mode();
  }).join();
  EXPECT_FALSE(alone);
  EXPECT_TRUE(captured);
  EXPECT_FALSE(after);
}

}  // namespace
}  // namespace test_inference
