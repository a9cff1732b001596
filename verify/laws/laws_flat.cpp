// The law of whole results: what is reduced over all dims, or lies in one dim alone, is a line.
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/lines.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

size_t dim_param(const Op& op) {
  for (size_t i = 0; i < op.schema.params.size(); ++i)
    if (op.schema.params[i].role == ParamRole::Dim) return i;
  return 0;
}

Value first_dim(const Op& op) {
  return op.schema.params[dim_param(op)].kind == ParamKind::Ints ? Value(Dims{0}) : Value(int64_t{0});
}

/// All dims in one of the ways to say so: none, an empty list, or a list of all, in any order, from either
/// end.
Value all_dims(Draw& d, const Param& p, int rank) {
  const uint32_t w = d.word();
  if (p.kind != ParamKind::Ints || (p.optional && w % 3 == 0)) return {};
  if (rank == 0 || (w % 3 == 1 && (p.optional || p.has_default))) return Value(std::in_place_type<Dims>);
  Dims out;
  for (int k = 0; k < rank; ++k) {
    const int at = int((uint32_t(k) + w / 3) % uint32_t(rank));
    out.push_back(w >> (8 + at) & 1 ? at - rank : at);
  }
  return out;
}

/// A line as the one dim `at` among others of size 1, whose strides say nothing.
Tensor among_ones(const Tensor& line, int at, int rank, uint32_t w) {
  Dims sizes(rank, 1), strides(rank, 0);
  for (int k = 0; k < rank; ++k) strides[k] = int64_t(w >> (4 * k) & 7);
  sizes[at] = line.size(0), strides[at] = line.stride(0);
  return make_view_unchecked(line, sizes, strides, line.impl()->offset);
}

Tensor flat(const Tensor& t) {
  const Tensor dense = plain_copy(t);
  return make_view_unchecked(dense, Dims{t.numel()}, Dims{1}, 0);
}

/// Sums of small whole numbers, extremes and integers do not depend on an order; products and exponentials
/// may.
Agreement whole_agreement(const Op& op) {
  const bool exact = op.has(kLinear) || op.has(kKinks) || op.has(kDiscontinuous) || op.promises.once;
  return exact ? Agreement::Bitwise : Agreement::Rounding;
}

Finding whole_differs(const Case& c, const Tensors& got, const Tensors& want) {
  if (got.size() != want.size())
    return {What::Results, format("{} results, of the line {}", got.size(), want.size())};
  for (size_t k = 0; k < got.size(); ++k) {
    if (!got[k].defined() || !want[k].defined()) return format("result {} is missing", k);
    if (got[k].numel() != want[k].numel() || got[k].dtype() != want[k].dtype())
      return format("result {} is {}, of the line {}", k, got[k], want[k]);
    const Tensor a = flat(got[k]), b = flat(want[k]);
    const bool exact = whole_agreement(c.op) == Agreement::Bitwise || !is_inexact(a.dtype());
    const bool signed_zero = c.op.shape != ShapeClass::Reduce;
    if (!exact && !finite({a, b})) continue;  // partial products may overflow in one order only
    const Finding d = exact ? differs(a, b, signed_zero) : disagrees(a, b, Agreement::Rounding);
    if (!d.empty()) return format("result {}: ", k) + d;
  }
  return "";
}

Verdict whole_results_are_flat(Case& c) {
  const size_t at = dim_param(c.op), first = c.op.tensor_params[0];
  const Param& p = c.op.schema.params[at];
  const Tensor x = c.at(c.tensors()[0]);
  const bool whole = c.op.shape != ShapeClass::AlongDim && (p.kind == ParamKind::Ints || p.optional);
  const uint32_t w = c.draw.word();
  Values args = c.args, of_line = c.args;
  of_line[first] = flat(x), of_line[at] = first_dim(c.op);
  if (whole && w % 4 != 0) {
    args[at] = all_dims(c.draw, p, x.rank());
  } else {
    const int rank = 2 + int(w >> 2 & 1), place = int((w >> 3) % uint32_t(rank));
    const int64_t dim = w >> 8 & 1 ? place - rank : place;
    args[first] = among_ones(std::get<Tensor>(of_line[first]), place, rank, w >> 9);
    args[at] = p.kind == ParamKind::Ints ? Value(Dims{dim}) : Value(dim);
  }
  Tensors got, want;
  const Status g = status_of([&] { got = call_boxed(c.op, args); });
  const Status l = status_of([&] { want = call_boxed(c.op, of_line); });
  if (g.raised && l.raised && g.code == l.code) return Verdict::discard();
  Finding wrong;
  if (g.raised || l.raised) wrong = g.raised ? "raises " + str(g) : "the line raises " + str(l);
  else wrong = whole_differs(c, got, want);
  if (wrong.empty()) return Verdict::pass();
  return Verdict::fail(wrong, cpp_declarations(args) + "  for (const Tensor& y : " + cpp_call(c.op, args) +
                                  ") std::cout << str(y) << '\\n';  // the line alone: " + wrong.text() +
                                  "\n");
}

}  // namespace

void add_flat_laws(std::vector<Law>& laws) {
  laws.push_back(
      {151,
       "whole_results_are_flat",
       "shape",
       "A reduction over all dims is that of all elements as one line, and a line among dims of size "
       "1 is a line.",
       {.exact = true},
       false,
       works_on_lines,
       whole_results_are_flat});
}

}  // namespace lamella::verify
