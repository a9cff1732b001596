// x[{1, Slice{0, -1, 2}, None, Ellipsis, mask}]: a part of a tensor by a list of indices, read and written.
#pragma once

#include <concepts>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "lamella/ops/functions.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Every step-th index from start up to, not including, stop, as Python's start:stop:step. An absent end is
/// that of the dim, a negative one counts from there, and what lies outside of the dim is left out.
struct Slice {
  std::optional<int64_t> start = {}, stop = {};
  int64_t step = 1;  ///< positive
};
struct EllipsisIndex {};
/// As an index: a new dim of size 1. As an end of a Slice: absent.
inline constexpr std::nullopt_t None = std::nullopt;
/// As an index, once at most: all dims that the other indices leave, whole. Where it is missing it comes
/// last.
inline constexpr EllipsisIndex Ellipsis{};

/// One entry of a list of indices: an integer (of a dim, which is dropped; negative from the end), a Slice,
/// None, Ellipsis, or a mask: a bool tensor whose sizes are those of the dims at its place. A bool that is no
/// tensor does not compile.
class Index {
 public:
  using Any = std::variant<int64_t, Slice, std::nullopt_t, EllipsisIndex, Tensor>;
  template <std::integral T> Index(T i)
      : any_(std::in_range<int64_t>(i) ? int64_t(i) : std::numeric_limits<int64_t>::max()) {}
  Index(bool) = delete;
  Index(Slice slice) : any_(slice) {}
  Index(std::nullopt_t none) : any_(none) {}
  Index(EllipsisIndex rest) : any_(rest) {}
  Index(Tensor mask) : any_(std::move(mask)) {}
  const Any& any() const { return any_; }
  /// How many dims of x it takes; those of Ellipsis are for the list to say.
  int dims() const;

 private:
  Any any_;
};

/// NOTE: [subscripts] What x[{...}] gives: a place in x. Read as a Tensor, which it converts to, it is a view
/// of x, made by select, slice and unsqueeze (x itself where no index asks for anything); with a mask it is a
/// copy of the elements that the mask selects, in row-major order along one dim where the mask stood. Written
/// by = += -= *= /= it changes x, as a write to that view does: seen by whoever shares x's memory, and
/// recorded by every level. Everything goes through operators, so all transforms apply.
///
/// A value that is written broadcasts to the place and is converted to x's dtype as by copy_ (a number: as by
/// fill_); = drops leading dims of size 1. Through a mask all of its dims are written, with what was there
/// where it is false: sizes do not depend on values, so lanes of vmap may have a mask each. Only a value with
/// one entry for each selected element, and reading, have to know how many those are.
///
/// Errors: undefined; dim_out_of_range for more indices than dims; index_out_of_range; value for a step below
/// 1, a second Ellipsis or a second mask; dtype for a tensor that is not bool (integer tensors: index_select,
/// gather); shape for a mask of other sizes, or whose lanes select unequal numbers where those count;
/// no_kernel for a mask without values (meta) likewise; broadcast for a value that does not fit; and what
/// copy_, fill_, add_, sub_, mul_ and div_ refuse.
class Subscript {
 public:
  Subscript(const Tensor& x, std::span<const Index> indices);
  Subscript(const Subscript&) = default;

  Tensor read() const;
  operator Tensor() const { return read(); }
  /// Methods of the tensor that is read: x[1].sum(). For all others write x[1].read().
  template <class T> T item() const { return read().item<T>(); }
  Tensor sum(OptionalInts dim = {}, bool keepdim = false, std::optional<DType> dtype = std::nullopt) const {
    return read().sum(dim, keepdim, dtype);
  }
  Tensor mean(OptionalInts dim = {}, bool keepdim = false, std::optional<DType> dtype = std::nullopt) const {
    return read().mean(dim, keepdim, dtype);
  }
  Tensor reshape(IntArg size) const { return read().reshape(size); }
  Tensor view(IntArg size) const { return read().view(size); }
  Tensor transpose(int64_t dim0, int64_t dim1) const { return read().transpose(dim0, dim1); }
  Tensor to(DType dtype) const { return read().to(dtype); }
  void backward() const { read().backward(); }
  /// A place in what this one is read as: of a copy, where there is a mask.
  Subscript operator[](std::initializer_list<Index> indices) const { return read()[indices]; }
  Subscript operator[](const Index& index) const { return read()[index]; }

  Subscript& operator=(const Tensor& value);
  Subscript& operator=(const Scalar& value);
  Subscript& operator=(const Subscript& value) { return *this = value.read(); }  ///< copies elements
  Subscript& operator+=(const Tensor& value);
  Subscript& operator-=(const Tensor& value);
  Subscript& operator*=(const Tensor& value);
  Subscript& operator/=(const Tensor& value);
  Subscript& operator+=(const Scalar& value) { return *this += number_like(value, view_); }
  Subscript& operator-=(const Scalar& value) { return *this -= number_like(value, view_); }
  Subscript& operator*=(const Scalar& value) { return *this *= number_like(value, view_); }
  Subscript& operator/=(const Scalar& value) { return *this /= number_like(value, view_); }

 private:
  using InPlace = void (*)(const Tensor& part, const Tensor& value);
  Subscript& change(const Tensor& value, InPlace f);
  Tensor selected() const;
  Tensor over_view() const;
  Tensor lined_up(const Tensor& value) const;
  Tensor spread(const Tensor& value, int dim) const;

  Tensor view_;  ///< what the other indices choose
  Tensor mask_;  ///< undefined: there is none
  int dim_ = 0;  ///< the first dim of view_ that the mask covers
};

inline std::string str(const Subscript& place) { return str(place.read()); }

}  // namespace lamella
LAMELLA_API_END
