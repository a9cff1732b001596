// Oracle: reductions. Sums and products run left to right, one precision above compute, and round once.
#include <optional>

#include "lamella/kernels/reference/arith.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels::reference {
namespace {

/// Calls visit(offset) for the input elements that fall onto the output index `at`, in row-major order. A
/// dim is reduced when its output size is 1; if its input size is 1 too, there is nothing to tell the
/// cases apart and no need to.
template <class Visit>
void for_each_reduced(const View& in, const View& out, const Odometer& at, Visit visit) {
  std::vector<int64_t> reduced = sizes_of(in);
  for (int d = 0; d < in.rank; ++d) {
    if (out.sizes[d] != 1) reduced[size_t(d)] = 1;
  }
  const int64_t first = at.offset(in);
  for (Odometer inner(reduced); inner.more(); inner.next()) visit(first + inner.offset(in));
}

template <class Step> void fold(const KernelCall& call, int start, Step step) {
  const View &out = call.outs[0], &in = call.ins[0];
  visit_working(call.compute, [&]<class W>(type_tag<W>) {
    using Acc = wider_t<W>;
    for (Odometer at(sizes_of(out)); at.more(); at.next()) {
      Acc acc = Acc(start);
      for_each_reduced(in, out, at, [&](int64_t offset) {
        acc = step(acc, cast<Acc>(load<W>(in, offset, call.compute)));
      });
      store(out, at.offset(out), wrap(cast<W>(acc), call.compute));
    }
  });
}

/// The first element that no other is preferred to.
template <class Prefer> void extreme(const KernelCall& call, const char* name, Prefer prefer) {
  const View &out = call.outs[0], &in = call.ins[0];
  visit_supported(name, call.compute, [&]<Real W>(type_tag<W>) {
    for (Odometer at(sizes_of(out)); at.more(); at.next()) {
      std::optional<W> best;
      for_each_reduced(in, out, at, [&](int64_t offset) {
        const W x = load<W>(in, offset, call.compute);
        if (!best || prefer(x, *best)) best = x;
      });
      LAMELLA_ASSERT(best.has_value());
      store(out, at.offset(out), *best);
    }
  });
}

void sum(const KernelCall& call) {
  fold(call, 0, [](auto acc, auto x) { return plus(acc, x); });
}

void prod(const KernelCall& call) {
  fold(call, 1, [](auto acc, auto x) { return times(acc, x); });
}

void amax(const KernelCall& call) {
  extreme(call, "amax", [](auto x, auto best) { return less(best, x); });
}

void amin(const KernelCall& call) {
  extreme(call, "amin", [](auto x, auto best) { return is_nan(x) ? !is_nan(best) : x < best; });
}

/// The greatest element first, then log1p of the sum of what the others are of it.
void logsumexp(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  visit_supported("logsumexp", call.compute, [&]<Floating W>(type_tag<W>) {
    using Acc = wider_t<W>;
    for (Odometer at(sizes_of(out)); at.more(); at.next()) {
      Acc greatest = -std::numeric_limits<double>::infinity();
      int64_t n = 0, first = 0;  // elements may share memory: they are counted
      for_each_reduced(in, out, at, [&](int64_t offset) {
        const Acc x = load<W>(in, offset, call.compute);
        if (n == 0 || less(greatest, x)) greatest = x, first = n;
        ++n;
      });
      Acc others = 0;
      n = 0;
      for_each_reduced(in, out, at, [&](int64_t offset) {
        const Acc x = load<W>(in, offset, call.compute);
        if (n++ != first) others += x == greatest ? Acc(1) : math::exp(x - greatest);
      });
      store(out, at.offset(out), wrap(cast<W>(greatest + math::log1p(others)), call.compute));
    }
  });
}

void argmax(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const int64_t dim = call.ints[0];
  visit_supported("argmax", in.dtype, [&]<Real W>(type_tag<W>) {
    for (Odometer at(sizes_of(out)); at.more(); at.next()) {
      const auto element = [&](int64_t i) {
        return load<W>(in, at.offset(in) + i * stride_along(in, dim), in.dtype);
      };
      int64_t best = 0;
      for (int64_t i = 1; i < length_along(in, dim); ++i) {
        if (less(element(best), element(i))) best = i;
      }
      store(out, at.offset(out), best);
    }
  });
}

}  // namespace

Texts reduce_texts() {
  // clang-format off
  static constexpr Text kTexts[] = {
      {"sum", sum},
      {"prod", prod},
      {"amax", amax},
      {"amin", amin},
      {"logsumexp", logsumexp, Takes::Real, Result::Floating},
      {"argmax", argmax},
  };
  // clang-format on
  return kTexts;
}

}  // namespace lamella::kernels::reference
