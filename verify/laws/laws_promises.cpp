// Laws of what rows promise of their values: see NOTE: [promises].
#include <cmath>
#include <cstring>
#include <quadmath.h>

#include "lamella/ops/functions/view.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/oracle.h"

namespace lamella::verify {

namespace {

bool has_complex(const Case& c) {
  return std::ranges::any_of(c.tensors(), [&](const Case::Slot& s) { return is_complex(c.at(s).dtype()); });
}

/// Whether arguments that are neither tensors nor dims are at their defaults, where they have one.
bool at_defaults(const Case& c, const Values& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const Param& p = c.op.schema.params[i];
    const bool tensor = p.kind == ParamKind::Tensor || p.kind == ParamKind::TensorList;
    if (tensor || !p.has_default || p.role == ParamRole::Dim || p.name == "dtype") continue;
    const Scalar* const number = std::get_if<Scalar>(&args[i]);  // 1.0 is not 1: it multiplies
    if (number ? !(*number == Scalar(1)) : str(args[i]) != str(p.default_value)) return false;
  }
  return true;
}
bool at_defaults(const Case& c) { return at_defaults(c, c.args); }

/// Likewise; flags may be anything: they say which numbers are wanted, not how often they are rounded.
bool rounds_as_promised(const Case& c) {
  Values args = c.args;
  for (size_t i = 0; i < args.size(); ++i)
    if (const Param& p = c.op.schema.params[i]; p.kind == ParamKind::Bool && p.has_default)
      args[i] = p.default_value;
  return at_defaults(c, args);
}

/// f of each element of a dense copy, where f takes its type.
template <class F> Tensor each_of(const Tensor& t, F&& f) {
  const Tensor out = plain_copy(t);
  visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (std::is_invocable_v<F, T&>)
      for (int64_t i = 0; i < out.numel(); ++i) f(static_cast<T*>(out.raw_data())[i]);
  });
  return out;
}

template <class T> struct bits_type { using type = uint64_t; };
template <class T>
requires(sizeof(T) == 4) struct bits_type<T> {
  using type = uint32_t;
};
template <class T>
requires(sizeof(T) == 2) struct bits_type<T> {
  using type = uint16_t;
};

/// -x by its sign bit; integers wrap.
struct Negate {
  template <class T>
  requires(is_floating_type<T> && sizeof(T) <= 8) void operator()(T& x) const {
    using B = typename bits_type<T>::type;
    x = std::bit_cast<T>(B(std::bit_cast<B>(x) ^ B(B{1} << (8 * sizeof(B) - 1))));
  }
  template <class T>
  requires is_integer_type<T>
  void operator()(T& x) const { x = T(0 - uint64_t(x)); }
};

/// `steps` numbers further up, at most infinity; NaN stays.
struct Raise {
  Draw& draw;
  uint64_t steps() const {
    const uint32_t w = draw.word();
    return w % 4 == 0 ? 0 : w % 4 == 3 ? uint64_t{1} << (w / 4 % 12) : 1 + w / 4 % 2;
  }
  template <class T>
  requires(is_floating_type<T> && sizeof(T) <= 8) void operator()(T& x) const {
    using B = typename bits_type<T>::type;
    constexpr int64_t kSign = int64_t(uint64_t{1} << (8 * sizeof(B) - 1));
    const uint64_t bits = std::bit_cast<B>(x);
    const T infinity = T(HUGE_VALF);
    const int64_t top = int64_t(uint64_t(std::bit_cast<B>(infinity))), n = int64_t(steps());
    if (!(x == x)) return;
    const uint64_t magnitude = bits & ~uint64_t(kSign);
    const int64_t place = bits & uint64_t(kSign) ? -int64_t(magnitude) : int64_t(magnitude);
    const int64_t next = place > top - n ? top : place + n;
    x = std::bit_cast<T>(next < 0 ? B(uint64_t(-next) | uint64_t(kSign)) : B(next));
  }
};

std::string with_other(const Case& c, const std::vector<Case::Slot>& slots, const Tensors& others) {
  std::vector<std::string> names = cpp_names(c, c.tensors());
  for (size_t k = 0; k < c.tensors().size(); ++k)
    for (size_t s = 0; s < slots.size(); ++s)
      if (slots[s].param == c.tensors()[k].param && slots[s].element == c.tensors()[k].element)
        names[k] = "b" + std::to_string(s);
  return cpp_declarations(c.args) + cpp_tensors("b", others) +
         "  const Tensors y = " + cpp_call(c.op, c.args) +
         ",\n                z = " + cpp_call(c.op, c.args, names) +
         ";\n  for (size_t k = 0; k < y.size(); ++k) std::cout << str(y[k]) << '\\n' << str(z[k]) << "
         "'\\n';\n";
}

/// Real parts of any result, integers too.
Reals numbers(const Tensor& t) {
  if (is_inexact(t.dtype())) return flatten({t});
  Reals out;
  for (const double v : t.to_vector()) out.push_back(v);
  return out;
}

