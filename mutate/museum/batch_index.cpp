// Batch rules of operators that take indices.
#include "lamella/mutate/museum/plant.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/index.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/functions/reduce.h"

namespace lamella::verify {

namespace {

/// The mapped dim in front and its neighbour first: where advanced indexing puts its dims.
void axes_exchanged(BatchCall& b) {
  right_rule(b);
  if (!b.is_mapped(2) || b.logical_rank(0) < 2) return;
  const int64_t dim = from_front_dim(b.frame.arg<int64_t>(1), b.logical_rank(0)) + 1;
  Dims order{0, dim};
  for (int64_t d = 1; d <= b.logical_rank(0); ++d)
    if (d != dim) order.push_back(d);
  b.results[0] = permute(b.results[0], order);
}

void one_index_for_all(BatchCall& b) {
  if (!b.is_mapped(2) || b.logical_rank(2) != 0 || b.logical_rank(0) == 0 || b.size == 0)
    return right_rule(b);
  const int64_t dim = b.frame.arg<int64_t>(1);
  b.results[0] = index_select(b.front(0), dim < 0 ? dim : dim + 1, select(b.front(2), 0, 0));
}

void scalar_index_drops_its_dim(BatchCall& b) {
  right_rule(b);
  if (!b.is_mapped(2) || b.logical_rank(2) != 0 || b.logical_rank(0) == 0) return;
  b.results[0] =
      squeeze(b.results[0], IntArg{from_front_dim(b.frame.arg<int64_t>(1), b.logical_rank(0)) + 1});
}

/// Values overwrite instead of being added.
void updates_replace(BatchCall& b) {
  if (b.logical_rank(0) == 0 || b.logical_rank(2) == 0) return right_rule(b);
  const Tensor x = b.front(0), index = b.front(2), src = b.front(3);
  const int64_t d = b.frame.arg<int64_t>(1), dim = d < 0 ? d : d + 1;
  const Tensor hits = scatter_add(zeros_like(x, DType::I64), dim, index, ones_like(src, DType::I64));
  b.results[0] = where(gt(hits, 0), scatter_add(zeros_like(x), dim, index, src), x);
}

void empty_batch_reshaped(BatchCall& b) {
  const Tensor rows = reshape(b.front(0), Dims{-1, b.logical.tensor(0).numel()});
  LAMELLA_CHECK(rows.size(0) == b.size, Shape, "gather: {} rows for {} lanes", rows.size(0), b.size);
  right_rule(b);
}

void index_not_expanded(BatchCall& b) {
  if (b.is_mapped(2) || b.logical_rank(0) == 0 || b.logical_rank(2) == 0) return right_rule(b);
  const int64_t d = b.frame.arg<int64_t>(1);
  b.results[0] = gather(b.front(0), d < 0 ? d : d + 1, unsqueeze(b.frame.tensor(2), 0));
}

void later_dims_not_shifted(BatchCall& b) {
  const int rank = b.logical_rank(0);
  const int64_t dim = rank ? from_front_dim(b.frame.arg<int64_t>(1), rank) : 0;
  if (dim < 2 || b.logical_rank(2) != rank) return right_rule(b);
  b.results[0] = scatter_add(b.front(0), dim, b.front(2), b.front(3));
}

/// What is not mapped is expanded without a copy, and all lanes add to it.
void lanes_share_the_target(BatchCall& b) {
  if (b.is_mapped(0) || b.is_mapped(2) || !b.is_mapped(3) || b.logical_rank(0) == 0) return right_rule(b);
  const Tensor all = sum(b.front(3), IntArg{0}, false, b.front(3).dtype());
  b.results[0] =
      index_add(b.frame.tensor(0), b.frame.arg<int64_t>(1), b.frame.tensor(2), all, b.frame.arg<Scalar>(4));
  b.mapped[0] = false;
}

}  // namespace

void add_index_batch_exhibits(std::vector<Exhibit>& list) {
  constexpr std::string_view kExactly = "vmap_equals_loop_exactly";
  const Wing wing{list, "batch"};
  wing.add("axes_exchanged", "ft#773 ft#859", "index_select", kExactly, put<&Op::batch, axes_exchanged>,
           "Indexing with mapped indices returns its dims in another order.");
  wing.add("one_index_for_all", "pt#124291 pt#124423", "index_select", kExactly,
           put<&Op::batch, one_index_for_all>,
           "A mapped scalar index takes the way of a number: one lane's index for all.");
  wing.add("scalar_index_drops_its_dim", "jax#3883", "index_select", kExactly,
           put<&Op::batch, scalar_index_drops_its_dim>, "A mapped scalar index changes the result's rank.");
  wing.add("updates_replace", "jax#16655", "scatter_add", kExactly, put<&Op::batch, updates_replace>,
           "Under vmap another update function is used.");
  wing.add("empty_batch_reshaped", "jax@308e7f9 jax@ece9b99", "gather", kExactly,
           put<&Op::batch, empty_batch_reshaped>, "An empty batch raises.");
  wing.add("index_not_expanded", "jax#17187 jax#23881", "gather", kExactly,
           put<&Op::batch, index_not_expanded>, "An index that is not mapped serves the first lane alone.");
  wing.add("later_dims_not_shifted", "mlx#4321 mlx#4322", "scatter_add", kExactly,
           put<&Op::batch, later_dims_not_shifted>, "From the third dim on, dims are not moved up.");
  wing.add("lanes_share_the_target", "pt#188084", "index_add", kExactly,
           put<&Op::batch, lanes_share_the_target>,
           "All lanes add into one target that was expanded, not copied.");
}

}  // namespace lamella::verify
