// Which kernels read each row of core/thresholds.h.
#pragma once

#include <string_view>

#include "lamella/core/thresholds.h"

namespace lamella::kernels {

/// By the rows' names. "pointwise" and "all" stand for many; a ~ says that roundings come in another order on
/// the two sides.
struct ThresholdReaders {
#define LAMELLA_THRESHOLD_READERS(name, usual, lowered, in, what) std::string_view name;
  LAMELLA_THRESHOLDS(LAMELLA_THRESHOLD_READERS)
#undef LAMELLA_THRESHOLD_READERS
};
inline constexpr ThresholdReaders kReaders = {
    .tile =
        "pointwise copy cumsum cumprod softmax~ log_softmax~ sum~ prod~ amax amin nonzero "
        "count_nonzero index_select layer_norm",
    .tile_across = "sum prod amax amin",
    .square = "pointwise copy flip",
    .transposed = "pointwise copy flip",
    .across_rows = "pointwise copy flip",
    .across_columns = "pointwise copy flip",
    .long_run = "pointwise copy flip",
    .short_run = "pointwise",
    .straight = "pointwise",
    .few_terms = "sum~ prod~ amax amin var~ layer_norm~",
    .few_results = "sum~ prod~ amax amin argmax",
    .terms_in_a_row = "sum~ softmax~ log_softmax~",
    .fold_some = "sum~ prod~ amax amin argmax softmax~ log_softmax~",
    .fold_many = "sum~ prod~ amax amin argmax softmax~ log_softmax~",
    .fold_block = "sum~ prod~ amax amin softmax~ log_softmax~ var~ matmul~",
    .complex_fold = "sum~",
    .complex_block = "sum~",
    .lines_across = "cumsum cumprod softmax~ log_softmax~",
    .scans_abreast = "cumsum cumprod",
    .exp_chunk = "log_softmax~",
    .search_block = "log_softmax argmax",
    .located_block = "argmax",
    .located_lines = "argmax",
    .random_block = "rand_uniform rand_normal",
    .radix = "sort",
    .blas = "matmul~",
    .own_product = "matmul~",
    .own_small_product = "matmul~",
    .gemm_packed = "matmul",
    .gemm_packed_rows = "matmul",
    .gemm_tile = "matmul",
    .gemm_depth = "matmul",
    .gemm_rows = "matmul~",
    .gemm_columns = "matmul~",
    .convert_width = "pointwise copy",
    .dot_width = "cholesky",
    .parallel = "all",
    .parallel_near = "all",
    .parallel_tile = "all",
    .shared_out =
        "pointwise copy flip sum prod amax amin argmax cumsum cumprod softmax log_softmax sort "
        "nonzero index_select matmul cholesky rand_uniform rand_normal var",
    .asked_ahead = "sum prod amax amin",
    .shared_caches = "sum prod amax amin",
    .past_caches = "pointwise copy index_select layer_norm",
    .inline_dims = "all",
    .inline_bytes = "all",
    .pooled_bytes = "all",
    .few_tracked = "all",
    .few_waiting = "all",
    .inline_values = "all",
};

}  // namespace lamella::kernels
