// Laws of vmap: it is the loop over lanes, in values, strides and status, wherever the mapped dim lies.
#include <algorithm>

#include "lamella/core/visit.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/view.h"
#include "lamella/verify/case/lanes.h"

namespace lamella::verify {

namespace {
using Slots = std::vector<Case::Slot>;
bool batchable(const Op& op) { return !op.has(kRandom) && !op.tensor_params.empty(); }
bool not_random(const Op& op) { return !op.has(kRandom); }
bool has_fallback(const Op& op) {
  return batchable(op) && !op.composite && !op.is_view() && op.schema.result_kind == ResultKind::Tensors;
}

/// A composite that crosses columns says that it cannot be transformed: that is an answer, not a difference.
bool declined(const Op& op, const Status& s) {
  return op.composite && s.raised && s.code == ErrorCode::NoKernel;
}

/// The operator itself, for all arguments: also those outside its input space.
Function plain_function(const Case& c, const Slots& slots) {
  return [&c, slots](const Tensors& xs) { return call_boxed(c.op, c.with(slots, xs)); };
}

std::string vmap_program(const Case& c, const Slots& slots, const Batch& b, const InDims& in,
                         const InDims& out) {
  return cpp_setting(c, slots, b.xs) + "  const Function f1 = vmap(f0, VmapOptions{" + cpp_dims(in) + ", " +
         cpp_dims(out) + ", Randomness::Error, " + std::to_string(b.size) + "});\n" +
         "  for (const Tensor& y : f1(xs)) std::cout << str(y) << \"\\n\";  // expected: the loop of f0 over "
         "the lanes\n";
}

/// The tensors of a lane; for an empty batch, of the lane it would have.
Tensors lane_or_example(const Case& c, const Slots& slots, const Batch& b, int64_t i) {
  if (b.size > 0) return lane(b, i);
  Tensors out = b.xs;
  for (size_t k = 0; k < out.size(); ++k)
    if (b.in_dims[k] != kNone) out[k] = in_layout_of_lane(b.xs[k], b.in_dims[k], c.at(slots[k]));
  return out;
}

/// What the loop returns: one entry a lane, or the single example of an empty batch.
std::vector<Tensors> loop_over(const Case& c, const Slots& slots, const Batch& b) {
  const Function f = plain_function(c, slots);
  std::vector<Tensors> out;
  for (int64_t i = 0; i < std::max<int64_t>(b.size, 1); ++i)
    out.push_back(f(lane_or_example(c, slots, b, i)));
  return out;
}

bool stackable(const std::vector<Tensors>& lanes) {
  for (const Tensors& ys : lanes) {
    if (ys.size() != lanes[0].size()) return false;
    for (size_t k = 0; k < ys.size(); ++k)
      if (!std::ranges::equal(ys[k].sizes(), lanes[0][k].sizes())) return false;
  }
  return true;
}

Finding lanes_differ(const Tensors& ys, const InDims& out_dims, const std::vector<Tensors>& lanes,
                     int64_t size, Agreement how, Roundings r = {}) {
  if (ys.size() != lanes[0].size()) return other_number(ys, lanes[0]);
  for (size_t k = 0; k < ys.size(); ++k) {
    const Tensor& one = lanes[0][k];
    const int dim = out_dims[k] < 0 ? out_dims[k] + one.rank() + 1 : out_dims[k];
    Dims sizes(one.sizes());
    sizes.insert(dim, size);
    if (!sizes.equal(ys[k].sizes()) || ys[k].dtype() != one.dtype())
      return format("result {} is {}, expected {}", k, ys[k], type_str(one.dtype(), sizes));
    for (int64_t i = 0; i < size; ++i) {
      const Finding d = disagrees(lane(ys[k], dim, i), lanes[size_t(i)][k], how, r);
      if (!d.empty()) return format("result {}, lane {}: ", k, i) + d;
    }
  }
  return "";
}

/// Strides matter where a dim has more than one element.
Finding strides_differ(const Tensor& seen, const Tensor& want, size_t k) {
  if (want.numel() == 0 || !std::ranges::equal(seen.sizes(), want.sizes())) return "";
  for (int d = 0; d < want.rank(); ++d)
    if (want.size(d) > 1 && seen.stride(d) != want.stride(d))
      return {What::Strides, format("result {} has logical strides {}, in the loop {}", k,
                                    Dims(seen.strides()), Dims(want.strides()))};
  return "";
}

/// The largest result of any lane where every number is its magnitude: no partial sum of products is larger,
/// in whatever order they are added. 0 where the operator refuses magnitudes.
double largest_partial(const Case& c, const Slots& slots, Batch b) {
  double largest = 0;
  (void)status_of([&] {
    for (Tensor& x : b.xs) {
      if (!is_inexact(x.dtype())) continue;
      x = to(is_complex(x.dtype()) ? abs(real(x)) + abs(imag(x)) : abs(x), x.dtype());
    }
    for (const Tensors& ys : loop_over(c, slots, b)) largest = std::max(largest, largest_part(ys));
  });
  return largest;
}

/// The heart of the laws: vmap over `b` against the loop.
Verdict compare_with_loop(Case& c, const Slots& slots, const Batch& b) {
  std::vector<Tensors> lanes;
  const Status loop = status_of([&] { lanes = loop_over(c, slots, b); });
  if (loop.raised || !stackable(lanes)) return Verdict::discard();  // the status law's subject
  if (b.size == 0 && c.op.shape == ShapeClass::Dynamic)
    return Verdict::discard();  // no lane says how large results are
  const InDims out_dims = draw_out_dims(c.draw, lanes[0]);
  const Function f = plain_function(c, slots);
  Finding difference;
  const Function seen = [&](const Tensors& xs) {
    Tensors ys = f(xs);
    for (size_t k = 0; k < ys.size() && difference.empty(); ++k)
      difference = strides_differ(ys[k], lanes[0][k], k);
    return ys;
  };
  Tensors ys;
  const Status status = status_of([&] {
    ys = vmap(seen, {b.in_dims, out_dims, Randomness::Error, b.size})(b.xs);
  });
  if (declined(c.op, status)) return Verdict::discard();
  if (status.raised) difference = "the loop raises nothing, vmap raises " + str(status);
  else if (difference.empty()) {
    const Agreement how = agreement(c.op);
    difference = lanes_differ(ys, out_dims, lanes, b.size, how);
    if (!difference.empty() && how == Agreement::Rounding)  // where sums cancel, results say nothing of terms
      difference = lanes_differ(ys, out_dims, lanes, b.size, how, {.least = largest_partial(c, slots, b)});
    if (!difference.empty() && how == Agreement::Rounding)
      if (const auto k = lanes_as_defined(c, slots, b, ys, out_dims, lanes); k != Verdict::Fail)
        return k == Verdict::Pass ? Verdict::pass(1) : Verdict::discard();
  }
  if (difference.empty()) return Verdict::pass(1);
  return Verdict::fail(difference, vmap_program(c, slots, b, b.in_dims, out_dims), 1);
}

/// The shape of nonzero's result depends on values, and an empty batch has none.
bool has_no_shape(const Case& c, int64_t lanes) { return lanes == 0 && c.op.shape == ShapeClass::Dynamic; }

Verdict equals_loop(Case& c) {
  const Slots& slots = c.tensors();
  const int64_t size = draw_lanes(c.draw);
  if (has_no_shape(c, size)) return Verdict::discard();
  const std::vector<bool> mapped = draw_mapped(c.draw, slots.size());
  return compare_with_loop(c, slots, draw_batch(c, slots, mapped, size));
}

Verdict every_subset(Case& c) {
  const Slots& slots = c.tensors();
  const size_t n = std::min<size_t>(slots.size(), 3);
  const int64_t size = 2 + c.draw.below(2);
  bool any = false;
  for (uint32_t bits = 1; bits < 1u << n; ++bits) {
    std::vector<bool> mapped(slots.size());
    for (size_t k = 0; k < n; ++k) mapped[k] = bits >> k & 1;
    Verdict v = compare_with_loop(c, slots, draw_batch(c, slots, mapped, size));
    if (v.kind == Verdict::Fail) return v;
    any |= v.kind == Verdict::Pass;
  }
  return any ? Verdict::pass(1) : Verdict::discard();
}

Verdict odd_sizes(Case& c) {
  const Slots& slots = c.tensors();
  if (slots.empty()) return Verdict::discard();
  const std::vector<bool> mapped = draw_mapped(c.draw, slots.size());
  const Tensor x = c.at(slots[c.draw.below(uint32_t(slots.size()))]);
  int64_t size = c.draw.below(2);
  if (c.draw.flag() && x.rank() > 0)
    size = x.size(int(c.draw.below(uint32_t(x.rank()))));  // a mapped dim that looks like another
  if (has_no_shape(c, size)) return Verdict::discard();
  return compare_with_loop(c, slots, draw_batch(c, slots, mapped, size));
}

/// in_dims and out_dims only say where the mapped dim lies.
Verdict dims_are_moves(Case& c) {
  const Slots& slots = c.tensors();
  const Batch b = draw_batch(c, slots, draw_mapped(c.draw, slots.size()), 1 + c.draw.below(3));
  Batch front = b;
  for (size_t k = 0; k < b.xs.size(); ++k) {
    if (b.in_dims[k] == kNone) continue;
    front.xs[k] = moved(b.xs[k], b.in_dims[k], 0);
    front.in_dims[k] = 0;
  }
  const Function f = plain_function(c, slots);
  Tensors plain, general;
  const Status first = status_of([&] {
    plain = vmap(f, {front.in_dims, {0}, Randomness::Error, b.size})(front.xs);
  });
  if (first.raised) return Verdict::discard();
  const InDims in = some_negative(c.draw, b.in_dims, b.xs);
  InDims out;
  for (const Tensor& y : plain) out.push_back(int(c.draw.below(uint32_t(2 * y.rank()))) - y.rank());
  const Status second = status_of([&] { general = vmap(f, {in, out, Randomness::Error, b.size})(b.xs); });
  Finding difference = second.raised ? "vmap over dim 0 raises nothing, over others " + str(second) : "";
  for (size_t k = 0; k < plain.size() && difference.empty(); ++k) {
    const int to = out[k] < 0 ? out[k] + plain[k].rank() : out[k];
    difference = disagrees(general[k], moved(plain[k], 0, to), agreement(c.op));
  }
  if (difference.empty()) return Verdict::pass(1);
  return Verdict::fail(difference, vmap_program(c, slots, b, in, out), 1);
}

/// Whether a lane of a lane raises, or may: shapes that depend on values need not stack.
bool some_lane_raises(const Case& c, const Slots& slots, const Batch& outer, const InDims& inner_dims,
                      int64_t inner) {
  if (c.op.shape == ShapeClass::Dynamic) return true;
  for (int64_t i = 0; i < outer.size; ++i)
    if (status_of([&] { (void)loop_over(c, slots, {inner, lane(outer, i), inner_dims}); }).raised)
      return true;
  return false;
}

/// Law 1 for the results of two levels, and for those of the other order; a failure where types differ.
Verdict::Kind swapped_as_defined(const Case& c, const Slots& slots, const Batch& outer, const Batch& inner,
                                 const Tensors& ys, const Tensors& swapped) {
  const auto nests = [](const Tensor& t, int64_t first, int64_t second) {
    return t.rank() >= 2 && t.size(0) == first && t.size(1) == second;
  };
  Verdict::Kind all = ys.size() == swapped.size() ? Verdict::Pass : Verdict::Fail;
  for (size_t k = 0; k < ys.size() && all != Verdict::Fail; ++k)
    if (!nests(ys[k], outer.size, inner.size) || !nests(swapped[k], inner.size, outer.size))
      return Verdict::Fail;
  for (int64_t i = 0; i < outer.size && all != Verdict::Fail; ++i) {
    const Batch row{inner.size, lane(outer, i), inner.in_dims};
    Tensors of_row, of_column;
    for (const Tensor& y : ys) of_row.push_back(lane(y, 0, i));
    for (const Tensor& y : swapped) of_column.push_back(lane(y, 1, i));
    const std::vector<Tensors> lanes = loop_over(c, slots, row);
    for (const Tensors* some : {&of_row, &of_column})
      if (const auto k = lanes_as_defined(c, slots, row, *some, InDims(ys.size(), 0), lanes);
          k != Verdict::Pass)
        all = all == Verdict::Fail ? all : k;
  }
  return all;
}

/// Two batches nested: outer and inner may change places.
Verdict levels_swap(Case& c) {
  const Slots& slots = c.tensors();
  const int64_t outer = 1 + c.draw.below(3), inner = 1 + c.draw.below(3);
  const Batch one = draw_batch(c, slots, draw_mapped(c.draw, slots.size()), inner);
  const Batch two = draw_batch(c.draw, one.xs, draw_mapped(c.draw, slots.size()), outer, may_rotate(c));
  InDims outer_first(slots.size()), inner_first(slots.size());  // of both stacked, the other taken out
  for (size_t k = 0; k < slots.size(); ++k) {
    const int p = two.in_dims[k], q = one.in_dims[k];
    inner_first[k] = q == kNone ? kNone : q + (p != kNone && p <= q);
    outer_first[k] = p == kNone ? kNone : p - (q != kNone && q < p);
  }
  const Function f = plain_function(c, slots);
  const auto nested = [&](const InDims& in, int64_t size, const InDims& in_outer, int64_t outer_size) {
    return vmap(vmap(f, {in, {0}, Randomness::Error, size}), {in_outer, {0}, Randomness::Error, outer_size});
  };
  Tensors a, b;
  const Status sa = status_of([&] { a = nested(one.in_dims, inner, two.in_dims, outer)(two.xs); });
  const Status sb = status_of([&] { b = nested(outer_first, outer, inner_first, inner)(two.xs); });
  Finding difference;
  if (sa.raised != sb.raised) difference = str(sa) + " in one order, " + str(sb).text() + " in the other";
  if (sa.raised && sb.raised) {
    if (some_lane_raises(c, slots, two, one.in_dims, inner) || declined(c.op, sa)) return Verdict::discard();
    difference = "no lane raises; both orders: " + str(sa);
  }
  for (size_t k = 0; k < a.size() && difference.empty(); ++k)
    difference = disagrees(moved(b[k], 1, 0), a[k], agreement(c.op));
  for (int64_t i = 0; i < outer && difference.empty(); ++i) {
    const Batch row{inner, lane(two, i), one.in_dims};
    Tensors in_row;
    for (const Tensor& y : a) in_row.push_back(lane(y, 0, i));
    const std::vector<Tensors> lanes = loop_over(c, slots, row);
    difference = lanes_differ(in_row, InDims(a.size(), 0), lanes, inner, agreement(c.op));
    if (!difference.empty()) difference = format("outer lane {}, inner: ", i) + difference;
  }
  if (difference.empty()) return Verdict::pass(2);
  if (!sa.raised && agreement(c.op) == Agreement::Rounding)
    if (const auto k = swapped_as_defined(c, slots, two, one, a, b); k != Verdict::Fail)
      return k == Verdict::Pass ? Verdict::pass(2) : Verdict::discard();
  const std::string program =
      cpp_setting(c, slots, two.xs) + "  const Function f1 = vmap(f0, " + cpp_dims(one.in_dims) + ");\n" +
      "  const Function f2 = vmap(f1, " + cpp_dims(two.in_dims) + ");\n" + "  const Function g1 = vmap(f0, " +
      cpp_dims(outer_first) + ");\n" + "  const Function g2 = vmap(g1, " + cpp_dims(inner_first) + ");\n" +
      "  std::cout << str(f2(xs)[0]) << \"\\n\" << str(g2(xs)[0]) << \"\\n\";  // equal up to a "
      "transposition\n";
  return Verdict::fail(difference, program, 2);
}

/// The batch rule against the lane-by-lane fallback.
Verdict rule_is_fallback(Case& c) {
  const Slots& slots = c.tensors();
  const Batch b = draw_batch(c, slots, draw_mapped(c.draw, slots.size()), draw_lanes(c.draw));
  const Function mapped = vmap(plain_function(c, slots), {b.in_dims, {0}, Randomness::Error, b.size});
  Tensors rule, fallback;
  const Status first = status_of([&] { rule = mapped(b.xs); });
  const Status second = status_of([&] {
    const ForceLoop loop;
    fallback = mapped(b.xs);
  });
  if (first.raised && second.raised) return Verdict::discard();
  Finding difference;
  if (first.raised != second.raised) difference = "rule: " + str(first) + "; fallback: " + str(second).text();
  else difference = disagrees(rule, fallback, agreement(c.op));
  if (difference.empty()) return Verdict::pass(1);
  return Verdict::fail(difference, vmap_program(c, slots, b, b.in_dims, {0}), 1);
}

std::string vmap_identity_program(const Case& c, const Slots& slots, const Batch& b) {
  InDims out = b.in_dims;
  for (int& d : out) d = d == kNone ? 0 : d;
  return cpp_setting(c, slots, b.xs) + "  const Function f1 = vmap([](const Tensors& x) { return x; }, " +
         "VmapOptions{" + cpp_dims(b.in_dims) + ", " + cpp_dims(out) + ", Randomness::Error, " +
         std::to_string(b.size) + "});\n  for (const Tensor& y : f1(xs)) std::cout << str(y) << \"\\n\";\n";
}

Verdict identity(Case& c) {
  const Slots& slots = c.tensors();
  const Batch b = draw_batch(c, slots, draw_mapped(c.draw, slots.size()), draw_lanes(c.draw));
  InDims out = b.in_dims;
  for (int& d : out) d = d == kNone ? 0 : d;
  const Tensors ys = vmap([](const Tensors& xs) { return xs; },
                          {some_negative(c.draw, b.in_dims, b.xs), out, Randomness::Error, b.size})(b.xs);
  for (size_t k = 0; k < ys.size(); ++k) {
    Tensor want = b.xs[k];
    if (b.in_dims[k] == kNone) {
      if (b.size == 0) continue;
      want = stacked(Tensors(size_t(b.size), want), 0);
    }
    const Finding d = disagrees(ys[k], want, Agreement::Bitwise);
    if (!d.empty())
      return Verdict::fail(format("vmap of the identity, tensor {}: ", k) + d,
                           vmap_identity_program(c, slots, b), 1);
  }
  return Verdict::pass(1);
}

Tensor after(const Tensor& y, uint32_t which) {
  if (is_bool(y.dtype())) return logical_not(y);
  return which == 0 ? neg(y) : which == 1 ? y * y : clone(y);
}

Verdict composition(Case& c) {
  const Slots& slots = c.tensors();
  const Batch b = draw_batch(c, slots, draw_mapped(c.draw, slots.size()), draw_lanes(c.draw));
  const uint32_t which = c.draw.below(3);
  const Function g = plain_function(c, slots);
  const Function f = [which](const Tensors& ys) {
    Tensors zs;
    for (const Tensor& y : ys) zs.push_back(after(y, which));
    return zs;
  };
  Tensors between;
  const VmapOptions first{b.in_dims, {-1}, Randomness::Error, b.size};
  if (status_of([&] { between = vmap(g, first)(b.xs); }).raised) return Verdict::discard();
  const Tensors want = vmap(f, {{-1}, {0}, Randomness::Error, b.size})(between);
  Tensors got;
  const Status s = status_of([&] {
    got =
        vmap([&](const Tensors& xs) { return f(g(xs)); }, {b.in_dims, {0}, Randomness::Error, b.size})(b.xs);
  });
  const Finding d = s.raised ? "vmap(f of g) raises " + str(s) : disagrees(got, want, agreement(c.op));
  if (d.empty()) return Verdict::pass(1);
  return Verdict::fail("vmap(f of g) differs from vmap f of vmap g: " + d,
                       vmap_program(c, slots, b, b.in_dims, {0}), 1);
}

// Law 38. A valid call is spoilt in one place; vmap must raise what the loop raises.

/// Shapes without elements: what raises for shapes alone.
Tensor meta_like(const Tensor& t) {
  const Tensor base = make_tensor(Dims{0}, t.dtype(), Device::Meta);
  return make_view_unchecked(base, t.sizes(), t.strides(), 0);
}
Status status_on_meta(const Case& c, const Slots& slots, const Batch& b) {
  Values args = c.with(slots, lane_or_example(c, slots, b, 0));
  for (Value& v : args) {
    if (auto* t = std::get_if<Tensor>(&v); t && t->defined()) *t = meta_like(*t);
    if (auto* ts = std::get_if<Tensors>(&v))
      for (Tensor& t : *ts) t = meta_like(t);
  }
  return status_of([&] { call_boxed(c.op, args); });
}

void put(Case& c, const Case::Slot& slot, const Tensor& t) {
  Value& v = c.args[size_t(slot.param)];
  if (auto* ts = std::get_if<Tensors>(&v)) (*ts)[size_t(slot.element)] = t;
  else v = t;
}

/// Another number, shape or dtype in one argument.
void spoil_type(Case& c) {
  Draw& d = c.draw;
  const size_t at = d.below(uint32_t(c.args.size()));
  Value& v = c.args[at];
  if (std::holds_alternative<int64_t>(v)) v = d.range(-5, 5);
  if (auto* dims = std::get_if<Dims>(&v))
    dims->empty() || d.flag() ? dims->push_back(d.range(-4, 4)) : void((*dims)[0] = d.range(-4, 4));
  if (!std::holds_alternative<Tensor>(v) && !std::holds_alternative<Tensors>(v)) return;
  if (c.tensors().empty()) return;
  const Case::Slot slot = c.tensors()[d.below(uint32_t(c.tensors().size()))];
  const Tensor old = c.at(slot);
  if (d.flag()) {
    put(c, slot, d.tensor(d.shape(), old.dtype()));
  } else {
    static constexpr DType kTypes[] = {DType::F64, DType::I64, DType::Bool, DType::C128, DType::F32};
    put(c, slot, d.tensor(old.sizes(), kTypes[d.below(5)]));
  }
}

/// A value in one lane that an operator may refuse.
void spoil_value(Draw& d, const Batch& b) {
  const size_t k = d.below(uint32_t(b.xs.size()));
  if (b.xs.empty() || b.in_dims[k] == kNone || b.size == 0) return;
  const Tensor one = lane(b.xs[k], b.in_dims[k], int64_t(d.below(uint32_t(b.size))));
  if (one.numel() == 0) return;
  int64_t offset = 0;
  for (int r = 0; r < one.rank(); ++r) offset += one.stride(r) * int64_t(d.below(uint32_t(one.size(r))));
  visit_dtype(one.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    static_cast<T*>(one.raw_data())[offset] = Scalar(d.range(-9, 9)).to<T>();
  });
}

/// One argument with a dim or two less, or one more.
void spoil_rank(Case& c) {
  if (c.tensors().empty()) return;
  const Case::Slot s = c.tensors()[c.draw.below(uint32_t(c.tensors().size()))];
  Tensor t = c.at(s);
  const uint32_t less = c.draw.below(3);
  if (less == 0) t = unsqueeze(t, 0);
  for (uint32_t k = 0; k < less && t.rank() > 0 && t.size(0) > 0; ++k) t = select(t, 0, 0);
  put(c, s, t);
}

Verdict status_is_loops(Case& c) {
  const Slots& slots = c.tensors();
  const uint32_t spoilt = c.draw.below(4);
  if (spoilt == 1) spoil_type(c);
  if (spoilt == 3) spoil_rank(c);
  const int64_t size = draw_lanes(c.draw);
  if (has_no_shape(c, size)) return Verdict::discard();
  const Batch b = draw_batch(c.draw, c.values(slots), draw_mapped(c.draw, slots.size()), size, may_rotate(c));
  if (spoilt == 2) spoil_value(c.draw, b);
  Status loop;
  std::vector<Tensors> lanes;
  if (size > 0) loop = status_of([&] { lanes = loop_over(c, slots, b); });
  else loop = c.op.composite ? status_of([&] { loop_over(c, slots, b); }) : status_on_meta(c, slots, b);
  const bool by_value = loop.code == ErrorCode::Value || loop.code == ErrorCode::IndexOutOfRange;
  if (size == 0 && loop.raised && (loop.code == ErrorCode::NoKernel || by_value)) return Verdict::discard();
  const Status got = status_of([&] {
    vmap(plain_function(c, slots), {b.in_dims, {0}, Randomness::Error, b.size})(b.xs);
  });
  if (declined(c.op, got)) return Verdict::discard();
  const bool uneven = !loop.raised && size > 0 && !stackable(lanes);  // then stacking is what raises
  const bool same = uneven ? got.raised : got.raised == loop.raised && (!got.raised || got.code == loop.code);
  if (same) return Verdict::pass(1);
  const std::string by_loop = uneven ? "lanes of different shapes" : str(loop).text();
  return Verdict::fail(format("loop over {} lanes: {}; vmap: ", size, by_loop) + str(got),
                       vmap_program(c, slots, b, b.in_dims, {0}), 1);
}
}  // namespace

