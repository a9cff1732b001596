// Spike 0003: arguments borrowed by a frame, or boxed; what a formula costs and keeps; what it may ask for.
#include <any>

#include "lamella/dispatch/call.h"

#include "timing.h"

namespace {
using namespace lamella;

const Tensor a = tensor_of({2}, {1, 2}), b = tensor_of({2}, {3, 4});
const Scalar alpha(1);

// One call add(a, b, alpha) reaches a kernel that looks at its arguments, however they travel.
void look(const Tensor& x, const Tensor& y, const Scalar& s) {
  spike::keep(x.numel() + y.numel() + s.to_int());
}
void (*volatile by_frame)(Frame&) = [](Frame& f) { look(f.tensor(0), f.tensor(1), f.arg<Scalar>(2)); };
void (*volatile by_any)(const std::vector<std::any>&) = [](const std::vector<std::any>& v) {
  look(std::any_cast<const Tensor&>(v[0]), std::any_cast<const Tensor&>(v[1]),
       std::any_cast<const Scalar&>(v[2]));
};
void (*volatile by_values)(std::span<const Value>) = [](std::span<const Value> v) {
  look(std::get<Tensor>(v[0]), std::get<Tensor>(v[1]), std::get<Scalar>(v[2]));
};

void conventions() {
  spike::Contest contest("hand add(a, b, alpha) to a kernel");
  contest.add("frame: pointers to the caller's values", 500000, [] {
    const void* const args[] = {&a, &b, &alpha};
    Frame f{nullptr, args, nullptr};
    by_frame(f);
  });
  contest.add("vector<any>", 100000, [] { by_any({a, b, alpha}); });
  contest.add("vector<variant>, made for the call", 100000, [] { by_values(Values{a, b, alpha}); });
  Values stack;
  contest.add("vector<variant>, one stack kept for all calls", 100000, [&] {
    stack.emplace_back(a);
    stack.emplace_back(b);
    stack.emplace_back(alpha);
    by_values({stack.data() + stack.size() - 3, 3});
    stack.resize(stack.size() - 3);
  });
  contest.run();
}

void formulas() {
  const auto plain = [](Tensor dy, Tensor) { return dy; };  // stands for dy * b
  const Formula formula = wrt("a", saves("b"), plain);
  Tensor (*volatile thunk)(const RuleArgs&) = formula.one;
  const Tensor dy = tensor_of({2}, {1, 1});
  const void* const saved[] = {&b};
  spike::Contest contest("one formula, (dy, b) -> dy");
  contest.add("the lambda itself", 500000, [&] { spike::keep(plain(dy, b)); });
  contest.add("through the table: RuleArgs, thunk", 500000, [&] { spike::keep(thunk({{&dy, 1}, saved})); });
  contest.run();
}

OpDef mul_like(std::string_view name, std::string_view saved_for_a) {
  return {.schema = name,
          .shape = ShapeClass::Broadcast,
          .jvp = not_differentiable("a spike"),
          .vjp = Rules{wrt("a", saves(saved_for_a), [](Tensor dy, Tensor) { return dy; }),
                       wrt("b", saves("a"), [](Tensor dy, Tensor) { return dy; })},
          .samples = nullptr,
          .doc = "a spike"};
}

/// What a tape keeps of y = a * b, by which inputs carry a derivative; boxed conventions keep a, b and y.
void keeps(const Op& op, const char* text, std::initializer_list<int> carried) {
  uint64_t kept = 0;
  for (const int i : carried)
    for (const BoundSave& s : op.vjp_of(i)->saves) kept |= uint64_t{1} << s.index;
  std::printf("mul, %s: keeps %d of %zu handles, calls %zu of %zu formulas\n", text, std::popcount(kept),
              op.schema.params.size() + 1, carried.size(), op.vjp.size());
}
}  // namespace

int main() {
  set_builtin_operators([] {});
  conventions();
  formulas();
  OpTable::add(mul_like("spike_mul(Tensor a, Tensor b) -> Tensor", "b"));
  const Op& op = *OpTable::current().find("spike_mul");
  keeps(op, "a carries", {0});
  keeps(op, "both carry", {0, 1});
  try {
    OpTable::add(mul_like("spike_wrong(Tensor a, Tensor b) -> Tensor", "c"));
  } catch (const Error& e) { std::printf("refused when added: %s\n", e.what()); }
}
