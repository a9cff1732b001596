// `lamella ops`: the operator table, for people and as JSON.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "lamella/dispatch/call.h"
#include "lamella/dispatch/nearest.h"
#include "lamella/dispatch/types.h"
#include "lamella/verify/text/op_text.h"

#include "command_line.h"
#include "commands.h"
#include "plugin.h"
#include "whole_file.h"

namespace {
using lamella::Op;

std::string rule_text(const std::vector<lamella::BoundFormula>& rules, std::string_view absent,
                      const Op& op) {
  if (!absent.empty()) return "none: " + std::string(absent);
  return rules.empty() && op.composite ? "by composition" : "rule";
}

std::vector<std::string_view> dtypes(const Op& op) {
  std::vector<std::string_view> out;
  for (const lamella::DType d : lamella::verify::sampled_dtypes(op)) out.push_back(lamella::name(d));
  return out;
}

/// Those that were set: of columns of plug-ins, and in the place of the library's.
nlohmann::ordered_json cells(const Op& op) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const lamella::Column& c : op.columns)
    for (size_t k = 1; k < c.alternatives.size(); ++k)
      out.push_back({{"column", lamella::key_name(c.key)},
                     {"name", c.alternatives[k].name},
                     {"origin", c.alternatives[k].from},
                     {"chosen", k == c.chosen}});
  return out;
}

/// Keys that have a column: devices that the library or a plug-in has taken, and types.
std::vector<int> columns() {
  std::vector<int> keys;
  for (const lamella::ClaimedKey& c : lamella::claimed_keys()) keys.push_back(int(c.device));
  for (int key = lamella::kFirstTypeKey; key < lamella::kAutogradKey; ++key)
    if (lamella::tensor_type(key)) keys.push_back(key);
  return keys;
}

/// By which line of NOTE: [columns] each column serves it.
nlohmann::ordered_json served(const Op& op) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const int key : columns()) out[lamella::key_name(key)] = lamella::name(op.served[key]);
  return out;
}

/// Types that have derivative rules of their own for it, and who brought those.
nlohmann::ordered_json rules_of_types(const Op& op) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const lamella::RulesOfType& r : op.rules_of_types)
    out.push_back({{"type", lamella::key_name(r.key)}, {"from", r.from}});
  return out;
}

nlohmann::ordered_json listed(const Op& op) {
  nlohmann::ordered_json out{{"name", op.name},
                             {"schema", str(op.schema)},
                             {"shape_class", name(op.shape)},
                             {"dtypes", dtypes(op)},
                             {"jvp", rule_text(op.jvp, op.no_jvp, op)},
                             {"vjp", rule_text(op.vjp, op.no_vjp, op)},
                             {"batch", lamella::verify::batch_text(op)},
                             {"doc", op.doc},
                             {"origin", op.origin},
                             {"cells", cells(op)},
                             {"served", served(op)}};
  if (!op.rules_of_types.empty()) out["rules_of_types"] = rules_of_types(op);
  return out;
}

/// What serves an operator that has nothing of its own in a column; empty: it has, or is composed of others.
std::string_view hole(const Op& op, int key) {
  if (op.served[key] == lamella::Served::Hole) return "nothing";
  if (op.served[key] != lamella::Served::Fallback) return "";
  const lamella::TensorType* const type = lamella::tensor_type(key);
  if (!type) return "its key's fallback";
  return !type->handle ? "to_strided" : type->to_strided ? "the type, or to_strided" : "the type";
}

struct Hole {
  std::string op, column;
  std::string_view served;
};
std::vector<Hole> holes(const std::vector<const Op*>& ops) {
  std::vector<Hole> out;
  for (const int key : columns())
    for (const Op* op : ops)
      if (const std::string_view by = hole(*op, key); !by.empty())
        out.push_back({op->name, lamella::key_name(key), by});
  return out;
}

