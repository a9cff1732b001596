// The means by which bugs are planted.
#include "lamella/mutate/museum/plant.h"

#include <algorithm>

#include "lamella/core/visit.h"

namespace lamella::verify {

const Op& right_of(const Op& wrong) {
  const ScopedTable published(nullptr);
  return OpTable::current().row(wrong.id);
}

const Op& right(std::string_view name) {
  const ScopedTable published(nullptr);
  const Op* op = OpTable::current().find(name);
  LAMELLA_CHECK(op, UnknownOperator, "museum: there is no operator \"{}\"", name);
  return *op;
}

void right_rule(BatchCall& b) {
  const Op& op = right_of(*b.frame.op);
  if (op.batch) return op.batch(b);
  op.shape == ShapeClass::Broadcast ? ops::batch_broadcast(b) : ops::batch_front(b);
}

void right_cell(Frame& f, int key) { right_of(*f.op).cells[key](f, key); }

void rule_with_dims(BatchCall& b, int (*mistaken)(const BatchCall&, int param)) {
  std::vector<int> dims(b.dims, b.dims + b.frame.op->schema.params.size());
  for (const uint8_t i : b.frame.op->tensor_params)
    if (!b.frame.none(i) && b.frame.tensor(i).defined()) dims[i] = mistaken(b, i);
  BatchCall wrong{b.frame, dims.data(), b.list_dims, b.size, b.logical, b.lane, b.results, b.list};
  right_rule(wrong);
  std::copy(std::begin(wrong.mapped), std::end(wrong.mapped), b.mapped);
}

namespace {
void set(std::vector<BoundFormula>& rules, const Op& row, const Formula& formula) {
  BoundFormula bound = bind(row, formula);
  for (BoundFormula& f : rules)
    if (f.input == bound.input) f = std::move(bound);
}
}  // namespace

void set_jvp(Op& row, const Formula& formula) { set(row.jvp, row, formula); }
void set_vjp(Op& row, const Formula& formula) { set(row.vjp, row, formula); }

std::string_view transform_at(int key) {
  const Transform* t = dispatch_state().levels[key - kFirstLevelKey].transform;
  return t ? t->name() : std::string_view();
}

Wrapper* wrapper_of(const Tensor& t, int key) {
  if (!t.defined() || !(t.keys() >> key & 1)) return nullptr;
  auto* w = static_cast<Wrapper*>(t.impl()->wrap);
  return w && w->key == key ? w : nullptr;
}

Tensor constant(const Tensor& t, std::string_view transform) {
  if (!t.defined() || !(t.keys() >> kFirstLevelKey) || !t.impl()->wrap) return t;
  const auto* w = static_cast<const Wrapper*>(t.impl()->wrap);
  const std::string_view name = transform_at(w->key);
  const bool hides = transform.empty() ? name == "grad" || name == "jvp" : name == transform;
  return hides ? constant(w->value, transform) : t;
}

bool has_zero(const Tensor& t) {
  if (t.keys() >> kFirstLevelKey) return has_zero(static_cast<const Wrapper*>(t.impl()->wrap)->value);
  bool any = false;
  each_element(t, [&](int64_t offset) {
    visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      any |= static_cast<const T*>(t.raw_data())[offset] == T(0);
    });
  });
  return any;
}

void call_unwrapped(Frame& f, int key) {
  Values args = own(f);
  for (Value& v : args) {
    if (auto* t = std::get_if<Tensor>(&v))
      if (const Wrapper* w = wrapper_of(*t, key)) *t = Tensor(w->value);
  }
  const Below below(key);
  const Tensors results = call_boxed(*f.op, args);
  std::copy(results.begin(), results.end(), f.results);
}

}  // namespace lamella::verify
