// What a row's `samples` draws its arguments from. Who decides stands above: verify/case/decoder.h decodes a
// vector of choices, and the release library carries none of it.
#pragma once

#include "lamella/core/dtype.h"
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

/// What is asked of the arguments that a row draws.
struct DrawOptions {
  DTypeMask dtypes = kAllTypes;  ///< dtypes the law wants
  bool exact = false;            ///< small integers only: results are exact and compare bitwise
  bool layouts = true;           ///< permuted, stepped, offset, expanded views, poison around them
  bool tame = false;             ///< magnitudes of order 1: for laws whose bound needs them
  bool empty = false;            ///< half of the sizes are 0
  int64_t max_numel = 32;
  int max_exponent = 60;     ///< wide values lie within 2^±this, less in narrow dtypes
  bool mixed = true;         ///< further operands may have another dtype, or share another's storage
  bool often_mixed = false;  ///< a further operand has another dtype half of the time, not one time in six
  bool nonfinite = false;    ///< NaN, infinities and the largest numbers, too
  /// Half of the tensors hold numbers of the dtype's whole range, whatever their domain; of the rest most
  /// have what is not finite among ordinary numbers, or numbers near one end of the range.
  bool ends = false;
  int64_t largest = 0;     ///< elements by NOTE: [named sizes]; 0: kMostNamed if max_numel is 32 or more
  bool devices = false;    ///< device= may be given: what is made lies elsewhere than the other tensors
  bool one_large = false;  ///< one case of an operator has about 2,000 elements, whatever `largest` is
  int depth = 4;           ///< deepest stack of transforms
  std::vector<std::string>* parts = nullptr;  ///< if set: what each word chose, in order
};

/// Draws the arguments of a case. The simplest answer of each is what all-zero choices give.
class Draw {
 public:
  explicit Draw(DrawOptions options) : options_(std::move(options)) {}
  const DrawOptions& options() const { return options_; }
  /// The next choice; 0 when there is none left. `what` it decides is for the reader of a case.
  virtual uint32_t word(std::string_view what = "other") = 0;
  /// 0 <= result < n, 0 for the all-zero vector; nothing is decided where n is 0 or 1.
  virtual uint32_t below(uint32_t n, std::string_view what = "other") = 0;
  /// Likewise a place in a list whose entry is named right behind: what is kept is the name, so that lists
  /// may change.
  virtual uint32_t place(uint32_t n) = 0;
  /// The operator that a case has in the place of `drawn`.
  virtual std::string partner_named(std::string drawn) = 0;
  bool flag() { return below(2); }
  /// True once in `n` draws, false for the simplest vector.
  bool one_in(uint32_t n) { return below(n) == n - 1; }
  int64_t range(int64_t low, int64_t high, std::string_view what = "other") {
    return low + int64_t(below(uint32_t(high - low + 1), what));
  }

