// Draws writes whose operands share memory, and runs them.
#include "lamella/verify/programs/shared_write.h"

#include <algorithm>

#include "lamella/ops/functions/factory.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {
int64_t elements(const Dims& sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}
}  // namespace

void Path::draw_step(Draw& d, bool windows) {
  if (windows && d.one_in(4)) {
    const int64_t room = int64_t(model.impl()->storage->nbytes) / itemsize(model.dtype());
    const Dims sizes{d.range(1, 3), d.range(1, 3)}, strides{d.range(0, 5), d.range(0, 5)};
    const int64_t last = (sizes[0] - 1) * strides[0] + (sizes[1] - 1) * strides[1];
    if (last >= room) return;
    const int64_t from = d.range(0, room - 1 - last);
    return step("make_view", format("Dims{}, Dims{}, {}", braces(sizes), braces(strides), from),
                [=](const Tensor& x) { return make_view(x, sizes, strides, from); });
  }
  const int64_t rank = model.rank(), n = model.numel();
  const uint32_t kind = d.below(7);
  if (rank == 0) return;
  const int64_t k = d.range(0, rank - 1), j = d.range(0, rank - 1), size = model.size(int(k));
  const int64_t at = d.range(0, size - 1), by = d.range(1, 2);
  if (kind <= 1) return slice(k, at, size - (at < size - 1 ? d.range(0, 1) : 0), by);
  if (kind == 2 && model.is_contiguous() && n % (at + 2) == 0)
    return resize("view", {n / (at + 2), at + 2}, view);
  if (kind == 3 && k != j)
    return step("diagonal", format("0, {}, {}", k, j), [=](const Tensor& x) { return diagonal(x, 0, k, j); });
  if (kind == 4)
    return step("select", format("{}, {}", k, at), [=](const Tensor& x) { return select(x, k, at); });
  if (kind == 5 && rank == 1 && d.flag()) return resize("expand", {2, size}, expand);
  step("transpose", format("{}, {}", k, j), [=](const Tensor& x) { return transpose(x, k, j); });
}

void Path::fit(Draw& d, const Dims& want, int lanes, bool exact) {
  while (model.rank() > want.size()) step("select", "0, 0", [](const Tensor& x) { return select(x, 0, 0); });
  while (model.rank() < (exact ? want.size() : lanes))
    step("unsqueeze", "0", [](const Tensor& x) { return unsqueeze(x, 0); });
  Dims sizes(model.sizes());
  for (int k = 0; k < model.rank(); ++k) {
    const int64_t has = model.size(k);
    const int64_t wanted = want[k < lanes ? k : k + want.size() - model.rank()];
    const int64_t from = d.range(0, std::max<int64_t>(has - wanted, 0));
    if (has != wanted) slice(k, from, has > wanted ? from + wanted : 1);
    sizes[k] = exact || k < lanes ? wanted : model.size(k);
  }
  if (!std::ranges::equal(sizes, model.sizes())) resize("expand", sizes, expand);
}

