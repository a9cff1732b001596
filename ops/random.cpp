// Random numbers by counter: every element is a function of a key and its own index, whatever runs in
// parallel.
#include "lamella/ops/functions/random.h"

#include "lamella/core/device_hooks.h"
#include "lamella/core/generator.h"
#include "lamella/ops/define.h"
#include "lamella/ops/definitions.h"
#include "lamella/ops/functions/view.h"

namespace lamella::ops {

namespace {
constexpr std::string_view kConstant = "random numbers do not depend on differentiable inputs";
constexpr std::string_view kIntegers = "keys are integers";

void check_key(const Frame& f, const Tensor& key) {
  LAMELLA_CHECK(key.dtype() == DType::U64, DType, "{}: key is {}, expected u64", op_name(f), key);
}

void infer_key(const Frame&, Inferred& out) { out.outs.push_back({{}, DType::U64}); }

/// key.sizes ++ size.
void infer_draw(const Frame& f, Inferred& out) {
  out.compute = f.arg_or<DType>(2, dispatch_state().default_dtype);
  const bool complex_too = op_name(f) == "randn";
  LAMELLA_CHECK(is_floating(out.compute) || (complex_too && is_complex(out.compute)), DType,
                "{}: dtype = {}, expected {}", op_name(f), out.compute,
                complex_too ? "a floating or complex dtype" : "a floating dtype");
  Dims sizes;
  if (f.tensor(1).defined()) {
    check_key(f, f.tensor(1));
    sizes = f.tensor(1).sizes();
  }
  for (const int64_t s : f.ints(0)) sizes.push_back(s);
  checked_numel(sizes, op_name(f).c_str());
  out.outs.push_back({sizes, out.compute});
}

void launch_draw(const Launch& l) {
  Tensor key = l.frame.tensor(1);
  if (!key.defined()) { key = scalar_tensor(Scalar(generator_of(l.device).next()), DType::U64, l.device); }
  const View out = l.outs[0].view_of(), in = key.view_of();
  const int64_t ints[] = {key.rank(), dispatch_state().random_stream};
  run(l, {&out, 1}, {&in, 1}, ints);
}

void infer_fold_in(const Frame& f, Inferred& out) {
  check_key(f, f.tensor(0));
  LAMELLA_CHECK(f.tensor(1).dtype() == DType::U64, DType, "{}: data is {}, expected u64", op_name(f),
                f.tensor(1));
  const Tensor* both[] = {&f.tensor(0), &f.tensor(1)};
  out.compute = DType::U64;
  out.outs.push_back({broadcast(f, both), DType::U64});
}

void split_key_of(Frame& f) {
  const Tensor& key = f.tensor(0);
  const int64_t num = f.arg<int64_t>(1);
  check_key(f, key);
  LAMELLA_CHECK(num >= 0, Value, "{}: num = {}, expected num >= 0", op_name(f), num);
  checked_numel(Dims{num}, op_name(f).c_str());
  const Device there = key.device();  // also inside a transform
  const bool here = is_host(there);
  const Tensor which =
      make_tensor(Dims{num}, DType::U64, here || there == Device::Meta ? there : Device::CPU);
  if (there != Device::Meta) {
    const View out = which.view_of();
    const Scalar from_0_by_1[] = {0, 1};
    static const kernels::Kernel& arange = kernels::named("arange");
    run_kernel(f, arange.on(which.device()), {{&out, 1}, {}, DType::U64, {}, from_0_by_1});
  }
  f.results[0] = fold_in(unsqueeze(key, -1), on_device(which, there));
}

Values draw_samples(Draw& d, DTypeMask types) {
  const DType t = d.dtype(types);
  const Dims size = d.shape();
  const Tensor key = d.keys(d.shape(0, 1));
  return d.with_device({size, key, t}, 3);
}

Values fold_in_samples(Draw& d) {
  d.dtype(mask(DType::U64));
  const Dims s = d.shape();
  return {d.keys(s), d.keys(d.broadcastable(s))};
}

Values split_samples(Draw& d) {
  d.dtype(mask(DType::U64));
  const Tensor key = d.keys(d.shape(0, 2));
  return {key, d.range(0, 4)};
}
}  // namespace

namespace {
void define_keys() {
  OpTable::add({.schema = "fold_in(Tensor key, Tensor data) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_fold_in,
                .kernel = kernel("fold_in", mask(DType::U64)),
                .jvp = not_differentiable(kConstant),
                .vjp = not_differentiable(kConstant),
                .samples = fold_in_samples,
                .doc = "A new u64 key from each key and number, broadcast against each other; different "
                       "numbers give independent "
                       "streams. Error dtype unless both are u64."});
  OpTable::add({.schema = "split_key(Tensor key, int num) -> Tensor",
                .shape = ShapeClass::Composite,
                .infer = definition::shape_of_split_key,
                .kernel = {.reference = kernels::reference::keys_of},
                .composite = split_key_of,
                .jvp = not_differentiable(kIntegers),
                .vjp = not_differentiable(kIntegers),
                .properties = kNoInPlace | kNoOut,
                .samples = split_samples,
                .doc = "num new keys from each key, along a new last dim: fold_in of 0, 1, ... Error value "
                       "for num < 0."});
}
}  // namespace

void define_random() {
  OpTable::add({.schema = "next_key(*, Device? device=None) -> Tensor",
                .shape = ShapeClass::Random,
                .infer = infer_key,
                .launch =
                    [](const Launch& l) {
                      const uint64_t key = generator_of(l.device).next();
                      copy_bytes(l.outs[0].raw_data(), l.device, &key, Device::CPU, sizeof key);
                    },
                .jvp = not_differentiable(kConstant),
                .vjp = not_differentiable(kConstant),
                .properties = kRandom | kTestOnly | kNoOut | kAnyDevice,
                .samples = [](Draw&) { return Values{}; },
                .doc = "A key of the device's generator (mostly the thread's), one a call: what random "
                       "operators without a key draw from. "
                       "vmap sees it, so that nested lanes draw apart."});
  OpTable::add(
      {.schema = "rand(Size size, *, Tensor? key=None, DType? dtype=None, Device? device=None) -> Tensor",
       .shape = ShapeClass::Random,
       .infer = infer_draw,
       .kernel = kernel("rand_uniform"),
       .launch = launch_draw,
       .jvp = not_differentiable(kConstant),
       .vjp = not_differentiable(kConstant),
       .properties = kRandom,
       .promises = {.range = {.low = 0, .high = 1, .high_open = true}, .once = true},
       .samples = [](Draw& d) { return draw_samples(d, kFloating); },
       .doc = "Uniform in [0, 1), of shape key.sizes ++ size: one stream a key. Without a key the "
              "thread's generator "
              "gives one. Floating dtypes. On device=, else on the key's device, else the default one. Equal "
              "keys give equal numbers on every machine."});
  OpTable::add(
      {.schema = "randn(Size size, *, Tensor? key=None, DType? dtype=None, Device? device=None) -> Tensor",
       .shape = ShapeClass::Random,
       .infer = infer_draw,
       .kernel = kernel("rand_normal"),
       .launch = launch_draw,
       .jvp = not_differentiable(kConstant),
       .vjp = not_differentiable(kConstant),
       .properties = kRandom,
       .promises = {.range = {-8.6, 8.6}},
       .samples = [](Draw& d) { return draw_samples(d, kInexact); },
       .doc =
           "Standard normal, within 8.6, of shape key.sizes ++ size as rand; complex numbers have variance 1 "
           "over both parts."});
  define_keys();
}

}  // namespace lamella::ops
