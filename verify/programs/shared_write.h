// Writes whose operands share memory: drawn views of one buffer, lanes that they are mapped over, and
// engines.
#pragma once

#include "lamella/ops/functions/view.h"
#include "lamella/verify/case/lanes.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// A chain of views; `model` is what it shows of a plain buffer.
struct Path {
  std::vector<UnaryFunction> steps = {};
  std::string text = "b";
  Tensor model = {};
  void step(const char* name, const std::string& more, UnaryFunction f) {
    model = f(model);
    text = format("{}({}, {})", name, text, more);
    steps.push_back(std::move(f));
  }
  void slice(int64_t d, int64_t from, int64_t to, int64_t by = 1) {
    step("slice", format("{}, {}, {}, {}", d, from, to, by),
         [=](const Tensor& x) { return lamella::slice(x, d, from, to, by); });
  }
  void resize(const char* name, const Dims& sizes, Tensor (*f)(const Tensor&, IntArg)) {
    step(name, format("Dims{}", braces(sizes)), [=](const Tensor& x) { return f(x, sizes); });
  }
  static std::string braces(const Dims& sizes) {
    std::string out;
    for (const int64_t s : sizes) out += (out.empty() ? "" : ", ") + std::to_string(s);
    return "{" + out + "}";
  }
  Tensor of(Tensor base) const {
    for (const UnaryFunction& f : steps) base = f(base);
    return base;
  }

  /// `windows`: of the buffer by strides, too, whose elements may lie in each other.
  void draw_step(Draw& d, bool windows);
  /// Of any view one with the `lanes` first of these sizes, and others that broadcast to, or are, the rest.
  void fit(Draw& d, const Dims& want, int lanes, bool exact);
};

/// A tensor of the call: the target, which comes first, or an operand.
struct Part {
  Path path = {};
  uint32_t mapped = 0;    ///< levels of vmap, outermost first; their dims come first
  bool last = false;      ///< but the outermost one, which comes last
  bool apart = false;     ///< lies in memory of its own
  bool argument = false;  ///< is one of the level's
  int dim(int level) const {
    if (!(mapped >> level & 1)) return kNone;
    return last && (mapped & ((1u << level) - 1)) == 0 ? -1 : 0;
  }
};

/// Where the buffer lies: in plain memory; in values of vmap (two lanes, alike), base autograd, jvp or vjp;
/// in plain memory of which arguments of jvp or vjp are views.
enum class Engine : uint8_t { Plain, Lanes, Base, Jvp, Vjp, ArgumentsOfJvp, ArgumentsOfVjp };

/// An operator in place, or out=, of views of `start` under levels of vmap. Of a case: total.
struct SharedWrite {
  const Case& c;
  const Op* form;
  std::vector<size_t> part_of = {};  ///< by tensor of the case
  std::vector<Part> parts = std::vector<Part>(1);
  Dims sizes = {};  ///< of the levels of vmap
  Engine engine = Engine::Plain;
  bool no_grad = false;
  Tensor start = {};

  explicit SharedWrite(Case& the_case);
  void end_layouts(Draw& d, int depth);
  int depth() const { return sizes.size(); }
  bool is_argument(const Part& p) const { return engine >= Engine::ArgumentsOfJvp && p.argument; }

  /// The parts, of the buffer in `b`.
  Tensors views_of(const Tensor& b) const;
  void call(const Tensors& ts) const;
  void under_vmap(const Tensors& ts, int level = 0) const;
  void written(const Tensors& ts) const;
  /// Into `memory`, where the engine writes it: what the buffer is afterwards.
  Tensor run(const Tensor& memory) const;
  Tensors lane_of(Tensors ts, int64_t number) const;
  int64_t lanes() const;
  /// C++ that does the same, and prints what the buffer is.
  std::string cpp(const Tensor& want) const;
};

}  // namespace lamella::verify
LAMELLA_API_END
