// Subscripts: lists of indices as views, and masks as writes of all that they cover.
#include "lamella/ops/subscript.h"

#include <algorithm>

namespace lamella {

namespace {
/// What stands in error texts for an entry of the list.
Argument entry(size_t at) { return {format("indices[{}]", at)}; }

/// How many dims of x the list takes, Ellipsis aside. Errors: undefined, dim_out_of_range, value.
int taken_dims(const Tensor& x, std::span<const Index> indices) {
  LAMELLA_CHECK(x.defined(), Undefined, "subscript: x is an undefined tensor; expected a defined one");
  int dims = 0, masks = 0, rests = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Index::Any& any = indices[i].any();
    if (const Tensor* mask = std::get_if<Tensor>(&any)) {
      LAMELLA_CHECK(mask->defined(), Undefined,
                    "subscript: {} is an undefined tensor; expected a mask: a defined tensor of bool",
                    entry(i));
      LAMELLA_CHECK(is_bool(mask->dtype()), DType,
                    "subscript: {} is {}, expected bool, a mask: index_select and gather take tensors of "
                    "integers",
                    entry(i), *mask);
      LAMELLA_CHECK(++masks == 1, Value,
                    "subscript: {} is a second mask; expected one at most: logical_and combines them",
                    entry(i));
    }
    if (std::holds_alternative<EllipsisIndex>(any))
      LAMELLA_CHECK(++rests == 1, Value, "subscript: {} is a second Ellipsis; expected one at most",
                    entry(i));
    dims += indices[i].dims();
  }
  LAMELLA_CHECK(dims <= x.rank(), DimOutOfRange,
                "subscript: indices are for {} dims of x: {}; expected at most {}", dims, x, x.rank());
  return dims;
}
}  // namespace

int Index::dims() const {
  if (const Tensor* mask = std::get_if<Tensor>(&any_)) return mask->rank();
  return std::holds_alternative<int64_t>(any_) || std::holds_alternative<Slice>(any_);
}

Subscript Tensor::operator[](std::initializer_list<Index> indices) const { return {*this, indices}; }
Subscript Tensor::operator[](const Index& index) const { return {*this, {&index, 1}}; }

/// Everything is checked against x, so that texts speak of what the caller has; views of views refuse
/// nothing.
Subscript::Subscript(const Tensor& x, std::span<const Index> indices) : view_(x) {
  const int taken = taken_dims(x, indices), rest = x.rank() - taken;
  int dim = 0;    // of view_
  int dim_x = 0;  // of x
  for (size_t i = 0; i < indices.size(); ++i) {
    const Index::Any& any = indices[i].any();
    if (const int64_t* index = std::get_if<int64_t>(&any)) {
      const int64_t size = x.size(dim_x);
      LAMELLA_CHECK(-size <= *index && *index < size, IndexOutOfRange,
                    "subscript: {} = {} is out of range for dim {} of x: {}; expected {} <= index < {}",
                    entry(i), *index, dim_x, x, -size, size);
      view_ = select(view_, dim, *index);
    } else if (const Slice* part = std::get_if<Slice>(&any)) {
      LAMELLA_CHECK(part->step > 0, Value, "subscript: {} is a Slice of step = {}, expected step > 0",
                    entry(i), part->step);
      const bool whole = !part->start && !part->stop && part->step == 1;
      if (!whole) view_ = slice(view_, dim, part->start, part->stop, part->step);
      ++dim;
    } else if (std::holds_alternative<std::nullopt_t>(any)) {
      view_ = unsqueeze(view_, dim++);
    } else if (const Tensor* mask = std::get_if<Tensor>(&any)) {
      const Ints covered = x.sizes().subspan(size_t(dim_x), size_t(mask->rank()));
      LAMELLA_CHECK(std::ranges::equal(covered, mask->sizes()), Shape,
                    "subscript: {} is {}, expected the sizes {} of x: {} from dim {} on", entry(i), *mask,
                    Dims(covered), x, dim_x);
      mask_ = *mask, dim_ = dim;
      dim += mask->rank();
    } else {
      dim += rest, dim_x += rest;
    }
    dim_x += indices[i].dims();
  }
}

/// Positions of the mask's true elements among all, in row-major order, i64[count].
Tensor Subscript::selected() const {
  try {
    return squeeze(nonzero(lamella::reshape(mask_, {mask_.numel()})), IntArg({1}));
  } catch (const Error& e) {
    fail(e.code(),
         "subscript: mask is {}, and how many elements it selects has to be known ({}: {}); expected a mask "
         "with values, equally many of them true in each lane of vmap: where(mask, x, y) keeps the shape",
         mask_, e.op(), e.text());
  }
}

