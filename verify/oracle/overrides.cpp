// Holding cells of composites to the composites.
#include "lamella/verify/oracle/overrides.h"

#include <algorithm>
#include <cstring>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/oracle.h"

namespace lamella::verify {

namespace {

bool has_finite_arguments(const Case& c) {
  for (const Case::Slot& s : c.inexact())
    for (const f128 v : flatten({c.at(s)}))
      if (!(v - v == 0)) return false;
  return true;
}

/// Law 1 or 14 of these results.
Verdict as_defined(const Frame& f, const Tensors& got) {
  const Choices none;
  Case c(*f.op, none, {});
  c.args = own(f);
  c.find_tensors();
  return has_finite_arguments(c) ? within_reference(c, got) : classes_as_reference(c, got);
}

/// The elements of `from`, whatever the strides of both.
void put_bits(const Tensor& from, const Tensor& to) {
  const size_t bytes = size_t(itemsize(to.dtype()));
  std::vector<int64_t> at;
  each_element(from, [&](int64_t offset) { at.push_back(offset); });
  each_element(to, [&, i = size_t{0}](int64_t offset) mutable {
    std::memcpy(static_cast<char*>(to.raw_data()) + size_t(offset) * bytes,
                static_cast<const char*>(from.raw_data()) + size_t(at[i++]) * bytes, bytes);
  });
}

/// The same call by the composite, where nobody sees it: no level, no history, no observer.
Tensors composed(const Frame& f, int key) {
  const ScopedObserver unseen(nullptr);
  const Excluding plain(KeySet::from(kAutogradKey));
  Tensors results(size_t(f.op->schema.n_results)), list;
  const bool is_list = f.op->schema.result_kind == ResultKind::TensorList;
  Frame same{f.op, f.args, results.data(), is_list ? &list : nullptr};
  call_built_in(same, key);
  return is_list ? list : results;
}

bool same_types(const Tensors& a, const Tensors& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return x.defined() == y.defined() &&
           (!x.defined() || (x.dtype() == y.dtype() && std::ranges::equal(x.sizes(), y.sizes())));
  });
}

}  // namespace

void OverridesHeld::beside_composite(Frame& f, int key) {
  f.op->column(key)->now().cell(f, key);
  if (key != int(Device::CPU)) return;
  const bool is_list = f.op->schema.result_kind == ResultKind::TensorList;
  const Tensors mine = is_list ? *f.list : Tensors(f.results, f.results + f.op->schema.n_results);
  const Tensors theirs = composed(f, key);
  if (differs(mine, theirs).empty()) return;
  std::string wrong = same_types(mine, theirs) ? "" : "another type than the composite's";
  if (wrong.empty()) {
    const ScopedObserver unseen(nullptr);
    const Excluding plain(KeySet::from(kAutogradKey));
    const Verdict v = as_defined(f, mine);
    if (v.kind == Verdict::Fail && as_defined(f, theirs).kind != Verdict::Fail) wrong = v.message;
  }
  OverridesHeld* const now = overrides_held();
  if (!now) return;  // taken back on another thread meanwhile
  OverridesHeld& held = *now;
  if (!wrong.empty()) {
    const std::lock_guard lock(held.telling_);
    if (held.first_wrong_.empty())
      held.first_wrong_ = format("{}: \"{}\" gave {}", f.op->name, f.op->column(key)->now().name, wrong);
    return;
  }
  ++held.replaced_;
  for (size_t k = 0; k < mine.size(); ++k)
    if (mine[k].defined()) put_bits(theirs[k], mine[k]);
}

OverridesHeld::OverridesHeld() {
  overrides_held() = this;
  watch_overrides(beside_composite);
}
OverridesHeld::~OverridesHeld() {
  watch_overrides(nullptr);
  overrides_held() = nullptr;
}

std::string OverridesHeld::wrong() const {
  const std::lock_guard lock(telling_);
  return first_wrong_;
}

bool has_overrides() {
  return std::ranges::any_of(OpTable::current().rows(), [](const Op* op) {
    if (!op->composite || op->form != OpForm::Functional || !op->has_cell(int(Device::CPU))) return false;
    return !op->column(int(Device::CPU))->now().asks_itself;
  });
}

}  // namespace lamella::verify
