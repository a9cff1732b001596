// Programs of views and writes that engines got wrong, each in every engine, against numbers worked out by
// hand. What they give is printed: `proptests --gtest_filter='WritePrograms.*'`.
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <iostream>

#include "lamella/lamella.h"

#include "support.h"

namespace test_write_programs {  // files of this room are compiled several at a time
namespace {
using namespace lamella;
using namespace lamella::tests;
using V = std::vector<double>;

const Tensor& x12() {
  static const Tensor x = f64({1, 2});
  return x;
}

/// The first line of what f raises; empty when it raises nothing.
std::string refusal_line(const std::function<void()>& f) { return first_line(refusal(f)); }
void print(std::string_view program, std::string_view engine, std::string_view got) {
  std::cout << "    " << program << " | " << engine << " | " << got << '\n';
}

/// The gradient of sum(f(x)).
struct Engine {
  std::string_view name;
  bool in_base;  ///< memory is written
  std::function<V(const UnaryFunction& f, const Tensor& x)> gradient;
};
UnaryFunction summed(const UnaryFunction& f) {
  return [f](const Tensor& x) { return sum(f(x)); };
}
V along_units(const UnaryFunction& f, const Tensor& x) {
  V out;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const Tensor t = to(eq(arange(x.numel()), i), DType::F64).reshape(IntArg(x.sizes()));
    out.push_back(
        jvp([&](const Tensors& xs) { return Tensors{sum(f(xs[0]))}; }, {x}, {t}).tangents[0].item<double>());
  }
  return out;
}
V in_base(const UnaryFunction& f, const Tensor& x, BackwardOptions options) {
  const Tensor leaf = requires_grad(x);
  backward(sum(f(leaf)), {}, options);
  const V out = detach(grad_of(leaf)).to_vector();
  clear_grad(leaf);
  return out;
}
V last_lane(const Tensor& t) { return select(t, 0, t.size(0) - 1).to_vector(); }
const std::vector<Engine>& engines() {
  const auto two = [](const Tensor& x) { return stack({x * 3 + 1, x}); };
  static const std::vector<Engine> all = {
      {"base", true, [](const UnaryFunction& f, const Tensor& x) { return in_base(f, x, {}); }},
      {"base, create_graph", true,
       [](const UnaryFunction& f, const Tensor& x) { return in_base(f, x, {.create_graph = true}); }},
      {"autograd::grad", true,
       [](const UnaryFunction& f, const Tensor& x) {
         const Tensor leaf = requires_grad(x);
         return autograd::grad({sum(f(leaf))}, {leaf})[0].to_vector();
       }},
      {"grad", false, [](const UnaryFunction& f, const Tensor& x) { return grad(summed(f))(x).to_vector(); }},
      {"jvp", false, along_units},
      {"vmap(grad)", false,
       [two](const UnaryFunction& f, const Tensor& x) { return last_lane(vmap(grad(summed(f)))(two(x))); }},
      {"grad(vmap)", false,
       [two](const UnaryFunction& f, const Tensor& x) { return last_lane(grad(summed(vmap(f)))(two(x))); }},
      {"base(vmap)", true,
       [two](const UnaryFunction& f, const Tensor& x) {
         const Tensor leaf = requires_grad(two(x));
         backward(sum(vmap(f)(leaf)));
         return last_lane(grad_of(leaf));
       }},
      {"vmap(jvp)", false,
       [two](const UnaryFunction& f, const Tensor& x) {
         return last_lane(
             vmap(UnaryFunction([&](const Tensor& row) { return jacfwd(summed(f))(row); }))(two(x)));
       }},
      {"jvp(grad)", false,
       [](const UnaryFunction& f, const Tensor& x) {
         return jvp([&](const Tensors& xs) { return Tensors{grad(summed(f))(xs[0])}; }, {x}, {x})
             .values[0]
             .to_vector();
       }},
      {"grad(grad)", false,
       [](const UnaryFunction& f, const Tensor& x) {  // the gradient as an aux result
         const Function second = grad_has_aux([&](const Tensors& xs) {
           const Tensor g = grad(summed(f))(xs[0]);
           return std::pair(Tensors{sum(g)}, Tensors{g});
         });
         return second({x})[1].to_vector();
       }},
  };
  return all;
}

/// f at x in all engines.
void everywhere(std::string_view program, const UnaryFunction& f, const Tensor& x, const V& want) {
  for (const Engine& engine : engines()) {
    V got;
    const std::string refused = refusal_line([&] { got = engine.gradient(f, x); });
    print(program, engine.name, refused.empty() ? text(got) : refused);
    ASSERT_EQ(got.size(), want.size()) << program << " in " << engine.name << ": " << refused;
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 1e-12 * (1 + std::fabs(want[i]))) << program << " in " << engine.name;
  }
}
// ---- writes through views

