// Lanes of a statement program's inputs, for the laws that map programs.
#pragma once

#include "lamella/transforms/vmap.h"
#include "lamella/verify/programs/program_engines.h"
#include "lamella/verify/programs/statements_draw.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Lanes around the inputs: near enough that the program is smooth between them. Each lies as the input does,
/// with the lanes along any dim, and between the elements where there is room.
struct ScriptLanes {
  int64_t size;
  Tensors xs;
  InDims dims;

  ScriptLanes(Case& c, const Script& p, EngineCase& s) {
    static constexpr int64_t kSizes[] = {2, 3, 1};
    size = kSizes[c.draw.below(3)];
    const uint32_t word = c.draw.below(4);
    const size_t n = p.inputs().size();
    s.mapped = word == 0 ? (1u << n) - 1 : word & ((1u << n) - 1);
    if (s.mapped == 0) s.mapped = 1;
    const Tensors by = p.more_directions();
    s.lanes.clear();
    for (int64_t l = 0; l < size; ++l) s.lanes.push_back(copies(p.inputs()));
    for (size_t k = 0; k < n; ++k) {
      dims.push_back(s.mapped >> k & 1 ? 0 : kNone);
      if (dims.back() == kNone) {
        xs.push_back(copy_as(p.inputs()[k]));
        continue;
      }
      Tensors column;
      for (int64_t l = 0; l < size; ++l) {
        const Tensor& x = s.lanes[size_t(l)][k];
        const auto* d = static_cast<const double*>(by[k].raw_data());
        each_part<double>(x, [&](double& part) { part += double(l) * 0x1p-13 * *d++; });
        column.push_back(x);
      }
      const auto dim = int(c.draw.below(uint32_t(p.inputs()[k].rank()) + 1));
      xs.push_back(lanes_as(column, dim));
      dims.back() = c.draw.flag() ? dim - xs.back().rank() : dim;
    }
  }
  VmapOptions options() const { return {dims, {0}, Randomness::Error, size}; }
  /// The dim of the lanes of input k; from the front.
  int dim(size_t k) const { return dims[k] < 0 ? dims[k] + xs[k].rank() : dims[k]; }
  std::string cpp(const char* f) const {
    std::string out;
    for (size_t k = 0; k < xs.size(); ++k) out += cpp_placed(format("b{}", k), xs[k]);
    return out + "  const Tensors batch" + cpp_names("b", xs.size()) +
           format(";\n  const Function mapped = vmap({}, {{}, {0}, Randomness::Error, {}});\n", f,
                  cpp_dims(dims), size);
  }
};

}  // namespace lamella::verify
LAMELLA_API_END
