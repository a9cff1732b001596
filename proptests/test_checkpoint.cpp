// checkpoint: bitwise the function itself, in values, draws and gradients at every level, and less is kept.
#include <gtest/gtest.h>
#include <thread>

#include "lamella/lamella.h"
#include "lamella/transforms/tapes/reasons.h"

#include "support.h"

namespace test_checkpoint {  // files of this room are compiled several at a time
namespace {
using namespace lamella;
using namespace lamella::tests;

const Tensor& point() {
  static const Tensor x = f64({2, 3}, {0.5, -1.25, 2, 0.75, -3, 1});
  return x;
}
/// Bit by bit, or within some roundings of the largest element.
void expect_same(const Tensor& got, const Tensor& want, double roundings = 0) {
  EXPECT_EQ(type_str(got), type_str(want));
  const std::vector<double> a = got.to_vector(), b = want.to_vector();
  double largest = 0;
  for (const double v : b) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < a.size(); ++i) EXPECT_LE(std::abs(a[i] - b[i]), roundings * 0x1p-53 * largest) << i;
}

/// Drops half and scales, then something that saves its result, a write and a view.
Tensors layer(const Tensors& xs) {
  const Tensor kept = to(lt(rand(xs[0].sizes(), {}, DType::F64), 0.5), DType::F64);
  Tensor y = exp(sin(xs[0]) * kept) * tanh(xs[0]);
  add_(y, y);
  return {y * cos(y), sum(select(y, 0, 0))};
}
Tensors twice(const Tensors& xs) { return {layer(layer(xs))[0]}; }
Tensors nested(const Tensors& xs) {
  return checkpoint([](const Tensors& a) { return Tensors{checkpoint(layer)(checkpoint(layer)(a))[0]}; })(xs);
}

ScalarFunction loss(const Function& f) {
  return [f](const Tensors& xs) {
    Tensor total = zeros({}, DType::F64);
    for (const Tensor& y : f(xs)) total = total + sum(y * y);
    return total;
  };
}
const VmapOptions kApart{.randomness = Randomness::Different}, kSame{.randomness = Randomness::Same};
// What is computed again counts as another use of its arguments: where derivatives of derivatives are taken,
// cotangents of those are summed in another order.
struct Engine {
  std::function<Tensors(const Function&)> run;
  double roundings = 0;
};
const Engine kEngines[] = {
    {[](const Function& f) { return f({point()}); }},
    {[](const Function& f) { return value_and_grad(loss(f))({point()}); }},
    {[](const Function& f) { return jvp(f, {point()}, {point() * 2}).tangents; }},
    {[](const Function& f) { return vmap(f, kApart)({point()}); }},
    {[](const Function& f) { return vmap(value_and_grad(loss(f)), kApart)({point()}); }},
    {[](const Function& f) { return vmap(value_and_grad(loss(f)), kSame)({point()}); }},
    {[](const Function& f) { return value_and_grad(loss(vmap(f, kApart)))({point()}); }},
    {[](const Function& f) { return value_and_grad(loss(vmap(f, kSame)))({point()}); }},
    {[](const Function& f) { return value_and_grad(loss(value_and_grad(loss(f))))({point()}); }, 256},
    {[](const Function& f) { return jvp(grad(loss(f)), {point()}, {point()}).tangents; }, 256},
    {[](const Function& f) {
       return grad(loss([&](const Tensors& xs) { return jvp(f, xs, xs).tangents; }))({point()});
     },
     256},
    {[](const Function& f) {
      const VjpResult r = vjp(f, {point()});  // pulled twice, once under another level in grad's place
      const Tensors us = {r.values[0], r.values.size() > 1 ? r.values[1] : Tensor()};
      Tensors cotangents(us.begin(), us.begin() + long(r.values.size()));
      Tensors out = r.pullback(cotangents);
      out.push_back(vmap([&](const Tensors& u) {
        Tensors c = cotangents;
        c[0] = u[0];
        return r.pullback(c);
      })({stack({us[0], us[0] * 2}, 0)})[0]);
      return out;
    }},
    {[](const Function& f) {
      const Tensor x = requires_grad(point());
      backward(loss(f)({x}));
      return Tensors{grad_of(x)};
    }},
    {[](const Function& f) {
       const Tensor x = requires_grad(point());
       backward(loss(f)({x}), {}, {.create_graph = true});
       const Tensor g = grad_of(x);
       clear_grad(x);
       backward(sum(g * g));
       return Tensors{detach(g), grad_of(x)};
     },
     256},
    {[](const Function& f) {
      const Tensor x = requires_grad(point());
      backward(loss(vmap(f, kApart))({x * 2}));
      return Tensors{grad_of(x)};
    }},
    {[](const Function& f) {
       const Tensor x = requires_grad(point());
       backward(sum(grad(loss(f))({x * 2})[0]));
       return Tensors{grad_of(x)};
     },
     256},
};

TEST(Checkpoint, IsTheFunctionItself) {
  for (const Function& f : {Function(layer), Function(twice), Function(nested)})
    for (size_t e = 0; e < std::size(kEngines); ++e) {
      SCOPED_TRACE(e);
      manual_seed(7);
      const Tensors want = kEngines[e].run(f);
      const uint64_t drawn = default_generator().counter();
      manual_seed(7);
      const Tensors got = kEngines[e].run(checkpoint(f));
      EXPECT_EQ(default_generator().counter(), drawn);
      ASSERT_EQ(got.size(), want.size());
      for (size_t k = 0; k < got.size(); ++k) expect_same(got[k], want[k], kEngines[e].roundings);
    }
}

TEST(Checkpoint, DifferentiatesCaptures) {
  // x enters by the argument and by what the function captures, which is a value of the level.
  const auto with = [](bool checked) {
    return [checked](const Tensors& xs) {
      const Tensor w = xs[0] * 2;
      const Function f = [w](const Tensors& a) { return Tensors{sin(a[0] * w) * w}; };
      return (checked ? checkpoint(f) : f)(xs);
    };
  };
  for (size_t e = 0; e < std::size(kEngines); ++e) {
    SCOPED_TRACE(e);
    const Tensors want = kEngines[e].run(with(false)), got = kEngines[e].run(with(true));
    for (size_t k = 0; k < got.size(); ++k) expect_same(got[k], want[k], kEngines[e].roundings);
  }
  const Tensor w = requires_grad(point()), v = requires_grad(point());
  const Function f = [](const Tensors& a) { return Tensors{exp(a[0]) * a[0]}; };
  backward(sum(checkpoint([&](const Tensors&) { return f({w}); })({f64({}, {1})})[0]));
  backward(sum(f({v})[0]));
  expect_same(grad_of(w), grad_of(v));
}

TEST(Checkpoint, KeepsLess) {
  const Function f = [](const Tensors& xs) {
    Tensor y = xs[0];
    for (int k = 0; k < 10; ++k) y = sin(y) * y;
    return Tensors{y};
  };
  const Tensor x = requires_grad(zeros({10000}, DType::F64));
  const auto held = [&](const Function& g) {
    const int64_t before = memory_stats().bytes;
    const Tensor y = sum(g({x})[0]);
    const int64_t after = memory_stats().bytes;
    backward(y);
    clear_grad(x);
    return std::pair(after - before, memory_stats().bytes - after);
  };
  const auto [plain, plain_later] = held(f);
  const auto [less, less_later] = held(checkpoint(f));
  EXPECT_GT(plain, 15 * 80000);
  EXPECT_LT(less, 20000);
  EXPECT_LE(less_later, plain_later + 100) << "what ran again is freed as it is used";
  // Many in a row: never more than one computed again at a time.
  const auto most_in_backward = [&](const Function& g) {
    int64_t most = 0;
    const Function meter =
        custom_vjp([](const Tensors& a) { return std::pair(Tensors{a[0] * 1}, Tensors{}); },
                   [&](const Tensors&, const Tensors& u) {
                     most = std::max(most, memory_stats().bytes);
                     return u;
                   });
    Tensors ys{x};
    const int64_t before = memory_stats().bytes;
    for (int k = 0; k < 8; ++k) ys = meter(g(ys));
    backward(sum(ys[0]));
    clear_grad(x);
    return most - before;
  };
  EXPECT_GT(most_in_backward(f), 8 * 15 * 80000);
  EXPECT_LT(most_in_backward(checkpoint(f)), (16 + 25) * 80000);
}

TEST(Checkpoint, FreesItsGraph) {
  int64_t before = 0;
  for (int k = 0; k < 4; ++k) {
    if (k == 1) before = memory_stats().bytes;  // the first run makes what stays
    const Tensor x = requires_grad(point());
    Tensor y = x * 1;
    mul_(y, checkpoint(nested)({y})[0]);  // the argument's later history leads to the region
    const Tensor z = checkpoint(layer)({y})[0];
  }
  grad([](const Tensors& xs) {
    Tensor y = xs[0] * 1;
    mul_(y, checkpoint(nested)({y})[0]);
    return sum(y);
  })({point()});
  EXPECT_EQ(memory_stats().bytes, before);
}

TEST(Checkpoint, SaysWhatChanged) {
  const Function product = [](const Tensors& a) { return Tensors{sin(a[0]) * a[1]}; };
  const Tensor x = requires_grad(point());
  Tensor w = clone(point());
  Tensor y = sum(checkpoint(product)({x, w})[0]);
  mul_(w, w);
  EXPECT_REFUSED(backward(y), "checkpoint: argument 1 was written in place since the function ran");
  w = clone(point());
  y = sum(checkpoint([w](const Tensors& a) { return Tensors{sin(a[0]) * w}; })({x})[0]);
  mul_(w, w);
  EXPECT_REFUSED(backward(y), "a value that mul saved in a checkpointed function was written in place later");
  y = sum(checkpoint([](const Tensors& a) {
    Tensor t = sin(a[0]), u = t * t;
    mul_(t, t);
    return Tensors{u + t};
  })({x})[0]);
  EXPECT_REFUSED(backward(y), "was written in place later");
  int runs = 0;
  y = sum(checkpoint([&](const Tensors& a) { return Tensors{runs++ ? sin(a[0]) : exp(sin(a[0]))}; })({x})[0]);
  EXPECT_REFUSED(backward(y), "checkpoint: the function saved 1 values when it ran again, expected 2");
  runs = 0;
  y = sum(checkpoint([&](const Tensors& a) { return Tensors{runs++ ? sin(cos(a[0])) : cos(sin(a[0]))}; })(
      {x})[0]);
  EXPECT_REFUSED(backward(y),
                 "value 0 that the function saved is f64[2,3] of cos when it ran again, expected 6 "
                 "elements of sin");
  runs = 0;
  y = sum(checkpoint([&](const Tensors& a) { return Tensors{runs++ ? sin(sin(a[0])) : sin(a[0])}; })({x})[0]);
  EXPECT_REFUSED(backward(y), "checkpoint: the function saved more than 1 values");
  EXPECT_REFUSED(checkpoint([](const Tensors& a) {
                   const Tensor t = sum(sin(a[0]));
                   backward(t);
                   return Tensors{t};
                 })({x}),
                 "checkpoint: backward inside the function asks for a value that sin saved in it");
}

TEST(Checkpoint, ThatThrowsLeavesNoTrace) {
  struct Mine {};
  bool throws = false;
  const Function f = checkpoint([&](const Tensors& a) {
    if (throws) throw Mine{};
    return Tensors{sin(a[0] * rand({3}, {}, DType::F64))};
  });
  const VjpResult r = vjp(vmap(f, kApart), {point()});
  const DispatchState before = dispatch_state();
  const uint64_t counter = default_generator().counter();
  throws = true;
  EXPECT_THROW(r.pullback({point()}), Mine);
  EXPECT_THROW(vmap(f, kApart)({point()}), Mine);
  EXPECT_EQ(dispatch_state().depth, before.depth);
  EXPECT_EQ(dispatch_state().exclude, before.exclude);
  EXPECT_EQ(dispatch_state().levels[0].transform, nullptr);
  EXPECT_EQ(default_generator().counter(), counter);
  throws = false;
  const Tensor once = r.pullback({point()})[0];
  Tensor elsewhere;
  std::thread([&] { elsewhere = r.pullback({point()})[0]; }).join();
  expect_same(elsewhere, once);
}

/// Sees all operators while it lives; checkpointed functions run again without it.
class Counter final : public Transform {
 public:
  TransformKind kind() const override { return TransformKind::Mode; }
  std::string_view name() const override { return "counter"; }
  void call(Frame& frame, int key) override {
    const Below below(key);
    ++calls;
    lamella::call(frame);
  }
  int calls = 0;
};

TEST(Checkpoint, RunsAgainWithoutModesThatHaveEnded) {
  manual_seed(3);
  Counter counter;
  std::optional<VjpResult> r;
  {
    const Level level(counter);
    r = vjp(checkpoint(layer), {point()});
  }
  const int calls = counter.calls;
  EXPECT_GT(calls, 5);
  const Tensor got = r->pullback({point(), Tensor()})[0];
  EXPECT_EQ(counter.calls, calls);
  manual_seed(3);
  expect_same(got, vjp(layer, {point()}).pullback({point(), Tensor()})[0]);
}

TEST(SavedTensorHooks, KeepWhatTheyGive) {
  // Halved bits, and a count of what was asked for.
  int packed = 0, unpacked = 0;
  const Tensor x = requires_grad(point());
  Tensor y;
  {
    const SavedTensorHooks hooks([&](const Tensor& t) -> Unpack {
      ++packed;
      return [small = to(t, DType::F32), &unpacked] {
        ++unpacked;
        return to(small, DType::F64);
      };
    });
    y = sum(sin(x));
  }
  EXPECT_EQ(packed, 1);
  EXPECT_EQ(unpacked, 0);
  backward(y);
  EXPECT_EQ(unpacked, 1);
  expect_same(grad_of(x), cos(to(to(point(), DType::F32), DType::F64)));
  {
    const SavedTensorHooks hooks([](const Tensor& t) -> Unpack { return [t] { return sum(t); }; });
    y = sum(sin(x));
  }
  EXPECT_REFUSED(backward(y), "a saved-tensor hook gave f64[] for a value that sin saved; expected f64[2,3]");
  const Tensors g = grad([&](const Tensors& a) {
    const SavedTensorHooks hooks([](const Tensor&) -> Unpack { return {}; });
    return sum(a[0] * a[0]);
  })({point()});
  expect_same(g[0], point() * 2);
}

TEST(SavedTensorHooks, AndCheckpointsNest) {
  // What a checkpointed function saves, its arguments too, goes to no hook outside; what lies outside does.
  int packed = 0;
  const Tensor x = requires_grad(point());
  Tensor y;
  {
    const SavedTensorHooks hooks([&](const Tensor& t) -> Unpack {
      ++packed;
      return [t] { return t; };
    });
    y = sum(checkpoint([](const Tensors& a) { return Tensors{exp(a[0]) * a[0]}; })({sin(x)})[0]);
  }
  EXPECT_EQ(packed, 1);
  backward(y);
  const Tensor v = requires_grad(point()), s = sin(v);
  backward(sum(exp(s) * s));
  expect_same(grad_of(x), grad_of(v));
}

TEST(Checkpoint, OfValuesThatArePromoted) {
  const Function f = [](const Tensors& a) {
    Tensor z = tensor_of({2, 3}, {1, 2, 3, 4, 5, 6}, DType::F64);
    const Tensor y = a[0] * z;  // saves z, which then takes values of the level
    mul_(z, a[0]);
    return Tensors{sin(z) * y};
  };
  for (size_t e = 0; e < std::size(kEngines); ++e) {
    SCOPED_TRACE(e);
    Tensors want;
    const std::string refused = refusal([&] { want = kEngines[e].run(f); });
    if (want.empty()) {
      const std::string prefix =
          refused.substr(0, refused.find(':', refused.find(':') + 1));  // code: operator
      EXPECT_REFUSED(kEngines[e].run(checkpoint(f)), prefix);
      continue;
    }
    const Tensors got = kEngines[e].run(checkpoint(f));
    for (size_t k = 0; k < got.size(); ++k) expect_same(got[k], want[k], kEngines[e].roundings);
  }
}

/// A function with a pullback tells its residuals from its arguments, which are the same tensor twice here
/// and get headers of their own to be run again with.
TEST(Checkpoint, OfOneTensorTwice) {
  const Function product = custom_vjp([](const Tensors& xs) { return std::pair(Tensors{xs[0] * xs[1]}, xs); },
                                      [](const Tensors& xs, const Tensors& us) {
                                        return Tensors{us[0] * xs[1], us[0] * xs[0]};
                                      });
  const Function sees = [](const Tensors& xs) {
    return Tensors{xs[0].is_same(xs[1]) ? square(xs[0]) : exp(xs[0]) * xs[1]};
  };
  for (const Function& f : {product, sees})
    for (const bool around : {false, true}) {
      const ScalarFunction once = [&](const Tensors& xs) {
        const Function again = checkpoint(f);
        return sum((around ? checkpoint(again) : again)({xs[0], xs[0]})[0]);
      };
      const Tensor want = point() * 2;
      expect_same(grad(once)({point()})[0], want);
      const Tensor leaf = requires_grad(point());
      backward(once({leaf}));
      expect_same(grad_of(leaf), want);
    }
  const auto two = vjp(checkpoint(product), {point(), point()});  // one tensor below the level alone
  expect_same(two.pullback({ones({2, 3}, DType::F64)})[0], point());
}

/// What says why goes with an error through levels, and through those who name the operator.
TEST(Checkpoint, ReasonsComeThrough) {
  const auto why = [](const std::function<void()>& f) -> std::any {
    try {
      f();
    } catch (const Error& e) {
      const std::any& reason = e.reason();
      EXPECT_EQ(reason.type(), e.by("op", "x").reason().type());
      EXPECT_EQ(reason.type(), e.within("op").reason().type());
      EXPECT_EQ(reason.type(), e.noted("more").reason().type());
      return reason;
    }
    return {};
  };
  const ScalarFunction refuses = [](const Tensors& xs) -> Tensor {
    fail(WrittenLater(), ErrorCode::Value, "{} was written", xs[0]);
  };
  const auto is_written = [](const std::any& a) { return std::any_cast<WrittenLater>(&a) != nullptr; };
  EXPECT_TRUE(is_written(why([&] { grad(refuses)({point()}); })));
  EXPECT_TRUE(is_written(why([&] { vmap(grad(refuses), InDims{0})({point()}); })));
  EXPECT_FALSE(why([&] { add(point(), f64({4}, {1, 2, 3, 4})); }).has_value());
}

}  // namespace
}  // namespace test_checkpoint
