// Contiguous runs folded to one value, argmax, softmax and layer_norm of one row. Compiled once per
// LAMELLA_BACKEND.
#include <cmath>

#include "lamella/kernels/cpu/extremes.h"
#include "lamella/kernels/cpu/fold_lines.h"
#include "lamella/kernels/cpu/past_lines.h"
#include "lamella/kernels/cpu/scratch.h"
#include "lamella/kernels/cpu/vector_math.h"

namespace lamella::kernels::LAMELLA_BACKEND {
namespace {

// Sums and products of floating numbers keep their results in registers; others leave it to the compiler,
// which keeps an array that a loop walks in memory: each step then waits for the store of the one before.
template <class F, class T, int64_t kWidth>
inline constexpr bool kInRegisters = Floating<T> &&
                                     (std::is_same_v<F, Of<Add>> ||
                                      std::is_same_v<F, Of<Mul>>)&&SideBySide<T, kWidth>::kFits;

/// What is folded: contiguous elements as they are.
template <class T> struct Plain {
  using Element = T;
  const T* a;
  T operator[](int64_t i) const { return a[i]; }
  template <class V> V row(int64_t i) const { return loaded<V>(a + i); }
  Plain from(int64_t i) const { return {a + i}; }
};
/// Their distances from a number, each operation rounded.
template <class T> struct Distance {
  using Element = T;
  const T* a;
  T mean;
  T operator[](int64_t i) const { return a[i] - mean; }
  template <class V> V row(int64_t i) const { return loaded<V>(a + i) - mean; }
  Distance from(int64_t i) const { return {a + i, mean}; }
};
/// Squares of what is left of these when `rest` is taken off, too.
template <class T> struct SquaredDistance {
  using Element = T;
  const T* a;
  T mean, rest;
  T operator[](int64_t i) const {
    const T d = (a[i] - mean) - rest;
    return d * d;
  }
  template <class V> V row(int64_t i) const {
    const V d = (loaded<V>(a + i) - mean) - rest;
    return d * d;
  }
  SquaredDistance from(int64_t i) const { return {a + i, mean, rest}; }
};

/// Accumulator j takes a[j], a[j + kWidth], ... of all whole rows of kWidth elements, the first n % kWidth
/// one more each.
template <int64_t kWidth, class F, class A> auto fold_rows(const A& a, int64_t n, int64_t ahead) {
  using T = typename A::Element;
  using Wide = SideBySide<T, kWidth>;
  using V = typename Wide::Register;
  return [&]<size_t... k>(std::index_sequence<k...>) {
    ask_ahead(a.a, 0, ahead);
    V kept[] = {a.template row<V>(int64_t(k) * Wide::kLanes)...};
    int64_t i = kWidth;
#pragma GCC unroll 2  // all of a block: the compiler would first load it, and have no registers for it
    for (; i + kWidth <= n; i += kWidth) {
      ask_ahead(a.a, i, ahead);
      ((kept[k] = F::step(kept[k], a.template row<V>(i + int64_t(k) * Wide::kLanes))), ...);
    }
    if (i == n) return merged_registers<T>(kept, [](auto x, auto y) { return F::merge(x, y); });
    alignas(kRegisterBytes) T acc[kWidth];
    (stored(acc + int64_t(k) * Wide::kLanes, kept[k]), ...);
    for (int64_t j = 0; j < n % kWidth; ++j) acc[j] = F::step(acc[j], a[i + j]);
    merge_halves<kWidth, F>(acc);
    return acc[0];
  }
  (typename Wide::Indices{});
}

// kWidth accumulators side by side, whatever the registers' width: every instruction set adds in the same
// order.
template <int64_t kWidth, class F, class A> auto fold_side_by_side(const A& a, int64_t n, int64_t ahead = 0) {
  if constexpr (kInRegisters<F, typename A::Element, kWidth>) return fold_rows<kWidth, F>(a, n, ahead);
  else {
    alignas(kRegisterBytes) decltype(F::first(a[0])) acc[kWidth];
    int64_t i = kWidth;
    for (int64_t j = 0; j < kWidth; ++j) acc[j] = F::first(a[j]);
    for (; i + kWidth <= n; i += kWidth) {
      for (int64_t j = 0; j < kWidth; ++j) acc[j] = F::step(acc[j], a[i + j]);
    }
    for (int64_t j = 0; j < n % kWidth; ++j) acc[j] = F::step(acc[j], a[i + j]);
    merge_halves<kWidth, F>(acc);
    return acc[0];
  }
}

// Few terms in a row even in short runs: many equal terms round the same way, half a roundoff a term.
template <class F, class A> auto fold_block(const A& a, int64_t n, int64_t ahead = 0) {
  if (n >= kHere.fold_many) return fold_side_by_side<kHere.fold_many / 2, F>(a, n, ahead);
  if (n >= kHere.fold_some) return fold_side_by_side<kHere.fold_some / 2, F>(a, n);
  auto state = F::first(a[0]);
  for (int64_t i = 1; i < n; ++i) state = F::step(state, a[i]);
  return state;
}

// So many whole blocks, a power of two of them, pairwise.
template <int64_t kCount, class F, class A> auto fold_blocks(const A& a, int64_t ahead) {
  constexpr int64_t kBlock = kHere.fold_block;
  decltype(F::first(a[0])) of[kCount];
  for (int64_t k = 0; k < kCount; ++k) of[k] = fold_block<F>(a.from(k * kBlock), kBlock, ahead);
  for (int64_t step = 1; step < kCount; step *= 2)
    for (int64_t k = 0; k < kCount; k += 2 * step) of[k] = F::merge(of[k], of[k + step]);
  return of[0];
}
// Pairwise above blocks of 512 (16 terms an accumulator of the usual 32): the error grows with log n. The
// tree splits at the greatest power of two of blocks that leaves something. It is not walked from its root,
// whose branches no processor guesses, but from its leaves: there is a state for each binary digit of how
// many blocks were folded so far.
template <class F, class A> auto fold_pairwise(const A& a, int64_t n, int64_t ahead = 0)
    -> decltype(F::first(a[0])) {
  constexpr int64_t kBlock = kHere.fold_block, kEight = kHere.fold_block * 8;
  if (n <= kBlock) return fold_block<F>(a, n);
  decltype(F::first(a[0])) kept[64];
  int64_t i = 0, depth = 0;
  for (uint64_t count = 1; n - i >= kEight; ++count, i += kEight) {
    kept[depth++] = fold_blocks<8, F>(a.from(i), ahead);
    for (uint64_t digit = count; digit % 2 == 0; digit /= 2, --depth)
      kept[depth - 2] = F::merge(kept[depth - 2], kept[depth - 1]);
  }
  if (n - i >= kEight / 2) kept[depth++] = fold_blocks<4, F>(a.from(i), ahead), i += kEight / 2;
  if (n - i >= 2 * kBlock) kept[depth++] = fold_blocks<2, F>(a.from(i), ahead), i += 2 * kBlock;
  if (n - i >= kBlock) kept[depth++] = fold_blocks<1, F>(a.from(i), ahead), i += kBlock;
  if (i < n) kept[depth++] = fold_block<F>(a.from(i), n - i);
  for (; depth > 1; --depth) kept[depth - 2] = F::merge(kept[depth - 2], kept[depth - 1]);
  return kept[0];
}
// The greatest or least is the same in any order; where there is a NaN, the body decides which.
template <class F, class T> T fold_extreme(const T* a, int64_t n, int64_t ahead = 0) {
  if (n >= kHere.fold_many) {
    const Extreme<T> e = extreme_of<F>(a, n, ahead);
    if (!e.has_nan) [[likely]]
      return e.value;
  }
  return fold_pairwise<F>(Plain<T>{a}, n);
}

struct SimdRun {
  template <class F, Order, class T> static auto fold(const T* a, int64_t n, int64_t ahead) {
    if constexpr (is_extreme<F>) return fold_extreme<F>(a, n, ahead);
    else return fold_pairwise<F>(Plain<T>{a}, n, ahead);
  }
};

/// The first greatest of n >= 1 elements, in blocks: the elements of one are looked at again. A NaN ends it.
template <class T> int64_t argmax_row(const void* in, int64_t n) {
  constexpr int64_t kBlock = kHere.located_block;
  const T* a = static_cast<const T*>(in);
  T most = a[0];
  int64_t from = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = n - i < kBlock ? n - i : kBlock;
    const T here = fold_extreme<Of<Maximum>>(a + i, count);
    if (here != here) return i + first_where(a + i, count, [](T x) { return x != x; });
    if (here > most) most = here, from = i;
  }
  return from + first_where(a + from, n - from, [most](T x) { return x == most; });
}

/// In one pass, with the bits of two.
template <class T> void exp_of_difference(T* out, const T* in, T most, int64_t n) {
  constexpr int64_t kLanes = kLanesOf<T>;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, lanes(Exp{}, load(in + i) - most));
  if (i < n) store_tail(out + i, lanes(Exp{}, loaded_tail(in + i, n - i) - most), n - i);
}

