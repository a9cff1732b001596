// Draws valid operator arguments from a vector of choices: total (missing words read 0, the simplest choice),
// so that the same vector always decodes to the same arguments and shrinking works on the vector.
#pragma once

#include <span>

#include "lamella/dispatch/value.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Where a tensor's values may lie.
enum class Domain : uint8_t {
  Any,       ///< reals of both signs, ties, exact zeros
  Positive,  ///< x > 0, bounded away from 0
  NonZero,   ///< |x| bounded away from 0
  Distinct   ///< no two equal elements
};

using DTypeMask = uint32_t;
inline constexpr DTypeMask mask(DType d) { return 1u << int(d); }
inline constexpr DTypeMask kFloat32And64 = mask(DType::F32) | mask(DType::F64);
inline constexpr DTypeMask kHalfTypes = mask(DType::F16) | mask(DType::BF16);
inline constexpr DTypeMask kFloating = kFloat32And64 | kHalfTypes;
inline constexpr DTypeMask kComplex = mask(DType::C64) | mask(DType::C128);
inline constexpr DTypeMask kIntegers = mask(DType::U8) | mask(DType::U16) | mask(DType::U32) |
                                       mask(DType::U64) | mask(DType::I8) | mask(DType::I16) |
                                       mask(DType::I32) | mask(DType::I64);
inline constexpr DTypeMask kBoolType = mask(DType::Bool);
inline constexpr DTypeMask kRealTypes = kFloating | kIntegers;
inline constexpr DTypeMask kAllTypes = kRealTypes | kComplex | kBoolType;
inline constexpr DTypeMask kInexact = kFloating | kComplex;

/// NOTE: [decoder versions] What a vector of choices means may change only together with this number. Older
/// versions still decode as they did, so that a recorded failure keeps its case.
inline constexpr int kDecoderVersion = 15;

/// What a law asks of a case.
struct DrawOptions {
  DTypeMask dtypes = kAllTypes;  ///< dtypes the law wants
  bool exact = false;            ///< small integers only: results are exact and compare bitwise
  bool layouts = true;           ///< permuted, stepped, offset, expanded views, poison around them
  bool tame = false;             ///< magnitudes of order 1: for laws whose bound needs them
  bool empty = false;            ///< half of the sizes are 0
  int64_t max_numel = 32;
  int max_exponent = 60;   ///< wide values lie within 2^±this, less in narrow dtypes
  bool mixed = true;       ///< further operands may have another dtype, or share another's storage
  bool nonfinite = false;  ///< NaN, infinities and the largest numbers, too
  /// Half of the tensors hold numbers of the dtype's whole range, whatever their domain; of the rest, from
  /// version 11 on, most have what is not finite among ordinary numbers, or numbers near one end of the
  /// range.
  bool ends = false;
  int64_t largest = 0;     ///< elements by NOTE: [named sizes]; 0: kMostNamed if max_numel is 32 or more
  bool devices = false;    ///< device= may be given: what is made lies elsewhere than the other tensors
  bool one_large = false;  ///< one case of an operator has about 2,000 elements, whatever `largest` is
  int depth = 4;           ///< deepest stack of transforms
  int version = kDecoderVersion;
  std::vector<std::string>* parts = nullptr;  ///< if set: what each word chose, in order
};

/// NOTE: [named sizes] Words hardly ever give sizes of some hundreds, where blocks end and other code begins.
/// From version 8 on, a word with kNamedSize in its upper half gives a size, a rank or a number of entries by
/// the lower half. One word in 65536 is such; runs write them, to draw near thresholds. No tensor has more
/// than kMostNamed elements by them. From version 9 on laws of small cases may have a large one
/// (`one_large`).
inline constexpr uint32_t kNamedSize = 0x51E5;
inline constexpr int64_t kMostNamed = 4200;
inline constexpr int64_t largest_named(const DrawOptions& o) {
  return o.largest ? o.largest : o.max_numel >= 32 ? kMostNamed : 0;
}
/// Likewise of the one large case.
inline constexpr int64_t largest_drawn(const DrawOptions& o) {
  return o.one_large && o.version >= 9 ? kMostNamed : largest_named(o);
}
inline constexpr uint32_t named_size(int64_t n) { return kNamedSize << 16 | uint32_t(n); }

