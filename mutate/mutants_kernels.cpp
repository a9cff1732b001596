// Wrong kernels, around the right ones.
#include <algorithm>
#include <cstring>
#include <map>

#include "lamella/core/parallel.h"
#include "lamella/core/visit.h"
#include "lamella/mutate/mutant_level.h"
#include "lamella/ops/infer.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/run/runner.h"

namespace lamella::verify {

namespace {

/// What calls of an operator's kernel were like in drawn cases. Some operators run another's: not called.
struct KernelTraits {
  bool called = false, line = false;
  bool tail = false;      ///< a last dim of more than four elements, and no multiple of four
  bool outer = false;     ///< two dims
  bool floats = false;    ///< a result was floating
  bool gaps_out = false;  ///< a result had gaps between its elements
  uint32_t gaps = 0;      ///< inputs, a bit each, that were not dense
  uint32_t square = 0;    ///< likewise: two neighbouring dims were of one size
  uint32_t many = 0;      ///< likewise: there were two elements
}* kernel_noting = nullptr;

void note_call(const KernelCall& c) {
  KernelTraits& t = *kernel_noting;
  t.called = true;
  for (const View& out : c.outs) {
    t.outer |= out.rank >= 2 && out.numel() > 0 && out.sizes[0] > 1;
    int64_t least = 0;
    for (int d = 0; d < out.rank; ++d)
      if (out.sizes[d] > 1 && (!least || out.strides[d] < least)) least = out.strides[d];
    t.floats |= is_floating(out.dtype);
    t.gaps_out |= least > 1 && out.numel() > 1;
    t.tail |= out.rank > 0 && out.numel() > 0 && out.sizes[out.rank - 1] > 4 && out.sizes[out.rank - 1] % 4;
  }
  for (size_t k = 0; k < c.ins.size() && k < 32; ++k) {
    const View& v = c.ins[k];
    const uint32_t bit = 1u << k;
    if (v.numel() < 2) continue;
    t.many |= bit;
    const Dims dense = contiguous_strides({v.sizes, size_t(v.rank)});
    for (int d = 0; d < v.rank; ++d) {
      if (v.sizes[d] > 1 && v.strides[d] > dense[d]) t.gaps |= bit;
      if (d > 0 && v.sizes[d] > 1 && v.sizes[d] == v.sizes[d - 1]) t.square |= bit;
    }
  }
}

template <size_t D> void noting_line(void* out, const void* const* ins, int64_t n) {
  kernel_noting->line = true;
  right_row().kernel.lines[D](out, ins, n);
}

const KernelTraits& calls_of(const Op& op) {
  static std::map<std::string, KernelTraits> known;
  const auto [at, fresh] = known.try_emplace(op.name);
  if (!fresh) return at->second;
  kernel_noting = &at->second;
  observe(op, [](Op& row) {
    row.kernel.cpu = [](const KernelCall& c) { note_call(c), right_row().kernel.cpu(c); };
    row.kernel.lines = {};
  });
  observe(op, [](Op& row) {
    [&]<size_t... D>(std::index_sequence<D...>) {
      ((row.kernel.lines[D] = row.kernel.lines[D] ? noting_line<D> : nullptr), ...);
    }
    (std::make_index_sequence<kDTypeCount>{});
  });
  return at->second;
}

bool has_kernel(const Op& op) { return may_have_kernel(op) && calls_of(op).called; }
bool writes_gaps(const Op& op) { return has_kernel(op) && calls_of(op).gaps_out; }
bool has_tail(const Op& op) { return has_kernel(op) && calls_of(op).tail; }
bool has_two_dims(const Op& op) { return has_kernel(op) && calls_of(op).outer; }
template <uint32_t KernelTraits::*Trait> uint32_t inputs(const Op& op) { return calls_of(op).*Trait; }

bool pointwise(const Op& op) { return has_kernel(op) && op.shape == ShapeClass::Broadcast; }
bool pointwise_pair(const Op& op) {
  return pointwise(op) && op.simple && op.tensor_params.size() == 2 && op.tensor_params[1] == 1;
}
bool pointwise_many(const Op& op) { return pointwise(op) && op.tensor_params.size() >= 2; }
/// Has results that rounding may change.
bool computes_floats(const Op& op) {
  return has_kernel(op) && !op.has(kDiscontinuous) && calls_of(op).floats;
}
bool reduction(const Op& op) { return has_kernel(op) && op.shape == ShapeClass::Reduce; }

void right_kernel(const KernelCall& c) { right_row().kernel.cpu(c); }
void right_kernel(const KernelCall& c, std::span<const View> ins) {
  right_row().kernel.cpu({c.outs, ins, c.compute, c.ints, c.scalars});
}

/// Calls f(offset, multi-index) for the elements of a view in row-major order.
template <class F> void each(const View& v, F&& f) {
  Dims at(v.rank);
  for (int64_t i = 0, n = v.numel(); i < n; ++i) {
    int64_t offset = 0;
    for (int d = 0; d < v.rank; ++d) offset += at[d] * v.strides[d];
    f(offset, at);
    for (int d = v.rank - 1; d >= 0 && ++at[d] == v.sizes[d]; --d) at[d] = 0;
  }
}
/// What was never computed is some other value.
void increment(const View& v, int64_t offset) {
  visit_dtype(v.dtype, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    T& x = v.as<T>()[offset];
    if constexpr (std::is_same_v<T, bool>) x = !x;
    else x = T(x + T(1));
  });
}

void copy_elements(const View& from, const View& to, int64_t n) {
  const size_t bytes = size_t(itemsize(from.dtype));
  std::vector<int64_t> offsets;
  each(to, [&](int64_t offset, const Dims&) { offsets.push_back(offset); });
  size_t i = 0;
  each(from, [&](int64_t offset, const Dims&) {
    if (int64_t(i) < n)
      std::memcpy(to.as<char>() + size_t(offsets[i]) * bytes, from.as<char>() + size_t(offset) * bytes,
                  bytes);
    ++i;
  });
}

void last_element_missed(const KernelCall& c) {
  right_kernel(c);
  for (const View& out : c.outs) {
    int64_t last = 0;
    each(out, [&](int64_t offset, const Dims&) { last = offset; });
    if (out.numel() >= 3) increment(out, last);
  }
}

/// What fresh memory held shows in the last element.
void last_element_unwritten(const KernelCall& c) {
  std::vector<Tensor> buffers;
  std::vector<View> outs;
  for (const View& out : c.outs) {
    buffers.push_back(make_tensor({out.sizes, size_t(out.rank)}, out.dtype, Device::CPU));
    outs.push_back(buffers.back().view_of());
    copy_elements(out, outs.back(), out.numel());  // some kernels add to what is there
  }
  right_row().kernel.cpu({outs, c.ins, c.compute, c.ints, c.scalars});
  for (size_t k = 0; k < outs.size(); ++k) copy_elements(outs[k], c.outs[k], outs[k].numel() - 1);
}

/// The kernel writes between the elements of a result that has gaps.
void gaps_overwritten(const KernelCall& c) {
  right_kernel(c);
  for (const View& out : c.outs) {
    int64_t least = 0;
    for (int d = 0; d < out.rank; ++d)
      if (out.sizes[d] > 1 && (!least || out.strides[d] < least)) least = out.strides[d];
    if (least > 1 && out.numel() > 1) increment(out, 1);
  }
}

/// The last elements of each inner run that do not fill a vector of four.
void vector_tail_missed(const KernelCall& c) {
  right_kernel(c);
  for (const View& out : c.outs) {
    const int64_t n = out.rank ? out.sizes[out.rank - 1] : 1;
    each(out, [&](int64_t offset, const Dims& at) {
      if (n > 4 && at[out.rank - 1] >= n / 4 * 4) increment(out, offset);
    });
  }
}

/// The outermost loop runs once.
void outer_loop_once(const KernelCall& c) {
  right_kernel(c);
  for (const View& out : c.outs)
    each(out, [&](int64_t offset, const Dims& at) {
      if (out.rank >= 2 && at[0] > 0) increment(out, offset);
    });
}

using Wrong = void (*)(View& v, Dims& strides);
/// The right kernel, one input of which is seen in a wrong way.
template <Wrong W> void input_seen(const KernelCall& c) {
  std::vector<View> ins(c.ins.begin(), c.ins.end());
  const size_t k = size_t(live_bug.operand);
  Dims strides;
  if (k < ins.size()) {
    strides.resize(ins[k].rank);
    std::copy_n(ins[k].strides, ins[k].rank, strides.begin());
    W(ins[k], strides);
    ins[k].strides = strides.data();
  }
  right_kernel(c, ins);
}

/// Reads as if the input were dense, where that stays inside its memory.
void as_dense(View& v, Dims& strides) {
  int64_t last = 0;
  for (int d = 0; d < v.rank; ++d) last += (v.sizes[d] - 1) * v.strides[d];
  if (v.numel() > 0 && last >= v.numel() - 1) strides = contiguous_strides({v.sizes, size_t(v.rank)});
}
/// Reads columns for rows, where there are as many.
void as_transposed(View& v, Dims& strides) {
  for (int d = v.rank - 1; d > 0; --d)
    if (v.sizes[d] == v.sizes[d - 1] && v.sizes[d] > 1) return std::swap(strides[d], strides[d - 1]);
}
/// The first element stands for all of the innermost dim.
void as_repeated(View& v, Dims& strides) {
  for (int d = v.rank - 1; d >= 0; --d)
    if (v.sizes[d] > 1) return void(strides[d] = 0);
}

/// Every element is read from the place of the next.
void input_shifted(const KernelCall& c) {
  std::vector<View> ins(c.ins.begin(), c.ins.end());
  const size_t k = size_t(live_bug.operand);
  if (k >= ins.size() || ins[k].numel() < 2) return right_kernel(c);
  View& v = ins[k];
  const Tensor copy = make_tensor({v.sizes, size_t(v.rank)}, v.dtype, Device::CPU);
  const size_t bytes = size_t(itemsize(v.dtype));
  std::vector<int64_t> offsets;
  each(v, [&](int64_t offset, const Dims&) { offsets.push_back(offset); });
  for (size_t i = 0; i < offsets.size(); ++i)
    std::memcpy(static_cast<char*>(copy.raw_data()) + i * bytes,
                v.as<char>() + size_t(offsets[(i + 1) % offsets.size()]) * bytes, bytes);
  v = copy.view_of();
  right_kernel(c, ins);
}

void operands_swapped(const KernelCall& c) {
  std::vector<View> ins(c.ins.begin(), c.ins.end());
  std::swap(ins[0], ins[1]);
  right_kernel(c, ins);
}

/// The dim after the one that is meant.
void along_next_dim(const KernelCall& c) {
  Dims ints(c.ints);
  const int rank = c.ins[0].rank;
  if (ints.size() > 0 && rank >= 2) ints[0] = (ints[0] + 1) % rank;
  right_row().kernel.cpu({c.outs, c.ins, c.compute, ints, c.scalars});
}
void flag_flipped(const KernelCall& c) {
  Dims ints(c.ints);
  if (ints.size() > 0) ints[ints.size() - 1] = !ints[ints.size() - 1];
  right_row().kernel.cpu({c.outs, c.ins, c.compute, ints, c.scalars});
}

void accumulates_from_one(const KernelCall& c) {
  right_kernel(c);
  for (const View& out : c.outs) each(out, [&](int64_t offset, const Dims&) { increment(out, offset); });
}

void broadcast_missing(const KernelCall& c) {
  right_kernel(c);
  const View& out = c.outs[0];
  for (const View& in : c.ins)
    for (int d = 0; d < in.rank && in.rank == out.rank; ++d) {
      if (in.strides[d] != 0 || in.sizes[d] < 2) continue;
      each(out, [&](int64_t offset, const Dims& at) {
        if (at[d] > 0) increment(out, offset);
      });
    }
}

/// f64 went through f32, f32 through 16 bits.
void rounded_too_early(const KernelCall& c) {
  right_kernel(c);
  const View& out = c.outs[0];
  each(out, [&](int64_t o, const Dims&) {
    if (out.dtype == DType::F64) out.as<double>()[o] = float(out.as<double>()[o]);
    if (out.dtype == DType::F32) out.as<float>()[o] = float(bf16(out.as<float>()[o]));
    if (out.dtype == DType::C128) out.as<c128>()[o] = c128(c64(out.as<c128>()[o]));
  });
}

void empty_not_identity(const KernelCall& c) {
  right_kernel(c);
  if (c.ins[0].numel() == 0)
    each(c.outs[0], [&](int64_t offset, const Dims&) { increment(c.outs[0], offset); });
}

void input_overwritten(const KernelCall& c) {
  right_kernel(c);
  const View& in = c.ins[0];
  if (in.numel() > 0 && in.data != c.outs[0].data) increment(in, 0);
}

void threads_disagree(const KernelCall& c) {
  right_kernel(c);
  for (const View& out : c.outs)
    if (threads() > 1 && out.numel() > 0) increment(out, 0);
}

template <KernelFn K> void put(Op& row) {
  live_bug.counted = true;
  row.kernel.cpu = [](const KernelCall& c) {
    live_bug.reached.fetch_add(1, std::memory_order_relaxed);
    K(c);
  };
  row.kernel.lines = {};  // small tensors take the kernel too
}

/// The short way for small dense tensors: right up to its last element, which repeats the first.
template <size_t D> void line_short(void* out, const void* const* ins, int64_t n) {
  live_bug.reached.fetch_add(1, std::memory_order_relaxed);
  right_row().kernel.lines[D](out, ins, n);
  const size_t bytes = right_row().infer == ops::infer_compare ? 1 : size_t(itemsize(DType(D)));
  if (n > 1) std::memcpy(static_cast<char*>(out) + size_t(n - 1) * bytes, out, bytes);
}
template <size_t D> void line_swapped(void* out, const void* const* ins, int64_t n) {
  live_bug.reached.fetch_add(1, std::memory_order_relaxed);
  const void* const swapped[] = {ins[1], ins[0]};
  right_row().kernel.lines[D](out, swapped, n);
}
template <bool Short> void put_line(Op& row) {
  live_bug.counted = true;
  [&]<size_t... D>(std::index_sequence<D...>) {
    ((row.kernel.lines[D] = row.kernel.lines[D] ? (Short ? line_short<D> : line_swapped<D>) : nullptr), ...);
  }
  (std::make_index_sequence<kDTypeCount>{});
}

bool has_line(const Op& op) { return may_have_kernel(op) && calls_of(op).line; }
/// Swapping its operands is seen: found out on drawn cases, see inert_pairs().
bool ordered_pair(const Op& op) { return pointwise_pair(op) && !inert("swapped", op); }
bool ordered_line(const Op& op) { return has_line(op) && ordered_pair(op); }
bool along_dim(const Op& op) {
  return has_kernel(op) && op.shape == ShapeClass::AlongDim && op.schema.find("dim") >= 0;
}
bool has_flag(const Op& op) {
  const Param& last = op.schema.params.back();
  return has_kernel(op) && last.kind == ParamKind::Bool;
}

}  // namespace

