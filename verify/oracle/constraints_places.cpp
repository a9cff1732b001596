// Constraints of views, of what writes into them, of joining, and of indexing.
#include <algorithm>

#include "lamella/verify/oracle/constraints_call.h"

namespace lamella::verify {

namespace {

/// torch.Tensor.view: as many elements, one -1 at most, which must be determined. The sizes meant, if so.
std::optional<Dims> meant(Questioned& q) {
  const Tensor x = q.tensor("x");
  Dims size = q.integers("size");
  long double known = 1, span = 1;
  int unknown = -1;
  bool wrong = false;
  for (int d = 0; d < size.size(); ++d) {
    wrong |= size[d] < -1 || (size[d] == -1 && unknown >= 0);
    if (size[d] == -1) unknown = d;
    else known *= static_cast<long double>(size[d]);
    span *= static_cast<long double>(std::max<int64_t>(size[d], 1));
  }
  const long double elements = static_cast<long double>(x.numel());
  if (!wrong && unknown >= 0) {
    const bool divides =
        elements == 0 || (known <= elements && x.numel() % std::max<int64_t>(int64_t(known), 1) == 0);
    wrong = known == 0 || !divides;
    if (!wrong) size[unknown] = int64_t(elements / known);
  } else if (!wrong) {
    wrong = known != elements;
  }
  if (span > 0x1p58L) q.object({kShape, ErrorCode::Overflow}, {"size"});
  else if (wrong) q.object({kShape}, {"size"});
  if (wrong || span > 0x1p58L) return std::nullopt;
  return size;
}

void same_elements(Questioned& q) { (void)meant(q); }

/// Whether strides exist that walk x's memory as x's elements lie in row-major order: found by walking.
void without_a_copy(Questioned& q) {
  const std::optional<Dims> size = meant(q);
  const Tensor x = q.tensor("x");
  if (!size || x.numel() == 0) return;
  const std::vector<int64_t> places = offsets_of(x.sizes(), x.strides(), 0);
  Dims strides(size->size());
  int64_t step = 1;
  for (int d = size->size() - 1; d >= 0; --d) {
    strides[d] = (*size)[d] > 1 ? places[size_t(step)] : 0;
    step *= (*size)[d];
  }
  if (offsets_of(*size, strides, 0) != places) q.object({kShape}, {"size"});
}

/// torch.Tensor.expand: a size for every dim of x, -1 keeps one; new dims in front.
void widened(Questioned& q) {
  const Tensor x = q.tensor("x");
  const Dims size = q.integers("size");
  const int added = size.size() - x.rank();
  if (added < 0) return q.object({kShape}, {"size"});
  long double span = 1;
  for (int d = 0; d < size.size(); ++d) {
    const int64_t s = size[d];
    if (s < -1 || (s == -1 && d < added)) q.object({kShape}, {"size"});
    else if (d >= added && s != -1 && x.size(d - added) != 1 && s != x.size(d - added))
      q.object({ErrorCode::Broadcast}, {"size", "x"});
    span *= static_cast<long double>(std::max<int64_t>(s, 1));
  }
  if (span > 0x1p58L) q.object({ErrorCode::Overflow}, {"size"});
}

void all_dims(Questioned& q) {
  if (q.integers("dims").size() != q.tensor("x").rank()) q.object({kShape}, {"dims"});
}

/// torch.select: -size <= index < size.
void selects(Questioned& q) {
  const Tensor x = q.tensor("x");
  const std::optional<int> at = place(q.integer("dim"), x.rank());
  if (!at || x.rank() == 0) return;
  const int64_t index = q.integer("index"), size = x.size(*at);
  if (index >= size || index < -size) q.object({kIndex}, {"index"});
}

void different_dims(Questioned& q) {
  const int rank = q.tensor("x").rank();
  if (rank < 2) q.object({kShape}, {"x"});
  const std::optional<int> a = place(q.integer("dim1"), rank), b = place(q.integer("dim2"), rank);
  if (a && b && a == b) q.object({kShape}, {"dim1", "dim2"});
}

/// What the writes below replace of x: sizes of the part, counted one index after another.
std::optional<Dims> selected_part(Questioned& q) {
  Dims part(q.tensor("x").sizes());
  const std::optional<int> at = place(q.integer("dim"), part.size());
  if (!at || part.empty()) return std::nullopt;
  part.erase(*at);
  return part;
}
std::optional<Dims> sliced_part(Questioned& q) {
  Dims part(q.tensor("x").sizes());
  const std::optional<int> at = place(q.integer("dim"), part.size());
  const int64_t step = q.integer("step");
  if (!at || part.empty() || step <= 0) return std::nullopt;
  const int64_t size = part[*at];
  const auto bound = [&](Name name, int64_t otherwise) {
    if (!q.given(name)) return otherwise;
    const int64_t v = q.integer(name);
    return v >= size ? size : v >= 0 ? v : v < -size ? 0 : v + size;
  };
  int64_t count = 0;
  for (__int128 i = bound("start", 0); i < bound("end", size); i += step) ++count;
  part[*at] = count;
  return part;
}
std::optional<Dims> diagonal_part(Questioned& q) {
  Dims part(q.tensor("x").sizes());
  const std::optional<int> row = place(q.integer("dim1"), part.size()),
                           column = place(q.integer("dim2"), part.size());
  if (!row || !column || row == column || part.size() < 2) return std::nullopt;
  const int64_t rows = part[*row], columns = part[*column];
  int64_t count = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const __int128 j = __int128(i) + q.integer("offset");
    count += j >= 0 && j < columns;
  }
  part.erase(std::max(*row, *column));
  part.erase(std::min(*row, *column));
  part.push_back(count);
  return part;
}

/// torch.select_scatter and its like: src has the sizes of the part. It is copied in, and as numpy.copyto
/// (casting="same_kind", its default) has it nothing of a higher kind is: no imaginary part is lost.
Constraint replaces(std::optional<Dims> (*part_of)(Questioned&)) {
  return [=](Questioned& q) {
    const std::optional<Dims> part = part_of(q);
    const Tensor x = q.tensor("x"), src = q.tensor("src");
    if (part && !std::ranges::equal(src.sizes(), Ints(*part))) q.object({kShape}, {"src"});
    if (kind_of(src.dtype()) > kind_of(x.dtype())) q.object({ErrorCode::DType}, {"src"});
  };
}

void positive_step(Questioned& q) {
  if (q.integer("step") <= 0) q.object({kValue}, {"step"});
}

/// torch.cat: equal sizes except along dim; tensors of sizes [0] join with anything.
void joins(Questioned& q) {
  const Tensors tensors = q.list("tensors");
  if (tensors.empty()) return q.object({kValue}, {"tensors"});
  const Tensor* first = nullptr;
  for (const Tensor& t : tensors) {
    if (t.rank() == 0) return q.object({kShape}, {"tensors"});
    if (!first && !(t.rank() == 1 && t.size(0) == 0)) first = &t;
  }
  const std::optional<int> at = place(q.integer("dim"), first ? first->rank() : 1);
  if (!at) q.object({ErrorCode::DimOutOfRange}, {"dim"});
  for (const Tensor& t : tensors) {
    if (t.rank() == 1 && t.size(0) == 0) continue;
    if (t.rank() != first->rank()) return q.object({kShape}, {"tensors"});
    for (int d = 0; d < t.rank(); ++d)
      if ((!at || d != *at) && t.size(d) != first->size(d)) return q.object({kShape}, {"tensors"});
  }
}

void stacks(Questioned& q) {
  const Tensors tensors = q.list("tensors");
  if (tensors.empty()) return q.object({kValue}, {"tensors"});
  if (!place(q.integer("dim"), tensors[0].rank() + 1)) q.object({ErrorCode::DimOutOfRange}, {"dim"});
  for (const Tensor& t : tensors)
    if (!std::ranges::equal(t.sizes(), tensors[0].sizes())) return q.object({kShape}, {"tensors"});
}

/// torch.split: pieces of one size, or of sizes that add up.
void splits(Questioned& q) {
  const Tensor x = q.tensor("x");
  const std::optional<int> at = place(q.integer("dim"), x.rank());
  const int64_t step = q.integer("split_size");
  const bool empty = at && x.rank() > 0 && x.size(*at) == 0;
  if (step < 0 || (step == 0 && !empty)) q.object({kValue}, {"split_size"});
}
void splits_by_sizes(Questioned& q) {
  const Tensor x = q.tensor("x");
  const std::optional<int> at = place(q.integer("dim"), x.rank());
  if (!at || x.rank() == 0) return;
  __int128 sum = 0;
  bool negative = false;
  for (const int64_t s : q.integers("split_sizes")) sum += s, negative |= s < 0;
  if (negative || sum != x.size(*at)) q.object({kValue}, {"split_sizes"});
}

int64_t size_at(const Tensor& t, int d) { return t.rank() == 0 ? 1 : t.size(d); }
int places_of(const Tensor& t) { return std::max(t.rank(), 1); }

/// Dtypes of indices; torch.gather and torch.index_select take both.
bool indexes(DType d) { return d == DType::I32 || d == DType::I64; }

/// torch.gather: an index as large as x at most, except along dim, with 0 <= entry < size; one without
/// elements has any shape.
Constraint picks(bool writes) {
  return [=](Questioned& q) {
    const Tensor x = q.tensor("x"), index = q.tensor("index");
    const std::optional<int> at = place(q.integer("dim"), x.rank());
    if (index.numel() == 0) {
      if (!is_integer(index.dtype())) q.open("the dtype of an index without elements is documented nowhere");
      return;
    }
    if (!indexes(index.dtype())) q.object({ErrorCode::DType}, {"index"});
    if (places_of(index) != places_of(x)) return q.object({kShape}, {"index"});
    for (int d = 0; d < places_of(x); ++d)
      if (at && d != *at && size_at(index, d) > size_at(x, d)) return q.object({kShape}, {"index"});
    if (writes) {
      const Tensor src = q.tensor("src");
      if (places_of(src) != places_of(index)) return q.object({kShape}, {"src", "index"});
      for (int d = 0; d < places_of(index); ++d)
        if (size_at(index, d) > size_at(src, d)) return q.object({kShape}, {"src", "index"});
    }
    if (!at || !q.sees_values() || !indexes(index.dtype())) return;
    for (const int64_t i : integers_of(index))
      if (i < 0 || i >= size_at(x, *at)) return q.object({kIndex}, {"index"});
  };
}

/// torch.index_select: a list of indices, 0 <= entry < size.
Constraint listed(bool writes) {
  return [=](Questioned& q) {
    const Tensor x = q.tensor("x"), index = q.tensor("index");
    const std::optional<int> at = place(q.integer("dim"), x.rank());
    if (!indexes(index.dtype())) {
      if (index.numel() == 0) q.open("the dtype of an index without elements is documented nowhere");
      else q.object({ErrorCode::DType}, {"index"});
    }
    if (index.rank() > 1) return q.object({kShape}, {"index"});
    if (x.rank() == 0 && index.numel() != 1) q.object({kShape}, {"index", "src"});
    if (!at) return;
    if (writes) {
      Dims wanted(x.sizes());
      if (x.rank() > 0) wanted[*at] = index.numel();
      if (!std::ranges::equal(q.tensor("src").sizes(), Ints(wanted))) q.object({kShape}, {"src"});
    }
    if (!q.sees_values() || !indexes(index.dtype())) return;
    const bool nothing = x.numel() == 0 || (writes && q.tensor("src").numel() == 0);
    for (const int64_t i : integers_of(index))
      if (i < 0 || i >= size_at(x, *at)) {
        if (!nothing) return q.object({kIndex}, {"index"});
        q.open("PyTorch looks at no index where there are no elements to pick");
      }
  };
}

}  // namespace

