// Columns of the CPU by name, through OpTable::choose.
#include "kernel_option.h"

#include <algorithm>

#include "lamella/dispatch/table.h"
#include "lamella/ops/alternatives.h"

namespace lamella::tools {

namespace {
constexpr std::string_view kBuiltIn = "built_in";

const Column* column_on_cpu(const Op& op) {
  const Column* const c = op.column(int(Device::CPU));
  return c && c->alternatives.size() > 1 ? c : nullptr;
}

std::string joined_by_commas(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

/// "clone: streaming, memcpy; mm: own, openblas"
std::string all_with_alternatives() {
  std::string out;
  for (const Op* op : OpTable::current().rows()) {
    const Column* const c =
        op->has(kTestOnly) || op->form != OpForm::Functional ? nullptr : column_on_cpu(*op);
    if (!c) continue;
    std::vector<std::string> names;
    for (const Alternative& a : c->alternatives) names.push_back(a.name);
    out += (out.empty() ? "" : "; ") + op->name + ": " + joined_by_commas(names);
  }
  return out;
}
}  // namespace

void add_kernel_option(CommandLine& app, std::vector<std::string>& given) {
  app.add_option("--kernel", given,
                 "OP=NAME: run this alternative of the operator on the CPU (`lamella bench OP` compares "
                 "them); repeatable")
      ->allow_extra_args(false);
}

std::vector<std::string> operators_with_kernels(std::string_view name) {
  const OpTable& table = OpTable::current();
  const Op* const op = table.find(name);
  if (op && column_on_cpu(*op->base)) return {op->base->name};
  std::vector<std::string> out;
  for (const Op* row : table.rows())
    if (row->form == OpForm::Functional && row->kernel.name == name && column_on_cpu(*row))
      out.push_back(row->name);
  return out;
}

std::vector<std::string> kernels_of(std::string_view name) {
  std::vector<std::string> out{std::string(kBuiltIn)};
  for (const std::string& op : operators_with_kernels(name))
    for (const Alternative& a : column_on_cpu(*OpTable::current().find(op))->alternatives)
      if (std::ranges::find(out, a.name) == out.end()) out.push_back(a.name);
  return out;
}

std::string chosen_kernel(std::string_view name) {
  const std::vector<std::string> ops = operators_with_kernels(name);
  return ops.empty() ? std::string(kBuiltIn) : column_on_cpu(*OpTable::current().find(ops[0]))->now().name;
}

void choose_kernel(std::string_view name, const std::string& kernel) {
  for (const std::string& op : operators_with_kernels(name)) {
    const Column& c = *column_on_cpu(*OpTable::current().find(op));
    if (std::ranges::find(c.alternatives, kernel, &Alternative::name) != c.alternatives.end() &&
        c.now().name != kernel)
      OpTable::choose(op, int(Device::CPU), kernel);
  }
}

void choose_kernels(const std::vector<std::string>& given) {
  for (const std::string& text : given) {
    const size_t at = text.find('=');
    LAMELLA_CHECK(at != std::string::npos, Usage, "--kernel: got \"{}\", expected OPERATOR=NAME of {}", text,
                  all_with_alternatives());
    const std::string op = text.substr(0, at), kernel = text.substr(at + 1);
    LAMELLA_CHECK(!operators_with_kernels(op).empty(), Usage,
                  "--kernel: {} has no alternatives on the CPU; expected one of {}", op,
                  all_with_alternatives());
    const std::vector<std::string> names = kernels_of(op);
    LAMELLA_CHECK(std::ranges::find(names, kernel) != names.end(), Usage,
                  "--kernel: {} has no kernel \"{}\"; expected one of {}", op, kernel,
                  joined_by_commas(names));
    choose_kernel(op, kernel);
  }
}

}  // namespace lamella::tools
