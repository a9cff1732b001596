// Which operators the further kernels serve, and choosing them.
#include "lamella/ops/alternatives.h"

#include <algorithm>
#include <cstdlib>

#include "lamella/dispatch/table.h"
#include "lamella/kernels/kernels.h"
#include "lamella/ops/all.h"

namespace lamella {

namespace {
constexpr int kCpu = int(Device::CPU);
constexpr std::string_view kBuiltIn = "built_in";

/// Operators whose calls launch the kernel on results of their own. (Others call it inside.)
struct ServedBy {
  std::string_view kernel, op;
};
constexpr ServedBy kServed[] = {{"matmul", "mm"}, {"matmul", "bmm"},      {"matmul", "mv"},
                                {"sum", "sum"},   {"softmax", "softmax"}, {"copy", "clone"}};

/// Null where calls have no choice.
const Column* choices(const Op& op) {
  const Column* const c = op.column(kCpu);
  return c && c->alternatives.size() > 1 ? c : nullptr;
}
const Column& choices(std::string_view op) { return *choices(*OpTable::current().find(op)); }

bool has(const Column& column, std::string_view name) {
  return std::ranges::find(column.alternatives, name, &Alternative::name) != column.alternatives.end();
}

void add_one(std::string_view op, const kernels::AlternativeText& text) {
  const Op* const row = OpTable::current().find(op);
  const Column* const column = row->column(kCpu);
  if (column && has(*column, text.name)) return;
  const std::string before = column ? column->now().name : std::string(kBuiltIn);
  OpTable::set(op, kCpu,
               {.name = std::string(text.name), .kernel = text.run, .adds_in_a_row = text.adds_in_a_row});
  OpTable::choose(op, kCpu, before);
}

void add_all() {
  const ScopedOrigin library("");
  for (const kernels::AlternativeText& text : kernels::alternative_texts())
    for (const ServedBy& by : kServed)
      if (by.kernel == text.kernel) add_one(by.op, text);
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : between) + w;
  return out;
}

/// "clone: built_in, streaming; mm: built_in, own"
std::string all_with_alternatives() {
  std::vector<std::string> out;
  for (const Op* op : OpTable::current().rows())
    if (op->form == OpForm::Functional && !op->has(kTestOnly) && choices(*op))
      out.push_back(op->name + ": " + joined(kernels_of(op->name), ", "));
  return joined(out, "; ");
}

std::vector<std::string> launching(std::string_view kernel) {
  std::vector<std::string> out;
  for (const Op* row : OpTable::current().rows())
    if (row->form == OpForm::Functional && row->kernel.name == kernel && choices(*row))
      out.push_back(row->name);
  return out;
}

std::vector<std::string> names_in(const std::vector<std::string>& ops) {
  std::vector<std::string> out{std::string(kBuiltIn)};
  for (const std::string& op : ops)
    for (const Alternative& a : choices(op).alternatives)
      if (std::ranges::find(out, a.name) == out.end()) out.push_back(a.name);
  return out;
}

void choose_in(const std::vector<std::string>& ops, const std::string& kernel) {
  for (const std::string& op : ops) {
    const Column& c = choices(op);
    if (has(c, kernel) && c.now().name != kernel) OpTable::choose(op, kCpu, kernel);
  }
}

void choose_one(std::string_view option, const std::string& text) {
  const size_t at = text.find('=');
  LAMELLA_CHECK(at != std::string::npos && at > 0, Usage, "{}: given = \"{}\", expected OPERATOR=NAME of {}",
                option, text, all_with_alternatives());
  const std::string op = text.substr(0, at), kernel = text.substr(at + 1);
  std::vector<std::string> ops = operators_with_kernels(op);
  if (ops.empty()) ops = launching(op);
  LAMELLA_CHECK(!ops.empty(), Usage, "{}: {} has no alternatives on the CPU; expected one of {}", option, op,
                all_with_alternatives());
  const std::vector<std::string> names = names_in(ops);
  LAMELLA_CHECK(std::ranges::find(names, kernel) != names.end(), Usage,
                "{}: {} has no kernel \"{}\"; expected one of {}", option, op, kernel, joined(names, ", "));
  choose_in(ops, kernel);
}
}  // namespace

void add_alternatives() {
  install_operators();
  OpTable::current();  // what the environment asks for comes first
  add_all();
}

void choose_kernels(std::string_view option, const std::vector<std::string>& given) {
  if (given.empty()) return;
  add_alternatives();
  for (const std::string& text : given) choose_one(option, text);
}

std::vector<std::string> operators_with_kernels(std::string_view name) {
  const Op* const found = OpTable::current().find(name);
  if (!found) return {};
  const Op& op = *found->base;
  if (choices(op)) return {op.name};
  return op.composite ? launching(op.name) : std::vector<std::string>();
}

std::vector<std::string> kernels_of(std::string_view op) { return names_in(operators_with_kernels(op)); }

std::string chosen_kernel(std::string_view op) {
  const std::vector<std::string> ops = operators_with_kernels(op);
  return ops.empty() ? std::string(kBuiltIn) : choices(ops[0]).now().name;
}

void choose_kernel(std::string_view op, const std::string& kernel) {
  choose_in(operators_with_kernels(op), kernel);
}

void ops::choose_kernels_of_environment() {
  const char* const wish = std::getenv("LAMELLA_KERNEL");
  std::string_view rest = wish ? wish : "";
  if (!rest.empty()) add_all();
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    choose_one("LAMELLA_KERNEL", std::string(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
}

}  // namespace lamella
