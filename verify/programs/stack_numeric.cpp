// Reading a stack without any rule: vmap as a loop, derivatives as difference quotients in f128.
#include <algorithm>

#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/oracle/oracle.h"
#include "lamella/verify/programs/stack.h"

namespace lamella::verify {

namespace {

using Numbers = std::vector<f128>;  // real and imaginary parts in turn for complex tensors

Numbers numbers_of(const Tensor& t) {
  Numbers out;
  if (t.dtype() == DType::C256) {
    const auto* data = static_cast<const c256*>(t.raw_data());
    each_element(t, [&](int64_t i) { out.push_back(data[i].real()), out.push_back(data[i].imag()); });
  } else {
    const auto* data = static_cast<const f128*>(t.raw_data());
    each_element(t, [&](int64_t i) { out.push_back(data[i]); });
  }
  return out;
}

Tensor tensor_of_numbers(const Numbers& numbers, const Tensor& like) {
  const Tensor out = make_tensor(like.sizes(), like.dtype(), Device::Reference);
  auto* data = static_cast<f128*>(out.raw_data());  // a c256 is its two parts in turn
  std::copy(numbers.begin(), numbers.end(), data);
  return out;
}

/// x + h t, where `t` may be empty for no direction.
Tensor stepped(const Tensor& x, f128 h, const Numbers& t) {
  if (t.empty()) return x;
  Numbers v = numbers_of(x);
  for (size_t i = 0; i < v.size(); ++i) v[i] += h * t[i];
  return tensor_of_numbers(v, x);
}

/// Derivative of f at xs along `directions`, by steps of h: error h^4.
std::vector<Numbers> along(const Function& f, const Tensors& xs, const std::vector<Numbers>& directions,
                           f128 h) {
  const auto at = [&](int k) {
    Tensors moved_by;
    for (size_t i = 0; i < xs.size(); ++i) moved_by.push_back(stepped(xs[i], f128(k) * h, directions[i]));
    std::vector<Numbers> out;
    for (const Tensor& y : f(moved_by)) out.push_back(numbers_of(y));
    return out;
  };
  struct Term {
    int factor, steps;
  };
  static constexpr Term kTerms[] = {{8, 1}, {-8, -1}, {-1, 2}, {1, -2}};
  std::vector<Numbers> total;
  for (const Term& term : kTerms) {
    const std::vector<Numbers> ys = at(term.steps);
    if (total.empty())
      for (const Numbers& y : ys) total.emplace_back(y.size(), f128(0));
    for (size_t r = 0; r < ys.size(); ++r)
      for (size_t i = 0; i < ys[r].size(); ++i) total[r][i] += f128(term.factor) * ys[r][i] / (12 * h);
  }
  return total;
}

Tensors numeric_vmap(const Function& f, const Layer& layer, const Tensors& xs) {
  std::vector<Tensors> lanes;
  for (int64_t i = 0; i < layer.size; ++i) {
    Tensors in_lane = lane(Batch{layer.size, xs, layer.in_dims}, i);
    for (Tensor& x : in_lane) x = plain_copy(x);  // strides are no part of the function
    lanes.push_back(f(in_lane));
  }
  Tensors out;
  for (size_t k = 0; k < lanes[0].size(); ++k) {
    Tensors column;
    for (const Tensors& ys : lanes) column.push_back(ys[k]);
    const int dim = layer.out_dims[k];
    out.push_back(stacked(column, dim < 0 ? dim + column[0].rank() + 1 : dim));
  }
  return out;
}

Tensors numeric_jvp(const Function& f, const Layer& layer, const Tensors& xs, f128 h) {
  std::vector<Numbers> directions(xs.size());
  for (size_t k = 0, j = 0; k < xs.size(); ++k) {
    if (!layer.active[k]) continue;
    const Tensor constant = to_reference(layer.constants[j++]);
    directions[k] = numbers_of(layer.scaled ? mul(xs[k], constant) : constant);
  }
  const std::vector<Numbers> tangents = along(f, xs, directions, h);
  Tensors out = f(xs);
  for (size_t r = 0; r < out.size(); ++r) out[r] = tensor_of_numbers(tangents[r], out[r]);
  return out;
}

/// The gradient of sum Re(conj(u) y), one number of the inputs at a time.
Tensors numeric_vjp(const Function& f, const Layer& layer, const Tensors& xs, f128 h) {
  std::vector<Numbers> u;
  for (const Tensor& c : layer.constants) {
    u.push_back(numbers_of(to_reference(c)));
    if (layer.kind == Layer::Grad &&
        is_complex(c.dtype()))  // weights multiply; cotangents pair with the conjugate
      for (size_t i = 1; i < u.back().size(); i += 2) u.back()[i] = -u.back()[i];
  }
  Tensors out;
  for (size_t k = 0; k < xs.size(); ++k) {
    if (!layer.active[k]) continue;
    Numbers gradient = numbers_of(xs[k]);
    std::vector<Numbers> directions(xs.size());
    for (size_t e = 0; e < gradient.size(); ++e) {
      directions[k].assign(gradient.size(), f128(0));
      directions[k][e] = 1;
      const std::vector<Numbers> dy = along(f, xs, directions, h);
      f128 total = 0;
      for (size_t r = 0; r < dy.size(); ++r) {
        // A real weight or cotangent of a complex result pairs with its real part, and the other way round.
        const size_t du = u[r].size() > dy[r].size() ? 2 : 1, dd = dy[r].size() > u[r].size() ? 2 : 1;
        for (size_t i = 0, n = std::min(u[r].size(), dy[r].size()); i < n; ++i)
          total += u[r][i * du] * dy[r][i * dd];
      }
      gradient[e] = total;
    }
    out.push_back(tensor_of_numbers(gradient, xs[k]));
  }
  return out;
}

}  // namespace

double Stack::roundoff() const {
  double u = 0;
  for (const Tensors* ts : {&inputs_, &results_})
    for (const Tensor& t : *ts) u = std::max(u, unit_roundoff(t.dtype()));
  for (const Value& v : case_.args) {
    if (const auto* t = std::get_if<Tensor>(&v); t && t->defined())
      u = std::max(u, unit_roundoff(t->dtype()));
    if (const auto* d = std::get_if<DType>(&v)) u = std::max(u, unit_roundoff(*d));
  }
  return u;
}

Function Stack::numeric_operator() const {
  return [&c = case_, slots = slots_, args = to_reference(case_.args)](const Tensors& xs) {
    Values full = args;
    for (size_t k = 0; k < slots.size(); ++k) entry(full, slots[k]) = xs[k];
    Tensors ys = call_boxed(c.op, symmetrised(c.op, std::move(full)));
    std::erase_if(ys, [](const Tensor& y) { return !is_inexact(y.dtype()); });
    return ys;
  };
}

Function Stack::numeric(double scale, const Around& around) const {
  Function f = program(
      [op = numeric_operator(), around](const Tensors& xs) { return around ? around(op, xs) : op(xs); });
  static constexpr double kSteps[] = {0x1p-22, 0x1p-17, 0x1p-13,
                                      0x1p-10};  // error h^4 meets the noise of the step below
  size_t derivatives = 0;
  for (const Layer& layer : layers_) {
    const f128 h = scale * kSteps[std::min<size_t>(derivatives, 3)];
    f = [f, &layer, h](Tensors xs) {
      if (layer.kind == Layer::Vmap) return numeric_vmap(f, layer, xs);
      if (layer.kind == Layer::Jvp) return numeric_jvp(f, layer, xs, h);
      if (layer.kind != Layer::Share) return numeric_vjp(f, layer, xs, h);
      xs.push_back(xs[0]);
      return f(xs);
    };
    derivatives += layer.kind != Layer::Vmap && layer.kind != Layer::Share;
  }
  return f;
}

}  // namespace lamella::verify
