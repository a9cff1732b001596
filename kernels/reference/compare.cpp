// Oracle: comparisons, logic, and choosing one of two elements.
#include "lamella/kernels/reference/pointwise.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels::reference {
namespace {

void eq(const KernelCall& call) {
  binary(call, "eq", []<class W>(W a, W b) { return a == b; });
}

void ne(const KernelCall& call) {
  binary(call, "ne", []<class W>(W a, W b) { return a != b; });
}

void lt(const KernelCall& call) {
  binary(call, "lt", []<Real W>(W a, W b) { return a < b; });
}

void le(const KernelCall& call) {
  binary(call, "le", []<Real W>(W a, W b) { return a <= b; });
}

void gt(const KernelCall& call) {
  binary(call, "gt", []<Real W>(W a, W b) { return a > b; });
}

void ge(const KernelCall& call) {
  binary(call, "ge", []<Real W>(W a, W b) { return a >= b; });
}

void logical_and(const KernelCall& call) {
  binary(call, "logical_and", []<class W>(W a, W b) { return a != W(0) && b != W(0); });
}

void logical_or(const KernelCall& call) {
  binary(call, "logical_or", []<class W>(W a, W b) { return a != W(0) || b != W(0); });
}

void logical_not(const KernelCall& call) {
  unary(call, "logical_not", []<class W>(W x) { return x == W(0); });
}

void isnan(const KernelCall& call) {
  unary(call, "isnan", [](auto x) { return is_nan(x); });
}

void maximum(const KernelCall& call) {
  binary(call, "maximum", []<Real W>(W a, W b) {
    if (is_nan(a)) return a;
    if (is_nan(b)) return b;
    return a < b ? b : a;
  });
}

void minimum(const KernelCall& call) {
  binary(call, "minimum", []<Real W>(W a, W b) {
    if (is_nan(a)) return a;
    if (is_nan(b)) return b;
    return b < a ? b : a;
  });
}

void where(const KernelCall& call) {
  const View &out = call.outs[0], &condition = call.ins[0], &a = call.ins[1], &b = call.ins[2];
  visit_working(call.compute, [&]<class W>(type_tag<W>) {
    for (Odometer at(sizes_of(out)); at.more(); at.next()) {
      const bool chosen = load<bool>(condition, at.offset(condition), DType::Bool);
      const View& from = chosen ? a : b;
      store(out, at.offset(out), load<W>(from, at.offset(from), call.compute));
    }
  });
}

}  // namespace

Texts comparison_texts() {
  // clang-format off
  static constexpr Text kTexts[] = {
      {"eq", eq},
      {"ne", ne},
      {"lt", lt},
      {"le", le},
      {"gt", gt},
      {"ge", ge},
      {"logical_and", logical_and},
      {"logical_or", logical_or},
      {"logical_not", logical_not},
      {"isnan", isnan},
      {"maximum", maximum},
      {"minimum", minimum},
      {"where", where},
  };
  // clang-format on
  return kTexts;
}

}  // namespace lamella::kernels::reference
