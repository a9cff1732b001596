// Wrong calls: what may happen to one call that a derivative formula or a batch rule makes.
#include <algorithm>

#include "lamella/mutate/mutant_changes.h"
#include "lamella/mutate/mutants.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/view.h"

namespace lamella::verify {

namespace {

template <Change C> Tensors results_changed(const Op& op, const Values& args) {
  return changed<C>(call_boxed(op, args));
}

Tensor zeroed(const Tensor& t) { return zeros_like(t); }
/// The first entry of the last dim stands for all.
Tensor first_for_all(const Tensor& t) {
  if (t.rank() == 0 || t.size(-1) < 2) return t;
  return expand(slice(t, -1, 0, 1), t.sizes());
}

const Tensor* first_tensor(const Op& op, const Values& args) {
  for (const uint8_t i : op.tensor_params)
    if (const auto* t = std::get_if<Tensor>(&args[i]); t && t->defined()) return t;
  return nullptr;
}

Tensors dropped(const Op& op, const Values& args) {
  Tensors ys = call_boxed(op, args);
  const Tensor* x = first_tensor(op, args);
  for (Tensor& y : ys)
    if (x && x->dtype() == y.dtype() && std::ranges::equal(x->sizes(), y.sizes())) y = *x;
  return ys;
}

Tensors swapped(const Op& op, const Values& args) {
  Values wrong = args;
  Value* first = nullptr;
  for (const uint8_t i : op.tensor_params) {
    const auto* t = std::get_if<Tensor>(&wrong[i]);
    if (!t || !t->defined()) continue;
    if (first) {
      std::swap(*first, wrong[i]);
      break;
    }
    first = &wrong[i];
  }
  return call_boxed(op, wrong);
}

int rank_of_first(const Op& op, const Values& args) {
  const Tensor* x = first_tensor(op, args);
  for (const uint8_t i : op.tensor_params)
    if (const auto* list = std::get_if<Tensors>(&args[i]); !x && list && !list->empty()) x = &(*list)[0];
  return x ? x->rank() : 0;
}

Tensors dim_off_by_one(const Op& op, const Values& args) {
  Values wrong = args;
  const int rank = rank_of_first(op, args);
  const auto next = [rank](int64_t d) { return rank < 2 ? d : (d < 0 ? d + rank + 1 : d + 1) % rank; };
  for (size_t i = 0; i < wrong.size(); ++i) {  // the first: both dims of a transpose would be none
    if (op.schema.params[i].role != ParamRole::Dim) continue;
    if (auto* d = std::get_if<int64_t>(&wrong[i])) {
      *d = next(*d);
      break;
    }
    auto* ds = std::get_if<Dims>(&wrong[i]);
    if (!ds || ds->size() == 0) continue;
    if (ds->size() == rank) std::rotate(ds->begin(), ds->begin() + 1, ds->end());  // a permutation
    else
      for (int64_t& d : *ds) d = next(d);
    break;
  }
  return call_boxed(op, wrong);
}

Tensors flag_flipped(const Op& op, const Values& args) {
  Values wrong = args;
  for (Value& v : wrong)
    if (auto* b = std::get_if<bool>(&v)) *b = !*b;
  return call_boxed(op, wrong);
}

/// Constants of a formula: scalars, plain integers, and tensors that stand for numbers.
Tensors constant_changed(const Op& op, const Values& args) {
  Values wrong = args;
  for (size_t i = 0; i < wrong.size(); ++i) {
    const Param& p = op.schema.params[i];
    if (auto* s = std::get_if<Scalar>(&wrong[i])) *s = Scalar(s->to<double>() + 1);
    if (auto* x = std::get_if<double>(&wrong[i])) *x += 1;
    if (auto* n = std::get_if<int64_t>(&wrong[i]); n && p.role == ParamRole::Plain) *n += 1;
    if (auto* t = std::get_if<Tensor>(&wrong[i]); t && t->defined() && t->impl()->number) *t = Tensor(*t + 1);
  }
  return call_boxed(op, wrong);
}

/// Another operator of the same arguments: >= for >, maximum for minimum.
const Op* sibling_of(const Op& op) {
  const std::vector<const Op*>& rows = OpTable::current().rows();
  const auto kinds = [](const Op& o) {
    std::vector<ParamKind> out;
    for (const Param& p : o.schema.params) out.push_back(p.kind);
    return out;
  };
  for (size_t k = 1; k < rows.size(); ++k) {
    const Op& other = *rows[(op.id + k) % rows.size()];
    if (other.form != OpForm::Functional || other.has(kTestOnly) || other.shape != op.shape) continue;
    if (other.infer == op.infer && bool(other.composite) == bool(op.composite) && kinds(other) == kinds(op) &&
        other.schema.n_results == op.schema.n_results && other.properties == op.properties)
      return &other;
  }
  return nullptr;
}
Tensors sibling_called(const Op& op, const Values& args) { return call_boxed(*sibling_of(op), args); }

bool has_role(const Op& op, ParamRole role) {
  return std::ranges::any_of(op.schema.params, [&](const Param& p) { return p.role == role; });
}
bool has_kind(const Op& op, ParamKind kind) {
  return std::ranges::any_of(op.schema.params, [&](const Param& p) { return p.kind == kind; });
}

bool nonzero(const Op&, const CallTraits& t) { return t.nonzero; }
bool followed(const Op&, const CallTraits& t) { return t.nonzero && t.followed; }
bool imaginary(const Op&, const CallTraits& t) { return t.imaginary; }
bool like_first(const Op& op, const CallTraits& t) { return t.like_first && op.shape != ShapeClass::Factory; }
bool two_tensors(const Op&, const CallTraits& t) { return t.pair; }
bool spread(const Op&, const CallTraits& t) { return t.spread; }
bool names_dims(const Op& op, const CallTraits& t) { return has_role(op, ParamRole::Dim) && t.rank >= 2; }
bool has_flag(const Op& op, const CallTraits&) { return has_kind(op, ParamKind::Bool); }
bool has_constant(const Op& op, const CallTraits&) {
  return has_kind(op, ParamKind::Scalar) || has_kind(op, ParamKind::Float);
}
bool has_sibling(const Op& op, const CallTraits&) { return sibling_of(op) != nullptr; }

}  // namespace

std::vector<Perturbation> call_perturbations() {
  return {
      {"negated", "The result has the wrong sign.", nonzero, results_changed<negated>, false, true},
      {"percent", "The result is one percent too large.", nonzero, results_changed<one_percent_more>, false,
       true},
      {"zeroed", "The result is zero.", nonzero, results_changed<zeroed>, false, true},
      {"conjugated", "The result is the complex conjugate.", imaginary, results_changed<conjugated>, false,
       true},
      {"first_for_all", "One entry of the last dim stands for all.", spread, results_changed<first_for_all>,
       false, true},
      {"detached", "Outer levels do not see what the result depends on.", followed, results_changed<detached>,
       true, true},
      {"dropped", "The call is left out: its argument stands for the result.", like_first, dropped},
      {"swapped", "The first two tensors are given in the wrong order.", two_tensors, swapped},
      {"dim_off_by_one", "A dim is the next one.", names_dims, dim_off_by_one},
      {"flag_flipped", "A bool argument is the other one.", has_flag, flag_flipped},
      {"constant_changed", "A number in the call is one too large.", has_constant, constant_changed},
      {"sibling_called", "Another operator with the same arguments is called.", has_sibling, sibling_called},
  };
}

}  // namespace lamella::verify