/// NOTE: [layer_norm in one pass] The composite's operations on a row that stays in the caches, in its order
/// and each rounded as there: its bits, whatever the row holds. So plain calls may take this text while
/// levels and base autograd take the composite apart.
template <class T> void layer_norm_row(const LayerNormRow& row) {
  T* o = static_cast<T*>(row.out);
  const T* a = static_cast<const T*>(row.in);
  const T* w = static_cast<const T*>(row.weight);
  const T* b = static_cast<const T*>(row.bias);
  const int64_t n = row.n;
  const T mean = fold_pairwise<Of<Add>>(Plain<T>{a}, n, row.ahead) / T(n);
  const T rest = fold_pairwise<Of<Add>>(Distance<T>{a, mean}, n) / T(n);
  const T scale =
      T(1) / std::sqrt(fold_pairwise<Of<Add>>(SquaredDistance<T>{a, mean, rest}, n) / T(n) + T(row.eps));
  const auto end = [o, n, past = row.past](auto&& of) {
    if (past) return stream_line(o, n, of);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = of(i);
  };
  if (w && b) end([=](int64_t i) { return (a[i] - mean - rest) * scale * w[i] + b[i]; });
  else if (w) end([=](int64_t i) { return (a[i] - mean - rest) * scale * w[i]; });
  else if (b) end([=](int64_t i) { return (a[i] - mean - rest) * scale + b[i]; });
  else end([=](int64_t i) { return (a[i] - mean - rest) * scale; });
}

