// Those operators that are methods of Tensor, too.
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/devices.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/functions/view.h"

namespace lamella {

Tensor Tensor::sum(OptionalInts dim, bool keepdim, std::optional<DType> dtype) const {
  return lamella::sum(*this, dim, keepdim, dtype);
}
Tensor Tensor::mean(OptionalInts dim, bool keepdim, std::optional<DType> dtype) const {
  return lamella::mean(*this, dim, keepdim, dtype);
}
Tensor Tensor::reshape(IntArg size) const { return lamella::reshape(*this, size); }
Tensor Tensor::view(IntArg size) const { return lamella::view(*this, size); }
Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const { return lamella::transpose(*this, dim0, dim1); }
Tensor Tensor::to(DType dtype, std::optional<Device> device) const {
  return lamella::to(*this, dtype, device);
}
Tensor Tensor::to(Device device) const { return to_device(*this, device); }

}  // namespace lamella
