// vmap a few lanes at a time.
#include "lamella/transforms/chunks.h"

#include <algorithm>

#include "lamella/ops/batch.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/view.h"

namespace lamella {

void refuse_options(const VmapOptions& o) {
  LAMELLA_CHECK(o.size >= -1, Value,
                "vmap: size = {}; expected size >= 0, or -1 for the lanes of a mapped argument", o.size);
  fail(ErrorCode::Randomness, "vmap: randomness = Randomness({}); expected Error, Same or Different",
       int(o.randomness));
}

void refuse_first_lane(const VmapOptions& o, int64_t size) {
  fail(ErrorCode::Value, "vmap: first_lane = {} of {} lanes; expected lanes that an int64 numbers",
       o.first_lane, size);
}

void refuse_dims(size_t dims, size_t tensors, std::string_view what) {
  fail(ErrorCode::MappedSize, "vmap: got {} {} for {} tensors, expected 1 or {}", dims,
       Argument{std::string(what)}, tensors, tensors);
}

void refuse_lanes(const VmapOptions& o, const Tensors& xs, size_t i, size_t first) {
  const int64_t n = xs[i].size(mapped_dim(o, xs, i));
  if (o.size >= 0)
    fail(ErrorCode::MappedSize, "vmap: argument {} ({}) has {} lanes, size = {}; expected equal sizes", i,
         xs[i], n, o.size);
  fail(ErrorCode::MappedSize,
       "vmap: argument {} ({}) has {} lanes, argument {} ({}) has {}; expected equal sizes", i, xs[i], n,
       first, xs[first], xs[first].size(mapped_dim(o, xs, first)));
}

namespace {
Tensors lanes_of(const VmapOptions& o, const Tensors& xs, int64_t from, int64_t to) {
  Tensors out = xs;
  for (size_t i = 0; i < xs.size(); ++i)
    if (const int d = mapped_dim(o, xs, i); d != kNone) out[i] = slice(xs[i], d, from, to);
  return out;
}

/// What error texts show of a result: a tensor of a lane's shape, for there may be no lane.
Tensor like_a_lane(const Tensor& lanes) {
  return expand(new_zeros(lanes, Dims()), Dims(lanes.sizes().subspan(1)));
}

/// Where the mapped dim of result i goes; `lanes` has it in front.
int out_dim(const InDims& out_dims, const Tensor& lanes, size_t i, size_t n) {
  const int d = dim_for(out_dims, i, n, "out_dims"), rank = lanes.rank();
  if (d < -rank || d >= rank) wrap_mapped(d, rank, "out_dims", like_a_lane(lanes));
  return d < 0 ? d + rank : d;
}
}  // namespace

Tensors in_chunks(const Function& f, const VmapOptions& o, int64_t size, const Tensors& xs) {
  LAMELLA_CHECK(o.chunk > 0, Value, "vmap: chunk = {}; expected chunk > 0, or 0 for all lanes at once",
                o.chunk);
  const auto in_front = [](InDims dims) {
    for (int& d : dims)
      if (d != kNone) d = 0;
    return dims;
  };
  InDims out_dims = o.out_dims;
  VmapOptions group = o;
  group.chunk = 0;
  group.out_dims = in_front(out_dims);
  if (o.result_dims) group.result_dims = [&] { return in_front(out_dims = o.result_dims()); };
  std::vector<Tensors> parts;
  SameDraws draws;
  int64_t from = 0;
  do {
    const int64_t to = std::min(size, from + o.chunk);
    group.size = to - from, group.first_lane = o.first_lane + from;
    draws.again();
    const Tensors ys = vmap(f, group)(lanes_of(o, xs, from, to));
    parts.resize(ys.size());
    for (size_t i = 0; i < ys.size(); ++i) parts[i].push_back(ys[i]);
    from = to;
  } while (from < size);
  Tensors out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (dim_for(out_dims, i, parts.size(), "out_dims") == kNone) {
      out.push_back(parts[i][0]);
      continue;
    }
    const int at = out_dim(out_dims, parts[i][0], i, parts.size());
    const Tensor whole = parts[i].size() == 1 ? parts[i][0] : cat(parts[i], 0);
    out.push_back(at == 0 ? whole : from_front(whole, at));
  }
  return out;
}

}  // namespace lamella
