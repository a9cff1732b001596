// The jvp level: a value and its tangent travel together.
#include "lamella/transforms/jvp.h"

#include <algorithm>

#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/transforms/argnums.h"
#include "lamella/transforms/machine/deriving.h"
#include "lamella/transforms/tapes/steps.h"

namespace lamella {

namespace {

struct JvpWrapper : DerivingWrapper<Tensor> {
  Tensor companion() const override { return derived; }
};
static_assert(sizeof(JvpWrapper) <= TensorImpl::kSuffix);

class Jvp final : public DerivingLevel<Jvp, JvpWrapper> {
 public:
  std::string_view name() const override { return "jvp"; }
  static bool carries(const Tensor& tangent) { return tangent.defined(); }
  static Tensor kept(const Tensor& tangent) { return lamella::fixed(tangent); }

 private:
  friend DerivingLevel;

  /// A tangent for each result; undefined ones are zero.
  using Sums = std::span<Tensor>;

  void plain(Frame& f) {
    const Op& op = *f.op;
    const void* args[kMaxArity];
    for (int i = 0; i < op.arity; ++i) args[i] = f.args[i];
    const Tensor* tangents[kMaxArity];
    for (const uint8_t i : op.tensor_params) {
      tangents[i] = nullptr;
      const JvpWrapper* w = f.args[i] ? wrapper(f, f.tensor(i)) : nullptr;
      if (!w) continue;
      args[i] = &w->value;
      if (w->derived.defined()) tangents[i] = &w->derived;
    }
    Frame lower{&op, args, f.results, f.list};
    lamella::call(lower);
    Tensor room[kMaxResults];
    const Sums sums(room, size_t(op.schema.n_results));
    for (const uint8_t i : op.tensor_params)
      if (tangents[i]) push(lower, i, {tangents[i], 1}, sums);
    finish(f, sums);
  }

  Tensor of_view(Frame& lower, int at, const JvpWrapper& w) const {
    Tensor sum;
    push(lower, at, {&w.derived, 1}, {&sum, 1});
    return sum;
  }

  void with_lists(Frame& f) {
    FrameCopy values(f);
    Tensors tangents[kMaxArity];  // by parameter, entry by entry; none for what carries no tangents
    unwrap(f, values, [&](int i, int element, const Tensor& tangent) {
      tangents[i].resize(tensors_at(f, i).size());
      tangents[i][size_t(element)] = tangent;
    });
    Frame lower = values.into(f.results, f.list);
    lamella::call(lower);
    Tensors sums(results_of(lower).size());
    for (const uint8_t i : f.op->tensor_params)
      if (!tangents[i].empty()) push(lower, i, tangents[i], sums);
    finish(f, sums);
  }

  /// Adds the part of input `i` to the tangents of the results.
  void push(Frame& lower, int i, TensorSpan tangent, Sums sums) const {
    const Op& op = *lower.op;
    const BoundFormula* formula = op.jvp_of(i);
    const Sums results = results_of(lower);
    if (!formula || (results.size() == 1 && !is_inexact(results[0].dtype()))) return;
    const auto give = [&](size_t k, Tensor&& part) {
      if (!part.defined()) return;
      fit_tangent(part, results[k], op, i);
      sums[k] = sums[k].defined() ? add(sums[k], part) : std::move(part);
    };
    if (formula->linear) {
      Tensor parts[kMaxResults];
      apply_linear(lower, i, tangent, parts);
      for (size_t k = 0; k < sums.size(); ++k) give(k, std::move(parts[k]));
    } else if (formula->one) {
      give(0, formula->one({tangent, FrameSaves(lower, *formula).data()}));
    } else {
      Tensors all =
          for_results(formula->many({tangent, FrameSaves(lower, *formula).data()}), op, i, sums.size());
      for (size_t k = 0; k < sums.size(); ++k) give(k, std::move(all[k]));
    }
  }

  static void apply_linear(const Frame& lower, int i, TensorSpan tangent, Tensor* parts) {
    const Op& op = *lower.op;
    const void* args[kMaxArity];
    std::copy_n(lower.args, op.arity, args);
    Tensors list;
    TensorSpan span;
    args[i] = &tangent[0];
    if (is_list(op, i)) {
      const TensorSpan like = lower.tensors(i);
      list = with_zeros({tangent.begin(), tangent.end()}, {like.begin(), like.end()});
      args[i] = &(span = list);
    }
    Frame call{&op, args, parts};
    lamella::call(call);
  }

  /// Tangents have the result's type: broadcast inputs and promoted dtypes are brought up to it.
  static void fit_tangent(Tensor& part, const Tensor& result, const Op& op, int input) {
    const DType from = part.dtype(), to_dtype = result.dtype();
    if (from != to_dtype && is_complex(from) && !is_complex(to_dtype)) part = contiguous(real(part));
    if (from != to_dtype) part = to(part, to_dtype);
    if (!part.impl()->has_shape_of(*result.impl())) part = expanded_tangent(part, result, op, input);
  }

  void finish(Frame& f, Sums sums) {
    const Sums results = results_of(f);
    for (size_t k = 0; k < sums.size(); ++k)
      if (sums[k].defined() && is_inexact(results[k].dtype()))
        results[k] = wrap(std::move(results[k]), std::move(sums[k]));
  }
};

}  // namespace

JvpResult jvp_has_aux(const AuxFunction& f, const Tensors& primals, const Tensors& tangents) {
  given(f, "jvp");
  LAMELLA_CHECK(primals.size() == tangents.size(), Shape,
                "jvp: got {} {} and {} tangents; expected as many of each", primals.size(),
                Argument{"primals"}, tangents.size());
  Jvp transform;
  for (size_t i = 0; i < primals.size(); ++i) {
    const Tensor &x = primals[i], &t = tangents[i];
    LAMELLA_CHECK(x.defined(), Undefined, "jvp: primal {} is an undefined tensor; expected a defined one", i);
    if (!t.defined()) continue;
    LAMELLA_CHECK(is_inexact(x.dtype()), DType, "jvp: primal {} is {}, expected floating point or complex", i,
                  x);
    check_direction("jvp", "tangent", i, t, x, "its primal");
  }
  const OpenLevel open(transform);
  Tensors wrapped;
  for (size_t i = 0; i < primals.size(); ++i)
    wrapped.push_back(transform.wrap_argument(primals[i], tangents[i]));
  Jvp::Returned out = transform.run(f, wrapped, "jvp");
  const Below below(transform.key());
  Tensors directions = with_zeros(std::move(out.derived), out.values);
  return {std::move(out.values), std::move(directions), std::move(out.aux)};
}

JvpResult jvp(const Function& f, const Tensors& primals, const Tensors& tangents) {
  return jvp_has_aux([&f = given(f, "jvp")](const Tensors& xs) { return std::pair(f(xs), Tensors{}); },
                     primals, tangents);
}

}  // namespace lamella