std::vector<Mutant> kernel_mutants() {
  return {
      {"last_element_missed", "kernel", "The tail of the loop is one short.", has_kernel,
       put<last_element_missed>},
      {"last_element_unwritten", "kernel", "The last element is what fresh memory held.", has_kernel,
       put<last_element_unwritten>},
      {"gaps_overwritten", "kernel", "What lies between a result's elements is overwritten.", writes_gaps,
       put<gaps_overwritten>},
      {"vector_tail_missed", "kernel", "What does not fill a vector is left out.", has_tail,
       put<vector_tail_missed>},
      {"outer_loop_once", "kernel", "The outermost loop runs once.", has_two_dims, put<outer_loop_once>},
      {"strides_ignored", "kernel", "An input is read as if it were dense.", has_kernel,
       put<input_seen<as_dense>>, inputs<&KernelTraits::gaps>},
      {"strides_swapped", "kernel", "An input's rows are read as columns.", has_kernel,
       put<input_seen<as_transposed>>, inputs<&KernelTraits::square>},
      {"stride_zero", "kernel", "An input is broadcast along its last dim.", has_kernel,
       put<input_seen<as_repeated>>, inputs<&KernelTraits::many>},
      {"input_shifted", "kernel", "An input is read one element further on.", has_kernel, put<input_shifted>,
       inputs<&KernelTraits::many>},
      {"operands_swapped", "kernel", "a op b is computed as b op a.", ordered_pair, put<operands_swapped>},
      {"accumulates_from_one", "kernel", "The accumulator does not start at the identity.", reduction,
       put<accumulates_from_one>},
      {"broadcast_missing", "kernel", "Only the first entry along a broadcast dim is computed.",
       pointwise_many, put<broadcast_missing>},
      {"rounded_too_early", "kernel", "A result went through the next narrower dtype.", computes_floats,
       put<rounded_too_early>},
      {"empty_not_identity", "kernel", "The sum of nothing is one too much.", reduction,
       put<empty_not_identity>},
      {"input_overwritten", "kernel", "The kernel uses its input as scratch.", pointwise,
       put<input_overwritten>},
      {"threads_disagree", "kernel", "With several threads the first element is another one.", reduction,
       put<threads_disagree>},
      {"along_next_dim", "kernel", "The loop runs along the next dim.", along_dim, put<along_next_dim>},
      {"flag_flipped", "kernel", "A flag means its opposite.", has_flag, put<flag_flipped>},
      {"line_short", "kernel", "The short way for small tensors is one short.", has_line, put_line<true>},
      {"line_swapped", "kernel", "The short way for small tensors computes b op a.", ordered_line,
       put_line<false>},
  };
}

}  // namespace lamella::verify