SharedWrite::SharedWrite(Case& the_case) : c(the_case), form(nullptr) {
  Draw& d = the_case.draw;
  const bool out = d.one_in(4);
  form = OpTable::current().find(c.op.name + (out ? "_out" : "_"));
  const Tensor like = c.at(c.tensors()[0]);
  static const Dims kSizes[] = {{6}, {12}, {3, 4}, {2, 2, 3}, {3, 3}, {2, 2, 2}};
  const int64_t factor = d.range(1, 12), shift = d.range(0, 12);
  const Dims& shape = kSizes[d.below(6)];
  const int64_t n = elements(shape);
  std::vector<double> values;
  for (int64_t k = 0; k < n; ++k) values.push_back(double(1 + (k * factor + shift) % 13));
  start = tensor_of(shape, values, like.dtype());
  engine = Engine(d.below(7));
  no_grad = d.flag();
  if (!is_inexact(like.dtype()) || !both_ways(*c.op.base)) engine = Engine(int(engine) % 2);
  if (engine <= Engine::Lanes) no_grad = false;
  const bool windows = engine == Engine::Plain || engine >= Engine::ArgumentsOfJvp;
  parts.reserve(c.tensors().size() + 1);  // `target` stays where it is
  Part& target = parts[0];
  target.path.model = start;
  target.argument = d.one_in(4);
  std::vector<Path> prefixes{target.path};
  for (uint32_t k = d.below(4); k > 0; --k)
    target.path.draw_step(d, windows), prefixes.push_back(target.path);
  const int depth = int(d.below(3));
  uint32_t free = uint32_t(target.path.model.rank());
  for (int l = 0; l < depth; ++l) {
    const bool mapped = free > 0 && !d.one_in(5);
    sizes.push_back(mapped ? target.path.model.size(__builtin_popcount(target.mapped)) : d.range(1, 2));
    target.mapped |= uint32_t(mapped) << l, free -= mapped;
  }
  const int taken = __builtin_popcount(target.mapped);
  const Dims lane_sizes(target.path.model.sizes().subspan(size_t(taken)));
  for (size_t k = 0; k < c.tensors().size(); ++k) {
    const uint32_t kind = d.below(8), mapped = d.below(1u << depth);
    if ((k == 0 && !out) || kind == 7) {
      part_of.push_back(0);
      continue;
    }
    Part p{prefixes[d.below(uint32_t(prefixes.size()))]};
    for (uint32_t s = d.below(3); s > 0; --s) p.path.draw_step(d, windows);
    p.mapped = kind % 2 ? mapped : target.mapped;
    p.apart = kind == 6, p.argument = d.flag();
    Dims want;
    for (int l = 0; l < depth; ++l)
      if (p.mapped >> l & 1) want.push_back(sizes[l]);
    const int first = want.size();
    for (const int64_t n : lane_sizes) want.push_back(n);
    p.path.fit(d, want, first, out && k == 0);
    part_of.push_back(parts.size());
    parts.push_back(p);
  }
  end_layouts(d, depth);
}

/// Mapped dims last or first, and the levels that map nothing.
void SharedWrite::end_layouts(Draw& d, int depth) {
  for (Part& p : parts) {
    p.last = p.mapped && p.path.model.rank() > 1 && d.flag();
    if (!p.last) continue;
    Dims order;
    for (int k = 1; k <= p.path.model.rank(); ++k) order.push_back(k % p.path.model.rank());
    p.path.resize("permute", order, permute);
  }
  // A level that maps nothing runs the call once.
  for (int l = 0; l < depth; ++l)
    if (std::ranges::none_of(parts, [l](const Part& p) { return p.mapped >> l & 1; })) sizes[l] = 1;
}

Tensor SharedWrite::run(const Tensor& memory) const {
  if (engine == Engine::Plain) {
    written(views_of(memory));
    return memory;
  }
  if (engine == Engine::Lanes) {
    const auto f = [&](const Tensor& x) {
      const Tensor y = x * 1;
      written(views_of(y));
      return y;
    };
    return vmap(f)(stacked({memory, memory}, 0));
  }
  if (engine == Engine::Base) {
    const Tensor y = requires_grad(memory) + 0;
    written(views_of(y));
    return plain_copy(y);
  }
  const Tensors whole = views_of(memory);
  Tensors xs{memory}, tangents;
  const bool arguments = engine >= Engine::ArgumentsOfJvp;
  if (arguments) xs = {zeros({}, memory.dtype())};
  for (size_t k = 0; k < parts.size(); ++k)
    if (is_argument(parts[k])) xs.push_back(whole[k]);
  for (const Tensor& x : xs) tangents.push_back(ones_like(x));
  const Function f = [&](const Tensors& given) {
    const Tensor y = given[0] * 1;
    Tensors ts = arguments ? whole : views_of(y);
    for (size_t k = 0, next = 1; k < parts.size(); ++k)
      if (is_argument(parts[k])) ts[k] = given[next++];
    written(ts);
    return Tensors{y};
  };
  const bool forward = engine == Engine::Jvp || engine == Engine::ArgumentsOfJvp;
  const Tensor y = forward ? jvp(f, xs, tangents).values[0] : vjp(f, xs).values[0];
  return arguments ? memory : y;
}

int64_t SharedWrite::lanes() const { return elements(sizes); }

Tensors SharedWrite::views_of(const Tensor& b) const {
  const Tensor other = plain_copy(start);
  Tensors out;
  for (const Part& p : parts) out.push_back(p.path.of(p.apart ? other : b));
  return out;
}

void SharedWrite::call(const Tensors& ts) const {
  Values args = c.args;
  for (size_t k = 0; k < part_of.size(); ++k) entry(args, c.tensors()[k]) = ts[part_of[k]];
  if (form->form == OpForm::Out) args.insert(args.begin(), ts[0]);
  call_boxed(*form, args);
}

