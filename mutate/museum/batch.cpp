// Batch rules that lose dims, dtypes, attributes or lanes.
#include <algorithm>
#include <cmath>

#include "lamella/mutate/museum/plant.h"
#include "lamella/ops/functions/along_dim.h"
#include "lamella/ops/functions/contract.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/pointwise_other.h"

namespace lamella::verify {

namespace {

void lanes_squeezed(BatchCall& b) {
  const Tensor x = b.front(0);
  if (b.frame.none(1) && b.size == 1) b.results[0] = squeeze(x);
  else right_rule(b);
}

/// Mapped operands to the front, and no dims inserted where ranks differ.
void ranks_not_aligned(BatchCall& b) {
  Values args = own(b.frame);
  for (const uint8_t i : b.frame.op->tensor_params)
    if (b.is_mapped(i)) args[i] = b.front(i);
  b.results[0] = call_boxed(*b.frame.op, args)[0];
}

void first_must_be_mapped(BatchCall& b) {
  const Tensor a = to_front(b.frame.tensor(0), b.dims[0]);
  b.results[0] = matmul(a, b.is_mapped(1) ? b.front(1) : b.frame.tensor(1));
}

void second_not_moved(BatchCall& b) {
  rule_with_dims(b, [](const BatchCall& c, int i) { return i == 1 && c.is_mapped(1) ? 0 : c.dims[i]; });
}

/// Lanes and matrices of a batch as one longer batch.
void all_assumed_mapped(BatchCall& b) {
  const auto folded = [&](int i) {
    const Tensor t = b.is_mapped(i) ? b.front(i) : b.frame.tensor(i);
    return reshape(t, Dims{b.size * b.logical.tensor(i).size(0), t.size(-2), t.size(-1)});
  };
  const Tensor y = bmm(folded(0), folded(1));
  b.results[0] = reshape(y, Dims{b.size, b.logical.tensor(0).size(0), y.size(-2), y.size(-1)});
}

void shifted_twice(BatchCall& b) {
  const Tensor& x = b.frame.tensor(0);
  const int rank = b.logical_rank(0);
  if (rank < 2 || !(x.keys() >> kFirstLevelKey)) return right_rule(b);
  Values args = own(b.frame);
  args[0] = b.front(0);
  args[1] = 1 + (from_front_dim(b.frame.arg<int64_t>(1), rank) + 1) % rank;
  b.results[0] = call_boxed(*b.frame.op, args)[0];
}

void lanes_of_the_wrong_argument(BatchCall& b) {
  const Tensor& self = b.frame.tensor(0);
  const int64_t lanes = self.rank() > 0 ? self.size(std::max(b.dims[0], 0)) : 1;
  Dims sizes(b.logical.tensor(0).sizes());
  sizes.insert(0, lanes);
  const Tensor target = b.is_mapped(0) ? b.front(0) : expand(self, sizes);
  b.results[0] = copy(target, b.front_padded(1, b.logical_rank(0)));
}

/// The bounds applied one after the other, by operators with another convention at ties.
void decomposed(BatchCall& b) {
  int rank = 0;
  for (const int i : {0, 1, 2})
    if (!b.frame.none(i) && b.frame.tensor(i).defined()) rank = std::max(rank, b.logical_rank(i));
  Tensor y = b.front_padded(0, rank);
  if (!b.frame.none(1)) y = maximum(y, b.front_padded(1, rank));
  if (!b.frame.none(2)) y = minimum(y, b.front_padded(2, rank));
  b.results[0] = y;
}

/// A scalar that is not mapped is expanded, and then promotes as a tensor does.
void scalars_get_lanes(BatchCall& b) {
  const int scalar = b.is_mapped(0) ? 1 : 0, other = 1 - scalar;
  if (b.is_mapped(scalar) || b.logical_rank(scalar) > 0) return right_rule(b);
  Values args = own(b.frame);
  args[other] = b.front(other);
  Dims sizes(size_t(b.logical_rank(other)) + 1, 1);
  sizes[0] = b.size;
  args[scalar] = expand(b.frame.tensor(scalar), sizes);
  b.results[0] = call_boxed(*b.frame.op, args)[0];
}

/// A promotion of its own: a lane's scalar takes the other operand's dtype, of whatever category it is.
void promotes_by_itself(BatchCall& b) {
  Values args = own(b.frame);
  const int rank = std::max(b.logical_rank(0), b.logical_rank(1));
  for (const int i : {0, 1}) {
    if (!b.is_mapped(i)) continue;
    const Tensor t = b.front_padded(i, rank);
    args[i] = b.logical_rank(i) < rank && b.logical_rank(i) == 0 ? to(t, b.frame.tensor(1 - i).dtype()) : t;
  }
  b.results[0] = call_boxed(*b.frame.op, args)[0];
}

void blocks_of_two(BatchCall& b) {
  right_rule(b);
  if (b.size < 3 || b.size % 2 == 0) return;
  const Tensor whole = slice(b.results[0], 0, 0, b.size - 1);
  b.results[0] = cat({whole, zeros_like(slice(b.results[0], 0, 0, 1))}, 0);
}

void padding_is_normalised(BatchCall& b) {
  right_rule(b);
  if (b.size % 4 != 3) return;
  const Tensor whole = slice(b.results[0], 0, 0, b.size - 1), last = slice(b.results[0], 0, 0, 1);
  b.results[0] = cat({whole, full_like(last, NAN)}, 0);
}

void unmapped_entries_as_they_are(BatchCall& b) {
  Tensors all;
  const TensorSpan list = b.frame.tensors(0);
  for (size_t k = 0; k < list.size(); ++k) {
    const int d = b.list_dims[0][k];
    all.push_back(d == BatchCall::kNotMapped ? list[k] : to_front(list[k], d));
  }
  const int64_t dim = b.frame.arg<int64_t>(1);
  b.results[0] = cat(all, dim < 0 ? dim : dim + 1);
}

void order_dropped(BatchCall& b) {
  if (b.logical_rank(0) == 0) return right_rule(b);
  const int64_t dim = b.frame.arg<int64_t>(1);
  const std::array<Tensor, 2> sorted = sort(b.front(0), dim < 0 ? dim : dim + 1);
  b.results[0] = sorted[0];
  b.results[1] = sorted[1];
}

Geometry dense_in_lanes(const Frame& f, const Geometry& x) {
  Geometry g = right_of(*f.op).view(f, x);
  if (f.tensor(0).keys() >> kFirstLevelKey && x.offset == 0) g.strides = contiguous_strides(g.sizes);
  return g;
}

void rank_not_checked(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  if (!(x.keys() >> kFirstLevelKey) || x.rank() >= 2) return right_of(*f.op).infer(f, out);
  out.compute = x.dtype();
  out.ints = {f.arg<int64_t>(1)};
  out.outs.push_back({x.sizes(), x.dtype()});
}

}  // namespace

void add_batch_exhibits(std::vector<Exhibit>& list) {
  const Wing wing{list, "batch"};
  constexpr std::string_view kTypes = "promotes_by_table";
  constexpr std::string_view kLoop = "vmap_equals_loop", kSubsets = "vmap_subsets";
  wing.add("lanes_squeezed", "ft#27 pt#91041 pt#91109", "squeeze", "vmap_sizes",
           put<&Op::batch, lanes_squeezed>, "squeeze drops the mapped dim when there is one lane.");
  wing.add("rank_not_checked", "pt#91403 pt#91404 pt#83017", "triu", "vmap_status",
           put<&Op::infer, rank_not_checked>,
           "Under vmap an operator accepts examples that it refuses by themselves.");
  wing.add("first_must_be_mapped", "ft#417 ft#597", "mm", kSubsets, put<&Op::batch, first_must_be_mapped>,
           "A product raises when the second operand alone is mapped.");
  wing.add("second_not_moved", "pt#176432", "slice_scatter", kLoop, put<&Op::batch, second_not_moved>,
           "A rule moves the mapped dim of one operand and uses the other as it came.");
  wing.add("ranks_not_aligned", "jax#6096", "where", kSubsets, put<&Op::batch, ranks_not_aligned>,
           "With some operands mapped, ranks are no longer aligned.");
  wing.add("all_assumed_mapped", "jax@3b20cce", "bmm", kSubsets, put<&Op::batch, all_assumed_mapped>,
           "A batch rule assumes that every operand is mapped.");
  wing.add("shifted_twice", "jax#2960 jax#3164", "cumsum", "vmap_levels_swap", put<&Op::batch, shifted_twice>,
           "A dim is moved up twice when vmap is nested.");
  wing.add("lanes_of_the_wrong_argument", "jax#19978", "copy", kSubsets,
           put<&Op::batch, lanes_of_the_wrong_argument>,
           "The number of lanes is read from an argument that is not mapped.");
  wing.add("decomposed", "jax#1249 jax#2531", "clamp", "derivatives_per_lane", put<&Op::batch, decomposed>,
           "Under vmap an operator's own derivative is not used.");
  wing.add("scalars_get_lanes", "pt#43218", "mul", kTypes, put<&Op::batch, scalars_get_lanes>,
           "Under vmap a scalar is expanded and widens the result's dtype.");
  wing.add("promotes_by_itself", "pt#112317", "sub", kTypes, put<&Op::batch, promotes_by_itself>,
           "A batch rule has a promotion of its own, and it is another one.");
  wing.add("blocks_of_two", "jax#27591", "sum", kLoop, put<&Op::batch, blocks_of_two>,
           "The result depends on the number of lanes: a remainder is not computed.");
  wing.add("padding_is_normalised", "jax#6181", "softmax", kLoop, put<&Op::batch, padding_is_normalised>,
           "NaN appears at some batch sizes only.");
  wing.add("unmapped_entries_as_they_are", "mlx#1599 mlx#1955", "cat", kLoop,
           put<&Op::batch, unmapped_entries_as_they_are>,
           "Joining mapped with unmapped tensors forgets to expand the latter.");
  wing.add("order_dropped", "mlx#4116 mlx#4138", "sort", kLoop, put<&Op::batch, order_dropped>,
           "A batch rule drops one of the operator's attributes.");
  wing.add("dense_in_lanes", "pt#81049 pt#78358", "permute", kLoop, put<&Op::view, dense_in_lanes>,
           "Strides under vmap are not those of the plain call.");
}

}  // namespace lamella::verify
