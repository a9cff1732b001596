// A stack as the body of main(): what a counterexample prints.
#include "lamella/verify/programs/stack.h"

namespace lamella::verify {

namespace {
std::string x_of(size_t k) { return "x[" + std::to_string(k) + "]"; }

/// What the inner function of a layer that captures receives, as arguments of the function below.
std::string arguments(const Layer& layer) {
  std::vector<std::string> names;
  for (size_t k = 0, j = 0; k < layer.active.size(); ++k)
    names.push_back(layer.active[k] ? "y[" + std::to_string(j++) + "]" : x_of(k));
  return cpp_list(names);
}

std::string active_inputs(const Layer& layer) {
  std::vector<std::string> names;
  for (size_t k = 0; k < layer.active.size(); ++k)
    if (layer.active[k]) names.push_back(x_of(k));
  return cpp_list(names);
}

std::string weighted(const std::string& below, const std::vector<std::string>& weights,
                     const std::string& args) {
  std::string sum;
  for (size_t k = 0; k < weights.size(); ++k)
    sum += (k ? " + " : "") + std::string("sum(real(r[") + std::to_string(k) + "] * " + weights[k] + "))";
  return "[&](const Tensors& x) { const Tensors r = " + below + "(" + args + "); return " + sum + "; }";
}

std::string layer_text(const Layer& l, const std::string& below, const std::string& name) {
  std::string out, inner = "[&](const Tensors& y) { return " + below + "(" + arguments(l) + "); }";
  std::vector<std::string> constants;
  for (size_t k = 0; k < l.constants.size(); ++k) {
    constants.push_back("c" + name + "_" + std::to_string(k));
    out += cpp_tensor(constants.back(), l.constants[k]);
  }
  const std::string head = "  const Function " + name + " = [=](const Tensors& x) -> Tensors { return ";
  const std::string options = "VmapOptions{" + cpp_dims(l.in_dims) + ", " + cpp_dims(l.out_dims) +
                              ", Randomness::Error, " + std::to_string(l.size) + "}";
  const std::string active = active_inputs(l);
  if (l.kind == Layer::Share) {
    return out + "  const Function " + name + " = [=](Tensors x) { x.push_back(x[0]); return " + below +
           "(x); };\n";
  } else if (l.kind == Layer::Vmap && !l.capture) {
    return out + "  const Function " + name + " = vmap(" + below + ", " + options + ");\n";
  } else if (l.kind == Layer::Vmap) {
    InDims dims = l.in_dims;
    std::erase(dims, kNone);
    return out + head + "vmap(Function(" + inner + "), VmapOptions{" + cpp_dims(dims) + ", " +
           cpp_dims(l.out_dims) + ", Randomness::Error, " + std::to_string(l.size) + "})(" + active +
           "); };\n";
  } else if (l.kind == Layer::Vjp) {
    return out + head + "vjp(" + inner + ", " + active + ").pullback(" + cpp_list(constants) + "); };\n";
  } else if (l.kind == Layer::Jvp) {
    if (l.scaled)
      for (size_t k = 0, j = 0; k < l.active.size(); ++k)
        if (l.active[k]) constants[j] = x_of(k) + " * " + constants[j], ++j;
    return out + head + "jvp(" + inner + ", " + active + ", " + cpp_list(constants) + ").tangents; };\n";
  }
  std::vector<std::string> argnums;
  for (size_t k = 0; k < l.active.size(); ++k)
    if (l.active[k]) argnums.push_back(std::to_string(k));
  return out + head + "grad(ScalarFunction(" + weighted(below, constants, "x") + "), std::vector<int>" +
         cpp_list(argnums) + ")(x); };\n";
}

std::string program_text(const Program& p, size_t inputs) {
  static constexpr const char* kAfter[] = {
      "y",
      "sin(y)",
      "y * y",
      "log(real(y * conj(y)) + 1.0)",
      "y * sum(x[0])",
      "y * conj(y)",
      "[&] { Tensor t = clone(y); if (t.numel() == 0) return t; const Tensor part = t.rank() > 0 ? select(t, "
      "0, 0) : t; mul_(part, part); return t; }()",
      "[&] { const Tensor t = y - y, view = unsqueeze(t, 0); copy_(view, unsqueeze(y, 0)); const "
      "Tensor before = clone(t); mul_(t, y); return select(view, 0, 0) + before; }()"};
  std::string out = "  const Function g0 = [=](const Tensors& x) {\n    Tensors z(x.begin(), x.begin() + " +
                    std::to_string(inputs) + ");\n";
  if (p.before) {
    out +=
        "    Tensor s = sum(real(x[0]));\n    for (size_t k = 1; k < z.size(); ++k) s = s + "
        "sum(real(x[k]));\n"
        "    for (Tensor& t : z) t = t * (sin(s) * 0.25 + 1.25);\n";
  }
  out +=
      "    Tensors ys;\n    for (const Tensor& y : f0(z))\n      if (is_inexact(y.dtype())) ys.push_back(" +
      std::string(kAfter[p.after]) + ");\n";
  if (p.extra) out += "    for (Tensor& y : ys) y = y * (sum(real(x.back() * conj(x.back()))) + 1.0);\n";
  return out + "    return ys;\n  };\n";
}
}  // namespace

std::string Stack::cpp(const Tensors& want) const {
  std::string out = cpp_declarations(case_.args) + "  const Function f0 = " + cpp_function(case_, slots_) +
                    ";\n" + program_text(program_, slots_.size());
  std::string below = "g0";
  for (size_t k = 0; k < layers_.size(); ++k) {
    const std::string name = "g" + std::to_string(k + 1);
    out += layer_text(layers_[k], below, name);
    below = name;
  }
  std::vector<std::string> names;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    names.push_back("in" + std::to_string(k));
    out += cpp_tensor(names.back(), inputs_[k]);
  }
  if (want.empty())
    return out + "  for (const Tensor& r : " + below + "(" + cpp_list(names) +
           ")) std::cout << str(r) << \"\\n\";\n";
  return out + cpp_tensors("want", want) + "  const Tensors got = " + below + "(" + cpp_list(names) +
         "), want = " + cpp_names("want", want.size()) +
         ";\n  for (size_t k = 0; k < got.size(); ++k)\n    std::cout << \"got      \" << str(got[k]) << "
         "\"\\nexpected \" << str(want[k]) << \"\\n\";\n";
}

}  // namespace lamella::verify
