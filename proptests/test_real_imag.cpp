// Real and imaginary parts are views: of memory, under levels, and with histories.
#include <gtest/gtest.h>

#include "lamella/lamella.h"
#include "lamella/verify/case/lanes.h"

namespace test_real_imag {  // files of this room are compiled several at a time
namespace {
using namespace lamella;
using verify::Agreement;
using verify::disagrees;

const DType kReals[] = {DType::F32, DType::F64};

Tensor numbers(IntArg sizes, double first, DType dtype) {
  return reshape(arange(first, first + double(checked_numel(sizes, "numbers")), {}, dtype), sizes);
}
Tensor complex_numbers(IntArg sizes, double first, DType dtype) {
  return complex(numbers(sizes, first, dtype), numbers(sizes, -2 * first, dtype));
}

TEST(RealAndImag, ShareMemory) {
  for (const DType d : kReals) {
    const Tensor z = complex_numbers({3, 4}, 1, d), part = slice(transpose(z, 0, 1), 0, 1, 4, 2);
    const Tensor re = real(part), im = imag(part);
    for (const Tensor& t : {re, im}) {
      EXPECT_TRUE(t.shares_storage(z));
      EXPECT_EQ(t.dtype(), d);
      EXPECT_EQ(Dims(t.strides()), (Dims{4, 8}));
    }
    EXPECT_EQ(re.impl()->offset, 2);
    EXPECT_EQ(im.impl()->offset, 3);
    const Tensor want = complex(clone(im), clone(re) * 3.0);
    const Tensor kept = clone(re);
    copy_(re, im);
    copy_(im, kept * 3.0);
    EXPECT_EQ(disagrees(part, want, Agreement::Bitwise), "");
    EXPECT_TRUE(real(kept).is_same(kept));
  }
  const Tensor wide = to_device(complex_numbers({2}, 1, DType::F64), Device::Reference);
  EXPECT_TRUE(imag(wide).shares_storage(wide));
}

TEST(RealAndImag, OverlapOnlyThemselves) {
  const Tensor z = complex_numbers({3}, 1, DType::F64), before = clone(z);
  add_(real(z), imag(z));
  EXPECT_EQ(disagrees(real(z), real(before) + imag(before), Agreement::Bitwise), "");
  EXPECT_EQ(overlap(real(z), z), Overlap::Partial);
  EXPECT_EQ(overlap(real(z), slice(real(z), 0, 1)), Overlap::Partial);
  EXPECT_THROW(neg_out(slice(real(z), 0, 0, 2), slice(real(z), 0, 1)), Error);
  const Tensor x = numbers({4, 6}, 0, DType::F64);
  EXPECT_EQ(overlap(slice(x, 1, 0, 6, 2), slice(x, 1, 1, 6, 2)), Overlap::None);
  EXPECT_EQ(overlap(slice(x, 1, 0, 6, 2), slice(x, 1, 1, 6, 3)), Overlap::Partial);
  EXPECT_EQ(overlap(select(x, 1, 2), slice(x, 1, 3, 6)), Overlap::None);
  EXPECT_EQ(overlap(select(x, 1, 3), slice(x, 1, 3, 6)), Overlap::Partial);
  EXPECT_EQ(overlap(slice(x, 1, 0, 3), transpose(slice(x, 1, 3, 6), 0, 1)), Overlap::None);
  EXPECT_EQ(overlap(slice(x, 1, 0, 4), slice(x, 1, 3, 6)), Overlap::Partial);
  EXPECT_EQ(overlap(diagonal(x), diagonal(x, 1)), Overlap::None);
  EXPECT_EQ(overlap(diagonal(x), select(x, 0, 2)), Overlap::Partial);
}

TEST(RealAndImag, ViewsByStridesStayWithinTheMemory) {
  const Tensor z = complex_numbers({3}, 1, DType::F64);
  EXPECT_EQ(make_view(z, Dims{6}, Dims{1}, 0, DType::F64).to_vector()[3], -1);
  EXPECT_THROW(make_view(z, Dims{7}, Dims{1}, 0, DType::F64), Error);
  EXPECT_THROW(make_view(z, Dims{2}, Dims{1}, 0, DType::F32), Error);
  EXPECT_THROW(make_view(real(z), Dims{1}, Dims{1}, 0, DType::C128), Error);
}

/// Writes through parts, parts of views and views of parts; real in, complex out.
Tensor written(const Tensor& x) {
  const Tensor z = complex(x, x * 2.0), im = imag(z), first = select(real(z), 0, 0);
  mul_(im, x);
  add_(first, select(im, 0, 1));
  sub_(imag(slice(z, 0, 1)), real(slice(z, 0, 1)));
  return z * complex(im, x);
}
Tensor functional(const Tensor& x) {
  const Tensor im = x * 2.0 * x, re = select_scatter(x, select(x, 0, 0) + select(im, 0, 1), 0, 0);
  const Tensor last = slice_scatter(im, slice(im, 0, 1) - slice(re, 0, 1), 0, 1);
  return complex(re, last) * complex(last, x);
}
Tensor loss(const Tensor& z) { return sum(real(z) * real(z)) - sum(imag(z) * abs(z)); }

TEST(RealAndImag, AreFollowedInEveryEngine) {
  const Tensor x = numbers({4}, 0.5, DType::F64), t = numbers({4}, -1, DType::F64);
  const Tensor xs = stack({x, x * 0.5, t});
  const auto same = [](const Tensor& got, const Tensor& want) {
    EXPECT_LT(amax(abs(got - want)).item<double>(), 1e-12) << str(got) << " expected " << str(want);
  };
  same(written(x), functional(x));
  const UnaryFunction f = [](const Tensor& v) { return loss(written(v)); };
  const UnaryFunction g = [](const Tensor& v) { return loss(functional(v)); };
  const Tensor want = grad(g)(x);
  same(grad(f)(x), want);
  const auto push = [&](const UnaryFunction& h) {
    return jvp([&](const Tensors& v) { return Tensors{h(v[0])}; }, {x}, {t}).tangents[0];
  };
  same(push(f), push(g));
  same(push(grad(f)), push(grad(g)));
  same(vmap(written)(xs), vmap(functional)(xs));
  same(vmap(grad(f))(xs), vmap(grad(g))(xs));
  const auto total = [](const UnaryFunction& h) { return [h](const Tensor& v) { return sum(vmap(h)(v)); }; };
  same(grad(UnaryFunction(total(f)))(xs), grad(UnaryFunction(total(g)))(xs));
  const Tensor leaf = requires_grad(x);
  backward(f(leaf));
  same(grad_of(leaf), want);
}

TEST(RealAndImag, PlainTensorsTakeHistoriesByTheirParts) {
  const Tensor x = requires_grad(numbers({2}, 1, DType::F64)), z = complex_numbers({2}, 3, DType::F64);
  const Tensor before = clone(z), re = real(z), im = imag(z), second = select(z, 0, 1);
  copy_(re, x);
  mul_(im, x);
  const Tensor want = complex(x, imag(before) * x);
  backward(sum(abs(z)) + abs(second));
  const Tensor got = clone(grad_of(x));
  clear_grad(x);
  backward(sum(abs(want)) + abs(select(want, 0, 1)));
  EXPECT_EQ(disagrees(got, grad_of(x), Agreement::Bitwise), "");
  EXPECT_EQ(disagrees(detach(z), detach(want), Agreement::Bitwise), "");
}

TEST(RealAndImag, GradientsAreDense) {
  const Tensor x = requires_grad(numbers({3}, 1, DType::F64));
  backward(sum(abs(x * complex_numbers({3}, 2, DType::F64))));
  EXPECT_TRUE(grad_of(x).is_contiguous());
}
}  // namespace
}  // namespace test_real_imag
