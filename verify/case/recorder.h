// A Draw that notes what another one decides.
#pragma once

#include "lamella/draw/draw.h"
#include "lamella/verify/case/answers.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Answers as `from` does, and tells `sink` each answer at the moment it is given. What a row or a law makes
/// of it later is theirs to make again: see NOTE: [kept answers].
class Recorder final : public Draw {
 public:
  /// REQUIRES: both live as long.
  Recorder(Draw& from, AnswerSink& sink) : Draw(from.options()), from_(from), sink_(sink) { sink.begin(); }

  uint32_t word(std::string_view what = "other") override;
  uint32_t below(uint32_t n, std::string_view what = "other") override;
  uint32_t place(uint32_t n) override { return from_.place(n); }
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
  void note(std::string_view kind, std::string_view text, std::string_view what = "other");
  Dims noted(std::string_view kind, Dims dims) { return note(kind, format("{}", dims)), dims; }
  int64_t noted(std::string_view kind, int64_t n) { return note(kind, std::to_string(n)), n; }
  Tensor noted(std::string_view kind, Tensor t) { return note(kind, tensors_.text(t)), t; }

  Draw& from_;
  AnswerSink& sink_;
  TensorWriter tensors_;
};

}  // namespace lamella::verify
LAMELLA_API_END
