// How the oracle reaches elements: an odometer over multi-indices, and one element in or out with any dtypes.
#pragma once

#include <concepts>
#include <utility>
#include <vector>

#include "lamella/core/check.h"
#include "lamella/core/view.h"
#include "lamella/core/visit.h"

namespace lamella::kernels::reference {

// Working types. Arithmetic runs in one of nine types: bool, int64_t and uint64_t for integers of every
// width (wrap() brings a result back into the dtype's range), float (also for f16 and bf16), double, f128,
// c64, c128, c256.

template <class W>
concept Complex = is_complex_type<W>;
template <class W>
concept Floating = is_floating_type<W>;
template <class W>
concept Integer = is_integer_type<W>;
template <class W>
concept Bool = std::same_as<W, bool>;
template <class W>
concept Inexact = Floating<W> || Complex<W>;
template <class W>
concept Real = !Complex<W>;

/// Calls f(type_tag<W>{}) with the working type of a dtype.
template <class F> void visit_working(DType dtype, F&& f) {
  if (is_bool(dtype)) return f(type_tag<bool>{});
  if (is_signed_integer(dtype)) return f(type_tag<int64_t>{});
  if (is_integer(dtype)) return f(type_tag<uint64_t>{});
  switch (dtype) {
    case DType::F64: return f(type_tag<double>{});
    case DType::F128: return f(type_tag<f128>{});
    case DType::C64: return f(type_tag<c64>{});
    case DType::C128: return f(type_tag<c128>{});
    case DType::C256: return f(type_tag<c256>{});
    default: return f(type_tag<float>{});
  }
}

/// The element `offset` elements behind v.data, converted to `compute` (which W is the working type of).
/// Nonzero becomes true, integers wrap, NaN becomes integer 0, other floating values saturate, complex
/// loses its imaginary part.
template <class W> W load(const View& v, int64_t offset, DType compute);

/// The same in the other direction: `value` converted to v.dtype, rounded once.
template <class W> void store(const View& v, int64_t offset, const W& value);

/// Copies one element between views of the same dtype, bit for bit.
void copy_element(const View& to, int64_t to_offset, const View& from, int64_t from_offset);

/// Writes a zero; all bits 0 is zero in every dtype.
void zero_element(const View& to, int64_t offset);

/// An integer result modulo 2^bits of its dtype; anything else as it is.
template <class W> W wrap(const W& value, DType dtype) {
  if constexpr (Integer<W>) {
    const int unused_bits = 64 - 8 * int(itemsize(dtype));
    return W(W(uint64_t(value) << unused_bits) >> unused_bits);
  } else {
    return value;
  }
}

/// Refuses with a DType error.
[[noreturn]] void no_kernel(const char* kernel, DType dtype);

/// As visit_working, for an f whose constraint says which working types it takes; the others are refused.
template <class F> void visit_supported(const char* kernel, DType dtype, F&& f) {
  visit_working(dtype, [&](auto tag) {
    if constexpr (std::invocable<F, decltype(tag)>) f(tag);
    else no_kernel(kernel, dtype);
  });
}

/// Walks every multi-index of `sizes` in row-major order: one for no dims, none when a size is 0.
class Odometer {
 public:
  explicit Odometer(std::vector<int64_t> sizes) : sizes_(std::move(sizes)), index_(sizes_.size(), 0) {
    for (const int64_t size : sizes_) more_ = more_ && size > 0;
  }
  bool more() const { return more_; }
  void next() {
    for (int d = int(sizes_.size()) - 1; d >= 0; --d) {
      if (++index_[d] < sizes_[d]) return;
      index_[d] = 0;
    }
    more_ = false;
  }
  int64_t operator[](int64_t d) const { return index_[size_t(d)]; }
  int64_t offset(const View& v) const {
    LAMELLA_ASSERT(size_t(v.rank) == index_.size());
    int64_t sum = 0;
    for (int d = 0; d < v.rank; ++d) sum += index_[d] * v.strides[d];
    return sum;
  }

 private:
  std::vector<int64_t> sizes_, index_;
  bool more_ = true;
};

inline std::vector<int64_t> sizes_of(const View& v) { return {v.sizes, v.sizes + v.rank}; }

/// The first `rank` dims of a view, and the dims from `rank` on.
inline View leading(const View& v, int64_t rank) { return {v.data, v.dtype, int(rank), v.sizes, v.strides}; }
inline View trailing(const View& v, int64_t rank) {
  return {v.data, v.dtype, int(v.rank - rank), v.sizes + rank, v.strides + rank};
}

/// A view is a set of lines along a dim; a rank-0 view is one line of length 1.
inline int64_t length_along(const View& v, int64_t dim) { return v.rank == 0 ? 1 : v.sizes[dim]; }
inline int64_t stride_along(const View& v, int64_t dim) { return v.rank == 0 ? 0 : v.strides[dim]; }
/// The sizes of the set of lines: `dim` has size 1.
inline std::vector<int64_t> sizes_across(const View& v, int64_t dim) {
  std::vector<int64_t> sizes = sizes_of(v);
  if (v.rank > 0) sizes[size_t(dim)] = 1;
  return sizes;
}

}  // namespace lamella::kernels::reference
