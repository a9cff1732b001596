// What engines say of writes that they refuse, what programs of views and writes cost and leave behind, and
// Jacobians of what such programs met. What they give is printed: `proptests --gtest_filter='WriteLimits.*'`.
#include <chrono>
#include <complex>
#include <gtest/gtest.h>
#include <iostream>
#include <numeric>
#include <thread>

#include "lamella/lamella.h"

#include "support.h"

namespace test_write_limits {  // files of this room are compiled several at a time
namespace {
using namespace lamella;
using namespace lamella::tests;
using V = std::vector<double>;

/// The first line of what f raises; empty when it raises nothing.
std::string refusal_line(const std::function<void()>& f) { return first_line(refusal(f)); }
void print(std::string_view program, std::string_view engine, std::string_view got) {
  std::cout << "    " << program << " | " << engine << " | " << got << '\n';
}

// ---- numbers of inputs, gradients' memory

TEST(WriteLimits, OfManyInputs) {
  for (const int n : {300, 1000}) {
    const auto squares = [](const Tensors& xs) { return sum(stack(xs, 0) * stack(xs, 0)); };
    Tensors plain, leaves;
    for (int i = 0; i < n; ++i)
      plain.push_back(f64({double(i)})), leaves.push_back(requires_grad(plain.back()));
    std::vector<int> all(size_t(n), 0);
    std::iota(all.begin(), all.end(), 0);
    V want;
    for (int i = 0; i < n; ++i) want.push_back(2 * i);
    const auto gather = [](const Tensors& grads) {
      V out;
      for (const Tensor& g : grads) out.push_back(g.to_vector()[0]);
      return out;
    };
    const auto seen = [&](std::string_view engine, const V& got) {
      print(format("stack of {} inputs", n), engine, format("..., {}, {}", got[size_t(n) - 2], got.back()));
      EXPECT_EQ(got, want) << engine;
    };
    backward(squares(leaves));
    Tensors grads;
    for (const Tensor& leaf : leaves) grads.push_back(grad_of(leaf));
    seen("base", gather(grads));
    seen("autograd::grad", gather(autograd::grad({squares(leaves)}, leaves)));
    seen("grad", gather(grad(ScalarFunction(squares), all)(plain)));
    const auto forward = [&](const Tensors& xs) { return Tensors{squares(xs)}; };
    const Tensors directions(size_t(n), f64({1}));
    const double along = jvp(forward, plain, directions).tangents[0].item<double>();
    print(format("stack of {} inputs", n), "jvp along ones", format("{}", along));
    EXPECT_EQ(along, double(n) * (n - 1));
    Tensors batched;
    for (const Tensor& x : plain) batched.push_back(stack({x * 5, x}));
    Tensors lanes = vmap(grad(ScalarFunction(squares), all))(batched);
    for (Tensor& lane : lanes) lane = select(lane, 0, 1);
    seen("vmap(grad)", gather(lanes));
  }
}

TEST(WriteLimits, GradientsAreDenseAndTheirOwn) {
  const Tensor a = requires_grad(f64({1, 2, 3})), b = requires_grad(f64({1, 2, 3}));
  backward(sum(a + b));
  print("two leaves of one sum", "base",
        format("share memory: {}; strides {}, {}", grad_of(a).shares_storage(grad_of(b)),
               grad_of(a).stride(0), grad_of(b).stride(0)));
  EXPECT_FALSE(grad_of(a).shares_storage(grad_of(b)));
  EXPECT_EQ(grad_of(a).stride(0), 1);
  EXPECT_EQ(grad_of(b).stride(0), 1);
}

// ---- Jacobians

std::vector<std::complex<double>> complex_parts(const Tensor& t) {
  const V re = real(t).to_vector(), im = imag(t).to_vector();
  std::vector<std::complex<double>> out;
  for (size_t i = 0; i < re.size(); ++i) out.emplace_back(re[i], im[i]);
  return out;
}

TEST(WriteLimits, JacobiansOfComplexFunctions) {
  using C = std::complex<double>;
  const Tensor z = complex(f64({1}), f64({2}));
  const C at(1, 2);
  const UnaryFunction cube = [](const Tensor& t) { return t * t * t; };
  const auto seen = [](std::string_view program, std::string_view engine, const Tensor& got, C want) {
    const C value = complex_parts(got)[0];
    print(program, engine, format("{} + {}i", value.real(), value.imag()));
    EXPECT_NEAR(std::abs(value - want), 0, 1e-12) << program << " by " << engine;
  };
  const JacobianOptions holomorphic{.holomorphic = true};
  seen("z^3 at 1 + 2i", "jacrev", jacrev(cube, holomorphic)(z), 3.0 * at * at);
  seen("z^3 at 1 + 2i", "jacfwd", jacfwd(cube, holomorphic)(z), 3.0 * at * at);
  seen("z^3 at 1 + 2i", "hessian", hessian(cube, holomorphic)(z), 6.0 * at);
  const UnaryFunction spiral = [](const Tensor& t) { return complex(t * t, t * 3); };  // x^2 + 3 i x
  seen("x^2 + 3ix at 2", "jacrev", jacrev(spiral)(f64({2})), C(4, 3));
  seen("x^2 + 3ix at 2", "jacfwd", jacfwd(spiral)(f64({2})), C(4, 3));
  for (const auto& run :
       {std::function<void()>([&] { jacrev(cube)(z); }), std::function<void()>([&] { jacfwd(cube)(z); }),
        std::function<void()>([&] { hessian(cube)(z); })}) {
    print("z^3 without holomorphic", "", refusal_line(run));
    EXPECT_TRUE(refusal_line(run).starts_with("dtype: ")) << refusal_line(run);
  }
}

TEST(WriteLimits, Argnums) {
  const ScalarFunction f = [](const Tensors& xs) { return sum(xs[0] * xs[1]); };
  const Tensors at{f64({3}), f64({5})};
  const double last = grad(f, {-1})(at)[0].item<double>();
  print("argnums {-1} of x y at (3, 5)", "grad", format("{}", last));
  EXPECT_EQ(last, 3);
  const std::string repeated = refusal_line([&] { grad(f, {0, 0})(at); });
  print("argnums {0, 0}", "grad", repeated);
  EXPECT_TRUE(repeated.starts_with("usage: ")) << repeated;
  const std::string outside = refusal_line([&] { grad(f, {-3})(at); });
  print("argnums {-3}", "grad", outside);
  EXPECT_TRUE(outside.starts_with("usage: ")) << outside;
}

TEST(WriteLimits, HiddenElementsThroughTheMappedBasis) {
  const auto root = [](const Tensor& x) { return where(gt(x, 0), x * sqrt(x), zeros_like(x)); };
  const UnaryFunction twice[] = {jacrev(jacrev(UnaryFunction(root))), jacfwd(jacrev(UnaryFunction(root))),
                                 jacrev(jacfwd(UnaryFunction(root))), hessian(UnaryFunction(root))};
  const char* const names[] = {"jacrev(jacrev)", "jacfwd(jacrev)", "jacrev(jacfwd)", "hessian"};
  for (size_t k = 0; k < std::size(twice); ++k) {
    const V got = twice[k](f64({0, 4})).to_vector();  // 3 / (4 sqrt(x))
    print("where(x > 0, x sqrt(x), 0) at (0, 4)", names[k], text(got));
    EXPECT_EQ(got, (V{0, 0, 0, 0, 0, 0, 0, 0.375})) << names[k];
  }
}

// ---- what is refused, everywhere alike

/// What f does to x in each engine: the numbers it gives, or the first line of its refusal.
std::vector<std::pair<std::string_view, std::string>> statuses(const UnaryFunction& f, const Tensor& x) {
  const Tensor rows = stack({x, x});
  const auto said = [](const std::function<Tensor()>& run) {
    V values;
    const std::string refused = refusal_line([&] { values = run().to_vector(); });
    return refused.empty() ? text(values) : refused;
  };
  const auto forward = [&](const Tensors& v) { return Tensors{f(v[0])}; };
  return {
      {"plain", said([&] { return f(x); })},
      {"base", said([&] { return detach(f(requires_grad(x))); })},
      {"grad", said([&] { return vjp(forward, {x}).values[0]; })},
      {"jvp", said([&] { return jvp(forward, {x}, {x}).values[0]; })},
      {"jvp, no tangent", said([&] { return jvp(forward, {x}, {Tensor()}).values[0]; })},
      {"vmap", said([&] { return select(vmap(f)(rows), 0, 1); })},
      {"base(vmap)", said([&] { return select(detach(vmap(f)(requires_grad(rows))), 0, 1); })},
      {"vmap(grad)", said([&] {
         return select(vmap([&](const Tensor& row) { return vjp(forward, {row}).values[0]; })(rows), 0, 1);
       })},
      {"grad(vmap)", said([&] {
         return select(vjp([&](const Tensors& v) { return Tensors{vmap(f)(v[0])}; }, {rows}).values[0], 0, 1);
       })},
  };
}

TEST(WriteLimits, OverlappingWritesHaveOneStatus) {
  const Tensor m = tensor_of({2, 2}, {1, 2, 3, 4}, DType::F64);
  const auto alike = [&](std::string_view program, const UnaryFunction& f) {
    const auto all = statuses(f, m);
    for (const auto& [engine, status] : all) {
      print(program, engine, status);
      EXPECT_EQ(status, all[0].second) << program << " in " << engine;
    }
  };
  alike("y.add_(transpose(y, 0, 1))", [](const Tensor& x) {
    const Tensor y = x * 1;
    return add_(y, transpose(y, 0, 1));
  });
  alike("slices of three of four overlap", [](const Tensor& x) {
    const Tensor y = reshape(x * 1, {4});
    copy_(slice(y, 0, 0, 3), slice(y, 0, 1, 4));
    return y;
  });
  alike("rows apart", [](const Tensor& x) {
    const Tensor y = x * 1;
    add_(select(y, 0, 0), select(y, 0, 1));
    return y;
  });
  alike("out= overlaps an operand", [](const Tensor& x) {
    const Tensor y = x * 1;
    return mul_out(y, transpose(y, 0, 1), x);
  });
}

TEST(WriteLimits, LanesThatRaceAreRefused) {
  const Tensor rows = tensor_of({2, 2}, {1, 2, 3, 4}, DType::F64), p = f64({10, 20});
  const auto into = [&](const Tensor& target) {
    return refusal_line([&] { vmap([&](const Tensor& row) { return add_(target, row); })(rows); });
  };
  const std::string unmapped = into(p);
  print("lanes write one unmapped tensor", "vmap", unmapped);
  EXPECT_TRUE(unmapped.starts_with("level: ")) << unmapped;
  const Tensor leaf_result = requires_grad(p) * 1;
  print("lanes write one unmapped tensor with history", "base(vmap)", into(leaf_result));
  EXPECT_TRUE(into(leaf_result).starts_with("level: "));
  EXPECT_EQ(p.to_vector(), (V{10, 20}));
  const std::string race = refusal_line([&] {
    const Tensor m = clone(rows);
    vmap([&](const Tensor& row) { return add_(row, select(m, 0, 0)); })(m);
  });
  print("a lane reads what another one writes", "vmap", race);
  EXPECT_TRUE(race.starts_with("overlap: ")) << race;
}

TEST(WriteLimits, LeavesAndArgumentsAreNotWritten) {
  const Tensor leaf = requires_grad(tensor_of({2, 2}, {1, 2, 3, 4}, DType::F64));
  const auto refused = [](std::string_view program, std::string_view engine, ErrorCode code,
                          const std::function<void()>& f) {
    const std::string said = refusal_line(f);
    print(program, engine, said);
    EXPECT_TRUE(said.starts_with(name(code)) && said.find("copy: self") == said.npos)
        << program << " in " << engine << ": " << said;
  };
  const auto twice = [](const Tensor& r) { return mul_(r, number(2)); };
  refused("leaf", "base", ErrorCode::Value, [&] { twice(leaf); });
  refused("view of a leaf", "base", ErrorCode::Value, [&] { fill_(select(leaf, 0, 0), 0); });
  refused("lane of a leaf", "base(vmap)", ErrorCode::Value, [&] { vmap(twice)(leaf); });
  refused("column of a leaf", "base(vmap)", ErrorCode::Value, [&] { vmap(twice, 1)(leaf); });
  const Tensor x = f64({1, 2});
  for (const UnaryFunction& f :
       {UnaryFunction(twice), UnaryFunction([](const Tensor& r) { return fill_(select(r, 0, 0), 0); })}) {
    const auto forward = [&](const Tensors& xs) { return Tensors{f(xs[0])}; };
    refused("argument", "grad", ErrorCode::Level, [&] { vjp(forward, {x}); });
    refused("argument", "jvp", ErrorCode::Level, [&] { jvp(forward, {x}, {x}); });
    refused("argument without a tangent", "jvp", ErrorCode::Level, [&] { jvp(forward, {x}, {Tensor()}); });
  }
  EXPECT_EQ(x.to_vector(), (V{1, 2}));
  {
    const NoGrad none;
    twice(select(leaf, 0, 0));
  }
  print("view of a leaf under NoGrad", "base", text(leaf.to_vector()));
  EXPECT_EQ(leaf.to_vector(), (V{2, 4, 3, 4}));
}

/// 64 dims of which the mapped one is one, by rules and by the loop.
TEST(WriteLimits, DimsCountTheMappedOne) {
  Dims sizes(63);
  for (int i = 0; i < sizes.size(); ++i) sizes[i] = i == 0 ? 2 : 1;
  const Tensor lane = ones({2}, DType::F64).reshape(IntArg(Ints(sizes)));
  const Tensor rows = stack({lane, lane});
  const auto grown = [](const Tensor& x) { return unsqueeze(x, 0); };
  const auto by_loop = [&](const Tensor& r) {
    const ForceLoop loop;
    return vmap(UnaryFunction(grown))(r);
  };
  const std::string by_rule = refusal_line([&] { vmap(UnaryFunction(grown))(rows); });
  print("64 dims in a lane", "vmap", by_rule);
  EXPECT_TRUE(by_rule.starts_with("shape: ")) << by_rule;
  EXPECT_EQ(refusal_line([&] { by_loop(rows); }), by_rule);
}

TEST(WriteLimits, APlainTensorTakesALeafsValuesAfterAView) {
  const Tensor y = requires_grad(f64({3, 5})), x = zeros({2, 2}, DType::F64), before = select(x, 0, 1);
  copy_(select(x, 0, 1), y);
  backward(sum(x * x) + sum(before));
  print("x[1] = y after a view of x", "base", text(grad_of(y).to_vector()));
  EXPECT_EQ(grad_of(y).to_vector(), (V{7, 11}));
}

// ---- cost

/// Seconds of a chain of n views, a write through the last, a read through the first, and its derivative.
double chain(int64_t n, bool reverse, double& derivative) {
  const auto begin = std::chrono::steady_clock::now();
  const UnaryFunction f = [n](const Tensor& x) {
    const Tensor y = x * 1;
    Tensor v = y;
    for (int64_t i = 0; i < n; ++i) v = transpose(v, 0, 1);
    mul_(v, number(2));
    return sum(y * x);  // 2 x^2
  };
  const Tensor x = ones({2, 2}, DType::F64);
  const auto forward = [&](const Tensors& xs) { return Tensors{f(xs[0])}; };
  derivative = sum(reverse ? grad(f)(x) : jvp(forward, {x}, {x}).tangents[0]).item<double>();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
TEST(WriteLimits, ChainsOfViewsCostWhatTheyAreLong) {
  for (const bool reverse : {true, false}) {
    double seconds[3], derivative = 0;
    int k = 0;
    for (const int64_t n : {4'000, 16'000, 64'000}) {
      seconds[k++] = chain(n, reverse, derivative);
      EXPECT_EQ(derivative, 16);
    }
    print("4,000, 16,000 and 64,000 chained views", reverse ? "grad" : "jvp",
          format("{} s, {} s, {} s", seconds[0], seconds[1], seconds[2]));
    EXPECT_LT(seconds[2], 64 * seconds[0] + 1);  // 256 times, were it n^2
  }
}

TEST(WriteLimits, ThreadsAddExactly) {
  const Tensor leaf = requires_grad(f64({1, 1})), root = sum(leaf * leaf * leaf);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) backward(root), backward(sum(leaf * 2));
    });
  for (std::thread& t : threads) t.join();
  print("8 threads x 1,000 backward into one leaf, of their own graph and one they share", "base",
        text(grad_of(leaf).to_vector()));
  EXPECT_EQ(grad_of(leaf).to_vector(), (V{40'000, 40'000}));
}

// ---- nothing stays, nothing is stale

TEST(WriteLimits, LeaveNothingAlive) {
  const Tensor w = requires_grad(f64({0.5, 2}));
  const std::pair<std::string_view, std::function<void()>> programs[] = {
      {"y.mul_(w)", [&] { mul_((w * 1), w); }},
      {"y.sin_()", [&] { sin_((w * 1)); }},
      {"y.maximum_(w)", [&] { maximum_((w * 1), w); }},
      {"mul_out(y, y, w)",
       [&] {
         const Tensor y = w * 1;
         mul_out(y, y, w);
       }},
      {"vmap: y.mul_(y)", [&] { vmap([](const Tensor& x) { return mul_((x * 1), x); })(w); }},
      {"grad: q = x z, z.add_(x)",
       [&] {
         grad([](const Tensor& x) {
           const Tensor z = ones_like(x) * 2, q = x * z;
           add_(z, x);
           return sum(q * z);
         })(detach(w));
       }},
  };
  for (const auto& [program, run] : programs) {
    run();
    const MemoryStats before = memory_stats();
    for (int i = 0; i < 1000; ++i) run();
    const MemoryStats after = memory_stats();
    print(program, "1,000 times",
          format("{} blocks, {} bytes more", after.blocks - before.blocks, after.bytes - before.bytes));
    EXPECT_EQ(after.blocks, before.blocks) << program;
    EXPECT_EQ(after.bytes, before.bytes) << program;
  }
}

TEST(WriteLimits, SavedListsAndViewsByHand) {
  const Tensor w = requires_grad(f64({1, 2})), a = w * 1, z = stack(Tensors{a, a}, 0), y = z * z;
  fill_(z, 3);
  const std::string written = refusal_line([&] { backward(sum(y)); });
  print("z = stack(a, a); y = z z; z.fill_(3)", "base", written);
  EXPECT_TRUE(written.starts_with("value: backward: a value that mul saved was written")) << written;
  const std::string by_strides = refusal_line([&] { make_view(a, IntArg{1}, IntArg{1}, 0); });
  print("make_view of a tensor with history", "base", by_strides);
  EXPECT_TRUE(by_strides.starts_with("usage: ")) << by_strides;
  const int64_t before = memory_stats().bytes;
  const Tensor joined = cat({w * 1, expand(sum(w), {100'000})}, 0);
  const int64_t kept = memory_stats().bytes - before;
  print("bytes that cat of 100,002 elements keeps", "base", format("{}", kept));
  EXPECT_LT(kept, 1'000'000);  // its result alone
  backward(sum(joined));
  EXPECT_EQ(grad_of(w).to_vector(), (V{100'001, 100'001}));
}

TEST(WriteLimits, BirthsOfOtherThreadsAreTold) {
  const auto written = [](bool elsewhere) {
    return refusal_line([&] {
      grad([&](const Tensor& x) {
        Tensor z = f64({2, 7});
        if (elsewhere)
          std::thread([&] { z = vmap([](const Tensor&) { return f64({2, 7}); })(f64({1})); }).join();
        if (elsewhere) z = select(z, 0, 0);
        return sum(add_(z, x));
      })(f64({1, 2}));
    });
  };
  print("fresh memory of this thread", "grad", written(false));
  print("memory of another thread's level", "grad", written(true));
  EXPECT_EQ(written(false), "");
  EXPECT_NE(written(true).find("made outside grad#1"), std::string::npos);
}

}  // namespace
}  // namespace test_write_limits
