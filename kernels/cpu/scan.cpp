// cumsum and cumprod. f32 accumulates in f64, c64 in c128, f16 and bf16 in f32: the running value is never
// rounded to less. Sums of f64 keep what their roundings leave out; those of c128, where that costs four
// times the time, do not.
#include "lamella/core/visit.h"
#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/parts.h"

namespace lamella::kernels {
namespace {

// A running sum and the roundings it left out, which two_sum finds exactly (Knuth, The art of computer
// programming 2, 4.2.2, theorem B; Neumaier, ZAMM 54, 1974). Its chain of dependent additions is as long as a
// plain sum's, the rest runs beside it. Without it 200,000 sums of 0.1 are off by 23,000 roundings.
struct Compensated {
  double sum, rest;
  Compensated(double x = 0) : sum(x), rest(0) {}
  explicit operator double() const {
    const double value = sum + rest;
    return value == value ? value : sum;  // an infinite sum leaves no rest
  }
};
Compensated plus(Compensated a, double x) {
  const double sum = a.sum + x, part = sum - a.sum;
  a.rest += (a.sum - (sum - part)) + (x - part);
  a.sum = sum;
  return a;
}

/// What a scan of T runs in.
template <class T, bool kProduct> struct wide { using type = T; };
template <bool kProduct> struct wide<float, kProduct> { using type = double; };
template <bool kProduct> struct wide<c64, kProduct> { using type = c128; };
template <> struct wide<double, false> { using type = Compensated; };

template <class A, bool kProduct> A combine(A a, A b) {
  if constexpr (std::is_same_v<A, Compensated>) return plus(a, b.sum);
  else if constexpr (std::is_same_v<A, bool>) return kProduct ? a && b : a || b;
  else if constexpr (std::is_integral_v<A>) {
    return kProduct ? A(uint64_t(a) * uint64_t(b)) : A(uint64_t(a) + uint64_t(b));
  } else if constexpr (is_complex_type<A> && kProduct) {
    return A(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  } else return kProduct ? a * b : a + b;
}

// acc[j] runs over lines; one line of many elements has n_lines == 1, a row across many lines has n == 1.
template <class T, bool kProduct>
void scan_tile(void* state, T* out, const T* in, int64_t n_lines, int64_t n) {
  using A = typename wide<T, kProduct>::type;
  A* acc = static_cast<A*>(state);
  if (n_lines == 1) {
    A run = acc[0];
    for (int64_t i = 0; i < n; ++i) out[i] = T(run = combine<A, kProduct>(run, A(in[i])));
    acc[0] = run;
    return;
  }
  for (int64_t j = 0; j < n_lines; ++j) out[j] = T(acc[j] = combine<A, kProduct>(acc[j], A(in[j])));
}

// Gapless lines abreast, from their first element on: each waits for its own additions alone. (By name: an
// array that a loop walks would lie in memory.) All loads come before a store: lines are often a multiple of
// 4 KiB apart, and the processor takes a load for one of what was stored there.
constexpr int64_t kAbreast = kUsualThresholds.scans_abreast;
static_assert(kAbreast == 4);
template <class T, bool kProduct> void scan_abreast(char* const* out, const char* const* in, int64_t n) {
  using A = typename wide<T, kProduct>::type;
  const auto line = [in](int k) { return reinterpret_cast<const T*>(in[k]); };
  const auto place = [out](int k) { return reinterpret_cast<T*>(out[k]); };
  const T *const x0 = line(0), *const x1 = line(1), *const x2 = line(2), *const x3 = line(3);
  T *const y0 = place(0), *const y1 = place(1), *const y2 = place(2), *const y3 = place(3);
  const auto step = [](A run, T x) { return combine<A, kProduct>(run, A(x)); };
  A a = A(T(kProduct ? 1 : 0)), b = a, c = a, d = a;
  for (int64_t i = 0; i < n; ++i) {
    const T at0 = x0[i], at1 = x1[i], at2 = x2[i], at3 = x3[i];
    a = step(a, at0), b = step(b, at1), c = step(c, at2), d = step(d, at3);
    y0[i] = T(a), y1[i] = T(b), y2[i] = T(c), y3[i] = T(d);
  }
}

constexpr int64_t kMaxState = 2 * kMaxItem;

using ScanFn = void (*)(void* state, void* out, const void* in, int64_t n_lines, int64_t n);
using StartFn = void (*)(void* state, int64_t n_lines);
using AbreastFn = void (*)(char* const* out, const char* const* in, int64_t n);

struct Body {
  ScanFn scan;
  StartFn start;
  AbreastFn abreast;
};

template <bool kProduct> Body find_scan(DType exec) {
  return visit_dtype(exec, [](auto tag) -> Body {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, f128> || std::is_same_v<T, c256> || is_half_type<T>) return {};
    else
      return {[](void* state, void* out, const void* in, int64_t n_lines, int64_t n) {
                scan_tile<T, kProduct>(state, static_cast<T*>(out), static_cast<const T*>(in), n_lines, n);
              },
              [](void* state, int64_t n_lines) {
                using A = typename wide<T, kProduct>::type;
                static_assert(sizeof(A) <= kMaxState);
                for (int64_t j = 0; j < n_lines; ++j) static_cast<A*>(state)[j] = A(T(kProduct ? 1 : 0));
              },
              scan_abreast<T, kProduct>};
  });
}

/// Of a part of the lines.
struct Scan {
  Body body;
  const IterPlan& lines;  // operands: out, in
  int64_t size, out_step, in_step;
  TileReader reader;
  TileWriter writer;
  alignas(64) char state[kTile * kMaxState];

