// What a statement may be: calls, views, writes and fresh memory, from a few digits.
#include <algorithm>

#include "lamella/ops/number.h"
#include "lamella/verify/programs/statements_draw.h"

namespace lamella::verify {

std::vector<int> Scene::live() const {
  std::vector<int> out;
  for (int k = int(handles.size()); k-- > 0;)
    if (handles[size_t(k)].defined()) out.push_back(k);
  return out;
}

bool Scene::is_of_input(int handle) const {
  for (size_t k = 0; k < inputs; ++k)
    if (handles[k].defined() && handles[k].shares_storage(handles[size_t(handle)])) return true;
  return false;
}

bool Scene::is_shared(int handle) const {
  const Tensor& t = handles[size_t(handle)];
  return std::ranges::any_of(
      handles, [&](const Tensor& o) { return o.defined() && !o.is_same(t) && o.shares_storage(t); });
}

std::vector<int> Scene::targets(Digits& d) const {
  if (only >= 0) return {only};
  std::vector<int> out, shared;
  const bool any = writes_inputs && d.below(3) == 2;
  for (const int k : live())
    if (any || !is_of_input(k)) {
      out.push_back(k);
      if (is_shared(k)) shared.push_back(k);
    }
  return only_shared || (d.below(4) != 3 && !shared.empty()) ? shared : out;
}

const Op* operator_named(const std::string& name) { return OpTable::current().find(name); }

double eighths(Digits& d) {
  static constexpr double kValues[] = {0.5, 1.25, -0.75, 0.625, 1.75, -1.375, 0.875, -0.375};
  return kValues[d.below(8)];
}

int pick(Digits& d, const std::vector<int>& among) { return among[d.below(uint32_t(among.size()))]; }

std::optional<Statement> made(StatementKind kind, const Op* op, Values args,
                              std::vector<Statement::Link> links) {
  if (!op) return {};
  Statement s{kind, op, canonical(*op, std::move(args)), std::move(links)};
  return s;
}

namespace {

const Op* find(const std::string& name) { return operator_named(name); }

bool broadcasts_to(Ints from, Ints to) {
  if (from.size() > to.size()) return false;
  for (size_t k = 1; k <= from.size(); ++k)
    if (from[from.size() - k] != 1 && from[from.size() - k] != to[to.size() - k]) return false;
  return true;
}

Tensor of(const Scene& s, int handle) { return s.handles[size_t(handle)]; }

struct Unary {
  const char* name;
  int extra;  ///< 0: none; 1: bounds; 2: an exponent; 3: a number to fill with
};
constexpr Unary kUnary[] = {{"neg", 0},  {"sin", 0},   {"cos", 0},        {"exp", 0}, {"tanh", 0},
                            {"abs", 0},  {"log", 0},   {"reciprocal", 0}, {"pow", 2}, {"clamp", 1},
                            {"sqrt", 0}, {"clone", 0}, {"sign", 0},       {"fill", 3}};

/// Arguments behind the first.
Values extras(Digits& d, int extra, const Tensor& like) {
  if (extra == 1) return {number_like(-eighths(d) - 1.5, like), number_like(0.3125 + d.below(2), like)};
  if (extra == 2) return {number_like(double(2 + d.below(2)), like)};
  if (extra == 3) return {Scalar(eighths(d))};
  return {};
}

std::optional<Statement> unary(Digits& d, const Scene& s, const Case&) {
  const Unary& u = kUnary[d.below(std::size(kUnary) - 1)];
  const int x = pick(d, s.live());
  Values args = extras(d, u.extra, of(s, x));
  args.insert(args.begin(), of(s, x));
  return made(StatementKind::Call, find(u.name), args, {{{0, 0}, x}});
}

std::optional<Statement> unary_in_place(Digits& d, const Scene& s, const Case&) {
  const Unary& u = kUnary[d.below(std::size(kUnary))];
  const std::vector<int> targets = s.targets(d);
  if (targets.empty()) return {};
  const int x = pick(d, targets);
  Values args = extras(d, u.extra, of(s, x));
  args.insert(args.begin(), of(s, x));
  return made(StatementKind::InPlace, find(std::string(u.name) + "_"), args, {{{0, 0}, x}});
}

constexpr const char* kBinary[] = {"mul", "add", "sub", "maximum", "div", "minimum", "mul", "add"};

/// Handles that may stand beside `x`: those that broadcast to it, or (if `either`) it to them.
std::vector<int> beside(const Scene& s, int x, bool either) {
  std::vector<int> out;
  for (const int k : s.live())
    if (broadcasts_to(of(s, k).sizes(), of(s, x).sizes()) ||
        (either && broadcasts_to(of(s, x).sizes(), of(s, k).sizes())))
      out.push_back(k);
  return out;
}

std::optional<Statement> binary(Digits& d, const Scene& s, const Case&) {
  const char* const name = kBinary[d.below(std::size(kBinary))];
  const int x = pick(d, s.live()), y = pick(d, beside(s, x, true));
  return made(StatementKind::Call, find(name), {of(s, x), of(s, y)}, {{{0, 0}, x}, {{1, 0}, y}});
}

std::optional<Statement> with_number(Digits& d, const Scene& s, const Case&) {
  const char* const name = kBinary[d.below(3)];
  const int x = pick(d, s.live());
  return made(StatementKind::Call, find(name), {of(s, x), number_like(eighths(d), of(s, x))}, {{{0, 0}, x}});
}

std::optional<Statement> binary_in_place(Digits& d, const Scene& s, const Case&) {
  static constexpr const char* kNames[] = {"mul_", "copy_", "add_",     "copy_",
                                           "sub_", "mul_",  "maximum_", "div_"};
  const char* const name = kNames[d.below(std::size(kNames))];
  const std::vector<int> targets = s.targets(d);
  if (targets.empty()) return {};
  const int x = pick(d, targets);
  std::vector<int> others = beside(s, x, false);
  if (s.only >= 0)  // by what has derivatives, of the target's dtype
    std::erase_if(others,
                  [&](int k) { return size_t(k) >= s.inputs || of(s, k).dtype() != of(s, x).dtype(); });
  if (others.empty()) return {};
  const int y = pick(d, others);
  return made(StatementKind::InPlace, find(name), {of(s, x), of(s, y)}, {{{0, 0}, x}, {{1, 0}, y}});
}

std::optional<Statement> number_in_place(Digits& d, const Scene& s, const Case&) {
  static constexpr const char* kNames[] = {"mul_", "add_", "copy_"};
  const char* const name = kNames[d.below(3)];
  const std::vector<int> targets = s.targets(d);
  if (targets.empty()) return {};
  const int x = pick(d, targets);
  return made(StatementKind::InPlace, find(name), {of(s, x), number_like(eighths(d), of(s, x))},
              {{{0, 0}, x}});
}

/// Among: sum and cumsum over a dim, softmax, flip, mm, cat, stack, where, select_scatter, tril, prod, amax.
std::optional<Statement> other(Digits& d, const Scene& s, const Case&) {
  const uint32_t kind = d.below(12);
  const int x = pick(d, s.live());
  const Tensor t = of(s, x);
  const auto one = [&](const char* name, Values more) {
    more.insert(more.begin(), t);
    return made(StatementKind::Call, find(name), more, {{{0, 0}, x}});
  };
  const int64_t dim = t.rank() > 0 ? int64_t(d.below(uint32_t(t.rank()))) : 0;
  if (kind == 0 || t.rank() == 0) return one("sum", {Dims{dim}, d.below(2) == 1});
  if (kind == 1) return one("cumsum", {dim});
  if (kind == 2) return one("softmax", {dim});
  if (kind == 3) return one("flip", {Dims{dim}});
  if (kind == 4) return one("prod", {Dims{dim}});
  if (kind == 5) return one("amax", {Dims{dim}});
  if (kind == 6) return one("cumprod", {dim});
  const auto two = [&](const std::vector<int>& fit, auto&& make) -> std::optional<Statement> {
    if (fit.empty()) return {};
    return make(pick(d, fit));
  };
  std::vector<int> same, factors;
  for (const int k : s.live()) {
    const Tensor o = of(s, k);
    if (std::ranges::equal(o.sizes(), t.sizes())) same.push_back(k);
    if (t.rank() == 2 && o.rank() > 0 && o.rank() <= 2 && o.size(0) == t.size(1)) factors.push_back(k);
  }
  if (kind == 7)
    return two(factors, [&](int y) {
      return made(StatementKind::Call, find("matmul"), {t, of(s, y)}, {{{0, 0}, x}, {{1, 0}, y}});
    });
  if (kind == 8 || kind == 9)
    return two(same, [&](int y) {
      return made(StatementKind::Call, find(kind == 8 ? "cat" : "stack"), {Tensors{t, of(s, y)}, dim},
                  {{{0, 0}, x}, {{0, 1}, y}});
    });
  if (kind == 10)
    return two(same, [&](int y) {
      Tensor mask = make_tensor(t.sizes(), DType::Bool);
      uint32_t bits = d.rest() + 1;
      for (int64_t i = 0; i < mask.numel(); ++i) mask.data<bool>()[i] = (bits >> (i % 4)) & 1;
      return made(StatementKind::Call, find("where"), {mask, t, of(s, y)}, {{{1, 0}, x}, {{2, 0}, y}});
    });
  Dims row(t.sizes());
  row.erase(int(dim));
  std::vector<int> rows;
  for (const int k : s.live())
    if (std::ranges::equal(of(s, k).sizes(), Ints(row))) rows.push_back(k);
  return two(rows, [&](int y) {
    return made(StatementKind::Call, find("select_scatter"),
                {t, of(s, y), dim, int64_t(d.below(uint32_t(t.size(int(dim)))))}, {{{0, 0}, x}, {{1, 0}, y}});
  });
}

/// Sizes of the same number of elements, of at most rank 3.
Dims regrouped(Digits& d, const Tensor& t) {
  const uint32_t kind = d.below(3);
  if (kind == 0) return {t.numel()};
  if (kind == 1 && t.numel() % 2 == 0) return {2, t.numel() / 2};
  return {t.numel(), 1};
}

std::optional<Statement> view(Digits& d, const Scene& s, const Case&) {
  const uint32_t kind = d.below(14);
  std::vector<int> sources = s.live();
  if (d.below(3) != 2) {  // views of inputs cannot be written
    std::vector<int> own;
    for (const int k : sources)
      if (!s.is_of_input(k)) own.push_back(k);
    if (!own.empty()) sources = own;
  }
  if (s.only >= 0) sources = {s.only};
  const int x = pick(d, sources);
  const Tensor t = of(s, x);
  if (s.only >= 0 && is_complex(t.dtype()) && d.below(2) == 0) return view_of_part(d, s, x);
  const int rank = t.rank();
  const auto one = [&](const char* name, Values more) {
    more.insert(more.begin(), t);
    return made(StatementKind::View, find(name), more, {{{0, 0}, x}});
  };
  const auto dim = [&] { return int64_t(d.below(uint32_t(rank))); };
  if (kind == 8) return one("contiguous", {});
  if (kind == 9) return one("unsqueeze", {int64_t(d.below(uint32_t(rank + 1)))});
  if (kind == 10) return one("reshape", {regrouped(d, t)});
  if (kind == 11) return one("view", {regrouped(d, t)});
  if (rank == 0) return one("expand", {Dims{2}});
  const int64_t at = dim(), size = t.size(int(at));
  if (kind == 0 || kind == 1) return one("select", {at, int64_t(d.below(uint32_t(size)))});
  if (kind == 2 || kind == 3) {
    const auto begin = int64_t(d.below(uint32_t(size)));
    return one("slice",
               {at, begin, begin + 1 + int64_t(d.below(uint32_t(size - begin))), 1 + int64_t(d.below(2))});
  }
  if (kind == 4 || kind == 5) return one("transpose", {at, dim()});
  if (kind == 6) return one("split", {int64_t(1 + d.below(uint32_t(size))), at});
  if (kind == 7) {
    Dims order(rank);
    for (int k = 0; k < rank; ++k) order[k] = (k + int(at)) % rank;
    return one("permute", {order});
  }
  if (kind == 12 && rank == 2) return one("diagonal", {int64_t(d.below(2))});
  if (kind == 13) return one("squeeze", {});
  Dims sizes(t.sizes());
  sizes.insert(0, 2);
  return one("expand", {sizes});
}

/// out=: into a handle that has the sizes of the result.
std::optional<Statement> out(Digits& d, const Scene& s, const Case&) {
  static constexpr const char* kNames[] = {"mul_out", "sin_out", "add_out", "exp_out", "sub_out", "neg_out"};
  const uint32_t kind = d.below(6);
  const std::vector<int> targets = s.targets(d);
  if (targets.empty()) return {};
  const int to = pick(d, targets);
  const std::vector<int> operands = beside(s, to, false);
  std::vector<int> same;
  for (const int k : operands)
    if (std::ranges::equal(of(s, k).sizes(), of(s, to).sizes())) same.push_back(k);
  const int x = pick(d, same);
  if (kind % 2 == 1)
    return made(StatementKind::Out, find(kNames[kind]), {of(s, to), of(s, x)}, {{{0, 0}, to}, {{1, 0}, x}});
  const int y = pick(d, operands);
  return made(StatementKind::Out, find(kNames[kind]), {of(s, to), of(s, x), of(s, y)},
              {{{0, 0}, to}, {{1, 0}, x}, {{2, 0}, y}});
}

/// Plain memory, which later statements may write: zeros, or numbers, in the sizes of a handle.
std::optional<Statement> fresh(Digits& d, const Scene& s, const Case&) {
  const Tensor like = of(s, pick(d, s.live()));
  Statement made{StatementKind::Fresh};
  made.fresh = make_tensor(like.sizes(), like.dtype());
  const bool zero = d.below(2) == 1;
  uint32_t i = 0;
  each_part<double>(made.fresh, [&](double& part) {
    Digits from(d.rest() + i++);
    part = zero ? 0 : eighths(from);
  });
  return made;
}

std::optional<Statement> like_another(Digits& d, const Scene& s, const Case&) {
  static constexpr const char* kNames[] = {"zeros_like", "ones_like"};
  const char* const name = kNames[d.below(2)];
  const int x = pick(d, s.live());
  return made(StatementKind::Call, find(name), {of(s, x)}, {{{0, 0}, x}});
}

std::optional<Statement> drop(Digits& d, const Scene& s, const Case&) {
  const std::vector<int> live = s.live();
  if (live.size() < 2) return {};
  Statement made{StatementKind::Drop};
  made.links = {{{0, 0}, pick(d, live)}};
  return made;
}

using Make = std::optional<Statement> (*)(Digits&, const Scene&, const Case&);
struct Share {
  uint32_t weight;
  Make make;
};
constexpr Share kShares[] = {{8, binary},      {12, view},          {10, binary_in_place},
                             {5, unary},       {5, unary_in_place}, {4, number_in_place},
                             {3, with_number}, {4, other},          {3, own_statement},
                             {3, out},         {3, fresh},          {1, like_another},
                             {2, drop}};

}  // namespace

std::optional<Statement> own_statement(Digits& d, const Scene& s, const Case& c) {
  const uint32_t form = d.below(4);
  Statement made{StatementKind::Call, &c.op, c.args};
  made.own = true;
  for (const Case::Slot& slot : c.inexact()) {
    std::vector<int> fit;
    const std::vector<int> among =
        form == 3 && slot.param == 0 && slot.element == 0 ? s.targets(d) : s.live();
    for (const int k : among)
      if (c.at(slot).dtype() == DType::F64 && std::ranges::equal(of(s, k).sizes(), c.at(slot).sizes()))
        fit.push_back(k);
    if (!fit.empty()) made.links.push_back({slot, pick(d, fit)});
  }
  if (made.links.empty()) return {};
  if (c.op.is_view()) made.kind = StatementKind::View;
  const Op* const in_place = find(c.op.name + "_");
  const Case::Slot& first = made.links[0].slot;
  if (form == 3 && in_place && first.param == 0 && first.element == 0) {
    made.kind = StatementKind::InPlace;
    made.op = in_place;
  }
  return made;
}

std::optional<Statement> draw_statement(Digits& d, const Scene& scene, const Case& c, Wanted wanted) {
  if (scene.live().empty()) return {};
  static constexpr Make kWrites[] = {binary_in_place, number_in_place, binary_in_place, out, unary_in_place};
  if (wanted == Wanted::Result) return d.below(2) == 0 ? with_number(d, scene, c) : binary(d, scene, c);
  if (wanted == Wanted::View) return view(d, scene, c);
  if (wanted == Wanted::Write && scene.only >= 0) return binary_in_place(d, scene, c);
  if (wanted == Wanted::Write) return kWrites[d.below(std::size(kWrites))](d, scene, c);
  if (d.below(4) == 3) return draw_more(d, scene);
  uint32_t total = 1;  // 0 is no statement
  for (const Share& s : kShares) total += s.weight;
  uint32_t at = d.below(total);
  if (at-- == 0) return {};
  for (const Share& s : kShares) {
    if (at < s.weight) return s.make(d, scene, c);
    at -= s.weight;
  }
  return {};
}

}  // namespace lamella::verify
