// gather, scatter_add, index_select. Every index is checked before anything is written.
#include <algorithm>
#include <atomic>
#include <vector>

#include "lamella/core/visit.h"
#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/parts.h"
#include "lamella/kernels/cpu/stream.h"

namespace lamella::kernels {
namespace {

void check_moves(const char* kernel, const View& to, const View& from) {
  if (is_internal(from.dtype) || to.dtype != from.dtype)
    fail_dtype(kernel, is_internal(from.dtype) ? from.dtype : to.dtype);
}

// A view over `sizes` whose stride along `dim` is 0: the index supplies that part of the address.
struct Looked {
  int64_t strides[IterPlan::kMaxDims];
  Looked(const View& v, int64_t dim) {
    for (int d = 0; d < v.rank; ++d) strides[d] = d == dim ? 0 : v.strides[d];
  }
};

void check_rank(const View& v) {
  LAMELLA_CHECK(v.rank <= IterPlan::kMaxDims, Shape, "rank {} is beyond the supported {}", v.rank,
                IterPlan::kMaxDims);
}

template <class T, class A> void add_to(A& target, A value) {
  if constexpr (std::is_same_v<T, bool>) target = target || value;
  else if constexpr (std::is_integral_v<T>) target = T(uint64_t(target) + uint64_t(value));
  else target = target + value;
}

template <class A, class T> void add_at(char* to, const char* from) {
  add_to<T>(*reinterpret_cast<A*>(to), A(*reinterpret_cast<const T*>(from)));
}

using AddFn = void (*)(char* to, int64_t to_step, const char* index, int64_t index_step, const char* from,
                       int64_t from_step, int64_t to_along, int64_t n);

// Rows mostly lie one behind the other. Addresses that come from an index keep the processor from seeing far
// enough, so the next row is asked for while this one is worked on; what lies behind the last is not read.
constexpr int64_t kAhead = 2048;
inline void prefetch(const void* at) { __builtin_prefetch(at); }

// Within one gapless row. Four are read before the first is added, and added in order: they may add to one
// element.
template <class A, class T> void add_gapless(A* to, const int64_t* index, const T* from, int64_t n) {
  int64_t i = 0;
  const int64_t ahead = std::min<int64_t>(n, kAhead);
  for (; i + 4 <= n; i += 4, index += 4, from += 4) {
    prefetch(index + ahead);
    prefetch(from + ahead);
    prefetch(to + i + ahead);
    const A a = A(from[0]), b = A(from[1]), c = A(from[2]), d = A(from[3]);
    const int64_t at_b = index[1], at_c = index[2], at_d = index[3];
    add_to<T>(to[index[0]], a);
    add_to<T>(to[at_b], b);
    add_to<T>(to[at_c], c);
    add_to<T>(to[at_d], d);
  }
  for (; i < n; ++i) add_to<T>(to[*index++], A(*from++));
}

// Adds from[i] to the element index[i] steps of `to_along` away; to_step moves the other coordinates along.
template <class A, class T> void add_row(char* to, int64_t to_step, const char* index, int64_t index_step,
                                         const char* from, int64_t from_step, int64_t to_along, int64_t n) {
  if (to_step == 0 && to_along == int64_t(sizeof(A)) && index_step == int64_t(sizeof(int64_t)) &&
      from_step == int64_t(sizeof(T))) {  // within one gapless row
    return add_gapless(reinterpret_cast<A*>(to), reinterpret_cast<const int64_t*>(index),
                       reinterpret_cast<const T*>(from), n);
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = *reinterpret_cast<const int64_t*>(index + i * index_step);
    add_at<A, T>(to + i * to_step + at * to_along, from + i * from_step);
  }
}

/// The target is of exec_dtype(dtype).
AddFn find_add(DType dtype) {
  return visit_dtype(dtype, [](auto tag) -> AddFn {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, f128> || std::is_same_v<T, c256>) return nullptr;
    else if constexpr (is_half_type<T>) return add_row<float, T>;
    else return add_row<T, T>;
  });
}

// Row-major odometer over the outer dims: the order in which repeated indices add up is part of the contract,
// so the dims are not sorted. Calls f with the element offsets of three stride sets; the last dim is the
// caller's.
template <class F>
void for_each_row(int rank, const int64_t* sizes, const int64_t* const (&strides)[3], F&& f) {
  int64_t index[IterPlan::kMaxDims] = {}, at[3] = {};
  for (;;) {
    f(static_cast<const int64_t*>(at));
    int d = rank - 2;
    for (; d >= 0; --d) {
      const bool step = ++index[d] < sizes[d];
      for (int k = 0; k < 3; ++k) at[k] += step ? strides[k][d] : -strides[k][d] * (sizes[d] - 1);
      if (step) break;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

/// Whether one of n neighbours is negative, or at least `size`. The sign of at | (size - 1 - at) says it,
/// without a comparison, which vectors of 64-bit integers do not have everywhere.
bool one_beyond(const int64_t* index, int64_t n, int64_t size) {
  int64_t signs[4] = {};
  const int64_t last = size - 1;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; ++k) signs[k] |= index[i + k] | int64_t(uint64_t(last) - uint64_t(index[i + k]));
  for (; i < n; ++i) signs[0] |= index[i] | int64_t(uint64_t(last) - uint64_t(index[i]));
  return (signs[0] | signs[1] | signs[2] | signs[3]) < 0;
}

// In whatever order is fast; a message names the first offender in row-major order.
void check_indices(const View& index, int64_t dim, int64_t size) {
  const auto good = [size](int64_t value) { return value >= 0 && value < size; };
  int64_t sizes[IterPlan::kMaxDims];  // an expanded dim repeats what has been looked at
  for (int d = 0; d < index.rank; ++d)
    sizes[d] = index.strides[d] == 0 ? std::min<int64_t>(index.sizes[d], 1) : index.sizes[d];
  const PlanOperand operand{index.as<char>(), index.strides, int64_t(sizeof(int64_t))};
  std::atomic<bool> one_is_bad = false;
  const IterPlan all = make_plan({&operand, 1}, index.rank, sizes);
  for_each_part(all, kCosts.line, of_elements(), [&](const IterPlan& plan) {
    bool all_good = true;
    const bool dense = plan.stride(0, 0) == int64_t(sizeof(int64_t));
    for_each_outer(plan, 1, [&](char* const* at) {
      if (dense) {
        all_good &= !one_beyond(reinterpret_cast<const int64_t*>(at[0]), plan.size(0), size);
        return;
      }
      for (int64_t i = 0; i < plan.size(0); ++i) {
        all_good &= good(*reinterpret_cast<const int64_t*>(at[0] + i * plan.stride(0, 0)));
      }
    });
    if (!all_good) one_is_bad.store(true, std::memory_order_relaxed);
  });
  if (!one_is_bad) [[likely]]
    return;
  const int last = index.rank - 1;
  const int64_t* const strides[3] = {index.strides, index.strides, index.strides};
  for_each_row(index.rank, index.sizes, strides, [&](const int64_t* at) {
    for (int64_t i = 0; i < (last < 0 ? 1 : index.sizes[last]); ++i) {
      const int64_t value = index.as<int64_t>()[at[0] + (last < 0 ? 0 : i * index.strides[last])];
      LAMELLA_CHECK(good(value), IndexOutOfRange,
                    "index = {} is out of range for dim {}; expected 0 <= index < {}", value, dim, size);
    }
  });
}

/// n elements of x, each from the line that its index names.
struct Run {
  char* to;
  const char *from, *index;
  int64_t to_step, from_step, index_step, along, n;
};

/// Four loads before the first store: one after the other they take half as long again.
template <class T> void gather_gapless(T* to, const T* from, const int64_t* index, int64_t n) {
  int64_t i = 0;
  const int64_t ahead = std::min<int64_t>(n, kAhead);
  for (; i + 4 <= n; i += 4, to += 4, index += 4) {
    prefetch(index + ahead);
    prefetch(from + i + ahead);
    const T a = from[index[0]], b = from[index[1]], c = from[index[2]], d = from[index[3]];
    to[0] = a, to[1] = b, to[2] = c, to[3] = d;
  }
  for (; i < n; ++i) *to++ = from[*index++];
}

template <class T> void gather_run(const Run& r) {
  if (r.to_step == int64_t(sizeof(T)) && r.index_step == int64_t(sizeof(int64_t)) && r.from_step == 0) {
    T* const to = reinterpret_cast<T*>(r.to);
    const int64_t* const index = reinterpret_cast<const int64_t*>(r.index);
    if (r.along == int64_t(sizeof(T))) {  // within one gapless row
      const T* const from = reinterpret_cast<const T*>(r.from);
      return gather_gapless(to, from, index, r.n);
    }
    for (int64_t i = 0; i < r.n; ++i) to[i] = *reinterpret_cast<const T*>(r.from + index[i] * r.along);
    return;
  }
  char* to = r.to;
  const char *from = r.from, *index = r.index;
  for (int64_t i = 0; i < r.n; ++i, to += r.to_step, from += r.from_step, index += r.index_step) {
    const int64_t value = *reinterpret_cast<const int64_t*>(index);
    *reinterpret_cast<T*>(to) = *reinterpret_cast<const T*>(from + value * r.along);
  }
}

using RunFn = void (*)(const Run&);
RunFn find_gather(int64_t item) {
  switch (item) {
    case 1: return gather_run<uint8_t>;
    case 2: return gather_run<uint16_t>;
    case 4: return gather_run<uint32_t>;
    case 8: return gather_run<uint64_t>;
    default: return gather_run<c128>;
  }
}

void move_all(const View& to, const View& from) {
  move_plan(make_mover(from.dtype, to.dtype), make_plan({&to, 1}, {&from, 1}));
}

void add_rows(AddFn add, const View& out, const View& index, const View& src, int64_t dim) {
  const int64_t item = itemsize(out.dtype), src_item = itemsize(src.dtype);
  const Looked looked(out, dim);
  const int last = index.rank - 1;
  const int64_t n = index.rank == 0 ? 1 : index.sizes[last];
  const auto step = [last](const int64_t* strides, int64_t size) {
    return last < 0 ? 0 : strides[last] * size;
  };
  const int64_t* const strides[3] = {looked.strides, index.strides, src.strides};
  // An index that is repeated along gapless rows adds row to row.
  const bool rows = n > 1 && out.dtype == src.dtype && step(index.strides, 1) == 0 &&
                    step(looked.strides, 1) == 1 && step(src.strides, 1) == 1;
  const LineFn row = rows ? line_of<scalar::Add>(src.dtype) : nullptr;
  for_each_row(index.rank, index.sizes, strides, [&](const int64_t* at) {
    char* const to = out.as<char>() + at[0] * item;
    const char* const where = index.as<char>() + at[1] * int64_t(sizeof(int64_t));
    const char* const from = src.as<char>() + at[2] * src_item;
    if (row) {
      char* const target = to + *reinterpret_cast<const int64_t*>(where) * line_step(out, dim);
      const void* const ins[] = {target, from};
      return row(target, ins, n);
    }
    add(to, step(looked.strides, item), where, step(index.strides, sizeof(int64_t)), from,
        step(src.strides, src_item), line_step(out, dim), n);
  });
}

/// Indices that differ in another dim than `dim` add to different elements: the longest of those dims, or -1
/// where none is longer than 1.
int dim_to_cut(const View& index, int64_t dim) {
  int cut = -1;
  for (int d = 0; d < index.rank; ++d)
    if (d != dim && index.sizes[d] > (cut < 0 ? 1 : index.sizes[cut])) cut = d;
  return cut;
}

View from_index(const View& v, int d, int64_t first, int64_t item) {
  View part = v;
  part.data = v.as<char>() + first * v.strides[d] * item;
  return part;
}

// Each element receives its terms in the order of the whole, wherever that is cut.
void add_all(AddFn add, const View& out, const View& index, const View& src, int64_t dim) {
  const int cut = dim_to_cut(index, dim);
  if (cut < 0) return add_rows(add, out, index, src, dim);
  const int64_t n = index.sizes[cut];
  for_each_range(n, cost::of(index.numel() / n, kCosts.looked_up), [&](int64_t first, int64_t last) {
    int64_t sizes[IterPlan::kMaxDims];
    std::copy_n(index.sizes, index.rank, sizes);
    sizes[cut] = last - first;
    View part = from_index(index, cut, first, sizeof(int64_t));
    part.sizes = sizes;
    add_rows(add, from_index(out, cut, first, itemsize(out.dtype)), part,
             from_index(src, cut, first, itemsize(src.dtype)), dim);
  });
}

// Half dtypes: the sums are kept in f32 and round once, however many places repeat.
void add_all_in_f32(AddFn add, const View& out, const View& index, const View& src, int64_t dim) {
  std::vector<float> sums(size_t(out.numel()));
  int64_t strides[IterPlan::kMaxDims];
  for (int64_t d = out.rank - 1, next = 1; d >= 0; next *= out.sizes[d--]) strides[d] = next;
  const View wide{sums.data(), DType::F32, out.rank, out.sizes, strides};
  move_all(wide, out);
  add_all(add, wide, index, src, dim);
  move_all(out, wide);
}

}  // namespace

namespace cpu {
namespace {

void gather(const KernelCall& call) {
  const View &out = call.outs[0], &x = call.ins[0], &index = call.ins[1];
  const int64_t dim = call.ints[0], item = itemsize(x.dtype);
  check_moves("gather", out, x);
  if (out.numel() == 0) return;
  check_rank(x);
  check_indices(index, dim, line_size(x, dim));
  const Looked looked(x, dim);
  const int64_t along = line_step(x, dim);
  const PlanOperand operands[] = {{out.as<char>(), out.strides, item},
                                  {x.as<char>(), looked.strides, item},
                                  {index.as<char>(), index.strides, sizeof(int64_t)}};
  const Mover copy = make_mover(x.dtype, x.dtype);
  const RunFn run = find_gather(item);
  const IterPlan all = make_plan(operands, out.rank, out.sizes);
  for_each_part(all, kCosts.looked_up, of_elements(), [&copy, run, along](const IterPlan& plan) {
    const int64_t o = plan.stride(0, 0), s = plan.stride(1, 0), i0 = plan.stride(2, 0), n = plan.size(0);
    for_each_outer(plan, 1, [&](char* const* at) {
      if (i0 != 0) return run({at[0], at[1], at[2], o, s, i0, along, n});
      const int64_t value = *reinterpret_cast<const int64_t*>(at[2]);  // of the whole run
      move_block(copy, at[0], o, 0, at[1] + value * along, s, 0, n, 1);
    });
  });
}

void scatter_add(const KernelCall& call) {
  const View &out = call.outs[0], &x = call.ins[0], &index = call.ins[1], &src = call.ins[2];
  const int64_t dim = call.ints[0];
  const bool wide = is_half(out.dtype) && src.dtype == DType::F32;  // what halves were multiplied by
  const AddFn add = find_add(src.dtype);
  if (!add || (src.dtype != out.dtype && !wide)) fail_dtype("scatter_add", add ? src.dtype : out.dtype);
  if (index.numel() == 0) return move_all(out, x);
  check_rank(out);
  check_indices(index, dim, line_size(out, dim));
  move_all(out, x);
  (is_half(out.dtype) ? add_all_in_f32 : add_all)(add, out, index, src, dim);
}

void index_select(const KernelCall& call) {
  const View &out = call.outs[0], &x = call.ins[0], &index = call.ins[1];
  const int64_t dim = call.ints[0];
  check_moves("index_select", out, x);
  const int64_t count = index.numel(), index_step = index.rank == 0 ? 0 : index.strides[0];
  check_indices(index, dim, line_size(x, dim));
  if (out.numel() == 0) return;
  const IterPlan slice = plan_where(std::initializer_list<View>{out, x}, [dim](int d) { return d == dim; });
  const Mover copy = make_mover(x.dtype, x.dtype);
  const int64_t to_step = line_step(out, dim), from_step = line_step(x, dim);
  const int64_t item = itemsize(x.dtype), n = slice.size(0);
  const bool streams = n > thresholds().tile && slice.packed(0) && slice.packed(1) &&
                       passes_caches(2 * out.numel() * item + count * int64_t(sizeof(int64_t)));
  const auto source = [&](int64_t i) {
    return slice.data[1] + index.as<int64_t>()[i * index_step] * from_step;
  };
  for_each_range(count, cost::of(slice.numel, kCosts.line), [&](int64_t first, int64_t last) {
    IterPlan plan = slice;
    for (int64_t i = first; i < last; ++i) {
      plan.data[0] = slice.data[0] + i * to_step;
      plan.data[1] = source(i);
      if (streams && i + 1 < last) ask_for(source(i + 1), n * item);
      for_each_outer(plan, 1, [&](char* const* at) {
        if (streams) return stream(at[0], at[1], n * item);
        move_block(copy, at[0], plan.stride(0, 0), 0, at[1], plan.stride(1, 0), 0, n, 1);
      });
    }
    if (streams) end_streams();  // of this thread
  });
}
}  // namespace

Texts gather_kernels() {
  static constexpr Text kTexts[] = {
      {"gather", gather}, {"scatter_add", scatter_add}, {"index_select", index_select}};
  return kTexts;
}
}  // namespace cpu

}  // namespace lamella::kernels
