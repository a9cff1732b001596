// Laws of writes in place: under transforms and through views they are the functional program; no write into
// memory that an argument shares in part.
#include <algorithm>
#include <cstring>
#include <utility>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {

bool has_in_place(const Op& op) {
  return form_of(op, OpForm::InPlace) && takes_tensors(op) && !op.has(kRandom);
}

/// A fresh tensor that holds x, and a view of it with x's sizes, to which the operator is then applied in
/// place.
struct Target {
  const char *base, *view;          ///< as the printed program makes them from x and base
  Tensor (*make)(const Tensor& x);  ///< the base
  Tensor (*see)(const Tensor& base);
  Tensor (*after)(const Tensor& x, const Tensor& y);  ///< the base once the view holds y
};
constexpr Target kTargets[] = {
    {"clone(x)", "base", [](const Tensor& x) { return clone(x); }, [](const Tensor& b) { return b; },
     [](const Tensor&, const Tensor& y) { return y; }},
    {"clone(transpose(x, 0, -1))", "transpose(base, 0, -1)",
     [](const Tensor& x) { return clone(transpose(x, 0, -1)); },
     [](const Tensor& b) { return transpose(b, 0, -1); },
     [](const Tensor&, const Tensor& y) { return transpose(y, 0, -1); }},
    {"stack({x, x}, 0)", "select(base, 0, 1)",
     [](const Tensor& x) {
       return stack({x, x}, 0);
     },
     [](const Tensor& b) { return select(b, 0, 1); },
     [](const Tensor& x, const Tensor& y) {
       return stack({x, y}, 0);
     }},
    {"stack({x, x, x}, 0)", "select(slice(base, 0, 1, 3), 0, 0)",
     [](const Tensor& x) {
       return stack({x, x, x}, 0);
     },
     [](const Tensor& b) { return select(slice(b, 0, 1, 3), 0, 0); },
     [](const Tensor& x, const Tensor& y) {
       return stack({x, y, x}, 0);
     }},
};

/// Base: of leaves, which lanes and writes are computed from.
enum class Derivative : uint8_t { None, Jvp, Vjp, Base };

/// A drawn write: the program that makes it, and how both programs are transformed.
struct Write {
  const Op* form;
  const Target* target;
  std::vector<Case::Slot> slots;
  Derivative derivative;
  bool lanes;
  Batch xs, directions;  ///< without lanes: size 1, in_dims none
};

Function written(const Case& c, const Write& w) {
  return [&c, w](const Tensors& xs) {
    const Tensor base = w.target->make(xs[0]), view = w.target->see(base);
    Tensors replaced = xs;
    replaced[0] = view;
    call_boxed(*w.form, c.with(w.slots, replaced));
    return Tensors{view, base};
  };
}

Function functional(const Case& c, const Write& w) {
  return [&c, w](const Tensors& xs) {
    const Tensor y = call_boxed(c.op, c.with(w.slots, xs))[0];
    return Tensors{y, w.target->after(xs[0], y)};
  };
}

/// By backward from all results; lanes are mapped further in, so that vmap writes what carries derivatives.
Tensors base_gradients(const Function& f, const Write& w) {
  Tensors leaves, out;
  for (const Tensor& x : w.xs.xs) leaves.push_back(requires_grad(strided_copy(x)));
  backward((w.lanes ? vmap(f, {w.xs.in_dims, {0}, Randomness::Error, w.xs.size}) : f)(leaves),
           w.directions.xs);
  for (const Tensor& leaf : leaves) {
    const Tensor g = grad_of(leaf);
    out.push_back(g.defined() ? g : zeros_like(leaf));
  }
  return out;
}

