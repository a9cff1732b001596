// A Draw that gives noted answers once more.
#pragma once

#include "lamella/verify/case/answers.h"
#include "lamella/verify/case/decoder.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Gives noted answers back, in order. One that is of another kind than what is asked for, or that cannot be
/// an answer to it, ends the case: an error is raised and `wrong` says the first one, whatever the law makes
/// of the exception. Behind the last answer of an open list the simplest ones follow (Answers::open).
class Player final : public Draw {
 public:
  /// REQUIRES: answers and `wrong` live as long. `law` is for texts.
  Player(const Answers& answers, std::string_view law, DrawOptions options, std::string& wrong)
      : Draw(options), answers_(answers), law_(law), wrong_(wrong), simplest_({}, std::move(options)) {}

  /// What was never asked for is wrong, too.
  void finish();

  uint32_t word(std::string_view what = "other") override;
  uint32_t below(uint32_t n, std::string_view what = "other") override;
  uint32_t place(uint32_t) override { return 0; }
  std::string partner_named(std::string drawn) override;
  DType dtype(DTypeMask supported) override;
  DType partner(DType first, DTypeMask supported) override;
  Dims shape(int min_rank = 0, int max_rank = 3) override;
  int64_t size(bool nonzero = false) override;
  int64_t size_below(int64_t limit) override;
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
  void end_arguments() override;
  Value dtype_argument(DType of, DTypeMask supported, bool always) override;

 private:
  const Answer* next(std::string_view kind);
  [[noreturn]] void refuse(const std::string& text);
  template <class F> auto read(F&& f);
  void accept(bool fits, std::string_view asked);
  DTypeMask as_before(DTypeMask supported) const;
  Tensor noted(std::string_view kind, const Dims& sizes, DType dtype);
  bool is_behind() const { return answers_.open && at_ == answers_.all.size(); }

  const Answers& answers_;
  std::string law_;
  std::string& wrong_;
  size_t at_ = 0;
  TensorReader tensors_;
  Tensors held_;  ///< arguments, which a decoder holds as long
  DTypeMask first_dtype_ = 0;
  Decoder simplest_;  ///< of no choices
};

}  // namespace lamella::verify
LAMELLA_API_END