/// NOTE: [dtypes in turn] The first cases of an operator under a law have its dtypes one after the other, so
/// that a bug of one dtype is met within as many cases as there are dtypes: runs write the word that chooses.
/// Its upper bits may say something else (NOTE: [guarded cases]): from version 10 on they choose no dtype.
inline constexpr uint32_t kChoosesDType = (1u << 26) - 1;
/// The word for the dtype at `turn`, modulo their number; the bits of `w` that choose none are kept.
inline constexpr uint32_t dtype_in_turn(uint32_t w, uint32_t turn) {
  return (w & ~kChoosesDType) | (8 * turn + 3);
}

class Draw {
 public:
  explicit Draw(std::span<const uint32_t> choices, DrawOptions options = {})
      : choices_(choices), options_(options) {}

  const DrawOptions& options() const { return options_; }
  size_t used() const { return at_; }
  uint32_t word(std::string_view what = "other") {
    if (options_.parts) name_part(what);
    return at_++ < choices_.size() ? choices_[at_ - 1] : 0;
  }
  /// 0 <= result < n, 0 for the all-zero vector.
  uint32_t below(uint32_t n, std::string_view what = "other") {
    return n <= 1 ? 0 : uint32_t(uint64_t(word(what)) % n);
  }
  bool flag() { return below(2); }
  /// True once in `n` draws, false for the simplest vector.
  bool one_in(uint32_t n) { return below(n) == n - 1; }
  int64_t range(int64_t low, int64_t high, std::string_view what = "other") {
    return low + int64_t(below(uint32_t(high - low + 1), what));
  }

  /// The dtype of this case: the operator's `supported` narrowed to what the law wants (if they meet), f64
  /// first. The first call decides; later calls return the same dtype when supported.
  DType dtype(DTypeMask supported);
  /// `arguments()`, and behind them, one time in four or `always`, the `dtype=` in which an operator on `of`
  /// is to compute: f64 or c128 half of the time, else any of `nameable(supported)`. It is drawn before
  /// tensors: their values keep products of a few elements within it, too.
  template <class F> Values with_dtype(DType of, DTypeMask supported, bool always, F&& arguments) {
    Value named;
    if (from(3)) named = dtype_argument(of, supported, always);
    Values out = arguments();
    if (!from(3)) named = dtype_argument(of, supported, always);
    if (!is_none(named)) out.push_back(named);
    return out;
  }
  /// `v`, and where the law wants devices, one time in four, one of the host at place `at`.
  Values with_device(Values v, size_t at) {
    if (!from(12) || !options_.devices || !one_in(4)) return v;
    while (v.size() < at) v.emplace_back();
    v.emplace_back(flag() ? Device::Reference : Device::CPU);
    return v;
  }
  /// Those of `supported` that an argument may name: inexact ones that the law wants, any integer, bool. All
  /// when that leaves none.
  DTypeMask nameable(DTypeMask supported) const {
    const DTypeMask wanted = supported & (options_.dtypes | kIntegers | kBoolType);
    return from(3) && wanted ? wanted : supported;
  }
  /// The dtype of a further operand: `first`, and one time in six another one of `supported`: an inexact one
  /// that the law wants, or any integer or bool. To be asked before any tensor is drawn.
  DType partner(DType first, DTypeMask supported);
  /// Sizes mostly from {2, 3, 1, 5, 0}: rank in [min_rank, max_rank], product <= max_numel. The simplest
  /// shape has the lowest rank and sizes 2.
  Dims shape(int min_rank = 0, int max_rank = 3);
  /// A single size; never 0 when `nonzero`.
  int64_t size(bool nonzero = false);
  /// Likewise, but less than `limit` unless a word named it.
  int64_t size_below(int64_t limit) {
    const int64_t s = size();
    return named_ ? s : s % limit;
  }
  /// The number of tensors in a list.
  int64_t entries(int64_t low, int64_t high);
  /// The most elements of a tensor that has `size`, which was drawn last, among its sizes; 0: of any.
  int64_t most_elements(int64_t size) const;
  /// A shape that broadcasts with `s` to `s`: leading dims dropped, some sizes made 1.
  Dims broadcastable(const Dims& s);
  /// Likewise for an operand of dtype `d`: rank 0 more often when another operand has another dtype.
  Dims broadcastable(const Dims& s, DType d);
  /// A logical dim of a tensor of this rank, negative half of the time; rank 0 counts as rank 1 (0 or -1).
  int64_t dim(int rank);
  /// An attribute that may be any integer: `usual`, and one time in eight INT64_MIN, INT64_MAX, about `size`
  /// or -size, or 0.
  int64_t anywhere(int64_t usual, int64_t size);
  /// Likewise of those that are at least 1.
  int64_t positive(int64_t usual, int64_t size);
  /// Up to `rank` distinct dims, at least `least`.
  Dims dims(int rank, int least = 0);

