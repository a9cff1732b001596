// Cases of a pack: call, compare, pull back, compare.
#include "reference_run.h"

#include <filesystem>

#include "lamella/transforms/grad.h"
#include "lamella/verify/oracle/constraints.h"

#include "reference_compare.h"
#include "reference_ops.h"
#include "whole_file.h"

namespace lamella::tools {

namespace {
using nlohmann::json;

struct Verdict {
  enum Kind { Passed, Failed, NotImplemented } kind = Passed;
  const char* status = "ok";  ///< what --write says of the case
  std::string message;
};
Verdict not_implemented(std::string why) {
  return {Verdict::NotImplemented, "not_implemented", std::move(why)};
}

using Written = std::map<std::string, Tensor>;

/// Compares what was computed with what the file has under these names; remembers it under them.
std::string compare_all(const char* what, const Tensors& got,
                        const std::vector<std::optional<std::string>>& names, const SafetensorsReader& file,
                        Written& written) {
  if (got.size() != names.size()) return format("got {} {}s, expected {}", got.size(), what, names.size());
  std::string first;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!names[i]) continue;
    if (!file.has(*names[i])) throw MalformedPack("there is no tensor " + *names[i]);
    const Tensor want = file.tensor(*names[i]);
    std::string text = got[i].defined() ? beyond_tolerance(got[i], want) : "undefined";
    if (got[i].defined() && is_complex(got[i].dtype()) == is_complex(want.dtype()))
      written[*names[i]] = got[i];
    if (first.empty() && !text.empty()) first = format("{} {}: {}", what, i, text);
  }
  return first;
}

std::string check_vjp(const PackOperator& op, const PackCase& c, const SafetensorsReader& file,
                      Written& written) {
  const auto f = [&](const Tensors& xs) { return op(c.with(xs)); };
  const VjpResult result = vjp(f, c.inputs());
  Tensors cotangents;
  for (const auto& name : c.cotangents) {
    if (name && !file.has(*name)) throw MalformedPack("there is no tensor " + *name);
    cotangents.push_back(name ? file.tensor(*name) : Tensor());
  }
  return compare_all("gradient", result.pullback(cotangents), c.grads, file, written);
}

/// What the specification of arguments says otherwise than PyTorch (verify/oracle/constraints.h): it must
/// accept what has outputs, and refuse what must raise. Empty where both agree.
std::string specification_differs(const PackOperator& op, const PackCase& c) {
  Values args;
  try {
    args = op.arguments(c.args);
  } catch (const Error& e) {  // an argument of a kind that the schema has not
    return c.must_raise ? "" : format("raised {}: {}", name(e.code()), e.what());
  }
  verify::Ruling r = verify::ruling(*op.op(), args);
  for (const PackArgument& a : c.args) {
    const Tensor* const out = a.name == "out" ? std::get_if<Tensor>(&a.value) : nullptr;
    if (!out || !out->defined() || r.refuses()) continue;
    const Tensor y = call_boxed(*op.op(), args)[0];
    r = verify::writing(*op.op(), *out, "out", {Dims(y.sizes()), y.dtype()}, args);
  }
  if (c.must_raise && !r.refuses())
    return "the specification of arguments does not refuse it; must be refused";
  if (!c.must_raise && !r.accepts()) return "the specification of arguments does not accept it: " + r.str();
  return "";
}

Verdict check_case(const json& text, const PackOperator& op, const SafetensorsReader& file,
                   Written& written) {
  const PackCase c = parse_case(text, file);
  if (std::string d = specification_differs(op, c); !d.empty()) return {Verdict::Failed, "ok", d};
  const Tensors got = op(c.args);
  if (c.must_raise) return {Verdict::Failed, "ok", "was accepted; must be refused"};
  const std::vector<std::optional<std::string>> names(c.outputs.begin(), c.outputs.end());
  std::string message = compare_all("output", got, names, file, written);
  if (c.has_vjp) {
    const std::string of_vjp = check_vjp(op, c, file, written);
    if (message.empty()) message = of_vjp;
  }
  return {message.empty() ? Verdict::Passed : Verdict::Failed, "ok", message};
}