void add_vmap_laws(std::vector<Law>& laws) {
  const DrawOptions any{.tame = true, .devices = true}, exact{.exact = true},
      small{.exact = true, .max_numel = 8, .one_large = true};
  const DrawOptions as_many{.exact = true, .largest = -1};  // lanes times elements would be a square
  laws.push_back({37, "vmap_equals_loop", "vmap",
                  "vmap(f) stacks f over the lanes, in values and logical strides.", any, false, batchable,
                  equals_loop});
  laws.push_back({37, "vmap_equals_loop_exactly", "vmap",
                  "On small integers vmap(f) is the stacked loop, bit by bit.", exact, false, not_random,
                  equals_loop});
  laws.push_back({38, "vmap_status", "vmap",
                  "vmap(f) raises if and only if the loop does, with the same code.", exact, false, batchable,
                  status_is_loops});
  laws.push_back({39, "vmap_dims", "vmap",
                  "Mapping dim d is mapping dim 0 of the moved tensor; out_dims likewise.", exact, false,
                  batchable, dims_are_moves});
  laws.push_back({40, "vmap_subsets", "vmap", "Every subset of the arguments may be mapped.", small, false,
                  batchable, every_subset});
  laws.push_back({41, "vmap_sizes", "vmap",
                  "Batches of 0, 1 and as many lanes as another dim has are batches like others.", as_many,
                  false, batchable, odd_sizes});
  laws.push_back({42, "vmap_levels_swap", "compose",
                  "Nested vmaps commute up to the order of the result's dims.", small, false, batchable,
                  levels_swap});
  laws.push_back({45, "vmap_rule_is_fallback", "vmap",
                  "The batch rule agrees with the lane-by-lane fallback.", exact, false, has_fallback,
                  rule_is_fallback});
  laws.push_back({66, "vmap_identity", "vmap", "vmap of the identity is the identity.", exact, false,
                  batchable, identity});
  laws.push_back({67, "vmap_composes", "vmap", "vmap(f of g) is vmap(f) of vmap(g).", exact, false, batchable,
                  composition});
}

}  // namespace lamella::verify
