// Pointwise lines of the dtypes without a SIMD text: bool, the other integers, 16-byte moves; and folds of
// all of them. Compiled as scalar and as tiny.
#include "lamella/core/rng.h"
#include "lamella/kernels/cpu/line_switch.h"

namespace lamella::kernels::LAMELLA_BACKEND {
namespace {

template <class T> LineFn int_line(Op op) {
  if (op == Op::pow) return binary_line<T, Pow>;
  if (op == Op::where) return where_line<T>;
  return common_line<T>(op);
}

template <class T> struct Both {
  T operator()(T a, T b) const { return a && b; }
};
template <class T> struct Either {
  T operator()(T a, T b) const { return a || b; }
};
template <class T> struct Never {
  T operator()(T) const { return false; }
};

LineFn bool_line(Op op) {
  switch (op) {
    case Op::add:
    case Op::maximum:
    case Op::logical_or: return binary_line<bool, Either>;
    case Op::mul:
    case Op::minimum:
    case Op::logical_and: return binary_line<bool, Both>;
    case Op::copy:
    case Op::sign:
    case Op::conj: return unary_line<bool, Copy>;
    case Op::isnan: return unary_line<bool, Never>;
    case Op::logical_not: return unary_line<bool, LogicalNot>;
    case Op::eq: return binary_line<bool, Eq>;
    case Op::ne: return binary_line<bool, Ne>;
    case Op::lt: return binary_line<bool, Lt>;
    case Op::le: return binary_line<bool, Le>;
    case Op::gt: return binary_line<bool, Gt>;
    case Op::ge: return binary_line<bool, Ge>;
    default: return nullptr;
  }
}

template <class T> struct FoldIn {
  T operator()(T key, T data) const { return lamella::fold_in(key, data); }
};

template <class T, template <class> class F> void fold_line(void* out, const void* in, int64_t n) {
  const T* a = static_cast<const T*>(in);
  T r = a[0];
  for (int64_t i = 1; i < n; ++i) r = F<T>{}(r, a[i]);
  *static_cast<T*>(out) = r;
}

template <class T> FoldFn int_fold(Op op) {
  switch (op) {
    case Op::add: return fold_line<T, Add>;
    case Op::mul: return fold_line<T, Mul>;
    case Op::maximum: return fold_line<T, Maximum>;
    case Op::minimum: return fold_line<T, Minimum>;
    default: return nullptr;
  }
}

FoldFn bool_fold(Op op) {
  return op == Op::add || op == Op::maximum ? fold_line<bool, Either> : fold_line<bool, Both>;
}

// Eight sums side by side of at most four terms each, then pairwise: many equal terms round the same way, and
// a long row of them would drift by half a roundoff a term.
template <class T> T complex_sum(const T* a, int64_t n) {
  constexpr int64_t kWidth = kHere.complex_fold, kBlock = kHere.complex_block;
  if (n <= kWidth) {
    T r = a[0];
    for (int64_t i = 1; i < n; ++i) r += a[i];
    return r;
  }
  if (n <= kBlock) {
    T acc[kWidth];
    for (int64_t j = 0; j < kWidth; ++j) acc[j] = a[j];
    for (int64_t i = kWidth; i < n; ++i) acc[i % kWidth] += a[i];
    for (int64_t w = 1; w < kWidth; w *= 2) {
      for (int64_t j = 0; j < kWidth; j += 2 * w) acc[j] += acc[j + w];
    }
    return acc[0];
  }
  int64_t half = kBlock;
  while (half * 2 < n) half *= 2;
  return complex_sum(a, half) + complex_sum(a + half, n - half);
}

template <class T> void complex_sum_line(void* out, const void* in, int64_t n) {
  *static_cast<T*>(out) = complex_sum(static_cast<const T*>(in), n);
}

// Plain, as PyTorch's: std::complex would look for infinities in every product.
template <class T> struct ComplexMul {
  T operator()(T a, T b) const {
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  }
};

template <class T> FoldFn complex_fold(Op op) {
  return op == Op::add ? complex_sum_line<T> : op == Op::mul ? fold_line<T, ComplexMul> : nullptr;
}

}  // namespace

LineFn find_small_line(Op op, DType dtype) {
  if (op == Op::fold_in) return dtype == DType::U64 ? binary_line<uint64_t, FoldIn> : nullptr;
  switch (dtype) {
    case DType::Bool: return bool_line(op);
    case DType::U8: return int_line<uint8_t>(op);
    case DType::U16: return int_line<uint16_t>(op);
    case DType::U32: return int_line<uint32_t>(op);
    case DType::U64: return int_line<uint64_t>(op);
    case DType::I8: return int_line<int8_t>(op);
    case DType::I16: return int_line<int16_t>(op);
    default: return nullptr;
  }
}

FoldFn find_other_fold(Op op, DType dtype) {
  switch (dtype) {
    case DType::Bool: return bool_fold(op);
    case DType::U8: return int_fold<uint8_t>(op);
    case DType::U16: return int_fold<uint16_t>(op);
    case DType::U32: return int_fold<uint32_t>(op);
    case DType::U64: return int_fold<uint64_t>(op);
    case DType::I8: return int_fold<int8_t>(op);
    case DType::I16: return int_fold<int16_t>(op);
    case DType::C64: return complex_fold<c64>(op);
    case DType::C128: return complex_fold<c128>(op);
    default: return nullptr;
  }
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
