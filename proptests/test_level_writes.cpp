// Views and writes under vmap, grad and jvp: what the same program gives without levels, and derivatives by
// hand.
#include <gtest/gtest.h>
#include <numeric>

#include "lamella/lamella.h"

#include "support.h"

namespace test_level_writes {  // files of this room are compiled several at a time
namespace {
using namespace lamella;
using namespace lamella::tests;

using V = std::vector<double>;

V gradient(const UnaryFunction& f, const Tensor& x) { return grad(f)(x).to_vector(); }
/// Value of f at x, and its derivative along x itself, under jvp.
std::pair<V, V> pushed(const UnaryFunction& f, const Tensor& x) {
  const JvpResult r = jvp([&](const Tensors& xs) { return Tensors{f(xs[0])}; }, {x}, {x});
  return {r.values[0].to_vector(), r.tangents[0].to_vector()};
}
V under_grad(const UnaryFunction& f, const Tensor& x) {
  return vjp([&](const Tensors& xs) { return Tensors{f(xs[0])}; }, {x}).values[0].to_vector();
}

const Tensor kX = f64({2}, {3, 5});

// ---- views of written views
// ---------------------------------------------------------------------------------

const Tensor kM = f64({2, 2}, {1, 2, 3, 4});

/// Programs of views and writes, with what they give for kM.
struct Program {
  UnaryFunction f;
  V value, tangent;  ///< the tangent along kM
};
std::vector<Program> programs() {
  const auto copied = [](const Tensor& y0) {
    const Tensor y = y0 * 1, v = transpose(y, 0, 1);
    mul_(v, number(2));
    fill_(contiguous(unsqueeze(v, 0)), 0);  // a copy: v is not contiguous
    return y;
  };
  const auto through = [](const Tensor& y0) {
    const Tensor y = y0 * 1, v = transpose(y, 0, 1);
    mul_(v, number(2));
    mul_(contiguous(transpose(v, 0, 1)), y0);  // y itself
    return y;
  };
  const auto reshaped = [](const Tensor& y0) {
    const Tensor y = y0 * 1, v = transpose(y, 0, 1);
    mul_(v, number(2));
    fill_(reshape(v, {4}), 0);                                // a copy
    mul_(reshape(transpose(v, 1, 0), {4}), y0.reshape({4}));  // a view
    return y + v;
  };
  const auto lost = [](const Tensor& y0) {  // no derivative is left when the view is made
    const Tensor y = y0 * 1;
    copy_(y, f64({2, 2}, {5, 6, 7, 8}));
    const Tensor v = select(y, 0, 1);
    mul_(y, y0);
    return v;
  };
  const auto lost_in_bool = [](const Tensor& y0) {
    const Tensor y = y0 * 1;
    copy_(y, ge(y0, 3));
    const Tensor v = select(y, 0, 1);
    mul_(y, y0);
    return v;
  };
  return {{copied, {2, 4, 6, 8}, {2, 4, 6, 8}},
          {through, {2, 8, 18, 32}, {4, 16, 36, 64}},
          {reshaped, {4, 26, 26, 64}, {8, 52, 52, 128}},
          {lost, {21, 32}, {21, 32}},
          {lost_in_bool, {3, 4}, {3, 4}}};
}

TEST(ViewsOfWrittenViews, AreWhereTheProgramSeesThem) {
  for (const Program& p : programs()) {
    EXPECT_EQ(p.f(kM).to_vector(), p.value);
    EXPECT_EQ(under_grad(p.f, kM), p.value);
    EXPECT_EQ(pushed(p.f, kM), std::pair(p.value, p.tangent));
    const Tensor g = grad([&](const Tensor& x) { return sum(p.f(x)); })(kM);  // along kM, as the tangent
    EXPECT_EQ(sum(g * kM).item<double>(), std::accumulate(p.tangent.begin(), p.tangent.end(), 0.0));
    const UnaryFunction batched = vmap([&](const Tensor& x) { return p.f(x); });
    EXPECT_EQ(select(batched(stack({kM, kM})), 0, 1).to_vector(), p.value);
    EXPECT_EQ(jacfwd(p.f)(kM).to_vector(), jacrev(p.f)(kM).to_vector());
  }
}

TEST(ViewsOfWrittenViews, AreLegalWhereTheyAreOutside) {
  const auto illegal = [](const Tensor& y0) {
    const Tensor y = y0 * 1, v = transpose(y, 0, 1);
    mul_(v, number(2));
    return view(unsqueeze(v, 0), {4});
  };
  const std::string outside = refusal([&] { illegal(kM); });
  EXPECT_TRUE(outside.starts_with("shape: view: size = [4] for x: f64[1,2,2] with strides [2,1,2]"));
  for (const std::string& inside :
       {refusal([&] { under_grad(illegal, kM); }), refusal([&] { pushed(illegal, kM); })})
    EXPECT_EQ(inside.substr(0, outside.size()), outside);
  const auto legal = [](const Tensor& y0) {
    const Tensor y = y0 * 1, v = transpose(y, 0, 1);
    mul_(v, number(2));
    return view(transpose(v, 0, 1), {4});
  };
  EXPECT_EQ(under_grad(legal, kM), (V{2, 4, 6, 8}));
  EXPECT_EQ(pushed(legal, kM).second, (V{2, 4, 6, 8}));
}

/// A chain of n views costs n: views that copied the steps before them would copy 2 * 10^8 here.
TEST(ViewsOfWrittenViews, InALongChain) {
  const auto f = [](const Tensor& x) {
    const Tensor y = x * 1;
    Tensor v = y;
    for (int i = 0; i < 20'000; ++i) v = transpose(v, 0, 1);
    mul_(v, number(2));
    mul_(y, x);         // 2 x^2
    return sum(v * v);  // 4 x^4
  };
  EXPECT_EQ(gradient(f, kM), (V{16, 128, 432, 1024}));
  EXPECT_EQ(pushed(f, kM).second, (V{16 + 256 + 1296 + 4096}));
}

// ---- writes that are refused
// --------------------------------------------------------------------------------

/// What each engine says of f on kM: its values, or the beginning of its refusal.
std::vector<std::string> everywhere(const UnaryFunction& f) {
  const Tensor rows = stack({kM, kM});
  const auto said = [](const std::function<Tensor()>& run) {
    std::string text;
    const std::string refused = refusal([&] { text = str(run()); });
    return text.empty() ? refused.substr(0, refused.find('\n')) : text;
  };
  const auto forward = [&](const Tensors& v) { return Tensors{f(v[0])}; };
  return {said([&] { return f(kM); }),
          said([&] { return vjp(forward, {kM}).values[0]; }),
          said([&] { return jvp(forward, {kM}, {kM}).values[0]; }),
          said([&] { return select(vmap(f)(rows), 0, 1); }),
          said([&] { return select(vmap(f, 1)(transpose(rows, 0, 1)), 0, 1); }),
          said([&] {
            return select(vmap(f, 2)(permute(rows, {1, 2, 0})), 0, 1);
          }),
          said([&] {
            return select(select(vmap(vmap(f))(stack({rows, rows})), 0, 1), 0, 0);
          }),
          said([&] {
            return select(vjp([&](const Tensors& v) { return Tensors{vmap(f)(v[0])}; }, {rows}).values[0], 0,
                          1);
          }),
          said([&] {
            return select(vmap([&](const Tensor& x) { return vjp(forward, {x}).values[0]; })(rows), 0, 0);
          })};
}

TEST(Overlap, IsRefusedEverywhereOrNowhere) {
  const auto memory = [](const Tensor& x) { return x * 1; };
  const std::vector<UnaryFunction> programs = {
      [&](const Tensor& x) {
        const Tensor y = memory(x);
        return add_(y, transpose(y, 0, 1));
      },
      [&](const Tensor& x) {
        const Tensor y = memory(x);
        copy_(select(y, 0, 0), select(y, 0, 1));
        return y;
      },
      [&](const Tensor& x) {
        const Tensor y = memory(x);
        mul_(select(y, 1, 0), select(y, 1, 1));
        return y;
      },
      [&](const Tensor& x) {
        const Tensor y = memory(x);
        return mul_(y, transpose(transpose(y, 0, 1), 0, 1));
      },
      [&](const Tensor& x) {
        const Tensor y = reshape(memory(x), {4});
        add_(slice(y, 0, 0, 2), slice(y, 0, 2, 4));
        return y;
      },
      [&](const Tensor& x) {
        const Tensor y = reshape(memory(x), {4});
        add_(slice(y, 0, 0, 3), slice(y, 0, 1, 4));
        return y;
      },
      [&](const Tensor& x) {
        const Tensor y = memory(x), v = transpose(y, 0, 1);
        mul_(v, number(2));
        return sub_(v, transpose(v, 0, 1));
      },
      [&](const Tensor& x) {
        const Tensor y = memory(x);
        return mul_(y, stack({select(y, 0, 1), select(y, 0, 0)}));
      },
  };
  const bool refused[] = {true, false, false, false, false, true, true, false};
  for (size_t k = 0; k < programs.size(); ++k) {
    const std::vector<std::string> said = everywhere(programs[k]);
    EXPECT_EQ(said[0].starts_with("overlap: "), refused[k]) << said[0];
    for (const std::string& s : said) EXPECT_EQ(s, said[0]) << "program " << k;
  }
}

/// The very same elements, whatever the strides of dims of size 1.
TEST(Overlap, StridesOfSingleElementsDoNotCount) {
  const UnaryFunction f = [](const Tensor& x) {
    const Tensor row = slice(slice(x, 1, 0, 1), 0, 1, 2), y = row * row;  // [1, 1] of strides [2, 1]
    return add_out(y, reshape(y, {1, 1}), row);
  };
  for (const std::string& said : everywhere(f)) EXPECT_NE(said.find("12"), std::string::npos) << said;
  const Tensor m = clone(kM), one = slice(slice(m, 0, 0, 1), 1, 0, 1);
  EXPECT_EQ(overlap(one, reshape(one, {1, 1})), Overlap::Same);
}

TEST(Overlap, OfLanesThatRunAtOnce) {
  const auto count = [](Dims sizes) {
    int64_t n = 1;
    for (const int64_t s : sizes) n *= s;
    return reshape(to(arange(n), DType::F64), sizes);
  };
  const auto raced = [](const std::string& text) {
    return text.find("share memory across lanes") != text.npos;
  };
  {
    const Tensor x = count({3, 4}), before = clone(x), row = select(x, 0, 1);
    const UnaryFunction f = [&](const Tensor& r) { return copy_(r, row); };
    EXPECT_TRUE(raced(refusal([&] { vmap(f)(x); })));
    EXPECT_EQ(x.to_vector(), before.to_vector());  // nothing was written
  }
  {  // what is read is not written by any lane
    const Tensor x = count({3, 4}), part = slice(select(x, 0, 1), 0, 0, 2);
    vmap([&](const Tensor& r) { return copy_(slice(r, 0, 2, 4), part); })(x);
    EXPECT_EQ(x.to_vector(), (V{0, 1, 4, 5, 4, 5, 4, 5, 8, 9, 4, 5}));
  }
  const auto product = [](const Tensors& v) { return Tensors{mul_(v[0], v[1])}; };
  {
    const Tensor x = count({6});
    const Tensors shifted{slice(x, 0, 0, 5), slice(x, 0, 1, 6)}, same{x, x};
    EXPECT_TRUE(raced(refusal([&] { vmap(product)(shifted); })));
    vmap(product)(same);
    EXPECT_EQ(x.to_vector(), (V{0, 1, 4, 9, 16, 25}));
  }
}

TEST(Arguments, OfJvpAreNotWritten) {
  const Tensor x = clone(kX);
  for (const Tensor& tangent : {Tensor(), kX}) {
    const auto whole = [](const Tensors& v) { return Tensors{mul_(v[1], v[0])}; };
    const auto part = [](const Tensors& v) { return Tensors{fill_(select(v[1], 0, 0), 0)}; };
    for (const Function& f : {Function(whole), Function(part)})
      EXPECT_TRUE(refusal([&] { jvp(f, {kX, x}, {kX, tangent}); }).starts_with("level: "));
  }
  EXPECT_EQ(x.to_vector(), kX.to_vector());
}

TEST(LevelWrites, WithoutLanesAreDoneOnceAGroup) {
  for (const int64_t chunk : {0, 2}) {
    const Tensor y = zeros({2}, DType::F64), captured = zeros({2}, DType::F64);
    const Function f = [&](const Tensors& a) {
      const Tensor one = ones({2}, DType::F64);
      add_(a[1], one);
      add_(captured, one);
      return Tensors{a[0] * a[1]};
    };
    vmap(f, {.in_dims = {0, kNone}, .chunk = chunk})({ones({4, 2}, DType::F64), y});
    const double runs = chunk == 0 ? 1 : 2;
    EXPECT_EQ(y.to_vector(), (std::vector<double>{runs, runs}));
    EXPECT_EQ(captured.to_vector(), (std::vector<double>{runs, runs}));
  }
}

/// Whether the target holds the result is asked before the values are, as of plain tensors.
TEST(Writes, TargetsAreJudgedBeforeValues) {
  const Tensor a = ones({3}, DType::I64), b = zeros({2, 3}, DType::I64);
  const auto code = [&](const std::function<void()>& f) { return refusal(f).substr(0, 6); };
  EXPECT_EQ(code([&] { fmod_(clone(a), b); }), "shape:");
  const Function f = [&](const Tensors& v) { return Tensors{fmod_(clone(v[0]), b)}; };
  EXPECT_EQ(code([&] { vmap(f)({stack({a, a}, 0)}); }), "shape:");
  const Function fits = [](const Tensors& v) { return Tensors{fmod_(clone(v[0]), v[0] * 0)}; };
  EXPECT_EQ(code([&] { vmap(fits)({stack({a, a}, 0)}); }), "value:");
}
}  // namespace
}  // namespace test_level_writes
