// Laws of geometry by index arithmetic: which elements results are, which lines they come from, and what
// composites are by definition.
#include <algorithm>
#include <cstring>

#include "lamella/ops/structured.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/lines.h"
#include "lamella/verify/case/listed.h"
#include "lamella/verify/laws/index_maps.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

/// Shapes and dtypes that the definition gives the composite's results.
Inferred inferred_of(const Op& op, const Values& args) {
  const BoxedArgs boxed(op, args);
  Tensors none(size_t(op.schema.n_results)), list;
  Inferred out;
  ops::infer_frame(Frame{&op, boxed.data(), none.data(), &list}, out);
  return out;
}

/// The operator whose row was drawn: the definition is the right one's, also of a wrong row.
Verdict composites_as_defined(Case& c) {
  const bool wrong = c.draw.one_in(3);
  if (wrong) spoil(c);
  const auto failed = [&](const Finding& d) {
    return Verdict::fail(d, cpp_declarations(c.args) + "  for (const Tensor& y : " + cpp_call(c.op, c.args) +
                                ") std::cout << y << '\\n';  // " + d.text() + "\n");
  };
  Inferred want;
  Tensors got;
  const Status defined = status_of([&] { want = inferred_of(c.op, c.args); });
  const Status composed = status_of([&] { got = call_boxed(c.op, c.args); });
  if (defined.raised != composed.raised && !(composed.raised && c.op.has(kValueErrors)))
    return failed(composed.raised ? "raises " + str(composed) + ", the definition does not"
                                  : Finding(What::Accepted, "raises nothing, the definition refuses"));
  if (composed.raised)
    return !defined.raised || defined.code == composed.code
               ? Verdict::pass()
               : failed("raises " + str(composed) + ", the definition " + str(defined).text());
  if (got.size() != want.outs.size())
    return failed(
        {What::Results, format("gives {} results, the definition {}", got.size(), want.outs.size())});
  for (size_t k = 0; k < got.size(); ++k)
    if (!(Dims(got[k].sizes()) == want.outs[k].sizes) || got[k].dtype() != want.outs[k].dtype)
      return failed(format("result {} is {}, by definition {}", k, got[k],
                           type_str(want.outs[k].dtype, want.outs[k].sizes)));
  return Verdict::pass();
}

bool is_defined_composite(const Op& op) { return op.composite && op.infer && !op.has(kTestOnly); }

// Elements.

const char* element(const Tensor& t, const Dims& at) {
  int64_t offset = 0;
  for (int d = 0; d < t.rank(); ++d) offset += at[d] * t.stride(d);
  return static_cast<const char*>(t.raw_data()) + offset * itemsize(t.dtype());
}

/// Empty when the element is the one the map names, byte by byte; of a view also the very same memory.
Finding unlike_origin(const Asked& a, const Tensor& y, const Dims& at, const Origin& from) {
  const auto bytes = size_t(itemsize(y.dtype()));
  if (from.tensor < 0) {
    const Tensor number = scalar_tensor(from.number, y.dtype());
    const bool equal = std::memcmp(element(y, at), number.raw_data(), bytes) == 0;
    return equal ? "" : format("element {} should be {}", at, from.number.str());
  }
  const Tensor& x = a.tensors[size_t(from.tensor)];
  const DType part = from.part < 0 ? x.dtype() : to_real(x.dtype());
  if (y.dtype() != part) return {What::DType, format("got {}, expected {}", y, part)};
  const char* const origin = element(x, from.at) + std::max(from.part, 0) * int(bytes);
  const bool same_place = !a.c.op.is_view() || element(y, at) == origin;
  if (same_place && std::memcmp(element(y, at), origin, bytes) == 0) return "";
  return format("element {} should be {} {} of tensor {}", at, same_place ? "element" : "the memory of",
                from.at, from.tensor);
}

Verdict elements_as_mapped(Case& c) {
  const Asked asked(c);
  const IndexMap* const map = index_map_of(c.op);
  const Tensors ys = call_boxed(c.op, c.args);
  const std::vector<Dims> sizes =
      map ? map->sizes(asked) : std::vector<Dims>{broadcast_by_hand(asked.tensors)};
  const auto failed = [&](size_t k, const Finding& d) {
    return Verdict::fail(format("result {}: ", k) + d,
                         cpp_declarations(c.args) + "  std::cout << str(" + cpp_call(c.op, c.args) +
                             format("[{}]) << '\\n';  // ", k) + d.text() + "\n");
  };
  if (ys.size() != sizes.size())
    return failed(0, {What::Results, format("got {} results, expected {}", ys.size(), sizes.size())});
  for (size_t k = 0; k < ys.size(); ++k) {
    if (!(Dims(ys[k].sizes()) == sizes[k]))
      return failed(k, {What::Shape, format("got {}, expected {}", ys[k], sizes[k])});
    if (!map || !map->origin) continue;
    for (const Dims& at : listed_indices(sizes[k]))
      if (const Finding d = unlike_origin(asked, ys[k], at, map->origin(asked, k, at)); !d.empty())
        return failed(k, d);
  }
  return Verdict::pass();
}

