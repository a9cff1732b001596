// Full derivatives by mapping one direction at a time over a basis.
#include "lamella/ops/functions.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/jvp.h"

namespace lamella {

namespace {
/// Row k is the k-th unit vector of a tensor like `x`: sizes [numel, sizes of x].
Tensor basis_like(const Tensor& x) {
  const int64_t n = x.numel();
  const Tensor index = arange(n);
  const Tensor hot = eq(unsqueeze(index, 1), unsqueeze(index, 0));
  Dims sizes{n};
  for (const int64_t s : x.sizes()) sizes.push_back(s);
  const Tensor one = ones_like(x);
  return where(reshape(hot, sizes), one, zeros_like(one));
}

Dims joined(Ints a, Ints b) {
  Dims out(a);
  for (const int64_t s : b) out.push_back(s);
  return out;
}

Tensor single(const Function& f, const Tensor& x) { return f({x})[0]; }
}  // namespace

UnaryFunction jacrev(UnaryFunction f) {
  return [f = std::move(f)](const Tensor& x) {
    const VjpResult r = vjp([&](const Tensors& xs) { return Tensors{f(xs[0])}; }, {x});
    const Tensor& y = r.values[0];
    const Function rows = vmap([&](const Tensors& u) { return r.pullback(u); }, VmapOptions{});
    return reshape(single(rows, basis_like(y)), joined(y.sizes(), x.sizes()));
  };
}

UnaryFunction jacfwd(UnaryFunction f) {
  return [f = std::move(f)](const Tensor& x) {
    const Function push = [&](const Tensors& t) {
      return jvp([&](const Tensors& xs) { return Tensors{f(xs[0])}; }, {x}, t).tangents;
    };
    const Tensor columns =
        single(vmap(push, InDims{0}, InDims{-1}), basis_like(x));  // [sizes of y, numel of x]
    return reshape(columns, joined(columns.sizes().first(columns.sizes().size() - 1), x.sizes()));
  };
}

UnaryFunction hessian(UnaryFunction f) { return jacfwd(jacrev(std::move(f))); }

}  // namespace lamella
