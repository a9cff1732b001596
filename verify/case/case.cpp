// Cases: decoding, replacing tensors, functions of some of the arguments, and cases as C++ text.
#include "lamella/verify/case/case.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lamella/core/visit.h"
#include "lamella/dispatch/call.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/devices.h"
#include "lamella/ops/functions/index.h"
#include "lamella/ops/functions/strided.h"
#include "lamella/ops/functions/view.h"
#include "lamella/verify/case/coverage.h"
#include "lamella/verify/case/strata.h"

namespace lamella::verify {

Case::Case(const Op& o, const Choices& choices, const DrawOptions& options, const Tail& tail)
    : op(o), own_(choices, options, tail), draw(own_), args(canonical(o, o.samples(own_))) {
  own_.end_arguments();
  find_tensors();
  note_dtype();
}

namespace {
Draw& begun(Draw& draw) { return draw.begin_arguments(), draw; }
}  // namespace

Case::Case(const Op& o, Draw& from)
    : op(o), own_({}), draw(begun(from)), args(canonical(o, o.samples(draw))) {
  draw.end_arguments();
  find_tensors();
  note_dtype();
}

Case::Case(Case&& from) noexcept
    : op(from.op),
      own_(std::move(from.own_)),
      draw(&from.draw == &from.own_ ? own_ : from.draw),
      args(std::move(from.args)),
      partners(std::move(from.partners)),
      given_partners(std::move(from.given_partners)),
      inexact_(std::move(from.inexact_)),
      tensors_(std::move(from.tensors_)) {}

void Case::find_tensors() {
  tensors_.clear(), inexact_.clear();
  tensors_.reserve(op.tensor_params.size()), inexact_.reserve(op.tensor_params.size());
  const auto found = [this](const Slot& slot, const Tensor& t) {
    if (!t.defined()) return;
    tensors_.push_back(slot);
    if (is_inexact(t.dtype())) inexact_.push_back(slot);
  };
  for (const uint8_t p : op.tensor_params) {
    if (const Tensor* one = std::get_if<Tensor>(&args[p])) found({p, 0}, *one);
    else if (const Tensors* list = std::get_if<Tensors>(&args[p]))
      for (size_t k = 0; k < list->size(); ++k) found({p, int(k)}, (*list)[k]);
  }
}

/// Conditions and indices stand beside what the case is about: the first inexact tensor names its dtype, else
/// the first that is not bool.
void Case::note_dtype() const {
  if (tensors_.empty()) return;
  const auto telling = std::find_if(tensors_.begin(), tensors_.end(),
                                    [&](const Slot& s) { return at(s).dtype() != DType::Bool; });
  const Slot& chosen = !inexact_.empty() ? inexact_[0] : telling != tensors_.end() ? *telling : tensors_[0];
  stratum_of_case().set_dtype(at(chosen).dtype());
}

Tensor& entry(Values& args, const Case::Slot& slot) {
  Value& v = args[size_t(slot.param)];
  if (Tensors* list = std::get_if<Tensors>(&v)) return (*list)[size_t(slot.element)];
  return std::get<Tensor>(v);
}

namespace {

/// See NOTE: [input spaces]: an operator on symmetric matrices is checked as a function of all matrices by
/// way of their symmetric part, so that differences, rules and stacks speak of the same function.
struct Applied {
  const Op* op;
  Values args;
  std::vector<Case::Slot> slots;
  bool smooth;

  Tensor into_input_space(const Case::Slot& slot, const Tensor& x) const {
    if (!op->has(kSymmetricInput) || slot.param != 0 || x.rank() < 2 || !is_inexact(x.dtype())) return x;
    if (x.size(-1) != x.size(-2)) return x;  // refused by the operator itself
    return (x + conj(transpose(x, -1, -2))) * 0.5;
  }

