// Drawing graphs of base autograd, and what levels say of their gradients.
#include "lamella/verify/programs/graph.h"

#include <algorithm>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/custom.h"

namespace lamella::verify {

namespace {
/// f as one operator, whose rule is f's derivative.
Function joined(const Function& f) {
  return custom_vjp([f](const Tensors& xs) { return std::pair(f(xs), xs); },
                    [f](const Tensors& xs, const Tensors& cts) { return vjp(f, xs).pullback(cts); });
}
}  // namespace

Graph::Graph(Case& c) : chain_(c), inputs_(chain_.inputs()) {
  if (!chain_.valid()) return;
  for (Tensor& x : inputs_)  // small numbers are numbers of narrower types
    if (c.draw.one_in(4)) x = to(x, is_complex(x.dtype()) ? DType::C64 : DType::F32);
  inputs_too_ = c.draw.one_in(4), joined_ = c.draw.one_in(3);
  Tensors ys;
  if (status_of([&] { ys = chain_.smooth_function()(inputs_); }).raised || ys.empty()) return;
  for (size_t k = 0; k < ys.size(); ++k) tails_.push_back(Tail(c.draw.below(8) % 6 % 4));
  Tensors roots;
  if (status_of([&] { roots = function()(inputs_); }).raised || !small_numbers(roots)) return;
  for (const Tensor& y : roots) {
    Tensor u = c.direction(y);
    if (c.draw.one_in(3))
      for (const Tensor& other : cotangents_)  // one tensor for two roots
        if (std::ranges::equal(other.sizes(), y.sizes()) && other.dtype() == y.dtype()) u = other;
    const bool ones = y.numel() == 1 && c.draw.flag();
    given_.push_back(ones ? Tensor() : u);
    cotangents_.push_back(ones ? ones_like(y) : u);
  }
  if (status_of([&] { gradients_ = vjp(function(), inputs_).pullback(cotangents_); }).raised) return;
  valid_ = small_numbers(gradients_);
}

Tensor Graph::ended(const Tensor& y, size_t k) const {
  Dims sizes(y.sizes());
  switch (tails_[k]) {
    case Tail::Sum: return sum(y);
    case Tail::Expand: sizes.insert(0, 2); return expand(y, sizes);
    case Tail::Flat: return reshape(y, {y.numel()});
    default: return y;
  }
}

Tensors Graph::watched(const Tensors& xs, const Chain::Watch& watch) const {
  Tensors roots = joined_ ? joined(chain_.smooth_function())(xs) : chain_.watched(xs, watch);
  for (size_t k = 0; joined_ && k < roots.size(); ++k) roots[k] = watch(k, roots.size(), roots[k]);
  for (size_t k = 0; k < roots.size(); ++k) roots[k] = ended(roots[k], k);
  if (inputs_too_) roots.insert(roots.end(), xs.begin(), xs.end());
  return roots;
}

Function Graph::function() const {
  return [this](const Tensors& xs) { return watched(xs, [](size_t, size_t, const Tensor& y) { return y; }); };
}

Tensors Graph::leaves() const {
  Tensors out;
  for (const Tensor& x : inputs_) out.push_back(requires_grad(x));
  return out;
}

std::string Graph::cpp() const {
  std::string out = chain_.cpp(true);
  if (joined_)
    out +=
        "  const Function f1 = custom_vjp([&](const Tensors& xs) { return std::pair(f0(xs), xs); },\n"
        "      [&](const Tensors& xs, const Tensors& cts) { return vjp(f0, xs).pullback(cts); });\n";
  out += format("  const Function g = [&](const Tensors& xs) {\n    Tensors ys = {}(xs);\n",
                joined_ ? "f1" : "f0");
  for (size_t k = 0; k < tails_.size(); ++k)
    if (tails_[k] == Tail::Sum) out += format("    ys[{}] = sum(ys[{}]);\n", k, k);
    else if (tails_[k] == Tail::Flat)
      out += format("    ys[{}] = reshape(ys[{}], {ys[{}].numel()});\n", k, k, k);
    else if (tails_[k] == Tail::Expand)
      out += format(
          "    {\n      Dims sizes(ys[{}].sizes());\n      sizes.insert(0, 2);\n      "
          "ys[{}] = expand(ys[{}], sizes);\n    }\n",
          k, k, k);
  if (inputs_too_) out += "    ys.insert(ys.end(), xs.begin(), xs.end());\n";
  return out + "    return ys;\n  };\n" + cpp_tensors("x", inputs_) + cpp_tensors("u", given_) +
         cpp_tensors("w", gradients_) + "  const Tensors inputs" + cpp_names("x", inputs_.size()) +
         ", given" + cpp_names("u", given_.size()) + ", want" + cpp_names("w", gradients_.size()) + ";\n" +
         "  Tensors leaves;\n  for (const Tensor& x : inputs) leaves.push_back(requires_grad(x));\n"
         "  Tensors roots, us;\n  const auto all = g(leaves);\n  for (size_t k = 0; k < all.size(); ++k)\n"
         "    if (is_grad_required(all[k])) roots.push_back(all[k]), us.push_back(given[k]);\n";
}

LiveRoots::LiveRoots(const Tensors& roots, const Tensors& given) {
  for (size_t k = 0; k < roots.size(); ++k)
    if (is_grad_required(roots[k])) ys.push_back(roots[k]), us.push_back(given[k]);
}

Tensors grads_of(const Tensors& leaves) {
  Tensors out;
  for (const Tensor& leaf : leaves) out.push_back(grad_of(leaf));
  return out;
}

Finding unlike_gradients(const Tensors& got, const Tensors& want, double times) {
  for (size_t k = 0; k < got.size(); ++k) {
    const Tensor w = times == 1 ? want[k] : to(want[k] * times, want[k].dtype());
    const Tensor g = got[k].defined() ? got[k] : zeros(w.sizes(), w.dtype());
    const Finding d = disagrees(plain_copy(detach(g)), w, Agreement::Rounding, {64, 64, coarsest(want)});
    if (!d.empty()) return format("gradient {}: ", k) + d;
  }
  return "";
}

}  // namespace lamella::verify
