// Operands: the same values on each run, in the layout that is asked for.
#include "bench_operand.h"

#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/contract.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/linalg.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/random.h"
#include "lamella/ops/functions/view.h"

namespace lamella::tools::bench {

namespace {
Tensor key_of(uint64_t seed) {
  const Tensor key = make_tensor(Ints(), DType::U64);
  *key.data<uint64_t>() = seed;
  return key;
}

Tensor uniform(const Dims& sizes, uint64_t seed) { return rand(IntArg(sizes), key_of(seed), DType::F64); }

/// Whole numbers of [0, bound) in any dtype that holds them.
Tensor whole(const Dims& sizes, int64_t bound, DType dtype, uint64_t seed) {
  const Tensor u = uniform(sizes, seed), out = make_tensor(Ints(sizes), DType::I64);
  const double* from = u.data<double>();
  int64_t* into = out.data<int64_t>();
  for (int64_t i = 0; i < out.numel(); ++i) into[i] = int64_t(from[i] * double(bound));
  return dtype == DType::I64 ? out : to(out, dtype);
}

Tensor adjoint_of(const Tensor& x) { return transpose(x, -2, -1); }

Tensor real_numbers(const Operand& o, const Dims& sizes, uint64_t seed) {
  const int64_t n = sizes.empty() ? 1 : sizes.back();
  switch (o.fill) {
    case Fill::Uniform: return mul(add(uniform(sizes, seed), Scalar(0.5)), Scalar(0.5));
    case Fill::Definite: {
      const Tensor r = randn(IntArg(sizes), key_of(seed), DType::F64);
      return add(mul(matmul(r, adjoint_of(r)), Scalar(1.0 / double(n))), eye(n, {}, DType::F64));
    }
    case Fill::Triangular: {
      const Tensor r = randn(IntArg(sizes), key_of(seed), DType::F64);
      return add(mul(tril(r, -1), Scalar(1.0 / double(n))), eye(n, {}, DType::F64));
    }
    default: return randn(IntArg(sizes), key_of(seed), DType::F64);
  }
}

Tensor filled(const Operand& o, const Dims& sizes, uint64_t seed) {
  constexpr int64_t kSmall = 100;
  if (o.fill == Fill::Key) return key_of(seed);
  if (o.fill == Fill::Index) return whole(sizes, o.bound, o.dtype, seed);
  if (o.fill == Fill::Mask || is_bool(o.dtype)) return gt(uniform(sizes, seed), Scalar(0.5));
  if (is_integer(o.dtype)) return add(whole(sizes, kSmall, o.dtype, seed), Scalar(int64_t{1}));
  const Tensor x = real_numbers(o, sizes, seed);
  if (!is_complex(o.dtype)) return o.dtype == DType::F64 ? x : to(x, o.dtype);
  const bool plain = o.fill == Fill::Uniform || o.fill == Fill::Normal;
  const Tensor im = plain ? real_numbers(o, sizes, seed + 1) : zeros(IntArg(sizes), DType::F64);
  return to(complex(x, im), o.dtype);
}

void require_rank(const Operand& o, int least) {
  LAMELLA_CHECK(o.sizes.size() >= least, Usage,
                "bench: layout {} of sizes {}; expected sizes with at least {} dims", name(o.layout), o.sizes,
                least);
}
}  // namespace

Tensor made(const Operand& o, uint64_t seed) {
  Dims s = o.sizes;
  const int last = s.size() - 1;
  switch (o.layout) {
    case Layout::Contiguous: break;
    case Layout::Transposed:
      require_rank(o, 2);
      std::swap(s[last], s[last - 1]);
      return adjoint_of(filled(o, s, seed));
    case Layout::Stepped:
      require_rank(o, 1);
      s[last] *= 2;
      return slice(filled(o, s, seed), -1, std::nullopt, std::nullopt, 2);
    case Layout::Row:
      require_rank(o, 1);
      s[0] = 1;
      return expand(filled(o, s, seed), IntArg(o.sizes));
    case Layout::Column:
      require_rank(o, 2);
      s[last] = 1;
      return expand(filled(o, s, seed), IntArg(o.sizes));
  }
  return filled(o, s, seed);
}

std::string python_list(Ints sizes) {
  std::string out = "[";
  for (const int64_t s : sizes) out += (out.size() > 1 ? ", " : "") + std::to_string(s);
  return out + "]";
}

std::string python_dtype(DType dtype) {
  switch (dtype) {
    case DType::Bool: return "bool";
    case DType::U8: return "uint8";
    case DType::U16: return "uint16";
    case DType::U32: return "uint32";
    case DType::U64: return "uint64";
    case DType::I8: return "int8";
    case DType::I16: return "int16";
    case DType::I32: return "int32";
    case DType::I64: return "int64";
    case DType::F16: return "float16";
    case DType::BF16: return "bfloat16";
    case DType::F32: return "float32";
    case DType::F64: return "float64";
    case DType::C64: return "complex64";
    case DType::C128: return "complex128";
    default: return "no_such_dtype";
  }
}

std::string python(const Operand& o) {
  static constexpr const char* kFills[] = {"uniform",  "normal",     "mask", "index",
                                           "definite", "triangular", "key"};
  return format("t({}, '{}', '{}', '{}', {})", python_list(o.sizes), python_dtype(o.dtype),
                kFills[size_t(o.fill)], name(o.layout), o.bound);
}

double own_bytes(const Tensor& t) {
  if (!t.defined()) return 0;
  double n = double(itemsize(t.dtype()));
  for (int d = 0; d < t.rank(); ++d)
    if (t.stride(d) != 0) n *= double(t.size(d));
  return n;
}

}  // namespace lamella::tools::bench
