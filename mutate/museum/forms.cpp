// In-place and out= forms that ignore strides, sizes, overlaps, dtypes or versions.
#include <algorithm>
#include <cstring>

#include "lamella/mutate/museum/plant.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/pointwise_unary.h"

namespace lamella::verify {

namespace {

/// A target with repeated elements is written once for each repetition.
void again_and_again(Frame& f, int key) {
  const Tensor& t = f.tensor(0);
  if (!overlaps_itself(t)) return right_cell(f, key);
  Dims sizes(t.sizes());
  int64_t times = 1;
  for (int d = 0; d < t.rank(); ++d) {
    if (t.stride(d) != 0) continue;
    times *= sizes[d];
    sizes[d] = 1;
  }
  const Tensor once = make_view_unchecked(t, sizes, t.strides(), t.impl()->offset);
  if (overlaps_itself(once)) return right_cell(f, key);
  for (; times > 0; --times) cos_(once);
}

/// The functional result, as bytes from the target's first element on.
void write_densely(const Tensor& target, const Tensor& result) {
  const Storage& memory = *target.impl()->storage;
  const size_t begin = size_t(target.impl()->offset * itemsize(target.dtype()));
  const size_t bytes = size_t(result.numel() * itemsize(result.dtype()));
  std::memcpy(target.raw_data(), plain_copy(result).raw_data(), std::min(bytes, memory.nbytes - begin));
  target.impl()->storage->bump();
}

Tensor functional(const Frame& f) {
  const int skipped = f.op->form == OpForm::Out ? 1 : 0;
  Tensor result;
  Frame base{&right(f.op->base->name), f.args + skipped, &result};
  call(base);
  return result;
}

void strides_of_target_ignored(Frame& f, int key) {
  const Tensor& target = f.tensor(0);
  const Tensor result = functional(f);
  const bool fits = result.dtype() == target.dtype() && std::ranges::equal(result.sizes(), target.sizes());
  if (!fits || target.is_contiguous() || overlaps_itself(target)) return right_cell(f, key);
  write_densely(target, result);
}

void any_size_accepted(Frame& f, int key) {
  const Tensor& target = f.tensor(0);
  const Tensor result = functional(f);
  if (result.dtype() != target.dtype() || std::ranges::equal(result.sizes(), target.sizes()))
    return right_cell(f, key);
  write_densely(target, result);
}

/// With an exponent of rank 0, out= computes in the default dtype.
void computed_in_default_dtype(Frame& f, int key) {
  const Tensor &target = f.tensor(0), &a = f.tensor(1), &b = f.tensor(2);
  const bool narrows = a.dtype() == DType::F64 && b.rank() == 0 && target.dtype() == DType::F64;
  if (!narrows) return right_cell(f, key);
  const Tensor low = to(a, DType::F32);
  const void* args[] = {&target, &low, &b};
  Frame wrong{f.op, args, f.results, f.list};
  const Tensor low_b = to(b, DType::F32);
  args[2] = &low_b;
  right_cell(wrong, key);
}

void version_not_counted(Frame& f, int key) {
  right_cell(f, key);
  if (f.tensor(0).impl()->storage) f.tensor(0).impl()->storage->version.fetch_sub(1);
}

/// No temporary, and no look at what overlaps.
void overlap_not_noticed(Frame& f, int key) {
  const Tensor &out = f.tensor(0), &x = f.tensor(1);
  const bool straight = x.defined() && out.dtype() == x.dtype() && overlap(out, x) == Overlap::Partial &&
                        std::ranges::equal(out.sizes(), x.sizes()) && !overlaps_itself(out);
  if (!straight) return right_cell(f, key);
  const View to = out.view_of(), from = x.view_of();
  right("neg").kernel.cpu({{&to, 1}, {&from, 1}, x.dtype()});
  out.impl()->storage->bump();
}

}  // namespace

void add_form_exhibits(std::vector<Exhibit>& list) {
  const Wing wing{list, "form"};
  constexpr std::string_view kInPlace = "in_place_equals", kOut = "out_equals";
  wing.add("again_and_again", "pt#17935 pt#23063", "cos", kInPlace, on<Device::CPU, again_and_again>,
           "In place on repeated elements the function is applied several times.", OpForm::InPlace);
  wing.add("overlap_not_noticed", "pt#950 pt#24843 pt#48401 pt#23812", "neg", "overlap_is_refused",
           on<Device::CPU, overlap_not_noticed>,
           "Source and target overlap in part, and elements are read after they were written.", OpForm::Out);
  wing.add("target_taken_for_dense", "pt#12230", "fill", kInPlace, on<Device::CPU, strides_of_target_ignored>,
           "In place on a tensor that is not contiguous other elements are written.", OpForm::InPlace);
  wing.add("strides_of_out_ignored", "pt#84577", "tril", kOut, on<Device::CPU, strides_of_target_ignored>,
           "out= is written as if it were contiguous.", OpForm::Out);
  wing.add("written_beyond_the_view", "pt#5272 pt#41027", "exp", kOut, on<Device::CPU, any_size_accepted>,
           "out= of another size is accepted, and what surrounds the view is overwritten.", OpForm::Out);
  wing.add("computed_in_default_dtype", "pt#50121", "pow", kOut, on<Device::CPU, computed_in_default_dtype>,
           "out= computes in another dtype than the functional form.", OpForm::Out);
  wing.add("version_not_counted", "pt#177436 pt#185286 pt#197887", "mul", kInPlace,
           on<Device::CPU, version_not_counted>,
           "A write escapes the version counter that protects saved values.", OpForm::InPlace);
}

}  // namespace lamella::verify
