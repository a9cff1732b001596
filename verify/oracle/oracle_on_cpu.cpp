// What Fault::OracleOnCpu puts in the oracle's place: the kernels that are to be checked.
#include "lamella/dispatch/call.h"
#include "lamella/verify/oracle/oracle.h"

namespace lamella::verify {

Tensors forward_on_cpu(const Op& op, Values args);

Tensors forward_on_cpu(const Op& op, Values args) {
  const auto narrowed = [](Tensor& t) {
    if (t.defined())
      t = narrow(t, is_complex(t.dtype()) ? DType::C128 : is_inexact(t.dtype()) ? DType::F64 : t.dtype());
  };
  for (Value& v : args) {
    if (auto* t = std::get_if<Tensor>(&v)) narrowed(*t);
    if (auto* ts = std::get_if<Tensors>(&v))
      for (Tensor& t : *ts) narrowed(t);
  }
  Tensors ys = call_boxed(op, args);
  for (Tensor& y : ys) y = to_reference(y);
  return ys;
}

}  // namespace lamella::verify
