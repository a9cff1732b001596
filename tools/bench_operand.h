// An operand described once: made as a tensor here, and as text for the peer.
#pragma once

#include "bench_work.h"

namespace lamella::tools::bench {

enum class Fill : uint8_t {
  Uniform,     ///< [0.25, 0.75): inside every domain
  Normal,      ///< of both signs
  Mask,        ///< bool, half of it true
  Index,       ///< [0, bound)
  Definite,    ///< matrices, symmetric and positive definite
  Triangular,  ///< lower ones, their diagonal away from 0
  Key          ///< of a random operator; the peer has none
};

struct Operand {
  Dims sizes;
  DType dtype = DType::F32;
  Fill fill = Fill::Uniform;
  Layout layout = Layout::Contiguous;
  int64_t bound = 0;
};

/// Another seed, other numbers. Error usage when the layout needs more dims.
Tensor made(const Operand& operand, uint64_t seed);
/// "t([2048, 2048], 'float32', 'normal', 'transposed')": a call of bench_torch.py's.
std::string python(const Operand& operand);
/// "[2048, 2048]"
std::string python_list(Ints sizes);
/// "float32"
std::string python_dtype(DType dtype);

/// Bytes of a tensor's elements, each counted once however often it is repeated.
double own_bytes(const Tensor& t);

}  // namespace lamella::tools::bench
