// The pointwise lines of one instruction set: f32, f64, i32, i64. Compiled once per LAMELLA_BACKEND.
#include "lamella/kernels/cpu/line_switch.h"
#include "lamella/kernels/cpu/vector_math.h"

namespace lamella::kernels::LAMELLA_BACKEND {
namespace {

template <class T> LineFn float_line(Op op) {
  switch (op) {
    case Op::exp: return exp_line<T>();
    case Op::log: return math_line<T, VectorLog>;
    case Op::sin: return sin_line<T>();
    case Op::cos: return cos_line<T>();
    case Op::tanh: return math_line<T, VectorTanh>;
    case Op::pow: return pow_line<T>;
    case Op::sqrt: return unary_line<T, Sqrt>;
    case Op::reciprocal: return unary_line<T, Reciprocal>;
    case Op::div: return binary_line<T, Div>;
    case Op::where: return where_line<T>;
    default: return common_line<T>(op);
  }
}

template <class T> LineFn int_line(Op op) {
  if (op == Op::pow) return binary_line<T, Pow>;
  if (op == Op::where) return where_line<T>;
  return common_line<T>(op);
}

}  // namespace

LineFn find_line(Op op, DType dtype) {
  switch (dtype) {
    case DType::F32: return float_line<float>(op);
    case DType::F64: return float_line<double>(op);
    case DType::I32: return int_line<int32_t>(op);
    case DType::I64: return int_line<int64_t>(op);
    default: return nullptr;
  }
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
