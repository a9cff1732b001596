// Small contiguous tensors take a short way through pointwise operators, and views of few dims one through
// view operators: they give what the general ways give.
#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

#include "lamella/core/family.h"
#include "lamella/dispatch/table.h"
#include "lamella/lamella.h"
#include "lamella/ops/number.h"
#include "lamella/verify/case/decoder.h"

namespace {
using namespace lamella;
using lamella::verify::Decoder;

/// The same values, every other element of a longer tensor: the general way.
Tensor spread(const Tensor& x) {
  const Tensor wide = make_tensor(Dims{2 * x.numel()}, x.dtype());
  const Tensor view = make_view(wide, x.sizes(), Dims{2}, 0);
  const size_t item = size_t(itemsize(x.dtype()));
  for (int64_t i = 0; i < x.numel(); ++i)
    std::memcpy(static_cast<char*>(wide.raw_data()) + 2 * size_t(i) * item,
                static_cast<const char*>(x.raw_data()) + size_t(i) * item, item);
  return view;
}

/// The result, or the code of the error.
std::pair<Tensor, int> outcome(const Op& op, const Values& args) {
  try {
    return {call(op, args)[0], -1};
  } catch (const Error& e) { return {Tensor(), int(e.code())}; }
}

TEST(SmallTensors, TheShortWayIsTheGeneralWay) {
  int compared = 0, refused = 0, straight = 0;
  for (const Op* op : OpTable::current().rows()) {
    if (op->form != OpForm::Functional || !op->straight || op->has(kTestOnly)) continue;
    if (std::ranges::count(op->kernel.lines, nullptr) == kDTypeCount) continue;  // no short way at all
    for (int d = 0; d < int(DType::F128); ++d) {
      const uint32_t choices[] = {3, uint32_t(17 * d + 5), 9, 4, uint32_t(d), 9, 6, 2, 9, 1};
      Decoder draw(choices, {.dtypes = kAllTypes, .layouts = false, .tame = true});
      Values near, far;
      for (int i = 0; i < op->straight; ++i) {
        const Tensor x = draw.tensor(Dims{5}, DType(d), Domain::NonZero);
        near.push_back(x);
        far.push_back(spread(x));
      }
      const auto [got, got_code] = outcome(*op, near);
      const auto [want, want_code] = outcome(*op, far);
      ASSERT_EQ(got_code, want_code) << op->name << " " << DType(d);
      straight += op->kernel.lines[size_t(d)] != nullptr;
      if (got_code >= 0) {
        ++refused;
        continue;
      }
      ++compared;
      ASSERT_EQ(type_str(got), type_str(want)) << op->name << " " << DType(d);
      EXPECT_EQ(str(got), str(want)) << op->name << " " << DType(d);
    }
  }
  EXPECT_GT(compared, 300);
  EXPECT_GT(refused, 20);
  EXPECT_GT(straight, 200);
}

/// Pointwise operators of two tensors that may run straight beside each other in two dtypes.
std::vector<const Op*> mixing() {
  std::vector<const Op*> out;
  for (const Op* op : OpTable::current().rows())
    if (op->form == OpForm::Functional && op->kernel.line_mixes && !op->has(kTestOnly)) out.push_back(op);
  return out;
}

/// Operands in both ways: as they are, and with gaps between the elements of the first one that has several.
struct Pair {
  Values near, far;
  Pair(const Tensor& a, const Tensor& b)
      : near{a, b}, far{a.numel() > 1 ? spread(a) : a, a.numel() > 1 ? b : spread(b)} {}
};

Tensor drawn(DType d, const Dims& size, uint32_t word) {
  const uint32_t choices[] = {3, 17 * word + 5, 9, 4, word, 9, 6, 2, 9, 1};
  Decoder draw(choices, {.dtypes = kAllTypes, .layouts = false, .tame = true});
  return draw.tensor(size, d, Domain::NonZero);
}

/// One of the kinds of a Scalar, as an operand.
Tensor number(int kind, const Tensor& beside) {
  static const Scalar kNumbers[] = {true, 3, 2.5, c128(1.5, -0.5)};
  return number_like(kNumbers[kind], beside);
}

/// What a call gives, in both ways.
void expect_alike(const Op& op, const Pair& p, int& compared) {
  const auto [got, got_code] = outcome(op, p.near);
  const auto [want, want_code] = outcome(op, p.far);
  ASSERT_EQ(got_code, want_code) << op.name << " " << str(p.near[0]) << " " << str(p.near[1]);
  if (got_code >= 0) return;
  ++compared;
  ASSERT_EQ(type_str(got), type_str(want)) << op.name;
  EXPECT_EQ(str(got), str(want)) << op.name << " " << str(p.near[0]) << " " << str(p.near[1]);
  EXPECT_FALSE(got.impl()->number);
}

TEST(SmallTensors, MixedOperandsGiveWhatTheGeneralWayGives) {
  int compared = 0;
  for (const Op* op : mixing())
    for (int d = 0; d < int(DType::F128); ++d) {
      const Tensor x = drawn(DType(d), {5}, uint32_t(d));
      for (int e = 0; e < int(DType::F128); ++e) {
        const Tensor one = drawn(DType(e), {1}, uint32_t(e + 1)), none = drawn(DType(e), {}, uint32_t(e + 2));
        for (const Tensor& y : {drawn(DType(e), {5}, uint32_t(e)), one, none}) {
          expect_alike(*op, {x, y}, compared);
          if (y.numel() == 1) expect_alike(*op, {y, x}, compared);
        }
      }
      for (int kind = 0; kind < 4; ++kind) {
        expect_alike(*op, {x, number(kind, x)}, compared);
        expect_alike(*op, {number(kind, x), x}, compared);
      }
    }
  EXPECT_GT(mixing().size(), 10u);
  EXPECT_GT(compared, 8000);
}

/// Shapes that broadcast to one that neither has, and such as do not: the short way has no words for them.
TEST(SmallTensors, OtherShapesAreLeftToTheGeneralWay) {
  const Tensor row = tensor_of({4}, {1, 2, 3, 4}), one = tensor_of({1, 1}, {5}), empty = zeros({0});
  EXPECT_EQ(type_str(row + one), "f32[1,4]");
  EXPECT_EQ(type_str(one + row), "f32[1,4]");
  EXPECT_EQ(type_str(tensor_of({1}, {2}) + one), "f32[1,1]");
  EXPECT_EQ(type_str(empty + 2.5), "f32[0]");
  EXPECT_EQ(type_str(empty + one), "f32[1,0]");
  EXPECT_THROW(row + tensor_of({3}, {1, 2, 3}, DType::F64), Error);
  EXPECT_THROW(row + empty, Error);
}

/// The form on a target that lies densely and on one that does not.
void expect_written_alike(const Op& form, const Values& args, const Tensor& target, int& written) {
  Values near = args, far = args;
  const Tensor dense = clone(target), gaps = spread(target);
  near[0] = dense, far[0] = gaps;
  const uint32_t version = dense.impl()->storage->version.load();
  const int got = outcome(form, near).second, want = outcome(form, far).second;
  ASSERT_EQ(got, want) << form.name << " " << str(args[0]) << " " << str(args[1]);
  EXPECT_EQ(str(dense), str(clone(gaps))) << form.name;
  EXPECT_EQ(dense.impl()->storage->version.load(), version + uint32_t(got < 0)) << form.name;
  written += got < 0;
}

TEST(SmallTensors, FormsWriteWhatTheGeneralWayWrites) {
  int written = 0;
  const OpTable& table = OpTable::current();
  for (const Op* op : mixing()) {
    const Op *const in_place = table.find(op->name + "_"), *const out = table.find(op->name + "_out");
    for (int d = 0; d < int(DType::F128); ++d)
      for (int e = 0; e < int(DType::F128); ++e) {
        const Tensor x = drawn(DType(d), {5}, uint32_t(d)), y = drawn(DType(e), {5}, uint32_t(e + 3));
        for (const Tensor& b : {y, drawn(DType(e), {}, uint32_t(e)), number(e % 4, x)}) {
          if (in_place) expect_written_alike(*in_place, {x, b}, x, written);
          if (out) expect_written_alike(*out, {Tensor(), x, b}, drawn(DType(d), {5}, 1), written);
        }
      }
  }
  EXPECT_GT(written, 3000);
}

/// Elements that are written before they are read would show: overlap is refused, or each is its own.
TEST(SmallTensors, WritesOverTheirOperandsAreTheGeneralWays) {
  const Tensor memory = tensor_of({6}, {1, 2, 3, 4, 5, 6});
  const Tensor x = slice(memory, 0, 0, 4);
  add_(x, x);
  EXPECT_EQ(str(memory), str(tensor_of({6}, {2, 4, 6, 8, 5, 6})));
  EXPECT_THROW(add_(x, slice(memory, 0, 1, 5)), Error);
  EXPECT_THROW(add_(x, select(memory, 0, 2)), Error);
  EXPECT_EQ(str(memory), str(tensor_of({6}, {2, 4, 6, 8, 5, 6})));
  add_(x, select(memory, 0, 5));
  EXPECT_EQ(str(memory), str(tensor_of({6}, {8, 10, 12, 14, 5, 6})));
  mul_(slice(memory, 0, 0, 3), slice(memory, 0, 3, 6));
  EXPECT_EQ(str(memory), str(tensor_of({6}, {112, 50, 72, 14, 5, 6})));
}

/// All that a header says, besides what is its own.
std::string header_str(const Tensor& t) {
  const TensorImpl& h = *t.impl();
  return format("{} strides {} offset {}, {} elements, {}{}, keys {}", t, Dims(t.strides()), h.offset,
                h.numel, h.contiguous ? "dense" : "with gaps", h.number ? ", a number" : "", h.keys);
}

/// Arguments behind x: each of these, and None where it may be.
std::vector<Values> all_arguments(const Op& op, const Tensor& x) {
  std::vector<Values> all = {{x}};
  for (size_t i = 1; i < op.schema.params.size(); ++i) {
    std::vector<Values> longer;
    for (const Values& before : all)
      for (const int64_t n : {-7, -1, 0, 1, 3, 99}) {
        if (n == 99 && !op.schema.params[i].optional) continue;
        longer.push_back(before);
        longer.back().push_back(n == 99 ? Value() : Value(n));
      }
    all = std::move(longer);
  }
  return all;
}

TEST(SmallTensors, ViewsInHeadersAreThoseOfTheViewFunction) {
  const Tensor x = ones({2, 3, 4});
  const Tensor xs[] = {x,
                       transpose(x, 0, 2),
                       expand(ones({3, 1}), {3, 4}),
                       ones({}),
                       slice(x, 1, 1, 3),
                       zeros({0, 3}),
                       ones({1, 2, 1, 2, 3}),
                       ones({1, 1, 2, 1, 2, 1}),
                       number_like(2.5, x)};
  int edited = 0, compared = 0, refused = 0;
  for (const Op* op : OpTable::current().rows()) {
    if (!op->edit) continue;
    ++edited;
    Op plain(*op);
    plain.edit = nullptr;
    const OpTable table = OpTable::current().with_each(
        [&](const Op& row) -> const Op* { return row.id == op->id ? &plain : nullptr; });
    for (const Tensor& t : xs)
      for (const Values& args : all_arguments(*op, t)) {
        const auto [got, got_code] = outcome(*op, args);
        const ScopedTable scope(&table);
        const auto [want, want_code] = outcome(plain, args);
        ASSERT_EQ(got_code, want_code) << op->name << " of " << header_str(t);
        ++(got_code < 0 ? compared : refused);
        if (got_code >= 0) continue;
        ASSERT_EQ(header_str(got), header_str(want)) << op->name << " of " << header_str(t);
        EXPECT_TRUE(got.shares_storage(t));
        EXPECT_EQ(got.impl()->family(), t.impl()->family());
      }
  }
  EXPECT_GE(edited, 3);
  EXPECT_GT(compared, 1000);
  EXPECT_GT(refused, 1000);
}
}  // namespace