/// NOTE: [logarithm of softmax's sum] log sum exp(x - greatest) is log1p of the sum without one greatest
/// element. The sum with it is rounded near 1 where that element outweighs the rest; its result there, minus
/// that logarithm, would be right to a roundoff of 1 and not of itself.
template <class T> void softmax_row(void* out, const void* in, int64_t n, bool log) {
  constexpr int64_t kChunk = kHere.exp_chunk;
  T* o = static_cast<T*>(out);
  const T* a = static_cast<const T*>(in);
  const T most = fold_extreme<Of<Maximum>>(a, n);
  if (!log) {
    exp_of_difference(o, a, most, n);
    const T total = fold_pairwise<Of<Add>>(Plain<T>{o}, n);
    for (int64_t i = 0; i < n; ++i) o[i] = o[i] / total;
    return;
  }
  const int64_t greatest = first_where(a, n, [most](T x) { return x == most; });  // n: it is NaN
  Scratch<T, kChunk> room;
  T* const chunk = room;
  T total = 0,
    lost = 0;  // one rounding for each chunk of a long line would be more than the bound of law 153
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    exp_of_difference(chunk, a + i, most, count);
    if (i <= greatest && greatest < i + count) chunk[greatest - i] = 0;
    const T part = fold_block<Of<Add>>(Plain<T>{chunk}, count), sum = total + part;
    lost += total < part ? (part - sum) + total : (total - sum) + part;
    total = sum;
  }
  const T log_total = std::log1p(total + lost) + (most - most);  // NaN where the greatest is infinite
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = (a[i] - most) - log_total;
}

}  // namespace

std::span<const Folds> simd_folds() {
  static constexpr auto kFoldLines = folds_of_rows<SimdRun, float, double, int32_t, int64_t>();
  return kFoldLines;
}

ArgmaxRowFn find_argmax(DType dtype) {
  switch (dtype) {
    case DType::F32: return argmax_row<float>;
    case DType::F64: return argmax_row<double>;
    case DType::I32: return argmax_row<int32_t>;
    case DType::I64: return argmax_row<int64_t>;
    default: return nullptr;
  }
}

LayerNormRowFn find_layer_norm(DType dtype) {
  return dtype == DType::F32 ? layer_norm_row<float> : dtype == DType::F64 ? layer_norm_row<double> : nullptr;
}

SoftmaxRowFn find_softmax(DType dtype) {
  return dtype == DType::F32 ? softmax_row<float> : dtype == DType::F64 ? softmax_row<double> : nullptr;
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
