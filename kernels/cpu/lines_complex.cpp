// Pointwise lines of c64 and c128. Compiled as scalar and as tiny.
#include "lamella/kernels/cpu/bodies.h"

namespace lamella::kernels::LAMELLA_BACKEND {
namespace {

template <class T> using part = typename T::value_type;

// Elementary functions of c64 run in c128 and round once. The power of c128 runs in x87's 80 bits: exp(y log
// x) multiplies the error of log by the size of its argument.
using c80 = std::complex<long double>;
template <class T> c128 wide(T x) { return {x.real(), x.imag()}; }
template <class T, class W> T narrow(W x) { return T(part<T>(x.real()), part<T>(x.imag())); }

template <class T> struct CNeg {
  T operator()(T x) const { return -x; }
};
template <class T> struct CExp {
  T operator()(T x) const { return narrow<T>(std::exp(wide(x))); }
};
template <class T> struct CLog {
  T operator()(T x) const { return narrow<T>(std::log(wide(x))); }
};
template <class T> struct CSin {
  T operator()(T x) const { return narrow<T>(std::sin(wide(x))); }
};
template <class T> struct CCos {
  T operator()(T x) const { return narrow<T>(std::cos(wide(x))); }
};
template <class T> struct CTanh {
  T operator()(T x) const { return narrow<T>(std::tanh(wide(x))); }
};
template <class T> struct CSqrt {
  T operator()(T x) const { return narrow<T>(std::sqrt(wide(x))); }
};
template <class T> struct CAbs {
  part<T> operator()(T x) const { return part<T>(std::abs(wide(x))); }
};
template <class T> struct CConj {
  T operator()(T x) const { return std::conj(x); }
};
template <class T> struct CIsNan {
  bool operator()(T x) const { return x.real() != x.real() || x.imag() != x.imag(); }
};
template <class T> struct CSign {
  T operator()(T x) const {
    if (x == T(0)) return T(0);
    const long double size = std::hypot((long double)(x.real()), (long double)(x.imag()));
    return T(part<T>(x.real() / size), part<T>(x.imag() / size));
  }
};

template <class T> struct CAdd {
  T operator()(T a, T b) const { return a + b; }
};
template <class T> struct CSub {
  T operator()(T a, T b) const { return a - b; }
};
// Plain, as PyTorch's: std::complex would look for infinities in every product.
template <class T> struct CMul {
  T operator()(T a, T b) const {
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  }
};
// Smith's quotient (Algorithm 116, CACM 5, 1962), one precision up: both sides divided by the larger part of
// b.
template <class T> struct CDiv {
  T operator()(T a, T b) const {
    using W = long double;
    const W re = a.real(), im = a.imag(), c = b.real(), d = b.imag();
    if (c == 0 && d == 0) return T(part<T>(re / std::fabs(c)), part<T>(im / std::fabs(d)));
    const bool by_real = std::fabs(c) >= std::fabs(d);
    const W ratio = by_real ? d / c : c / d, scale = by_real ? c + d * ratio : c * ratio + d;
    if (by_real) return T(part<T>((re + im * ratio) / scale), part<T>((im - re * ratio) / scale));
    return T(part<T>((re * ratio + im) / scale), part<T>((im * ratio - re) / scale));
  }
};
template <class T> struct CReciprocal {
  T operator()(T x) const { return CDiv<T>{}(T(1), x); }
};
// x^0 is 1 and 0^y is 0 for Re y > 0, where exp(y log x) would say NaN.
template <class T> struct CPow {
  T operator()(T a, T b) const {
    if (b == T(0)) return T(1);
    if (a == T(0) && b.real() > 0) return T(0);
    return narrow<T>(std::pow(c80(a.real(), a.imag()), c80(b.real(), b.imag())));
  }
};

// The inputs are the two parts: the one complex body over a real type.
template <class R> void make_complex_line(void* out, const void* const* ins, int64_t n) {
  std::complex<R>* o = static_cast<std::complex<R>*>(out);
  const R* re = static_cast<const R*>(ins[0]);
  const R* im = static_cast<const R*>(ins[1]);
  for (int64_t i = 0; i < n; ++i) o[i] = {re[i], im[i]};
}

template <class T> LineFn complex_line(Op op) {
  switch (op) {
    case Op::copy: return unary_line<T, Copy>;
    case Op::neg: return unary_line<T, CNeg>;
    case Op::exp: return unary_line<T, CExp>;
    case Op::log: return unary_line<T, CLog>;
    case Op::sin: return unary_line<T, CSin>;
    case Op::cos: return unary_line<T, CCos>;
    case Op::tanh: return unary_line<T, CTanh>;
    case Op::sqrt: return unary_line<T, CSqrt>;
    case Op::abs: return unary_line<T, CAbs>;
    case Op::sign: return unary_line<T, CSign>;
    case Op::conj: return unary_line<T, CConj>;
    case Op::logical_not: return unary_line<T, LogicalNot>;
    case Op::isnan: return unary_line<T, CIsNan>;
    case Op::reciprocal: return unary_line<T, CReciprocal>;
    case Op::add: return binary_line<T, CAdd>;
    case Op::sub: return binary_line<T, CSub>;
    case Op::mul: return binary_line<T, CMul>;
    case Op::div: return binary_line<T, CDiv>;
    case Op::pow: return binary_line<T, CPow>;
    case Op::eq: return binary_line<T, Eq>;
    case Op::ne: return binary_line<T, Ne>;
    case Op::logical_and: return binary_line<T, LogicalAnd>;
    case Op::logical_or: return binary_line<T, LogicalOr>;
    case Op::where: return where_line<T>;
    case Op::make_complex: return make_complex_line<part<T>>;
    default: return nullptr;
  }
}

}  // namespace

LineFn find_complex_line(Op op, DType dtype) {
  return dtype == DType::C64 ? complex_line<c64>(op) : complex_line<c128>(op);
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