/// Inputs and directions in a row.
Function transformed(const Function& f, const Write& w) {
  const size_t n = w.xs.xs.size();
  if (w.derivative == Derivative::Base) return [f, w](const Tensors&) { return base_gradients(f, w); };
  const Function inner = [f, n, d = w.derivative](const Tensors& all) {
    const Tensors xs(all.begin(), all.begin() + long(n)), directions(all.begin() + long(n), all.end());
    if (d == Derivative::None) return f(xs);
    return d == Derivative::Jvp ? jvp(f, xs, directions).tangents : vjp(f, xs).pullback(directions);
  };
  if (!w.lanes) return inner;
  InDims dims = w.xs.in_dims;
  dims.insert(dims.end(), w.directions.in_dims.begin(), w.directions.in_dims.end());
  return vmap(inner, {dims, {0}, Randomness::Error, w.xs.size});
}

Batch without_lanes(const Tensors& ts) { return {1, ts, InDims(ts.size(), kNone)}; }

/// Cotangents have their lanes in front, as results have.
void in_base(Write& w) {
  w.derivative = Derivative::Base;
  for (size_t k = 0; k < w.directions.xs.size() && w.lanes; ++k)
    w.directions.xs[k] = moved(w.directions.xs[k], std::exchange(w.directions.in_dims[k], 0), 0);
}

/// False when the in-place form has to refuse: another law's subject.
bool draw_write(Case& c, Write& w) {
  w.form = form_of(c.op, OpForm::InPlace);
  if (c.tensors().empty() || c.tensors()[0].param != 0) return false;
  const Tensor x = c.at(c.tensors()[0]);
  const uint32_t kind = c.draw.below(4);
  w.target = &kTargets[kind == 1 && x.rank() < 2 ? 0 : kind];
  w.lanes = c.draw.flag();
  const bool smooth = is_inexact(x.dtype()) && has_jvp(c.op) && has_vjp(c.op);
  w.derivative = smooth ? Derivative(c.draw.below(3)) : Derivative::None;
  w.slots = w.derivative == Derivative::None ? c.tensors() : c.inexact();
  std::vector<bool> mapped = draw_mapped(c.draw, w.slots.size());
  mapped[0] = true;  // else the lanes' values have no place in the target
  w.xs = w.lanes ? draw_batch(c, w.slots, mapped, 1 + c.draw.below(3)) : without_lanes(c.values(w.slots));
  Tensors likes;
  const Tensors first = w.lanes ? lane(w.xs, 0) : w.xs.xs;
  if (status_of([&] { likes = functional(c, w)(first); }).raised) return false;
  if (likes[0].dtype() != x.dtype() || !std::ranges::equal(likes[0].sizes(), x.sizes())) return false;
  if (w.derivative == Derivative::None) likes.clear();
  if (w.derivative == Derivative::Jvp) likes = first;
  for (Tensor& t : likes) t = c.direction(t);
  w.directions = w.lanes ? draw_batch(c.draw, likes, std::vector<bool>(likes.size(), true), w.xs.size, true)
                         : without_lanes(likes);
  if (w.derivative == Derivative::Vjp && c.draw.below(3) > 0) in_base(w);
  return true;
}

/// What the tensors of the case are called inside `written`.
std::vector<std::string> names_in(const Case& c, const Write& w) {
  std::vector<std::string> out;
  for (size_t k = 0; k < c.tensors().size(); ++k) {
    const Case::Slot& t = c.tensors()[k];
    const auto at = std::ranges::find_if(
        w.slots, [&](const Case::Slot& s) { return s.param == t.param && s.element == t.element; });
    const auto j = size_t(at - w.slots.begin());
    out.push_back(at == w.slots.end() ? format("a{}", k) : j == 0 ? "view" : format("xs[{}]", j));
  }
  return out;
}

