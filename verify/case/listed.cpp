// Lists of the bytes and elements of strided memory. Nothing here is quick: geometries have a few dozen
// elements.
#include "lamella/verify/case/listed.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace lamella::verify {

Strided strided(const Tensor& t) { return {t.sizes(), t.strides(), t.impl()->offset, t.dtype()}; }

std::vector<Dims> listed_indices(const Dims& sizes) {
  std::vector<Dims> out{Dims()};
  for (const int64_t size : sizes) {
    std::vector<Dims> longer;
    for (const Dims& at : out)
      for (int64_t i = 0; i < size; ++i) {
        longer.push_back(at);
        longer.back().push_back(i);
      }
    out = std::move(longer);
  }
  return out;
}

std::vector<int64_t> listed_places(const Strided& v) {
  std::vector<int64_t> out;
  for (const Dims& at : listed_indices(v.sizes)) {
    int64_t element = v.offset;
    for (int d = 0; d < at.size(); ++d) element += at[d] * v.strides[d];
    out.push_back(element * itemsize(v.dtype));
  }
  return out;
}

namespace {
std::set<int64_t> bytes_of(const Strided& v) {
  std::set<int64_t> out;
  for (const int64_t place : listed_places(v))
    for (int64_t k = 0; k < itemsize(v.dtype); ++k) out.insert(place + k);
  return out;
}

/// The first byte and the one behind the last of the elements whose index is 0 in all dims with a step that
/// `period` divides.
struct Window {
  int64_t begin, end;
};
Window window(Strided v, int64_t period) {
  for (int d = 0; d < v.sizes.size(); ++d)
    if (v.sizes[d] > 1 && v.strides[d] * itemsize(v.dtype) % period == 0) v.sizes[d] = 1;
  const std::vector<int64_t> places = listed_places(v);
  return {*std::ranges::min_element(places), *std::ranges::max_element(places) + itemsize(v.dtype)};
}

/// Whether, some whole periods apart, both windows lie side by side within one period.
bool side_by_side(const Window& a, const Window& b, int64_t period) {
  for (int64_t shift = -64 * period; shift <= 64 * period; shift += period) {
    const int64_t from = b.begin + shift, to = b.end + shift;
    const bool apart = from >= a.end || to <= a.begin;
    if (apart && std::max(a.end, to) - std::min(a.begin, from) <= period) return true;
  }
  return false;
}
}  // namespace

bool listed_contiguous(const Strided& v) {
  const std::vector<int64_t> places = listed_places(v);
  for (size_t k = 1; k < places.size(); ++k)
    if (places[k] - places[k - 1] != itemsize(v.dtype)) return false;
  return true;
}

bool listed_meet(const Strided& a, const Strided& b) {
  const std::set<int64_t> in_a = bytes_of(a);
  return std::ranges::any_of(bytes_of(b), [&](int64_t byte) { return in_a.contains(byte); });
}

bool listed_shares_itself(const Strided& v) {
  return bytes_of(v).size() != listed_places(v).size() * size_t(itemsize(v.dtype));
}

bool listed_nested(const Strided& v) {
  std::vector<int> order(size_t(v.sizes.size()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return v.strides[a] > v.strides[b]; });
  Strided sorted{{}, {}, v.offset, v.dtype};
  for (const int d : order) {
    if (v.sizes[d] == 1) continue;  // never stepped along
    sorted.sizes.push_back(v.sizes[d]);
    sorted.strides.push_back(v.strides[d]);
  }
  const std::vector<int64_t> places = listed_places(sorted);
  return std::ranges::adjacent_find(places, std::greater_equal<>()) == places.end();
}

bool listed_between(const Strided& a, const Strided& b) {
  const std::vector<int64_t> in_a = listed_places(a), in_b = listed_places(b);
  const auto [first_a, last_a] = std::ranges::minmax(in_a);
  const auto [first_b, last_b] = std::ranges::minmax(in_b);
  if (last_a + itemsize(a.dtype) <= first_b || last_b + itemsize(b.dtype) <= first_a) return true;
  std::set<int64_t> periods;
  int64_t common = 0;
  for (const Strided* v : {&a, &b})
    for (int d = 0; d < v->sizes.size(); ++d)
      if (v->sizes[d] > 1 && v->strides[d] > 0) {
        periods.insert(v->strides[d] * itemsize(v->dtype));
        common = std::gcd(common, v->strides[d] * itemsize(v->dtype));
      }
  if (common > 0) periods.insert(common);
  return std::ranges::any_of(periods, [&](int64_t p) { return side_by_side(window(a, p), window(b, p), p); });
}

bool listed_within(const Strided& v, int64_t bytes) {
  const std::vector<int64_t> places = listed_places(v);
  const int64_t size = itemsize(v.dtype);
  if (places.empty()) return v.offset >= 0 && v.offset * size <= bytes;
  return std::ranges::all_of(places, [&](int64_t p) { return p >= 0 && p + size <= bytes; });
}

std::optional<Dims> listed_sizes(const Dims& wanted, int64_t count) {
  std::vector<Dims> found;
  for (int64_t unknown = 0; unknown <= count + 1; ++unknown) {
    Dims sizes = wanted;
    int replaced = 0;
    for (int64_t& s : sizes)
      if (s == -1) s = unknown, ++replaced;
    int64_t product = 1;
    for (const int64_t s : sizes) product *= s;
    const bool valid = replaced <= 1 && std::ranges::all_of(sizes, [](int64_t s) { return s >= 0; });
    if (valid && product == count) found.push_back(sizes);
    if (replaced == 0) break;
  }
  return found.size() == 1 ? std::optional(found[0]) : std::nullopt;
}

std::optional<Strided> listed_view(const Strided& x, const Dims& sizes) {
  const std::vector<int64_t> places = listed_places(x);
  Strided out{sizes, Dims(sizes.size(), 1), x.offset, x.dtype};
  if (places.empty()) return out;
  // Were there strides, that of a dim would be the way from the first element to the next along it.
  int64_t behind = 1;  // elements of the dims behind
  for (int d = sizes.size() - 1; d >= 0; --d) {
    if (sizes[d] > 1) out.strides[d] = (places[size_t(behind)] - places[0]) / itemsize(x.dtype);
    behind *= sizes[d];
  }
  if (listed_places(out) != places) return std::nullopt;
  return out;
}

}  // namespace lamella::verify
