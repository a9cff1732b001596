// matmul: the own register-blocked kernel for f32, f64 (f16 and bf16 through f32), BLAS for large ones, plain
// loops else.
#include <cstring>
#include <vector>

#include "lamella/core/visit.h"
#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/cascade.h"
#include "lamella/kernels/cpu/parts.h"

#if LAMELLA_HAVE_BLAS
#include <cblas.h>
#include <dlfcn.h>
extern "C" void openblas_set_num_threads(int threads);
extern "C" int openblas_get_parallel(void);
extern "C" char* openblas_get_corename(void);
#endif

namespace lamella::kernels {
namespace {

// One matrix operand: byte strides of the batch, element strides inside.
struct Matrix {
  char* data;
  int64_t row, col;
};

// Gapless rows of `to`: the matrix itself when it has them, otherwise a copy in `buffer`.
Matrix with_rows(const Matrix& m, DType from, DType to, int64_t rows, int64_t cols,
                 std::vector<char>& buffer) {
  const bool converts = from != to;
  if (!converts && (m.col == 1 || cols == 1)) return {m.data, m.row, 1};
  const Mover mover = make_mover(from, to);
  buffer.resize(size_t(rows * cols * mover.to_size));
  move_block(mover, buffer.data(), mover.to_size, cols * mover.to_size, m.data, m.col * mover.from_size,
             m.row * mover.from_size, cols, rows);
  return {buffer.data(), cols, 1};
}

template <class T> void plain_gemm(const GemmCall& g) {
  for (int64_t i = 0; i < g.n; ++i) {
    T* c = static_cast<T*>(g.c) + i * g.c_row;
    for (int64_t j = 0; j < g.m; ++j) c[j] = T(0);
    for (int64_t p = 0; p < g.k; ++p) {
      const T a = static_cast<const T*>(g.a)[i * g.a_row + p * g.a_col];
      const T* b = static_cast<const T*>(g.b) + p * g.b_row;
      for (int64_t j = 0; j < g.m; ++j) {
        if constexpr (std::is_same_v<T, bool>) c[j] = c[j] || (a && b[j]);
        else if constexpr (std::is_integral_v<T>) c[j] = T(uint64_t(c[j]) + uint64_t(a) * uint64_t(b[j]));
        else if constexpr (is_complex_type<T>) {
          c[j] += T(a.real() * b[j].real() - a.imag() * b[j].imag(),
                    a.real() * b[j].imag() + a.imag() * b[j].real());
        } else c[j] += a * b[j];
      }
    }
  }
}

GemmFn find_gemm(DType exec) {
  if (GemmFn fn = isa().gemm(exec)) return fn;
  return visit_dtype(exec, [](auto tag) -> GemmFn {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, f128> || std::is_same_v<T, c256> || is_half_type<T>) return nullptr;
    else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) return nullptr;
    else return plain_gemm<T>;
  });
}

#if LAMELLA_HAVE_BLAS
bool fits_int(int64_t v) { return v <= 0x7fffffff; }

// BLAS wants one of the strides to be 1 and the other to be at least the extent.
bool blas_layout(const Matrix& m, int64_t rows, int64_t cols, CBLAS_TRANSPOSE& how, int& lead) {
  const bool by_rows = m.col == 1 && m.row >= std::max<int64_t>(cols, 1) && fits_int(m.row);
  const bool by_cols = m.row == 1 && m.col >= std::max<int64_t>(rows, 1) && fits_int(m.col);
  how = by_rows ? CblasNoTrans : CblasTrans;
  lead = int(by_rows ? m.row : m.col);
  return by_rows || by_cols;
}

struct BlasCall {
  CBLAS_TRANSPOSE ta, tb;
  int n, m, k, lda, ldb, ldc;
};

