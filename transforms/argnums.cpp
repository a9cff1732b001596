// Checks and choice of the arguments a derivative is taken in.
#include "lamella/transforms/argnums.h"

#include <algorithm>

#include "lamella/ops/functions/factory.h"

namespace lamella {

void check_inputs(const Tensors& inputs, std::string_view what) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    LAMELLA_CHECK(inputs[i].defined(), Undefined,
                  "{}: input {} is an undefined tensor; expected a defined one", what, i);
    LAMELLA_CHECK(is_inexact(inputs[i].dtype()), DType,
                  "{}: input {} is {}, expected floating point or complex", what, i, inputs[i]);
  }
}

void check_direction(std::string_view what, std::string_view direction, size_t i, const Tensor& got,
                     const Tensor& like, std::string_view whose) {
  LAMELLA_CHECK(got.dtype() == like.dtype(), DType, "{}: {} {} is {}, expected {}", what,
                Argument{std::string(direction)}, i, got, like);
  LAMELLA_CHECK(std::ranges::equal(got.sizes(), like.sizes()), Shape, "{}: {} {} is {}, expected {}", what,
                Argument{std::string(direction)}, i, got, like);
  LAMELLA_CHECK(got.device() == like.device(), Device, "{}: {} {} is on {}, expected {} as {}", what,
                Argument{std::string(direction)}, i, name(got.device()), name(like.device()), whose);
}

Tensors with_zeros(Tensors ts, const Tensors& like) {
  for (size_t i = 0; i < ts.size(); ++i)
    if (!ts[i].defined()) ts[i] = zeros_like(like[i]);
  return ts;
}

std::vector<size_t> positions(const std::vector<int>& argnums, size_t n_inputs, std::string_view what) {
  const auto n = int64_t(n_inputs);
  std::vector<size_t> out;
  for (const int i : argnums) {
    LAMELLA_CHECK(-n <= i && i < n, Usage, "{}: argnums names argument {}; expected {} <= argnum < {}", what,
                  i, -n, n);
    const auto at = size_t(i < 0 ? i + n : i);
    for (size_t k = 0; k < out.size(); ++k)
      LAMELLA_CHECK(out[k] != at, Usage,
                    "{}: argnums names argument {} twice, as {} and {}; expected different arguments", what,
                    at, argnums[k], i);
    out.push_back(at);
  }
  return out;
}

Tensors taken(const Tensors& inputs, const std::vector<size_t>& at) {
  Tensors out;
  for (const size_t i : at) out.push_back(inputs[i]);
  return out;
}

Tensors replaced(Tensors inputs, const std::vector<size_t>& at, const Tensors& xs) {
  for (size_t k = 0; k < at.size(); ++k) inputs[at[k]] = xs[k];
  return inputs;
}

}  // namespace lamella
