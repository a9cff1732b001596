// What else a statement may be: detached handles, scopes, hooks, rules of one's own, results and lists of
// many.
#include <algorithm>

#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/transforms/custom.h"
#include "lamella/verify/programs/statements_draw.h"

namespace lamella::verify {

const std::vector<CustomFunction>& custom_functions() {
  static const std::vector<CustomFunction> all = [] {
    std::vector<CustomFunction> out;
    // The second result is a residual: derivatives of derivatives pass through it.
    const Function one = [](const Tensors& in) { return Tensors{mul(in[0], in[1]), tanh(in[0])}; };
    out.push_back({2,
                   "custom_vjp([](const Tensors& in) { Tensors ys{in[0] * in[1], tanh(in[0])}; return "
                   "std::pair(ys, Tensors{in[1], ys[1], in[0]}); }, [](const Tensors& kept, const Tensors& "
                   "cts) { return Tensors{cts[0] * kept[0] + cts[1] * (1 - kept[1] * kept[1]), cts[0] * "
                   "kept[2]}; })",
                   one,
                   custom_vjp(
                       [one](const Tensors& in) {
                         const Tensors ys = one(in);
                         return std::pair(ys, Tensors{in[1], ys[1], in[0]});
                       },
                       [](const Tensors& kept, const Tensors& cts) {
                         const Tensor slope = sub(1, mul(kept[1], kept[1]));
                         return Tensors{add(mul(cts[0], kept[0]), mul(cts[1], slope)), mul(cts[0], kept[2])};
                       })});
    // Results of two shapes.
    const Function two = [](const Tensors& in) { return Tensors{sin(in[0]), sum(mul(in[0], in[0]))}; };
    out.push_back({1,
                   "custom_vjp([](const Tensors& in) { return std::pair(Tensors{sin(in[0]), sum(in[0] * "
                   "in[0])}, in); }, [](const Tensors& kept, const Tensors& cts) { return Tensors{cts[0] * "
                   "cos(kept[0]) + cts[1] * kept[0] * 2}; })",
                   two,
                   custom_vjp([two](const Tensors& in) { return std::pair(two(in), in); },
                              [](const Tensors& kept, const Tensors& cts) {
                                const Tensor from_sum = mul(mul(cts[1], kept[0]), 2);
                                return Tensors{add(mul(cts[0], cos(kept[0])), from_sum)};
                              })});
    // A rule for forward mode, which reads the first value.
    const Function three = [](const Tensors& in) { return Tensors{tanh(in[0]), add(in[0], mul(in[1], 2))}; };
    out.push_back({2,
                   "custom_jvp([](const Tensors& in) { return Tensors{tanh(in[0]), in[0] + in[1] * 2}; }, "
                   "[](const Tensors&, const Tensors& ys, const Tensors& ts) { return Tensors{ts[0] * (1 - "
                   "ys[0] * ys[0]), ts[0] + ts[1] * 2}; })",
                   three, custom_jvp(three, [](const Tensors&, const Tensors& ys, const Tensors& ts) {
                     return Tensors{mul(ts[0], sub(1, mul(ys[0], ys[0]))), add(ts[0], mul(ts[1], 2))};
                   })});
    return out;
  }();
  return all;
}

namespace {

Tensor shown(const Scene& s, int handle) { return s.handles[size_t(handle)]; }

std::vector<int> of_sizes_of(const Scene& s, const Tensor& t) {
  std::vector<int> same;
  for (const int k : s.live())
    if (shown(s, k).dtype() == t.dtype() && std::ranges::equal(shown(s, k).sizes(), t.sizes()))
      same.push_back(k);
  return same;
}

std::optional<Statement> custom(Digits& d, const Scene& s) {
  Statement out{StatementKind::Custom};
  out.custom = d.below(uint32_t(custom_functions().size()));
  std::vector<int> real;
  for (const int k : s.live())
    if (shown(s, k).dtype() == DType::F64) real.push_back(k);
  if (real.empty()) return {};
  const int x = pick(d, real);
  out.links.push_back({{0, 0}, x});
  if (custom_functions()[out.custom].operands == 2)
    out.links.push_back({{1, 0}, pick(d, of_sizes_of(s, shown(s, x)))});
  return out;
}

/// Parts of complex handles as views, their conjugates, and complex numbers of two handles.
std::optional<Statement> of_parts(Digits& d, const Scene& s) {
  static constexpr const char* kNames[] = {"real_part", "imag", "conj_physical"};
  std::vector<int> complex;
  for (const int k : s.live())
    if (is_complex(shown(s, k).dtype())) complex.push_back(k);
  if (complex.empty() || d.below(4) == 3) {
    const int x = pick(d, s.live()), y = pick(d, of_sizes_of(s, shown(s, x)));
    return made(StatementKind::Call, operator_named("complex"), {shown(s, x), shown(s, y)},
                {{{0, 0}, x}, {{1, 0}, y}});
  }
  const uint32_t kind = d.below(3);
  const int x = pick(d, complex);
  return made(kind < 2 ? StatementKind::View : StatementKind::Call, operator_named(kNames[kind]),
              {shown(s, x)}, {{{0, 0}, x}});
}

std::optional<Statement> detached(Digits& d, const Scene& s) {
  const int x = pick(d, s.live());
  return made(StatementKind::View, operator_named("detach"), {shown(s, x)}, {{{0, 0}, x}});
}

std::optional<Statement> scoped(Digits& d, const Scene& s) {
  Statement out{StatementKind::Scope};
  static constexpr ScopeKind kOpened[] = {ScopeKind::NoGrad, ScopeKind::NoGrad, ScopeKind::NoGradLevels,
                                          ScopeKind::EnableGrad};
  const bool closes = s.open > 0 && d.below(3) != 2;
  if (!closes) out.scope = kOpened[d.below(s.open > 0 ? 4 : 3)];
  return out;
}

std::optional<Statement> hooked(Digits& d, const Scene& s) {
  static constexpr double kFactors[] = {1, 2, -0.5, 1.5};
  if (s.hookable.empty()) return {};
  const auto [handle, made_at] = s.hookable[d.below(uint32_t(s.hookable.size()))];
  Statement out{StatementKind::Hook};
  out.links = {{{0, 0}, handle}};
  out.made_at = made_at;
  out.factor = kFactors[d.below(4)];
  out.retains = d.below(2) == 1;
  return out;
}

/// cat or stack of up to 17 tensors, each of a few handles again and again; now and then of 300.
std::optional<Statement> joined(Digits& d, const Scene& s) {
  static constexpr uint32_t kMany[] = {3, 2, 9, 12, 17};
  const int x = pick(d, s.live());
  const Tensor t = shown(s, x);
  uint32_t n = kMany[d.below(5)];
  if (t.numel() == 1 && d.below(8) == 7) n = 300;
  const bool stacks = t.rank() == 0 || d.below(2) == 1;
  const std::vector<int> same = of_sizes_of(s, t);
  Tensors list;
  std::vector<Statement::Link> links;
  Digits order(d.rest() + 1);
  for (uint32_t k = 0; k < n; ++k) {
    if (order.rest() == 0) order = Digits(d.rest() * 7 + k + 1);
    const uint32_t who = order.below(uint32_t(same.size()) + 1);  // one more: a constant
    if (who < same.size()) links.push_back({{0, int(k)}, same[who]});
    list.push_back(who < same.size() ? shown(s, same[who]) : plain_copy(t));
  }
  if (links.empty()) return {};
  const int64_t dim = t.rank() > 0 ? int64_t(d.below(uint32_t(t.rank()))) : 0;
  return made(StatementKind::Call, operator_named(stacks ? "stack" : "cat"), {list, dim}, std::move(links));
}

/// Operators with several results; those that are no floating tensors are no handles.
std::optional<Statement> several(Digits& d, const Scene& s) {
  const uint32_t kind = d.below(4);
  const int x = pick(d, s.live());
  const Tensor t = shown(s, x);
  const std::vector<Statement::Link> links{{{0, 0}, x}};
  if (t.rank() == 0) return made(StatementKind::Call, operator_named("sort"), {t}, links);
  const int64_t dim = int64_t(d.below(uint32_t(t.rank()))), size = t.size(int(dim));
  if (kind == 0) return made(StatementKind::Call, operator_named("sort"), {t, dim, d.below(2) == 1}, links);
  if (kind == 1) return made(StatementKind::View, operator_named("split"), {t, int64_t{1}, dim}, links);
  if (kind == 2) {
    const auto first = int64_t(d.below(uint32_t(size + 1)));
    return made(StatementKind::View, operator_named("split_with_sizes"), {t, Dims{first, size - first}, dim},
                links);
  }
  return made(StatementKind::Call, operator_named("native_layer_norm"),
              {t, Dims{t.size(-1)}, Tensor(), Tensor(), 1e-2}, links);
}

}  // namespace

std::optional<Statement> view_of_part(Digits& d, const Scene& s, int handle) {
  return made(StatementKind::View, operator_named(d.below(2) == 0 ? "real_part" : "imag"), {shown(s, handle)},
              {{{0, 0}, handle}});
}

std::optional<Statement> draw_more(Digits& d, const Scene& scene) {
  using Make = std::optional<Statement> (*)(Digits&, const Scene&);
  static constexpr Make kMakes[] = {custom, detached, scoped, hooked,   joined, several,
                                    hooked, scoped,   custom, of_parts, hooked, of_parts};
  return kMakes[d.below(std::size(kMakes))](d, scene);
}

}  // namespace lamella::verify