/// An element of a result whose sign is not that of the tensor that the row names; infinity - infinity is
/// NaN.
Finding wrong_sign(const Op& op, const Values& args, const Tensor& y) {
  const std::string_view name = op.promises.sign_of;
  if (name.empty()) return {};
  const Tensor& given = std::get<Tensor>(args[size_t(op.schema.find(name))]);
  const Reals got = numbers(y), of = numbers(strided_copy(expand(given, y.sizes())));
  for (size_t k = 0; k < got.size(); ++k)
    if (got[k] == got[k] && got[k] != 0 && signbitq(got[k]) != signbitq(of[k]))
      return format("element {}: got {}, promised the sign of {}, {}", k, double(got[k]), name,
                    double(of[k]));
  return {};
}

Verdict ranges_are_kept(Case& c) {
  if (has_complex(c)) return Verdict::discard();
  Values args = c.args;
  for (size_t i = 0; c.op.has(kRandom) && i < args.size(); ++i)
    if (c.op.schema.params[i].role == ParamRole::Size) {  // enough of them to come close to an end
      int64_t streams = 1;
      for (const Case::Slot& s : c.tensors()) streams *= std::max<int64_t>(c.at(s).numel(), 1);
      args[i] = Dims{std::max<int64_t>(4096 / streams, 1)};
    }
  const Promises::Range& r = c.op.promises.range;
  for (const Tensor& y : call_boxed(c.op, args)) {
    const std::string program =
        cpp_declarations(args) + "  std::cout << str(" + cpp_call(c.op, args) + "[0]);\n";
    if (const Finding wrong = wrong_sign(c.op, args, y); !wrong.empty()) return Verdict::fail(wrong, program);
    if (!is_floating(y.dtype())) continue;
    const Reals v = flatten({y});
    for (size_t k = 0; k < v.size(); ++k) {
      if (v[k] != v[k]) continue;
      if (v[k] > r.low && v[k] < r.high) continue;
      if ((v[k] == r.low && !r.low_open) || (v[k] == r.high && !r.high_open)) continue;
      return Verdict::fail(format("element {}: got {}, promised {}{}, {}{}", k, double(v[k]),
                                  r.low_open ? "(" : "[", r.low, r.high, r.high_open ? ")" : "]"),
                           program);
    }
  }
  return Verdict::pass();
}

/// The exact results, rounded; complex ones part by part.
Tensor rounded_parts(const Tensor& wide, DType d) {
  const Tensor out = plain_copy(wide);
  f128* const v = static_cast<f128*>(out.raw_data());
  for (size_t i = 0; i < part_count(out); ++i) v[i] = rounded_to(v[i], to_real(d));
  return narrow(out, d);
}

/// Integers that the dtype of a result holds: an operator on floating numbers converts the others first.
bool holds_integers(const Case& c, DType result) {
  for (const Case::Slot& s : c.tensors())
    if (is_integer(c.at(s).dtype()))
      for (const f128 v : numbers(c.at(s)))
        if (rounded_to(v, result) != v) return false;
  return true;
}

Verdict rounded_once(Case& c) {
  if (!rounds_as_promised(c) || (has_complex(c) && !c.op.has(kLinear) && !c.op.is_view()))
    return Verdict::discard();
  const Tensors got = call_boxed(c.op, c.args), want = reference_forward(c.op, to_reference(c.args));
  // Of zeros of both signs a reduction may choose either.
  const bool signed_zero = c.op.shape != ShapeClass::Reduce && !has_complex(c);
  for (size_t k = 0; k < got.size(); ++k) {
    const DType d = got[k].dtype();
    if (is_floating(d) && !c.op.has(kLinear) && !holds_integers(c, d)) return Verdict::discard();
    const Tensor once =
        is_inexact(d) && is_inexact(want[k].dtype()) ? rounded_parts(want[k], d) : narrow(want[k], d);
    if (const Finding wrong = differs(got[k], once, signed_zero); !wrong.empty())
      return Verdict::fail(
          wrong, cpp_got_want(c, cpp_tensor("w", once),
                              "{" + cpp_call(c.op, c.args) + "[" + std::to_string(k) + "]}", "{w}"));
  }
  return Verdict::pass();
}

Verdict odd_and_even(Case& c) {
  if (has_complex(c) || !at_defaults(c) || c.tensors().size() != 1) return Verdict::discard();
  const Tensor x = c.at(c.tensors()[0]), mirrored = each_of(x, Negate{});
  if (is_bool(x.dtype()) || (is_integer(x.dtype()) && !is_signed_integer(x.dtype())))
    return Verdict::discard();
  const Tensor y = call_boxed(c.op, c.args)[0], other = call_boxed(c.op, c.with(c.tensors(), {mirrored}))[0];
  const Finding wrong = differs(other, c.op.promises.odd ? each_of(y, Negate{}) : y);
  if (wrong.empty()) return Verdict::pass();
  return Verdict::fail("of -x: " + wrong, with_other(c, c.tensors(), {mirrored}));
}

