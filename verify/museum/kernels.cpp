// Kernels that misread memory, differ between vector and tail, or cancel.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "lamella/verify/museum/plant.h"

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

template <class T> void copy_line(void* out, const void* const* ins, int64_t n) {
  std::memcpy(out, ins[0], size_t(n) * sizeof(T));
}

/// Element i of a view, by row-major position.
double at(const View& v, int64_t i) {
  int64_t offset = 0;
  for (int d = v.rank - 1; d >= 0; i /= v.sizes[d], --d) offset += i % v.sizes[d] * v.strides[d];
  return v.dtype == DType::F64 ? v.as<double>()[offset] : double(v.as<float>()[offset]);
}
void put(const View& v, int64_t i, double value) {
  int64_t offset = 0;
  for (int d = v.rank - 1; d >= 0; i /= v.sizes[d], --d) offset += i % v.sizes[d] * v.strides[d];
  v.dtype == DType::F64 ? void(v.as<double>()[offset] = value) : void(v.as<float>()[offset] = float(value));
}
bool plain_floats(const KernelCall& c) {
  for (const View& v : c.ins)
    if (v.dtype != c.compute) return false;
  return c.outs[0].dtype == c.compute && (c.compute == DType::F64 || c.compute == DType::F32);
}
/// Elements that whole vectors of four cover.
int64_t in_vectors(const KernelCall& c) { return c.outs[0].numel() / 4 * 4; }

void ordered_in_vectors(const KernelCall& c) {
  right("maximum").kernel.cpu(c);
  if (!plain_floats(c)) return;
  for (int64_t i = 0; i < in_vectors(c); ++i)
    put(c.outs[0], i, at(c.ins[0], i) < at(c.ins[1], i) ? at(c.ins[1], i) : at(c.ins[0], i));
}

void nan_has_no_sign(const KernelCall& c) {
  right("sign").kernel.cpu(c);
  if (!plain_floats(c)) return;
  for (int64_t i = 0; i < in_vectors(c); ++i)
    if (std::isnan(at(c.ins[0], i))) put(c.outs[0], i, 0);
}

/// Comparisons choose: a NaN is not below the bound, so the bound is taken.
void bound_beats_nan(const Launch& l) {
  right("clamp").launch(l);
  const Tensor &x = l.frame.tensor(0), &min = l.frame.tensor(1), &out = l.outs[0];
  const bool same = std::ranges::equal(x.sizes(), out.sizes()) && x.dtype() == out.dtype();
  if (l.on_reference || !min.defined() || min.numel() != 1 || !same || out.dtype() != DType::F64) return;
  for (int64_t i = 0; i < x.numel(); ++i)
    if (std::isnan(at(x.view_of(), i))) put(out.view_of(), i, min.item<double>());
}

template <KernelFn K> void put_kernel(Op& row) {
  row.kernel.cpu = K;
  row.kernel.lines = {};  // small tensors take the kernel too
}

/// The result's memory is the argument's.
void updated_where_it_lies(const Launch& l) {
  right("slice_scatter").launch(l);
  const Tensor &x = l.frame.tensor(0), &out = l.outs[0];
  if (l.on_reference || !x.is_contiguous() || !out.is_contiguous() || x.dtype() != out.dtype()) return;
  std::memcpy(x.raw_data(), out.raw_data(), size_t(x.numel() * itemsize(x.dtype())));
}

void dense_on_meta(Frame& f, int key) {
  right_cell(f, key);
  const Tensor& y = f.results[0];
  f.results[0] = make_view_unchecked(y, y.sizes(), contiguous_strides(y.sizes()), y.impl()->offset);
}

/// Variance as the mean of squares less the square of the mean.
void variance_cancels(Frame& f) {
  const Tensor& x = f.tensor(0);
  if (itemsize(x.dtype()) < 4) return right("layer_norm").composite(f);
  Dims dims;
  for (int d = int(f.ints(1).size()); d > 0; --d) dims.push_back(-d);
  const Tensor m = mean(x, IntArg(dims), true);
  const Tensor variance = mean(x * x, IntArg(dims), true) - m * m;
  Tensor out = (x - m) * reciprocal(sqrt(variance + f.arg<double>(4)));
  if (f.tensor(2).defined()) out = out * f.tensor(2);
  if (f.tensor(3).defined()) out = out + f.tensor(3);
  f.results[0] = out.dtype() == x.dtype() ? out : to(out, x.dtype());
}

}  // namespace

void add_kernel_exhibits(std::vector<Exhibit>& list) {
  const auto add = [&](std::string_view id, std::string_view source, std::string_view op,
                       std::string_view law, void (*plant)(Op&), std::string_view summary) {
    list.push_back({id, "kernel", source, summary, op, law, plant});
  };
  constexpr std::string_view kLayout = "layout_is_invisible";
  add("read_as_dense", "ft#1019", "sort", kLayout, put_kernel<read_as_dense>,
      "A kernel reads a tensor that is not contiguous as if it were.");
  add("leading_dim_believed", "pt#1246 pt#82060", "mm", kLayout, put_kernel<leading_dim_believed>,
      "The meaningless stride of a dim of size 1 decides how the other dims are read.");
  add("one_layout_for_both", "pt#64039", "mul", kLayout, put_kernel<one_layout_for_both>,
      "One operand's layout is assumed for the other.");
  add(
      "fast_path_forgets_conj", "pt#59946 pt#106051", "conj_physical", "equals_where_exact",
      [](Op& r) {
        r.kernel.lines[size_t(DType::C128)] = copy_line<c128>;
        r.kernel.lines[size_t(DType::C64)] = copy_line<c64>;
      },
      "The fast path for contiguous tensors copies and does not conjugate.");
  add("ordered_in_vectors", "pt#195075", "maximum", "matches_reference", put_kernel<ordered_in_vectors>,
      "Results at NaN depend on the length: whole vectors compare otherwise than the tail.");
  add("nan_has_no_sign", "pt#81138 pt#53958 pt#13448", "sign", "matches_reference",
      put_kernel<nan_has_no_sign>, "Vector and scalar paths differ at NaN.");
  add(
      "bound_beats_nan", "pt#15338 pt#76795", "clamp", "matches_reference",
      [](Op& r) { r.launch = bound_beats_nan; }, "A bound is taken where the value is NaN.");
  add(
      "updated_where_it_lies", "jax#39625 jax#7461 jax#39100", "slice_scatter", "arguments_unchanged",
      [](Op& r) { r.launch = updated_where_it_lies; }, "A functional update writes into its argument.");
  add(
      "dense_on_meta", "pt#139312 pt#128626", "transpose", "meta_agrees",
      [](Op& r) { r.cells[int(Device::Meta)] = dense_on_meta; },
      "Strides without elements are not those of the real call.");
  add(
      "variance_cancels", "pt#188372", "layer_norm", "matches_reference",
      [](Op& r) { r.composite = variance_cancels; }, "A variance computed by a difference cancels.");
}

}  // namespace lamella::verify
