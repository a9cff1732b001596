// Stable sort along a dim: every dtype becomes an order-preserving 64-bit key, so one radix sort serves all.
#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "lamella/core/visit.h"
#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/parts.h"

namespace lamella::kernels {
namespace {

struct Entry {
  uint64_t key;
  int64_t index;
};

/// Of one thread, for lines of `count` elements of `item` bytes.
struct Room {
  std::vector<Entry> entries, spare;
  std::vector<char> line;
  Room(size_t count, size_t item) : entries(count), spare(count), line(count * item) {}
};

// Floats: sign and magnitude to two's order; both zeros alike; every NaN above everything.
uint64_t key_of(double x) {
  if (x != x) return ~uint64_t{0};
  const uint64_t u = std::bit_cast<uint64_t>(x == 0 ? 0.0 : x);
  return u >> 63 ? ~u : u | uint64_t{1} << 63;
}
uint64_t key_of(float x) {
  if (x != x) return ~uint32_t{0};
  const uint32_t u = std::bit_cast<uint32_t>(x == 0 ? 0.0f : x);
  return u >> 31 ? ~u : u | uint32_t{1} << 31;
}

template <class T> void read_keys(const char* in, int64_t step, std::vector<Entry>& entries) {
  for (size_t i = 0; i < entries.size(); ++i, in += step) {
    const T x = *reinterpret_cast<const T*>(in);
    uint64_t key;
    if constexpr (is_half_type<T>) key = key_of(float(x));
    else if constexpr (std::is_floating_point_v<T>) key = key_of(x);
    else if constexpr (std::is_signed_v<T>) key = uint64_t(int64_t(x)) ^ uint64_t { 1 } << 63;
    else key = uint64_t(x);
    entries[i] = {key, int64_t(i)};
  }
}

// Least significant digit first; digits all entries share are skipped.
void radix_sort(std::vector<Entry>& entries, std::vector<Entry>& spare) {
  uint64_t differ = 0;
  for (const Entry& e : entries) differ |= e.key ^ entries[0].key;
  for (int shift = 0; shift < 64; shift += 8) {
    if (((differ >> shift) & 255) == 0) continue;
    size_t start[256] = {};
    for (const Entry& e : entries) ++start[(e.key >> shift) & 255];
    size_t sum = 0;
    for (size_t& s : start) sum += std::exchange(s, sum);
    for (const Entry& e : entries) spare[start[(e.key >> shift) & 255]++] = e;
    entries.swap(spare);
  }
}

void sort_entries(std::vector<Entry>& entries, std::vector<Entry>& spare) {
  if (entries.size() >= size_t(thresholds().radix)) return radix_sort(entries, spare);
  // Indices differ, so comparing (key, index) is stable without a stable algorithm.
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key < b.key : a.index < b.index;
  });
}

}  // namespace

namespace cpu {
namespace {
void sort(const KernelCall& call) {
  const View &values = call.outs[0], &indices = call.outs[1], &in = call.ins[0];
  const int64_t dim = call.ints[0];
  const bool descending = call.ints[1] != 0;
  if (is_complex(in.dtype) || is_internal(in.dtype)) fail_dtype("sort", in.dtype);
  if (in.numel() == 0) return;
  const int64_t size = line_size(in, dim), item = itemsize(in.dtype), in_step = line_step(in, dim);
  const int64_t value_step = line_step(values, dim), index_step = line_step(indices, dim);
  const Mover copy = make_mover(in.dtype, in.dtype);
  const IterPlan lines =
      plan_where(std::initializer_list<View>{values, indices, in}, [dim](int d) { return d == dim; });
  const auto sort_lines = [&](const IterPlan& plan, Room& r) {
    char* const line = r.line.data();
    for_each_outer(plan, 0, [&](char* const* at) {
      copy.strided(line, item, at[2], in_step, size);  // values may be the input
      visit_dtype(in.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (!is_complex_type<T> && !std::is_same_v<T, f128>) read_keys<T>(line, item, r.entries);
      });
      if (descending) {
        for (Entry& e : r.entries) e.key = ~e.key;
      }
      sort_entries(r.entries, r.spare);
      for (int64_t i = 0; i < size; ++i) {
        const int64_t from = r.entries[size_t(i)].index;
        copy.strided(at[0] + i * value_step, 0, line + from * item, 0, 1);
        *reinterpret_cast<int64_t*>(at[1] + i * index_step) = from;
      }
    });
  };
  const auto make = [&] { return Room(size_t(size), size_t(item)); };
  for_each_part_in(lines, cost::of(size, kCosts.sorted), of_lines(), make, sort_lines);
}

}  // namespace

Texts sort_kernels() {
  static constexpr Text kTexts[] = {{"sort", sort}};
  return kTexts;
}
}  // namespace cpu

}  // namespace lamella::kernels
