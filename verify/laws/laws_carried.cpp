// The law of carried transforms: what goes along beside values is what the program gives of it alone.
#include <algorithm>
#include <cstring>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/carried.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/chain.h"

namespace lamella::verify {

namespace {

/// Inputs, and what each carries. Rules are functions without a state of their own: one is in force.
struct Beside {
  const Tensors &values, &carried;
  Beside(const Tensors& v, const Tensors& c) : values(v), carried(c) { now = this; }
  ~Beside() { now = nullptr; }
  Beside(const Beside&) = delete;
  static thread_local const Beside* now;
};
thread_local const Beside* Beside::now = nullptr;

Tensor of_input(const Tensor& t) {
  for (size_t k = 0; Beside::now && k < Beside::now->values.size(); ++k)
    if (t.is_same(Beside::now->values[k])) return Beside::now->carried[k];
  return t;  // a constant
}
constexpr CarriedRules kBackwards{"backwards", of_input};

/// The elements in the other direction, as good arguments as they are, in the same layout.
Tensor backwards(const Tensor& x) {
  Tensor out = strided_copy(x);
  const auto bytes = size_t(itemsize(x.dtype()));
  const char* const from = static_cast<const char*>(x.raw_data());
  char* const to = static_cast<char*>(out.raw_data());
  std::vector<size_t> places;
  each_element(x, [&](int64_t offset) { places.push_back(size_t(offset) * bytes); });
  for (size_t i = 0; i < places.size(); ++i)
    std::memcpy(to + places[i], from + places[places.size() - 1 - i], bytes);
  return out;
}

/// Notes calls that give conditions, indices or integers: of those tensors carry what the values gave, and
/// what they choose further on is what it is for the values.
class SeesChoices final : public Observer {
 public:
  bool any = false;
  void on_call(const Frame&, KeySet, int) override {}
  void on_result(const Frame& f) override {
    for_each_result(f, [this](const Tensor& t) { any |= t.defined() && !is_inexact(t.dtype()); });
    for (int i = 0; i < f.op->arity; ++i)
      if (f.op->schema.params[size_t(i)].kind == ParamKind::DType && !f.none(i))
        any |= !is_inexact(f.arg<DType>(i));
  }
  void on_return(const Frame&) override {}
};

/// Operators that are put together may give another zero than their kernels.
Finding unlike(const Tensors& got, const Tensors& want) {
  if (got.size() != want.size()) return other_number(got, want);
  for (size_t k = 0; k < got.size(); ++k)
    if (Finding d = differs(got[k], want[k], false); !d.empty()) return format("result {}: ", k) + d;
  return "";
}

/// A constant or a result of what is there. `as_out`: by out=, where a constant comes with nothing of the
/// target among its operands.
void write(const Tensor& target, uint32_t kind, bool as_out) {
  const auto one = [&] { return ones(target.sizes(), target.dtype()); };
  if (kind == 0) as_out ? mul_out(target, one(), mul(one(), 3)) : fill_(target, 3);
  else if (kind == 1) as_out ? add_out(target, one(), one()) : copy_(target, one());
  else if (kind == 2) as_out ? add_out(target, target, target) : copy_(target, mul(target, 2));
  else as_out ? mul_out(target, target, target) : mul_(target, target);
}

/// The chain, and behind it a copy of the first input, into which, and into parts of which, constants and
/// results are written; it is given back as a whole, in a view made before, and as the parts that were
/// written.
Function with_writes(const Chain& chain, uint32_t word) {
  return [f = chain.function(), word](const Tensors& xs) {
    Tensors ys = f(xs);
    const Tensor own = reshape(mul(xs[0], 1), {-1}), seen = unsqueeze(own, 0);
    for (uint32_t w = word, more = word >> 9, k = 0; k < 3 && own.size(0) > 0; w /= 8, more /= 4, ++k) {
      const Tensor part = slice(own, 0, int64_t(w / 4 % 2) * (own.size(0) / 2), own.size(0), 1);
      write(more % 4 >= 2 ? own : part, w % 4, more % 2 == 1);
      ys.push_back(part);
    }
    ys.push_back(own), ys.push_back(seen);
    return ys;
  };
}

Verdict carried_goes_along(Case& c) {
  const Chain chain(c);
  const uint32_t word = c.draw.word();
  if (!chain.valid()) return Verdict::discard();
  const Function f = with_writes(chain, word);
  Tensors xs, others, want, want_beside;
  for (const Tensor& x : chain.inputs())  // handles that no constant of the chain is
    xs.push_back(strided_copy(x)), others.push_back(backwards(x));
  SeesChoices seen;  // in the plain program: a level writes through views by conditions of its own
  const Status s = status_of([&] {
    const ScopedObserver scope(&seen);
    want = f(xs), want_beside = f(others);
  });
  if (s.raised || seen.any) return Verdict::discard();
  const Beside in_force(xs, others);
  Carried got;
  const Status carried = status_of([&] { got = run_carried(kBackwards, f, xs); });
  if (carried.raised && carried.code == ErrorCode::Level && chain.writes()) return Verdict::discard();
  Finding wrong = carried.raised ? "raises " + str(carried) : unlike(got.values, want);
  if (wrong.empty() && !(wrong = unlike(got.carried, want_beside)).empty())
    wrong = "what is carried: " + wrong;
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(wrong, chain.cpp() + "  // " + wrong.text() + "\n", 1);
}

/// Some of its cases are computed without conditions and indices.
bool is_carried(const Op& op) {
  static AskedOnce asked;
  constexpr uint32_t kAsked = 64;
  constexpr int kOften = 4;
  return chained(op) && asked(op, [&] {
           int without = 0;
           some_case(op, chain_options(), kAsked, [&](Case& c) {
             SeesChoices seen;
             const ScopedObserver scope(&seen);
             without += !status_of([&] { call_boxed(c.op, c.args); }).raised && !seen.any;
             return without >= kOften;
           });
           return without >= kOften;
         });
}

}  // namespace

void add_carried_laws(std::vector<Law>& laws) {
  laws.push_back(
      {180, "carried_goes_along", "compose",
       "What a carried transform takes along by the operators themselves is what the program gives of "
       "it alone, through calls, views, and writes of results and of constants; values are those of "
       "the plain program.",
       chain_options(), false, is_carried, carried_goes_along});
}

}  // namespace lamella::verify
