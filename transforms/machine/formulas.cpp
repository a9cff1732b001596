// Formulas outside the tape: what they get straight from a frame, and cotangents that fit their inputs.
#include <algorithm>

#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/transforms/machine/tape.h"

namespace lamella {

FrameSaves::FrameSaves(const Frame& f, const BoundFormula& formula) {
  LAMELLA_ASSERT(formula.saves.size() <= kMaxSaves);
  int n_sizes = 0;
  for (size_t i = 0; i < formula.saves.size(); ++i) {
    const BoundSave s = formula.saves[i];
    LAMELLA_ASSERT(s.kind != BoundSave::SizesOf || n_sizes < int(kMaxSavedSizes));
    if (s.kind == BoundSave::Argument || s.kind == BoundSave::MetaOf) pointers_[i] = f.args[s.index];
    else if (s.kind == BoundSave::Result && gives_list(f)) pointers_[i] = &(list_ = TensorSpan(*f.list));
    else if (s.kind == BoundSave::Result) pointers_[i] = &f.results[s.index];
    else if (s.kind == BoundSave::SizesOf) pointers_[i] = &(ints_[n_sizes++] = f.tensor(s.index).sizes());
    else if (s.kind == BoundSave::DTypeOf) pointers_[i] = &(dtypes_[i] = f.tensor(s.index).dtype());
    else pointers_[i] = &(devices_[i] = f.tensor(s.index).device());
  }
}

Tensor fit_cotangent(const Tensor& t, Ints sizes, DType dtype) {
  Tensor out = t;
  if (is_complex(out.dtype()) && !is_complex(dtype)) out = contiguous(real(out));
  if (!std::ranges::equal(out.sizes(), sizes)) out = sum_to_size(out, sizes);
  return out.dtype() == dtype ? out : to(out, dtype);
}

}  // namespace lamella
