// A law of cells and kernels that vary: what is chosen where determinism is required.
#include <algorithm>
#include <memory>

#include "lamella/dispatch/determinism.h"
#include "lamella/dispatch/table.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {

/// Calls of a cell that varies: it gives what the row's own cell gives, and counts.
thread_local int64_t varied = 0;
void varying_cell(Frame& f, int key) {
  ++varied;
  call_built_in(f, key);
}

/// Likewise a kernel, of the row that has none other.
thread_local KernelFn kernel_of_row = nullptr;
void varying_kernel(const KernelCall& call) {
  ++varied;
  kernel_of_row(call);
}

/// NOTE: [cells that vary] A table in which the row has a cell, or a kernel, for the CPU that says it varies;
/// what stands in for it is the row's own, or nothing. Where determinism is required neither the row nor its
/// forms run it: they give what they gave, or are refused and write nothing. Elsewhere all of them run the
/// cell; which kernel an operator of several runs is its launch's to say.
class WithVaryingCell {
 public:
  WithVaryingCell(const Op& op, bool stands_in, bool is_kernel)
      : table_(OpTable::current().with_each(
            [&](const Op& row) { return changed(row, op, stands_in, is_kernel); })),
        shown_(&table_) {}
  WithVaryingCell(const WithVaryingCell&) = delete;

 private:
  const Op* changed(const Op& row, const Op& op, bool stands_in, bool is_kernel) {
    if (row.base->id != op.id) return nullptr;
    auto made = std::make_unique<Op>(row);
    kernel_of_row = op.kernel.cpu;
    made->columns.push_back({.key = int(Device::CPU),
                             .alternatives = {{.name = "built_in"},
                                              {.name = "varying",
                                               .cell = is_kernel ? nullptr : varying_cell,
                                               .kernel = is_kernel ? varying_kernel : nullptr,
                                               .varies = true,
                                               .instead = stands_in ? "built_in" : ""}},
                             .chosen = 1});
    made->base =
        row.form == OpForm::Functional ? made.get() : rows_[0].get();  // which comes before its forms
    if (!made->library) made->library = std::make_shared<const Kernels>(row.kernel);
    take_kernels(*made);
    fill_cells(*made, {});
    return rows_.emplace_back(std::move(made)).get();
  }
  std::vector<std::unique_ptr<Op>> rows_;
  const OpTable table_;
  const ScopedTable shown_;
};

/// The row or a form of it, with a target that fits `want`.
Tensor run_form(const Case& c, const Op& form, const Tensor& want) {
  Values args = c.args;
  if (form.form == OpForm::Out) args.insert(args.begin(), make_tensor(want.sizes(), want.dtype()));
  if (form.form == OpForm::InPlace) args[0] = plain_copy(std::get<Tensor>(args[0]));
  return call_boxed(form, args)[0];
}

Finding runs_what_varies(const Case& c, const Tensor& want, uint32_t w) {
  const bool has_kernel = c.op.kernel.cpu && !c.op.composite && want.numel() > 0;  // of none it is not called
  const bool is_kernel = has_kernel && w & 4;
  const WithVaryingCell varying(c.op, w & 1, is_kernel);
  for (const OpForm each : {OpForm::Functional, OpForm::InPlace, OpForm::Out}) {
    const Op* const form = form_of(c.op, each);
    if (!form) continue;
    const Tensor* const target = c.args.empty() ? nullptr : std::get_if<Tensor>(&c.args[0]);
    if (form->form == OpForm::InPlace && (!target || !target->defined() || target->dtype() != want.dtype() ||
                                          !std::ranges::equal(target->sizes(), want.sizes())))
      continue;
    varied = 0;
    const Deterministic asked(w & 2 ? Determinism::Any : Determinism::Required);
    Tensor y;
    const Status s = status_of([&] { y = run_form(c, *form, want); });
    if (w & 2) {
      // Which kernel an operator of several runs is its launch's to say.
      if (!s.raised && varied == 0 && !(is_kernel && c.op.launch))
        return form->name + " does not run what was chosen for the row";
    } else if (varied > 0) {
      return form->name + " runs a cell that varies, though determinism is required";
    } else if ((w & 1) == s.raised) {
      return {s.raised ? failure_kind(s) : FailureKind{What::Accepted},
              form->name + ", whose cell varies: " + str(s).text()};
    }
    if (s.raised) continue;
    if (Finding d = differs(plain_copy(y), want); !d.empty()) return form->name + ", whose cell varies: " + d;
  }
  return "";
}

/// Rows of one result that is made on the CPU, in memory of its own, and is the same each time.
bool may_vary(const Op& op) {
  return !op.is_view() && !op.takes_functions && !op.has(kUnspecified) && !op.has(kRandom) &&
         !op.schema.returns_alias && op.schema.result_kind == ResultKind::Tensors &&
         op.schema.n_results == 1 && stays_on_device(op) && !op.column(int(Device::CPU));
}

/// Whether all of a case lies where its cell is.
bool is_here(const Case& c, const Tensors& want) {
  const bool here =
      std::ranges::all_of(c.tensors(), [&](const Case::Slot& s) { return c.at(s).device() == Device::CPU; });
  return here && want[0].defined() && want[0].device() == Device::CPU;
}

Verdict varying_is_refused(Case& c) {
  if (draws_anew(c)) return Verdict::discard();
  const Deterministic on(true);
  const Tensors want = call_boxed(c.op, c.args);
  if (!is_here(c, want)) return Verdict::discard();
  const Finding varies = runs_what_varies(c, plain_copy(want[0]), c.draw.word());
  if (varies.empty()) return Verdict::pass();
  return Verdict::fail(varies, cpp_declarations(c.args) + "  // " + varies.text() + "\n");
}

}  // namespace

void add_varying_laws(std::vector<Law>& laws) {
  laws.push_back({177,
                  "varying_is_refused",
                  "value",
                  "Where determinism is required no cell and no kernel runs that says it varies, in no form: "
                  "what stands in for it does, or the call is refused; elsewhere the chosen one runs.",
                  {.nonfinite = true},
                  false,
                  may_vary,
                  varying_is_refused});
}

}  // namespace lamella::verify
