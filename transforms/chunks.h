// vmap a few lanes at a time, and its checks of dims.
#pragma once

#include <limits>

#include "lamella/core/generator.h"
#include "lamella/dispatch/given.h"
#include "lamella/transforms/vmap.h"

LAMELLA_API_BEGIN
namespace lamella {

/// For a function that runs several times to compute one thing: each run draws from where the first began.
class SameDraws {
 public:
  SameDraws() : generator_(default_generator()), start_(generator_) {}
  void again() { generator_ = start_; }  // its key, too: the function may call manual_seed

 private:
  Generator& generator_;
  const Generator start_;
};

/// Raises value, randomness: an option that none of its list is.
[[noreturn, gnu::cold]] void refuse_options(const VmapOptions& options);

/// What is wrong with any arguments, when vmap is handed it. Errors: usage, value, randomness.
inline void check_mapping(const Function& f, const VmapOptions& o) {
  given(f, "vmap");
  if (o.size < -1 || o.randomness > Randomness::Different) [[unlikely]]
    refuse_options(o);
}

/// Raises value: the numbers of the lanes end beyond int64.
[[noreturn, gnu::cold]] void refuse_first_lane(const VmapOptions& options, int64_t size);

/// Raises mapped_size: as many dims as tensors, or one. Apart, as refuse_lanes is.
[[noreturn, gnu::cold]] void refuse_dims(size_t dims, size_t tensors, std::string_view what);

inline int dim_for(const InDims& dims, size_t i, size_t n, std::string_view what) {
  if (dims.size() != 1 && dims.size() != n) [[unlikely]]
    refuse_dims(dims.size(), n, what);
  return dims.size() == 1 ? dims[0] : dims[i];
}

inline int wrap_mapped(int dim, int rank, std::string_view what, const Tensor& t) {
  LAMELLA_CHECK(-rank <= dim && dim < rank, DimOutOfRange,
                "vmap: {} = {} is out of range for {}; expected {} <= dim < {}", what, dim, t, -rank, rank);
  return dim < 0 ? dim + rank : dim;
}

/// The dim of argument i that is mapped, or kNone.
inline int mapped_dim(const VmapOptions& o, const Tensors& xs, size_t i) {
  const int d = dim_for(o.in_dims, i, xs.size(), "in_dims");
  return d == kNone ? kNone : wrap_mapped(d, xs[i].rank(), "in_dims", xs[i]);
}

/// Raises mapped_size: argument i has not as many lanes as `size` says or, where it is not given, as argument
/// `first`. Apart, so that what is compiled with vmap's short way stays small enough to be put in line.
[[noreturn, gnu::cold]] void refuse_lanes(const VmapOptions& options, const Tensors& xs, size_t i,
                                          size_t first);

/// Lanes of a call. Errors: undefined, mapped_size, value.
inline int64_t mapped_size(const Tensors& xs, const VmapOptions& o) {
  int64_t size = o.size;
  size_t first = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    LAMELLA_CHECK(xs[i].defined(), Undefined,
                  "vmap: argument {} is an undefined tensor; expected a defined one", i);
    const int d = mapped_dim(o, xs, i);
    if (d == kNone) continue;
    const int64_t n = xs[i].size(d);
    if (size >= 0 && n != size) [[unlikely]]
      refuse_lanes(o, xs, i, first);
    if (size < 0) first = i;
    size = n;
  }
  LAMELLA_CHECK(size >= 0, MappedSize,
                "vmap: no argument is mapped and no size is given; expected one of them");
  if (o.first_lane > std::numeric_limits<int64_t>::max() - size) [[unlikely]]
    refuse_first_lane(o, size);
  return size;
}

/// What vmap does for a `chunk` other than 0; `size` lanes in all.
Tensors in_chunks(const Function& f, const VmapOptions& options, int64_t size, const Tensors& xs);

}  // namespace lamella
LAMELLA_API_END
