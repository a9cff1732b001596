// The law of argnums: which arguments a derivative is taken in, in what order, counted from either end.
#include <algorithm>

#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/transforms/jacobian.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/subject.h"
#include "lamella/verify/programs/graph.h"

namespace lamella::verify {

namespace {

/// A chain of several arguments of differing shapes; the last ones, one of them of integers, go into a result
/// of their own each.
struct ManyArguments {
  const Chain& chain;
  Tensors args, weights;
  size_t in_chain;

  ManyArguments(Case& c, const Chain& drawn) : chain(drawn), args(drawn.inputs()), in_chain(args.size()) {
    const uint32_t more = 1 + c.draw.below(2);
    for (uint32_t k = 0; k < more; ++k) args.push_back(c.draw.tensor(c.draw.shape(0, 2), DType::F64));
    if (c.draw.one_in(3)) args.push_back(ones({2}, DType::I64));
  }
  bool differentiable(size_t i) const { return is_inexact(args[i].dtype()); }

  Tensors results(const Tensors& xs) const {
    Tensors ys = chain.smooth_function()({xs.begin(), xs.begin() + long(in_chain)});
    for (size_t k = in_chain; k < xs.size(); ++k) ys.push_back(mul(xs[k], xs[k]) + ys.size());
    std::erase_if(ys, [](const Tensor& y) { return !is_inexact(y.dtype()); });
    return ys;
  }
  Tensor value(const Tensors& xs) const {
    Tensor total = zeros({}, DType::F64);
    const Tensors ys = results(xs);
    for (size_t k = 0; k < ys.size(); ++k) total = total + real(sum(conj(weights[k]) * ys[k]));
    return total;
  }
  /// Of one argument, the others as they are.
  Tensors with(size_t i, const Tensor& x) const {
    Tensors out = args;
    out[i] = x;
    return out;
  }
  int64_t numel(const std::vector<size_t>& at) const {
    int64_t n = 0;
    for (const size_t i : at) n += args[i].numel();
    return n;
  }
};

/// Distinct differentiable arguments in any order, and how they are named.
struct ChosenArguments {
  std::vector<size_t> at;
  std::vector<int> argnums;
  ChosenArguments(Case& c, const ManyArguments& m) {
    std::vector<size_t> left;
    for (size_t i = 0; i < m.args.size(); ++i)
      if (m.differentiable(i)) left.push_back(i);
    for (uint32_t n = 1 + c.draw.below(uint32_t(left.size())); n > 0; --n) {
      // The simplest choice takes them from the back: positions in the list are not those of arguments.
      const size_t k = left.size() - 1 - c.draw.below(uint32_t(left.size()));
      at.push_back(left[k]);
      left.erase(left.begin() + long(k));
      argnums.push_back(c.draw.flag() ? int(at.back()) - int(m.args.size()) : int(at.back()));
    }
  }
};

std::string argnums_list(const std::vector<int>& argnums) {
  std::string out;
  for (const int a : argnums) out += (out.empty() ? "" : ", ") + std::to_string(a);
  return "{" + out + "}";
}

/// All that take argnums, on scalar functions.
struct TakesArgnums {
  const char* name;
  std::function<Tensors(const ManyArguments&, const std::vector<int>&)> run;
  size_t values_before, aux_behind;
};
const std::vector<TakesArgnums>& all_that_take_argnums() {
  const auto aux_of = [](const ManyArguments& m) -> AuxFunction {
    return [&m](const Tensors& xs) { return std::pair(Tensors{m.value(xs)}, Tensors{m.value(xs)}); };
  };
  const auto joined = [](std::pair<Tensors, Tensors> r) {
    r.first.insert(r.first.end(), r.second.begin(), r.second.end());
    return r.first;
  };
  static const std::vector<TakesArgnums> all = {
      {"grad",
       [](const ManyArguments& m, const std::vector<int>& a) {
         return grad([&](const Tensors& xs) { return m.value(xs); }, a)(m.args);
       },
       0, 0},
      {"value_and_grad",
       [](const ManyArguments& m, const std::vector<int>& a) {
         return value_and_grad([&](const Tensors& xs) { return m.value(xs); }, a)(m.args);
       },
       1, 0},
      {"grad_has_aux",
       [aux_of](const ManyArguments& m, const std::vector<int>& a) {
         return grad_has_aux(aux_of(m), a)(m.args);
       },
       0, 1},
      {"value_and_grad_has_aux",
       [aux_of](const ManyArguments& m, const std::vector<int>& a) {
         return value_and_grad_has_aux(aux_of(m), a)(m.args);
       },
       1, 1},
      {"jacrev",
       [](const ManyArguments& m, const std::vector<int>& a) {
         return jacrev([&](const Tensors& xs) { return Tensors{m.value(xs)}; }, {.argnums = a})(m.args);
       },
       0, 0},
      {"jacrev_has_aux",
       [aux_of, joined](const ManyArguments& m, const std::vector<int>& a) {
         return joined(jacrev_has_aux(aux_of(m), {.argnums = a})(m.args));
       },
       0, 1},
      {"jacfwd",
       [](const ManyArguments& m, const std::vector<int>& a) {
         return jacfwd([&](const Tensors& xs) { return Tensors{m.value(xs)}; }, {.argnums = a})(m.args);
       },
       0, 0},
  };
  return all;
}

/// Gradients in each argument alone, by a pullback that knows no argnums.
Tensors one_by_one_gradients(const ManyArguments& m, const std::vector<size_t>& at) {
  Tensors out;
  for (const size_t i : at)
    out.push_back(vjp([&](const Tensors& x) { return Tensors{m.value(m.with(i, x[0]))}; }, {m.args[i]})
                      .pullback({ones({}, DType::F64)})[0]);
  return out;
}

bool any_complex(const ManyArguments& m, const std::vector<size_t>& at) {
  return std::ranges::any_of(at, [&](size_t i) { return is_complex(m.args[i].dtype()); });
}

Finding wrong_gradients(const ManyArguments& m, const ChosenArguments& chosen) {
  const Tensors want = one_by_one_gradients(m, chosen.at);
  const Tensor value = m.value(m.args);
  for (const TakesArgnums& f : all_that_take_argnums()) {
    const bool jacobian = f.name[0] == 'j';
    if (jacobian && (any_complex(m, chosen.at) || m.numel(chosen.at) > 40)) continue;
    Tensors got = f.run(m, chosen.argnums);
    if (got.size() != want.size() + f.values_before + f.aux_behind)
      return {What::Results, format("{}: {} results", f.name, got.size())};
    if (jacobian && !finite(got)) continue;  // a slope that is infinite, times a tangent of 0
    Finding d = f.values_before ? unlike_gradients({got[0]}, {value}) : "";
    if (d.empty() && f.aux_behind) d = unlike_gradients({got.back()}, {value});
    got.erase(got.begin(), got.begin() + long(f.values_before));
    got.resize(want.size());
    if (d.empty()) d = unlike_gradients(got, want);
    if (!d.empty()) return format("{}: ", f.name) + d;
  }
  return "";
}

/// Blocks of second derivatives: (p, q) of the list is that of arguments p and q alone.
Finding wrong_hessian(const ManyArguments& m, const ChosenArguments& chosen) {
  if (any_complex(m, chosen.at) || m.numel(chosen.at) > 8) return "";
  const size_t n = chosen.at.size();
  const Tensors got =
      hessian([&](const Tensors& xs) { return Tensors{m.value(xs)}; }, {.argnums = chosen.argnums})(m.args);
  if (got.size() != n * n) return format("hessian: {} blocks, expected {}", got.size(), n * n);
  for (size_t p = 0; p < n; ++p)
    for (size_t q = 0; q < n; ++q) {
      const Tensor want = jacfwd([&](const Tensor& y) {
        const Tensors other = m.with(chosen.at[q], y);
        return jacrev([&](const Tensor& x) {
          Tensors all = other;
          all[chosen.at[p]] = p == q ? x : x + 0;
          return m.value(all);
        })(other[chosen.at[p]]);
      })(m.args[chosen.at[q]]);
      if (const Finding d = unlike_gradients({got[p * n + q]}, {want}); !d.empty())
        return format("hessian, block ({}, {}): ", p, q) + d;
    }
  return "";
}

/// A list that names an argument twice, one that is not there, or one of integers.
Finding accepts_bad_argnums(const ManyArguments& m, ChosenArguments chosen, uint32_t word) {
  const int n = int(m.args.size());
  std::vector<int>& a = chosen.argnums;
  ErrorCode code = ErrorCode::Usage;
  const size_t k = word / 8 % a.size();
  switch (word % 5) {
    case 0: a.push_back(a[k]); break;
    case 1: a.insert(a.begin(), a[k] < 0 ? a[k] + n : a[k] - n); break;
    case 2: a[k] = n; break;
    case 3: a[k] = -n - 1; break;
    default:
      if (m.differentiable(size_t(n - 1))) return "";
      a[k] = word >> 16 & 1 ? n - 1 : -1, code = ErrorCode::DType;
  }
  for (const TakesArgnums& f : all_that_take_argnums()) {
    if (f.name[0] == 'j' && any_complex(m, chosen.at)) continue;
    const Status s = status_of([&] { f.run(m, a); });
    if (!s.raised || s.code != code) return format("{} with {}: ", f.name, argnums_list(a)) + str(s);
  }
  return "";
}

Verdict argnums_choose(Case& c) {
  const Chain chain(c);
  if (!chain.valid()) return Verdict::discard();
  ManyArguments m(c, chain);
  const ChosenArguments chosen(c, m);
  const uint32_t word = c.draw.word();
  Tensors plain;
  if (status_of([&] { plain = m.results(m.args); }).raised) return Verdict::discard();
  for (const Tensor& y : plain) m.weights.push_back(c.direction(y));
  Tensors first;
  if (status_of([&] { first = one_by_one_gradients(m, chosen.at); }).raised || !small_numbers(first))
    return Verdict::discard();
  Finding wrong;
  const Status s = status_of([&] {
    wrong = wrong_gradients(m, chosen);
    if (wrong.empty()) wrong = accepts_bad_argnums(m, chosen, word);
    if (wrong.empty() && word >> 24 & 1) wrong = wrong_hessian(m, chosen);
  });
  // Which levels know the target of a write depends on the arguments that are asked for.
  if (s.raised && s.code == ErrorCode::Level && chain.writes()) return Verdict::discard();
  if (s.raised) wrong = str(s);
  if (wrong.empty()) return Verdict::pass(2);
  const std::string list = argnums_list(chosen.argnums);
  return Verdict::fail(
      wrong,
      chain.cpp(true) + cpp_tensors("x", m.args) + cpp_tensors("u", m.weights) + "  const Tensors args" +
          cpp_names("x", m.args.size()) + ", us" + cpp_names("u", m.weights.size()) +
          ";\n  const ScalarFunction value = [&](const Tensors& xs) {\n    Tensors ys = f0({xs.begin(), "
          "xs.begin() + " +
          std::to_string(m.in_chain) + "});\n    for (size_t k = " + std::to_string(m.in_chain) +
          "; k < xs.size(); ++k)\n      if (is_floating(xs[k].dtype())) ys.push_back(xs[k] * xs[k] + "
          "ys.size());\n"
          "    Tensor total = zeros({}, DType::F64);\n    for (size_t k = 0; k < ys.size(); ++k) total = "
          "total + "
          "real(sum(conj(us[k]) * ys[k]));\n    return total;\n  };\n  for (const int i : std::vector<int>" +
          list + ")\n    std::cout << \"alone    \" << str(grad(value, {i})(args)[0]) << '\\n';\n" +
          "  for (const Tensor& g : grad(value, std::vector<int>" + list +
          ")(args)) std::cout << \"together \" << str(g) << '\\n';\n",
      2);
}

}  // namespace

void add_argnum_laws(std::vector<Law>& laws) {
  laws.push_back(
      {89, "argnums_choose", "derivative",
       "A derivative in any arguments, in any order, counted from either end, is that in each alone; "
       "one named twice, not there or of integers is refused.",
       chain_options(), false, chained_smoothly, argnums_choose});
}

}  // namespace lamella::verify
