// Constraints of every operator, a line each: what its arguments must be, and which error says so.
#include "lamella/verify/oracle/constraints.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lamella/core/check.h"
#include "lamella/dispatch/state.h"
#include "lamella/dispatch/table.h"
#include "lamella/verify/oracle/constraints_call.h"

namespace lamella::verify {

namespace {

/// Integers a, b: no b may be 0.
void whole_divisor(Questioned& q) {
  const Tensor a = q.tensor("a"), b = q.tensor("b");
  if (std::max(kind_of(a.dtype()), kind_of(b.dtype())) != 1 || !q.sees_values() || a.numel() == 0) return;
  for (const int64_t v : integers_of(b)) {
    if (v == 0) return q.object({kValue}, {"b"});
    if (v % 256 == 0 && a.dtype() != b.dtype()) q.open("b may wrap to 0 in the dtype of the result");
  }
}

/// A number where results are floating: real, unless complex numbers are taken.
Constraint number_for_floats(Name number, bool complex_too) {
  return [=](Questioned& q) {
    const int kind = kind_of(q.scalar(number).kind());
    if (kind == 3 && !complex_too) q.object({kDType}, {number});
    else if (kind == 0) q.open("PyTorch refuses True for some numbers, which is not documented");
  };
}

/// torch.div: "floor" and "trunc" round quotients of real numbers; integers cannot be divided by 0.
void rounding(Questioned& q) {
  if (!q.given("rounding_mode")) return;
  const auto& mode = std::get<std::string>(q.value("rounding_mode"));
  if (mode != "floor" && mode != "trunc") q.object({kValue}, {"rounding_mode"});
  const Tensor a = q.tensor("a"), b = q.tensor("b");
  const int kind = std::max(kind_of(a.dtype()), kind_of(b.dtype()));
  if (kind == 3) q.object({kDType}, {"a", "b", "rounding_mode"});
  if (kind == 0) q.open("quotients of two bools are rounded in no documented dtype");
  whole_divisor(q);
}

void some_bound(Questioned& q) {
  if (!q.given("min") && !q.given("max")) q.object({kValue}, {"min", "max"});
}

/// torch.complex: equal dtypes, of which f32 and f64 have a complex one here.
void parts(Questioned& q) {
  const Tensor re = q.tensor("real"), im = q.tensor("imag");
  if (re.dtype() != im.dtype() || (re.dtype() != DType::F32 && re.dtype() != DType::F64))
    q.object({kDType}, {"real", "imag"});
}

/// Tensor.copy_: src broadcasts to self, which keeps its sizes.
void fits_self(Questioned& q) {
  const Tensor self = q.tensor("self"), src = q.tensor("src");
  bool fits = src.rank() <= self.rank();
  for (int d = 1; d <= src.rank() && fits; ++d) fits = src.size(-d) == self.size(-d) || src.size(-d) == 1;
  if (!fits) q.object({ErrorCode::Broadcast}, {"src", "self"});
}

/// torch.arange: finite real numbers, a step that is not 0 (in an integer dtype: not 0 as an integer) and
/// leads from start to end: in double, unless all three are integers.
void progression(Questioned& q) {
  const bool end_alone = !q.given("end");
  const Scalar start = end_alone ? Scalar(0) : q.scalar("start"), end = q.scalar(end_alone ? "start" : "end"),
               step = q.given("step") ? q.scalar("step") : Scalar(1);
  for (const Scalar& s : {start, end, step}) {
    if (is_complex(s.kind())) return q.object({kDType}, {"start", "end", "step"});
    if (!std::isfinite(s.to_double())) return q.object({kValue}, {"start", "end", "step"});
  }
  const bool integers = start.is_integral() && end.is_integral() && step.is_integral();
  const DType floating = dispatch_state().default_dtype;
  const DType dtype = q.given("dtype") ? std::get<DType>(q.value("dtype")) : integers ? DType::I64 : floating;
  if (kind_of(dtype) == 0 || kind_of(dtype) == 3) return q.object({kDType}, {"dtype"});
  const long double by = static_cast<long double>(step.to<double>());
  const auto whole = [integers](const Scalar& s) {
    return integers ? (s.kind() == DType::U64 ? static_cast<long double>(s.to<uint64_t>())
                                              : static_cast<long double>(s.to_int()))
                    : static_cast<long double>(s.to_double());
  };
  const long double distance = whole(end) - whole(start);
  if (by == 0 || (is_integer(dtype) && std::abs(by) < 1)) return q.object({kValue}, {"step"});
  if (distance != 0 && (distance > 0) != (by > 0)) q.object({kValue}, {"step", "end"});
  else if (distance / by > 0x1p58L) q.object({ErrorCode::Overflow}, {"end", "start", "step"});
}

void identity_sizes(Questioned& q) {
  const int64_t n = q.integer("n"), m = q.given("m") ? q.integer("m") : n;
  if (n < 0 || m < 0) q.object({kShape}, {"n", "m"});
  else if (static_cast<long double>(std::max<int64_t>(n, 1)) * std::max<int64_t>(m, 1) > 0x1p58L)
    q.object({ErrorCode::Overflow}, {"n", "m"});
}

Rows pointwise_rows() {
  const Constraint pair = broadcasting({"a", "b"}), numbers = result_of_kind({"a", "b"}, Kinds::NotBool),
                   ordered = result_of_kind({"a", "b"}, Kinds::Real);
  Rows rows;
  for (const Name any : {"exp", "log", "sin", "cos", "tanh", "sqrt", "reciprocal", "sign", "logical_not",
                         "isnan", "conj_physical", "conj", "real", "clone", "contiguous", "detach"})
    rows.push_back({any, {}});
  for (const Name both : {"mul", "eq", "ne", "logical_and", "logical_or"}) rows.push_back({both, {pair}});
  for (const Name real : {"maximum", "minimum", "lt", "le", "gt", "ge"})
    rows.push_back({real, {pair, ordered}});
  rows.push_back({"neg", {of_kind("x", Kinds::NotBool)}});
  rows.push_back({"abs", {of_kind("x", Kinds::NotBool)}});
  rows.push_back({"imag", {of_kind("x", Kinds::Complex)}});
  rows.push_back({"real_part", {of_kind("x", Kinds::Complex)}});
  rows.push_back({"complex", {broadcasting({"real", "imag"}), parts}});
  rows.push_back({"add", {pair, multiplier("alpha", {"a", "b"})}});
  rows.push_back({"sub", {pair, numbers, multiplier("alpha", {"a", "b"})}});
  rows.push_back({"div", {pair, rounding}});
  rows.push_back({"pow", {pair, numbers}});
  rows.push_back({"where", {broadcasting({"condition", "x", "y"}), of_kind("condition", Kinds::Bool)}});
  rows.push_back(
      {"clamp",
       {some_bound, broadcasting({"x", "min", "max"}), result_of_kind({"x", "min", "max"}, Kinds::Real)}});
  rows.push_back({"copy", {fits_self}});
  rows.push_back({"fill", {number_fits("value", "x", "")}});
  rows.push_back({"to", {}});
  rows.push_back({"to_device", {}});
  return rows;
}

Rows factory_rows() {
  Rows rows;
  for (const Name any : {"zeros", "ones", "empty"}) rows.push_back({any, {sizes("size")}});
  for (const Name like : {"zeros_like", "ones_like", "empty_like"}) rows.push_back({like, {}});
  rows.push_back({"full", {sizes("size"), number_fits("fill_value", "", "dtype")}});
  rows.push_back({"full_like", {number_fits("value", "x", "dtype")}});
  rows.push_back({"new_zeros", {sizes("size")}});
  rows.push_back({"new_full", {sizes("size"), number_fits("value", "x", "dtype")}});
  rows.push_back({"arange", {progression}});
  rows.push_back({"eye", {identity_sizes}});
  const Constraint key = of_kind("key", Kinds::U64);
  rows.push_back({"rand", {sizes("size"), key, dtype_of_kind("dtype", "", Kinds::Floating)}});
  rows.push_back({"randn", {sizes("size"), key, dtype_of_kind("dtype", "", Kinds::Inexact)}});
  rows.push_back({"fold_in", {key, of_kind("data", Kinds::U64), broadcasting({"key", "data"})}});
  rows.push_back({"split_key", {key, at_least("num", 0, kValue)}});
  return rows;
}

/// What no operator takes: undefined tensors, tensors of several devices.
void whatever_operator(Questioned& q) {
  std::optional<Device> device;
  std::vector<std::string_view> tensors;  // whoever is asked first may be called the odd one
  for (const uint8_t p : q.op().tensor_params) tensors.push_back(q.op().schema.params[p].name);
  for (const uint8_t p : q.op().tensor_params) {
    const Param& param = q.op().schema.params[p];
    const Value& v = q.args()[p];
    if (is_none(v)) continue;
    const Tensors* const list = std::get_if<Tensors>(&v);
    for (const Tensor& t : list ? *list : Tensors{std::get<Tensor>(v)}) {
      if (!t.defined()) {
        if (list || !param.optional) q.object({ErrorCode::Undefined}, {param.name});
      } else if (device && t.device() != *device && !q.op().has(kCrosses)) {
        q.object({ErrorCode::Device}, tensors);
      } else {
        device = t.device();
      }
    }
  }
}

const std::map<std::string_view, std::vector<Constraint>>& table() {
  static const std::map<std::string_view, std::vector<Constraint>> all = [] {
    std::map<std::string_view, std::vector<Constraint>> out;
    for (const auto& rows : {pointwise_rows(), factory_rows(), matrix_rows(), place_rows()})
      out.insert(rows.begin(), rows.end());
    return out;
  }();
  return all;
}

/// The oracle's row says what the operator takes: see StatedTypes.
bool is_stated(const Op& op) { return op.kernel.stated.result != StatedTypes::Result::Unsaid; }

/// Of an operator without a row above: dtypes by what is stated, dims in range, sizes that broadcast.
std::vector<Constraint> stated(const Op& op) {
  std::vector<Constraint> all;
  Names tensors;
  for (const uint8_t i : op.tensor_params) tensors.push_back(op.schema.params[i].name);
  for (const Param& param : op.schema.params) {
    if (param.role != ParamRole::Dim) continue;
    const bool one = param.kind == ParamKind::Int;
    all.push_back(one ? one_dim(param.name, tensors[0]) : distinct_dims(param.name, tensors[0]));
  }
  for (const Param& param : op.schema.params)
    if (param.kind == ParamKind::Scalar)
      all.push_back(op.kernel.stated.result == StatedTypes::Result::Floating
                        ? number_for_floats(param.name, op.kernel.stated.takes_complex)
                        : multiplier(param.name, tensors));
  if (op.kernel.stated.refuses_zero) all.push_back(whole_divisor);
  if (tensors.size() > 1) all.push_back(broadcasting(tensors));
  if (!op.kernel.stated.takes_bool) all.push_back(result_of_kind(tensors, Kinds::NotBool));
  if (!op.kernel.stated.takes_complex) all.push_back(result_of_kind(tensors, Kinds::Real));
  return all;
}

/// Whether `word` stands in `text` from `from` on, not as a part of another one.
bool names(const std::string& text, std::string_view word, size_t from) {
  const auto part = [&](size_t i) {
    return i < text.size() && (isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
  };
  for (size_t at = from; (at = text.find(word, at)) != std::string::npos; ++at)
    if (!part(at - 1) && !part(at + word.size())) return true;
  return false;
}

}  // namespace

bool has_constraints(std::string_view op) {
  const Op* const row = OpTable::current().find(op);
  return table().contains(op) || (row && is_stated(*row));
}

Ruling ruling(const Op& op, const Values& args, Seen seen) {
  const auto listed = table().find(op.name);
  if (listed == table().end() && !is_stated(op)) return {{}, "the specification does not know the operator"};
  Questioned q(op, args, seen);
  whatever_operator(q);
  for (const Objection& o : q.ruling.objections)
    if (o.codes[0] == ErrorCode::Undefined) return q.ruling;  // the others look at tensors
  for (const Constraint& constraint : listed == table().end() ? stated(op) : listed->second) constraint(q);
  return q.ruling;
}

std::string Ruling::unfit(const Op& op, ErrorCode code, const std::string& text) const {
  const std::string start = op.name + ": ";
  if (text.rfind(start, 0) != 0) return format("the text does not begin with \"{}\"", start);
  if (code == ErrorCode::Internal) return "an internal error";
  if (!open.empty()) return "";
  for (const Objection& o : objections) {
    if (std::ranges::find(o.codes, code) == o.codes.end()) continue;
    for (const std::string_view argument : o.arguments)
      if (names(text, argument, start.size())) return "";
  }
  return format("expected {}", str());
}

std::string Ruling::str() const {
  std::string out;
  for (const Objection& o : objections) {
    out += out.empty() ? "[" : "; [";
    for (const ErrorCode c : o.codes) out += (out.back() == '[' ? "" : "|") + std::string(name(c));
    out += "] naming";
    for (const std::string_view a : o.arguments) out += " " + std::string(a);
  }
  if (!open.empty()) out += (out.empty() ? "" : "; ") + std::string("open: ") + std::string(open);
  return out.empty() ? "no error" : out;
}

Ruling writing(const Op& op, const Tensor& target, std::string_view argument, const Shape& result,
               const Values& args) {
  Ruling r;
  if (!std::ranges::equal(target.sizes(), Ints(result.sizes))) r.objections.push_back({{kShape}, {argument}});
  // torch.can_cast: never to a lower kind, of bool, integer, floating, complex.
  if (kind_of(result.dtype) > kind_of(target.dtype())) r.objections.push_back({{kDType}, {argument}});
  else if (argument == "out" && op.has(kExactOut) && result.dtype != target.dtype())
    r.objections.push_back({{kDType}, {argument}});
  const int64_t item = itemsize(target.dtype());
  const std::vector<int64_t> mine = offsets_of(target.sizes(), target.strides(), target.impl()->offset);
  const std::set<int64_t> own(mine.begin(), mine.end());
  const bool repeats = own.size() != mine.size();
  if (repeats) r.objections.push_back({{ErrorCode::Overlap}, {argument}});
  else if (!mine.empty() && *own.rbegin() - *own.begin() + 1 != int64_t(own.size()))
    r.open = "elements that lie between each other may count as shared";
  for (const uint8_t p : op.tensor_params) {
    if (is_none(args[p])) continue;
    const Tensors* const list = std::get_if<Tensors>(&args[p]);
    for (const Tensor& t : list ? *list : Tensors{std::get<Tensor>(args[p])}) {
      if (!t.defined() || !t.shares_storage(target)) continue;
      const std::vector<int64_t> theirs = offsets_of(t.sizes(), t.strides(), t.impl()->offset);
      if (theirs == mine && t.dtype() == target.dtype()) continue;
      const int64_t other = itemsize(t.dtype());
      const bool meets = std::ranges::any_of(theirs, [&](int64_t at) {
        return std::ranges::any_of(
            mine, [&](int64_t m) { return m * item < (at + 1) * other && at * other < (m + 1) * item; });
      });
      if (meets) r.objections.push_back({{ErrorCode::Overlap}, {argument}});
      else r.open = "elements that lie between each other may count as shared";
    }
  }
  return r;
}

}  // namespace lamella::verify
