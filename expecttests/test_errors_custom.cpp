// Error texts of functions of users: custom rules, what functions capture, checkpoints, saved-tensor hooks.
#include "refusal.h"

namespace lamella {
namespace test_errors_custom {  // files of this room are compiled several at a time
namespace {
using namespace lamella::expect;

/// For refusals after which more is kept than before, such as what a function saved when it ran again.
std::string raised(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) { return format("[{}] {}", name(e.code()), e.what()); }
  return "accepted";
}

Tensors gradient(const Function& f, const Tensor& x) {
  return grad([&](const Tensors& v) { return sum(f(v)[0]); })({x});
}
/// 2 x, with a rule that may be wrong.
Function doubled(const BackwardRule& rule) {
  return custom_vjp([](const Tensors& v) { return std::pair(Tensors{v[0] * 2}, Tensors{}); }, rule);
}
Function doubled_forward(const ForwardRule& rule) {
  return custom_jvp([](const Tensors& v) { return Tensors{v[0] * 2}; }, rule);
}

TEST(CustomErrors, Functions) {
  const Tensor x = x23();
  const Function many = custom_jvp([](const Tensors& v) { return Tensors(256, v[0]); }, {});
  EXPECT_INLINE(refused([&] { many({x}); }, {x}), R"(
      [value] custom_jvp: the function gave 256 values and residuals, expected at most 255)");
  const Function many_kept =
      custom_vjp([](const Tensors& v) { return std::pair(Tensors(256, v[0]), Tensors{}); }, {});
  EXPECT_INLINE(refused([&] { many_kept({x}); }, {x}), R"(
      [value] custom_vjp: the function gave 256 values and residuals, expected at most 255)");
  const Function none = custom_jvp([](const Tensors&) { return Tensors{Tensor()}; }, {});
  EXPECT_INLINE(refused([&] { none({x}); }, {x}), R"(
      [undefined] custom_jvp: value 0 of the function is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(refused([&] { none({Tensor()}); }), R"(
      [undefined] custom_jvp: argument 0 is an undefined tensor; expected a defined one)");
  const Function elsewhere =
      doubled([](const Tensors&, const Tensors& us) { return Tensors{to_device(us[0], Device::Reference)}; });
  EXPECT_INLINE(refused([&] { gradient(elsewhere, x); }, {x}), R"(
      [device] custom_vjp: cotangent 0 of the rule is on reference, expected cpu as argument 0
        under: grad#1)");
  const Function keeps_none = custom_vjp(
      [](const Tensors& v) {
        return std::pair(Tensors{v[0] * 2}, Tensors{v[0], Tensor()});
      },
      {});
  EXPECT_INLINE(refused([&] { vmap(keeps_none)({x}); }, {x}), R"(
      [undefined] custom_vjp: residual 1 of the function is an undefined tensor; expected a defined one
        under: vmap#1 (size 2))");
  const Function writes = custom_jvp([](const Tensors& v) { return Tensors{mul_(Tensor(v[0]), v[0])}; }, {});
  const Tensor own = clone(x);
  EXPECT_INLINE(raised([&] { writes({own}); }), R"(
      [value] custom_jvp: the function wrote to its argument 0, f64[2,3]; expected it to write to a \
      clone)");
  EXPECT_INLINE(raised([&] { vmap(writes)({own}); }), R"(
      [value] custom_jvp: the function wrote to its argument 0, f64[3]; expected it to write to a clone
        under: vmap#1 (size 2))");
}

/// Edges of the tape name outputs in 16 bits.
TEST(CustomErrors, ListsThatAreTooLongToRecord) {
  const OpTable* const before = &OpTable::current();
  OpTable::add(
      {.schema = "gives_many(Function f, Tensor[] xs) -> Tensor[]",
       .shape = ShapeClass::Other,
       .composite = [](Frame& f) { *f.list = (*f.arg<FunctionRef>(0))({f.tensors(1)[0]}); },
       .jvp = not_differentiable("a test's own operator"),
       .vjp = wrt("xs", saves("xs"),
                  [](TensorSpan us, TensorSpan xs) { return Tensors{us[kMaxListResults - 1] * xs[0]}; }),
       .properties = kAmbient | kTestOnly,
       .samples = [](Draw&) { return Values{}; },
       .doc = "A test's."});
  const Tensor x = tensor_of({}, {3}, DType::F64);
  const auto slope = [&](size_t n) {
    const auto f = std::make_shared<const Function>([n](const Tensors& xs) { return Tensors(n, xs[0]); });
    return grad([&](const Tensor& v) { return call("gives_many", {f, Tensors{v}})[kMaxListResults - 1]; })(x);
  };
  EXPECT_EQ(slope(kMaxListResults).item<double>(), 3.0);
  EXPECT_INLINE(refused([&] { slope(kMaxListResults + 1); }, {x}), R"(
      [value] gives_many: gives 65536 tensors, expected at most 65535 where it is recorded
        under: grad#1)");
  OpTable::take_back(before);
}

TEST(CustomErrors, FunctionsThatChange) {
  int runs = 0;
  const Function f = custom_vjp(
      [&](const Tensors& v) {
        const Tensors ys = runs++ ? Tensors{v[0], v[0]} : Tensors{v[0] * 2};
        return std::pair(ys, Tensors{exp(v[0])});
      },
      [](const Tensors& kept, const Tensors& u) { return Tensors{u[0] * kept[0]}; });
  const auto second = [&] { gradient([&](const Tensors& v) { return gradient(f, v[0]); }, x23()); };
  EXPECT_INLINE(refused(second, {x23()}), R"(
      [value] custom_vjp: the function gave 2 values and 1 residuals, expected 1 and 1, as when it ran \
      first
        under: grad#3 of grad#2 of grad#1)");
}

TEST(CustomErrors, Rules) {
  const Tensor x = x23();
  const auto reverse = [&](const BackwardRule& rule) {
    return refused([&] { gradient(doubled(rule), x); }, {x});
  };
  const auto forward = [&](const ForwardRule& rule) {
    return refused([&] { jvp(doubled_forward(rule), {x}, {x}); }, {x});
  };
  EXPECT_INLINE(reverse([](const Tensors&, const Tensors&) { return Tensors{}; }), R"(
      [shape] custom_vjp: the rule gave 0 cotangents, expected 1, one for each argument
        under: grad#1)");
  EXPECT_INLINE(reverse([](const Tensors&, const Tensors& u) { return Tensors{sum(u[0])}; }), R"(
      [shape] custom_vjp: cotangent 0 of the rule is f64[], expected the sizes of argument 0, f64[2,3]
        under: grad#1)");
  EXPECT_INLINE(reverse([](const Tensors&, const Tensors& u) { return Tensors{to(u[0], DType::F32)}; }),
                R"(
      [dtype] custom_vjp: cotangent 0 of the rule is f32[2,3], expected the dtype of argument 0, \
      f64[2,3]
        under: grad#1)");
  EXPECT_INLINE(forward([](const Tensors&, const Tensors&, const Tensors& t) {
                  return Tensors{t[0], t[0]};
                }),
                R"(
      [shape] custom_jvp: the rule gave 2 tangents, expected 1, one for each value
        under: jvp#1)");
  EXPECT_INLINE(forward([](const Tensors&, const Tensors&, const Tensors& t) { return Tensors{sum(t[0])}; }),
                R"(
      [shape] custom_jvp: tangent 0 of the rule is f64[], expected the sizes of value 0, f64[2,3]
        under: jvp#1)");
}

TEST(CustomErrors, Captures) {
  const Tensor x = x23();
  const Function f = [&](const Tensors& v) {
    const Tensor c = v[0] * 1;
    return custom_jvp([c](const Tensors& a) { return Tensors{a[0] * c}; }, {})({x});
  };
  EXPECT_INLINE(refused([&] { gradient(f, x); }, {x}), R"(
      [level] custom_jvp: its result 0 depends on a value of grad#1 that the function captures, for \
      which it has no rule; expected that value among the arguments
        under: grad#1)");
  EXPECT_INLINE(refused([&] { jvp(f, {x}, {x}); }, {x}), R"(
      [level] custom_jvp: its result 0 depends on a value of jvp#1 that the function captures, for \
      which it has no rule; expected that value among the arguments
        under: jvp#1)");
  const Tensor leaf = requires_grad(clone(x));
  EXPECT_INLINE(refused([&] { f({leaf}); }, {x, leaf}), R"(
      [value] custom_jvp: its result 0 depends on a tensor that requires grad, which the function \
      captures, and for which it has no rule; expected that tensor among the arguments)");
}

TEST(CheckpointErrors, FunctionsThatChange) {
  const Tensor leaf = requires_grad(clone(x23()));
  // Runs `first` when called, `then` in backward.
  const auto changed = [&](const Function& first, const Function& then) {
    int runs = 0;
    const Tensor y = sum(checkpoint([&](const Tensors& v) { return (runs++ ? then : first)(v); })({leaf})[0]);
    return raised([&] { backward(y); });
  };
  const Function one = [](const Tensors& v) { return Tensors{sin(v[0])}; };
  const Function two = [](const Tensors& v) { return Tensors{exp(sin(v[0]))}; };
  const Function other = [](const Tensors& v) { return Tensors{cos(v[0])}; };
  const Function smaller = [](const Tensors& v) { return Tensors{sin(sum(v[0]))}; };
  EXPECT_INLINE(changed(one, two), R"(
      [value] checkpoint: the function saved more than 1 values when it ran again, as it had before; \
      expected it to do the same each time)");
  EXPECT_INLINE(changed(two, one), R"(
      [value] checkpoint: the function saved 1 values when it ran again, expected 2: it must do the \
      same each time)");
  EXPECT_INLINE(changed(one, other), R"(
      [value] checkpoint: value 0 that the function saved is f64[2,3] of cos when it ran again, \
      expected 6 elements of sin: it must do the same each time)");
  EXPECT_INLINE(changed(one, smaller), R"(
      [value] checkpoint: value 0 that the function saved is f64[] of sin when it ran again, expected 6 \
      elements of sin: it must do the same each time)");
}

TEST(CheckpointErrors, BackwardInside) {
  const Tensor leaf = requires_grad(clone(x23()));
  const Function f = checkpoint([](const Tensors& v) {
    const Tensor y = sum(sin(v[0]));
    backward(y);
    return Tensors{y};
  });
  EXPECT_INLINE(raised([&] { f({leaf}); }), R"(
      [usage] checkpoint: backward inside the function asks for a value that sin saved in it; expected \
      backward after the function has returned)");
}

TEST(CheckpointErrors, Writes) {
  const Tensor leaf = requires_grad(clone(x23())), w = clone(x23()), c = clone(x23());
  const Tensor y = sum(checkpoint([](const Tensors& v) { return Tensors{v[0] * v[1]}; })({leaf, w})[0]);
  mul_(w, w);
  EXPECT_INLINE(raised([&] { backward(y); }), R"(
      [value] checkpoint: argument 1 was written in place since the function ran: version 1, expected \
      0; clone it first)");
  const Tensor z = sum(checkpoint([c](const Tensors& v) { return Tensors{v[0] * c}; })({leaf})[0]);
  mul_(c, c);
  EXPECT_INLINE(raised([&] { backward(z); }), R"(
      [value] backward: a value that mul saved in a checkpointed function was written in place later: \
      version 1, expected 0; clone it first)");
}

TEST(SavedHookErrors, Values) {
  const Tensor leaf = requires_grad(clone(x23()));
  const auto with = [&](const Unpack& unpack) {
    Tensor y;
    {
      const SavedTensorHooks hooks([&](const Tensor&) { return unpack; });
      y = sum(sin(leaf));
    }
    return refused([&] { backward(y); }, {leaf});
  };
  EXPECT_INLINE(with([] { return of({3}); }), R"(
      [shape] backward: a saved-tensor hook gave f64[3] for a value that sin saved; expected f64[2,3])");
  EXPECT_INLINE(with([] {
                  return of({2, 3}, DType::F32);
                }),
                R"(
      [dtype] backward: a saved-tensor hook gave f32[2,3] for a value that sin saved; expected f64[2,3])");
  EXPECT_INLINE(with([] { return Tensor(); }), R"(
      [undefined] backward: a saved-tensor hook gave an undefined tensor for a value that sin saved; \
      expected f64[2,3])");
}

}  // namespace
}  // namespace test_errors_custom
}  // namespace lamella
