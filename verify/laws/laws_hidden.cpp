// The law of hidden elements: what a choice leaves out does not show, however singular it is there.
#include <algorithm>
#include <iterator>
#include <limits>

#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/real_function.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

constexpr double kHuge = std::numeric_limits<double>::max();
constexpr double kSingular[] = {
    0, double(kInfinity), -double(kInfinity), -1, kHuge, std::numeric_limits<double>::quiet_NaN()};

bool has_sizes(const Tensor& t, const Tensor& like) { return std::ranges::equal(t.sizes(), like.sizes()); }

/// A choice between the operator's result and another tensor, of which some elements are hidden.
struct Choice {
  Tensor takes;          ///< bool: the operator's element is taken
  Tensors clean, dirty;  /// arguments and the other tensor; `dirty`: singular where nothing is taken
  bool flipped = false;  /// the operator's result is `where`'s last argument
  Function of(const Function& f) const {
    return [f, takes = takes, flipped = flipped](const Tensors& xs) {
      const Tensor y = f(Tensors(xs.begin(), std::prev(xs.end())))[0];
      return Tensors{flipped ? where(logical_not(takes), xs.back(), y) : where(takes, y, xs.back())};
    };
  }
};

/// Each hidden element of `x` is made one of those where slopes are infinite or values NaN.
Tensor spoiled(Draw& d, const Tensor& x, const std::vector<bool>& takes) {
  const Tensor out = plain_copy(x);
  Reals parts = flatten({x});
  const size_t width = is_complex(x.dtype()) ? 2 : 1;
  for (size_t i = 0; i < takes.size(); ++i)
    if (!takes[i])
      for (size_t k = 0; k < width; ++k) parts[i * width + k] = kSingular[d.below(std::size(kSingular))];
  write_parts(out, parts.data());
  return out;
}

/// Nothing when no argument has the result's sizes, or no element is hidden.
bool draw_choice(Case& c, const Subject& s, Choice& out) {
  const Tensor& y = s.ys[0];
  std::vector<bool> takes(size_t(y.numel()));
  for (size_t i = 0; i < takes.size(); ++i) takes[i] = c.draw.below(2);
  out.flipped = c.draw.below(2);
  if (std::ranges::count(takes, false) == 0) return false;
  out.takes = make_tensor(y.sizes(), DType::Bool, y.device());
  std::ranges::copy(takes, static_cast<bool*>(out.takes.raw_data()));
  bool any = false;
  for (const Tensor& x : s.xs) {
    out.clean.push_back(x);
    out.dirty.push_back(has_sizes(x, y) ? spoiled(c.draw, x, takes) : x);
    any |= has_sizes(x, y);
  }
  const Tensor other = c.direction(y);
  out.clean.push_back(other), out.dirty.push_back(other);
  return any;
}

/// A way to look at a function: tensors that must not depend on what is hidden, and its text in C++.
struct Look {
  std::string_view name, text;
  int depth;
  bool forward;
  Tensors (*at)(const Function& h, const Tensors& xs, const Tensors& ts, const Tensors& us);
};
constexpr Look kLooks[] = {
    {"value", "h(X)", 0, false,
     [](const Function& h, const Tensors& xs, const Tensors&, const Tensors&) { return h(xs); }},
    {"tangent", "jvp(h, X, ts).tangents", 1, true,
     [](const Function& h, const Tensors& xs, const Tensors& ts, const Tensors&) {
       return jvp(h, xs, ts).tangents;
     }},
    {"cotangent", "vjp(h, X).pullback(us)", 1, false,
     [](const Function& h, const Tensors& xs, const Tensors&, const Tensors& us) {
       return vjp(h, xs).pullback(us);
     }},
    {"tangent of the cotangent",
     "jvp([&](const Tensors& xs) { return vjp(h, xs).pullback(us); }, X, ts).tangents", 2, true,
     [](const Function& h, const Tensors& xs, const Tensors& ts, const Tensors& us) {
       return jvp([&](const Tensors& at) { return vjp(h, at).pullback(us); }, xs, ts).tangents;
     }},
    {"cotangent of the cotangent",
     "vjp([&](const Tensors& xs) { return vjp(h, xs).pullback(us); }, X).pullback(ts)", 2, false,
     [](const Function& h, const Tensors& xs, const Tensors& ts, const Tensors& us) {
       return vjp([&](const Tensors& at) { return vjp(h, at).pullback(us); }, xs).pullback(ts);
     }},
};

std::string with_arguments(std::string_view text, std::string_view name) {
  std::string out(text);
  return out.replace(out.find('X'), 1, name);
}

