// All bodies. A row's place in the list is the number by which executors find its lines.
#pragma once

#include "lamella/kernels/bodies/arithmetic.h"
#include "lamella/kernels/bodies/compare.h"
#include "lamella/kernels/bodies/elementary.h"
#include "lamella/kernels/bodies/folds.h"
#include "lamella/kernels/bodies/rounding.h"

namespace lamella::kernels::LAMELLA_BACKEND {

inline constexpr auto kPointwise = std::tuple_cat(kArithmetic, kElementary, kRounding, kComparisons);
inline constexpr size_t kPointwiseRows = std::tuple_size_v<decltype(kPointwise)>;
inline constexpr size_t kFoldRows = std::tuple_size_v<decltype(kFolds)>;

template <size_t kRow> using BodyOf = decltype(std::get<kRow>(kPointwise).body);
template <size_t kRow> using FoldOf = decltype(std::get<kRow>(kFolds).fold);

/// The row of a body, by its type.
template <class B, size_t kRow = 0> constexpr size_t row_of() {
  if constexpr (std::is_same_v<B, std::remove_const_t<BodyOf<kRow>>>) return kRow;
  else return row_of<B, kRow + 1>();
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
