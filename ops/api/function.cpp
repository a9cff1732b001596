// Typed functions: what a schema's kinds are in C++, and what a call does with them.
#include "function.h"

#include <algorithm>

namespace lamella::api {

namespace {
bool is_tensor(const Param& p) { return p.kind == ParamKind::Tensor; }
bool is_list(const Param& p) { return p.kind == ParamKind::TensorList; }
bool says_nothing(const Param& p) { return is_tensor(p) || p.kind == ParamKind::String; }

/// A value of the kind, as an aggregate holds it.
std::string value_type(ParamKind kind) {
  switch (kind) {
    case ParamKind::Tensor: return "Tensor";
    case ParamKind::TensorList: return "TensorArg";
    case ParamKind::Int: return "int64_t";
    case ParamKind::Ints: return "IntArg";
    case ParamKind::Float: return "double";
    case ParamKind::Bool: return "bool";
    case ParamKind::Scalar: return "Scalar";
    case ParamKind::DType: return "DType";
    case ParamKind::String: return "std::string";
    case ParamKind::Device: return "Device";
    default: fail(ErrorCode::Schema, "typed API: no type for a function");
  }
}

std::string type_of(const Param& p) {
  const std::string value = value_type(p.kind);
  if (says_nothing(p)) return "const " + value + "&";  // an undefined tensor, an empty text
  if (p.kind == ParamKind::Ints && p.optional) return "OptionalInts";
  if (p.optional) return "std::optional<" + value + ">";
  return p.kind == ParamKind::Scalar ? "const Scalar&" : value;
}

std::string default_of(const Param& p) {
  const Value& v = p.default_value;
  if (std::holds_alternative<std::monostate>(v))
    return says_nothing(p) || p.kind == ParamKind::Ints ? "{}" : "std::nullopt";
  if (std::holds_alternative<Dims>(v)) return "IntArg({})";
  return str(v);  // numbers, true, false, "text"
}

std::string parameters(const Schema& s, bool defaults, int number_place = -1, int count = -1) {
  std::string out;
  for (int i = 0; i < (count < 0 ? int(s.params.size()) : count); ++i) {
    const Param& p = s.params[size_t(i)];
    out += (i ? ", " : "") + (i == number_place ? "const Scalar&" : type_of(p)) + " " + p.name;
    if (defaults && p.has_default) out += " = " + default_of(p);
  }
  return out;
}

std::string result_type(const Function& f) {
  if (f.form != Form::Functional) return "const Tensor&";
  if (f.schema.result_kind == ResultKind::TensorList) return "Tensors";
  if (f.schema.n_results == 0) return "void";
  return f.schema.n_results == 1 ? "Tensor" : format("std::array<Tensor, {}>", f.schema.n_results);
}

/// Where a frame finds the argument; null: it is not given.
std::string pointer(const Param& p) {
  const std::string& n = p.name;
  if (p.optional && is_tensor(p)) return format("{}.defined() ? &{} : nullptr", n, n);
  if (p.optional && p.kind == ParamKind::String) return format("{}.empty() ? nullptr : &{}", n, n);
  if (p.optional && p.kind == ParamKind::Ints) return n + ".given()";
  if (p.optional) return format("{} ? &*{} : nullptr", n, n);
  if (p.kind == ParamKind::Ints) return format("static_cast<const Ints*>(&{})", n);
  if (is_list(p)) return format("static_cast<const TensorSpan*>(&{})", n);
  return "&" + n;
}

template <class Take> std::string joined(const std::vector<Param>& params, Take take) {
  std::string out;
  for (const Param& p : params)
    if (const std::string s = take(p); !s.empty()) out += (out.empty() ? "" : ", ") + s;
  return out;
}

/// What the table computes from a frame (keys_of), from arguments whose kinds are known here.
std::string keys(const Schema& s) {
  const auto carried = [](const Param& p) { return is_tensor(p) || is_list(p) ? p.name : std::string(); };
  return "keys_of_all(" + joined(s.params, carried) + ")";
}

std::string call_text(const Function& f) {
  const Schema& s = f.schema;
  const std::string type = result_type(f);
  const auto device = std::ranges::find(s.params, ParamKind::Device, &Param::kind);
  if (type == "Tensor" && device != s.params.end() && std::ranges::none_of(s.params, is_tensor))
    return format("  return make_one(handle, args, {});\n", device->name);
  if (type == "Tensor") return format("  return call_one(handle, args, {});\n", keys(s));
  const std::string called = format("  call_with_keys(frame, {});\n", keys(s));
  if (type == "Tensors")
    return "  Tensors list;\n  Frame frame{&*handle, args, nullptr, &list};\n" + called + "  return list;\n";
  if (type == "void") return "  Frame frame{&*handle, args, nullptr};\n" + called;
  if (type == "const Tensor&")
    return "  Tensor result;\n  Frame frame{&*handle, args, &result};\n" + called + "  return " +
           s.params[0].name + ";\n";
  return "  " + type + " results;\n  Frame frame{&*handle, args, results.data()};\n" + called +
         "  return results;\n";
}
}  // namespace

std::vector<Function> functions_of(const Row& row) {
  const Schema& s = row.schema;
  std::vector<Function> out = {{&row, Form::Functional, s}};
  if (s.result_kind != ResultKind::Tensors || s.n_results != 1 || s.returns_alias) return out;
  if (!row.says("properties", "kNoInPlace") && !s.params.empty() && is_tensor(s.params[0]) &&
      !s.params[0].optional) {
    Function f = {&row, Form::InPlace, s};
    f.schema.name += "_";
    f.schema.params[0].mutated = f.schema.returns_alias = true;
    out.push_back(std::move(f));
  }
  if (!row.says("properties", "kNoOut")) {
    Function f = {&row, Form::Out, s};
    f.schema.name += "_out";
    f.schema.returns_alias = true;
    Param written;
    written.name = "out";
    written.mutated = true;
    f.schema.params.insert(f.schema.params.begin(), written);
    out.push_back(std::move(f));
  }
  return out;
}

std::string declaration(const Function& f, bool defaults) {
  return result_type(f) + " " + f.schema.name + "(" + parameters(f.schema, defaults) + ")";
}

std::string body(const Function& f) {
  const std::string pointers = joined(f.schema.params, pointer);
  return declaration(f, false) + " {\n" +
         format("  static constinit const OpHandle handle(\"{}\");\n", f.schema.name) +
         "  const void* const args[] = {" + (pointers.empty() ? "nullptr" : pointers) + "};\n" +
         call_text(f) + "}\n";
}

std::vector<int> number_places(const Function& f) {
  if (f.form == Form::Out || result_type(f) == "Tensors" || f.schema.n_results != 1) return {};
  if (!f.row->says("shape", "Broadcast")) return {};
  std::vector<int> places;
  for (size_t i = 0; i < f.schema.params.size(); ++i)
    if (is_tensor(f.schema.params[i]) && !f.schema.params[i].optional) places.push_back(int(i));
  if (places.size() != 2) return {};
  return f.form == Form::InPlace ? std::vector<int>{places[1]} : places;
}

std::string number_overload(const Function& f, int place) {
  const std::vector<Param>& params = f.schema.params;
  const std::vector<int> both = number_places({f.row, Form::Functional, f.schema});
  const std::string other = params[size_t(both[0] == place ? both[1] : both[0])].name;
  const auto passed = [&](const Param& p) {
    return &p == &params[size_t(place)] ? format("number_like({}, {})", p.name, other) : p.name;
  };
  return format("inline {} {}({}) {\n  return {}({});\n}\n", result_type(f), f.schema.name,
                parameters(f.schema, true, place), f.schema.name, joined(params, passed));
}

int first_default(const Schema& s) {
  const auto found = std::ranges::find(s.params, true, &Param::has_default);
  return found == s.params.end() ? -1 : int(found - s.params.begin());
}

std::string options_name(const Row& row) {
  std::string out;
  bool upper = true;
  for (const char c : row.schema.name) {
    if (c != '_') out += upper ? char(std::toupper(uint8_t(c))) : c;
    upper = c == '_';
  }
  return out + "Options";
}

std::string options_struct(const Row& row) {
  std::string out = "struct " + options_name(row) + " {\n  Keywords only_by_name = Keywords();\n";
  for (const Param& p : row.schema.params) {
    if (!p.has_default) continue;
    std::string type = value_type(p.kind);
    if (p.kind == ParamKind::Ints) type = "IntsOption";
    else if (p.optional && !says_nothing(p)) type = "std::optional<" + type + ">";
    out += format("  {} {} = {};\n", type, p.name, p.kind == ParamKind::Ints ? "{}" : default_of(p));
  }
  return out + "};\n";
}

std::string options_overload(const Function& f, int number_place) {
  const int first = first_default(f.schema);
  std::string passed;
  for (int i = 0; i < int(f.schema.params.size()); ++i)
    passed += (i ? ", " : "") + std::string(i < first ? "" : "by_name.") + f.schema.params[size_t(i)].name;
  std::string taken = parameters(f.schema, false, number_place, first);
  taken += (taken.empty() ? "const " : ", const ") + options_name(*f.row) + "& by_name";
  return format("template <class = void> {} {}({}) {\n  return {}({});\n}\n", result_type(f), f.schema.name,
                taken, f.schema.name, passed);
}

}  // namespace lamella::api
