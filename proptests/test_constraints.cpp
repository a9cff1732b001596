// The specification of arguments itself: complete, accepting what generators draw, and right where PyTorch's
// documentation has an example.
#include <cmath>
#include <gtest/gtest.h>

#include "lamella/lamella.h"
#include "lamella/verify/case/case.h"
#include "lamella/verify/oracle/constraints.h"
#include "lamella/verify/run/runner.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

std::vector<const Op*> library() {
  std::vector<const Op*> out;
  for (const Op* op : OpTable::current().rows())
    if (op->form == OpForm::Functional && !op->has(kTestOnly)) out.push_back(op);
  return out;
}

TEST(Constraints, EveryOperatorHasSome) {
  for (const Op* op : library()) EXPECT_TRUE(has_constraints(op->name)) << op->name;
}

/// Generators draw valid arguments; the specification does not know how.
TEST(Constraints, DrawnArgumentsAreAccepted) {
  for (const Op* op : library())
    for (uint64_t i = 0; i < 100; ++i) {
      const Choices choices = choices_of(5, laws().front(), *op, i);
      const Case c(*op, choices, {.max_numel = 16});
      const Ruling r = ruling(*op, c.args);
      ASSERT_FALSE(r.refuses()) << op->name << ": " << r.str() << "\n" << cpp_declarations(c.args);
    }
}

Tensor of(Dims sizes, DType d = DType::F64) { return ones(sizes, d); }
Tensor ints(Dims sizes, std::initializer_list<double> v) {
  return tensor_of(sizes, {v.begin(), v.size()}, DType::I64);
}

Ruling asked(const char* name, Values args) {
  const Op& op = *OpTable::current().find(name);
  return ruling(op, canonical(op, std::move(args)));
}
/// The codes that may be raised, and nothing where the call is accepted.
std::string codes(const char* op, Values args) {
  const Ruling r = asked(op, std::move(args));
  std::string out;
  for (const Objection& o : r.objections)
    for (const ErrorCode c : o.codes) out += (out.empty() ? "" : " ") + std::string(name(c));
  return r.open.empty() ? out : "open";
}

TEST(Constraints, Indices) {
  const Tensor x = of({2, 3});
  EXPECT_EQ(codes("gather", {x, 1, ints({2, 1}, {0, 2})}), "");
  EXPECT_EQ(codes("gather", {x, 1, ints({2, 1}, {0, 3})}), "index_out_of_range");
  EXPECT_EQ(codes("gather", {x, 1, ints({2, 1}, {0, -1})}), "index_out_of_range");
  EXPECT_EQ(codes("gather", {x, 2, ints({2, 1}, {0, 0})}), "dim_out_of_range");
  EXPECT_EQ(codes("gather", {x, 1, ints({3, 1}, {0, 0, 0})}), "shape");
  EXPECT_EQ(codes("index_select", {x, 0, ints({2}, {1, 2})}), "index_out_of_range");
  EXPECT_EQ(codes("index_add", {x, 0, ints({1}, {1}), of({2, 3})}), "shape");
  EXPECT_EQ(codes("select", {x, 1, 3}), "index_out_of_range");
  EXPECT_EQ(codes("select", {x, 1, -3}), "");
  EXPECT_EQ(codes("select", {x, 1, -4}), "index_out_of_range");
}

TEST(Constraints, Dims) {
  const Tensor x = of({2, 3});
  EXPECT_EQ(codes("sum", {x, Dims{0, -2}}), "shape");
  EXPECT_EQ(codes("sum", {of({}), Dims{0, -1}}), "shape");
  EXPECT_EQ(codes("sum", {x, Dims{2}}), "dim_out_of_range");
  EXPECT_EQ(codes("cumsum", {x, INT64_MIN}), "dim_out_of_range");
  EXPECT_EQ(codes("unsqueeze", {x, 2}), "");
  EXPECT_EQ(codes("unsqueeze", {x, -4}), "dim_out_of_range");
  EXPECT_EQ(codes("permute", {x, Dims{1, 1}}), "shape");
  EXPECT_EQ(codes("amax", {of({2, 0}), Dims{1}}), "shape");
  EXPECT_EQ(codes("amax", {of({2, 0}), Dims{0}}), "");
}

TEST(Constraints, Sizes) {
  EXPECT_EQ(codes("view", {transpose(of({2, 3}), 0, 1), Dims{6}}), "shape");
  EXPECT_EQ(codes("view", {transpose(of({2, 3}), 0, 1), Dims{3, 1, 2}}), "");
  EXPECT_EQ(codes("view", {expand(of({1}), {4}), Dims{2, 2}}), "");
  EXPECT_EQ(codes("reshape", {of({0, 5}), Dims{0, -1}}), "shape");
  EXPECT_EQ(codes("reshape", {of({6}), Dims{4, -1}}), "shape");
  EXPECT_EQ(codes("expand", {of({1, 3}), Dims{2, 2, -1}}), "");
  EXPECT_EQ(codes("expand", {of({1, 3}), Dims{-1, 2, 3}}), "shape");
  EXPECT_EQ(codes("expand", {of({2, 3}), Dims{4, 3}}), "broadcast");
  EXPECT_EQ(codes("zeros", {Dims{-1}}), "shape");
  EXPECT_EQ(codes("zeros", {Dims{INT64_MAX, 2}}), "overflow");
  EXPECT_EQ(codes("cat", {Tensors{of({0}), of({2, 3})}, 1}), "");
  EXPECT_EQ(codes("cat", {Tensors{of({4, 0}), of({5, 0, 2, 2})}, 1}), "shape");
  EXPECT_EQ(codes("split_with_sizes", {of({3}), Dims{1, 1}}), "value");
  EXPECT_EQ(codes("slice_scatter", {of({4}), of({2}), 0, 0, 4, 2}), "");
  EXPECT_EQ(codes("slice_scatter", {of({4}), of({3}), 0, 0, 4, 2}), "shape");
}

TEST(Constraints, Values) {
  const auto factor = [](std::initializer_list<double> m) {
    return codes("linalg_cholesky", {tensor_of({2, 2}, m, DType::F64)});
  };
  EXPECT_EQ(factor({2, 99, 1, 3}), "");  // the upper triangle is not read
  EXPECT_EQ(factor({0, 0, 0, 0}), "value");
  EXPECT_EQ(factor({1, 1, 1, 1}), "value");
  EXPECT_EQ(factor({1, 0, 2, 1}), "value");
  EXPECT_EQ(factor({1, 0, NAN, 1}), "value");
  EXPECT_EQ(factor({2, 0, 2, 2 + 1e-15}), "open");
  EXPECT_EQ(codes("div", {ints({2}, {1, 2}), ints({2}, {1, 0}), std::string("floor")}), "value");
  EXPECT_EQ(codes("div", {ints({2}, {1, 2}), ints({2}, {1, 0})}), "");
  EXPECT_EQ(codes("arange", {Scalar(0), Scalar(3), Scalar(-1)}), "value");
  EXPECT_EQ(codes("arange", {Scalar(0), Scalar(INFINITY)}), "value");
}
}  // namespace
