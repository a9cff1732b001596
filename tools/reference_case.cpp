// Cases are JSON: arguments by kind, tensors by name.
#include "reference_case.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace lamella::tools {

namespace {
using nlohmann::json;

[[noreturn]] void malformed(const char* what) { throw MalformedPack(std::string("a case has ") + what); }

bool is_tensor(const json& v) { return v.is_object() && v.contains("tensor"); }

bool flag(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_boolean() && at->get<bool>();
}

class CaseParser {
 public:
  CaseParser(const SafetensorsReader& file, PackCase& out) : file_(file), out_(out) {}

  void argument(const std::string& name, const json& v) {
    argument_ = out_.args.size();
    out_.args.push_back({name, {}});
    Value parsed = v.is_array() ? list(v) : scalar(v);
    out_.args.back().value = std::move(parsed);
  }

 private:
  Tensor tensor(const json& v, int element) {
    if (!v["tensor"].is_string()) malformed("a tensor without a name");
    if (flag(v, "grad")) out_.differentiable.push_back({argument_, element});
    const auto name = v["tensor"].get<std::string>();
    if (!file_.has(name)) malformed(("a tensor that is not there: " + name).c_str());
    return file_.tensor(name);
  }

  static double float_text(const std::string& text) {
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    if (text == "nan") return std::nan("");
    malformed("a float that is neither inf, -inf nor nan");
  }

  Value scalar(const json& v) {
    switch (v.type()) {
      case json::value_t::null: return {};
      case json::value_t::boolean: return v.get<bool>();
      case json::value_t::number_integer: return v.get<int64_t>();
      case json::value_t::number_unsigned:
        if (v.get<uint64_t>() > uint64_t(INT64_MAX)) throw NotExpressible("an integer beyond int64");
        return int64_t(v.get<uint64_t>());
      case json::value_t::number_float: return v.get<double>();
      case json::value_t::string: return v.get<std::string>();
      case json::value_t::object: return object(v);
      default: throw NotExpressible("a list in a list");
    }
  }

  Value object(const json& v) {
    if (is_tensor(v)) return tensor(v, -1);
    if (v.contains("dtype") && v["dtype"].is_string()) {
      DType dtype;
      const auto text = v["dtype"].get<std::string>();
      if (!parse_dtype(text, dtype)) throw NotExpressible("the dtype " + text);
      return dtype;
    }
    if (v.contains("complex")) {
      const json& c = v["complex"];
      if (!c.is_array() || c.size() != 2 || !c[0].is_number() || !c[1].is_number())
        malformed("a complex without two parts");
      return Scalar(c128(c[0].get<double>(), c[1].get<double>()));
    }
    if (v.contains("float") && v["float"].is_string()) return float_text(v["float"].get<std::string>());
    throw NotExpressible("an argument of another kind (slice, ellipsis)");
  }

  Value list(const json& v) {
    bool tensors = false, ints = true;
    for (const json& e : v) {
      tensors |= is_tensor(e);
      ints &= e.is_number_integer();
    }
    if (tensors) {
      Tensors out;
      for (const json& e : v) {
        if (!is_tensor(e) && !e.is_null()) throw NotExpressible("a list of tensors and other things");
        out.push_back(e.is_null() ? Tensor() : tensor(e, int(out.size())));
      }
      return out;
    }
    if (!ints) throw NotExpressible("a list of other things than integers");
    Dims out;
    for (const json& e : v) out.push_back(std::get<int64_t>(scalar(e)));
    return out;
  }

  const SafetensorsReader& file_;
  PackCase& out_;
  size_t argument_ = 0;
};

std::vector<std::optional<std::string>> optional_names(const json& v) {
  if (!v.is_array()) malformed("a list of names that is none");
  std::vector<std::optional<std::string>> out;
  for (const json& e : v) {
    if (!e.is_null() && !e.is_string()) malformed("a name that is no string");
    out.push_back(e.is_null() ? std::nullopt : std::optional(e.get<std::string>()));
  }
  return out;
}

void parse_vjp(const json& v, PackCase& out) {
  if (!v.is_object() || !v.contains("cotangents") || !v.contains("grads"))
    malformed("a vjp without cotangents or grads");
  out.has_vjp = true;
  out.cotangents = optional_names(v["cotangents"]);
  out.grads = optional_names(v["grads"]);
  if (out.cotangents.size() != out.outputs.size()) malformed("not one cotangent per output");
  if (out.grads.size() != out.differentiable.size()) malformed("not one gradient per differentiable tensor");
}
}  // namespace

Tensors PackCase::inputs() const {
  Tensors out;
  for (const PackSlot& s : differentiable) {
    const Value& v = args[s.argument].value;
    out.push_back(s.element < 0 ? std::get<Tensor>(v) : std::get<Tensors>(v)[size_t(s.element)]);
  }
  return out;
}

PackArguments PackCase::with(const Tensors& xs) const {
  PackArguments out = args;
  for (size_t i = 0; i < differentiable.size(); ++i) {
    const PackSlot& s = differentiable[i];
    Value& v = out[s.argument].value;
    if (s.element < 0) v = xs[i];
    else std::get<Tensors>(v)[size_t(s.element)] = xs[i];
  }
  return out;
}

PackCase parse_case(const json& text, const SafetensorsReader& file) {
  if (!text.is_object() || !text.contains("args") || !text["args"].is_array())
    malformed("no list of arguments");
  PackCase out;
  out.must_raise = flag(text, "error");
  CaseParser parser(file, out);
  for (const json& a : text["args"]) parser.argument("", a);
  if (text.contains("kwargs")) {
    if (!text["kwargs"].is_object()) malformed("keyword arguments that are no object");
    for (const auto& [name, value] : text["kwargs"].items()) parser.argument(name, value);
  }
  if (out.must_raise) return out;
  if (!text.contains("outputs")) malformed("no outputs");
  for (const auto& name : optional_names(text["outputs"])) {
    if (!name) malformed("an output without a name");
    out.outputs.push_back(*name);
  }
  if (text.contains("vjp")) parse_vjp(text["vjp"], out);
  return out;
}

}  // namespace lamella::tools
