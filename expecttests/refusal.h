// Bad input: the text that refuses it, and that the refusal left no trace, alone and under each transform.
#pragma once

#include <functional>

#include "lamella/lamella.h"

#include "expect.h"

namespace lamella::expect {

using Named = std::vector<std::pair<std::string, Value>>;

/// "[shape] permute: ...", by a boxed call. Fails the test when the call is accepted; when an argument's
/// bytes, sizes, strides or version, the thread's state, live levels or memory are not as before; when the
/// text does not begin with the operator, name one of its arguments and say what was expected; and when the
/// same call under vmap (two equal lanes), vjp or jvp is accepted, has another text, or leaves a trace.
std::string refused(std::string_view op, const Values& args, const Named& named = {});

/// The same for one stack only: calls whose text rightly depends on the transform, or that none reaches.
std::string refused_plainly(std::string_view op, const Values& args, const Named& named = {});

/// For what is no operator: transforms, views of memory, the schema parser. `watched` must not change.
std::string refused(const std::function<void()>& call, const Tensors& watched = {});

/// What most refusals are about; one tensor for all, so that a write into it would be noticed.
inline const Tensor& x23() {
  static const Tensor x = tensor_of({2, 3}, {1, 2, 3, 4, 5, 6}, DType::F64);
  return x;
}
inline Tensor of(Dims sizes, DType dtype = DType::F64) { return ones(sizes, dtype); }
inline Tensor ints(Dims sizes, std::initializer_list<double> values) {
  return tensor_of(sizes, {values.begin(), values.size()}, DType::I64);
}

}  // namespace lamella::expect
