// The law of ends: numbers at the ends of what a dtype holds, alone and each beside each.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lamella/ops/functions/copy.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/laws/identities.h"
#include "lamella/verify/oracle/oracle.h"

namespace lamella::verify {

namespace {

/// Of each dtype those that it has: zeros (they stand first), ones, a few whole and broken numbers, the
/// smallest and largest, what is not finite, and those at which whole numbers change: halves, what lies just
/// below 1/2, and an odd number of the last bit.
template <class T> std::vector<T> ends_of() {
  if constexpr (is_integer_type<T>) {
    constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
    if constexpr (std::is_unsigned_v<T>) {
      return {0, 1, 2, 3, 7, kMost, kMost - 1, kMost / 2, kMost / 2 + 1};
    } else {
      return {0, 1, 2, 3, 7, kMost, kMost - 1, kMost / 2, kMost / 2 + 1, -1, -2, -3, -7, kLeast, kLeast + 1};
    }
  } else {
    constexpr DType d = dtype_of<T>;
    const double u = unit_roundoff(d);
    std::vector<T> out;
    for (const double v : {0.0, 1.0, 2.0, 3.0, 0.75, 0.5, 1.5, 2.5, 0.5 - u / 2, 0.5 / u + 1,
                           smallest_number(d), 2 / half_range(d), half_range(d), largest_number(d), HUGE_VAL,
                           std::numeric_limits<double>::quiet_NaN()})
      out.push_back(T(v)), out.push_back(T(-v));
    return out;
  }
}

/// Numbers among the arguments, and quotients of two: where an operator may go another way. Of each, what
/// lies an eighth beside it.
std::vector<double> beside_numbers(const Case& c) {
  std::vector<double> numbers, out;
  for (const Value& v : c.args)
    if (const Scalar* s = std::get_if<Scalar>(&v); s && !is_complex(s->kind()))
      numbers.push_back(s->to_double());
  for (const double each : numbers) {
    out.insert(out.end(), {each * 0.875, each * 1.125});
    for (const double by : numbers)
      if (each != by) out.insert(out.end(), {each / by * 0.875, each / by * 1.125});
  }
  return out;
}

/// Those of real numbers in `d`, `more` behind them; nothing for other dtypes.
Tensor ends_in(DType d, const std::vector<double>& more) {
  Tensor out;
  visit_dtype(d, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (is_integer_type<T> || (is_floating_type<T> && sizeof(T) <= 8)) {
      std::vector<T> ends = ends_of<T>();
      if constexpr (is_floating_type<T>)
        for (const double each : more) ends.push_back(T(each));
      out = make_tensor(Dims{int64_t(ends.size())}, d);
      std::ranges::copy(ends, static_cast<T*>(out.raw_data()));
    }
  });
  return out;
}

struct Operands {
  Tensor x, y;
};

/// Each of `a` beside each of `b`, both of full sizes, as `copy` wants them: dense, or one of the two
/// constant along each line.
Operands meeting(const Tensor& a, const Tensor& b, uint32_t layout) {
  const int64_t n = a.numel(), m = b.numel();
  if (layout == 2) return {make_view(a, Dims{m, n}, Dims{0, 1}, 0), make_view(b, Dims{m, n}, Dims{1, 0}, 0)};
  const Tensor x = make_view(a, Dims{n, m}, Dims{1, 0}, 0), y = make_view(b, Dims{n, m}, Dims{0, 1}, 0);
  return layout == 1 ? Operands{x, y} : Operands{plain_copy(x), plain_copy(y)};
}

void give(Case& c, const Tensors& operands) {
  c.args = c.with(c.tensors(), operands);
  c.find_tensors();
}
void give(Case& c, const Operands& m) { give(c, Tensors{m.x, m.y}); }

/// Whether the reference has no result for these numbers: a divisor of 0 among integers.
bool reference_refuses(const Case& c) {
  try {
    reference_forward(c.op, to_reference(c.args));
  } catch (const Error& e) {
    if (e.code() == ErrorCode::Value) return true;
    throw;
  }
  return false;
}

/// Where result and reference are 0 both, the sign is the reference's. Of the greater of two zeros (operators
/// with kinks) it may be either; and where a factor comes first, its product may vanish before it is added:
/// then only what is exactly 0 has a sign to keep.
Finding other_sign_of_zero(const Case& c, const Tensor& got, const Tensor& want) {
  if (!is_inexact(got.dtype()) || c.op.has(kKinks)) return "";
  const int factor = c.op.overflows_in.argument;
  const bool once =
      c.op.promises.once && (factor < 0 || std::get<Scalar>(c.args[size_t(factor)]) == Scalar(1));
  const Reals g = flatten({got}), w = flatten({want});
  for (size_t i = 0; i < g.size(); ++i) {
    const bool both = g[i] == 0 && (once ? rounded_to(w[i], to_real(got.dtype())) == 0 : w[i] == 0);
    const double expected = std::copysign(0.0, double(w[i]));
    if (both && std::signbit(double(g[i])) != std::signbit(expected))
      return format("part {}: got {}, expected {}", i, double(g[i]), expected);
  }
  return "";
}

/// What is promised to be rounded once is the reference rounded: beside a step no condition excuses another
/// one.
Finding not_rounded_once(const Case& c, const Tensor& got, const Tensor& want) {
  if (!c.op.promises.once || !is_inexact(got.dtype()) || got.dtype() != c.at(c.tensors()[0]).dtype())
    return "";
  const Reals g = flatten({got}), w = flatten({want});
  for (size_t i = 0; i < g.size(); ++i) {
    const f128 rounded = rounded_to(w[i], got.dtype());
    if (g[i] != rounded && (g[i] == g[i] || rounded == rounded))
      return format("part {}: got {}, expected {}", i, double(g[i]), double(rounded));
  }
  return "";
}

/// Of the arguments that the case was given.
Verdict unlike_reference(Case& c) {
  const Tensors got = call_boxed(c.op, c.args);
  if (Verdict v = classes_as_reference(c, got); v.kind != Verdict::Pass) return v;
  const Tensor want = reference_forward(c.op, to_reference(c.args))[0];
  Finding wrong = other_sign_of_zero(c, got[0], want);
  if (wrong.empty() && c.tensors().size() == 1) wrong = not_rounded_once(c, got[0], want);
  if (wrong.empty()) return Verdict::pass();
  return Verdict::fail(wrong, cpp_got_want(c, cpp_tensor("w", narrow(want, got[0].dtype())),
                                           "{" + cpp_call(c.op, c.args) + "[0]}", "{w}"));
}

Verdict asked_of(Case& c, const Operands& m) {
  give(c, m);
  if (Verdict v = broken_identity(c.op, m.x, m.y); v.kind == Verdict::Fail) return v;
  return unlike_reference(c);
}

/// Each number alone, dense or with gaps between them.
Verdict one_operand(Case& c, const Tensor& ends, uint32_t layout) {
  const int64_t n = ends.numel(), step = layout + 1;
  const Tensor room = make_tensor(Dims{n * step}, ends.dtype());
  const Tensor x = make_view(room, Dims{n}, Dims{step}, 0);
  fill_(room, 1), copy_(x, ends);
  give(c, Tensors{x});
  return unlike_reference(c);
}

/// The first pair of numbers that fails alone; what they gave together where none does.
Verdict one_pair(Case& c, const Operands& m, const Verdict& together) {
  const Tensor x = plain_copy(m.x), y = plain_copy(m.y);
  const auto alone = [](const Tensor& t, int64_t i) { return plain_copy(make_view(t, Dims{}, Dims{}, i)); };
  for (int64_t i = 0; i < x.numel(); ++i)
    if (Verdict v = asked_of(c, {alone(x, i), alone(y, i)}); v.kind == Verdict::Fail) return v;
  return together;
}

/// Of all pairs that the reference has a result for.
Verdict pairs_obey(Case& c, const Tensor& ends, uint32_t layout) {
  Operands m = meeting(ends, ends, layout);
  give(c, m);
  if (is_integer(ends.dtype()) && reference_refuses(c))
    m = meeting(ends, plain_copy(make_view(ends, Dims{ends.numel() - 1}, Dims{1}, 1)), layout);  // without 0
  const Verdict v = asked_of(c, m);
  return v.kind == Verdict::Fail ? one_pair(c, m, v) : v;
}

Verdict ends_as_reference(Case& c) {
  if (c.tensors().empty() || c.tensors().size() > 2) return Verdict::discard();
  const Tensor ends = ends_in(c.at(c.tensors()[0]).dtype(), beside_numbers(c));
  if (!ends.defined()) return Verdict::discard();
  const uint32_t layout = c.draw.below(3, "layout");
  if (c.tensors().size() == 1) return one_operand(c, ends, layout);
  const int mode = c.op.schema.find("rounding_mode");
  if (mode < 0) return pairs_obey(c, ends, layout);
  for (const Value& each : {Value(), Value(std::string("floor")), Value(std::string("trunc"))}) {
    c.args[size_t(mode)] = each;
    if (Verdict v = pairs_obey(c, ends, layout); v.kind != Verdict::Pass) return v;
  }
  return Verdict::pass();
}

/// Element by element, also a composite whose definition is.
bool has_one_or_two_operands(const Op& op) {
  const size_t n = op.tensor_params.size();
  const bool defined = op.composite && n == 1 && op.kernel.stated.result == StatedTypes::Result::Floating;
  return (op.shape == ShapeClass::Broadcast || defined) && stays_on_device(op) && (n == 1 || n == 2) &&
         !op.has(kRandom) && !op.has(kUnspecified);
}

}  // namespace

void add_end_laws(std::vector<Law>& laws) {
  laws.push_back(
      {175,
       "ends_as_reference",
       "value",
       "Operands that hold the ends of their dtype's range, alone and each beside each, give what the f128 "
       "reference gives, with its zeros' signs, and obey the operator's identities.",
       {.dtypes = kRealTypes, .layouts = false, .max_numel = 4, .mixed = false},
       true,
       has_one_or_two_operands,
       ends_as_reference,
       4});
}

}  // namespace lamella::verify