std::string choice_program(const Case& c, const Subject& s, const Choice& choice, const Tensors& ts,
                           const Tensors& us, const Look& look) {
  const std::string y = "f(Tensors(xs.begin(), std::prev(xs.end())))[0]";
  const std::string taken =
      choice.flipped ? "where(logical_not(m), xs.back(), " + y + ")" : "where(m, " + y + ", xs.back())";
  return cpp_got_want(
      c,
      cpp_tensors("x", choice.clean) + cpp_tensors("z", choice.dirty) + cpp_tensors("t", ts) +
          cpp_tensors("u", us) + cpp_tensor("m", choice.takes) + "  const Tensors xs_clean = " +
          cpp_names("x", choice.clean.size()) + ", xs_dirty = " + cpp_names("z", choice.dirty.size()) +
          ",\n                ts = " + cpp_names("t", ts.size()) + ", us = " + cpp_names("u", us.size()) +
          ";\n  const Function f = " + cpp_function(c, s.slots, true) +
          ";\n  const Function h = [&](const Tensors& xs) { return Tensors{" + taken + "}; };\n",
      with_arguments(look.text, "xs_dirty"), with_arguments(look.text, "xs_clean"));
}

/// where(m, op(x), y) where op is singular at what m leaves out: all is as with harmless elements there.
Verdict hidden_by_where(Case& c, const Subject& s) {
  Choice choice;
  if (!draw_choice(c, s, choice)) return Verdict::discard();
  const Function h = choice.of(s.f);
  const Tensors ts = directions(c, choice.clean), us = directions(c, s.ys);
  for (const Look& look : kLooks) {
    if (look.forward && !has_jvp(c.op)) continue;
    const Tensors want = look.at(h, choice.clean, ts, us);
    if (!finite(want)) return Verdict::discard();
    const Tensors got = look.at(h, choice.dirty, ts, us);
    for (size_t k = 0; k < got.size(); ++k) {
      const Finding d = differs(got[k], want[k], false);
      if (!d.empty())
        return Verdict::fail(format("the {} shows what `where` hides: ", look.name) + d,
                             choice_program(c, s, choice, ts, us, look), look.depth);
    }
  }
  return Verdict::pass(2);
}

/// An operator that chooses, with sqrt(z) added to an argument, at z = 0: the slope of z is infinite where
/// the argument counts, and 0 where it does not.
Verdict hidden_by_operator(Case& c, const Subject& s) {
  std::vector<size_t> whole;
  for (size_t k = 0; k < s.xs.size(); ++k)
    if (has_sizes(s.xs[k], s.ys[0])) whole.push_back(k);
  if (whole.empty()) return Verdict::discard();
  const size_t at = whole[c.draw.below(uint32_t(whole.size()))];
  const Tensor z = make_tensor(s.ys[0].sizes(), to_real(s.xs[at].dtype()), s.ys[0].device());
  const Reals none(size_t(z.numel()), 0);
  write_parts(z, none.data());
  const Tensor ones = ones_like(s.ys[0]);
  const Tensor share = real(vjp(s.f, s.xs).pullback({ones})[at]);
  const Function h = [&](const Tensors& zs) {
    Tensors xs = s.xs;
    xs[at] = add(xs[at], sqrt(zs[0]));
    return s.f(xs);
  };
  const Tensor got = vjp(h, {z}).pullback({ones})[0];
  Reals want = flatten({share});
  for (f128& v : want) v = v == 0 ? 0 : v < 0 ? -kInfinity : kInfinity;
  size_t from = 0;
  const Tensor expected = narrow(unflatten(want, from, z), z.dtype());
  const Finding d = differs(got, expected, false);
  if (d.empty()) return Verdict::pass(1);
  const std::string name = cpp_names(c, s.slots)[at];
  std::vector<std::string> names = cpp_names(c, s.slots);
  names[at] = "add(" + name + ", sqrt(zs[0]))";
  const std::string program = cpp_got_want(
      c,
      cpp_tensor("z", z) + cpp_tensor("o", ones) + cpp_tensor("w", expected) +
          "  const Function f = " + cpp_function(c, s.slots, true) +
          ";\n  const Function h = [&](const Tensors& zs) { return f(" + cpp_list(names) + "); };\n",
      "vjp(h, {z}).pullback({o})", "{w}");
  return Verdict::fail(format("sqrt(z) added to argument {} at z = 0: ", at) + d, program, 1);
}

