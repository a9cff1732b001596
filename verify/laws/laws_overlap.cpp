// The law of writes whose operands share memory: under lanes and levels they mean what plain calls mean.
#include <algorithm>
#include <map>
#include <set>

#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/vmap.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/census.h"
#include "lamella/verify/programs/shared_write.h"

namespace lamella::verify {

namespace {

/// The plain program: the loop over the lanes, one plain call each.
struct Loop {
  Status refused = {};
  bool other = false;  ///< raised something else
  Tensor after;
  Loop(const SharedWrite& w, bool backwards) : after(plain_copy(w.start)) {
    const Tensors whole = w.views_of(after);
    const int64_t n = w.lanes();
    for (int64_t k = 0; k < n; ++k) {
      const Status s = status_of([&] { w.call(w.lane_of(whole, backwards ? n - 1 - k : k)); });
      if (s.raised && s.code == ErrorCode::Overlap) refused = s;
      else other |= s.raised;
    }
  }
};

/// What the engine has to give.
Tensor wanted(const SharedWrite& w, const Loop& loop) {
  return w.engine == Engine::Lanes ? stacked({loop.after, loop.after}, 0) : loop.after;
}

/// Whether a lane reads or writes an element that another one writes.
bool lanes_meet(const SharedWrite& w) {
  const Tensors whole = w.views_of(w.start);
  std::map<int64_t, std::set<int64_t>> writers, users;
  for (int64_t lane = 0; lane < w.lanes(); ++lane) {
    const Tensors ts = w.lane_of(whole, lane);
    for (size_t k = 0; k < ts.size(); ++k)
      each_element(ts[k], [&](int64_t at) {
        if (w.parts[k].apart) return;
        if (k == 0) writers[ts[k].impl()->offset + at].insert(lane);
        users[ts[k].impl()->offset + at].insert(lane);
      });
  }
  return std::ranges::any_of(writers, [&](const auto& at) { return users[at.first].size() > 1; });
}

/// NOTE: [writes that levels refuse] Beyond overlap a write may raise `level`: into a target without the
/// lanes that an operand has, and, unless NoGrad makes it a constant, of an argument of jvp or vjp into
/// memory that is older than those. Into such an argument it must.
bool has_no_place(const SharedWrite& w) {
  return std::ranges::any_of(w.parts, [&](const Part& p) {
    return p.mapped & ~w.parts[0].mapped || (!w.no_grad && w.is_argument(p)) || w.is_argument(w.parts[0]);
  });
}

/// Empty when the engine did what the loops say.
Finding unlike_loop(const SharedWrite& w, Counts& counts) {
  const Loop forth(w, false), back(w, true);
  const bool matters = !differs(forth.after, back.after).empty();
  const bool meet = lanes_meet(w);
  // As one tensor with its lanes, a plain call would refuse the target: by strides alone, its elements may
  // meet.
  const bool unclear = overlaps_itself(w.views_of(w.start)[0]);
  const Tensor memory = plain_copy(w.start);
  Tensor got;
  const Status s = status_of([&] { got = w.run(memory); });
  const bool must = forth.refused.raised || matters;
  if (!s.raised) {
    if (must || w.is_argument(w.parts[0]))
      return {What::Accepted,
              "raises nothing; " + (forth.refused.raised ? "a lane raises " + str(forth.refused).text()
                                    : matters            ? "the order of lanes matters"
                                                         : "the target is an argument")};
    ++counts["written"];
    return differs(got, wanted(w, forth));
  }
  const bool level = s.code == ErrorCode::Level && !forth.refused.raised && has_no_place(w);
  if (!level && (s.code != ErrorCode::Overlap || !(must || meet || unclear)))
    return "raises " + str(s) + (forth.refused.raised ? "; a lane raises " + str(forth.refused).text() : "");
  ++counts[level                  ? "no place"
           : forth.refused.raised ? "refused by a lane"
           : matters              ? "order of lanes matters"
           : meet                 ? "lanes meet"
                                  : "strides unclear"];
  return differs(memory, w.start);
}

/// Two windows of the same lanes, one of them moved on by one element or by all of its own: a write to one
/// that reads the other is refused exactly where they meet, at whichever dim the lanes lie, and whether the
/// windows are made inside of the lanes or outside.
Finding windows_unlike(const Case& c, const Op& in_place, DType dtype) {
  for (const uint32_t w : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
    const bool meet = w & 1, inside = w & 2;
    const int dim = w & 4 ? 1 : 0;
    const Tensor memory = ones(dim ? Dims{6, 2} : Dims{2, 6}, dtype);
    const auto windows = [meet](const Tensor& x, int along) {
      return Tensors{slice(x, along, 0, 3), slice(x, along, meet ? 1 : 3, meet ? 4 : 6)};
    };
    const Function write = [&](const Tensors& ts) {
      Values args = c.args;
      for (size_t k = 0; k < c.tensors().size(); ++k) entry(args, c.tensors()[k]) = ts[k == 0 ? 0 : 1];
      call_boxed(in_place, args);
      return Tensors{};
    };
    const Function made_inside = [&](const Tensors& xs) { return write(windows(xs[0], 0)); };
    const Status s = status_of([&] {
      vmap(inside ? made_inside : write, {{dim}, {0}})(inside ? Tensors{memory} : windows(memory, 1 - dim));
    });
    if (s.raised != meet || (s.raised && s.code != ErrorCode::Overlap))
      return format("two windows of {} that {}, made {} of lanes at dim {}: ", dtype,
                    meet ? "meet" : "do not meet", inside ? "inside" : "outside", dim) +
             str(s);
  }
  return "";
}

/// Likewise of complex numbers, whose steps are counted in parts, where the operator takes them.
Finding any_windows_unlike(const Case& c, const Op& in_place) {
  const DType real = c.at(c.tensors()[0]).dtype(), both = to_complex(real);
  if (Finding d = windows_unlike(c, in_place, real); !d.empty()) return d;
  Values args = c.args;
  for (const Case::Slot& s : c.tensors()) entry(args, s) = ones({3}, both);
  return status_of([&] { call_boxed(c.op, args); }).raised ? "" : windows_unlike(c, in_place, both);
}

Verdict overlaps_are_refused_alike(Case& c) {
  const SharedWrite w(c);
  const Loop plain(w, false);
  if (plain.other) return Verdict::discard();
  const int depth = w.depth() + (w.engine != Engine::Plain && w.engine != Engine::Base);
  Finding wrong = unlike_loop(w, counts_of_case());
  const Op& in_place = *form_of(c.op, OpForm::InPlace);
  if (wrong.empty() && c.draw.one_in(16) && c.tensors().size() > 1) wrong = any_windows_unlike(c, in_place);
  return wrong.empty() ? Verdict::pass(depth) : Verdict::fail(wrong, w.cpp(wanted(w, plain)), depth);
}

bool writes_pointwise(const Op& op) {
  return op.shape == ShapeClass::Broadcast && takes_tensors(op) && !op.has(kRandom) &&
         form_of(op, OpForm::InPlace) && form_of(op, OpForm::Out) &&
         op.schema.params[0].kind == ParamKind::Tensor;
}

}  // namespace

void add_overlap_laws(std::vector<Law>& laws) {
  laws.push_back(
      {94,
       "overlaps_are_refused_alike",
       "forms",
       "A write whose operands share memory means under lanes and levels what plain calls mean, in any order "
       "of lanes, or raises as they do.",
       {.dtypes = mask(DType::F64), .layouts = false, .tame = true, .max_numel = 4, .mixed = false},
       false,
       writes_pointwise,
       overlaps_are_refused_alike});
}

}  // namespace lamella::verify