void SharedWrite::under_vmap(const Tensors& ts, int level) const {
  if (level == depth()) return call(ts);
  VmapOptions o{{}, {0}, Randomness::Error, sizes[level]};
  for (const Part& p : parts) o.in_dims.push_back(p.dim(level));
  vmap([&](const Tensors& lanes) { return under_vmap(lanes, level + 1), Tensors{}; }, o)(ts);
}

void SharedWrite::written(const Tensors& ts) const {
  std::optional<NoGrad> off;
  if (no_grad) off.emplace();
  under_vmap(ts);
}

Tensors SharedWrite::lane_of(Tensors ts, int64_t number) const {
  for (int l = 0; l < depth(); number /= sizes[l++])
    for (size_t k = 0; k < ts.size(); ++k)
      if (const int dim = parts[k].dim(l); dim != kNone)
        ts[k] = lane(ts[k], dim < 0 ? ts[k].rank() - 1 : 0, number % sizes[l]);
  return ts;
}

namespace {
/// `all` of the views `t`, in the scope that the engine opens.
std::string written_text(const SharedWrite& w) { return w.no_grad ? "NoGrad off; all(t); " : "all(t); "; }

/// What the buffer is, as a C++ expression, behind the declarations of `views` and `all`.
std::string run_text(const SharedWrite& w) {
  const std::string made = "const Tensors t = views(b); " + written_text(w);
  const bool forward = w.engine == Engine::Jvp || w.engine == Engine::ArgumentsOfJvp;
  const std::string level = forward ? "jvp" : "vjp";
  switch (w.engine) {
    case Engine::Plain: return "[&] { const Tensor b = clone(start); " + made + "return b; }()";
    case Engine::Base: return "[&] { const Tensor b = requires_grad(start) + 0; " + made + "return b; }()";
    case Engine::Lanes:
      return "vmap([&](const Tensor& x) { const Tensor b = x * 1; " + made +
             "return b; })(stack({start, start}, 0))";
    case Engine::Jvp:
    case Engine::Vjp:
      return level + "([&](const Tensors& x) { const Tensor b = x[0] * 1; " + made +
             "return Tensors{b}; }, {start}" + (forward ? ", {ones_like(start)}" : "") + ").values[0]";
    default: break;
  }
  std::string given, taken, none;
  for (size_t k = 0, next = 1; k < w.parts.size(); ++k)
    if (w.is_argument(w.parts[k])) {
      given += format(", v[{}]", k), none += format(", ones_like(v[{}])", k);
      taken += format("t[{}] = x[{}]; ", k, next++);
    }
  return "[&] { const Tensor b = clone(start); const Tensors v = views(b);\n    " + level +
         "([&](const Tensors& x) { Tensors t = v; " + taken + written_text(w) +
         "return Tensors{x[0] * 1}; }, {zeros({})" + given + "}" +
         (forward ? ", {ones({})" + none + "}" : "") + "); return b; }()";
}
}  // namespace

std::string SharedWrite::cpp(const Tensor& want) const {
  std::string views, all = "one";
  for (const Part& p : parts)
    views += (views.empty() ? "" : ",\n                   ") +
             (p.apart ? "[&](const Tensor& b) { return " + p.path.text + "; }(clone(start))" : p.path.text);
  for (int l = depth() - 1; l >= 0; --l) {
    std::string dims;
    for (const Part& p : parts)
      dims += (dims.empty() ? "" : ", ") + (p.dim(l) == kNone ? "kNone" : std::to_string(p.dim(l)));
    all = "vmap(" + all + ", VmapOptions{{" + dims + "}, {0}, Randomness::Error, " +
          std::to_string(sizes[l]) + "})";
  }
  std::vector<std::string> names;
  if (form->form == OpForm::Out) names.push_back("t[0]");
  for (const size_t k : part_of) names.push_back(format("t[{}]", k));
  Values args = c.args;
  if (form->form == OpForm::Out) args.insert(args.begin(), start);
  return cpp_declarations(c.args) + cpp_tensor("start", start) +
         "  const auto views = [&](Tensor b) {\n    return Tensors{" + views +
         "};\n  };\n  const Function one = [&](const Tensors& t) {\n    " + cpp_call(*form, args, names) +
         ";\n    return Tensors{};\n  };\n  const Function all = " + all +
         ";\n  const Tensor got = " + run_text(*this) + ";\n" + cpp_tensor("want", want) +
         "  std::cout << \"got      \" << str(got) << \"\\nexpected \" << str(want) << '\\n';\n";
}

}  // namespace lamella::verify
