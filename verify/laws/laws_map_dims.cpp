// Laws of dims that an operator maps over: their elements may be put in another order, or taken in two parts.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

/// Dims are put in the order `dims`; before that, element i of dim d becomes the one that was orders[d][i].
struct Shuffle {
  Dims dims;
  std::vector<std::vector<int64_t>> orders;
};

/// `t` with dims of 1 in front until it has `rank`.
Tensor padded(const Tensor& t, int rank) {
  Dims sizes(t.sizes()), strides(t.strides());
  while (sizes.size() < rank) sizes.insert(0, 1), strides.insert(0, 0);
  return make_view_unchecked(t, sizes, strides, t.impl()->offset);
}

/// A dense tensor of the shuffled elements. A scalar stays one: it promotes as one.
Tensor shuffled(const Tensor& t, const Shuffle& s) {
  if (t.rank() == 0) return t;
  const int rank = s.dims.size();
  const Tensor from = padded(t, rank);
  Dims sizes(rank);
  for (int d = 0; d < rank; ++d) sizes[d] = from.size(int(s.dims[d]));
  const Tensor out = make_tensor(sizes, t.dtype());
  const size_t bytes = size_t(itemsize(t.dtype()));
  Dims at(rank, 0);
  char* to = static_cast<char*>(out.raw_data());
  for (int64_t i = 0; i < out.numel(); ++i, to += bytes) {
    int64_t offset = 0;
    for (int d = 0; d < rank; ++d) {
      const int was = int(s.dims[d]);
      if (from.size(was) > 1) offset += s.orders[size_t(was)][size_t(at[d])] * from.stride(was);
    }
    std::memcpy(to, static_cast<const char*>(from.raw_data()) + size_t(offset) * bytes, bytes);
    for (int d = rank - 1; d >= 0 && ++at[d] == sizes[d]; --d) at[d] = 0;
  }
  return out;
}

std::vector<int64_t> draw_order(Draw& d, int64_t n) {
  std::vector<int64_t> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  const uint32_t w = d.word();
  if (w == 0) std::reverse(out.begin(), out.end());
  else
    for (size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[(w >> i % 16) % i]);
  return out;
}

bool of_one(const Op& op) { return op.simple && op.tensor_params.size() == 1; }
/// Operators whose class says which dims they map over.
bool maps_dims(const Op& op) {
  if (op.has(kRandom) || !takes_tensors(op) || op.composite) return false;
  const bool by_dim = op.shape == ShapeClass::Reduce || op.shape == ShapeClass::AlongDim;
  return (op.shape == ShapeClass::Broadcast && op.simple) || (by_dim && of_one(op));
}

/// The dims of the result that dim d of the argument of a reduction or scan becomes; -1: none.
std::vector<int> result_dims(const std::vector<bool>& named, int result_rank) {
  std::vector<int> out(named.size(), -1);
  const bool kept = result_rank == int(named.size());
  for (int d = 0, at = 0; d < int(named.size()); ++d)
    if (!named[size_t(d)]) out[size_t(d)] = kept ? d : at++;
  return out;
}

Shuffle identity_of(const Tensor& y) {
  Shuffle s{Dims(y.rank()), {}};
  for (int d = 0; d < y.rank(); ++d) {
    s.dims[d] = d;
    s.orders.emplace_back(size_t(y.size(d)));
    std::iota(s.orders.back().begin(), s.orders.back().end(), 0);
  }
  return s;
}

/// Of arguments and of results.
struct Shuffles {
  Shuffle in, out;
};

Shuffles draw_pointwise(Draw& d, const Tensor& y) {
  Shuffle s = identity_of(y);
  for (auto& order : s.orders) order = draw_order(d, int64_t(order.size()));
  const std::vector<int64_t> dims = draw_order(d, y.rank());
  std::copy(dims.begin(), dims.end(), s.dims.begin());
  return {s, s};
}

/// Dims that are mapped over are shuffled in argument and result, those that are reduced in the argument
/// alone; an index into them would change.
Shuffles draw_by_dim(Case& c, const Tensor& x, const Tensor& y) {
  const std::vector<bool> named = named_dims(c, x.rank());
  const std::vector<int> to = result_dims(named, y.rank());
  Shuffles s{identity_of(x), identity_of(y)};
  for (int d = 0; d < x.rank(); ++d) {
    const bool reduced = named[size_t(d)];
    if (reduced && (c.op.shape != ShapeClass::Reduce || c.op.has(kDiscontinuous))) continue;
    s.in.orders[size_t(d)] = draw_order(c.draw, x.size(d));
    if (!reduced) s.out.orders[size_t(to[size_t(d)])] = s.in.orders[size_t(d)];
  }
  return s;
}

std::string two_calls(const Case& c, const Tensors& others) {
  std::string out = cpp_declarations(c.args) + cpp_tensors("b", others);
  std::vector<std::string> names;
  for (size_t k = 0; k < others.size(); ++k) names.push_back("b" + std::to_string(k));
  return out + "  std::cout << str(" + cpp_call(c.op, c.args) +
         "[0]) << \"\\nof the elements in order b: \" << str(" + cpp_call(c.op, c.args, names) +
         "[0]) << '\\n';\n";
}

/// A product may overflow in one order only, and then meet a 0.
bool overflows(const Op& op, const Tensor& a, const Tensor& b) {
  return agreement(op) == Agreement::Rounding && !(finite({a}) && finite({b}));
}