void call_blas(DType exec, const BlasCall& s, const void* a, const void* b, void* c) {
  const c64 one_c64 = 1, zero_c64 = 0;
  const c128 one_c128 = 1, zero_c128 = 0;
  switch (exec) {
    case DType::F32:
      return cblas_sgemm(CblasRowMajor, s.ta, s.tb, s.n, s.m, s.k, 1, static_cast<const float*>(a), s.lda,
                         static_cast<const float*>(b), s.ldb, 0, static_cast<float*>(c), s.ldc);
    case DType::F64:
      return cblas_dgemm(CblasRowMajor, s.ta, s.tb, s.n, s.m, s.k, 1, static_cast<const double*>(a), s.lda,
                         static_cast<const double*>(b), s.ldb, 0, static_cast<double*>(c), s.ldc);
    case DType::C64:
      return cblas_cgemm(CblasRowMajor, s.ta, s.tb, s.n, s.m, s.k, &one_c64, a, s.lda, b, s.ldb, &zero_c64, c,
                         s.ldc);
    default:
      return cblas_zgemm(CblasRowMajor, s.ta, s.tb, s.n, s.m, s.k, &one_c128, a, s.lda, b, s.ldb, &zero_c128,
                         c, s.ldc);
  }
}

/// NOTE: [one thread of OpenBLAS] Built with pthreads it has as many as it was told last. Built with OpenMP
/// it has as many as the calling thread would begin a parallel region with, whatever it was told before by
/// another thread: that is set to 1 around each call, and left as it was for the program's own regions.
class OneThread {
 public:
  OneThread() {
    static const bool told = of_openmp().set || (openblas_set_num_threads(1), true);
    if (told && of_openmp().set && (saved_ = of_openmp().get()) != 1) of_openmp().set(1);
  }
  ~OneThread() {
    if (of_openmp().set && saved_ != 1) of_openmp().set(saved_);
  }
  OneThread(const OneThread&) = delete;

 private:
  struct OpenMp {
    int (*get)() = nullptr;
    void (*set)(int) = nullptr;
  };
  static const OpenMp& of_openmp() {
    static const OpenMp found = [] {
      constexpr int kOfOpenMp = 2;
      OpenMp m;
      if (openblas_get_parallel() != kOfOpenMp) return m;
      m.get = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
      m.set = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
      return m.get && m.set ? m : OpenMp{};
    }();
    return found;
  }
  int saved_ = 1;
};

/// NOTE: [whose registers are wider] An OpenBLAS that does not know a processor takes the kernels of an older
/// one: 256 bits where ours has 512. Ours then is 1.6 to 2.1 times as fast in f32 up to some 800 rows, where
/// BLAS's packing begins to pay. Of the same width ours is faster as long as a left operand lies in the
/// second cache: 1.5 times at 64 rows, 1.05 at 256, as fast at 320 (docs/performance.md). It may be cut
/// anywhere without another bit, so products too short for tiles of BLAS's are ours.
bool ours_is_wider() {
  static const bool wider = [] {
    const std::string_view theirs = openblas_get_corename();
    const bool theirs_has_512 = theirs == "SkylakeX" || theirs == "Cooperlake" || theirs == "SapphireRapids";
    return widest_set() == InstructionSet::Avx512 && !theirs_has_512;
  }();
  return wider;
}
bool own_wins(DType exec, const GemmCall& g) {
  const bool real = exec == DType::F32 || exec == DType::F64;
  if (!real || widest_set() < InstructionSet::Avx2) return false;
  const Thresholds& t = thresholds();
  return g.n * g.m < (ours_is_wider() ? t.own_product : t.own_small_product) / g.k;
}

// Where it wins over the own kernel. It has one thread: each of ours calls it for tiles of its own, whose
// bits do not depend on how many there are, as those of its threads do.
bool try_blas(DType exec, const GemmCall& g) {
  const bool supported =
      exec == DType::F32 || exec == DType::F64 || exec == DType::C64 || exec == DType::C128;
  if (!supported || g.k == 0 || g.n * g.m < thresholds().blas / g.k || own_wins(exec, g)) return false;
  if (!fits_int(g.n) || !fits_int(g.m) || !fits_int(g.k) || !fits_int(g.c_row)) return false;
  BlasCall s{CblasNoTrans, CblasNoTrans, int(g.n), int(g.m), int(g.k), 0, int(g.b_row), int(g.c_row)};
  const Matrix a{nullptr, g.a_row, g.a_col};
  if (!blas_layout(a, g.n, g.k, s.ta, s.lda)) return false;
  if (g.b_row < g.m || g.c_row < g.m || !fits_int(g.b_row)) return false;
  const OneThread one;
  call_blas(exec, s, g.a, g.b, g.c);
  return true;
}
#else
bool try_blas(DType, const GemmCall&) { return false; }
#endif