/// Calls `written`, transformed: what it gives is `got`.
std::string transformed_text(const Write& w) {
  static constexpr const char* kDerivatives[] = {"written(xs)", "jvp(written, xs, us).tangents",
                                                 "vjp(written, xs).pullback(us)"};
  const auto mapped = [&](const char* f, const InDims& dims) {
    return std::string("vmap(") + f + ", {" + cpp_dims(dims) + ", {0}, Randomness::Error, " +
           std::to_string(w.xs.size) + "})";
  };
  if (w.derivative == Derivative::Base)
    return "  Tensors leaves, got;\n  for (const Tensor& x : xs) leaves.push_back(requires_grad(x));\n"
           "  backward(" +
           (w.lanes ? mapped("written", w.xs.in_dims) : "written") +
           "(leaves), us);\n  for (const Tensor& leaf : leaves) got.push_back(grad_of(leaf));\n";
  const size_t n = w.xs.xs.size();
  std::string out =
      format(
          "  const Function f = [&](const Tensors& all) {\n    const Tensors xs(all.begin(), all.begin() + "
          "{}), us(all.begin() + {}, all.end());\n    return ",
          n, n) +
      kDerivatives[int(w.derivative)] + ";\n  };\n  Tensors all = xs;\n";
  for (size_t k = 0; k < w.directions.xs.size(); ++k) out += format("  all.push_back(u{});\n", k);
  InDims dims = w.xs.in_dims;
  dims.insert(dims.end(), w.directions.in_dims.begin(), w.directions.in_dims.end());
  return out + "  const Tensors got = " + (w.lanes ? mapped("f", dims) : "f") + "(all);\n";
}

std::string write_program(const Case& c, const Write& w, const Tensors& want) {
  std::string out = cpp_setting(c, w.slots, w.xs.xs);
  out += std::string(
             "  const Function written = [&](const Tensors& xs) {\n    const Tensor x = xs[0], base = ") +
         w.target->base + ", view = " + w.target->view + ";\n    " +
         cpp_call(*w.form, c.args, names_in(c, w)) + ";\n    return Tensors{view, base};\n  };\n" +
         cpp_tensors("u", w.directions.xs);
  if (w.derivative == Derivative::Base)
    out += "  const Tensors us" + cpp_names("u", w.directions.xs.size()) + ";\n";
  return out + transformed_text(w) + cpp_tensors("want", want) + "  const Tensors want" +
         cpp_names("want", want.size()) +
         ";\n  for (size_t k = 0; k < want.size(); ++k)\n    std::cout << \"got      \" << str(got[k]) << "
         "\"\\nexpected \" << str(want[k]) << '\\n';\n";
}

Verdict writes_are_functional(Case& c) {
  Write w;
  if (!draw_write(c, w)) return Verdict::discard();
  Tensors all = w.xs.xs;
  all.insert(all.end(), w.directions.xs.begin(), w.directions.xs.end());
  Tensors got, want;
  if (status_of([&] { want = transformed(functional(c, w), w)(all); }).raised) return Verdict::discard();
  const Status s = status_of([&] { got = transformed(written(c, w), w)(all); });
  const bool rounds = w.derivative != Derivative::None || agreement(c.op) == Agreement::Rounding;
  const int depth = int(w.lanes) + int(w.derivative != Derivative::None);
  Finding d = s.raised ? "the functional program raises nothing, the write raises " + str(s) : "";
  const Roundings few{1024, 1, std::max(coarsest(w.xs.xs), coarsest(w.directions.xs))};
  if (d.empty()) d = disagrees(got, want, rounds ? Agreement::Rounding : Agreement::Bitwise, few);
  return d.empty() ? Verdict::pass(depth) : Verdict::fail(d, write_program(c, w, want), depth);
}

/// Whether some result may lie in the memory of an argument: it has the same dtype.
bool has_out_of_own_dtype(const Op& op) {
  return form_of(op, OpForm::Out) && !op.has(kRandom) && some_case(op, {.max_numel = 16}, 16, [](Case& c) {
           Tensors ys;
           if (status_of([&] { ys = call_boxed(c.op, c.args); }).raised) return false;
           return std::ranges::any_of(c.tensors(),
                                      [&](const Case::Slot& s) { return c.at(s).dtype() == ys[0].dtype(); });
         });
}

