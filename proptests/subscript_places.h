// What lists of indices choose, counted out element by element: no view, no operator. And lists by chance.
#pragma once

#include <algorithm>
#include <random>

#include "support.h"

namespace lamella::tests {

using Indices = std::vector<Index>;
using Doubles = std::vector<double>;

/// Positions in x, in the row-major order of the result, and the result's sizes.
struct Place {
  std::vector<int64_t> sizes, at;
};

/// Coordinates that one entry of a list allows in the dims it takes, and whether the result has a dim for
/// them.
struct Choices {
  std::vector<std::vector<int64_t>> coordinates;
  bool has_dim = true;
};

inline Choices choices(const Index& index, Ints sizes) {
  Choices out;
  if (const auto* i = std::get_if<int64_t>(&index.any())) {
    out.has_dim = false;
    for (int64_t c = 0; c < sizes[0]; ++c)
      if (c == *i || c == *i + sizes[0]) out.coordinates.push_back({c});
  } else if (const auto* s = std::get_if<Slice>(&index.any())) {
    const int64_t n = sizes[0], first = s->start.value_or(0), last = s->stop.value_or(n);
    const int64_t from = std::max<int64_t>(first < 0 ? first + n : first, 0), to = last < 0 ? last + n : last;
    for (int64_t c = 0; c < n; ++c)
      if (c >= from && c < to && (c - from) % s->step == 0) out.coordinates.push_back({c});
  } else if (const auto* mask = std::get_if<Tensor>(&index.any())) {
    const Doubles values = mask->to_vector();
    for (int64_t k = 0; k < int64_t(values.size()); ++k) {
      if (values[size_t(k)] == 0) continue;
      std::vector<int64_t> c(size_t(mask->rank()));
      for (int64_t rest = k, d = mask->rank() - 1; d >= 0; rest /= mask->size(int(d)), --d)
        c[size_t(d)] = rest % mask->size(int(d));
      out.coordinates.push_back(c);
    }
  } else {
    out.coordinates.push_back({});  // None
  }
  return out;
}

inline size_t dims_of(const Index& index) {
  if (const auto* mask = std::get_if<Tensor>(&index.any())) return size_t(mask->rank());
  return std::holds_alternative<int64_t>(index.any()) || std::holds_alternative<Slice>(index.any());
}

/// The list with Slice{} for each dim that Ellipsis, or its absence, leaves.
inline Indices whole(size_t rank, const Indices& list) {
  size_t taken = 0;
  for (const Index& i : list) taken += dims_of(i);
  const Indices rest(rank - taken, Slice{});
  Indices out;
  bool seen = false;
  for (const Index& i : list) {
    if (std::holds_alternative<EllipsisIndex>(i.any()))
      out.insert(out.end(), rest.begin(), rest.end()), seen = true;
    else out.push_back(i);
  }
  if (!seen) out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

inline Place place_of(Ints sizes, const Indices& list) {
  Place out{{}, {0}};
  size_t d = 0;
  for (const Index& index : whole(sizes.size(), list)) {
    const Choices c = choices(index, sizes.subspan(d));
    if (c.has_dim) out.sizes.push_back(int64_t(c.coordinates.size()));
    std::vector<int64_t> next;
    for (const int64_t before : out.at) {
      for (const std::vector<int64_t>& coordinates : c.coordinates) {
        int64_t position = before;
        for (size_t k = 0; k < coordinates.size(); ++k) position = position * sizes[d + k] + coordinates[k];
        next.push_back(position);
      }
    }
    out.at = std::move(next);
    d += dims_of(index);
  }
  return out;
}

/// For each element of `sizes` the position of what broadcasting puts there of a tensor of `from`.
inline std::vector<int64_t> broadcast_positions(const std::vector<int64_t>& sizes, Ints from) {
  std::vector<int64_t> out;
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  for (int64_t k = 0; k < n; ++k) {
    int64_t rest = k, position = 0, stride = 1;
    for (size_t back = 1; back <= sizes.size(); ++back) {
      const int64_t c = rest % sizes[sizes.size() - back];
      rest /= sizes[sizes.size() - back];
      if (back > from.size()) continue;
      const int64_t size = from[from.size() - back];
      position += (size == 1 ? 0 : c) * stride;
      stride *= size;
    }
    out.push_back(position);
  }
  return out;
}

inline double computed(double x, char op, double by) {
  switch (op) {
    case '+': return x + by;
    case '-': return x - by;
    case '*': return x * by;
    case '/': return x / by;
    default: return by;
  }
}
/// x[place] op= value, by loops.
inline Doubles written(Doubles x, const Place& place, char op, const Doubles& value, Ints value_sizes) {
  const std::vector<int64_t> from = broadcast_positions(place.sizes, value_sizes);
  for (size_t k = 0; k < place.at.size(); ++k)
    x[size_t(place.at[k])] = computed(x[size_t(place.at[k])], op, value[size_t(from[k])]);
  return x;
}
/// x[indices] op= value, by the library.
template <class V> void write(const Tensor& x, const Indices& indices, char op, const V& value) {
  Subscript place(x, indices);
  if (op == '+') place += value;
  else if (op == '-') place -= value;
  else if (op == '*') place *= value;
  else if (op == '/') place /= value;
  else place = value;
}

/// Sizes, lists that fit them, and values, by chance.
struct Dice {
  std::mt19937 engine;
  explicit Dice(uint32_t seed) : engine(seed) {}
  int64_t below(int64_t n) { return int64_t(engine() % uint64_t(n)); }
  Tensor tensor(const std::vector<int64_t>& sizes, double from = 1, double to = 2) {
    int64_t n = 1;
    for (const int64_t s : sizes) n *= s;
    Doubles values;
    for (int64_t k = 0; k < n; ++k) values.push_back(from + (to - from) * double(below(1024)) / 1024);
    return tensor_of(sizes, values, DType::F64);
  }
  Tensor mask(const std::vector<int64_t>& sizes) {
    return gt(tensor(sizes, 0, 1), below(4) ? 0.5 : double(below(2)));
  }
  std::vector<int64_t> sizes(int64_t rank) {
    std::vector<int64_t> out;
    for (int64_t d = 0; d < rank; ++d) out.push_back(below(12) ? 1 + below(4) : 0);
    return out;
  }
  Slice slice(int64_t n) {
    const auto end = [&]() -> std::optional<int64_t> {
      return below(3) ? std::optional<int64_t>(below(2 * n + 5) - n - 2) : std::nullopt;
    };
    return {end(), end(), 1 + below(3)};
  }
  Indices indices(Ints sizes, bool masks = true) {
    Indices out;
    const size_t stop = below(3) ? sizes.size() : size_t(below(int64_t(sizes.size()) + 1));
    bool rest = false;
    for (size_t d = 0; d < stop;) {
      const int64_t kind = below(7);
      const size_t span = size_t(below(int64_t(stop - d) + 1));
      if (kind == 0 && sizes[d] > 0) out.push_back(below(2 * sizes[d]) - sizes[d]), ++d;
      else if (kind == 1) out.push_back(None);
      else if (kind == 2 && !rest) out.push_back(Ellipsis), rest = true, d += span;
      else if (kind <= 4 && masks)
        out.push_back(mask({sizes.begin() + long(d), sizes.begin() + long(d + span)})), d += span,
            masks = false;
      else out.push_back(slice(sizes[d])), ++d;
    }
    if (below(3) == 0) out.push_back(None);
    // What Ellipsis stands for is counted from the whole list: entries behind it move to the last dims.
    return place_fits(sizes, out) ? out : Indices{Ellipsis};
  }
  /// Sizes that broadcast to `to`.
  std::vector<int64_t> broadcastable(const std::vector<int64_t>& to) {
    std::vector<int64_t> out(to.begin() + below(int64_t(to.size()) + 1), to.end());
    for (int64_t& s : out)
      if (below(4) == 0) s = 1;
    return out;
  }

 private:
  static bool place_fits(Ints sizes, const Indices& list) {
    size_t d = 0;
    for (const Index& index : whole(sizes.size(), list)) {
      if (const auto* i = std::get_if<int64_t>(&index.any()); i && (*i < -sizes[d] || *i >= sizes[d]))
        return false;
      if (const auto* mask = std::get_if<Tensor>(&index.any());
          mask && !std::ranges::equal(mask->sizes(), sizes.subspan(d, size_t(mask->rank()))))
        return false;
      d += dims_of(index);
    }
    return true;
  }
};

}  // namespace lamella::tests