Rows place_rows() {
  const Constraint dim = one_dim("dim", "x"), dims = has_dims("x", "dim");
  const Constraint both[] = {one_dim("dim1", "x"), one_dim("dim2", "x"), different_dims};
  const Constraint alpha = multiplier("alpha", {"x"});
  return {
      {"view", {without_a_copy}},
      {"reshape", {same_elements}},
      {"expand", {widened}},
      {"squeeze", {distinct_dims("dim", "x")}},
      {"unsqueeze", {new_dim("dim", "x")}},
      {"permute", {all_dims, distinct_dims("dims", "x")}},
      {"transpose", {one_dim("dim0", "x"), one_dim("dim1", "x")}},
      {"select", {dims, dim, selects}},
      {"slice", {dims, dim, positive_step}},
      {"diagonal", {both[0], both[1], both[2]}},
      {"select_scatter", {dims, dim, selects, replaces(selected_part)}},
      {"slice_scatter", {dims, dim, positive_step, replaces(sliced_part)}},
      {"diagonal_scatter", {both[0], both[1], both[2], replaces(diagonal_part)}},
      {"cat", {joins}},
      {"stack", {stacks}},
      {"split", {dims, dim, splits}},
      {"split_with_sizes", {dims, dim, splits_by_sizes}},
      {"gather", {dim, picks(false)}},
      {"scatter_add", {dim, same_dtype("x", "src"), picks(true)}},
      {"index_select", {dim, listed(false)}},
      {"index_add", {dim, same_dtype("x", "src"), listed(true), alpha}},
      {"nonzero", {}},
  };
}

}  // namespace lamella::verify