Tensor Subscript::read() const {
  if (!mask_.defined()) return view_;
  Dims sizes(view_.sizes());
  for (int d = 0; d < mask_.rank(); ++d) sizes.erase(dim_);
  sizes.insert(dim_, mask_.numel());
  return index_select(lamella::reshape(view_, sizes), dim_, selected());
}

/// The mask with dims of size 1 behind it, so that it broadcasts to view_.
Tensor Subscript::over_view() const {
  Dims sizes(mask_.sizes());
  sizes.resize(view_.rank() - dim_, 1);
  return lamella::reshape(mask_, sizes);
}

/// Of a value with an entry for each selected element along `dim`: those of all elements that the mask
/// covers. Elements that are not selected get one of the others, or nothing reads them.
Tensor Subscript::spread(const Tensor& value, int dim) const {
  const int64_t count = selected().numel();
  LAMELLA_CHECK(value.size(dim) == count, Broadcast,
                "subscript: value is {}, expected size {} or 1 at dim {}: as many as mask selects", value,
                count, dim);
  Dims sizes(value.sizes());
  sizes[dim] = mask_.numel();
  if (count == 0) return new_zeros(value, sizes);
  const Tensor counted = cumsum(lamella::to(lamella::reshape(mask_, {mask_.numel()}), DType::I64), 0);
  return index_select(value, dim, maximum(counted - 1, 0));
}

/// A value that broadcasts to what read() gives, as one that broadcasts to view_.
Tensor Subscript::lined_up(const Tensor& value) const {
  const int behind = view_.rank() - dim_ - mask_.rank(), at = value.rank() - behind - 1;
  const auto fits = [&](int d) {  // counted from the end, as broadcasting does
    const int64_t size = value.size(value.rank() - 1 - d);
    return size == 1 || d == behind ||
           size == view_.size(view_.rank() - 1 - (d < behind ? d : d - 1 + mask_.rank()));
  };
  bool all = at <= dim_;
  for (int d = 0; all && d < value.rank(); ++d) all = fits(d);
  LAMELLA_CHECK(
      all, Broadcast,
      "subscript: value is {}, expected sizes that broadcast to {} with the {} dims of mask, from dim {} "
      "on, as one",
      value, view_, mask_.rank(), dim_);
  if (at < 0) return value;  // also what stands for a number, and must stay it to promote weakly
  const bool each = value.size(at) != 1;
  Dims sizes(value.sizes());
  sizes.erase(at);
  for (int d = 0; d < mask_.rank(); ++d) sizes.insert(at + d, each ? mask_.size(d) : 1);
  return lamella::reshape(each ? spread(value, at) : value, sizes);
}

Subscript& Subscript::operator=(const Scalar& value) {
  if (!mask_.defined()) fill_(view_, value);
  else copy_(view_, where(over_view(), new_full(view_, {}, value), view_));
  return *this;
}

Subscript& Subscript::operator=(const Tensor& value) {
  LAMELLA_CHECK(value.defined(), Undefined,
                "subscript: value is an undefined tensor; expected a defined one");
  const int rank = view_.rank() - (mask_.defined() ? mask_.rank() - 1 : 0);
  Tensor fitted = value;
  while (fitted.rank() > rank && fitted.size(0) == 1) fitted = select(fitted, 0, 0);
  if (!mask_.defined()) {
    copy_(view_, fitted);
  } else {
    fitted = lined_up(fitted);
    if (fitted.dtype() != view_.dtype() || fitted.device() != view_.device())
      fitted =
          lamella::to(fitted, view_.dtype(), view_.device());  // first: where would promote, and round view_
    copy_(view_, where(over_view(), fitted, view_));
  }
  return *this;
}

/// What the mask leaves out is computed, too, and hidden by where: none of its derivatives come through,
/// whatever stands there (NOTE: [hidden elements] in transforms/tapes/hidden.h).
Subscript& Subscript::change(const Tensor& value, InPlace f) {
  LAMELLA_CHECK(value.defined(), Undefined,
                "subscript: value is an undefined tensor; expected a defined one");
  if (!mask_.defined()) {
    f(view_, value);
    return *this;
  }
  const Tensor part = clone(view_);
  f(part, lined_up(value));
  copy_(view_, where(over_view(), part, view_));
  return *this;
}

Subscript& Subscript::operator+=(const Tensor& value) {
  return change(value, [](const Tensor& part, const Tensor& by) { add_(part, by); });
}
Subscript& Subscript::operator-=(const Tensor& value) {
  return change(value, [](const Tensor& part, const Tensor& by) { sub_(part, by); });
}
Subscript& Subscript::operator*=(const Tensor& value) {
  return change(value, [](const Tensor& part, const Tensor& by) { mul_(part, by); });
}
Subscript& Subscript::operator/=(const Tensor& value) {
  return change(value, [](const Tensor& part, const Tensor& by) { div_(part, by); });
}

}  // namespace lamella
