// Overlap of tensors as the program sees them, and of the lanes of vmap.
#include "lamella/transforms/writes/overlap.h"

#include <algorithm>

#include "lamella/core/overlap.h"
#include "lamella/dispatch/frame_copy.h"
#include "lamella/transforms/machine/interpreter.h"

namespace lamella {

namespace {

struct Lane {
  int key;
  int64_t size, stride;
  bool operator==(const Lane&) const = default;
};

/// Where a tensor lies: the memory, its lanes in it, and one lane as the program sees it. Complex elements
/// are two numbers one after the other, since views of their parts count numbers.
struct Place {
  const void* memory = nullptr;  ///< a storage, or the header that stands for memory of its own
  std::vector<Lane> lanes;       ///< innermost level first
  Geometry first;                ///< lane 0 of all levels
  Geometry seen;

  explicit Place(const Tensor& t);
};

Geometry geometry_of(const Tensor& t) { return {t.sizes(), t.strides(), t.impl()->offset}; }
void count_numbers(Geometry& g) {
  for (int64_t& s : g.strides) s *= 2;
  g.offset *= 2;
  g.sizes.push_back(2);
  g.strides.push_back(1);
}

Place::Place(const Tensor& t) : seen(geometry_of(t)) {
  std::vector<const Wrapper*> mapped;
  const Tensor* now = &t;
  while (!memory && now->keys() >> kFirstLevelKey) {
    const auto* w = static_cast<const Wrapper*>(now->impl()->wrap);
    const auto* replacing = dynamic_cast<const ReplacingWrapper*>(w);
    if (!replacing) mapped.push_back(w);
    const Tensor& root = replacing && replacing->view ? replacing->view->base : *now;
    // An argument lies in its caller's memory, and is never replaced.
    if (replacing && !static_cast<const ReplacingWrapper*>(root.impl()->wrap)->argument) memory = root.impl();
    else now = &w->value;
  }
  if (!memory) memory = now->impl()->storage;
  first = geometry_of(*now);
  lanes.resize(mapped.size());
  for (size_t k = mapped.size(); k-- > 0;) {
    const int d = mapped[k]->mapped_dim();
    lanes[k] = {mapped[k]->key, first.sizes[d], first.strides[d]};
    first.sizes.erase(d);
    first.strides.erase(d);
  }
  if (!is_complex(t.dtype())) return;
  count_numbers(first);
  count_numbers(seen);
  for (Lane& l : lanes) l.stride *= 2;
}

int64_t count(const Geometry& g) {
  int64_t n = 1;
  for (const int64_t s : g.sizes) n *= s;
  return n;
}
int64_t end_of(const Geometry& g) {
  int64_t last = g.offset;
  for (int d = 0; d < g.sizes.size(); ++d) last += (g.sizes[d] - 1) * g.strides[d];
  return last + 1;
}
/// As core's overlap() of two tensors in one memory; both have elements.
Overlap overlap_of(const Geometry& a, const Geometry& b) {
  const auto view_of = [](const Geometry& g) {
    return View{nullptr, DType::U8, g.sizes.size(), g.sizes.data(), g.strides.data()};
  };
  return overlap_in_memory(view_of(a), view_of(b), b.offset - a.offset);
}

int64_t stride_at(const std::vector<Lane>& lanes, int key) {
  for (const Lane& l : lanes)
    if (l.key == key) return l.stride;
  return 0;
}

/// f(lane, offset in `of`) for all lanes of `all`, in the same order for every `of`.
template <class F> void each_lane(const std::vector<Lane>& all, const std::vector<Lane>& of, F&& f) {
  int64_t total = 1;
  for (const Lane& l : all) total *= l.size;
  for (int64_t lane = 0; lane < total; ++lane) {
    int64_t rest = lane, offset = 0;
    for (const Lane& l : all) {
      offset += rest % l.size * stride_at(of, l.key);
      rest /= l.size;
    }
    f(lane, offset);
  }
}
template <class F> void each_element(const Geometry& g, int64_t offset, F&& f) {
  Dims index(g.sizes.size());
  for (int64_t at = g.offset + offset;;) {
    f(at);
    int d = g.sizes.size() - 1;
    for (; d >= 0; at -= g.strides[d] * g.sizes[d], index[d] = 0, --d) {
      at += g.strides[d];
      if (++index[d] < g.sizes[d]) break;
    }
    if (d < 0) return;
  }
}

Geometry with_lanes(const Place& p) {
  Geometry g = p.first;
  for (const Lane& l : p.lanes) {
    g.sizes.push_back(l.size);
    g.strides.push_back(l.stride);
  }
  return g;
}

/// Whether a lane writes an element that another one reads: asked of every element, since strides alone do
/// not tell.
bool lanes_race(const Place& target, const Place& read, const std::vector<Lane>& all) {
  const Geometry whole = with_lanes(target);
  std::vector<int64_t> writer(size_t(end_of(whole) - whole.offset), -1);
  each_lane(all, target.lanes, [&](int64_t lane, int64_t offset) {
    each_element(target.first, offset, [&](int64_t at) { writer[size_t(at - whole.offset)] = lane; });
  });
  bool race = false;
  each_lane(all, read.lanes, [&](int64_t lane, int64_t offset) {
    each_element(read.first, offset, [&](int64_t at) {
      const int64_t k = at - whole.offset;
      if (k < 0 || k >= int64_t(writer.size())) return;
      race |= writer[size_t(k)] >= 0 && writer[size_t(k)] != lane;
    });
  });
  return race;
}

std::vector<Lane> union_of(const std::vector<Lane>& a, const std::vector<Lane>& b) {
  std::vector<Lane> all = a;
  for (const Lane& l : b)
    if (std::ranges::find(a, l.key, &Lane::key) == a.end()) all.push_back(l);
  return all;
}

/// What the loop over the lanes would find.
Overlap in_any_lane(const Place& target, const Place& read, const std::vector<Lane>& all) {
  if (target.lanes == read.lanes) return overlap_of(target.seen, read.seen);
  std::vector<int64_t> offsets;
  each_lane(all, target.lanes, [&](int64_t, int64_t offset) { offsets.push_back(offset); });
  Overlap found = Overlap::None;
  each_lane(all, read.lanes, [&](int64_t lane, int64_t offset) {
    Geometry a = target.first, b = read.first;
    a.offset += offsets[size_t(lane)];
    b.offset += offset;
    if (const Overlap o = overlap_of(a, b); o != Overlap::None && found != Overlap::Partial) found = o;
  });
  return found;
}

}  // namespace

void check_overlap(const Frame& base, std::string_view arg, const Tensor& target) {
  const Place written(target);
  for_each_tensor(base, [&](const Tensor& t, int i, int) {
    if (!t.defined() || t.is_same(target)) return;
    const Place read(t);
    if (!read.memory || read.memory != written.memory) return;
    const Geometry a = with_lanes(written), b = with_lanes(read);
    if (count(a) == 0 || count(b) == 0) return;
    const std::vector<Lane> all = union_of(written.lanes, read.lanes);
    const std::string& name = base.op->schema.params[size_t(i)].name;
    LAMELLA_CHECK(in_any_lane(written, read, all) != Overlap::Partial, Overlap,
                  "{}: {} and {} share part of their memory; expected all of it or none: clone one of them",
                  base.op->name, arg, name);
    const bool apart = all.empty() || overlap_of(a, b) != Overlap::Partial;
    LAMELLA_CHECK(
        apart || !lanes_race(written, read, all), Overlap,
        "{}: {} and {} share memory across lanes, which run at once; expected none: clone one of them",
        base.op->name, arg, name);
  });
}

}  // namespace lamella
