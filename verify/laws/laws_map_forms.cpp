// Laws of one mapping however it is written, and of the strides that its lanes see.
#include <algorithm>

#include "lamella/dispatch/trace.h"
#include "lamella/ops/functions/view.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {

using Slots = std::vector<Case::Slot>;

/// A function, a batch, and what vmap gives for the plainest way to write it: dims from the front, one for
/// each tensor, lanes of results in front.
struct Mapping {
  Case& c;
  Slots slots;
  Batch b;
  Function f;
  Tensors plain;
};

VmapOptions plain_options(const Mapping& m) { return {m.b.in_dims, {0}, Randomness::Error, m.b.size}; }

/// A dim of every tensor with its lanes there, all the same, or nothing where some tensor is not mapped.
std::optional<std::pair<int, Tensors>> at_one_dim(Mapping& m) {
  if (m.b.xs.empty() || std::ranges::find(m.b.in_dims, kNone) != m.b.in_dims.end()) return std::nullopt;
  int rank = m.b.xs[0].rank();
  for (const Tensor& x : m.b.xs) rank = std::min(rank, x.rank());
  const int to = int(m.c.draw.below(uint32_t(rank)));
  const bool from_end = m.c.draw.flag();
  Tensors xs;
  for (size_t k = 0; k < m.b.xs.size(); ++k)
    xs.push_back(moved(m.b.xs[k], m.b.in_dims[k], from_end ? m.b.xs[k].rank() - 1 - to : to));
  return std::pair(from_end ? -1 - to : to, xs);
}

/// Results with their lanes along these dims, as views with the lanes in front.
Tensors in_front(Tensors ys, const InDims& dims) {
  for (size_t k = 0; k < ys.size(); ++k) {
    const int d = dims.size() == 1 ? dims[0] : dims[k];
    ys[k] = moved(ys[k], d < 0 ? d + ys[k].rank() : d, 0);
  }
  return ys;
}

/// One dim for all results that each of them has, from either end.
InDims one_out_dim(Draw& d, const Tensors& plain) {
  int rank = plain.empty() ? 1 : plain[0].rank();
  for (const Tensor& y : plain) rank = std::min(rank, y.rank());
  const int at = int(d.below(uint32_t(rank)));
  return {d.flag() ? -1 - at : at};
}

/// The unmapped tensors are captured instead of passed.
Tensors with_captures(const Mapping& m) {
  Tensors passed;
  InDims dims;
  std::vector<size_t> places;
  for (size_t k = 0; k < m.b.xs.size(); ++k)
    if (m.b.in_dims[k] != kNone)
      passed.push_back(m.b.xs[k]), dims.push_back(m.b.in_dims[k]), places.push_back(k);
  const Function g = [&m, places](const Tensors& xs) {
    Tensors all = m.b.xs;
    for (size_t i = 0; i < places.size(); ++i) all[places[i]] = xs[i];
    return m.f(all);
  };
  return vmap(g, {dims, {0}, Randomness::Error, m.b.size})(passed);
}

/// The dims of results are asked for when the function has run.
std::optional<Tensors> dims_asked_later(Mapping& m, bool in_chunks) {
  InDims dims;
  for (const Tensor& y : m.plain) dims.push_back(int(m.c.draw.below(uint32_t(y.rank()))));
  if (dims.empty()) return std::nullopt;
  VmapOptions o = plain_options(m);
  if (in_chunks) o.chunk = 1 + m.c.draw.below(2);
  o.result_dims = [&] { return dims; };
  return in_front(vmap(m.f, o)(m.b.xs), dims);
}

/// A way to write the mapping: results with lanes in front; nothing where it cannot be written so.
struct Form {
  std::string_view name;
  std::optional<Tensors> (*run)(Mapping&);
  bool same_strides = true, same_calls = true;  ///< the calls below are those of the plain way
};