/// What a choice hides along one path counts along another: of h, where(m, y, o) and a list with y in it.
struct TwoPaths {
  const Choice& choice;
  const Subject& s;
  bool list_first;  ///< the nodes of one path are made before the other's, and run after them
  Tensors results(const Tensors& xs, bool chosen, bool listed) const {
    const Tensor y = s.f(xs)[0], &other = choice.clean.back();
    Tensors out;
    const auto choose = [&] {
      if (chosen)
        out.push_back(choice.flipped ? where(logical_not(choice.takes), other, y)
                                     : where(choice.takes, y, other));
    };
    if (!list_first) choose();
    if (listed) out.push_back(cat(Tensors{y, other}, 0));
    if (list_first) choose();
    return out;
  }
  Tensors pulled(bool chosen, bool listed, const Tensors& us) const {
    return vjp([&](const Tensors& xs) { return results(xs, chosen, listed); }, s.xs).pullback(us);
  }
};

/// Both paths at once give the sum of what each gives alone. The list's cotangent is 0 where the choice takes
/// the operator's result, so that one of the summands is 0 at each element: the sum is exact.
Verdict hidden_on_one_path(Case& c, const Subject& s) {
  Choice choice;
  if (s.ys[0].rank() == 0 || !draw_choice(c, s, choice)) return Verdict::discard();
  const TwoPaths paths{choice, s, c.draw.flag()};
  const Tensor u = c.direction(s.ys[0]), v = c.direction(s.ys[0]), none = zeros_like(v);
  const Tensor to_list = cat(Tensors{where(choice.takes, none, v), none}, 0);
  const Tensors alone = paths.pulled(true, false, {u}), listed = paths.pulled(false, true, {to_list});
  if (!finite(alone) || !finite(listed)) return Verdict::discard();
  const Tensors got = paths.pulled(true, true, paths.list_first ? Tensors{to_list, u} : Tensors{u, to_list});
  for (size_t k = 0; k < got.size(); ++k) {
    if (!has_sizes(s.xs[k], s.ys[0])) continue;  // a sum of many: in another order
    const Finding d = differs(got[k], add(alone[k], listed[k]), false);
    if (d.empty()) continue;
    const std::string taken = choice.flipped ? "where(logical_not(m), o, y)" : "where(m, y, o)";
    const std::string both =
        paths.list_first ? "cat(Tensors{y, o}, 0), " + taken : taken + ", cat(Tensors{y, o}, 0)";
    const std::string program = cpp_got_want(
        c,
        cpp_tensors("x", s.xs) + cpp_tensor("o", choice.clean.back()) + cpp_tensor("m", choice.takes) +
            cpp_tensor("u", u) + cpp_tensor("v", to_list) + cpp_tensor("w", add(alone[k], listed[k])) +
            "  const Function f = " + cpp_function(c, s.slots, true) +
            ";\n  const Function h = [&](const Tensors& xs) {\n    const Tensor y = f(xs)[0];\n    return "
            "Tensors{" +
            both + "};\n  };\n",
        format("{vjp(h, {}).pullback({})[{}]}", cpp_names("x", s.xs.size()),
               paths.list_first ? "{v, u}" : "{u, v}", k),
        "{w}");
    return Verdict::fail(format("what `where` hides is hidden from a list, too, in argument {}: ", k) + d,
                         program, 1);
  }
  return Verdict::pass(1);
}

/// These whatever their rows say, and others, of plug-ins too, whose rows say so.
bool chooses(const Op& op) {
  static constexpr std::string_view kChoose[] = {"where", "clamp", "maximum", "minimum", "relu"};
  return std::ranges::find(kChoose, op.name) != std::end(kChoose) ||
         std::ranges::any_of(op.vjp, [](const BoundFormula& f) { return f.hidden != nullptr; });
}

Verdict hidden_is_silent(Case& c) {
  Subject s;
  if (!prepare(c, s) || s.ys.size() != 1 || s.ys[0].numel() == 0) return Verdict::discard();
  if (c.draw.one_in(3)) return hidden_on_one_path(c, s);
  if (chooses(*c.op.base) && c.draw.below(2)) return hidden_by_operator(c, s);
  return hidden_by_where(c, s);
}

bool pointwise_with_vjp(const Op& op) {
  return op.shape == ShapeClass::Broadcast && has_vjp(op) && !op.vjp.empty() && stays_on_device(op);
}

}  // namespace

void add_hidden_laws(std::vector<Law>& laws) {
  laws.push_back({31,
                  "hidden_is_silent",
                  "derivative",
                  "Elements that `where`, `clamp`, `maximum` or `minimum` leave out show in no derivative of "
                  "first or second order, though a pointwise operator is singular there; where another path "
                  "takes them, they count.",
                  {.dtypes = kWideTypes, .max_numel = 6, .max_exponent = 20, .one_large = true},
                  false,
                  pointwise_with_vjp,
                  hidden_is_silent,
                  2});
}

}  // namespace lamella::verify
