// Base autograd on programs that write through views, with values worked out by hand; threads, memory, hooks.
#include <gtest/gtest.h>
#include <thread>

#include "lamella/lamella.h"

#include "support.h"

namespace lamella {
namespace test_base_writes {  // files of this room are compiled several at a time
namespace {
using namespace tests;

Tensor leaf(std::initializer_list<double> v) { return requires_grad(f64(v)); }
std::vector<double> gradient(const Tensor& of, const Tensor& root) {
  clear_grad(of);
  backward(sum(root));
  return grad_of(of).to_vector();
}
using Numbers = std::vector<double>;

ErrorCode refused(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) { return e.code(); }
  return ErrorCode::Internal;
}

TEST(BaseWrites, ReachTheBase) {
  const Tensor w = leaf({1, 2}), y = w * 2;
  mul_(select(y, 0, 0), number(3));
  EXPECT_EQ(gradient(w, y), (Numbers{6, 2}));
}

TEST(BaseWrites, ReachViewsMadeBefore) {
  const Tensor w = leaf({1, 2}), u = w + 0, v = select(u, 0, 0);
  mul_(u, w);
  EXPECT_EQ(gradient(w, v), (Numbers{2, 0}));
  EXPECT_EQ(gradient(w, u), (Numbers{2, 4}));
}

TEST(BaseWrites, ReachViewsThatWerePlain) {
  const Tensor w = leaf({1, 2}), x = zeros({3}, DType::F64), v = select(x, 0, 2),
               deep = select(unsqueeze(v, 0), 0, 0);
  copy_(slice(x, 0, 1, 3), w);
  EXPECT_TRUE(is_grad_required(v));
  EXPECT_EQ(gradient(w, v * v), (Numbers{0, 4}));
  EXPECT_EQ(gradient(w, x * x), (Numbers{2, 4}));
  mul_(v, number(5));
  EXPECT_EQ(gradient(w, x), (Numbers{1, 5}));
  EXPECT_EQ(gradient(w, deep), (Numbers{0, 5}));
}

TEST(BaseWrites, ViewsOfViewsSplitsAndTransposes) {
  const Tensor w = requires_grad(tensor_of({2, 2}, {1, 2, 3, 4}, DType::F64)), y = w * 1;
  const Tensors parts = split(transpose(y, 0, 1), 1, 0);  // columns
  mul_(select(parts[1], 1, 0), number(7));
  fill_(parts[0], 0);
  EXPECT_EQ(gradient(w, y), (Numbers{0, 7, 0, 1}));
  vmap([](const Tensor& row) {
    mul_(select(row, 0, 1), number(2));
    return row;
  })(y);
  EXPECT_EQ(gradient(w, y), (Numbers{0, 14, 0, 2}));
}

TEST(BaseWrites, TheBaseMayBeGone) {
  const Tensor w = leaf({1, 2});
  Tensor x = w * 3;
  const Tensor a = select(x, 0, 0), b = select(x, 0, 1);
  x = Tensor();
  mul_(a, b);
  EXPECT_EQ(gradient(w, a), (Numbers{18, 9}));
}

TEST(BaseWrites, FormulasThatNeedTheOldValue) {
  const Tensor w = leaf({0.5}), y = w * 1;
  sin_(y);
  EXPECT_DOUBLE_EQ(gradient(w, y)[0], std::cos(0.5));
  const Tensor z = w * 1;
  log_(z);
  EXPECT_DOUBLE_EQ(gradient(w, z)[0], 2);
  const Tensor r = w * 1;
  reciprocal_(r);
  EXPECT_DOUBLE_EQ(gradient(w, r)[0], -4);
  const Tensor p = f64({3});
  mul_(p, w);
  EXPECT_DOUBLE_EQ(gradient(w, p)[0], 3);
  const Tensor q = w * 1;
  pow_(q, number(3));
  EXPECT_DOUBLE_EQ(gradient(w, q)[0], 0.75);
  const Tensor c = w * 4;
  clamp_(c, number(0), number(1));
  EXPECT_DOUBLE_EQ(gradient(w, c)[0], 0);
}

/// vmap computes the batch, which base autograd records, and then writes the memory that was saved.
TEST(BaseWrites, FormulasThatNeedTheOldValueInLanes) {
  using Write = std::function<void(const Tensor&)>;
  const auto slope = [](const Write& write, int levels) {
    const Tensor w = requires_grad(tensor_of({2, 2}, {0.5, 1, 0.25, 2}, DType::F64));
    UnaryFunction f = [&](const Tensor& x) {
      const Tensor y = x * 1;
      write(y);
      return y;
    };
    for (; levels > 0; --levels) f = vmap(f);
    return gradient(w, f(w));
  };
  const Numbers at = {0.5, 1, 0.25, 2};
  const auto expect = [&](const Write& write, double (*derivative)(double)) {
    for (int levels = 0; levels <= 2; ++levels) {
      const Numbers got = slope(write, levels);
      for (size_t i = 0; i < at.size(); ++i) EXPECT_NEAR(got[i], derivative(at[i]), 1e-14) << levels;
    }
  };
  expect([](const Tensor& y) { mul_(y, y); }, [](double x) { return 2 * x; });
  expect([](const Tensor& y) { sin_(y); }, [](double x) { return std::cos(x); });
  expect([](const Tensor& y) { pow_(y, number(3)); }, [](double x) { return 3 * x * x; });
  expect([](const Tensor& y) { reciprocal_(y); }, [](double x) { return -1 / (x * x); });
  const Tensor w = leaf({2, 3});
  const auto constant = [](const Tensor& x) {  // p is a constant until it is written
    const Tensor p = full_like(x, 5.0);
    mul_(p, x);
    mul_(p, x);
    return p;
  };
  EXPECT_EQ(gradient(w, vmap(UnaryFunction(constant))(w)), (Numbers{20, 30}));
}

TEST(BaseWrites, WhatCannotBeFollowedIsRefused) {
  const Tensor w = requires_grad(tensor_of({2, 2}, {1, 2, 3, 4}, DType::F64)), y = w * 1;
  EXPECT_EQ(refused([&] { mul_(w, w); }), ErrorCode::Value);
  EXPECT_EQ(refused([&] { fill_(select(w, 0, 0), 0); }), ErrorCode::Value);
  EXPECT_EQ(refused([&] { vmap([](const Tensor& r) { return mul_(r, number(2)); })(w); }), ErrorCode::Value);
  EXPECT_EQ(refused([&] { vmap([](const Tensor& r) { return mul_(r, number(2)); }, 1)(w); }),
            ErrorCode::Value);
  EXPECT_EQ(refused([&] { add_(y, transpose(y, 0, 1)); }), ErrorCode::Overlap);
  EXPECT_EQ(refused([&] { make_view(y, IntArg{2}, IntArg{1}, 0); }), ErrorCode::Usage);
  const Tensor z = y * y;
  fill_(y, 1);
  EXPECT_EQ(refused([&] { backward(sum(z)); }), ErrorCode::Value);
  {
    const NoGrad none;
    mul_(w, number(2));
  }
  EXPECT_EQ(w.to_vector(), (Numbers{2, 4, 6, 8}));
}

TEST(BaseWrites, SavedListsHaveVersions) {
  const Tensor w = leaf({1, 2}), a = w * 1, z = stack(Tensors{a, a}, 0), y = z * z;
  fill_(z, 3);
  EXPECT_EQ(refused([&] { backward(sum(y)); }), ErrorCode::Value);
}

TEST(BaseAutograd, AnyNumberOfInputs) {
  Tensors leaves;
  for (int i = 0; i < 300; ++i) leaves.push_back(leaf({double(i)}));
  backward(sum(stack(leaves, 0) * stack(leaves, 0)));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(grad_of(leaves[size_t(i)]).to_vector(), Numbers{2.0 * i});
}

TEST(BaseAutograd, GradientsAreDenseAndTheLeafsOwn) {
  const Tensor a = leaf({1, 2, 3}), b = leaf({1, 2, 3});
  backward(sum(a + b));
  EXPECT_FALSE(grad_of(a).shares_storage(grad_of(b)));
  EXPECT_TRUE(grad_of(a).is_contiguous());
  const Tensor ct = f64({1, 1, 1});
  clear_grad(a);
  backward(a, ct);
  EXPECT_FALSE(grad_of(a).shares_storage(ct));
}

TEST(BaseAutograd, ThreadsShareLeavesAndGraphs) {
  const Tensor w = leaf({1, 1}), z = sum(w * w * w);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) backward(z), backward(sum(w * 2));
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(grad_of(w).to_vector(), (Numbers{8000, 8000}));
}

TEST(BaseAutograd, NothingStaysAlive) {
  const auto program = [] {
    const Tensor w = leaf({0.5, 0.25}), plain = zeros({2}, DType::F64), early = select(plain, 0, 0);
    Tensor y = w * 1;
    const Tensor q = w * plain, s = sin(w);
    add_(plain, q);
    mul_(y, w), add_(y, s), sin_(y), maximum_(y, w), mul_out(y, y, w);
    mul_(select(y, 0, 0), select(w, 0, 1));
    EXPECT_TRUE(is_grad_required(early));
    backward(sum(y), {}, {.create_graph = true});
  };
  program();
  const MemoryStats before = memory_stats();
  for (int i = 0; i < 20; ++i) program();
  const MemoryStats after = memory_stats();
  EXPECT_EQ(after.blocks, before.blocks);
  EXPECT_EQ(after.storages, before.storages);
  EXPECT_EQ(after.bytes, before.bytes);
}

TEST(BaseAutograd, AMillionNodesAreFreedWithoutRecursion) {
  const Tensor w = leaf({1}), one = f64({1});
  Tensor y = w;
  for (int i = 0; i < 1000000; ++i) y = y + one;
  backward(y, one);
  EXPECT_EQ(grad_of(w).to_vector(), Numbers{1});
}

TEST(BaseHooks, OrderAndReplacement) {
  const Tensor w = leaf({1, 2}), y = w * 2, z = sum(y * y);
  std::string order;
  add_hook(y, [&](const Tensor& g) {
    order += 'a';
    return g * 10;
  });
  HookHandle second = add_hook(y, [&](const Tensor&) {
    order += 'b';
    return Tensor();
  });
  add_node_hook(y, {.before =
                        [&](const Tensors&) {
                          order += 'c';
                          return Tensors{};
                        },
                    .after =
                        [&](const Tensors& to_inputs, const Tensors&) {
                          order += 'd';
                          return Tensors{to_inputs[0] + 1};
                        }});
  add_accumulated_hook(w, [&](const Tensor& g) { order += g.to_vector() == Numbers{81, 161} ? 'e' : '?'; });
  retain_grad(y);
  backward(z);
  EXPECT_EQ(order, "abcde");
  EXPECT_EQ(grad_of(y).to_vector(), (Numbers{40, 80}));
  second.remove();
  order.clear();
  clear_grad(w);
  backward(z);
  EXPECT_EQ(order, "acde");
}

TEST(BaseHooks, BelongToViewsThatOthersWrote) {
  for (const bool late : {false, true}) {  // late: a view of what was plain then
    const Tensor w = leaf({1, 2}), y = late ? tensor_of({2}, {2, 4}, DType::F64) : w * 2;
    const Tensor part = select(y, 0, 0);
    mul_(y, late ? w * w : w);
    double seen = 0;
    add_hook(part, [&](const Tensor& ct) {
      seen = ct.item<double>();
      return ct * 10;
    });
    retain_grad(part);
    backward(part * part);  // (2 w w)^2: 8 w w w at 1, ten times
    EXPECT_EQ(seen, 4);
    EXPECT_EQ(grad_of(w).to_vector(), (Numbers{160, 0}));
    EXPECT_EQ(grad_of(part).item<double>(), 40);
  }
}

TEST(BaseHooks, WhatRaisesChangesNothing) {
  const Tensor w = leaf({1, 2}), v = leaf({3, 4}), y = w * 2, z = sum(y * v);
  backward(z);
  HookHandle wrong = add_hook(y, [](const Tensor&) -> Tensor { throw std::runtime_error("hook"); });
  EXPECT_THROW(backward(z), std::runtime_error);
  EXPECT_EQ(grad_of(v).to_vector(), (Numbers{2, 4}));
  wrong.remove();
  HookHandle shape = add_hook(y, [](const Tensor&) { return f64({1}); });
  EXPECT_EQ(refused([&] { backward(z); }), ErrorCode::Shape);
  shape.remove();
  backward(z);
  EXPECT_EQ(grad_of(v).to_vector(), (Numbers{4, 8}));
  EXPECT_EQ(grad_of(w).to_vector(), (Numbers{12, 16}));
}

TEST(BaseHooks, WriteToNoCotangent) {
  const Tensor w = leaf({1, 2}), v = leaf({3, 4}), y = w + v;
  const auto twice = [](const Tensor& t) { mul_(t, f64({}, {2})); };
  const auto unchanged = [&](HookHandle hook) {
    EXPECT_EQ(refused([&] { backward(y, f64({1, 1})); }), ErrorCode::Value);
    EXPECT_FALSE(grad_of(w).defined() || grad_of(v).defined());
    hook.remove();
  };
  unchanged(add_hook(w, [&](const Tensor& g) { return twice(g), Tensor(); }));
  unchanged(add_node_hook(y, {.before = [&](const Tensors& g) { return twice(g[0]), Tensors{}; }}));
  unchanged(
      add_node_hook(y, {.after = [&](const Tensors& g, const Tensors&) { return twice(g[1]), Tensors{}; }}));
  unchanged(add_node_hook(
      y, {.after = [&](const Tensors&, const Tensors& from) { return twice(from[0]), Tensors{}; }}));
  HookHandle given = add_hook(w, [](const Tensor&g) { return g * 2; }), moved = std::move(given);
  given.remove();  // nothing: the handle was moved from
  backward(y, f64({1, 1}));
  EXPECT_EQ(grad_of(w).to_vector(), (Numbers{2, 2}));
  EXPECT_EQ(grad_of(v).to_vector(), (Numbers{1, 1}));
}

TEST(BaseHooks, BackwardInsideAHook) {
  const Tensor w = leaf({2}), other = leaf({3}), y = w * w;
  add_hook(y, [&](const Tensor& g) {
    const EnableGrad recording;
    backward(other * other);
    return g;
  });
  backward(y);
  EXPECT_EQ(grad_of(w).to_vector(), Numbers{4});
  EXPECT_EQ(grad_of(other).to_vector(), Numbers{6});
}

TEST(BaseHooks, SavedValuesMayBePacked) {
  const Tensor w = leaf({1, 2});
  int packed = 0;
  Tensor z;
  {
    const SavedTensorHooks hooks([&](const Tensor& t) -> Unpack {
      ++packed;
      return [v = t.to_vector()] { return tensor_of(IntArg{int64_t(v.size())}, v, DType::F64); };
    });
    z = sum(w * w * w);
  }
  backward(z);
  EXPECT_EQ(packed, 4);
  EXPECT_EQ(grad_of(w).to_vector(), (Numbers{3, 12}));
}

/// A plain view made before its memory was written, and views of it, which copy a header only.
TEST(BaseWrites, ViewsOfAnEarlierViewKnowOfTheWrite) {
  const Tensor w = leaf({1, 2}), memory = f64({5, 7}), before = slice(memory, 0, 0, 2);
  mul_(memory, w);
  const std::vector<std::function<Tensor()>> views = {
      [&] { return select(before, 0, 1); }, [&] { return slice(before, 0, 1, 2); },
      [&] { return transpose(before, 0, 0); }, [&] { return unsqueeze(before, 0); }};
  for (size_t k = 0; k < views.size(); ++k) EXPECT_TRUE(is_grad_required(views[k]())) << k;
  EXPECT_EQ(autograd::grad({sum(views[0]() * 3.0)}, {w})[0].to_vector(), (Numbers{0, 21}));
}

TEST(AutogradGrad, AViewWhoseBaseWasWrittenIsOneInput) {
  const auto gradients = [](const Tensor& base, const Tensor& view, const Tensor& w) {
    copy_(base, w);
    const Tensor y = sum(view * view);
    Tensor seen;
    add_hook(view, [&](const Tensor& ct) {
      seen = ct;
      return Tensor();
    });
    const Tensor g = autograd::grad({y}, {view})[0];
    EXPECT_EQ(seen.to_vector(), g.to_vector());
    return g.to_vector();
  };
  const Tensor w = requires_grad(tensor_of({3}, {1, 2, 3}, DType::F64));
  const Tensor carries = w * 2, plain = zeros({3}, DType::F64);
  EXPECT_EQ(gradients(carries, slice(carries, 0, 0, 2), w), (std::vector<double>{2, 4}));
  EXPECT_EQ(gradients(plain, slice(plain, 0, 0, 2), w), (std::vector<double>{2, 4}));
}

TEST(BaseHooks, OfALeafThatIsGoneAreNotCalled) {
  int calls = 0;
  Tensor w = requires_grad(tensor_of({2}, {1, 2}, DType::F64));
  add_accumulated_hook(w, [&](const Tensor&) { ++calls; });
  const Tensor y = sum(w * 2);
  w = Tensor();
  backward(y);
  EXPECT_EQ(calls, 0);
}

TEST(AutogradGrad, InputsOnTheWay) {
  const Tensor w = leaf({1, 2}), u = leaf({3, 4}), y = w * u, z = y * y;
  const Tensors g = autograd::grad({z}, {w, y}, {f64({1, 1})});
  EXPECT_EQ(g[0].to_vector(), (Numbers{18, 64}));
  EXPECT_EQ(g[1].to_vector(), (Numbers{6, 16}));
  EXPECT_FALSE(grad_of(w).defined());
  const Tensors first = autograd::grad({sum(z)}, {w}, {}, {.create_graph = true});
  EXPECT_EQ(autograd::grad({sum(first[0])}, {u})[0].to_vector(), (Numbers{12, 32}));
  EXPECT_EQ(refused([&] { autograd::grad({sum(w)}, {u}); }), ErrorCode::NotDifferentiable);
  EXPECT_FALSE(autograd::grad({sum(w)}, {u}, {}, {.allow_unused = true})[0].defined());
}

}  // namespace
}  // namespace test_base_writes
}  // namespace lamella
