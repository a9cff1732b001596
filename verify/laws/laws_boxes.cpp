// A law of types of others: what a type falls back to gives what strided tensors give, in all forms.
#include <algorithm>

#include "lamella/dispatch/table.h"
#include "lamella/dispatch/types.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {

/// NOTE: [boxes] A type that only holds a strided tensor, and runs no operator itself: each call makes
/// tensors of its boxes, computes, and puts what it wrote into a new box. It is registered when the laws are
/// first listed, for good, as types are; a case may not change the table.
struct Box : TensorLayout {
  const Tensor inside;
  Box(int key, Tensor t) : TensorLayout(key), inside(std::move(t)) {}
};

int box_key();

Tensor boxed(const Tensor& t) {
  return make_of_layout(t.sizes(), t.dtype(), t.device(),
                        Ref<TensorLayout>::adopt(new Box(box_key(), plain_copy(t))));
}
/// A copy: what is written to it is not in the box.
Tensor unboxed(const Tensor& t) {
  const Box* const box = layout_at<Box>(t, box_key());
  return box ? plain_copy(box->inside) : t;
}

int box_key() {
  static const int key = [] {
    const ScopedOrigin as_library("");  // whoever asks first
    return add_tensor_type({.name = "verify.box", .to_strided = unboxed, .from_strided = boxed});
  }();
  return key;
}

/// A form of the row with its target, of arguments of which some are boxed: what stands in the target. Cases
/// are dense, as what comes out of a box is: sums go by strides.
struct Call {
  const Op* form;
  Values args;
  Tensors results() const {
    Tensors out = call_boxed(*form, args);
    for (Tensor& y : out) y = y.defined() ? plain_copy(unboxed(y)) : y;
    return out;
  }
};

/// The call with a target of its own, of the type `like`, where the form has one.
Call call_of(const Case& c, const Op& form, const Tensor& like, const std::vector<bool>& in_boxes) {
  Call call{&form, c.args};
  Tensors xs;
  for (size_t k = 0; k < c.tensors().size(); ++k)
    xs.push_back(in_boxes[k] ? boxed(c.at(c.tensors()[k])) : c.at(c.tensors()[k]));
  call.args = c.with(c.tensors(), xs);
  const bool boxes_target = in_boxes.empty() || in_boxes[0];
  if (form.form == OpForm::InPlace && !boxes_target)
    call.args[0] = plain_copy(std::get<Tensor>(call.args[0]));  // a box is a copy already
  if (form.form == OpForm::Out) {
    const Tensor target = zeros(like.sizes(), like.dtype());
    call.args.insert(call.args.begin(), boxes_target ? boxed(target) : target);
  }
  return call;
}

Verdict boxes_are_opened(Case& c) {
  const uint32_t which = c.draw.below(3);
  std::vector<bool> in_boxes = draw_mapped(c.draw, c.tensors().size());
  const Op* const form = which > 0 ? form_of(c.op, which == 1 ? OpForm::InPlace : OpForm::Out) : &c.op;
  Tensor like;
  if (!form) return Verdict::discard();
  Tensors want, got;
  if (which == 2) {
    Tensors plain;
    if (status_of([&] { plain = call_boxed(c.op, c.args); }).raised || !plain[0].defined())
      return Verdict::discard();
    like = plain[0];
  }
  const std::vector<bool> none(in_boxes.size(), false);
  const Status plainly = status_of([&] { want = call_of(c, *form, like, none).results(); });
  const Status opened = status_of([&] { got = call_of(c, *form, like, in_boxes).results(); });
  Finding d;
  if (plainly.raised != opened.raised || (plainly.raised && plainly.code != opened.code))
    d = "in boxes: " + str(opened) + ", strided " + str(plainly).text();
  else if (!plainly.raised) d = differs(got, want);
  if (d.empty()) return Verdict::pass();
  return Verdict::fail(form->name + " of boxes: " + d,
                       cpp_declarations(c.args) + "  // " + form->name + ": " + d.text() + "\n");
}

bool opens(const Op& op) {
  return takes_tensors(op) && !op.takes_functions && !op.has(kRandom) && !op.has(kUnspecified) &&
         op.shape != ShapeClass::Dynamic && !op.has(kNamesDevice);
}

}  // namespace

void add_box_laws(std::vector<Law>& laws) {
  (void)box_key();
  laws.push_back({178,
                  "boxes_are_opened",
                  "dispatch",
                  "An operator and its forms give tensors of a type that only holds strided ones what they "
                  "give those, write into them, and refuse the same arguments.",
                  {.layouts = false, .nonfinite = true},
                  false,
                  opens,
                  boxes_are_opened});
}

}  // namespace lamella::verify
