// Oracle: pointwise arithmetic, and the parts of complex numbers.
#include "lamella/kernels/reference/pointwise.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels::reference {
namespace {

template <class W>
concept Numeric = !Bool<W>;
template <class W>
concept RealNumeric = Real<W> && Numeric<W>;

/// Towards minus infinity. The caller has made sure that b != 0; the quotient of the lowest value by -1
/// wraps.
template <Integer W> W floor_quotient(W a, W b) {
  if (std::is_signed_v<W> && b == W(-1)) return minus(W(0), a);
  const W quotient = a / b;
  const bool inexact = a % b != 0, negative = (a < 0) != (b < 0);
  return inexact && negative ? quotient - 1 : quotient;
}

template <Integer W> W trunc_quotient(W a, W b) {
  if (std::is_signed_v<W> && b == W(-1)) return minus(W(0), a);
  return a / b;
}

/// Python's a // b: the exact remainder first, so that the quotient is an integer up to one rounding.
template <Floating W> W floor_quotient(W a, W b) {
  if (b == 0) return a / b;
  const W remainder = math::fmod(a, b);
  W quotient = (a - remainder) / b;
  if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
  if (quotient == 0) return math::copysign(W(0), a / b);
  const W below = math::floor(quotient);
  return quotient - below > W(0.5) ? below + 1 : below;
}

template <Floating W> W trunc_quotient(W a, W b) { return math::trunc(a / b); }

void copy(const KernelCall& call) {
  const View &out = call.outs[0], &x = call.ins[0];
  if (out.dtype != call.compute) return unary(call, "copy", [](auto v) { return v; });
  // From the dtype of x at once: in f32, where halves compute, it would be rounded before.
  visit_working(x.dtype, [&]<class W>(type_tag<W>) {
    for (Odometer at(sizes_of(out)); at.more(); at.next())
      store(out, at.offset(out), load<W>(x, at.offset(x), x.dtype));
  });
}

void neg(const KernelCall& call) {
  unary(call, "neg", []<Numeric W>(W x) {
    if constexpr (Integer<W>) return minus(W(0), x);
    else return -x;
  });
}

void abs(const KernelCall& call) {
  unary(call, "abs", []<Numeric W>(W x) {
    if constexpr (Inexact<W>) return math::magnitude(x);
    else return x < 0 ? minus(W(0), x) : x;
  });
}

void relu(const KernelCall& call) {
  unary(call, "relu", []<RealNumeric W>(W x) { return x <= 0 ? W(0) : x; });
}

void sign(const KernelCall& call) {
  unary(call, "sign", []<class W>(W x) {
    if constexpr (Complex<W>) {
      return rounded_once([](auto z) { return z == decltype(z)(0) ? z : z / math::magnitude(z); }, x);
    } else {
      return x > W(0) ? W(1) : x < W(0) ? W(-1) : W(0);
    }
  });
}

void conj(const KernelCall& call) {
  unary(call, "conj", [](auto x) { return conjugate(x); });
}

void square(const KernelCall& call) {
  unary(call, "square", []<Numeric W>(W x) { return times(x, x); });
}

void reciprocal(const KernelCall& call) {
  unary(call, "reciprocal",
        [](Inexact auto x) { return rounded_once([](auto y) { return divide(decltype(y)(1), y); }, x); });
}

void add(const KernelCall& call) {
  binary(call, "add", []<class W>(W a, W b) { return plus(a, b); });
}

void sub(const KernelCall& call) {
  binary(call, "sub", []<Numeric W>(W a, W b) { return minus(a, b); });
}

void mul(const KernelCall& call) {
  binary(call, "mul", []<class W>(W a, W b) { return times(a, b); });
}

void div(const KernelCall& call) {
  binary(call, "div",
         []<Inexact W>(W a, W b) { return rounded_once([](auto x, auto y) { return divide(x, y); }, a, b); });
}

void div_floor(const KernelCall& call) {
  check_divisor(call);
  binary(call, "div_floor", []<RealNumeric W>(W a, W b) { return floor_quotient(a, b); });
}

void div_trunc(const KernelCall& call) {
  check_divisor(call);
  binary(call, "div_trunc", []<RealNumeric W>(W a, W b) { return trunc_quotient(a, b); });
}

void make_complex(const KernelCall& call) {
  binary(call, "make_complex", []<Inexact W>(W re, W im) {
    using R = decltype(real_part(re));
    return std::complex<R>(real_part(re), real_part(im));
  });
}

}  // namespace

Texts arithmetic_texts() {
  // clang-format off
  static constexpr Text kTexts[] = {
      {"copy", copy},
      {"neg", neg},
      {"abs", abs},
      {"relu", relu, Takes::RealNumbers, Result::First},
      {"sign", sign},
      {"conj", conj},
      {"square", square, Takes::Numbers, Result::First},
      {"reciprocal", reciprocal},
      {"add", add},
      {"sub", sub},
      {"mul", mul},
      {"div", div},
      {"div_floor", div_floor},
      {"div_trunc", div_trunc},
      {"make_complex", make_complex},
  };
  // clang-format on
  return kTexts;
}

}  // namespace lamella::kernels::reference
