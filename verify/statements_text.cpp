// Statement programs as C++.
#include "lamella/verify/statements.h"

namespace lamella::verify {

namespace {

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

std::string Script::cpp() const {
  std::string out = cpp_tensors("x", inputs_) + cpp_tensors("c", captures_) + cpp_tensors("u", weights_);
  std::string body;
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
         "    for (size_t k = 0; k < ys.size(); ++k) sum = sum + lamella::sum(ys[k] * us[k]);\n"
         "    return sum;\n  };\n";
}

}  // namespace lamella::verify
