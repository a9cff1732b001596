// A plug-in that adds a type of tensors: quantities with a unit of metres and seconds. 3 m times 2 s is 6 m
// s, and 1 m plus 1 s is an error, in plain calls, under vmap, jvp and grad, and in backward.
#include "lamella/plugin.h"

namespace {
using namespace lamella;

int key_of_quantities = -1;

struct Unit {
  int metres = 0, seconds = 0;
  bool operator==(const Unit&) const = default;
};
struct Quantity : TensorLayout {
  const Tensor number;
  const Unit unit;
  Quantity(Tensor n, Unit u) : TensorLayout(key_of_quantities), number(std::move(n)), unit(u) {}
  std::string str() const override { return format(" in m^{} s^{}", unit.metres, unit.seconds); }
};

Tensor quantity(const Tensor& number, Unit unit) {
  return make_of_layout(number.sizes(), number.dtype(), number.device(),
                        Ref<TensorLayout>::adopt(new Quantity(number, unit)));
}
const Quantity* quantity_of(const Tensor& t) { return layout_at<Quantity>(t, key_of_quantities); }
Unit unit_of(const Tensor& t) { return quantity_of(t) ? quantity_of(t)->unit : Unit{}; }
Tensor number_of(const Tensor& t) { return quantity_of(t) ? quantity_of(t)->number : t; }

/// The unit of the results, from those of the arguments.
Unit unit_of_results(const Frame& f) {
  const std::string& name = f.op->base->name;
  const Unit a = unit_of(f.tensor(f.op->tensor_params[0]));
  if (name == "mul" || name == "mm" || name == "bmm") {
    const Unit b = unit_of(f.tensor(1));
    return {a.metres + b.metres, a.seconds + b.seconds};
  }
  if (name == "div") {
    const Unit b = unit_of(f.tensor(1));
    return {a.metres - b.metres, a.seconds - b.seconds};
  }
  if (name == "reciprocal") return {-a.metres, -a.seconds};
  if (name == "ones_like" || name == "zeros_like") return {};
  for_each_tensor(f, [&](const Tensor& t, int, int) {
    LAMELLA_CHECK(!t.defined() || unit_of(t) == a, Value, "{}: {}{} and {}{}; expected one unit", f.op->name,
                  f.tensor(f.op->tensor_params[0]), Quantity({}, a).str(), t, Quantity({}, unit_of(t)).str());
  });
  LAMELLA_CHECK(f.op->has(kLinear) || a == Unit{}, Value, "{}: got a quantity{}; expected a plain number",
                f.op->name, Quantity({}, a).str());
  return a;
}

bool run(Frame& f, int) {
  const Unit unit = unit_of_results(f);
  FrameCopy numbers(f);
  for_each_tensor(f, [&](const Tensor& t, int i, int k) { numbers.set(i, k, number_of(t)); });
  Frame lower = numbers.into(f.results, f.list);
  call(lower);
  for (int k = 0; k < f.op->schema.n_results && f.op->form == OpForm::Functional; ++k)
    if (f.results[k].defined()) f.results[k] = quantity(f.results[k], unit);
  return true;
}
}  // namespace

// Tests: a law of its own, about nothing drawn but numbers.
#include "lamella/verify/case/law.h"

namespace {
verify::Verdict expect(bool holds, const char* what) {
  return holds ? verify::Verdict::pass() : verify::Verdict::fail(what, "");
}
verify::Verdict units_multiply(verify::Case&) {
  const Tensor metres = quantity(tensor_of({2}, {3, 5}), {1, 0}),
               seconds = quantity(tensor_of({2}, {2, 4}), {0, 1});
  const Tensor product = metres * seconds;
  if (unit_of(product) != Unit{1, 1} || number_of(product).to_vector() != std::vector<double>{6, 20})
    return expect(false, "3 m times 2 s is not 6 m s");
  try {
    (void)(metres + seconds);
    return expect(false, "1 m plus 1 s is no error");
  } catch (const Error& e) {
    if (e.code() != ErrorCode::Value) return expect(false, "another error");
  }
  const Tensor lanes = vmap([](const Tensor& x) { return x * x; })(metres);
  if (unit_of(lanes) != Unit{2, 0}) return expect(false, "a lane's unit is lost");
  const Tensor slope = grad([](const Tensor&x) { return sum(x * x); })(metres), leaf = requires_grad(metres);
  backward(sum(leaf * leaf));
  for (const Tensor& g : {slope, grad_of(leaf)})
    if (number_of(g).to_vector() != std::vector<double>{6, 10} || unit_of(g) != Unit{1, 0})
      return expect(false, "the slope of x^2 is not 2 x");
  const Function square = [](const Tensors& xs) { return Tensors{xs[0] * xs[0]}; };
  const Tensor along = jvp(square, {metres}, {metres}).tangents[0];
  const bool is_right =
      number_of(along).to_vector() == std::vector<double>{18, 50} && unit_of(along) == Unit{2, 0};
  return expect(is_right, "x^2 along x is not 2 x^2");
}

void add_laws() {
  verify::add_law({.number = 1002,
                   .id = "units_multiply",
                   .group = "types",
                   .statement = "Units multiply, differ loudly, and pass through vmap and grad.",
                   .applies = [](const Op& op) { return op.name == "mul"; },
                   .check = units_multiply});
}
}  // namespace

LAMELLA_PLUGIN() {
  key_of_quantities = add_tensor_type({.name = "quantity", .handle = run});
  add_laws();
}
