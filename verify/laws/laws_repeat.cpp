// Laws of plain calls: they repeat, elements stand for themselves, schemas read back.
#include <algorithm>
#include <cstring>
#include <memory>

#include "lamella/dispatch/determinism.h"
#include "lamella/dispatch/table.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {

/// Leaves its bytes in the memory the next result is made in.
void leave_traces(const Tensors& like) {
  for (const Tensor& t : like)
    if (t.defined())
      std::memset(make_tensor(t.sizes(), t.dtype()).raw_data(), 0x7f,
                  size_t(t.numel() * itemsize(t.dtype())));
}

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
  for (const char* ending : {"", "_", "_out"}) {
    const Op* const form = OpTable::current().find(c.op.name + ending);
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
      if (!s.raised && varied == 0 && !is_kernel)
        return form->name + " does not run the cell that was chosen for the row";
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
bool may_vary(const Case& c, const Tensors& want) {
  const Op& op = c.op;
  if (op.is_view() || op.takes_functions || op.has(kUnspecified) || op.has(kRandom) ||
      op.schema.returns_alias)
    return false;
  const bool here =
      std::ranges::all_of(c.tensors(), [&](const Case::Slot& s) { return c.at(s).device() == Device::CPU; });
  return here && stays_on_device(op) && want.size() == 1 && want[0].defined() &&
         op.schema.result_kind == ResultKind::Tensors && want[0].device() == Device::CPU &&
         !op.column(int(Device::CPU));
}

/// Where that is required: what a plug-in brought may vary elsewhere, and is refused if nothing stands in.
Verdict calls_repeat(Case& c) {
  if (draws_anew(c) || only_varies(c.op, int(Device::CPU))) return Verdict::discard();
  const Deterministic on(true);
  Tensors want = call_boxed(c.op, c.args);
  for (Tensor& y : want) y = plain_copy(y);
  leave_traces(want);
  const Finding d = differs(call_boxed(c.op, c.args), want);
  const uint32_t w = c.draw.word();
  if (d.empty() && w % 16 == 15 && may_vary(c, want))
    if (const Finding varies = runs_what_varies(c, want[0], w >> 4); !varies.empty())
      return Verdict::fail(varies, cpp_declarations(c.args) + "  // " + varies.text() + "\n");
  if (d.empty()) return Verdict::pass();
  const std::string call = cpp_call(c.op, c.args);
  return Verdict::fail("the second call: " + d, cpp_got_want(c, "", call, call));
}

/// Other elements in the same memory: those of a drawn tensor; integers and bool, which may be indices, in
/// the opposite order.
void rewrite(Draw& d, const Tensor& t) {
  const size_t bytes = size_t(itemsize(t.dtype()));
  const Tensor others = plain_copy(is_inexact(t.dtype()) ? d.tensor(Dims(t.sizes()), t.dtype()) : t);
  const int64_t step = is_inexact(t.dtype()) ? 1 : -1;
  int64_t from = step > 0 ? 0 : t.numel() - 1;
  each_element(t, [&](int64_t offset) {
    std::memcpy(static_cast<char*>(t.raw_data()) + size_t(offset) * bytes,
                static_cast<const char*>(others.raw_data()) + size_t(from) * bytes, bytes);
    from += step;
  });
}

/// What a call remembers of another one, by address, size or version, is not what lies there now.
Verdict results_follow_elements(Case& c) {
  if (draws_anew(c)) return Verdict::discard();
  (void)status_of([&] { (void)call_boxed(c.op, c.args); });
  for (const Case::Slot& s : c.tensors()) rewrite(c.draw, c.at(s));
  Tensors got, want, copies;
  const Status again = status_of([&] {
    for (const Tensor& y : call_boxed(c.op, c.args)) got.push_back(y.defined() ? plain_copy(y) : y);
  });
  for (const Case::Slot& s : c.tensors()) copies.push_back(strided_copy(c.at(s)));
  const Status fresh = status_of([&] {
    for (const Tensor& y : call_boxed(c.op, c.with(c.tensors(), copies)))
      want.push_back(y.defined() ? plain_copy(y) : y);
  });
  Finding wrong;
  if (again.raised != fresh.raised || (again.raised && again.code != fresh.code))
    wrong = "after a write: " + str(again) + ", of copies " + str(fresh).text();
  else if (!again.raised) wrong = differs(got, want);
  if (wrong.empty()) return Verdict::pass();
  return Verdict::fail(
      "other elements in the same memory: " + wrong,
      cpp_got_want(c, cpp_tensors("w", want), cpp_call(c.op, c.args), cpp_names("w", want.size())));
}

Tensor element_of(const Tensor& t, const Dims& at) {
  const Ints sizes = t.sizes(), strides = t.strides();
  const int64_t* const place = at.data() + (size_t(at.size()) - sizes.size());
  int64_t offset = t.impl()->offset;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) offset += place[d] * strides[d];
  const Dims ones(t.rank(), 1);
  return make_view_unchecked(t, ones, ones, offset);  // their contiguous strides
}