  Tensors operator()(const Tensors& xs) const {
    Values full = args;
    for (size_t k = 0; k < slots.size(); ++k) entry(full, slots[k]) = into_input_space(slots[k], xs[k]);
    Tensors ys = call_boxed(*op, full);
    if (smooth) std::erase_if(ys, [](const Tensor& y) { return !is_inexact(y.dtype()); });
    return ys;
  }
};
}  // namespace

const Tensor& Case::at(const Slot& slot) const { return entry(const_cast<Values&>(args), slot); }

Function Case::function(std::vector<Slot> slots) const { return Applied{&op, args, std::move(slots), false}; }
Function Case::smooth_function(std::vector<Slot> slots) const {
  return Applied{&op, args, std::move(slots), true};
}

Tensors Case::values(const std::vector<Slot>& slots) const {
  Tensors out;
  out.reserve(slots.size());
  for (const Slot& s : slots) out.push_back(at(s));
  return out;
}

Values Case::with(const std::vector<Slot>& slots, const Tensors& xs) const {
  Values full = args;
  for (size_t k = 0; k < slots.size(); ++k) entry(full, slots[k]) = xs[k];
  return full;
}

Tensor Case::direction(const Tensor& like) {
  const Tensor t = draw.tensor(Dims(like.sizes()), like.dtype());
  return like.device() == Device::CPU ? t : to_device(t, like.device());
}

const Op& Case::partner(const std::vector<const Op*>& among) {
  const uint32_t at = draw.place(uint32_t(among.size()));
  const bool given = partners.size() < given_partners.size();
  partners.push_back(draw.partner_named(given ? given_partners[partners.size()] : among[at]->name));
  if (partners.back() == among[at]->name) return *among[at];
  const auto known = std::ranges::find(among, partners.back(), [](const Op* o) { return o->name; });
  LAMELLA_CHECK(known != among.end(), Value, "the case needs operator \"{}\", which is not in the table",
                partners.back());
  return **known;
}

std::vector<Case::Slot> Case::subset(const std::vector<Slot>& slots) {
  const uint32_t w = draw.word();
  std::vector<Slot> out;
  for (size_t k = 0; k < slots.size(); ++k)
    if (w == 0 || w >> (k % 32) & 1) out.push_back(slots[k]);
  if (out.empty() && !slots.empty()) out.push_back(slots[w / 32 % slots.size()]);
  observe_traced(slots, out);
  return out;
}

Tensor to_meta(const Tensor& t) {
  return make_view_unchecked(make_tensor({}, t.dtype(), Device::Meta), t.sizes(), t.strides(),
                             t.impl()->offset);
}

Values to_meta(const Values& args) {
  Values out = args;
  for (Value& v : out) {
    if (Tensor* t = std::get_if<Tensor>(&v); t && t->defined()) *t = to_meta(*t);
    if (Tensors* ts = std::get_if<Tensors>(&v))
      for (Tensor& t : *ts) t = to_meta(t);
    if (Device* d = std::get_if<Device>(&v)) *d = Device::Meta;
  }
  return out;
}

Tensor plain_copy(const Tensor& t) {
  Tensor out = make_tensor(t.sizes(), t.dtype(), t.device());
  const size_t bytes = size_t(itemsize(t.dtype()));
  char* to = static_cast<char*>(out.raw_data());
  const char* from = static_cast<const char*>(t.raw_data());
  if (t.is_contiguous()) {
    std::memcpy(to, from, size_t(t.numel()) * bytes);
    return out;
  }
  const auto gather = [&]<size_t kBytes>(std::integral_constant<size_t, kBytes>) {
    each_element(t, [&](int64_t offset) {
      std::memcpy(to, from + offset * int64_t(kBytes), kBytes);
      to += kBytes;
    });
  };
  switch (bytes) {
    case 1: gather(std::integral_constant<size_t, 1>()); break;
    case 2: gather(std::integral_constant<size_t, 2>()); break;
    case 4: gather(std::integral_constant<size_t, 4>()); break;
    case 8: gather(std::integral_constant<size_t, 8>()); break;
    case 16: gather(std::integral_constant<size_t, 16>()); break;
    default: gather(std::integral_constant<size_t, 32>()); break;
  }
  return out;
}

namespace {
/// Elements from the first to one past the last in memory.
int64_t extent(const Tensor& t) {
  if (t.numel() == 0) return 0;
  int64_t last = 0;
  for (int d = 0; d < t.rank(); ++d) last += (t.size(d) - 1) * t.stride(d);
  return last + 1;
}
}  // namespace

Tensor strided_copy(const Tensor& t) {
  const int64_t n = extent(t);
  const Tensor buffer = make_tensor(Dims{n}, t.dtype(), t.device());
  std::memcpy(buffer.raw_data(), t.raw_data(), size_t(n * itemsize(t.dtype())));
  return make_view_unchecked(buffer, t.sizes(), t.strides(), 0);
}

namespace {

std::string number(double v) {
  if (std::isnan(v)) return "NAN";
  if (std::isinf(v)) return v < 0 ? "-INFINITY" : "INFINITY";
  if (v == std::trunc(v) && std::fabs(v) < 1e6)
    return std::signbit(v) && v == 0 ? "-0.0" : format("{}", int64_t(v));
  char text[40];
  std::snprintf(text, sizeof text, "%a", v);
  return text;
}

std::string ints(Ints v) {
  std::string out = "{";
  for (size_t i = 0; i < v.size(); ++i) out += (i ? ", " : "") + std::to_string(v[i]);
  return out + "}";
}

std::string cpp_name(Device d) {
  static constexpr std::string_view kNames[] = {"CPU", "Reference", "CUDA", "Meta", "User0", "User1"};
  return format("Device::{}", kNames[int(d)]);
}
std::string cpp_name(DType d) {
  static constexpr const char* kNames[] = {"Bool", "U8",   "U16", "U32", "U64", "I8",   "I16",  "I32", "I64",
                                           "F16",  "BF16", "F32", "F64", "C64", "C128", "F128", "C256"};
  return std::string("DType::") + kNames[int(d)];
}

/// "tensor_of({3}, {1, 2, 3}, DType::F64)": `n` elements at `data`, as a tensor of `sizes`; `part` 1 takes
/// imaginary parts.
std::string literal(const void* data, int64_t n, Ints sizes, DType d, int part = 0) {
  std::string values;
  visit_dtype(d, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    const T* const p = static_cast<const T*>(data);
    for (int64_t i = 0; i < n; ++i) {
      double v;
      if constexpr (is_complex_type<T>) v = double(part ? p[i].imag() : p[i].real());
      else v = double(p[i]);
      values += (i ? ", " : "") + number(v);
    }
  });
  return format("tensor_of({}, {{}}, {})", ints(sizes), values, cpp_name(to_real(d)));
}

bool exceeds_double(const void* data, int64_t n, DType d) {
  if (d != DType::I64 && d != DType::U64) return false;
  const auto* p = static_cast<const uint64_t*>(data);
  constexpr uint64_t kLimit = uint64_t{1} << 53;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t magnitude = d == DType::I64 && p[i] >> 63 ? 0 - p[i] : p[i];
    if (magnitude > kLimit) return true;
  }
  return false;
}

