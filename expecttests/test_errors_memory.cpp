// Error texts of writing: in-place and out= forms, memory that is shared, views of memory, devices.
#include "refusal.h"

namespace {
using namespace lamella;
using namespace lamella::expect;

TEST(WriteErrors, InPlace) {
  EXPECT_INLINE(refused("add_", {of({3}), x23()}), R"(
      [shape] add: a is f64[3], expected f64[2,3] to hold the result)");
  EXPECT_INLINE(refused("add_", {of({3}, DType::I64), of({3})}), R"(
      [dtype] add: a is i64[3]; expected a dtype that can hold the result's f64)");
  EXPECT_INLINE(refused("mul_", {of({3}), of({3}, DType::C128)}), R"(
      [dtype] mul: a is f64[3]; expected a dtype that can hold the result's c128)");
  EXPECT_INLINE(refused("div_", {of({3}, DType::I64), of({3}, DType::I64)}), R"(
      [dtype] div: a is i64[3]; expected a dtype that can hold the result's f32)");
  EXPECT_INLINE(refused("copy_", {of({3}), x23()}), R"(
      [broadcast] copy: src is f64[2,3], expected sizes that broadcast to self: f64[3])");
  EXPECT_INLINE(refused("fill_", {x23(), Scalar(c128(0, 1))}), R"(
      [dtype] fill: value = 0+1j is complex, expected a real number for x: f64[2,3])");
  EXPECT_INLINE(refused_plainly("cos_", {expand(of({1}), {3})}), R"(
      [overlap] cos: x is f64[3] with strides [0]; expected elements that share no memory: clone it \
      before writing)");
  EXPECT_INLINE(refused_plainly("copy_", {expand(of({1}), {3}), of({3})}), R"(
      [overlap] copy: self is f64[3] with strides [0]; expected elements that share no memory: clone it \
      before writing)");
  EXPECT_INLINE(refused_plainly("fill_", {expand(of({1}), {3}), 1}), R"(
      [overlap] fill: x is f64[3] with strides [0]; expected elements that share no memory: clone it \
      before writing)");
}

TEST(WriteErrors, Out) {
  EXPECT_INLINE(refused("add_out", {of({2}), x23(), x23()}), R"(
      [shape] add: out is f64[2], expected f64[2,3] to hold the result)");
  EXPECT_INLINE(refused("add_out", {of({2, 3}, DType::I64), x23(), x23()}), R"(
      [dtype] add: out is i64[2,3]; expected a dtype that can hold the result's f64)");
  EXPECT_INLINE(refused("gather_out", {of({2, 1}, DType::F32), x23(), 1, ints({2, 1}, {0, 0})}), R"(
      [dtype] gather: out is f32[2,1], expected dtype f64)");
  EXPECT_INLINE(refused("sum_out", {of({2, 3}), x23()}), R"(
      [shape] sum: out is f64[2,3], expected f64[] to hold the result)");
  EXPECT_INLINE(refused("mm_out", {of({2, 3}), of({2, 2}), of({2, 2})}), R"(
      [shape] mm: out is f64[2,3], expected f64[2,2] to hold the result)");
  EXPECT_INLINE(refused_plainly("add_out", {expand(of({1}), {3}), of({3}), of({3})}), R"(
      [overlap] add: out is f64[3] with strides [0]; expected elements that share no memory: clone it \
      before writing)");
  EXPECT_INLINE(refused_plainly("add_out", {to_device(x23(), Device::Reference), x23(), x23()}), R"(
      [device] add: a is on cpu, expected reference as out)");
}

TEST(WriteErrors, SharedMemory) {
  const Tensor memory = ones({4}, DType::F64);
  const Tensor low = slice(memory, 0, 0, 3), high = slice(memory, 0, 1, 4);
  EXPECT_INLINE(refused_plainly("add_out", {high, low, low}), R"(
      [overlap] add: out and a share part of their memory; expected all of it or none: clone one of them)");
  EXPECT_INLINE(refused_plainly("add_", {high, low}), R"(
      [overlap] add: a and b share part of their memory; expected all of it or none: clone one of them)");
  EXPECT_INLINE(refused_plainly("copy_", {high, low}), R"(
      [overlap] copy: self and src share part of their memory; expected all of it or none: clone one of \
      them)");
  EXPECT_INLINE(refused_plainly("cat_out", {slice(memory, 0, 0, 2),
                                            Tensors{slice(memory, 0, 1, 2), slice(memory, 0, 0, 1)}}),
                R"(
      [overlap] cat: out and tensors share part of their memory; expected all of it or none: clone one \
      of them)");
}

TEST(DeviceErrors, Mixed) {
  EXPECT_INLINE(refused("add", {x23(), to_device(x23(), Device::Reference)}), R"(
      [device] add: b is on reference, and a is on cpu; expected one device: to_device moves a tensor)");
  EXPECT_INLINE(refused("cat", {Tensors{x23(), to_device(x23(), Device::Reference)}}), R"(
      [device] cat: tensors is on reference, and tensors is on cpu; expected one device: to_device \
      moves a tensor)");
  EXPECT_INLINE(refused("to_device", {x23(), std::string("gpu")}), R"(
      [schema] to_device: argument "device" got "gpu", expected Device device)");
  EXPECT_INLINE(refused("zeros_like", {x23()}, {{"device", Device::CUDA}}), R"(
      [no_kernel] zeros_like: device = cuda has no kernel of it; expected cpu, reference, meta or a \
      device that a plug-in serves)");
  EXPECT_INLINE(refused("empty", {Dims{2}}, {{"device", Device::CUDA}}), R"(
      [device] empty: device = cuda has no memory: nothing has claimed it by add_device; expected cpu, \
      reference, meta or a claimed one)");
  EXPECT_INLINE(refused_plainly("zeros_out", {x23(), Dims{2, 3}, {}, Device::Reference}), R"(
      [device] zeros: out is on cpu, and device = reference; expected one device)");
  EXPECT_INLINE(refused("where", {of({2, 3}, DType::Bool), to_device(x23(), Device::Reference), x23()}), R"(
      [device] where: x is on reference, and condition is on cpu; expected one device: to_device moves \
      a tensor)");
}

TEST(DeviceErrors, OfDirections) {
  const Tensor far = to_device(x23(), Device::Reference);
  const Function same = [](const Tensors& v) { return Tensors{v[0] * 2}; };
  EXPECT_INLINE(refused([&] { vjp(same, {x23()}).pullback({far}); }), R"(
      [device] pullback: cotangent 0 is on reference, expected cpu as the result)");
  EXPECT_INLINE(refused([&] { jvp(same, {x23()}, {far}); }), R"(
      [device] jvp: tangent 0 is on reference, expected cpu as its primal)");
  EXPECT_INLINE(refused([&] { backward(requires_grad(x23()) * 2, far); }), R"(
      [device] backward: cotangent is on reference, expected cpu as root)");
}

TEST(DeviceErrors, OfTheTarget) {
  const Tensor far = to_device(x23(), Device::Reference);
  EXPECT_INLINE(refused_plainly("add_out", {x23(), far, far}), R"(
      [device] add: out is on cpu, expected reference as the arguments)");
}

TEST(DeviceErrors, MetaDoesNotMove) {
  EXPECT_INLINE(refused_plainly("to_device", {to_device(x23(), Device::Meta), std::string("cpu")}), R"(
      [value] to_device: x: f64[2,3] is on meta, and device = cpu; expected a tensor that has values)");
}

/// The oracle's dtype has no kernels outside its column.
TEST(DeviceErrors, InternalDTypes) {
  const Tensor wide = to(to_device(x23(), Device::Reference), DType::F128);
  EXPECT_INLINE(refused_plainly("to_device", {wide, std::string("cpu")}), R"(
      [dtype] to_device: x is f128[2,3], a dtype of the reference column only; expected a public one)");
  EXPECT_INLINE(refused_plainly("neg", {make_tensor(Dims{2}, DType::F128)}), R"(
      [dtype] neg: x is f128[2], a dtype of the reference column only; expected a public one)");
  EXPECT_INLINE(refused("zeros", {Dims{2}}, {{"dtype", DType::F128}}), R"(
      [dtype] zeros: dtype = f128 exists in the reference column only; expected a public one)");
  EXPECT_INLINE(refused("empty", {Dims{2}}, {{"dtype", DType::F128}}), R"(
      [dtype] empty: dtype = f128 exists in the reference column only; expected a public one)");
}

TEST(DeviceErrors, MetaHasNoValues) {
  EXPECT_INLINE(refused("nonzero", {to_device(x23(), Device::Meta)}), R"(
    [no_kernel] nonzero: the shape of the result depends on the values of x: f64[2,3], which are not \
    visible here (meta or under vmap); expected a tensor whose values are)");
}

TEST(UndefinedErrors, Tensors) {
  EXPECT_INLINE(refused("exp", {Tensor()}), R"(
      [undefined] exp: argument "x" is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(refused("add", {x23(), Tensor()}), R"(
      [undefined] add: argument "b" is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(refused("cat", {lamella::Tensors{x23(), Tensor()}}), R"(
      [undefined] cat: argument "tensors" holds an undefined tensor; expected defined ones)");
  EXPECT_INLINE(refused([] { exp(Tensor()); }), R"(
      [undefined] exp: argument "x" is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(refused([] { add(x23(), Tensor()); }), R"(
      [undefined] add: argument "b" is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(refused([] { add(Tensor(), 1); }), R"(
      [undefined] got an undefined tensor beside the number 1; expected a defined one)");
  EXPECT_INLINE(refused([] {
                  cat(lamella::Tensors{x23(), Tensor()});
                }),
                R"(
      [undefined] cat: argument "tensors" is an undefined tensor; expected a defined one)");
}

TEST(MemoryErrors, ResultsTooLargeToHold) {
  const Tensor column = expand(of({1, 1}), {int64_t{1} << 30, 1}), row = expand(of({1}), {int64_t{1} << 30});
  EXPECT_INLINE(refused([&] { add(column, row); }, {column, row}), R"(
      [overflow] add: size = [1073741824,1073741824] has more elements than memory can hold; expected \
      at most 2^58)");
  const Tensor line = expand(of({1}), {int64_t{1} << 58});
  EXPECT_INLINE(refused(
                    [&] {
                      cat({line, line});
                    },
                    {line}),
                R"(
      [overflow] cat: size = [576460752303423488] has more elements than memory can hold; expected at \
      most 2^58)");
  EXPECT_INLINE(refused_plainly("cat", {lamella::Tensors(32, line)}), R"(
      [overflow] cat: the sizes of tensors at dim 0 add up to more than int64 holds; expected at most \
      2^58)");
  const std::string ranks = refused_plainly("unsqueeze", {of(Dims(64, 1)), 0});
  EXPECT_INLINE(ranks.substr(ranks.find("; ")), R"(; expected a result of at most 64 dims)");
}

TEST(MemoryErrors, Views) {
  EXPECT_INLINE(refused([] { make_view(x23(), IntArg{2}, IntArg{}, 0); }, {x23()}), R"(
      [shape] view: sizes has 1 entries and strides 0, expected as many of each)");
  EXPECT_INLINE(refused([] { make_view(x23(), IntArg{1}, IntArg{1}, INT64_MAX); }, {x23()}), R"(
      [storage] view: sizes = [1], strides = [1] at offset = 9223372036854775807; expected to stay within \
      the storage of 6 elements)");
  EXPECT_INLINE(refused([] { make_view(x23(), IntArg{1}, IntArg{1}, -1); }, {x23()}), R"(
      [storage] view: sizes = [1], strides = [1] at offset = -1; expected to stay within the storage of 6 \
      elements)");
  EXPECT_INLINE(refused([] { make_view(x23(), IntArg{2}, IntArg{-1}, 3); }, {x23()}), R"(
      [shape] view: stride = -1 is negative for dim 0; expected >= 0)");
  EXPECT_INLINE(refused([] { make_view(x23(), IntArg{7}, IntArg{1}, 0); }, {x23()}), R"(
      [storage] view: sizes = [7], strides = [1] at offset = 0; expected to stay within the storage of 6 \
      elements)");
  EXPECT_INLINE(refused([] { make_view(x23(), IntArg{3}, IntArg{INT64_MAX / 2}, 0); }, {x23()}), R"(
      [storage] view: sizes = [3], strides = [4611686018427387903] at offset = 0; expected to stay within \
      the storage of 6 elements)");
  EXPECT_INLINE(refused([] { make_view(x23(), IntArg{-1}, IntArg{1}, 0); }, {x23()}), R"(
      [shape] view: size = [-1] has a negative entry; expected sizes >= 0)");
}

TEST(MemoryErrors, Values) {
  EXPECT_INLINE(refused([] {
                  tensor_of({2, 2}, {1, 2, 3});
                }),
                R"(
      [shape] tensor_of: values has 3 entries for f32[2,2], expected one for each element)");
  EXPECT_INLINE(refused([] { (void)x23().item<double>(); }, {x23()}), R"(
      [shape] item: got f64[2,3], expected a tensor with one element)");
  EXPECT_INLINE(refused([] { Tensor().item<double>(); }), R"(
      [undefined] item: the tensor is undefined; expected a defined one)");
  EXPECT_INLINE(refused([] { Tensor().data<float>(); }), R"(
      [undefined] data: the tensor is undefined; expected a defined one)");
  EXPECT_INLINE(refused([] { x23().data<float>(); }, {x23()}), R"([dtype] data: got f64[2,3], expected f32)");
  EXPECT_INLINE(refused([] { to_device(x23(), Device::Meta).data<double>(); }), R"(
      [level] data: f64[2,3] has no memory of its own (it is wrapped by a transform, or meta); expected \
      a plain tensor)");
  EXPECT_INLINE(refused([] { to_device(x23(), Device::Meta).to_vector(); }), R"(
      [level] to_vector: the values of f64[2,3] are not visible here; expected a plain tensor that has \
      some)");
  EXPECT_INLINE(refused([] { Accessor<double, 1> at{x23()}; }, {x23()}), R"(
      [shape] accessor: got rank 2, expected 1)");
  EXPECT_INLINE(refused([] { Accessor<double, 2>{x23()}(0, 3); }, {x23()}), R"(
      [index_out_of_range] accessor: index = 3 is out of range for dim 1 of size 3)");
}
}  // namespace