Verdict elements_alone(Case& c) {
  const Tensor y = call_boxed(c.op, c.args)[0];
  if (y.numel() == 0) return Verdict::discard();
  Dims at(y.rank());
  for (int d = 0; d < y.rank(); ++d) at[d] = int64_t(c.draw.below(uint32_t(y.size(d))));
  Tensors elements;
  elements.reserve(c.tensors().size());
  for (const Case::Slot& s : c.tensors()) elements.push_back(element_of(c.at(s), at));
  const Values args = c.with(c.tensors(), elements);
  const Tensor got = call_boxed(c.op, args)[0], want = element_of(y, at);
  const Finding d = differs(got, want);
  if (d.empty()) return Verdict::pass();
  return Verdict::fail(format("element {} alone: ", at) + d,
                       cpp_declarations(c.args) + cpp_tensor("w", plain_copy(got)) + "  std::cout << str(" +
                           cpp_call(c.op, c.args) + "[0]) << \"\\nalone \" << str(w) << '\\n';\n");
}

/// The row itself: its schema reads back, and every question about it has an answer.
Verdict schema_reads_back(Case& c) {
  const Op& op = c.op;
  const std::string text = str(op.schema);
  Finding d;
  if (const std::string again = str(parse_schema(text)); again != text)
    d = "got \"" + again + "\", expected \"" + text + "\"";
  for (int key = 0; key < kKeyCount && d.empty(); ++key)
    if (!op.cells[key]) d = format("the cell of key {} is empty", key);
  const bool differentiable = takes_tensors(op) && !op.composite;
  if (d.empty() && differentiable && op.jvp.empty() && op.no_jvp.empty()) d = "no jvp, and no reason why";
  if (d.empty() && differentiable && op.vjp.empty() && op.no_vjp.empty()) d = "no vjp, and no reason why";
  if (d.empty()) return Verdict::pass();
  return Verdict::fail(d, "  std::cout << \"" + op.name + ": " + text + "\\n\";\n");
}

bool pointwise(const Op& op) {
  return op.shape == ShapeClass::Broadcast && takes_tensors(op) && !op.has(kRandom) && !op.has(kUnspecified);
}
bool every(const Op&) { return true; }
bool has_elements(const Op& op) {
  return takes_tensors(op) && !op.has(kUnspecified) && !op.takes_functions && !op.is_view();
}

}  // namespace

void add_repeat_laws(std::vector<Law>& laws) {
  laws.push_back({10,
                  "calls_repeat",
                  "value",
                  "A call made again gives the same bits, whatever lies in memory; where determinism is "
                  "required no cell runs that says it varies, in no form.",
                  {.nonfinite = true},
                  false,
                  every,
                  calls_repeat});
  laws.push_back(
      {155,
       "results_follow_elements",
       "value",
       "When other elements are written into an argument's memory, the next call gives what it gives of "
       "copies.",
       {},
       false,
       has_elements,
       results_follow_elements});
  laws.push_back({16,
                  "elements_alone",
                  "layout",
                  "An element of a pointwise result is that of the elements it is computed from, bit by bit.",
                  {.mixed = false, .nonfinite = true},
                  false,
                  pointwise,
                  elements_alone});
  laws.push_back(
      {64,
       "schema_reads_back",
       "dispatch",
       "A schema printed and parsed is the same; every cell is filled, every missing rule explained.",
       {.tame = true},
       false,
       every,
       schema_reads_back});
}

}  // namespace lamella::verify
