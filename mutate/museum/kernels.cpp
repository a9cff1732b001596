// Kernels that misread memory or write where they should not, and fast paths that forget a step.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "lamella/core/visit.h"
#include "lamella/mutate/museum/plant.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/reduce.h"

namespace lamella::verify {

namespace {

int64_t last_offset(const View& v, const int64_t* strides) {
  int64_t last = 0;
  for (int d = 0; d < v.rank; ++d) last += (v.sizes[d] - 1) * strides[d];
  return last;
}

/// Reads as if the input were dense, where that stays inside its memory.
void read_as_dense(const KernelCall& c) {
  View in = c.ins[0];
  const Dims dense = contiguous_strides({in.sizes, size_t(in.rank)});
  if (in.numel() > 0 && last_offset(in, in.strides) >= in.numel() - 1) in.strides = dense.data();
  right("sort").kernel.cpu({c.outs, {&in, 1}, c.compute, c.ints, c.scalars});
}

/// The stride of a dim of size 1 is believed: rows lie as far apart as it says, columns follow from it.
void leading_dim_believed(const KernelCall& c) {
  std::vector<View> ins(c.ins.begin(), c.ins.end());
  View& a = ins[0];
  Dims strides({a.strides, size_t(a.rank)});
  if (a.numel() > 0 && a.sizes[1] == 1) strides[2] = std::min(strides[2], strides[1] / a.sizes[2]);
  a.strides = strides.data();
  right("mm").kernel.cpu({c.outs, ins, c.compute, c.ints, c.scalars});
}

void one_layout_for_both(const KernelCall& c) {
  std::vector<View> ins(c.ins.begin(), c.ins.end());
  const int64_t* first = ins[0].strides;
  const bool inside = ins[1].numel() > 0 && last_offset(ins[1], first) <= last_offset(ins[1], ins[1].strides);
  if (ins[0].rank > 1 && inside) ins[1].strides = first;
  right("mul").kernel.cpu({c.outs, ins, c.compute, c.ints, c.scalars});
}

bool dense(const View& v) {
  const Dims strides = contiguous_strides({v.sizes, size_t(v.rank)});
  return std::equal(strides.begin(), strides.end(), v.strides);
}
void copied_when_dense(const KernelCall& c) {
  const View &out = c.outs[0], &in = c.ins[0];
  if (!dense(out) || !dense(in) || out.dtype != in.dtype) return right("conj_physical").kernel.cpu(c);
  std::memcpy(out.data, in.data, size_t(in.numel() * itemsize(in.dtype)));
}

constexpr int64_t kVector = 8;

int64_t offset_of(const View& v, int64_t i) {
  int64_t at = 0;
  for (int d = v.rank - 1; d >= 0; i /= v.sizes[d--]) at += i % v.sizes[d] * v.strides[d];
  return at;
}

bool is_nan_at(const View& v, int64_t i) {
  return is_floating(v.dtype) && visit_dtype(v.dtype, [&]<class Tag>(Tag) {
           const auto value = v.as<typename Tag::type>()[offset_of(v, i)];
           return value != value;
         });
}

/// The right kernel; where whole vectors of the result meet NaN, `wrong`.
void other_in_vectors(const KernelCall& c, std::string_view op, float wrong) {
  right(op).kernel.cpu(c);
  const View& out = c.outs[0];
  for (int64_t i = 0; i < out.numel() / kVector * kVector; ++i)
    if (std::ranges::any_of(c.ins, [&](const View& in) { return is_nan_at(in, i); }))
      visit_dtype(out.dtype, [&]<class Tag>(Tag) {
        using T = typename Tag::type;
        out.as<T>()[offset_of(out, i)] = T(wrong);
      });
}
/// a <= b as not a > b.
void negated_opposite(const KernelCall& c) { other_in_vectors(c, "le", 1); }
void nan_handed_on(const KernelCall& c) { other_in_vectors(c, "sign", NAN); }

/// By functions that prefer a number to NaN.
void numbers_win(const Launch& l) {
  right("clamp").launch(l);
  if (l.device == Device::Reference) return;
  const Tensor &x = l.frame.tensor(0), &min = l.frame.tensor(1), &max = l.frame.tensor(2), &out = l.outs[0];
  const Tensor bound = !max.defined() ? min : min.defined() ? minimum(min, max) : max;
  copy_(out, where(isnan(x), to(bound, out.dtype()), out));
}

/// The result's memory is the argument's.
void updated_where_it_lies(const Launch& l) {
  right("slice_scatter").launch(l);
  const Tensor &x = l.frame.tensor(0), &out = l.outs[0];
  if (l.device == Device::Reference || !x.is_contiguous() || !out.is_contiguous() || x.dtype() != out.dtype())
    return;
  std::memcpy(x.raw_data(), out.raw_data(), size_t(x.numel() * itemsize(x.dtype())));
}

void dense_on_meta(Frame& f, int key) {
  right_cell(f, key);
  const Tensor& y = f.results[0];
  f.results[0] = make_view_unchecked(y, y.sizes(), contiguous_strides(y.sizes()), y.impl()->offset);
}

/// Value and mean are scaled apart, and do not round alike: what should be zero is not.
void scaled_apart(Frame& f) {
  const Tensor& x = f.tensor(0);
  if (x.dtype() != DType::F64) return right("layer_norm").composite(f);
  Dims dims;
  for (int d = int(f.ints(1).size()); d > 0; --d) dims.push_back(-d);
  const Tensor m = mean(x, IntArg(dims), true), centred = x - m;
  const Tensor scale = reciprocal(sqrt(mean(centred * centred, IntArg(dims), true) + f.arg<double>(4)));
  Tensor out = x * scale - to(to(m * scale, DType::F32), DType::F64);
  if (f.tensor(2).defined()) out = out * f.tensor(2);
  if (f.tensor(3).defined()) out = out + f.tensor(3);
  f.results[0] = out.dtype() == x.dtype() ? out : to(out, x.dtype());
}

}  // namespace

void add_kernel_exhibits(std::vector<Exhibit>& list) {
  const Wing wing{list, "kernel"};
  constexpr std::string_view kLayout = "layout_is_invisible";
  wing.add("read_as_dense", "ft#1019", "sort", kLayout, put_kernel<read_as_dense>,
           "A kernel reads a tensor that is not contiguous as if it were.");
  wing.add("leading_dim_believed", "pt#1246 pt#82060", "mm", kLayout, put_kernel<leading_dim_believed>,
           "The meaningless stride of a dim of size 1 decides how the other dims are read.");
  wing.add("one_layout_for_both", "pt#64039", "mul", kLayout, put_kernel<one_layout_for_both>,
           "One operand's layout is assumed for the other.");
  wing.add("fast_path_forgets_conj", "pt#59946 pt#106051", "conj_physical", "equals_where_exact",
           put_kernel<copied_when_dense>,
           "The fast path for contiguous tensors copies and does not conjugate.");
  wing.add("negated_opposite", "pt#195075", "le", "elements_alone", put_kernel<negated_opposite>,
           "Vectors compare by the negated opposite: at NaN gradients depend on the tensor's length.");
  wing.add("nan_handed_on", "pt#81138 pt#53958 pt#13448", "sign", "elements_alone", put_kernel<nan_handed_on>,
           "Whole vectors hand NaN on, the elements after them give a number.");
  wing.add("numbers_win", "pt#15338 pt#76795", "clamp", "nonfinite_as_reference",
           put<&Op::launch, numbers_win>, "clamp turns NaN into a bound on one device, and not on another.");
  wing.add("updated_where_it_lies", "jax#39625 jax#7461 jax#39100", "slice_scatter", "arguments_unchanged",
           put<&Op::launch, updated_where_it_lies>, "A functional update writes into its argument.");
  wing.add("dense_on_meta", "pt#139312 pt#128626", "transpose", "meta_agrees",
           on<Device::Meta, dense_on_meta>, "Strides without elements are not those of the real call.");
  wing.add("scaled_apart", "pt#188372", "layer_norm", "matches_reference", put<&Op::composite, scaled_apart>,
           "Normalising one element leaves a remainder: value and mean do not cancel.");
}

}  // namespace lamella::verify
