// Oracle: rounding to whole numbers, and what whole multiples leave over.
#include "lamella/kernels/reference/pointwise.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels::reference {
namespace {

template <class W>
concept RealNumber = Real<W> && !Bool<W>;

/// Integers are whole.
template <class F> void rounded(const KernelCall& call, const char* name, F f) {
  unary(call, name, [f]<RealNumber W>(W x) {
    if constexpr (Integer<W>) return x;
    else return f(x);
  });
}

void floor(const KernelCall& call) {
  rounded(call, "floor", [](Floating auto x) { return math::floor(x); });
}

void ceil(const KernelCall& call) {
  rounded(call, "ceil", [](Floating auto x) { return math::ceil(x); });
}

void round(const KernelCall& call) {
  rounded(call, "round", [](Floating auto x) { return math::rint(x); });
}

void trunc(const KernelCall& call) {
  rounded(call, "trunc", [](Floating auto x) { return math::trunc(x); });
}

void frac(const KernelCall& call) {
  unary(call, "frac", [](Floating auto x) { return math::copysign(x - math::trunc(x), x); });
}

/// What is left of a by whole multiples of b, with the sign of a.
template <Integer W> W rest(W a, W b) { return std::is_signed_v<W> && b == W(-1) ? W(0) : W(a % b); }
template <Floating W> W rest(W a, W b) { return math::fmod(a, b); }

void fmod(const KernelCall& call) {
  check_divisor(call);
  binary(call, "fmod", []<RealNumber W>(W a, W b) { return rest(a, b); });
}

void remainder(const KernelCall& call) {
  check_divisor(call);
  binary(call, "remainder", []<RealNumber W>(W a, W b) {
    const W left = rest(a, b);
    return left != 0 && (left < 0) != (b < 0) ? W(left + b) : left;
  });
}

}  // namespace

Texts rounding_texts() {
  // clang-format off
  static constexpr Text kTexts[] = {
      {"floor", floor, Takes::RealNumbers, Result::First},
      {"ceil", ceil, Takes::RealNumbers, Result::First},
      {"round", round, Takes::RealNumbers, Result::First},
      {"trunc", trunc, Takes::RealNumbers, Result::First},
      {"frac", frac, Takes::Real, Result::Floating},
      {"fmod", fmod, Takes::RealNumbers, Result::Promoted, true},
      {"remainder", remainder, Takes::RealNumbers, Result::Promoted, true},
  };
  // clang-format on
  return kTexts;
}

}  // namespace lamella::kernels::reference