TEST(WritePrograms, ThroughViews) {
  everywhere("select(y, 0, 0).mul_(3)",
             [](const Tensor& w) {
               const Tensor y = w * 2;
               mul_(select(y, 0, 0), number(3));
               return y;
             },
             x12(), {6, 2});
  everywhere("u.mul_(w), a view made before is read",
             [](const Tensor& w) {
               const Tensor u = w + 0, v = select(u, 0, 0);
               mul_(u, w);
               return v;
             },
             x12(), {2, 0});
  everywhere("a view of a view of a view",
             [](const Tensor& w) {
               const Tensor y = w * 1, v = select(unsqueeze(y, 0), 0, 0);
               mul_(slice(v, 0, 1, 2), slice(w, 0, 1, 2));
               return y;
             },
             x12(), {1, 4});
  everywhere("split",
             [](const Tensor& w) {
               const Tensor y = w * 1;
               mul_(split(y, 1, 0)[1], number(7));
               return y;
             },
             x12(), {1, 7});
  everywhere("vmap writes part of a lane",
             [](const Tensor& w) {  // [[a, b a], [2 a, 4 a b]]
               const Tensor y = stack({w, w * 2});
               vmap([](const Tensor& row) {
                 mul_(select(row, 0, 1), select(row, 0, 0));
                 return row;
               })(y);
               return y;
             },
             x12(), {13, 5});
  everywhere("copy_ into a view of a value",
             [](const Tensor& w) {  // x = [w0, w0^2, w1^2], sum of x^2
               const Tensor x = cat({unsqueeze(select(w, 0, 0), 0), w}, 0);
               copy_(slice(x, 0, 1, 3), w * w);
               return x * x;
             },
             x12(), {6, 32});
  everywhere("copy_ into a view of fresh zeros",
             [](const Tensor& w) {
               const Tensor x = zeros({3}, DType::F64);
               copy_(slice(x, 0, 1, 3), w * w);
               return x * x;
             },
             x12(), {4, 32});
}

TEST(WritePrograms, ThroughAViewOfAWrittenView) {
  const Tensor m = tensor_of({2, 2}, {1, 2, 3, 4}, DType::F64);
  everywhere("contiguous(unsqueeze(v, 0)).fill_(0) writes a copy",
             [](const Tensor& w) {
               const Tensor y = w * 1, v = transpose(y, 0, 1);
               mul_(v, number(2));
               fill_(contiguous(unsqueeze(v, 0)), 0);
               return y * w;
             },
             m, {4, 8, 12, 16});
  everywhere("contiguous(transpose(v, 0, 1)).mul_(w) writes y",
             [](const Tensor& w) {
               const Tensor y = w * 1, v = transpose(y, 0, 1);
               mul_(v, number(2));
               mul_(contiguous(transpose(v, 0, 1)), w);
               return y;
             },
             m, {4, 8, 12, 16});
}

// ---- promotion