std::string dense(const std::string& name, const void* data, int64_t n, Ints sizes, DType d) {
  if (is_complex(d))
    return format("  Tensor {} = complex({},\n      {});\n", name, literal(data, n, sizes, d),
                  literal(data, n, sizes, d, 1));
  if (!exceeds_double(data, n, d)) return format("  Tensor {} = {};\n", name, literal(data, n, sizes, d));
  std::string words;
  for (int64_t i = 0; i < n; ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "%s0x%llxu", i ? ", " : "",
                  static_cast<unsigned long long>(static_cast<const uint64_t*>(data)[i]));
    words += text;
  }
  return format("  Tensor {} = make_tensor(Dims({}), {});\n", name, ints(sizes), cpp_name(d)) +
         "  {\n    const uint64_t words[] = {" + words + "};\n    std::memcpy(" + name +
         ".raw_data(), words, sizeof words);\n  }\n";
}

std::string value_text(const Value& v, size_t& next, const std::vector<std::string>& names) {
  const auto tensor = [&] {
    const size_t k = next++;
    return k < names.size() ? names[k] : format("a{}", k);
  };
  return std::visit(
      [&]<class T>(const T& x) -> std::string {
        if constexpr (std::is_same_v<T, std::monostate>) return "{}";
        else if constexpr (std::is_same_v<T, Tensor>) return x.defined() ? tensor() : "Tensor()";
        else if constexpr (std::is_same_v<T, Tensors>) {
          std::string out = "Tensors{";
          for (size_t i = 0; i < x.size(); ++i) out += (i ? ", " : "") + tensor();
          return out + "}";
        } else if constexpr (std::is_same_v<T, int64_t>) return format("int64_t{{}}", x);
        else if constexpr (std::is_same_v<T, Dims>) return "Dims" + ints(x);
        else if constexpr (std::is_same_v<T, double>) return format("double({})", number(x));
        else if constexpr (std::is_same_v<T, bool>) return x ? "true" : "false";
        else if constexpr (std::is_same_v<T, Scalar>) {
          if (x.kind() == DType::C128)
            return format("Scalar(c128({}, {}))", number(x.to_complex().real()),
                          number(x.to_complex().imag()));
          if (x.kind() == DType::F64) return format("Scalar(double({}))", number(x.to_double()));
          if (x.kind() == DType::U64) return format("Scalar(uint64_t({}u))", x.str());
          return x.kind() == DType::Bool ? format("Scalar({})", x.to_int() != 0)
                                         : format("Scalar({})", x.to_int());
        } else if constexpr (std::is_same_v<T, DType>) return cpp_name(x);
        else if constexpr (std::is_same_v<T, Device>) return cpp_name(x);
        else if constexpr (std::is_same_v<T, FunctionRef>) return "f";  // no text says what it does
        else return "std::string(\"" + x + "\")";
      },
      v);
}

}  // namespace