  /// A tensor of these sizes with values from the mixture and, when the law asks, a drawn layout.
  Tensor tensor(const Dims& sizes, DType dtype, Domain domain = Domain::Any);
  /// Indices in [0, bound), i64 or i32; bound > 0 unless the tensor is empty.
  Tensor index(const Dims& sizes, int64_t bound, DType dtype = DType::I64);
  Tensor boolean(const Dims& sizes);
  /// A Scalar: i64 for integer dtypes (for u64 sometimes beyond it), f64 for floating, c128 for complex;
  /// never 0.
  Scalar scalar(DType dtype);
  /// Well-conditioned [.., n, n]: symmetric (Hermitian) positive definite.
  Tensor positive_definite(const Dims& batch, int64_t n, DType dtype);
  /// [.., n, n] with a diagonal bounded away from 0.
  Tensor triangular(const Dims& batch, int64_t n, DType dtype);
  /// A u64 tensor of random keys.
  Tensor keys(const Dims& sizes);
  /// Tensors drawn from now on are no arguments: they share no storage with others.
  void end_arguments() { sharing_ = false; }

 private:
  Tensor fill(const Dims& sizes, DType dtype, Domain domain);
  void put_specials(Tensor& t, uint32_t patches, Domain domain);
  Tensor relayout(const Tensor& t, bool may_repeat);
  Tensor shared(const Dims& sizes, DType dtype, Domain domain);
  int rank(int least, int most);
  int64_t named(uint32_t word) const;
  int wide_exponent(DType d) const;
  double fitting(double v) const;
  bool repeat_earlier(Tensor& t, Domain domain) const;
  void put_ends(Tensor& t, uint32_t w, uint64_t seed) const;
  void put_beside_ordinary(Tensor& t, uint32_t w, uint64_t seed) const;
  void put_far(Tensor& t, uint32_t w, uint64_t seed) const;
  uint32_t special_choice(uint32_t w);
  void name_part(std::string_view what);
  Tensor finished(Tensor t) { return ++tensors_, t; }
  Value dtype_argument(DType of, DTypeMask supported, bool always);
  bool from(int version) const { return options_.version >= version; }
  struct Made {
    Tensor tensor;
    Domain domain;
  };
  std::span<const uint32_t> choices_;
  DrawOptions options_;
  size_t at_ = 0;
  int tensors_ = 0;     ///< drawn so far
  bool named_ = false;  ///< the size drawn last was
  int64_t room_ = 0;    ///< elements that named sizes ask for
  bool has_dtype_ = false;
  DType dtype_ = DType::F64;
  bool mixed_ = false;           ///< operands of this case differ in dtype
  uint32_t special_ = 0;         ///< see special_choice()
  uint64_t special_places_ = 0;  ///< which elements of all tensors of a case are special
  bool sharing_ = true;
  DTypeMask in_play_ = 0;     ///< dtypes of the operands of a mixed case
  DTypeMask named_type_ = 0;  ///< the dtype that an argument asks the operator to compute in
  std::vector<Made> made_;
};

}  // namespace lamella
LAMELLA_API_END
