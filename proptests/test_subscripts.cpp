// Subscripts read and write what an enumeration of elements says, at every level, and refuse in their own
// words.
#include <gtest/gtest.h>

#include "lamella/lamella.h"

#include "subscript_places.h"

namespace test_subscripts {  // files of this room are compiled several at a time
namespace {
using namespace lamella;
using namespace lamella::tests;

/// What f gives at x plainly and at each kind of level, lanes apart.
std::vector<Tensor> everywhere(const UnaryFunction& f, const Tensor& x) {
  const auto listed = [&](const Tensors& v) { return Tensors{f(v[0])}; };
  const Tensor lanes = stack({x, x + 1, x}), leaf = requires_grad(clone(x));
  return {f(x),
          vjp(listed, {x}).values[0],
          jvp(listed, {x}, {x}).values[0],
          detach(f(leaf)),
          select(vmap(f)(lanes), 0, 2),
          select(vmap(f, -1)(stack({x + 1, x}, x.rank())), 0, 1),
          select(select(vmap(vmap(f))(stack({lanes, lanes})), 0, 1), 0, 0),
          select(vjp([&](const Tensors& v) { return Tensors{vmap(f)(v[0])}; }, {lanes}).values[0], 0, 0),
          select(vmap([&](const Tensor& row) { return jvp(listed, {row}, {row}).values[0]; })(lanes), 0, 2)};
}

void expect_everywhere(const UnaryFunction& f, const Tensor& x, const std::vector<int64_t>& sizes,
                       const Doubles& values) {
  const std::vector<Tensor> got = everywhere(f, x);
  for (size_t k = 0; k < got.size(); ++k) {
    EXPECT_EQ(Dims(got[k].sizes()), Dims(sizes)) << "level " << k;
    EXPECT_EQ(got[k].to_vector(), values) << "level " << k;
  }
}

Doubles at(const Doubles& x, const Place& place) {
  Doubles out;
  for (const int64_t k : place.at) out.push_back(x[size_t(k)]);
  return out;
}

Tensor counted() { return reshape(to(arange(24), DType::F64), {2, 3, 4}); }
Tensor mask_of(const Tensor& t) { return gt(t, 0); }

/// Each kind alone and mixed.
std::vector<Indices> known_lists() {
  const Tensor rows = mask_of(f64({2, 3}, {1, 0, 1, 0, 0, 1})), columns = mask_of(f64({0, 1, 1, 0}));
  return {{},
          {1},
          {-1},
          {None},
          {Ellipsis},
          {Slice{}},
          {Slice{1}},
          {Slice{None, -1}},
          {Slice{}, Slice{0, 3, 2}},
          {Slice{}, Slice{}, Slice{-3, None, 2}},
          {Slice{5, 9}},
          {Slice{}, Slice{2, 1}},
          {Slice{}, Slice{-9, 9, 5}},
          {rows},
          {0, Ellipsis, columns},
          {1, Slice{0, -1, 2}, None, Ellipsis, columns},
          {Slice{0, 1}, None, -2, columns},
          {Ellipsis, -1},
          {None, Ellipsis, None, 0, None},
          {1, 2, 3},
          {1, 2, 3, Ellipsis, None},
          {gt(counted(), 10)},
          {gt(counted(), 100)},
          {gt(number(1), 0)},
          {Slice{}, gt(number(1), 2)}};
}

void expect_read(const Tensor& x, const Indices& list) {
  const Place place = place_of(x.sizes(), list);
  expect_everywhere([&](const Tensor& t) { return Subscript(t, list).read(); }, x, place.sizes,
                    at(x.to_vector(), place));
}

TEST(Subscripts, ReadKnownLists) {
  const Tensor x = counted();
  for (const Indices& list : known_lists()) expect_read(x, list);
}

TEST(Subscripts, ReadDrawnLists) {
  Dice dice(1);
  for (int k = 0; k < 300; ++k) {
    const Tensor x = dice.tensor(dice.sizes(dice.below(5)));
    expect_read(x, dice.indices(x.sizes()));
  }
}

void expect_write(const Tensor& x, const Indices& list, char op, const Tensor& value) {
  const Place place = place_of(x.sizes(), list);
  const UnaryFunction f = [&](const Tensor& t) {
    const Tensor y = t * 1;
    write(y, list, op, value);
    return y;
  };
  const Doubles want = written(x.to_vector(), place, op, value.to_vector(), value.sizes());
  expect_everywhere(f, x, {x.sizes().begin(), x.sizes().end()}, want);
}

TEST(Subscripts, WriteKnownLists) {
  Dice dice(2);
  const Tensor x = counted();
  for (const Indices& list : known_lists()) {
    const Place place = place_of(x.sizes(), list);
    for (const char op : {'=', '+', '-', '*', '/'}) {
      expect_write(x, list, op, dice.tensor(place.sizes));
      expect_write(x, list, op, dice.tensor(dice.broadcastable(place.sizes)));
      expect_write(x, list, op, number(3));
      const Tensor y = clone(x);
      write(y, list, op, 2.5);
      EXPECT_EQ(y.to_vector(), written(x.to_vector(), place, op, {2.5}, {}));
    }
  }
}

TEST(Subscripts, WriteDrawnLists) {
  Dice dice(3);
  for (int k = 0; k < 300; ++k) {
    const Tensor x = dice.tensor(dice.sizes(dice.below(5)));
    const Indices list = dice.indices(x.sizes());
    const Place place = place_of(x.sizes(), list);
    const auto sizes = dice.below(2) ? place.sizes : dice.broadcastable(place.sizes);
    expect_write(x, list, "=+-*/"[dice.below(5)], dice.tensor(sizes));
  }
}

TEST(Subscripts, MasksOfLanesWriteAsALoop) {
  Dice dice(4);
  for (int k = 0; k < 200; ++k) {
    const std::vector<int64_t> in_front = dice.sizes(dice.below(2)), covered = dice.sizes(dice.below(3)),
                               behind = dice.sizes(dice.below(2));
    std::vector<int64_t> sizes = in_front, value_sizes = in_front;
    sizes.insert(sizes.end(), covered.begin(), covered.end());
    sizes.insert(sizes.end(), behind.begin(), behind.end());
    value_sizes.push_back(1);
    value_sizes.insert(value_sizes.end(), behind.begin(), behind.end());
    const char op = "=+-*/"[dice.below(5)];
    const auto f = [&](const Tensors& v) {
      const Tensor y = v[0] * 1;
      Indices list(in_front.size(), Slice{});
      list.push_back(v[1]);
      write(y, list, op, v[2]);
      return Tensors{y};
    };
    if (dice.below(2)) value_sizes = behind;
    Tensors xs, masks, values, want;
    for (int lane = 0; lane < 3; ++lane) {
      xs.push_back(dice.tensor(sizes));
      masks.push_back(dice.mask(covered));
      values.push_back(dice.tensor(value_sizes));
      Indices list(in_front.size(), Slice{});
      list.push_back(masks.back());
      want.push_back(tensor_of(
          sizes,
          written(xs.back().to_vector(), place_of(sizes, list), op, values.back().to_vector(), value_sizes),
          DType::F64));
    }
    const Tensors all{stack(xs), stack(masks), stack(values)};
    EXPECT_EQ(vmap(f)(all)[0].to_vector(), stack(want).to_vector());
    const auto captured = [&](const Tensors& v) { return vmap(f)({v[0], all[1], v[1]}); };
    EXPECT_EQ(vjp(captured, {all[0], all[2]}).values[0].to_vector(), stack(want).to_vector());
    EXPECT_EQ(jvp(captured, {all[0], all[2]}, {all[0], all[2]}).values[0].to_vector(),
              stack(want).to_vector());
  }
}

TEST(Subscripts, MasksOfLanesReadWhereTheySelectEquallyMany) {
  const Tensor x = f64({2, 3}, {1, 2, 3, 4, 5, 6}), even = gt(f64({2, 3}, {1, 0, 1, 0, 1, 1}), 0);
  const Function f = vmap([](const Tensors& v) { return Tensors{v[0][v[1]]}; });
  EXPECT_EQ(f({x, even})[0].to_vector(), (Doubles{1, 3, 5, 6}));
  const Function g = vmap([](const Tensors& v) {
    const Tensor y = v[0] * 1;
    y[v[1]] = f64({7, 8});
    return Tensors{y};
  });
  EXPECT_EQ(g({x, even})[0].to_vector(), (Doubles{7, 2, 8, 4, 7, 8}));
}

TEST(Subscripts, AreTensorsAndCopyElements) {
  const Tensor x = counted(), columns = mask_of(f64({0, 1, 1, 0}));
  EXPECT_TRUE(Tensor(x[{1, Slice{0, 2}}]).shares_storage(x));
  EXPECT_TRUE(Tensor(x[{}]).is_same(x));
  EXPECT_EQ((x[0] * 2 + x[{0}]).to_vector(), (select(x, 0, 0) * 3).to_vector());
  EXPECT_EQ(str(x[0][{1, Slice{None, 2}}]), "f64[2] [4, 5]");
  x[0] = x[{1}];
  x[{0, 0}] = x[0][1] = 9;
  x[{1, columns.numel() - 3}] /= 2;
  EXPECT_EQ(x.to_vector(), (Doubles{9,  9,  9,  9,  9, 9,   9, 9,   20, 21, 22, 23,
                                    12, 13, 14, 15, 8, 8.5, 9, 9.5, 20, 21, 22, 23}));
}

TEST(Subscripts, LeadingOnesOfAValueDoNotCount) {
  const Tensor x = counted(), columns = mask_of(f64({0, 1, 1, 0}));
  x[{0, 0}] = f64({1, 1, 4}, {7, 7, 7, 7});
  x[{1, Ellipsis, columns}] = f64({1, 1, 1, 2}, {5, 6});
  EXPECT_EQ(x.to_vector(),
            (Doubles{7, 7, 7, 7, 4, 5, 6, 7, 8, 9, 10, 11, 12, 5, 6, 15, 16, 5, 6, 19, 20, 5, 6, 23}));
}

TEST(Subscripts, KeepTheDtypeAndWhatTheMaskLeavesOut) {
  const int64_t big = (int64_t(1) << 53) + 1;
  const Tensor x = full({3}, big), mask = gt(f64({0, 1, 0}), 0);
  x[mask] = number(2.5);
  EXPECT_EQ(x.dtype(), DType::I64);
  EXPECT_EQ(select(x, 0, 0).item<int64_t>(), big);
  EXPECT_EQ(select(x, 0, 1).item<int64_t>(), 2);
  x[mask] += 3;
  EXPECT_EQ(select(x, 0, 1).item<int64_t>(), 5);
  EXPECT_EQ(select(x, 0, 2).item<int64_t>(), big);
  EXPECT_REFUSED(x[mask] *= 0.5, "dtype: mul: a is i64[3]; expected a dtype that can hold");  // as without
  EXPECT_REFUSED(x[1] *= 0.5, "dtype: mul: a is i64[]; expected a dtype that can hold");
  EXPECT_REFUSED(full({3}, 1, DType::U8)[mask] = 300, "overflow: ");
  const Tensor halves = full({2, 3}, 1, DType::F16), last = full({2}, 1, DType::F16);
  halves[{Ellipsis, mask}] += 0.25;
  last[{Ellipsis, gt(f64({0, 1}), 0)}] += 0.25;
  EXPECT_EQ(halves.dtype(), DType::F16);
  EXPECT_EQ(halves.to_vector(), (Doubles{1, 1.25, 1, 1, 1.25, 1}));
  EXPECT_EQ(last.to_vector(), (Doubles{1, 1.25}));
}

TEST(Subscripts, RefuseInTheirOwnWords) {
  const Tensor x = zeros({3, 4}), mask = gt(x, 0);
  const auto refused = [&](const Indices& list) { return first_line(refusal([&] { Subscript(x, list); })); };
  EXPECT_EQ(refused({0, 4}),
            "index_out_of_range: subscript: indices[1] = 4 is out of range for dim 1 of x: f32[3,4]; "
            "expected -4 <= index < 4");
  EXPECT_EQ(refused({-4}),
            "index_out_of_range: subscript: indices[0] = -4 is out of range for dim 0 of x: "
            "f32[3,4]; expected -3 <= index < 3");
  EXPECT_EQ(refused({0, 0, 0}),
            "dim_out_of_range: subscript: indices are for 3 dims of x: f32[3,4]; expected at most 2");
  EXPECT_EQ(refused({mask, 0}),
            "dim_out_of_range: subscript: indices are for 3 dims of x: f32[3,4]; expected at most 2");
  EXPECT_EQ(refused({0, Slice{0, 4, 0}}),
            "value: subscript: indices[1] is a Slice of step = 0, expected step > 0");
  EXPECT_EQ(refused({Ellipsis, 0, Ellipsis}),
            "value: subscript: indices[2] is a second Ellipsis; expected one at most");
  EXPECT_EQ(refused({gt(zeros({3}), 0), gt(zeros({4}), 0)}),
            "value: subscript: indices[1] is a second mask; expected one at most: logical_and "
            "combines them");
  EXPECT_EQ(refused({0, arange(2)}),
            "dtype: subscript: indices[1] is i64[2], expected bool, a mask: index_select and gather "
            "take tensors of integers");
  EXPECT_EQ(refused({Slice{}, gt(zeros({3}), 0)}),
            "shape: subscript: indices[1] is bool[3], expected the sizes [4] of x: f32[3,4] from dim "
            "1 on");
  EXPECT_EQ(refused({Tensor()}),
            "undefined: subscript: indices[0] is an undefined tensor; expected a mask: a defined "
            "tensor of bool");
  EXPECT_EQ(first_line(refusal([&] { Tensor()[0].read(); })),
            "undefined: subscript: x is an undefined tensor; expected a defined one");
  EXPECT_EQ(first_line(refusal([&] { x[0] = zeros({3}); })),
            "broadcast: copy: sizes do not broadcast at dim -1: got self: f32[4], src: f32[3]; "
            "expected equal sizes or 1");
  EXPECT_EQ(first_line(refusal([&] { x[0] = Tensor(); })),
            "undefined: subscript: value is an undefined tensor; expected a defined one");
  EXPECT_EQ(first_line(refusal([&] { x[0] += Tensor(); })),
            "undefined: subscript: value is an undefined tensor; expected a defined one");
  const Tensor rows = gt(f64({1, 0, 1}), 0);
  EXPECT_EQ(first_line(refusal([&] {
              x[rows] = zeros({3, 4});
            })),
            "broadcast: subscript: value is f32[3,4], expected size 2 or 1 at dim 0: as many as mask "
            "selects");
  EXPECT_EQ(first_line(refusal([&] {
              x[rows] += zeros({2, 2});
            })),
            "broadcast: subscript: value is f32[2,2], expected sizes that broadcast to f32[3,4] with "
            "the 1 dims of mask, from dim 0 on, as one");
  EXPECT_EQ(first_line(refusal([&] {
              x[rows] += zeros({1, 2, 4});
            })),
            "broadcast: subscript: value is f32[1,2,4], expected sizes that broadcast to f32[3,4] "
            "with the 1 dims of mask, from dim 0 on, as one");
  EXPECT_EQ(x.to_vector(), zeros({3, 4}).to_vector());
}

TEST(Subscripts, OfUnknownSizeAreRefused) {
  const Tensor x = f64({2, 2}, {1, 2, 3, 4}), uneven = gt(f64({2, 2}, {1, 0, 1, 1}), 0);
  const Function f = vmap([](const Tensors& v) { return Tensors{v[0][v[1]]}; });
  EXPECT_EQ(refusal([&] {
              f({x, uneven});
            }),
            "shape: subscript: mask is bool[2], and how many elements it selects has to be known "
            "(nonzero: its result is i64[2,1] in lane 1, expected i64[1,1] as in lane 0); expected a "
            "mask with values, equally many of them true in each lane of vmap: where(mask, x, y) "
            "keeps the shape\n  under: vmap#1 (size 2)");
  const Tensor meta = empty({2}, DType::Bool, Device::Meta);
  EXPECT_EQ(refusal([&] { empty({2}, DType::F32, Device::Meta)[meta].read(); }),
            "no_kernel: subscript: mask is bool[2], and how many elements it selects has to be known "
            "(nonzero: the shape of the result depends on the values of x: bool[2], which are not "
            "visible here (meta or under vmap); expected a tensor whose values are); expected a mask "
            "with values, equally many of them true in each lane of vmap: where(mask, x, y) keeps "
            "the shape");
}
}  // namespace
}  // namespace test_subscripts
