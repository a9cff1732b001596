// Laws of identities (identities.cpp), and of the places that views show.
#include <algorithm>
#include <quadmath.h>
#include <set>

#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/view.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/laws/identities.h"
#include "lamella/verify/oracle/real_function.h"
#include "lamella/verify/oracle/subject.h"
#include "lamella/verify/programs/subscripts.h"

namespace lamella::verify {

namespace {

struct XYZ {
  Tensor x, y, z;
};

XYZ draw_letters(Draw& d, const Identity& id) {
  const DType t = d.dtype(id.dtypes);
  const auto tensor = [&](const Dims& sizes) { return d.tensor(sizes, t, id.domain); };
  const auto size = [&] { return int64_t(2 + d.below(3)); };
  switch (id.letters) {
    case Letters::Alike: {
      const Dims s = d.shape();
      return {tensor(s), tensor(s), tensor(s)};
    }
    case Letters::Table: {
      const int64_t m = size(), n = size();
      return {tensor({m, n}), tensor({n}), tensor({m})};
    }
    case Letters::Block: return {tensor({size(), size(), size()}), {}, {}};
    case Letters::Dense: return {plain_copy(tensor({size(), size()})), {}, {}};
    case Letters::Matrices: {
      const int64_t m = d.size(), k = d.size(true), n = d.size(), p = d.size();
      return {tensor({m, k}), tensor({k, n}), tensor({n, p})};
    }
    case Letters::Vector: {
      const int64_t m = d.size(), k = d.size(true);
      return {tensor({m, k}), tensor({k}), {}};
    }
    case Letters::Definite: return {d.positive_definite({}, size(), t), {}, {}};
    case Letters::Triangular: {
      const int64_t n = size();
      const Tensor x = d.triangular({}, n, t);
      return {x, tensor({n, size()}), {}};
    }
  }
  return {};
}

/// The names of what is called in its scope.
class Listener final : public Observer {
 public:
  void on_call(const Frame& f, KeySet, int) override { names.insert(f.op->base->name); }
  void on_return(const Frame&) override {}
  std::set<std::string> names;
};

/// The operators that each identity calls: found by calling them once, so that nobody lists them.
const std::set<std::string>& subjects_of(const Identity& id) {
  static const std::vector<std::set<std::string>> known = [] {
    std::vector<std::set<std::string>> out;
    for (const Identity& each : identities()) {
      Decoder d({}, {.tame = true});
      const XYZ v = draw_letters(d, each);
      Listener listener;
      const ScopedObserver scope(&listener);
      each.lhs(v.x, v.y, v.z), each.rhs(v.x, v.y, v.z);
      out.push_back(listener.names);
    }
    return out;
  }();
  return known[size_t(&id - identities().data())];
}

using Kinds = std::initializer_list<Sides>;

std::vector<const Identity*> about(const Op& op, Kinds kinds) {
  std::vector<const Identity*> out;
  for (const Identity& id : identities())
    if (std::ranges::find(kinds, id.sides) != kinds.end() && subjects_of(id).count(op.name))
      out.push_back(&id);
  return out;
}

std::string text_of(const Identity& id) { return std::string(id.left) + " = " + std::string(id.right); }

Verdict broken(const Identity& id, const XYZ& v, const Finding& what) {
  std::string head;
  for (const auto& [name, t] : {std::pair("x", v.x), std::pair("y", v.y), std::pair("z", v.z)})
    if (t.defined()) head += cpp_tensor(name, t);
  return Verdict::fail(text_of(id) + ": " + what, head + "  std::cout << \"left  \" << str(" +
                                                      std::string(id.left) + ") << \"\\nright \" << str(" +
                                                      std::string(id.right) + ") << '\\n';\n");
}

Verdict identities_equal(Case& c) {
  const std::vector<const Identity*> all = about(c.op, {Sides::Equal, Sides::EqualNumbers});
  if (all.empty()) return Verdict::discard();
  const Identity& id = *all[c.draw.below(uint32_t(all.size()))];
  const XYZ v = draw_letters(c.draw, id);
  const Tensor got = id.lhs(v.x, v.y, v.z), want = id.rhs(v.x, v.y, v.z);
  const Finding d = differs(got, want, id.sides == Sides::Equal);
  return d.empty() ? Verdict::pass() : broken(id, v, d);
}

}  // namespace

Verdict broken_identity(const Op& op, const Tensor& x, const Tensor& y) {
  for (const Identity* id : about(op, {Sides::Equal, Sides::EqualNumbers})) {
    if (id->letters != Letters::Alike || id->domain != Domain::Any || !(id->dtypes & mask(x.dtype())))
      continue;
    const Tensor got = id->lhs(x, y, x), want = id->rhs(x, y, x);
    const Finding d = differs(got, want, id->sides == Sides::Equal);
    if (!d.empty()) return broken(*id, {x, y, x}, d);
  }
  return Verdict::pass();
}

namespace {

/// Where two operands of one sum are shaken alike in all samples, their cancellation is missed: once in 2^16.
constexpr size_t kManyShakes = 16;

/// Roundings of one side: its condition, found by shaking every operand of the f128 computation.
Reals condition_of(Identity::Side side, const XYZ& v, Reals& values) {
  Tensors xs;
  for (const Tensor* t : {&v.x, &v.y, &v.z})
    if (t->defined()) xs.push_back(*t);
  const Function f = [side](const Tensors& ts) {
    const auto letter = [&](size_t k) { return k < ts.size() ? ts[k] : Tensor(); };
    return Tensors{side(letter(0), letter(1), letter(2))};
  };
  const RealFunction g(f, xs, OracleKind::Reference);
  values = g.values();
  Reals out(values.size());
  for (size_t s = 0; s < kManyShakes; ++s) {
    const Reals y = g.shaken(g.point(), s, g.shake_size());
    for (size_t i = 0; i < y.size(); ++i)
      out[i] = fmaxq(out[i], fabsq(values[i]) + fabsq(y[i] - values[i]) / g.shake_size());
  }
  return out;
}

Verdict identities_hold(Case& c) {
  const std::vector<const Identity*> all = about(c.op, {Sides::Rounded});
  const Identity& id = *all[c.draw.below(uint32_t(all.size()))];
  const XYZ v = draw_letters(c.draw, id);
  const Tensor left = id.lhs(v.x, v.y, v.z), right = id.rhs(v.x, v.y, v.z);
  if (!finite({left}) || !finite({right})) {
    const bool alike = finite({left}) == finite({right});
    if (alike || !far_from_overflow({v.x, v.y, v.z})) return Verdict::discard();
    return broken(id, v, format("one side is not finite: got {}, expected {}", str(left), str(right)));
  }
  Reals left_values, right_values;
  const Reals a = condition_of(id.lhs, v, left_values), b = condition_of(id.rhs, v, right_values);
  const double unit = kDefaultTolerance.value * unit_roundoff(left.dtype());
  Bounds bounds(a.size());
  for (size_t i = 0; i < a.size(); ++i) bounds[i] = unit * double(a[i] + b[i]);
  if (is_complex(left.dtype()))  // complex arithmetic is right relative to the modulus
    for (size_t i = 0; i + 1 < bounds.size(); i += 2) bounds[i] = bounds[i + 1] = bounds[i] + bounds[i + 1];
  size_t at = 0, left_at = 0, right_at = 0;
  const Tensor bound = unflatten(bounds, at, left, 1);
  Finding d = outside(left, unflatten(right_values, right_at, right), bound);
  if (d.empty()) d = outside(right, unflatten(left_values, left_at, left), bound);
  if (d.empty() && left.dtype() != right.dtype())
    d = {What::DType, format("got {}, expected {}", left, right)};
  return d.empty() ? Verdict::pass() : broken(id, v, d);
}

Finding elsewhere(const Tensor& got, const Tensor& want) {
  if (!std::ranges::equal(got.sizes(), want.sizes()))
    return {What::Shape, format("got {}, expected {}", got, want)};
  if (!got.shares_storage(want)) return "got another storage";
  if (want.numel() == 0) return "";
  if (got.raw_data() != want.raw_data()) return "got another offset";
  for (int d = 0; d < want.rank(); ++d)
    if (want.size(d) > 1 && got.stride(d) != want.stride(d))
      return {What::Strides,
              format("got strides {}, expected {}", Dims(got.strides()), Dims(want.strides()))};
  return "";
}

Verdict round_trips(Case& c) {
  const std::vector<const Identity*> all = about(c.op, {Sides::SamePlace});
  const Identity& id = *all[c.draw.below(uint32_t(all.size()))];
  const XYZ v = draw_letters(c.draw, id);
  const Tensor got = id.lhs(v.x, v.y, v.z), want = id.rhs(v.x, v.y, v.z);
  Finding d = elsewhere(got, want);
  if (d.empty()) d = differs(got, want);
  return d.empty() ? Verdict::pass() : broken(id, v, d);
}

/// In bytes, of all elements in row-major order.
std::vector<int64_t> places_of(const Tensor& t) {
  std::vector<int64_t> out;
  each_element(t, [&](int64_t offset) { out.push_back((t.impl()->offset + offset) * itemsize(t.dtype())); });
  return out;
}

/// Which elements a view shows does not depend on strides: those that it shows of 0, 1, 2, ... in a row.
/// Imaginary parts go on counting, for views that show them alone.
Verdict views_show_elements(Case& c) {
  const Case::Slot first{c.op.tensor_params[0], 0};
  const Tensor x = c.at(first), numbers = reshape(arange(x.numel()), x.sizes());
  const Tensor real = to(numbers, DType::F64);
  const Tensor counted = is_complex(x.dtype()) ? complex(real, real + double(x.numel())) : numbers;
  const Tensor y = call_boxed(c.op, c.args)[0], shown = call_boxed(c.op, c.with({first}, {counted}))[0];
  Finding d;
  if (!std::ranges::equal(y.sizes(), shown.sizes())) d = format("got {}, of a dense x {}", y, shown);
  const std::vector<int64_t> in_x = places_of(x), in_y = places_of(y);
  const std::vector<double> which = shown.to_vector();
  for (size_t i = 0; d.empty() && i < which.size(); ++i) {
    const size_t number = size_t(which[i]), element = number % in_x.size();
    const int64_t place = in_x[element] + (number < in_x.size() ? 0 : itemsize(y.dtype()));
    if (in_y[i] != place)
      d = format("element {} of the view lies at byte {}, element {} of x at {}", i, in_y[i], element, place);
  }
  if (d.empty()) d = wrong_subscript(c, x);
  if (d.empty()) return Verdict::pass();
  return Verdict::fail(d, cpp_declarations(c.args) + "  std::cout << str(" + cpp_call(c.op, c.args) +
                              "[0]) << '\\n';  // " + d.text() + "\n");
}

bool in_equal_ones(const Op& op) { return !about(op, {Sides::Equal, Sides::EqualNumbers}).empty(); }
bool in_rounded_ones(const Op& op) { return !about(op, {Sides::Rounded}).empty(); }
bool in_round_trips(const Op& op) { return !about(op, {Sides::SamePlace}).empty(); }

}  // namespace

void add_identity_laws(std::vector<Law>& laws) {
  laws.push_back({18,
                  "identities_equal",
                  "value",
                  "Two ways to write one value (verify/laws/identities.cpp) give the same bits.",
                  {.mixed = false, .nonfinite = true},
                  false,
                  in_equal_ones,
                  identities_equal});
  laws.push_back({18,
                  "identities_hold",
                  "value",
                  "Two ways to write one value agree within roundings of both, by their f128 conditions.",
                  {.tame = true, .max_numel = 12, .mixed = false, .one_large = true},
                  true,
                  in_rounded_ones,
                  identities_hold});
  laws.push_back({20,
                  "round_trips",
                  "layout",
                  "There and back by views are the same elements of the same storage in the same strides.",
                  {.mixed = false},
                  false,
                  in_round_trips,
                  round_trips});
  laws.push_back(
      {20,
       "views_show_elements",
       "layout",
       "Which elements a view shows does not depend on the strides of its base; a subscript reads and "
       "writes those that its list names, in each lane, and refuses an index that is none.",
       {.mixed = false},
       false,
       is_view,
       views_show_elements});
}

}  // namespace lamella::verify