Verdict run_case(const json& text, const PackOperator& op, const SafetensorsReader& file, Written& written) {
  const bool must_raise = text.value("error", false);
  if (!op.op()) return not_implemented("no such operator");
  if (text.value("gauge_dependent", false))
    return not_implemented("outputs are unique only up to signs or phases");
  try {
    return check_case(text, op, file, written);
  } catch (const NotExpressible& e) { return not_implemented(e.what()); } catch (const Error& e) {
    if (must_raise && e.code() != ErrorCode::Internal) return {Verdict::Passed, "refused", e.what()};
    return {Verdict::Failed, "refused", format("raised {}: {}", name(e.code()), e.what())};
  } catch (const MalformedPack&) { throw; } catch (const std::exception& e) {
    return {Verdict::Failed, "refused", format("raised something that is no lamella::Error: {}", e.what())};
  }
}

void count(const Verdict& v, const std::string& op, int number, Exceptions& exceptions, Tally& tally) {
  ++tally.cases;
  if (v.kind == Verdict::Passed) ++tally.passed;
  else if (v.kind == Verdict::Failed && exceptions.take(op, number)) ++tally.passed;
  else if (v.kind == Verdict::Failed) tally.fail(number, v.message);
  else {
    ++tally.not_implemented;
    if (tally.note.empty()) tally.note = v.message;
  }
}

void run_cases(const json& cases, const SafetensorsReader& file, const RunOptions& options,
               Exceptions& exceptions, std::map<std::string, Tally>& tallies, Written& written,
               json& verdicts) {
  if (!cases.is_array()) throw MalformedPack("its cases are no list");
  int number = -1;
  for (const json& text : cases) {
    ++number;
    const auto op_name = text.at("op").get<std::string>(), variant = text.at("variant").get<std::string>();
    if (!selected(options, op_name, variant)) continue;
    const std::string full = variant.empty() ? op_name : op_name + "." + variant;
    const Verdict v = run_case(text, PackOperator(op_name, variant), file, written);
    count(v, full, number, exceptions, tallies[full]);
    json verdict = text;
    verdict["status"] = v.status;
    if (!v.message.empty()) verdict["message"] = v.message;
    verdicts.push_back(std::move(verdict));
  }
}
}  // namespace

Exceptions::Exceptions(std::string_view text, const std::string& path) {
  const json list = json::parse(text, nullptr, false);
  LAMELLA_CHECK(list.is_array(), Usage, "reference: \"{}\" is no JSON list", path);
  for (const json& e : list) {
    const bool whole = e.is_object() && e.contains("op") && e["op"].is_string() && e.contains("case") &&
                       e["case"].is_number_integer() && e.contains("reason") && e["reason"].is_string();
    LAMELLA_CHECK(whole && !e["reason"].get<std::string>().empty(), Usage,
                  "reference: an entry of \"{}\" lacks op, case or reason", path);
    listed_.emplace(e["op"].get<std::string>(), e["case"].get<int>());
  }
}

bool Exceptions::take(const std::string& op, int case_number) {
  if (!listed_.count({op, case_number})) return false;
  used_.emplace(op, case_number);
  return true;
}

std::vector<std::string> Exceptions::unused() const {
  std::vector<std::string> out;
  for (const auto& e : listed_)
    if (!used_.count(e)) out.push_back(format("{} case {}", e.first, e.second));
  return out;
}

bool selected(const RunOptions& options, const std::string& op, const std::string& variant) {
  if (options.operators.empty()) return true;
  const std::string full = variant.empty() ? op : op + "." + variant;
  for (const std::string& wanted : options.operators)
    if (wanted == op || wanted == full) return true;
  return false;
}

void write_file(const std::string& path, const std::string& bytes) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  write_whole_file(path, bytes);
}

void run_pack_file(const std::string& name, std::string bytes, const RunOptions& options,
                   Exceptions& exceptions, std::map<std::string, Tally>& tallies) {
  Written written;
  json verdicts = json::array();
  try {
    const SafetensorsReader file(std::move(bytes));
    const auto cases = file.metadata().find("cases");
    if (cases == file.metadata().end()) throw MalformedPack("it has no cases");
    run_cases(json::parse(cases->second), file, options, exceptions, tallies, written, verdicts);
  } catch (const Error& e) {
    fail(e.code(), "reference: {}: {}", name, e.what());
  } catch (const std::exception& e) {  // MalformedPack, json
    fail(ErrorCode::Value, "reference: {}: {}", name, e.what());
  }
  if (!options.write_dir.empty() && !verdicts.empty())
    write_file(options.write_dir + "/" + name,
               write_safetensors(written,
                                 {{"cases", verdicts.dump(-1, ' ', false, json::error_handler_t::replace)}}));
}

}  // namespace lamella::tools