constexpr Form kForms[] = {
    {"dims counted from the end, lanes not given",
     [](Mapping& m) -> std::optional<Tensors> {
       if (!m.b.any_mapped()) return std::nullopt;
       return vmap(m.f, some_negative(m.c.draw, m.b.in_dims, m.b.xs))(m.b.xs);
     }},
    {"one dim for all arguments",
     [](Mapping& m) -> std::optional<Tensors> {
       const auto all = at_one_dim(m);
       if (!all) return std::nullopt;
       return vmap(m.f, InDims{all->first})(all->second);
     }},
    {"one dim for all results",
     [](Mapping& m) -> std::optional<Tensors> {
       VmapOptions o = plain_options(m);
       o.out_dims = one_out_dim(m.c.draw, m.plain);
       return in_front(vmap(m.f, o)(m.b.xs), o.out_dims);
     }},
    {"dims of results that are asked for later",
     [](Mapping& m) -> std::optional<Tensors> { return dims_asked_later(m, false); }},
    {"a function of one tensor",
     [](Mapping& m) -> std::optional<Tensors> {
       if (m.b.xs.size() != 1 || m.plain.size() != 1 || m.b.in_dims[0] == kNone) return std::nullopt;
       const int to = int(m.c.draw.below(uint32_t(m.plain[0].rank())));
       const UnaryFunction g = [&m](const Tensor& x) { return m.f({x})[0]; };
       const InDims in = some_negative(m.c.draw, m.b.in_dims, m.b.xs);
       const int out = m.c.draw.flag() ? to - m.plain[0].rank() : to;
       return in_front({vmap(g, in[0], out)(m.b.xs[0])}, {to});
     }},
    {"with captures for what is not mapped",
     [](Mapping& m) -> std::optional<Tensors> { return with_captures(m); }},
    {"as the one lane of another mapping",
     [](Mapping& m) -> std::optional<Tensors> {
       const Function inner = vmap(m.f, plain_options(m));
       Tensors ys = vmap(inner, {{kNone}, {0}, Randomness::Error, 1})(m.b.xs);
       for (Tensor& y : ys) y = lane(y, 0, 0);
       return ys;
     },
     false},
    {"a few lanes at a time",
     [](Mapping& m) -> std::optional<Tensors> {
       VmapOptions o = plain_options(m);
       const int64_t chunks[] = {1, 2, std::max<int64_t>(m.b.size, 1), m.b.size + 3};
       o.chunk = chunks[m.c.draw.below(4)];
       o.out_dims = one_out_dim(m.c.draw, m.plain);
       return in_front(vmap(m.f, o)(m.b.xs), o.out_dims);
     },
     false, false},
    {"a few lanes at a time, dims of results asked for later",
     [](Mapping& m) -> std::optional<Tensors> { return dims_asked_later(m, true); }, false, false},
};

Finding unlike(const Mapping& m, const Form& form, const Tensors& got) {
  if (const Finding d = disagrees(got, m.plain, form.same_calls ? Agreement::Bitwise : agreement(m.c.op));
      !d.empty())
    return d;
  for (size_t k = 0; k < got.size() && form.same_strides; ++k)
    if (!std::ranges::equal(got[k].strides(), m.plain[k].strides()))
      return {What::Strides, format("result {} has strides {}, expected {}", k, Dims(got[k].strides()),
                                    Dims(m.plain[k].strides()))};
  return "";
}

Batch draw_mapping(Case& c, const Slots& slots) {
  static constexpr int64_t kSizes[] = {2, 3, 1, 0};
  return draw_batch(c, slots, draw_mapped(c.draw, slots.size()), kSizes[c.draw.below(4)]);
}

std::string mapping_text(const Mapping& m, const std::string& what) {
  return cpp_setting(m.c, m.slots, m.b.xs) + "  const Function f1 = vmap(f0, VmapOptions{" +
         cpp_dims(m.b.in_dims) + ", {0}, Randomness::Error, " + std::to_string(m.b.size) +
         "});\n  for (const Tensor& y : f1(xs)) std::cout << str(y) << Dims(y.strides()) << '\\n';  // " +
         what + "\n";
}

Verdict vmap_forms_agree(Case& c) {
  const Slots& slots = c.tensors();
  const Function f = [&c, slots](const Tensors& xs) { return call_boxed(c.op, c.with(slots, xs)); };
  Mapping m{c, slots, draw_mapping(c, slots), f, {}};
  if (status_of([&] { m.plain = vmap(f, plain_options(m))(m.b.xs); }).raised) return Verdict::discard();
  for (const Form& form : kForms) {
    std::optional<Tensors> got;
    const Status s = status_of([&] { got = form.run(m); });
    if (!s.raised && !got) continue;
    const Finding d = s.raised ? "raises " + str(s) : unlike(m, form, *got);
    if (!d.empty())
      return Verdict::fail(format("{} lanes, {}: ", m.b.size, form.name) + d,
                           mapping_text(m, std::string(form.name) + ": " + d.text()), 1);
  }
  return Verdict::pass(1);
}