  /// The dtype of this case: the operator's `supported` narrowed to what the law wants (if they meet), f64
  /// first. The first call decides; later calls return the same dtype when supported.
  virtual DType dtype(DTypeMask supported) = 0;
  /// `arguments()`, and behind them, one time in four or `always`, the `dtype=` in which an operator on `of`
  /// is to compute: f64 or c128 half of the time, else any of `nameable(supported)`. It is drawn before
  /// tensors: their values keep products of a few elements within it, too.
  template <class F> Values with_dtype(DType of, DTypeMask supported, bool always, F&& arguments) {
    const Value named = dtype_argument(of, supported, always);
    Values out = arguments();
    if (!is_none(named)) out.push_back(named);
    return out;
  }
  /// `v`, and where the law wants devices, one time in four, one of the host at place `at`.
  Values with_device(Values v, size_t at) {
    if (!options_.devices || !one_in(4)) return v;
    while (v.size() < at) v.emplace_back();
    v.emplace_back(flag() ? Device::Reference : Device::CPU);
    return v;
  }
  /// Those of `supported` that an argument may name: inexact ones that the law wants, any integer, bool. All
  /// when that leaves none.
  DTypeMask nameable(DTypeMask supported) const {
    const DTypeMask wanted = supported & (options_.dtypes | kIntegers | kBoolType);
    return wanted ? wanted : supported;
  }
  /// The dtype of a further operand: `first`, and one time in six another one of `supported`: an inexact one
  /// that the law wants, or any integer or bool. To be asked before any tensor is drawn.
  virtual DType partner(DType first, DTypeMask supported) = 0;
  /// Sizes mostly from {2, 3, 1, 5, 0}: rank in [min_rank, max_rank], product <= max_numel. The simplest
  /// shape has the lowest rank and sizes 2.
  virtual Dims shape(int min_rank = 0, int max_rank = 3) = 0;
  /// A single size; never 0 when `nonzero`.
  virtual int64_t size(bool nonzero = false) = 0;
  /// Likewise, but less than `limit` unless a word named it.
  virtual int64_t size_below(int64_t limit) = 0;
  /// The number of tensors in a list.
  virtual int64_t entries(int64_t low, int64_t high) = 0;
  /// The most elements of a tensor that has `size`, which was drawn last, among its sizes; 0: of any.
  virtual int64_t most_elements(int64_t size) = 0;
  /// A shape that broadcasts with `s` to `s`: leading dims dropped, some sizes made 1.
  virtual Dims broadcastable(const Dims& s) = 0;
  /// Likewise for an operand of dtype `d`: rank 0 more often when another operand has another dtype.
  virtual Dims broadcastable(const Dims& s, DType d) = 0;
  /// A logical dim of a tensor of this rank, negative half of the time; rank 0 counts as rank 1 (0 or -1).
  virtual int64_t dim(int rank) = 0;
  /// An attribute that may be any integer: `usual`, and one time in eight INT64_MIN, INT64_MAX, about `size`
  /// or -size, or 0.
  virtual int64_t anywhere(int64_t usual, int64_t size) = 0;
  /// Likewise of those that are at least 1.
  virtual int64_t positive(int64_t usual, int64_t size) = 0;
  /// Up to `rank` distinct dims, at least `least`.
  virtual Dims dims(int rank, int least = 0) = 0;

  /// A tensor of these sizes with values from the mixture and, when the law asks, a drawn layout.
  virtual Tensor tensor(const Dims& sizes, DType dtype, Domain domain = Domain::Any) = 0;
  /// Indices in [0, bound), i64 or i32; bound > 0 unless the tensor is empty.
  virtual Tensor index(const Dims& sizes, int64_t bound, DType dtype = DType::I64) = 0;
  virtual Tensor boolean(const Dims& sizes) = 0;
  /// A Scalar: i64 for integer dtypes (for u64 sometimes beyond it), f64 for floating, c128 for complex;
  /// never 0.
  virtual Scalar scalar(DType dtype) = 0;
  /// Well-conditioned [.., n, n]: symmetric (Hermitian) positive definite.
  virtual Tensor positive_definite(const Dims& batch, int64_t n, DType dtype) = 0;
  /// [.., n, n] with a diagonal bounded away from 0.
  virtual Tensor triangular(const Dims& batch, int64_t n, DType dtype) = 0;
  /// A u64 tensor of random keys.
  virtual Tensor keys(const Dims& sizes) = 0;
  /// What is drawn from now on are the arguments of another case.
  virtual void begin_arguments() = 0;
  /// Tensors drawn from now on are no arguments: they share no storage with others.
  virtual void end_arguments() = 0;
  /// The `dtype=` of with_dtype, or nothing.
  virtual Value dtype_argument(DType of, DTypeMask supported, bool always) = 0;

 protected:
  ~Draw() = default;  // nobody owns one by this type

 private:
  DrawOptions options_;
};

}  // namespace lamella
LAMELLA_API_END