Verdict order_is_kept(Case& c) {
  const Tensors ys = call_boxed(c.op, c.args);
  const bool pointwise = c.op.shape == ShapeClass::Broadcast;
  const Shuffles s = pointwise ? draw_pointwise(c.draw, ys[0]) : draw_by_dim(c, c.at(c.tensors()[0]), ys[0]);
  Tensors xs;
  for (const Case::Slot& slot : c.tensors()) xs.push_back(shuffled(c.at(slot), s.in));
  const Tensors got = call_boxed(c.op, c.with(c.tensors(), xs));
  for (size_t k = 0; k < ys.size(); ++k) {
    const Finding d = disagrees(got[k], shuffled(ys[k], s.out), agreement(c.op));
    if (!d.empty() && overflows(c.op, got[k], ys[k])) return Verdict::discard();
    if (!d.empty())
      return Verdict::fail(format("result {}, of elements in another order: ", k) + d, two_calls(c, xs));
  }
  return Verdict::pass();
}

/// Elements `from` to `to` of a dim, as a view.
Tensor part(const Tensor& t, int dim, int64_t from, int64_t to) {
  Dims sizes(t.sizes());
  sizes[dim] = to - from;
  return make_view_unchecked(t, sizes, t.strides(), t.impl()->offset + from * t.stride(dim));
}

/// A dim of the result, and where it lies in each tensor argument; -1: it is not there.
struct MapDim {
  int of_result;
  std::vector<int> of;
};

/// Any dim that the operator's class maps over.
std::optional<MapDim> draw_map_dim(Case& c, const Tensor& y) {
  std::vector<MapDim> found;
  const std::vector<Case::Slot>& slots = c.tensors();
  const Tensor x = c.at(slots[0]);
  if (c.op.shape == ShapeClass::Broadcast) {
    for (int d = 0; d < y.rank(); ++d) {
      found.push_back({d, {}});
      for (const Case::Slot& s : slots) {
        const Tensor t = c.at(s);
        const int at = d - (y.rank() - t.rank());
        found.back().of.push_back(at >= 0 && t.size(at) == y.size(d) ? at : -1);
      }
    }
  } else if (c.op.shape == ShapeClass::Contract) {  // rows of the first operand are rows of the result
    const int columns = c.at(slots[1]).rank() > 1;
    if (x.rank() > 1) found.push_back({y.rank() - 1 - columns, {x.rank() - 2, -1}});
  } else if (c.op.shape == ShapeClass::Linalg) {  // all but matrices
    for (int d = 0; d + 2 < x.rank(); ++d) found.push_back({d, {d}});
  } else {
    const std::vector<int> to = result_dims(named_dims(c, x.rank()), y.rank());
    for (int d = 0; d < x.rank(); ++d)
      if (to[size_t(d)] >= 0) found.push_back({to[size_t(d)], {d}});
  }
  std::erase_if(found, [&](const MapDim& m) { return y.size(m.of_result) == 0; });
  if (found.empty()) return std::nullopt;
  return found[c.draw.below(uint32_t(found.size()))];
}

/// Most drawn reductions take all dims: such a one takes a single dim instead.
void leave_a_dim(Case& c) {
  const Tensor x = c.at(c.tensors()[0]);
  if (c.op.shape != ShapeClass::Reduce || x.rank() < 2) return;
  const std::vector<bool> named = named_dims(c, x.rank());
  if (std::ranges::find(named, false) != named.end()) return;
  for (size_t i = 0; i < c.args.size(); ++i) {
    const Param& p = c.op.schema.params[i];
    if (p.role == ParamRole::Dim) c.args[i] = p.kind == ParamKind::Ints ? Value(Dims{0}) : Value(int64_t{0});
  }
}

Verdict parts_are_enough(Case& c) {
  leave_a_dim(c);
  const Tensors ys = call_boxed(c.op, c.args);
  const std::optional<MapDim> dim = draw_map_dim(c, ys[0]);
  if (!dim) return Verdict::discard();
  const int64_t size = ys[0].size(dim->of_result), cut = int64_t(c.draw.below(uint32_t(size + 1)));
  for (const auto& [from, to] : {std::pair(int64_t{0}, cut), std::pair(cut, size)}) {
    Tensors xs = c.values(c.tensors());
    for (size_t k = 0; k < xs.size(); ++k)
      if (dim->of[k] >= 0) xs[k] = part(xs[k], dim->of[k], from, to);
    const Tensors got = call_boxed(c.op, c.with(c.tensors(), xs));
    for (size_t k = 0; k < ys.size(); ++k) {
      const Finding d = disagrees(got[k], part(ys[k], dim->of_result, from, to), agreement(c.op));
      if (!d.empty())
        return Verdict::fail(
            format("result {}, elements {} to {} of dim {}: ", k, from, to, dim->of_result) + d,
            two_calls(c, xs));
    }
  }
  return Verdict::pass();
}

bool maps_or_multiplies(const Op& op) {
  const bool matrices = op.shape == ShapeClass::Linalg && of_one(op);
  return maps_dims(op) || (matrices && !op.composite) || op.shape == ShapeClass::Contract;
}

}  // namespace

void add_map_dim_laws(std::vector<Law>& laws) {
  laws.push_back({15,
                  "order_is_kept",
                  "shape",
                  "Elements in another order give results in that order; a reduction does not see an order.",
                  {.exact = true},
                  false,
                  maps_dims,
                  order_is_kept});
  laws.push_back({17,
                  "parts_are_enough",
                  "shape",
                  "Along a dim that is mapped over, results of two parts are the parts of the result.",
                  {.exact = true},
                  false,
                  maps_or_multiplies,
                  parts_are_enough});
}

}  // namespace lamella::verify
