// Decodes a vector of choices into arguments: total (missing words read 0, the simplest choice), so that the
// same vector always gives the same arguments and shrinking works on the vector.
#pragma once

#include <cstdlib>
#include <span>
#include <vector>

#include "lamella/draw/draw.h"

LAMELLA_API_BEGIN
namespace lamella::drawn {
struct Elements;
}
namespace lamella::verify {

/// What is drawn before its layout lies here: one tensor at a time, of each thread, from case to case. It
/// comes from malloc, since what a case leaves of operator new is looked for.
struct Unplaced {
  void* at = nullptr;
  size_t room = 0;
  ~Unplaced() { std::free(at); }
};
/// This thread's: NOTE: [context].
Unplaced& unplaced_elements();

/// Scrambles: equal only for equal numbers.
inline uint64_t scrambled(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// NOTE: [named sizes] Words hardly ever give sizes of some hundreds, where blocks end and other code begins.
/// A word with kNamedSize in its upper half gives a size, a rank or a number of entries by the lower half.
/// One word in 65536 is such; runs write them, to draw near thresholds. No tensor has more than kMostNamed
/// elements by them. Laws of small cases may have a large one (`one_large`).
inline constexpr uint32_t kNamedSize = 0x51E5;
inline constexpr int64_t kMostNamed = 4200;
inline constexpr int kMostNamedRank = 8;
inline constexpr int64_t largest_named(const DrawOptions& o) {
  return o.largest ? o.largest : o.max_numel >= 32 ? kMostNamed : 0;
}
/// Likewise of the one large case.
inline constexpr int64_t largest_drawn(const DrawOptions& o) {
  return o.one_large ? kMostNamed : largest_named(o);
}
inline constexpr uint32_t named_size(int64_t n) { return kNamedSize << 16 | uint32_t(n); }

/// NOTE: [dtypes in turn] The first cases of an operator under a law have its dtypes one after the other, so
/// that a bug of one dtype is met within as many cases as there are dtypes: runs write the word that chooses.
/// Its upper bits may say something else (NOTE: [guarded cases]): they choose no dtype.
inline constexpr uint32_t kChoosesDType = (1u << 26) - 1;
/// The word for the dtype at `turn`, modulo their number; the bits of `w` that choose none are kept.
inline constexpr uint32_t dtype_in_turn(uint32_t w, uint32_t turn) {
  return (w & ~kChoosesDType) | (8 * turn + 3);
}

/// Words behind those of a vector: made as they are read, since few cases read half of theirs.
struct Tail {
  uint64_t state = 0;
  size_t end = 0;  ///< of the whole vector; 0: nothing is behind
  /// Two words of each scrambled number, the low half first.
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15u;
  uint32_t word(size_t i) const { return uint32_t(scrambled(state + (i / 2 + 1) * kStep) >> 32 * (i % 2)); }
};

class Decoder final : public Draw {
 public:
  explicit Decoder(std::span<const uint32_t> choices, DrawOptions options = {}, Tail tail = {})
      : Draw(std::move(options)), choices_(choices), tail_(tail) {}

  size_t used() const { return at_; }
  uint32_t word(std::string_view what = "other") override { return next(what); }
  uint32_t below(uint32_t n, std::string_view what = "other") override { return n <= 1 ? 0 : next(what) % n; }
  uint32_t place(uint32_t n) override { return below(n); }
  std::string partner_named(std::string drawn) override { return drawn; }
  DType dtype(DTypeMask supported) override;
  DType partner(DType first, DTypeMask supported) override;
  Dims shape(int min_rank = 0, int max_rank = 3) override;
  int64_t size(bool nonzero = false) override;
  int64_t size_below(int64_t limit) override {
    const int64_t s = size();
    return named_ ? s : s % limit;
  }
  int64_t entries(int64_t low, int64_t high) override;
  int64_t most_elements(int64_t size) override;
  Dims broadcastable(const Dims& s) override;
  Dims broadcastable(const Dims& s, DType d) override;
  int64_t dim(int rank) override;
  int64_t anywhere(int64_t usual, int64_t size) override;
  int64_t positive(int64_t usual, int64_t size) override;
  Dims dims(int rank, int least = 0) override;
  Tensor tensor(const Dims& sizes, DType dtype, Domain domain = Domain::Any) override;
  Tensor index(const Dims& sizes, int64_t bound, DType dtype = DType::I64) override;
  Tensor boolean(const Dims& sizes) override;
  Scalar scalar(DType dtype) override;
  Tensor positive_definite(const Dims& batch, int64_t n, DType dtype) override;
  Tensor triangular(const Dims& batch, int64_t n, DType dtype) override;
  Tensor keys(const Dims& sizes) override;
  void begin_arguments() override;
  void end_arguments() override { sharing_ = false; }
  Value dtype_argument(DType of, DTypeMask supported, bool always) override;

 private:
  /// word(), in line.
  [[gnu::always_inline]] uint32_t next(std::string_view what) {
    if (options().parts) [[unlikely]]
      name_part(what);
    const size_t i = at_++;
    return i < choices_.size() ? choices_[i] : i < tail_.end ? tail_.word(i) : 0;
  }
  /// Elements that the next one's overwrite: `relayout` gives them their tensor.
  static drawn::Elements unplaced(const Dims& sizes, DType dtype);
  drawn::Elements fill(const Dims& sizes, DType dtype, Domain domain);
  void put_specials(const drawn::Elements& t, uint32_t patches, Domain domain);
  Tensor relayout(const drawn::Elements& from, const Dims& sizes, bool may_repeat);
  Tensor shared(const Dims& sizes, DType dtype, Domain domain);
  int rank(int least, int most);
  int64_t named(uint32_t word) const;
  int wide_exponent(DType d) const;
  double fitting(double v) const;
  bool repeat_earlier(const drawn::Elements& t, Domain domain) const;
  void put_ends(const drawn::Elements& t, uint32_t w, uint64_t seed) const;
  void put_beside_ordinary(const drawn::Elements& t, uint32_t w, uint64_t seed) const;
  void put_far(const drawn::Elements& t, uint32_t w, uint64_t seed) const;
  uint32_t special_choice(uint32_t w);
  void name_part(std::string_view what);
  Tensor finished(Tensor t) { return ++tensors_, t; }
  struct Made {
    Tensor tensor;
    Domain domain;
  };
  std::span<const uint32_t> choices_;
  Tail tail_;
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

}  // namespace lamella::verify
LAMELLA_API_END