  Scan(Body b, const IterPlan& plan, int64_t n, int64_t out_bytes, int64_t in_bytes)
      : body(b), lines(plan), size(n), out_step(out_bytes), in_step(in_bytes) {}
};

void scan_line(Scan& s, char* to, const char* from) {
  const int64_t tile = thresholds().tile;
  s.body.start(s.state, 1);
  for (int64_t i = 0; i < s.size; i += tile) {
    const int64_t n = std::min(tile, s.size - i);
    const char* in = s.reader.read(from + i * s.in_step, s.in_step, 0, n, 1);
    char* out = to + i * s.out_step;
    const bool direct = s.writer.direct(s.out_step, 0, n, 1);
    char* target = direct ? out : s.writer.buffer();
    s.body.scan(s.state, target, in, 1, n);
    if (!direct) s.writer.write(out, s.out_step, 0, n, 1, target);
  }
}

void scan_along(Scan& s) {
  const bool abreast = s.reader.direct(s.in_step) && s.writer.direct(s.out_step, 0, s.size, 1);
  char* to[kAbreast];
  const char* from[kAbreast];
  int64_t waiting = 0;
  for_each_outer(s.lines, 0, [&](char* const* at) {
    if (!abreast) return scan_line(s, at[0], at[1]);
    to[waiting] = at[0], from[waiting] = at[1];
    if (++waiting < kAbreast) return;
    s.body.abreast(to, from, s.size);
    waiting = 0;
  });
  for (int64_t k = 0; k < waiting; ++k) scan_line(s, to[k], from[k]);
}

void scan_across(Scan& s) {
  for_each_block(s.lines, choose_block(s.lines), [&s](char* const* at, int64_t n0, int64_t n1) {
    const int64_t o0 = s.lines.stride(0, 0), o1 = s.lines.stride(0, 1);
    s.body.start(s.state, n0 * n1);
    for (int64_t i = 0; i < s.size; ++i) {
      const char* in =
          s.reader.read(at[1] + i * s.in_step, s.lines.stride(1, 0), s.lines.stride(1, 1), n0, n1);
      char* out = at[0] + i * s.out_step;
      const bool direct = s.writer.direct(o0, o1, n0, n1);
      char* target = direct ? out : s.writer.buffer();
      s.body.scan(s.state, target, in, n0 * n1, 1);
      if (!direct) s.writer.write(out, o0, o1, n0, n1, target);
    }
  });
}

void scan(const char* kernel, Body body, const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const int64_t dim = call.ints[0];
  if (!body.scan || is_internal(in.dtype)) fail_dtype(kernel, call.compute);
  if (out.numel() == 0) return;
  const int64_t size = line_size(out, dim), out_step = line_step(out, dim);
  const IterPlan lines = plan_where(std::initializer_list<View>{out, in}, [dim](int d) { return d == dim; });
  const bool across = lines.size(0) >= thresholds().lines_across && lines.stride(0, 0) < out_step;
  const Units units = across ? of_neighbours(lines.size(0)) : of_lines();
  for_each_part(lines, cost::of(size, kCosts.scanned), units, [&](const IterPlan& part) {
    Scan s(body, part, size, out_step, line_step(in, dim));
    s.reader.open(in.dtype, exec_dtype(call.compute));
    s.writer.open(exec_dtype(call.compute), out.dtype);
    across ? scan_across(s) : scan_along(s);
  });
}

/// One line: the greatest element so far, of equal ones the last, and where it stands. NaN is greatest.
template <class T> void greatest_of_line(T* value, int64_t* place, const T* x, int64_t value_step,
                                         int64_t place_step, int64_t step, int64_t n) {
  T best = *x;
  int64_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T now = x[i * step];
    if (now != now || (best == best && !(now < best))) best = now, at = i;
    value[i * value_step] = best;
    place[i * place_step] = at;
  }
}

/// outs: values of x's dtype and i64 places; along ints[0].
void greatest_so_far(const KernelCall& call) {
  const View &value = call.outs[0], &place = call.outs[1], &in = call.ins[0];
  const int64_t dim = call.ints[0];
  if (is_complex(in.dtype) || is_internal(in.dtype)) fail_dtype("cummax", in.dtype);
  if (value.numel() == 0) return;
  const auto step_of = [dim](const View& v) { return v.rank == 0 ? 0 : v.strides[dim]; };
  const int64_t size = line_size(value, dim);
  const IterPlan lines =
      plan_where(std::initializer_list<View>{value, place, in}, [dim](int d) { return d == dim; });
  for_each_part(lines, cost::of(size, kCosts.scanned), of_lines(), [&](const IterPlan& part) {
    visit_dtype(in.dtype, [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      if constexpr (!is_complex_type<T> && !std::is_same_v<T, f128>)
        for_each_outer(part, 0, [&](char* const* at) {
          greatest_of_line(reinterpret_cast<T*>(at[0]), reinterpret_cast<int64_t*>(at[1]),
                           reinterpret_cast<const T*>(at[2]), step_of(value), step_of(place), step_of(in),
                           size);
        });
    });
  });
}

}  // namespace

namespace cpu {
namespace {
void cumsum(const KernelCall& call) { scan("cumsum", find_scan<false>(exec_dtype(call.compute)), call); }
void cumprod(const KernelCall& call) { scan("cumprod", find_scan<true>(exec_dtype(call.compute)), call); }
void cummax(const KernelCall& call) { greatest_so_far(call); }
}  // namespace

Texts scan_kernels() {
  static constexpr Text kTexts[] = {{"cumsum", cumsum}, {"cumprod", cumprod}, {"cummax", cummax}};
  return kTexts;
}
}  // namespace cpu

}  // namespace lamella::kernels