/// --holes: pairs without a kernel, one a line, and how many there are in each column.
void print_holes(const std::vector<const Op*>& ops, const std::string& json_path) {
  const std::vector<Hole> found = holes(ops);
  if (!json_path.empty()) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Hole& h : found)
      list.push_back({{"operator", h.op}, {"column", h.column}, {"served_by", h.served}});
    return lamella::tools::write_output(json_path, list.dump(1) + "\n");
  }
  for (const Hole& h : found)
    std::printf("%-24s %-12s %s\n", h.op.c_str(), h.column.c_str(), std::string(h.served).c_str());
  for (const int key : columns()) {
    const std::string name = lamella::key_name(key);
    std::printf("%s: %td of %zu operators without a kernel\n", name.c_str(),
                std::ranges::count(found, name, &Hole::column), ops.size());
  }
}

/// --typed: what the build's lists of typed functions say, as the table has it: tools/typed_api_test.py.
void print_typed() {
  for (const Op* op : lamella::OpTable::current().rows()) {
    if (op->takes_functions) continue;  // of transforms, which call them themselves
    int tensors = 0;
    for (const lamella::Param& p : op->schema.params)
      tensors += p.kind == lamella::ParamKind::Tensor && !p.optional;
    const bool numbers =
        op->shape == lamella::ShapeClass::Broadcast && tensors == 2 && op->form != lamella::OpForm::Out;
    std::cout << str(op->schema) << '\t' << (numbers ? "numbers" : "tensors") << '\t' << op->doc << '\n';
  }
}

/// Those of these names, or all; of all their forms, the functional ones or all.
std::vector<const Op*> listed_ops(const std::vector<std::string>& names, bool all_forms) {
  const lamella::OpTable& table = lamella::OpTable::current();
  std::vector<const Op*> out;
  for (const std::string& name : names) {
    const Op* const op = table.find(name);
    LAMELLA_CHECK(op, UnknownOperator, "there is no operator \"{}\"{}", name,
                  lamella::nearest_operators(name));
    out.push_back(op);
  }
  if (!names.empty()) return out;
  for (const Op* op : table.rows())
    if (!op->has(lamella::kTestOnly) && (op->form == lamella::OpForm::Functional || all_forms))
      out.push_back(op);
  return out;
}
}  // namespace

int main_ops(int argc, char** argv) {
  lamella::tools::CommandLine app("Lists the operators of the table", "lamella ops");
  std::string json_path;
  bool schemas = false, all = false, only_holes = false, typed = false;
  std::vector<std::string> plugins, names;
  app.add_option("NAME", names, "operators to list (default: all)");
  app.add_option("--json", json_path, "write the list as JSON to FILE (- for standard output)");
  app.add_flag("--schemas", schemas, "print the schemas of functional operators alone");
  app.add_flag("--typed", typed,
               "print each form's schema and doc, and whether it takes numbers for tensors");
  app.add_flag("--all", all, "list in-place and out= forms too");
  app.add_flag("--holes", only_holes,
               "print each (operator, column) without a kernel, and what serves it: of devices, and of types "
               "that plug-ins add; composites are made of others");
  app.add_option("--load", plugins, "shared library that defines operators, cells or columns")
      ->allow_extra_args(false);
  app.read(argc, argv);
  for (const std::string& file : plugins) lamella::tools::load_plugin(file);
  if (typed) {
    print_typed();
    return 0;
  }
  const std::vector<const Op*> ops = listed_ops(names, all);
  if (only_holes) {
    print_holes(ops, json_path);
    return 0;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Op* op : ops) {
    if (schemas) {
      std::cout << str(op->schema) << '\n';
      continue;
    }
    if (json_path.empty())
      std::printf("%-90s %-10s vjp %s, batch %s\n", str(op->schema).c_str(),
                  std::string(name(op->shape)).c_str(), rule_text(op->vjp, op->no_vjp, *op).c_str(),
                  lamella::verify::batch_text(*op).c_str());
    else list.push_back(listed(*op));
  }
  if (!json_path.empty()) lamella::tools::write_output(json_path, list.dump(1) + "\n");
  return 0;
}
