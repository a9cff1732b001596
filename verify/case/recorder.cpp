// Each answer passed on, and told.
#include "lamella/verify/case/recorder.h"

namespace lamella::verify {

void Recorder::note(std::string_view kind, std::string_view text, std::string_view what) {
  std::string line(kind);
  if (!text.empty()) line += ' ', line += text;
  if (what != "other") line += "  # ", line += what;
  sink_.note(line);
}

uint32_t Recorder::word(std::string_view what) {
  const uint32_t w = from_.word(what);
  return note("word", std::to_string(w), what), w;
}

uint32_t Recorder::below(uint32_t n, std::string_view what) {
  const uint32_t v = from_.below(n, what);
  if (n > 1) note("below", format("{} of {}", v, n), what);
  return v;
}

std::string Recorder::partner_named(std::string drawn) {
  std::string named = from_.partner_named(std::move(drawn));
  return note("partner", named), named;
}

DType Recorder::dtype(DTypeMask supported) {
  const DType d = from_.dtype(supported);
  return note("dtype", name(d)), d;
}
DType Recorder::partner(DType first, DTypeMask supported) {
  const DType d = from_.partner(first, supported);
  return note("other_dtype", name(d)), d;
}
Value Recorder::dtype_argument(DType of, DTypeMask supported, bool always) {
  Value v = from_.dtype_argument(of, supported, always);
  const DType* const d = std::get_if<DType>(&v);
  return note("dtype_argument", d ? name(*d) : "none"), v;
}

Dims Recorder::shape(int min_rank, int max_rank) { return noted("shape", from_.shape(min_rank, max_rank)); }
int64_t Recorder::size(bool nonzero) { return noted("size", from_.size(nonzero)); }
int64_t Recorder::size_below(int64_t limit) { return noted("size_below", from_.size_below(limit)); }
int64_t Recorder::entries(int64_t low, int64_t high) { return noted("entries", from_.entries(low, high)); }
int64_t Recorder::most_elements(int64_t size) { return noted("most_elements", from_.most_elements(size)); }
Dims Recorder::broadcastable(const Dims& s) { return noted("broadcast", from_.broadcastable(s)); }
Dims Recorder::broadcastable(const Dims& s, DType d) { return noted("broadcast", from_.broadcastable(s, d)); }
int64_t Recorder::dim(int rank) { return noted("dim", from_.dim(rank)); }
int64_t Recorder::anywhere(int64_t usual, int64_t size) {
  return noted("attribute", from_.anywhere(usual, size));
}
int64_t Recorder::positive(int64_t usual, int64_t size) {
  return noted("attribute", from_.positive(usual, size));
}
Dims Recorder::dims(int rank, int least) { return noted("dims", from_.dims(rank, least)); }

Tensor Recorder::tensor(const Dims& sizes, DType dtype, Domain domain) {
  return noted("tensor", from_.tensor(sizes, dtype, domain));
}
Tensor Recorder::index(const Dims& sizes, int64_t bound, DType dtype) {
  return noted("index", from_.index(sizes, bound, dtype));
}
Tensor Recorder::boolean(const Dims& sizes) { return noted("boolean", from_.boolean(sizes)); }
Tensor Recorder::positive_definite(const Dims& batch, int64_t n, DType dtype) {
  return noted("positive_definite", from_.positive_definite(batch, n, dtype));
}
Tensor Recorder::triangular(const Dims& batch, int64_t n, DType dtype) {
  return noted("triangular", from_.triangular(batch, n, dtype));
}
Tensor Recorder::keys(const Dims& sizes) { return noted("keys", from_.keys(sizes)); }

Scalar Recorder::scalar(DType dtype) {
  const Scalar s = from_.scalar(dtype);
  return note("scalar", scalar_text(s)), s;
}

void Recorder::begin_arguments() {
  from_.begin_arguments(), tensors_.begin();
  note("arguments", "begin");
}
void Recorder::end_arguments() {
  from_.end_arguments(), tensors_.forget();
  note("arguments", "end");
}

}  // namespace lamella::verify
