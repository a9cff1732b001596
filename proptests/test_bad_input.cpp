// Bad input is refused with a typed error that names operator and argument, before anything is written or
// allocated.
#include <functional>
#include <gtest/gtest.h>

#include "lamella/lamella.h"

namespace {
using namespace lamella;

struct Bad {
  const char* what;
  ErrorCode code;
  const char* names;  ///< must occur in the message
  std::function<void()> call;
};

const Tensor& x23() {
  static const Tensor x = tensor_of({2, 3}, {1, 2, 3, 4, 5, 6}, DType::F64);
  return x;
}
Tensor ints(std::initializer_list<int64_t> sizes, std::initializer_list<double> v) {
  return tensor_of(sizes, v, DType::I64);
}
constexpr int64_t kHuge = int64_t{1} << 32;

UnaryFunction escaping() {
  return [](const Tensor& t) { return sum(t); };
}

/// What cases let out of a level.
Tensor escaped;

std::vector<Bad> bad_sizes() {
  const Tensor x = x23();
  return {
      {"negative size", ErrorCode::Shape, "size", [] { zeros({-1}); }},
      {"-1 twice", ErrorCode::Shape, "view",
       [=] {
         view(x, {-1, -1});
       }},
      {"count differs", ErrorCode::Shape, "reshape", [=] { reshape(x, {4}); }},
      {"numel overflow", ErrorCode::Overflow, "size",
       [] {
         zeros({kHuge, kHuge});
       }},
      {"empty with overflowing strides", ErrorCode::Overflow, "size",
       [] {
         zeros({0, 2786357852644344240, 11, 15, 10, 16});
       }},
      {"strides and sizes differ in rank", ErrorCode::Shape, "strides",
       [=] { make_view(x, IntArg{2}, IntArg{}, 0); }},
      {"offset 2^63-1", ErrorCode::Storage, "offset", [=] { make_view(x, IntArg{1}, IntArg{1}, INT64_MAX); }},
      {"negative offset", ErrorCode::Storage, "offset", [=] { make_view(x, IntArg{1}, IntArg{1}, -1); }},
      {"negative stride", ErrorCode::Shape, "stride", [=] { make_view(x, IntArg{2}, IntArg{-1}, 3); }},
      {"view past the end", ErrorCode::Storage, "storage", [=] { make_view(x, IntArg{7}, IntArg{1}, 0); }},
      {"span overflow", ErrorCode::Storage, "storage",
       [=] { make_view(x, IntArg{3}, IntArg{INT64_MAX / 2}, 0); }},
      {"dim out of range", ErrorCode::DimOutOfRange, "cumsum: dim = 2", [=] { cumsum(x, 2); }},
      {"dim below range", ErrorCode::DimOutOfRange, "cumsum: dim = -3", [=] { cumsum(x, -3); }},
      {"dim of rank 0", ErrorCode::DimOutOfRange, "dim = 1", [] { cumsum(ones({}), 1); }},
      {"duplicate dims", ErrorCode::Shape, "sum",
       [=] {
         sum(x, IntArg{0, 0});
       }},
      {"duplicate dims in permute", ErrorCode::Shape, "permute",
       [=] {
         permute(x, {0, 0});
       }},
      {"index out of range", ErrorCode::IndexOutOfRange, "gather",
       [=] {
         gather(x, 1, ints({2, 1}, {0, 3}));
       }},
      {"index INT64_MIN", ErrorCode::IndexOutOfRange, "index_select",
       [=] { index_select(x, 0, full({1}, INT64_MIN)); }},
      {"scatter index", ErrorCode::IndexOutOfRange, "scatter_add",
       [=] {
         scatter_add(x, 0, ints({1, 3}, {0, 2, 0}), ones({1, 3}, DType::F64));
       }},
      {"select index", ErrorCode::IndexOutOfRange, "select", [=] { select(x, 0, 2); }},
  };
}

std::vector<Bad> bad_operands() {
  const Tensor x = x23();
  const Tensor wide = expand(tensor_of({1}, {1}, DType::F64), {3});
  return {
      {"empty list", ErrorCode::Value, "cat", [] { cat(Tensors{}, 0); }},
      {"empty stack", ErrorCode::Value, "stack", [] { stack(Tensors{}, 0); }},
      {"slice step 0", ErrorCode::Value, "step", [=] { slice(x, 0, 0, 2, 0); }},
      {"arange step 0", ErrorCode::Value, "step", [] { arange(0, 3, 0); }},
      {"broadcast mismatch", ErrorCode::Broadcast, "add: sizes do not broadcast",
       [=] { add(x, ones({2}, DType::F64)); }},
      {"out of wrong shape", ErrorCode::Shape, "out", [=] { add_out(zeros({2}, DType::F64), x, x); }},
      {"out overlaps input", ErrorCode::Overlap, "share",
       [=] {
         const Tensor memory = ones({4}, DType::F64);
         add_out(slice(memory, 0, 1, 4), slice(memory, 0, 0, 3), slice(memory, 0, 0, 3));
       }},
      {"in place on expanded", ErrorCode::Overlap, "clone it", [=] { cos_(wide); }},
      {"in place would grow", ErrorCode::Shape, "expected", [=] { add_(ones({3}, DType::F64), x); }},
  };
}

std::vector<Bad> bad_arguments() {
  const Tensor x = x23();
  return {
      {"float into int", ErrorCode::DType, "can hold", [] { add_(ints({1}, {1}), ones({1}, DType::F64)); }},
      {"bool minus bool", ErrorCode::DType, "sub",
       [] { sub(ones({1}, DType::Bool), ones({1}, DType::Bool)); }},
      {"integer division by zero", ErrorCode::Value, "b != 0",
       [] { div(ints({1}, {1}), ints({1}, {0}), "floor"); }},
      {"mixed devices", ErrorCode::Device, "add: b is on reference, and a is on cpu",
       [=] { add(x, to_device(x, Device::Reference)); }},
      {"undefined tensor", ErrorCode::Undefined, "exp", [] { exp(Tensor()); }},
      {"undefined tensor in a composite", ErrorCode::Undefined, "matmul: argument \"b\"",
       [=] { matmul(x, Tensor()); }},
      {"undefined first operand", ErrorCode::Undefined, "sub: argument \"a\"", [=] { sub(Tensor(), x); }},
      {"undefined dividend", ErrorCode::Undefined, "div: argument \"a\"", [=] { div(Tensor(), x); }},
      {"undefined tensor in a list", ErrorCode::Undefined, "stack: argument \"tensors\"",
       [=] {
         stack(Tensors{x, Tensor()}, 0);
       }},
      {"undefined target", ErrorCode::Undefined, "add: argument \"a\"", [=] { add_(Tensor(), x); }},
      {"undefined out", ErrorCode::Undefined, "add: argument \"out\"", [=] { add_out(Tensor(), x, x); }},
      {"undefined target beside lanes", ErrorCode::Undefined, "add: argument \"a\"",
       [=] { vmap(UnaryFunction([](const Tensor& t) { return add_(Tensor(), t); }))(x); }},
      {"undefined out beside lanes", ErrorCode::Undefined, "add: argument \"out\"",
       [=] { vmap(UnaryFunction([](const Tensor& t) { return add_out(Tensor(), t, t); }))(x); }},
      {"undefined target of what is tracked", ErrorCode::Undefined, "add: argument \"a\"",
       [=] { add_(Tensor(), requires_grad(x)); }},
      {"undefined out of what is tracked", ErrorCode::Undefined, "exp: argument \"out\"",
       [=] { exp_out(Tensor(), requires_grad(x)); }},
      {"undefined tensor beside lanes", ErrorCode::Undefined, "gather: argument \"index\"",
       [=] { vmap(UnaryFunction([](const Tensor& t) { return gather(t, 0, Tensor()); }))(x); }},
      {"devices in a composite", ErrorCode::Device, "matmul: b is on reference, and a is on cpu",
       [=] {
         matmul(x, to_device(ones({3, 2}, DType::F64), Device::Reference));
       }},
      {"cotangent of another dtype", ErrorCode::DType, "cotangent 0",
       [=] {
         vjp([](const Tensors& v) { return v; }, {x}).pullback({ones({2, 3}, DType::F32)});
       }},
      {"moved-from tensor", ErrorCode::Undefined, "mul",
       [=] {
         Tensor a = clone(x);
         const Tensor b = std::move(a);
         mul(b, a);
       }},
      {"not positive definite", ErrorCode::Value, "positive definite", [] { linalg_cholesky(neg(eye(2))); }},
  };
}

std::vector<Bad> bad_levels() {
  const Tensor x = x23();
  return {
      {"batch sizes differ", ErrorCode::MappedSize, "lanes",
       [=] {
         vmap(Function([](const Tensors& v) { return Tensors{v[0] + v[1]}; }), InDims{0, 1})({x, x});
       }},
      {"lanes and size differ", ErrorCode::MappedSize, "size = 3",
       [=] {
         vmap(Function([](const Tensors& v) { return v; }), {{0}, {0}, Randomness::Error, 3})({x});
       }},
      {"in_dim out of range", ErrorCode::DimOutOfRange, "in_dims", [=] { vmap(escaping(), 2)(x); }},
      {"vmap over nothing", ErrorCode::MappedSize, "mapped",
       [=] { vmap(Function([](const Tensors& v) { return v; }), InDims{kNone})({x}); }},
      {"out_dim none of a mapped result", ErrorCode::DimOutOfRange, "depends on the lane",
       [=] { vmap(Function([](const Tensors& v) { return v; }), InDims{0}, InDims{kNone})({x}); }},
      {"out_dim out of range", ErrorCode::DimOutOfRange, "out_dims", [=] { vmap(escaping(), 0, 1)(x); }},
      {"wrapper escapes", ErrorCode::EscapedWrapper, "ended",
       [=] {
         vmap(Function([](const Tensors& v) {
                escaped = v[0];
                return v;
              }),
              VmapOptions{})({x});
         exp(escaped);
       }},
      {"grad wrapper escapes", ErrorCode::EscapedWrapper, "ended",
       [=] {
         vjp(
             [](const Tensors& v) {
               escaped = v[0];
               return v;
             },
             {x});
         exp(escaped);
       }},
      {"tangent of other shape", ErrorCode::Shape, "tangent 0",
       [=] { jvp([](const Tensors& v) { return v; }, {x}, {ones({3}, DType::F64)}); }},
      {"tangent of other dtype", ErrorCode::DType, "tangent 0",
       [=] {
         jvp([](const Tensors& v) { return v; }, {x}, {ones({2, 3}, DType::F32)});
       }},
      {"grad of several elements", ErrorCode::Shape, "one element",
       [=] { grad([](const Tensor& t) { return t; })(x); }},
      {"grad of an integer", ErrorCode::DType, "floating",
       [] { grad([](const Tensor& t) { return sum(t); })(ints({1}, {1})); }},
      {"random under vmap", ErrorCode::Randomness, "randomness",
       [=] { vmap(Function([](const Tensors&) { return Tensors{rand({2})}; }), VmapOptions{})({x}); }},
      {"captured tensor written", ErrorCode::Level, "made outside",
       [=] {
         const Tensor outside = zeros({3}, DType::F64);
         vmap(Function([&](const Tensors& v) { return Tensors{add_(outside, v[0])}; }), VmapOptions{})({x});
       }},
      {"argument of grad written", ErrorCode::Level, "argument of grad",
       [=] { grad([](const Tensor& t) { return sum(mul_(t, t)); })(x); }},
  };
}

std::vector<Bad> bad_texts() {
  return {
      {"boxed: too few", ErrorCode::Schema, "missing", [] { call("mul", {ones({1})}); }},
      {"boxed: too many", ErrorCode::Schema, "at most",
       [] {
         call("exp", {ones({1}), ones({1})});
       }},
      {"boxed: wrong kind", ErrorCode::Schema, "argument \"dim\"",
       [] {
         call("cumsum", {ones({1}), std::string("0")});
       }},
      {"boxed: null", ErrorCode::Schema, "None", [] { call("exp", {Value{}}); }},
      {"boxed: unknown operator", ErrorCode::UnknownOperator, "no operator", [] { call("frobnicate", {}); }},
      {"schema: unterminated", ErrorCode::Schema, "position", [] { parse_schema("f(Tensor x"); }},
      {"schema: long identifier", ErrorCode::Schema, "characters",
       [] { parse_schema(std::string(10'000'000, 'a')); }},
      {"schema: NUL", ErrorCode::Schema, "position", [] { parse_schema(std::string_view("f(\0)", 4)); }},
      {"schema: unicode", ErrorCode::Schema, "position",
       [] { parse_schema("f(Tensor \xc3\xa9) -> Tensor"); }},
  };
}

std::vector<Bad> cases() {
  std::vector<Bad> all;
  for (const auto& some : {bad_sizes(), bad_operands(), bad_arguments(), bad_levels(), bad_texts()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

class BadInput : public testing::TestWithParam<int> {};

TEST_P(BadInput, IsRefused) {
  const Bad bad = cases()[size_t(GetParam())];
  const MemoryStats before = memory_stats();
  try {
    bad.call();
    FAIL() << bad.what << " was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), bad.code) << bad.what << ": got " << name(e.code()) << ": " << e.what();
    EXPECT_NE(std::string(e.what()).find(bad.names), std::string::npos) << bad.what << ": " << e.what();
  }
  escaped = {};
  EXPECT_EQ(memory_stats().bytes, before.bytes) << bad.what << " leaked";
  EXPECT_EQ(dispatch_state().depth, 0) << bad.what;
  EXPECT_EQ(dispatch_state().exclude, 0u) << bad.what;
}

INSTANTIATE_TEST_SUITE_P(All, BadInput, testing::Range(0, int(cases().size())));

TEST(Levels, FortyNestedLevelsWorkAndTheFortyNinthIsRefused) {
  std::function<Tensor(const Tensor&, int)> nest = [&](const Tensor& t, int left) -> Tensor {
    if (left == 0) return t * t;
    return select(vmap(UnaryFunction([&](const Tensor& u) { return nest(u, left - 1); }))(unsqueeze(t, 0)), 0,
                  0);
  };
  const Tensor x = tensor_of({2}, {2, 3}, DType::F64);
  EXPECT_EQ(nest(x, 40).to_vector(), (std::vector<double>{4, 9}));
  EXPECT_EQ(nest(x, kMaxLevels).to_vector(), (std::vector<double>{4, 9}));
  try {
    nest(x, kMaxLevels + 1);
    FAIL() << "49 levels were accepted";
  } catch (const Error& e) { EXPECT_EQ(e.code(), ErrorCode::LevelLimit); }
  EXPECT_EQ(dispatch_state().depth, 0);
}

TEST(Tape, AChainOfAMillionNodesIsFreedWithoutRecursion) {
  Tensor y = requires_grad(ones({1}, DType::F64));
  const Tensor leaf = y;
  for (int i = 0; i < 1'000'000; ++i) y = neg(y);
  backward(y);
  EXPECT_EQ(grad_of(leaf).item<double>(), 1);
}

TEST(Printing, WrappedTensorsPrintAtEveryDepth) {
  const Tensor x = x23();
  std::string text;
  vmap(UnaryFunction([&](const Tensor& t) {
    return grad([&](const Tensor& u) {
      text = str(u);
      return sum(u);
    })(t);
  }))(x);
  EXPECT_NE(text.find("grad#2"), std::string::npos) << text;
  EXPECT_NE(text.find("vmap#1"), std::string::npos) << text;
  EXPECT_NE(text.find("f64[2,3]"), std::string::npos) << text;
  EXPECT_EQ(str(Tensor()), "undefined");
}

/// Indices are looked at before anything is written, x itself included.
TEST(RefusedIndices, LeaveOutAlone) {
  const Tensor x = ones({4}, DType::F64), src = ones({2}, DType::F64), wrong = ints({2}, {1, 7});
  const Tensor out = full({4}, 9.0, DType::F64), two = full({2}, 9.0, DType::F64);
  const std::function<void()> calls[] = {
      [&] { scatter_add_out(out, x, 0, wrong, src); }, [&] { index_add_out(out, x, 0, wrong, src); },
      [&] { gather_out(two, x, 0, wrong); }, [&] { index_select_out(two, x, 0, wrong); }};
  for (const auto& call : calls) EXPECT_THROW(call(), Error);
  EXPECT_EQ(out.to_vector(), std::vector<double>(4, 9));
  EXPECT_EQ(two.to_vector(), std::vector<double>(2, 9));
  EXPECT_THROW(scatter_add_(x, 0, wrong, src), Error);
  EXPECT_EQ(x.to_vector(), std::vector<double>(4, 1));
}
}  // namespace
