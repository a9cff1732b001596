// What a row says of itself, for lists of operators and their pages.
#include "lamella/verify/text/op_text.h"

#include "lamella/verify/case/decoder.h"

namespace lamella::verify {

std::string batch_text(const Op& op) {
  if (op.composite) return "by composition";
  if (op.batch) return "rule";
  const bool loops = op.shape == ShapeClass::Dynamic || op.shape == ShapeClass::Other;
  return loops ? "loop" : "shape class";
}

std::vector<DType> sampled_dtypes(const Op& op) {
  std::vector<DType> out;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = DType(d);
    if (is_internal(dtype)) continue;
    DrawOptions options;
    options.dtypes = mask(dtype);
    Decoder draw({}, options);
    bool found = false;
    for (const Value& v : op.samples(draw)) {
      if (const auto* t = std::get_if<Tensor>(&v)) found |= t->defined() && t->dtype() == dtype;
      if (const auto* ts = std::get_if<Tensors>(&v)) found |= !ts->empty() && ts->front().dtype() == dtype;
      if (const auto* given = std::get_if<DType>(&v)) found |= *given == dtype;
    }
    if (found) out.push_back(dtype);
  }
  return out;
}

}  // namespace lamella::verify
