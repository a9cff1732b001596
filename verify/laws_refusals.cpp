// Arguments that an operator has to refuse, and the law of refusals.
#include "lamella/ops/functions.h"
#include "lamella/verify/compare.h"
#include "lamella/verify/drawn.h"
#include "lamella/verify/lanes.h"
#include "lamella/verify/laws_more.h"

namespace lamella::verify {

namespace {

Tensor spoiled_tensor(Case& c, const Tensor& t) {
  Dims sizes(t.sizes());
  DType dtype = t.dtype();
  const uint32_t w = c.draw.word();
  const int d = sizes.empty() ? 0 : int(w / 8 % uint32_t(sizes.size()));
  switch (w % 5) {
    case 0:
      if (!sizes.empty()) sizes[d] += 1;
      else sizes.push_back(2);
      break;
    case 1: sizes.push_back(2); break;
    case 2:
      if (!sizes.empty()) sizes.erase(d);
      break;
    case 3:
      if (!sizes.empty()) sizes[d] = 0;
      break;
    default: dtype = DType(w / 8 % uint32_t(DType::F128)); break;
  }
  if (is_integer(t.dtype()) && dtype == t.dtype()) return c.draw.index(sizes, 1);  // indices stay valid
  return c.draw.tensor(sizes, dtype);
}

}  // namespace

void spoil(Case& c) {
  const size_t i = c.draw.below(uint32_t(c.args.size()));
  Value& v = c.args[i];
  const uint32_t w = c.draw.word();
  constexpr int64_t kSteps[] = {1, -1, 3, -3, 7, -7};
  if (Tensor* t = std::get_if<Tensor>(&v)) {
    if (t->defined()) *t = spoiled_tensor(c, *t);
  } else if (Tensors* ts = std::get_if<Tensors>(&v)) {
    if (w % 3 == 0) ts->clear();
    else if (!ts->empty()) ts->back() = spoiled_tensor(c, ts->back());
  } else if (int64_t* n = std::get_if<int64_t>(&v)) {
    *n += kSteps[w % 6];
  } else if (Dims* dims = std::get_if<Dims>(&v)) {
    if (w % 4 == 0 || dims->empty()) dims->push_back(w / 4 % 3);
    else if (w % 4 == 1) dims->erase(0);
    else (*dims)[int(w / 64 % uint32_t(dims->size()))] += kSteps[w / 4 % 6];
  } else if (DType* d = std::get_if<DType>(&v)) {
    *d = DType(w % uint32_t(DType::F128));
  } else if (std::string* s = std::get_if<std::string>(&v)) {
    *s += "?";
  }
}

namespace {

const Op* form_of(const Case& c, const char* ending) { return OpTable::current().find(c.op.name + ending); }

/// The tensors that are still there: a list may have become shorter.
std::vector<Case::Slot> present(const Case& c) {
  std::vector<Case::Slot> out;
  for (const Case::Slot& s : c.tensors()) {
    const Tensors* const list = std::get_if<Tensors>(&c.args[size_t(s.param)]);
    if ((!list || size_t(s.element) < list->size()) && c.at(s).defined()) out.push_back(s);
  }
  return out;
}

/// A way to call the operator with the arguments of the case.
struct Way {
  std::string name;
  std::function<void()> call;
  const Tensor* written = nullptr;  ///< what it would write to
};

/// Plainly; in place and with out= where there are such forms; under a vmap of one argument.
Way draw_way(Case& c, Tensor& target, Batch& lanes) {
  const Op *in_place = form_of(c, "_"), *out = form_of(c, "_out");
  switch (c.draw.below(4)) {
    case 1:
      if (!in_place || !std::holds_alternative<Tensor>(c.args[0])) break;
      target = std::get<Tensor>(c.args[0]);
      return {in_place->name, [&c, in_place] { call_boxed(*in_place, c.args); }, &target};
    case 2: {
      if (!out) break;
      target = zeros({2}, DType::F64);
      Values args = c.args;
      args.insert(args.begin(), target);
      return {out->name, [out, args] { call_boxed(*out, args); }, &target};
    }
    case 3: {
      const std::vector<Case::Slot> slots = present(c);
      if (slots.empty()) break;
      lanes = draw_batch(c, slots, draw_mapped(c.draw, slots.size()), 1 + c.draw.below(3));
      return {"vmap(" + c.op.name + ")", [&c, &lanes, slots] {
                vmap(c.function(slots), {lanes.in_dims, {0}, Randomness::Same, lanes.size})(lanes.xs);
              }};
    }
    default: break;
  }
  return {c.op.name, [&c] { call_boxed(c.op, c.args); }};
}

/// What is wrong with how `way` refuses; sets `refuses`.
std::string wrong_refusal(const Case& c, const Way& way, bool& refuses) {
  const Snapshot before;
  Status s = status_of(way.call);
  refuses = s.raised;
  if (!refuses) return "";
  if (s.code == ErrorCode::Internal) return "raises " + str(s) + "; expected an error of the arguments";
  if (s.text.find(c.op.name) == std::string::npos)
    return "raises " + str(s) + "; expected the operator's name in it";
  s = {};
  const std::string left = before.changed();
  return left.empty() ? "" : "after a refusal: " + left;
}

Verdict bad_input_is_refused(Case& c) {
  for (uint32_t k = 1 + c.draw.below(2); k > 0; --k) spoil(c);
  Tensor target;
  Batch lanes;
  Tensors kept;
  bool refuses = false;
  const Way way = draw_way(c, target, lanes);
  const std::vector<Case::Slot> slots = present(c);
  for (const Case::Slot& s : slots) kept.push_back(strided_copy(c.at(s)));
  const Tensor held = target.defined() ? strided_copy(target) : Tensor();
  wrong_refusal(c, way, refuses);  // what is made once for the process is there now
  if (!refuses) return Verdict::discard();
  std::string wrong = wrong_refusal(c, way, refuses);
  if (!refuses) wrong = "raises the first time only";
  for (size_t k = 0; k < kept.size() && wrong.empty(); ++k) wrong = differs(c.at(slots[k]), kept[k]);
  if (wrong.empty() && held.defined()) wrong = differs(target, held);
  if (wrong.empty()) return Verdict::pass(way.name[0] == 'v' ? 1 : 0);
  return Verdict::fail(way.name + ": " + wrong, cpp_declarations(c.args) + "  " + cpp_call(c.op, c.args) +
                                                    ";  // as " + way.name + "\n");
}

/// Refuses something: clone and its like take whatever a tensor is.
bool is_particular(const Op& op) {
  static AskedOnce asked;
  return asked(op, [&] {
    return some_case(op, {.max_numel = 16}, 256, [](Case& c) {
      for (int n = 0; n < 2; ++n) spoil(c);
      return status_of([&] { call_boxed(c.op, c.args); }).raised;
    });
  });
}

}  // namespace

void add_refusal_laws(std::vector<Law>& laws) {
  laws.push_back(
      {62,
       "bad_input_is_refused",
       "forms",
       "Arguments out of an operator's range raise a typed error that names it, in every form and under "
       "vmap; nothing is written, leaked or left behind.",
       {.max_numel = 16},
       false,
       is_particular,
       bad_input_is_refused});
}

}  // namespace lamella::verify