bool has_geometry(const Op& op) {
  if (op.has(kTestOnly)) return false;
  return index_map_of(op) || (op.shape == ShapeClass::Broadcast && takes_tensors(op));
}

// Lines.

/// The elements of x along `dims` (all others as in `at`), in row-major order, as a dense line.
Tensor line_of(const Tensor& x, const std::vector<bool>& named, const Dims& at) {
  Dims lengths(x.rank(), 1);
  for (int d = 0; d < x.rank(); ++d)
    if (named[size_t(d)]) lengths[d] = x.size(d);
  const std::vector<Dims> all = listed_indices(lengths);
  const Tensor out = make_tensor(Dims{int64_t(all.size())}, x.dtype());
  const auto bytes = size_t(itemsize(x.dtype()));
  char* to = static_cast<char*>(out.raw_data());
  for (Dims from : all) {
    for (int d = 0; d < x.rank(); ++d)
      if (!named[size_t(d)]) from[d] = at[d];
    std::memcpy(to, element(x, from), bytes);
    to += bytes;
  }
  return out;
}

/// The arguments for one line: every dim is the only one there is.
Values of_line(const Case& c, const Tensor& line) {
  Values args = c.args;
  args[c.op.tensor_params[0]] = line;
  for (size_t i = 0; i < args.size(); ++i)
    if (c.op.schema.params[i].role == ParamRole::Dim && !is_none(args[i])) {
      if (std::holds_alternative<Dims>(args[i])) args[i] = Dims{0};
      else args[i] = int64_t{0};
    }
  return args;
}

Verdict lines_alone(Case& c) {
  const Tensor x = c.at(c.tensors()[0]);
  if (x.rank() == 0) return Verdict::discard();
  std::vector<bool> named = named_dims(c, x.rank());
  const bool reduces = c.op.shape == ShapeClass::Reduce || c.op.shape == ShapeClass::Composite;
  if (reduces && std::ranges::find(named, true) == named.end()) named.assign(named.size(), true);
  const int keep = c.op.schema.find("keepdim");
  const bool kept = !reduces || (keep >= 0 && std::get<bool>(c.args[size_t(keep)]));
  Dims across(x.sizes()), sizes;
  for (int d = 0; d < x.rank(); ++d) {
    if (named[size_t(d)]) across[d] = 1;
    if (!named[size_t(d)] || kept) sizes.push_back(named[size_t(d)] && reduces ? 1 : x.size(d));
  }
  const auto failed = [&](size_t k, const Finding& d) {
    return Verdict::fail(format("result {}: ", k) + d, cpp_declarations(c.args) + "  std::cout << str(" +
                                                           cpp_call(c.op, c.args) + format("[{}]);\n", k));
  };
  const Tensors ys = call_boxed(c.op, c.args);
  for (size_t k = 0; k < ys.size(); ++k)
    if (!(Dims(ys[k].sizes()) == sizes)) return failed(k, format("got {}, expected sizes {}", ys[k], sizes));
  const std::vector<Dims> lines = listed_indices(across);
  if (lines.empty()) return Verdict::pass();
  const Dims at = lines[c.draw.below(uint32_t(lines.size()))];
  const Tensors want = call_boxed(c.op, of_line(c, line_of(x, named, at)));
  for (size_t k = 0; k < ys.size(); ++k) {
    Tensor got;
    if (!reduces) got = line_of(ys[k], named, at);
    else {
      Dims to;
      for (int d = 0; d < x.rank(); ++d)
        if (!named[size_t(d)] || kept) to.push_back(named[size_t(d)] ? 0 : at[d]);
      got = line_of(ys[k], std::vector<bool>(size_t(to.size()), false), to);
    }
    const Tensor alone =
        line_of(want[k], std::vector<bool>(size_t(want[k].rank()), true), Dims(want[k].rank()));
    const bool one_is_finite = finite({got}) != finite({alone});
    if (is_inexact(got.dtype()) && !finite({got, alone}) && !(one_is_finite && far_from_overflow({x})))
      return Verdict::discard();  // partial products may overflow in one order only
    const Finding d = disagrees(got, alone, Agreement::Rounding);
    if (!d.empty()) return failed(k, format("the line at {}, taken alone: ", at) + d);
  }
  return Verdict::pass();
}

}  // namespace

void add_mapped_laws(std::vector<Law>& laws) {
  laws.push_back({140,
                  "composites_as_defined",
                  "shape",
                  "A composite's results have the sizes and dtypes of its definition, which refuses what it "
                  "refuses.",
                  {.tame = true},
                  false,
                  is_defined_composite,
                  composites_as_defined});
  laws.push_back(
      {143,
       "elements_as_mapped",
       "shape",
       "A result that moves elements, or is made of numbers, has those that an index map names; one "
       "of broadcast operands has their sizes.",
       {.mixed = false, .largest = 96},  // maps list the elements for each element
       false,
       has_geometry,
       elements_as_mapped});
  laws.push_back({144,
                  "lines_alone",
                  "shape",
                  "A line of the result, along the dims that an operator names, is that of the line alone.",
                  {.exact = true},
                  false,
                  works_on_lines,
                  lines_alone});
}

}  // namespace lamella::verify