TEST(WritePrograms, IntoFreshMemory) {
  const auto fresh = [] { return f64({2, 7}); };
  everywhere("z.mul_(x)", [&](const Tensor& x) { return mul_(fresh(), x); }, x12(), {2, 7});
  everywhere("z.pow_(x)", [&](const Tensor& x) { return pow_(fresh(), x); }, x12(),
             {2 * std::log(2), 49 * std::log(7)});
  everywhere("z.maximum_(x)", [&](const Tensor& x) { return maximum_(fresh(), x * 3); }, x12(), {3, 0});
  // The tape of a level keeps what it saved, and vmap gives z lanes of its own; base autograd alone, whose
  // memory is written, refuses as PyTorch does.
  for (const Engine& engine : engines()) {
    V got;
    const UnaryFunction f = [&](const Tensor& x) {
      const Tensor z = fresh(), q = x * z;
      add_(z, x);
      return q + z;
    };
    const std::string refused = refusal_line([&] { got = engine.gradient(f, x12()); });
    print("q = x z; z.add_(x); q + z", engine.name, refused.empty() ? text(got) : refused);
    if (engine.in_base && engine.name != "base(vmap)")
      EXPECT_TRUE(refused.starts_with("value: backward: a value that mul saved"));
    else EXPECT_EQ(got, (V{3, 8})) << engine.name;
  }
  everywhere("zeros_like(x).add_(x).mul_(x)",
             [](const Tensor& x) {
               const Tensor z = zeros_like(x);
               add_(z, x);
               mul_(z, x);
               return z;
             },
             x12(), {2, 4});
  everywhere("full_like(x, 3).mul_(x).sin_()",
             [](const Tensor& x) { return sin_(mul_(full_like(x, 3.0), x)); }, x12(),
             {3 * std::cos(3), 3 * std::cos(6)});
}

TEST(WritePrograms, AnInnerTapeSavedWhatIsPromoted) {
  const UnaryFunction f = [](const Tensor& x) {
    const Tensor z = f64({2, 7});
    const VjpResult r = vjp([&](const Tensors& w) { return Tensors{w[0] * z}; }, {f64({1, 1})});
    mul_(z, x);
    return sum(r.pullback({f64({1, 1})})[0]);
  };
  for (const Engine& engine : engines()) {
    const std::string refused = refusal_line([&] { engine.gradient(f, x12()); });
    print("a pullback after its saved z was promoted", engine.name, refused);
    EXPECT_TRUE(refused.starts_with("value: backward: a value that mul saved was written")) << engine.name;
  }
}

// ---- formulas that need the old value

TEST(WritePrograms, WithFormulasOfTheOldValue) {
  const Tensor x = f64({0.5, 2});
  const auto written = [](auto write) {
    return [write](const Tensor& w) {
      const Tensor y = w * 1;
      write(y, w);
      return y;
    };
  };
  const auto run = [&](std::string_view program, auto write, const V& want) {
    everywhere(program, written(write), x, want);
  };
  using T = const Tensor&;
  run("sin_", [](T y, T) { sin_(y); }, {std::cos(0.5), std::cos(2)});
  run("log_", [](T y, T) { log_(y); }, {2, 0.5});
  run("clamp_", [](T y, T) { clamp_(y, number(0), number(1)); }, {1, 0});
  run("abs_", [](T y, T) { neg_(y), abs_(y); }, {1, 1});
  run("pow_", [](T y, T) { pow_(y, number(3)); }, {0.75, 12});
  run("reciprocal_", [](T y, T) { reciprocal_(y); }, {-4, -0.25});
  run("y.mul_(y)", [](T y, T) { mul_(y, y); }, {1, 4});
  run("y.mul_(w)", [](T y, T w) { mul_(y, w); }, {1, 4});
  run("y.div_(w), twice", [](T y, T w) { div_(y, w), div_(y, w); }, {-4, -0.25});
  everywhere("p.mul_(w) of a plain p", [](T w) { return mul_(f64({3, 5}), w); }, x, {3, 5});
}

TEST(WritePrograms, ViewsOfWhatLostItsTangentAreTracked) {
  const UnaryFunction f = [](const Tensor& x) {
    const Tensor y = x * 1;
    copy_(y, f64({5, 6}));
    const Tensor v = select(y, 0, 0);
    mul_(y, x);
    return v;
  };
  everywhere("y.copy_(c); v = select(y, 0, 0); y.mul_(x); v", f, x12(), {5, 0});
  const V values =
      jvp([&](const Tensors& xs) { return Tensors{f(xs[0])}; }, {x12()}, {x12()}).values[0].to_vector();
  print("and its value", "jvp", text(values));
  EXPECT_EQ(values, V{5});
}

}  // namespace
}  // namespace test_write_programs