std::string cpp_tensor(const std::string& name, const Tensor& t) {
  if (t.is_contiguous()) return dense(name, t.raw_data(), t.numel(), t.sizes(), t.dtype());
  const int64_t n = extent(t);
  const int64_t flat[] = {n};
  return dense(name + "_memory", t.raw_data(), n, flat, t.dtype()) +
         format("  Tensor {} = make_view({}_memory, Dims({}), Dims({}), 0);\n", name, name, ints(t.sizes()),
                ints(t.strides()));
}

std::string cpp_declarations(const Values& args) {
  std::string out;
  int next = 0;
  const auto declare = [&](const Tensor& t) {
    if (t.defined()) out += cpp_tensor(format("a{}", next++), t);
  };
  for (const Value& v : args) {
    if (const Tensor* t = std::get_if<Tensor>(&v)) declare(*t);
    if (const Tensors* list = std::get_if<Tensors>(&v))
      for (const Tensor& t : *list) declare(t);
  }
  return out;
}

std::string cpp_call(const Op& op, const Values& args, const std::vector<std::string>& names) {
  size_t given = args.size();
  while (given > 0 && op.schema.params[given - 1].has_default &&
         !std::holds_alternative<Tensor>(args[given - 1]) &&
         !std::holds_alternative<Tensors>(args[given - 1]) &&
         str(args[given - 1]) == str(op.schema.params[given - 1].default_value))
    --given;
  std::string out = "call(\"" + op.name + "\", Values{";
  size_t next = 0;
  for (size_t i = 0; i < given; ++i) out += (i ? ", " : "") + value_text(args[i], next, names);
  return out + "})";
}

namespace {
size_t position(const Case& c, const Case::Slot& slot) {
  for (size_t k = 0; k < c.tensors().size(); ++k)
    if (c.tensors()[k].param == slot.param && c.tensors()[k].element == slot.element) return k;
  return c.tensors().size();
}
}  // namespace

std::vector<std::string> cpp_names(const Case& c, const std::vector<Case::Slot>& slots) {
  std::vector<std::string> out;
  for (const Case::Slot& s : slots) out.push_back(format("a{}", position(c, s)));
  return out;
}

std::string cpp_function(const Case& c, const std::vector<Case::Slot>& slots, bool smooth) {
  std::vector<std::string> names = cpp_names(c, c.tensors());
  for (size_t k = 0; k < slots.size(); ++k) names[position(c, slots[k])] = format("xs[{}]", k);
  const std::string call = cpp_call(c.op, c.args, names);
  if (!smooth) return "[&](const Tensors& xs) { return " + call + "; }";
  return "[&](const Tensors& xs) {\n    Tensors ys = " + call +
         ";\n    std::erase_if(ys, [](const Tensor& y) { return !is_inexact(y.dtype()); });\n    return "
         "ys;\n  }";
}

std::string cpp_list(const std::vector<std::string>& names) {
  std::string out = "{";
  for (size_t i = 0; i < names.size(); ++i) out += (i ? ", " : "") + names[i];
  return out + "}";
}

std::string cpp_program(const std::string& body) {
  return "#include <cmath>\n#include <cstring>\n#include <iostream>\n\n#include \"lamella/lamella.h\"\n\n"
         "using namespace lamella;\n\nint main() {\n" +
         body + "}\n";
}

}  // namespace lamella::verify
