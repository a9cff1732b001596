// A value of each kind that a parameter may have, or of none.
#include "values.h"

#include <iterator>

namespace lamella::fuzz {
namespace {
std::string draw_string(Bytes& b) {
  static const char* const kWords[] = {"trunc", "floor", "",    "reference",
                                       "meta",  "cpu",   "sum", "no such word"};
  return kWords[b.below(std::size(kWords))];
}

Value draw_of_kind(Bytes& b, uint32_t kind, const TensorSource& tensor) {
  switch (kind) {
    case 0: return tensor(b);
    case 1: {
      Tensors list(b.below(4));
      for (Tensor& t : list) t = tensor(b);
      return list;
    }
    case 2: return b.integer();
    case 3: {
      Dims list;
      for (uint32_t n = b.below(6); n > 0; --n) list.push_back(b.integer());
      return list;
    }
    case 4: return double(b.integer()) / 4;
    case 5: return b.byte() % 2 == 1;
    case 6: return b.byte() % 2 ? Scalar(double(b.integer()) / 4) : Scalar(b.integer());
    case 7: return DType(b.below(kDTypeCount));
    case 8: return draw_string(b);
    case 10: return Device(b.below(6));
    default: return {};
  }
}
}  // namespace

Value draw_value(Bytes& b, const Schema& schema, size_t i, const TensorSource& tensor) {
  const uint32_t any = b.byte();
  if (any < 224 && i < schema.params.size()) return draw_of_kind(b, uint32_t(schema.params[i].kind), tensor);
  return draw_of_kind(b, any % 11, tensor);
}

}  // namespace lamella::fuzz
