// Text of calls. Names that differ in PyTorch are listed here.
#include "bench_call.h"

#include <algorithm>
#include <charconv>

namespace lamella::tools::bench {

namespace {
std::optional<int64_t> whole_number(std::string_view text) {
  int64_t v = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return v;
}

std::optional<Value> list_of_numbers(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  Dims out;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::optional<int64_t> v = whole_number(text.substr(0, comma));
    if (!v) return std::nullopt;
    out.push_back(*v);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return out;
}

std::optional<Value> number(std::string_view text) {
  if (const auto v = whole_number(text)) return *v;
  double d = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), d);
  if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return d;
}

std::optional<Value> attribute(ParamKind kind, std::string_view text) {
  DType dtype;
  switch (kind) {
    case ParamKind::Int:
      if (const auto v = whole_number(text)) return *v;
      return std::nullopt;
    case ParamKind::Ints: return list_of_numbers(text);
    case ParamKind::Float:
    case ParamKind::Scalar: return number(text);  // canonical() makes what the schema wants of it
    case ParamKind::Bool:
      if (text == "true" || text == "True" || text == "1") return true;
      if (text == "false" || text == "False" || text == "0") return false;
      return std::nullopt;
    case ParamKind::DType:
      if (parse_dtype(text, dtype)) return dtype;
      return std::nullopt;
    case ParamKind::String: return std::string(text);
    default: return std::nullopt;
  }
}

/// As Python writes it.
std::string literal(const Value& v) {
  if (const auto* i = std::get_if<int64_t>(&v)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&v)) return format("{}", *d);
  if (const auto* b = std::get_if<bool>(&v)) return *b ? "True" : "False";
  if (const auto* s = std::get_if<Dims>(&v)) return python_list(*s);
  if (const auto* s = std::get_if<Scalar>(&v)) return s->str();
  if (const auto* d = std::get_if<DType>(&v)) return "torch." + python_dtype(*d);
  if (const auto* s = std::get_if<std::string>(&v)) return "'" + *s + "'";
  return "None";
}

/// The function that does the same.
std::string python_function(const std::string& op) {
  if (op == "layer_norm") return "torch.nn.functional.layer_norm";
  if (op == "cholesky" || op == "linalg_cholesky") return "torch.linalg.cholesky";
  if (op == "linalg_solve_triangular") return "torch.linalg.solve_triangular";
  constexpr std::string_view kMethods[] = {"contiguous", "to",       "expand",   "view",     "sum_to_size",
                                           "new_zeros",  "new_ones", "new_full", "new_empty"};
  return (std::ranges::find(kMethods, op) != std::end(kMethods) ? "torch.Tensor." : "torch.") + op;
}

std::string python_parameter(const Op& op, const std::string& param) {
  if (op.name == "index_add" && param == "src") return "source";
  if (op.name == "full_like" && param == "value") return "fill_value";
  return param;
}

/// Those name these parameters otherwise, or not at all.
bool positional(const Op& op, const Param& p) {
  constexpr std::string_view kAll[] = {"expand",      "view", "reshape", "split",
                                       "sum_to_size", "fill", "new_full"};
  return (op.name == "to" && p.kind == ParamKind::DType) ||
         std::ranges::find(kAll, op.name) != std::end(kAll);
}
}  // namespace

Value parse_attribute(const Op& op, const Param& param, std::string_view text) {
  if (text == "none" && param.optional) return {};
  const std::optional<Value> v = attribute(param.kind, text);
  LAMELLA_CHECK(v, Usage, "bench: {}: --arg {}={} cannot be read; expected a value of {}", op.name,
                param.name, text, str(param));
  return *v;
}

std::string shown(const Value& v) {
  if (const auto* d = std::get_if<DType>(&v)) return std::string(name(*d));
  return str(v);
}

PeerText peer_text(const Op& op, const std::vector<Argument>& arguments, bool into) {
  PeerText out;
  std::string call;
  bool keywords = false;
  int count = 0;
  for (const Argument& a : arguments) {
    if (a.param->name == "key" || (!a.operand && (a.is_default || is_none(a.value)))) {
      keywords = true;
      continue;
    }
    std::string text;
    if (a.operand) {
      text = "x" + std::to_string(count++);
      out.setup += text + " = " + python(*a.operand) + "\n";
      if (a.param->kind == ParamKind::TensorList) text = "[" + text + ", " + text + "]";
    } else {
      text = literal(a.value);
      keywords |= !positional(op, *a.param);
    }
    if (!call.empty()) call += ", ";
    call += keywords ? python_parameter(op, a.param->name) + "=" + text : text;
  }
  const std::string function = python_function(op.name);
  if (op.name == "clone") call += ", memory_format=torch.contiguous_format";
  out.call = function + "(" + call + ")";
  if (into) out.into = function + "(" + call + (call.empty() ? "" : ", ") + "out=o)";
  return out;
}

}  // namespace lamella::tools::bench