/// The tensors of lane 0; where there is none, of one as it would be.
Tensors first_lane(const Mapping& m) {
  Tensors out = m.b.xs;
  for (size_t k = 0; k < out.size(); ++k)
    if (const int d = m.b.in_dims[k]; d != kNone)
      out[k] = m.b.size > 0 ? lane(out[k], d, 0) : in_layout_of_lane(out[k], d, m.c.at(m.slots[k]));
  return out;
}

/// As laws of plain calls have it: where there are elements, the stride of a dim of one is nobody's business.
bool same_strides(const Dims& seen, const Tensor& alone) {
  for (int d = 0; d < alone.rank(); ++d)
    if (seen[d] != alone.stride(d) && (alone.numel() == 0 || alone.size(d) > 1)) return false;
  return true;
}

Verdict strides_of_lanes(Case& c) {
  const Slots& slots = c.tensors();
  const Function f = [&c, slots](const Tensors& xs) { return call_boxed(c.op, c.with(slots, xs)); };
  Mapping m{c, slots, draw_mapping(c, slots), f, {}};
  Tensors alone;
  const Status one = status_of([&] { alone = f(first_lane(m)); });
  if (one.raised && (c.op.has(kValueErrors) || is_view(c.op))) return Verdict::discard();
  if (one.raised)
    return Verdict::fail("a call of one lane: " + str(one), mapping_text(m, str(one).text()), 1);
  std::vector<Dims> seen;
  const Function look = [&](const Tensors& xs) {
    const Tensors ys = f(xs);
    for (const Tensor& y : ys) seen.emplace_back(y.strides());
    return ys;
  };
  const Status mapped = status_of([&] { m.plain = vmap(look, plain_options(m))(m.b.xs); });
  if (mapped.raised && (c.op.composite || c.op.has(kValueErrors))) return Verdict::discard();
  if (mapped.raised)
    return Verdict::fail(format("{} lanes: ", m.b.size) + str(mapped) + ", in a call of one none",
                         mapping_text(m, "a call of one lane raises nothing"), 1);
  if (seen.size() != alone.size())
    return Verdict::fail({What::Results, format("got {} results, alone {}", seen.size(), alone.size())},
                         mapping_text(m, ""), 1);
  for (size_t k = 0; k < alone.size(); ++k) {
    const Finding d(What::Strides,
                    format("result {}, {} in each of {} lanes, has strides {} there, in a call of one {}", k,
                           alone[k], m.b.size, seen[k], Dims(alone[k].strides())));
    if (seen[k].size() != alone[k].rank() || !same_strides(seen[k], alone[k]))
      return Verdict::fail(d, mapping_text(m, d.text()), 1);
  }
  return Verdict::pass(1);
}

/// One operand has a number in each lane, the others have all dims that a tensor may have, or one fewer: then
/// there is room for the lanes.
Verdict lanes_have_63_dims(Case& c) {
  constexpr int kMostDims = 64;
  const Slots& slots = c.tensors();
  const bool too_many = c.draw.flag();
  const size_t mapped = c.draw.below(uint32_t(slots.size()));
  const Dims sizes(kMostDims - int(!too_many), 1);
  Tensors xs;
  InDims in;
  for (size_t k = 0; k < slots.size(); ++k) {
    const Tensor x = c.at(slots[k]);
    if (x.numel() == 0) return Verdict::discard();
    const Tensor one = plain_copy(make_view_unchecked(x, {}, {}, x.impl()->offset));
    if (k == mapped) xs.push_back(stacked({one, one}, 0));
    else xs.push_back(make_view_unchecked(one, sizes, sizes, one.impl()->offset));
    in.push_back(k == mapped ? 0 : kNone);
  }
  const Function f = [&c, slots](const Tensors& ts) { return call_boxed(c.op, c.with(slots, ts)); };
  Tensors alone = xs, got;
  alone[mapped] = lane(xs[mapped], 0, 0);
  const Status plain = status_of([&] { alone = f(alone); });
  if (plain.raised || alone[0].rank() != sizes.size()) return Verdict::discard();
  const Status s = status_of([&] { got = vmap(f, {in, {0}, Randomness::Error})(xs); });
  Finding d;
  if (s.raised != too_many) d = format("lanes of {} dims: ", sizes.size()) + str(s);
  else if (s.raised && (s.code != ErrorCode::Shape || s.text.rfind(c.op.name + ":", 0) != 0))
    d = str(s) + ", expected [shape], of " + c.op.name;
  for (size_t k = 0; k < got.size() && d.empty(); ++k)
    for (int64_t i = 0; i < 2 && d.empty(); ++i) d = disagrees(lane(got[k], 0, i), alone[k], agreement(c.op));
  if (d.empty()) return Verdict::pass(1);
  return Verdict::fail(
      d, cpp_setting(c, slots, xs) + "  vmap(f0, " + cpp_dims(in) + ")(xs);  // " + d.text() + "\n", 1);
}

