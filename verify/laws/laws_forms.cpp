// Laws of an operator's forms: meta, in-place, out= and boxed calls agree with the functional one.
#include <cstring>

#include "lamella/dispatch/call.h"
#include "lamella/ops/functions/devices.h"
#include "lamella/ops/functions/strided.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/constraints_call.h"

namespace lamella::verify {

namespace {

/// What a call did: results, or the error it raised.
struct Outcome {
  Tensors results;
  bool raised = false;
  ErrorCode code = ErrorCode::Internal;
  std::string text;
  std::string str() const {
    if (raised) return format("{} error \"{}\"", name(code), text);
    std::string out;
    for (const Tensor& t : results) out += (out.empty() ? "" : ", ") + type_str(t);
    return out;
  }
  /// Of one that should have been another.
  FailureKind kind() const {
    return raised ? FailureKind{What::Raised, std::string(name(code))} : FailureKind{What::Accepted};
  }
};

Outcome attempt(const Op& op, const Values& args) {
  Outcome o;
  try {
    o.results = call_boxed(op, args);
  } catch (const Error& e) {
    o.raised = true;
    o.code = e.code();
    o.text = e.what();
  }
  return o;
}

bool has_in_place(const Op& op) { return form_of(op, OpForm::InPlace) && takes_tensors(op); }
bool has_out(const Op& op) { return form_of(op, OpForm::Out); }
bool has_meta(const Op& op) { return stays_on_device(op) && op.shape != ShapeClass::Dynamic; }
bool every(const Op&) { return true; }

Finding type_differs(const Tensors& got, const Tensors& want, bool strides) {
  if (got.size() != want.size()) return other_number(got, want);
  for (size_t k = 0; k < got.size(); ++k) {
    const Tensor &a = got[k], &b = want[k];
    if (a.dtype() != b.dtype() || !std::ranges::equal(a.sizes(), b.sizes()))
      return {type_kind(a, b), format("result {} is {}, expected {}", k, a, b)};
    if (strides && b.numel() > 0 && !std::ranges::equal(a.strides(), b.strides()))
      return {What::Strides,
              format("result {} has strides {}, expected {}", k, Dims(a.strides()), Dims(b.strides()))};
  }
  return "";
}

bool from_values(ErrorCode code) { return code == ErrorCode::Value || code == ErrorCode::IndexOutOfRange; }

/// Forms too: what they write to is made for the plain result, or is not of its sizes or dtype.
Finding form_of_meta_differs(Case& c, const Outcome& real) {
  const uint32_t w = c.draw.word();
  const Op* const form = form_of(c.op, w & 1 ? OpForm::Out : OpForm::InPlace);
  if (!form || draws_anew(c) || c.tensors().empty() || real.results.size() != 1) return "";
  Values args = c.args;
  if (form->form == OpForm::Out) {
    Dims sizes(real.results[0].sizes());
    DType dtype = real.results[0].dtype();
    if (w & 2) dtype = DType(w / 256 % uint32_t(DType::F128));
    if (w & 4) sizes.push_back(1 + (w >> 31));
    args.insert(args.begin(), make_tensor(sizes, dtype, real.results[0].device()));
  } else {
    if (c.tensors()[0].param != 0) return "";
    Tensor target = strided_copy(c.at(c.tensors()[0]));
    if ((w & 6) == 6) target = make_tensor(target.sizes(), DType(w / 256 % uint32_t(DType::F128)));
    args[0] = target;
  }
  const Values on_meta = to_meta(args);
  const Outcome cpu = attempt(*form, args), meta = attempt(*form, on_meta);
  if (cpu.raised && !meta.raised && from_values(cpu.code)) return "";
  if (cpu.raised != meta.raised || (cpu.raised && cpu.code != meta.code))
    return {meta.kind(), format("{}: meta: {}; cpu: {}", form->name, meta.str(), cpu.str())};
  if (cpu.raised) return "";
  const Finding d = type_differs(meta.results, cpu.results, true);
  return d.empty() ? "" : form->name + ": " + d;
}

Verdict meta_agrees(Case& c) {
  if (c.draw.flag()) spoil(c);
  const Outcome real = attempt(c.op, c.args), meta = attempt(c.op, to_meta(c.args));
  Finding d;
  if (real.raised && !meta.raised && from_values(real.code)) return Verdict::discard();
  if (real.raised != meta.raised || (real.raised && real.code != meta.code))
    d = {meta.kind(), format("meta: {}; cpu: {}", meta.str(), real.str())};
  else if (!real.raised) d = type_differs(meta.results, real.results, c.op.is_view());
  if (!real.raised && d.empty()) {
    d = form_of_meta_differs(c, real);
    if (!d.empty()) return Verdict::fail(d, cpp_declarations(c.args) + "  // " + d.text() + "\n");
  }
  if (d.empty()) return Verdict::pass();
  std::vector<std::string> names = cpp_names(c, c.tensors());
  for (std::string& n : names) n = "meta(" + n + ")";
  return Verdict::fail(d, cpp_declarations(c.args) +
                              "  const auto meta = [](const Tensor& t) {\n    return "
                              "make_view_unchecked(make_tensor({}, t.dtype(), "
                              "Device::Meta), t.sizes(), t.strides(), 0);\n  };\n  std::cout << str(" +
                              cpp_call(c.op, c.args) + "[0]) << '\\n' << str(" +
                              cpp_call(c.op, c.args, names) + "[0]);\n");
}

/// Whether the functional result may go into `target`; else the error the form must raise.
std::optional<ErrorCode> refusal(const Tensor& result, const Tensor& target, bool exact = false) {
  if (!std::ranges::equal(result.sizes(), target.sizes())) return ErrorCode::Shape;
  // By the list of the specification, as can_store is what is asked.
  if (kind_of(result.dtype()) > kind_of(target.dtype())) return ErrorCode::DType;
  if (exact && result.dtype() != target.dtype()) return ErrorCode::DType;
  if (overlaps_itself(target)) return ErrorCode::Overlap;
  return std::nullopt;
}

Finding must_raise(const Outcome& o, ErrorCode code) {
  if (o.raised && o.code == code) return "";
  return {o.kind(), format("got {}, expected {} error", o.str(), name(code))};
}

/// Compares what a form wrote with the functional result, converted where the target has another dtype.
Finding form_differs(const Outcome& o, const Tensor& target, const Tensor& want) {
  if (o.raised) return {o.kind(), "raised " + o.str()};
  if (o.results.size() != 1 || !o.results[0].is_same(target))
    return "the result is not the tensor written to";
  return differs(target, target.dtype() == want.dtype() ? want : to(want, target.dtype()));
}

/// The bytes of a target's memory that are none of its elements.
std::vector<char> around(const Tensor& target) {
  const Storage& storage = *target.impl()->storage;
  const char* const data = static_cast<const char*>(storage.data);
  std::vector<char> bytes(data, data + storage.nbytes);
  const size_t size = size_t(itemsize(target.dtype()));
  const size_t begin = size_t(static_cast<const char*>(target.raw_data()) - data);
  each_element(target, [&](int64_t offset) {
    std::fill_n(bytes.begin() + long(begin + size_t(offset) * size), size, char(0));
  });
  return bytes;
}

Verdict in_place_equals(Case& c) {
  const Op& form = *form_of(c.op, OpForm::InPlace);
  if (draws_anew(c) || c.tensors().empty() || c.tensors()[0].param != 0) return Verdict::discard();
  const Outcome functional = attempt(c.op, c.args);
  if (functional.raised) return Verdict::discard();
  const Tensor want = plain_copy(functional.results[0]);
  const Tensor x = c.at(c.tensors()[0]);
  const std::string head = cpp_declarations(c.args);
  const Tensor target = strided_copy(x);
  const std::vector<char> beside = around(target);
  const uint32_t version = target.impl()->storage->version.load();
  const Outcome o = attempt(form, c.with({c.tensors()[0]}, {target}));
  const std::optional<ErrorCode> refused = refusal(want, x);
  Finding d = refused ? must_raise(o, *refused) : form_differs(o, target, want);
  if (refused && d.empty()) d = differs(target, x);  // nothing may be written
  if (!refused && d.empty() && target.impl()->storage->version.load() == version)
    d = "the version did not change";
  if (d.empty() && around(target) != beside) d = "memory between the elements was written";
  if (d.empty()) return Verdict::pass();
  return Verdict::fail(
      d, head + "  const Tensor want = " + cpp_call(c.op, c.args) + "[0];\n  " + cpp_call(form, c.args) +
             ";\n  std::cout << \"got      \" << str(a0) << \"\\nexpected \" << str(want) << '\\n';\n");
}

Verdict out_equals(Case& c) {
  const Op& form = *form_of(c.op, OpForm::Out);
  if (draws_anew(c)) return Verdict::discard();
  const Outcome functional = attempt(c.op, c.args);
  if (functional.raised) return Verdict::discard();
  const Tensor want = plain_copy(functional.results[0]);
  Dims sizes(want.sizes());
  DType dtype = want.dtype();
  const uint32_t w = c.draw.word();
  if (w % 8 == 5) sizes.push_back(1);
  if (w % 8 == 6 && !sizes.empty()) sizes[0] += 1;
  if (w % 8 == 7) dtype = DType(w / 8 % uint32_t(DType::F128));
  const Tensor drawn = c.draw.tensor(sizes, dtype);
  const Tensor target = want.device() == Device::CPU ? drawn : to_device(drawn, want.device());
  const Tensor before = plain_copy(target);
  Values args = c.args;
  args.insert(args.begin(), target);
  const std::string head = cpp_declarations(args);
  const std::vector<char> beside = around(target);
  const uint32_t version = target.impl()->storage->version.load();
  const Outcome o = attempt(form, args);
  const std::optional<ErrorCode> refused = refusal(want, target, c.op.has(kExactOut));
  // Operators may ask for the result's own dtype.
  const bool may_refuse = dtype != want.dtype() && o.raised && o.code == ErrorCode::DType;
  Finding d = may_refuse ? "" : refused ? must_raise(o, *refused) : form_differs(o, target, want);
  if (o.raised && d.empty()) d = differs(target, before);  // nothing may be written
  if (!o.raised && d.empty() && target.impl()->storage->version.load() == version)
    d = "the version did not change";
  if (d.empty() && around(target) != beside) d = "memory between the elements was written";
  if (d.empty()) return Verdict::pass();
  std::vector<std::string> names;
  for (size_t k = 0; k < c.tensors().size(); ++k) names.push_back("a" + std::to_string(k + 1));
  return Verdict::fail(
      d, head + "  const Tensor want = " + cpp_call(c.op, c.args, names) + "[0];\n  " + cpp_call(form, args) +
             ";\n  std::cout << \"got      \" << str(a0) << \"\\nexpected \" << str(want) << '\\n';\n");
}

/// A call as typed code makes it: a frame on the stack that points at the caller's values.
Tensors unboxed(const Op& op, const Values& args) {
  std::vector<const void*> pointers(args.size(), nullptr);
  std::vector<TensorSpan> lists(args.size());
  std::vector<Ints> ints(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    if (is_none(args[i])) continue;
    if (const Tensors* ts = std::get_if<Tensors>(&args[i])) {
      lists[i] = TensorSpan(ts->data(), ts->size());
      pointers[i] = &lists[i];
    } else if (const Dims* d = std::get_if<Dims>(&args[i])) {
      ints[i] = *d;
      pointers[i] = &ints[i];
    } else {
      std::visit([&](const auto& v) { pointers[i] = &v; }, args[i]);
    }
  }
  Tensors list, results(size_t(op.schema.n_results));
  Frame frame{&op, pointers.data(), results.data(), &list};
  call(frame);
  return op.schema.result_kind == ResultKind::TensorList ? list : results;
}

/// The same call with trailing defaults left out, some arguments by name, numbers in their simplest kind.
Tensors boxed(Case& c) {
  // Defaults as published: a witness that a replaced row does not share.
  const auto& params = lamella::detail::published_table.load()->row(c.op.id).schema.params;
  const uint32_t w = c.draw.word();
  const size_t positional = c.args.empty() ? 0 : w % (c.args.size() + 1);
  Values first;
  std::vector<std::pair<std::string, Value>> named;
  for (size_t i = 0; i < c.args.size(); ++i) {
    Value v = c.args[i];
    const bool is_default = params[i].has_default && str(v) == str(params[i].default_value) &&
                            !std::holds_alternative<Tensor>(v) && !std::holds_alternative<Tensors>(v);
    if (i >= positional && is_default && w >> 16 & 1) continue;
    const Dims* d = std::get_if<Dims>(&v);
    if (w >> 17 & 1 && d && d->size() == 1) v = (*d)[0];
    if (const Scalar* s = std::get_if<Scalar>(&v); s && w >> 18 & 1) {
      if (s->kind() == DType::I64) v = s->to_int();
      else if (s->kind() == DType::F64) v = s->to_double();
    }
    if (i < positional) first.push_back(v);
    else named.emplace_back(params[i].name, v);
  }
  return call(c.op, first, named);
}

Verdict boxed_equals(Case& c) {
  if (draws_anew(c)) return Verdict::discard();
  const Tensors want = unboxed(c.op, c.args), got = boxed(c);
  const Finding d = differs(got, want);
  if (d.empty()) return Verdict::pass();
  return Verdict::fail(d, cpp_declarations(c.args) + "  for (const Tensor& y : " + cpp_call(c.op, c.args) +
                              ") std::cout << str(y) << '\\n';  // the typed call prints another result\n");
}

}  // namespace

void add_form_laws(std::vector<Law>& laws) {
  laws.push_back(
      {6,
       "meta_agrees",
       "forms",
       "On the meta device an operator and its forms give the same shapes and dtypes and refuse the same "
       "arguments.",
       {.tame = true},
       false,
       has_meta,
       meta_agrees});
  laws.push_back({7,
                  "in_place_equals",
                  "forms",
                  "op_(x) leaves in x, bit by bit, what op(x) returns, or raises where that does not fit.",
                  {},
                  false,
                  has_in_place,
                  in_place_equals});
  laws.push_back(
      {8,
       "out_equals",
       "forms",
       "op_out writes, bit by bit, what op returns, or raises where that does not fit and writes nothing.",
       {},
       false,
       has_out,
       out_equals});
  laws.push_back(
      {55,
       "boxed_equals",
       "dispatch",
       "Boxed calls, with defaults left out and arguments by name, equal unboxed calls bit by bit.",
       {},
       false,
       every,
       boxed_equals});
}

}  // namespace lamella::verify
