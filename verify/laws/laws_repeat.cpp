// Laws of plain calls: they repeat, elements stand for themselves, schemas read back.
#include <algorithm>
#include <cstring>

#include "lamella/dispatch/determinism.h"
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

/// Where that is required: what a plug-in brought may vary elsewhere, and is refused if nothing stands in.
Verdict calls_repeat(Case& c) {
  if (draws_anew(c) || only_varies(c.op, int(Device::CPU))) return Verdict::discard();
  const Deterministic on(true);
  Tensors want = call_boxed(c.op, c.args);
  for (Tensor& y : want) y = plain_copy(y);
  leave_traces(want);
  const Finding d = differs(call_boxed(c.op, c.args), want);
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
                  "A call made again gives the same bits, whatever lies in memory.",
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