/// [0, all) in pieces of `step`. Less than half a piece at the end goes to the one before: the other operand
/// is packed for each piece.
struct Pieces {
  int64_t all, step, count;
  Pieces(int64_t n, int64_t of) : all(n), step(of), count(std::max<int64_t>((n + of / 2) / of, 1)) {}
  int64_t first(int64_t piece) const { return piece * step; }
  int64_t size(int64_t piece) const { return piece + 1 < count ? step : all - first(piece); }
};

/// NOTE: [long inner sizes] Our kernel adds along the inner size one product after another: 2^24 is as far as
/// ones in f32 count. So a long one is cut into parts, whose products are added in pairs: the error grows
/// with the size of a part and the logarithm of their number. Where it is cut, the inner size alone decides:
/// bits stay those of any tile and any number of threads.
template <class Multiply> void in_depths(DType exec, const GemmCall& g, Multiply&& multiply) {
  const int64_t depth = 2 * thresholds().fold_block;
  if (2 * g.k < 3 * depth || !is_inexact(exec)) [[likely]]
    return multiply(g);
  const Pieces parts(g.k, depth);
  const int64_t item = itemsize(exec), row = g.m * item;
  Cascade sums(line_of<scalar::Add>(exec), g.n * row, g.n * g.m);
  for (int64_t p = 0; p < parts.count; ++p) {
    GemmCall part = g;
    part.k = parts.size(p);
    part.a = static_cast<const char*>(g.a) + parts.first(p) * g.a_col * item;
    part.b = static_cast<const char*>(g.b) + parts.first(p) * g.b_row * item;
    part.c = sums.slot(sums.depth()), part.c_row = g.m;
    multiply(part);
    sums.push();
  }
  sums.finish();
  for (int64_t i = 0; i < g.n; ++i)
    std::memcpy(static_cast<char*>(g.c) + i * g.c_row * item, sums.slot(0) + i * row, size_t(row));
}

void run_tile(DType exec, GemmFn own, const GemmCall& g) {
  in_depths(exec, g, [&](const GemmCall& part) {
    if (!try_blas(exec, part)) own(part);
  });
}

/// A quarter of them, so that products of some hundred rows are cut; at most gemm_rows and no less than an
/// eighth of that, since each tile packs the right operand again.
int64_t rows_of_tile(int64_t rows) {
  const int64_t most = thresholds().gemm_rows, least = std::max<int64_t>(most / 8, 1);
  return std::clamp(int64_t(std::bit_ceil(uint64_t(rows / 4))), least, most);
}

/// Columns of a product in as many parts as there are threads: an element of the own kernel is the same sum
/// whichever are computed beside it, and each part packs its own columns of the right operand alone.
void share_columns(GemmFn own, const GemmCall& g, int64_t item) {
  const int64_t even = (g.m + threads() - 1) / threads(), step = (even + 15) / 16 * 16;  // whole registers
  parallel_for((g.m + step - 1) / step, [&](int64_t first, int64_t last) {
    GemmCall part = g;
    part.m = std::min(last * step, g.m) - first * step;
    part.b = static_cast<const char*>(g.b) + first * step * item;
    part.c = static_cast<char*>(g.c) + first * step * item;
    own(part);
  });
}

void run_gemm(DType exec, GemmFn own, const GemmCall& g) {
  const int64_t each = cost::of(g.k, kCosts.product);
  if (!cost::in_parts(g.n * g.m, each)) {
    return in_depths(exec, g, [&](const GemmCall& part) {
      if (try_blas(exec, part)) return;
      cost::in_parts_now(g.n * g.m, each) ? share_columns(own, part, itemsize(exec)) : own(part);
    });
  }
  const Pieces down(g.n, rows_of_tile(g.n)), across(g.m, thresholds().gemm_columns);
  const int64_t item = itemsize(exec);
  parallel_for(down.count * across.count, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const int64_t piece = t % down.count, i = down.first(piece), j = across.first(t / down.count);
      GemmCall part = g;
      part.n = down.size(piece), part.m = across.size(t / down.count);
      part.a = static_cast<const char*>(g.a) + i * g.a_row * item;
      part.b = static_cast<const char*>(g.b) + j * item;
      part.c = static_cast<char*>(g.c) + (i * g.c_row + j) * item;
      run_tile(exec, own, part);
    }
  });
}