/// The exception: without a rule of its own or of its class an operator goes lane by lane.
bool has_rule(const Op& op) {
  return op.batch || op.composite || (op.shape != ShapeClass::Dynamic && op.shape != ShapeClass::Other);
}

/// Calls of kernels that vmap makes of so many lanes, all with the case's arguments.
int kernels_of_lanes(const Case& c, const std::vector<bool>& mapped, int64_t lanes) {
  const Slots& slots = c.tensors();
  Tensors xs;
  InDims in;
  for (size_t k = 0; k < slots.size(); ++k) {
    const Tensor x = c.at(slots[k]);
    Dims sizes(x.sizes());
    sizes.insert(0, lanes);
    xs.push_back(mapped[k] ? plain_copy(expand(x, sizes)) : x);
    in.push_back(mapped[k] ? 0 : kNone);
  }
  const Function f = [&c, &slots](const Tensors& ts) { return call_boxed(c.op, c.with(slots, ts)); };
  Trace trace;
  const ScopedObserver scope(&trace);
  (void)vmap(f, {in, {0}, Randomness::Error, lanes})(xs);
  return trace.kernels();
}

/// What one lane may save: an operand that is expanded, over lanes or over a batch, and then looked at as one
/// dim with the lanes it is copied, where there is more than one.
Verdict lanes_cost_no_calls(Case& c) {
  constexpr int64_t kMany = 256;
  const std::vector<bool> mapped = draw_mapped(c.draw, c.tensors().size());
  int one = 0, two = 0, many = 0;
  if (status_of([&] { one = kernels_of_lanes(c, mapped, 1); }).raised) return Verdict::discard();
  const Status s = status_of([&] {
    two = kernels_of_lanes(c, mapped, 2);
    many = kernels_of_lanes(c, mapped, kMany);
  });
  const int saved = int(mapped.size());
  if (!s.raised && two == many && one <= two && two - one <= saved) return Verdict::pass(1);
  const Finding d = s.raised
                        ? format("one lane raises nothing, {} lanes ", kMany) + str(s)
                        : format("{} kernels for one lane, {} for two, {} for {}", one, two, many, kMany);
  return Verdict::fail(d, cpp_setting(c, c.tensors(), c.values(c.tensors())) + "  // " + d.text() + "\n", 1);
}

bool broadcasts_operands(const Op& op) {
  return op.shape == ShapeClass::Broadcast && op.simple && op.tensor_params.size() > 1 && !op.has(kRandom) &&
         op.schema.find("self") < 0;
}

bool may_be_mapped(const Op& op) {
  return takes_tensors(op) && !op.has(kRandom) && !op.has(kUnspecified) && op.shape != ShapeClass::Dynamic;
}

}  // namespace

void add_map_form_laws(std::vector<Law>& laws) {
  laws.push_back(
      {134,
       "vmap_forms_agree",
       "vmap",
       "One mapping gives the same bits, sizes, dtypes and strides however it is written: dims for "
       "all or each, from either end, captures, nested, as a function of one tensor; and in chunks.",
       {.exact = true, .max_numel = 8, .one_large = true},
       false,
       may_be_mapped,
       vmap_forms_agree});
  laws.push_back(
      {134,
       "vmap_strides_as_alone",
       "vmap",
       "In a lane a result has, size by size, the strides that it has in a call of that lane alone, "
       "also where sizes or the number of lanes are 0 or 1.",
       {.exact = true, .max_numel = 8, .one_large = true},
       false,
       may_be_mapped,
       strides_of_lanes});
  laws.push_back(
      {134,
       "lanes_have_63_dims",
       "vmap",
       "A result may have 63 dims in a lane; one of 64, which leaves none for the lanes, is refused.",
       {.exact = true, .layouts = false, .max_numel = 4},
       false,
       broadcasts_operands,
       lanes_have_63_dims});
  laws.push_back({174,
                  "lanes_cost_no_calls",
                  "vmap",
                  "vmap calls as many kernels for 256 lanes as for two, and for one at most a copy of each "
                  "operand fewer, "
                  "but for operators that have no batch rule and go lane by lane.",
                  {.exact = true, .layouts = false, .max_numel = 8},
                  false,
                  [](const Op& op) { return may_be_mapped(op) && has_rule(op); },
                  lanes_cost_no_calls});
}

}  // namespace lamella::verify
