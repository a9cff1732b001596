// A kernel of kernels/ by its name, as rows of operators have it.
#include "lamella/ops/define.h"

namespace lamella::ops {

namespace {
StatedTypes stated_by(const kernels::Kernel& entry) {
  using kernels::Takes;
  StatedTypes out;
  out.takes_bool = entry.operands != Takes::Numbers && entry.operands != Takes::RealNumbers;
  out.takes_complex = entry.operands != Takes::Real && entry.operands != Takes::RealNumbers;
  out.refuses_zero = entry.refuses_zero;
  switch (entry.result) {
    case kernels::Result::Unsaid: break;
    case kernels::Result::Promoted: out.result = StatedTypes::Result::Promoted; break;
    case kernels::Result::Floating: out.result = StatedTypes::Result::Floating; break;
    case kernels::Result::First: out.result = StatedTypes::Result::First; break;
    case kernels::Result::Bool: out.result = StatedTypes::Result::Bool; break;
  }
  return out;
}
}  // namespace

Kernels kernel(std::string_view name, bool (*line_ok)(const Frame&), DTypeMask takes) {
  const kernels::Kernel& entry = kernels::named(name);
  Kernels all{.cpu = entry.cpu, .reference = entry.reference, .line_ok = line_ok};
  all.name = entry.threshold_name.empty() ? entry.name : entry.threshold_name;
  all.stated = stated_by(entry);
  all.line_dtypes = takes;
  for (int d = 0; d < kDTypeCount; ++d) all.lines[size_t(d)] = entry.straight(DType(d));
  return all;
}

}  // namespace lamella::ops