/// The target is an argument itself: the result is that of the call that leaves it alone, or error overlap
/// and nothing written.
Verdict written_into_argument(Case& c, const Op& form, const Case::Slot& slot) {
  Tensor plain;
  const Tensor x = c.at(slot), target = plain_copy(x);
  Values args = c.with({slot}, {target});
  if (status_of([&] { plain = plain_copy(call_boxed(c.op, args)[0]); }).raised) return Verdict::discard();
  if (plain.dtype() != x.dtype() || !std::ranges::equal(plain.sizes(), x.sizes())) return Verdict::discard();
  args.insert(args.begin(), target);
  const Status s = status_of([&] { call_boxed(form, args); });
  Finding wrong = s.raised && s.code != ErrorCode::Overlap ? str(s) : "";
  if (wrong.empty()) wrong = differs(target, s.raised ? x : plain);
  if (wrong.empty()) return Verdict::pass();
  return Verdict::fail("out is an argument: " + wrong, cpp_declarations(args) + "  // a0 is also argument " +
                                                           std::to_string(slot.param) + "\n  " +
                                                           cpp_call(form, args) + ";\n");
}

/// The target begins some elements behind the beginning of an argument, and before its end.
Verdict overlap_is_refused(Case& c) {
  const Op& form = *form_of(c.op, OpForm::Out);
  if (c.tensors().empty()) return Verdict::discard();
  const Case::Slot slot = c.tensors()[c.draw.below(uint32_t(c.tensors().size()))];
  const Tensor x = c.at(slot);
  if (c.draw.one_in(3)) return written_into_argument(c, form, slot);
  const int64_t shift = 1 + int64_t(c.draw.below(2));
  Tensor plain;
  if (status_of([&] { plain = call_boxed(c.op, c.args)[0]; }).raised) return Verdict::discard();
  if (plain.dtype() != x.dtype() || plain.numel() == 0 || x.numel() <= shift) return Verdict::discard();
  const Tensor memory = zeros({std::max(x.numel(), plain.numel() + shift)}, x.dtype());
  const Tensor from = make_view_unchecked(memory, x.sizes(), contiguous_strides(x.sizes()), 0);
  const Tensor target = make_view_unchecked(memory, plain.sizes(), contiguous_strides(plain.sizes()), shift);
  std::memcpy(from.raw_data(), plain_copy(x).raw_data(), size_t(x.numel()) * size_t(itemsize(x.dtype())));
  Values args = c.with({slot}, {from});
  const Tensor before = plain_copy(memory);
  args.insert(args.begin(), target);
  const Status s = status_of([&] { call_boxed(form, args); });
  Finding wrong = s.raised && s.code == ErrorCode::Overlap ? "" : "expected error overlap, got " + str(s);
  if (wrong.empty()) wrong = differs(memory, before);
  if (wrong.empty()) return Verdict::pass();
  return Verdict::fail(format("out lies {} elements behind an argument: ", shift) + wrong,
                       cpp_declarations(args) + "  // a0 and its argument share memory: offsets " +
                           std::to_string(shift) + " and 0\n  " + cpp_call(form, args) + ";\n");
}

}  // namespace

void add_write_laws(std::vector<Law>& laws) {
  laws.push_back({59,
                  "writes_are_functional",
                  "forms",
                  "A write in place, through views and under transforms, is the functional program.",
                  {.tame = true, .max_numel = 12, .one_large = true},
                  false,
                  has_in_place,
                  writes_are_functional,
                  4});
  laws.push_back(
      {8,
       "overlap_is_refused",
       "forms",
       "out= that shares a part of an argument's memory raises overlap and writes nothing; out= that is "
       "an argument gets the result.",
       {.max_numel = 16, .one_large = true},
       false,
       has_out_of_own_dtype,
       overlap_is_refused});
}

}  // namespace lamella::verify