Verdict order_carries_over(Case& c) {
  if (has_complex(c) || !at_defaults(c) || c.tensors().empty()) return Verdict::discard();
  const Case::Slot slot = c.tensors()[c.draw.below(uint32_t(c.tensors().size()))];
  for (const Case::Slot& s : c.tensors())  // integers wrap
    if (is_integer(c.at(s).dtype()) || is_bool(c.at(slot).dtype())) return Verdict::discard();
  const Tensor greater = each_of(c.at(slot), Raise{c.draw});
  const Tensors y = call_boxed(c.op, c.args), z = call_boxed(c.op, c.with({slot}, {greater}));
  for (size_t k = 0; k < y.size(); ++k) {
    if (!is_inexact(y[k].dtype()) && k > 0) continue;  // positions beside the values
    const Reals before = numbers(y[k]), after = numbers(z[k]);
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i] != before[i] || after[i] != after[i]) continue;
      if (c.op.promises.rising ? after[i] >= before[i] : after[i] <= before[i]) continue;
      return Verdict::fail(
          format("element {}: {}, and {} of a greater number", i, double(before[i]), double(after[i])),
          with_other(c, {slot}, {greater}));
    }
  }
  return Verdict::pass();
}

Verdict operands_commute(Case& c) {
  if (!at_defaults(c) || c.tensors().size() != 2) return Verdict::discard();
  const Case::Slot a = c.tensors()[0], b = c.tensors()[1];
  const Tensor got = call_boxed(c.op, c.with({a, b}, {c.at(b), c.at(a)}))[0],
               want = call_boxed(c.op, c.args)[0];
  const bool equal_zeros = is_complex(want.dtype()) || c.op.has(kKinks);  // one zero of two may be either
  const Finding wrong = differs(got, want, !equal_zeros);
  if (wrong.empty()) return Verdict::pass();
  return Verdict::fail("operands exchanged: " + wrong, with_other(c, {a, b}, {c.at(b), c.at(a)}));
}

Verdict numbers_are_whole(Case& c) {
  if (has_complex(c)) return Verdict::discard();
  const std::string_view when = c.op.promises.whole;
  if (when != "always" && is_none(c.args[size_t(c.op.schema.find(when))])) return Verdict::discard();
  for (const Tensor& y : call_boxed(c.op, c.args)) {
    const Reals v = numbers(y);
    for (size_t i = 0; i < v.size(); ++i)
      if (v[i] - v[i] == 0 && v[i] != truncq(v[i]))
        return Verdict::fail(
            format("element {}: got {}, promised a whole number", i, double(v[i])),
            cpp_declarations(c.args) + "  std::cout << str(" + cpp_call(c.op, c.args) + "[0]);\n");
  }
  return Verdict::pass();
}

/// Or a sign, which is a range as well.
bool has_range(const Op& op) {
  const Promises::Range& r = op.promises.range;
  return std::isfinite(r.low) || std::isfinite(r.high) || !op.promises.sign_of.empty();
}
/// Of random ones law 1 asks: the reference draws in their dtype.
bool is_once(const Op& op) { return op.promises.once && stays_on_device(op) && !op.has(kRandom); }
bool mirrors(const Op& op) { return op.promises.odd || op.promises.even; }
bool is_monotonic(const Op& op) { return op.promises.rising || op.promises.falling; }
bool commutes(const Op& op) { return op.promises.symmetric; }
bool is_whole(const Op& op) { return !op.promises.whole.empty(); }

constexpr DrawOptions kWholeRange{.mixed = false, .nonfinite = true, .ends = true};
constexpr DrawOptions kMixed{.nonfinite = true, .ends = true};

}  // namespace

void add_promise_laws(std::vector<Law>& laws) {
  laws.push_back(
      {99, "ranges_are_kept", "value",
       "Results lie within the range that the row promises, open ends left out, in every dtype, and "
       "have the sign of the argument that it names.",
       kWholeRange, false, has_range, ranges_are_kept});
  laws.push_back(
      {100, "rounded_once", "value",
       "What a row promises to round once, or not at all, is the f128 reference rounded once, bit by bit.",
       kWholeRange, true, is_once, rounded_once});
  laws.push_back(
      {101, "odd_and_even", "value",
       "f(-x) is -f(x) bit by bit where the row promises an odd function, and f(x) for an even one.",
       kWholeRange, false, mirrors, odd_and_even});
  laws.push_back(
      {102, "order_carries_over", "value",
       "The next number up gives no smaller result where the row promises a rising function, and no greater "
       "one for a falling one.",
       kWholeRange, false, is_monotonic, order_carries_over});
  laws.push_back(
      {103, "operands_commute", "value",
       "Two operands exchanged give the same bits and dtype where the row promises a symmetric function.",
       kMixed, false, commutes, operands_commute});
  laws.push_back({104, "numbers_are_whole", "value",
                  "Finite results are whole numbers where the row promises them.", kWholeRange, false,
                  is_whole, numbers_are_whole});
}

}  // namespace lamella::verify
