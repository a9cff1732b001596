// Writes in place under transforms that do not reach everyone who holds the value.
#include "lamella/mutate/museum/plant.h"
#include "lamella/ops/functions/along_dim.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/transforms/machine/interpreter.h"

namespace lamella::verify {

namespace {

ReplacingWrapper* replacing(const Tensor& t, int key) {
  const bool replaces = transform_at(key) == "grad" || transform_at(key) == "jvp";
  return replaces ? static_cast<ReplacingWrapper*>(wrapper_of(t, key)) : nullptr;
}

void view_not_noted(Frame& f, int key) {
  right_cell(f, key);
  if (ReplacingWrapper* w = replacing(f.results[0], key); w && transform_at(key) == "grad") w->view.reset();
}

void tangent_of_base_kept(Frame& f, int key) {
  right_cell(f, key);
  if (ReplacingWrapper* w = replacing(f.results[0], key); w && transform_at(key) == "jvp") w->view.reset();
}

void chain_forgotten(Frame& f, int key) {
  const ReplacingWrapper* from = replacing(f.tensor(0), key);
  const bool chained = from && from->view;
  right_cell(f, key);
  if (ReplacingWrapper* w = replacing(f.results[0], key); w && chained) w->view.reset();
}

void not_written_back(Frame& f, int key) {
  if (transform_at(key) != "vmap") right_cell(f, key);
}

/// The functional call at this level.
Tensor computed(const Frame& f) {
  Tensor result;
  Frame base{f.op->base, f.args, &result};
  call(base);
  return result;
}

void value_without_history(Frame& f, int key) {
  Wrapper* target = wrapper_of(f.tensor(0), key);
  if (!target || transform_at(key) != "grad") return right_cell(f, key);
  const Tensor result = computed(f);
  const Wrapper* w = wrapper_of(result, key);
  const bool same = result.dtype() == f.tensor(0).dtype() && result.numel() == f.tensor(0).numel();
  if (!same) return right_cell(f, key);
  target->value = w ? w->value : result;
}

void lanes_exchanged(Frame& f, int key) {
  Wrapper* target = wrapper_of(f.tensor(0), key);
  right_cell(f, key);
  if (!target || transform_at(key) != "vmap") return;
  const Below below(key);
  copy_(target->value, flip(target->value, {0}));
}

/// The tangent is computed when the value is there already: that of a / b from the new a.
void tangent_after_value(Frame& f, int key) {
  if (transform_at(key) != "jvp") return right_cell(f, key);
  const Tensor once = computed(f);
  const void* args[] = {&once, f.args[1], f.args[2]};
  Tensor twice;
  Frame again{f.op->base, args, &twice};
  call(again);
  const auto value = [&](const Tensor& t) {
    const Wrapper* w = wrapper_of(t, key);
    return w ? Tensor(w->value) : t;
  };
  copy_(f.tensor(0), twice - value(twice) + value(once));
}

}  // namespace

void add_view_exhibits(std::vector<Exhibit>& list) {
  constexpr std::string_view kWrites = "writes_are_functional";
  const Wing wing{list, "view"};
  wing.add("view_not_noted", "pt#31258 pt#14707", "mul", kWrites, at_levels<view_not_noted>,
           "A write through a view does not reach the base, whose gradient ignores it.", OpForm::Functional,
           "select");
  wing.add("chain_forgotten", "pt#36608 pt#49824", "sin", kWrites, at_levels<chain_forgotten>,
           "Of a view of a view it is forgotten that it is one.", OpForm::Functional, "select");
  wing.add("tangent_of_base_kept", "pt#67800", "exp", kWrites, at_levels<tangent_of_base_kept>,
           "A write through a transposed view leaves the base's tangent as it was.", OpForm::Functional,
           "transpose");
  wing.add("not_written_back", "ft#654", "add", kWrites, at_levels<not_written_back>,
           "Under a transform a write is computed and not written back.", OpForm::InPlace);
  wing.add("value_without_history", "mlx#1961 mlx#2899", "mul", kWrites, at_levels<value_without_history>,
           "A write in place replaces the value and not its gradient.", OpForm::InPlace);
  wing.add("lanes_exchanged", "jax#39288", "sub", kWrites, at_levels<lanes_exchanged>,
           "A write under vmap puts values into other lanes.", OpForm::InPlace);
  wing.add("tangent_after_value", "stan#1482", "div", kWrites, at_levels<tangent_after_value>,
           "A compound assignment computes its tangent from the value it has just replaced.",
           OpForm::InPlace);
}

}  // namespace lamella::verify
