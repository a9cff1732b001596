// Statement programs as C++.
#include <algorithm>

#include "lamella/verify/programs/statements.h"

namespace lamella::verify {

namespace {

std::string braces(Ints all) {
  std::string out = "{";
  for (size_t k = 0; k < all.size(); ++k) out += (k ? ", " : "") + std::to_string(all[k]);
  return out + "}";
}

/// Constants of a call under names of their own; what is linked has the names of handles.
struct Named {
  std::string declarations;
  std::vector<std::string> names;

  Named(const Statement& s, size_t index) {
    int next = 0;
    const auto add = [&](const Tensor& t, int param, int element) {
      if (!t.defined()) return;
      for (const Statement::Link& l : s.links)
        if (l.slot.param == param && l.slot.element == element)
          return names.push_back(format("h{}", l.handle));
      names.push_back(format("k{}_{}", index, next++));
      declarations += cpp_tensor(names.back(), t);
    };
    for (size_t p = 0; p < s.args.size(); ++p) {
      if (const auto* t = std::get_if<Tensor>(&s.args[p])) add(*t, int(p), 0);
      if (const auto* list = std::get_if<Tensors>(&s.args[p]))
        for (size_t k = 0; k < list->size(); ++k) add((*list)[k], int(p), int(k));
    }
  }
};

/// The statement as a line; `next` is the handle of its first result.
std::string line(const Statement& s, size_t index, int& next) {
  if (s.kind == StatementKind::Drop) return format("    h{} = Tensor();\n", s.target());
  if (s.kind == StatementKind::Scope) {
    static constexpr const char* kNames[] = {"NoGrad", "EnableGrad", "NoGradLevels"};
    if (s.scope == ScopeKind::End) return "    scopes.pop_back();\n";
    return format("    scopes.push_back(std::make_shared<{}>());\n", kNames[int(s.scope)]);
  }
  if (s.kind == StatementKind::Hook)
    return format("    if (is_grad_required(h{})) add_hook(h{}, [](const Tensor& ct) { return ct * {}; });",
                  s.target(), s.target(), Scalar(s.factor).str()) +
           (s.retains ? format("  // and retain_grad(h{})", s.target()) : "") + "\n";
  if (s.kind == StatementKind::Custom) {
    std::vector<std::string> operands;
    for (const Statement::Link& l : s.links) operands.push_back(format("h{}", l.handle));
    std::string out = format("    const Tensors r{} = ", index) + custom_functions()[s.custom].cpp + "(" +
                      cpp_list(operands) + ");\n";
    for (size_t k = 0; k < s.kept.size(); ++k) out += format("    Tensor h{} = r{}[{}];\n", next++, index, k);
    return out;
  }
  if (s.kind == StatementKind::Fresh) return "  " + cpp_tensor(format("h{}", next++), s.fresh);
  const Named named(s, index);
  const std::string call = cpp_call(*s.op, s.args, named.names);
  if (s.kept.empty()) return "    " + call + ";\n";
  if (s.kept.size() == 1) return format("    Tensor h{} = ", next++) + call + "[0];\n";
  std::string out = format("    const Tensors r{} = ", index) + call + ";\n";
  for (size_t k = 0; k < s.kept.size(); ++k)
    if (s.kept[k]) out += format("    Tensor h{} = r{}[{}];\n", next++, index, k);
  return out;
}

}  // namespace

std::string cpp_placed(const std::string& name, const Tensor& t) {
  const int64_t room = int64_t(t.impl()->storage->nbytes) / itemsize(t.dtype());
  if (room == t.numel() && t.is_contiguous()) return cpp_tensor(name, t);
  const Tensor all = make_view_unchecked(t, Dims{room}, Dims{1}, 0);
  return cpp_tensor(name + "_memory", all) +
         format("  Tensor {} = make_view_unchecked({}_memory, Dims{}, Dims{}, {});\n", name, name,
                braces(t.sizes()), braces(t.strides()), t.impl()->offset);
}

std::string Script::cpp() const {
  std::string out;
  for (size_t k = 0; k < inputs_.size(); ++k) out += cpp_placed(format("x{}", k), inputs_[k]);
  for (size_t k = 0; k < captures_.size(); ++k) out += cpp_placed(format("c{}", k), captures_[k]);
  out += cpp_tensors("u", weights_);
  std::string body;
  const bool scopes =
      std::ranges::any_of(statements_, [](const Statement& s) { return s.kind == StatementKind::Scope; });
  if (scopes) body += "    std::vector<std::shared_ptr<void>> scopes;\n";
  int next = 0;
  for (size_t k = 0; k < inputs_.size(); ++k) body += format("    Tensor h{} = xs[{}];\n", next++, k);
  for (size_t k = 0; k < captures_.size(); ++k) body += format("    Tensor h{} = c{};\n", next++, k);
  for (size_t i = 0; i < statements_.size(); ++i) {
    const Statement& s = statements_[i];
    if (s.op) out += Named(s, i).declarations;
    body += line(s, i, next);
  }
  std::vector<std::string> live;
  for (size_t k = 0; k < alive_.size(); ++k)
    if (alive_[k]) live.push_back(format("h{}", k));
  out += "  const Tensors us" + cpp_names("u", weights_.size()) + ";\n";
  out += "  const Function f = [&](const Tensors& xs) {\n" + body + "    return Tensors" + cpp_list(live) +
         ";\n  };\n";
  return out +
         "  const auto weighted = [&](const Tensors& ys) {\n    Tensor sum = zeros({}, DType::F64);\n"
         "    for (size_t k = 0; k < ys.size(); ++k) sum = sum + lamella::sum(real(ys[k] * conj(us[k])));\n"
         "    return sum;\n  };\n"
         "  const auto along = [](const Tensor& a, const Tensor& b) { return lamella::sum(real(conj(a) * "
         "b)).item<double>(); };\n";
}

}  // namespace lamella::verify