struct Operand {
  bool converts;
  int64_t batch, row, col;  // batch in bytes
};

Operand describe(const View& v, DType exec) {
  return {v.dtype != exec, v.strides[0] * itemsize(v.dtype), v.strides[1], v.strides[2]};
}

}  // namespace

namespace cpu {
namespace {
void matmul(const KernelCall& call) {
  const View &out = call.outs[0], &x = call.ins[0], &y = call.ins[1];
  const DType exec = exec_dtype(out.dtype);
  const GemmFn own = find_gemm(exec);
  if (!own || is_internal(x.dtype) || is_internal(y.dtype)) fail_dtype("matmul", out.dtype);
  const int64_t n = out.sizes[1], m = out.sizes[2], k = x.sizes[2];
  if (out.numel() == 0) return;
  if (k == 0) {  // operands without elements have no memory to point into
    const Scalar zero = 0;
    return named("fill").cpu({{&out, 1}, {}, out.dtype, {}, {&zero, 1}});
  }
  const Operand a = describe(x, exec), b = describe(y, exec), c = describe(out, exec);
  const bool c_direct = !c.converts && (c.col == 1 || m == 1);
  const bool cut = cost::in_parts_now(out.numel(), cost::of(k, kCosts.small_product));
  const int64_t product = n * m < thresholds().blas / k ? kCosts.small_product : kCosts.product;
  const int64_t each = cost::of(n * m, cost::of(k, product));
  const bool alone = each < thresholds().parallel_near;  // one of them is never cut
  std::vector<char> shared_buffer;
  Matrix shared{};
  if (b.batch == 0) shared = with_rows({y.as<char>(), b.row, b.col}, y.dtype, exec, k, m, shared_buffer);
  const auto multiply = [&](int64_t first, int64_t last) {
    std::vector<char> a_buffer, b_buffer, c_buffer;
    if (!c_direct) c_buffer.resize(size_t(n * m * itemsize(exec)));
    for (int64_t batch = first; batch < last; ++batch) {
      Matrix left{x.as<char>() + batch * a.batch, a.row, a.col}, right = shared;
      // BLAS needs unit strides in A; for the own kernel only the dtype matters.
      if (a.converts || (left.row != 1 && left.col != 1))
        left = with_rows(left, x.dtype, exec, n, k, a_buffer);
      if (b.batch != 0)
        right = with_rows({y.as<char>() + batch * b.batch, b.row, b.col}, y.dtype, exec, k, m, b_buffer);
      char* target = out.as<char>() + batch * c.batch;
      char* result = c_direct ? target : c_buffer.data();
      const GemmCall g{n,        k,          m,         left.data, left.row,
                       left.col, right.data, right.row, result,    c_direct ? c.row : m};
      cut && !alone ? run_gemm(exec, own, g) : run_tile(exec, own, g);
      if (c_direct) continue;
      const Mover back = make_mover(exec, out.dtype);
      move_block(back, target, c.col * back.to_size, c.row * back.to_size, result, back.from_size,
                 m * back.from_size, m, n);
    }
  };
  if (!cut) return multiply(0, out.sizes[0]);
  if (!cost::in_parts(1, each)) return for_each_range(out.sizes[0], each, multiply);
  // Each of them is cut; many are shared out, and a thread takes the tiles of its own one by one.
  if (out.sizes[0] < thresholds().shared_out) return multiply(0, out.sizes[0]);
  parallel_for(out.sizes[0], multiply);
}

}  // namespace

Texts matmul_kernels() {
  static constexpr Text kTexts[] = {{"matmul", matmul}};
  return kTexts;
}
}  // namespace cpu

}  // namespace lamella::kernels
