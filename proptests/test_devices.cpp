// A device by hooks: who allocates and frees, who waits, who draws, and what is said of devices without them.
#include <cstring>
#include <gtest/gtest.h>

#include "lamella/core/device_hooks.h"
#include "lamella/core/generator.h"
#include "lamella/dispatch/call.h"
#include "lamella/dispatch/state.h"
#include "lamella/dispatch/table.h"
#include "lamella/ops/devices.h"
#include "lamella/ops/functions.h"
#include "lamella/transforms/lanes.h"
#include "lamella/transforms/vmap.h"

namespace lamella {
namespace {

constexpr Device kThere = Device::User1;
int64_t allocated = 0, freed = 0, waited = 0;
bool full_up = false;
Generator& own_generator() {
  static Generator own(42);
  return own;
}

constexpr DeviceHooks kHooks{
    .allocate = [](size_t n) -> void* {
      if (full_up) return nullptr;
      allocated += int64_t(n);
      return std::aligned_alloc(64, (n + 63) / 64 * 64);
    },
    .free =
        [](void* p, size_t n) {
          freed += int64_t(n);
          std::free(p);
        },
    .copy_to = [](void* to, const void* from, size_t n) { std::memcpy(to, from, n); },
    .copy_from = [](void* to, const void* from, size_t n) { std::memcpy(to, from, n); },
    .copy_within = [](void* to, const void* from, size_t n) { std::memcpy(to, from, n); },
    .synchronize = [] { ++waited; },
    .generator = own_generator};

std::string refusal(const std::function<void()>& f, ErrorCode code) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}
bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

class Devices : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    DeviceHooks lacking = kHooks;
    lacking.copy_within = nullptr;
    EXPECT_TRUE(
        has(refusal([&] { OpTable::add_device(kThere, lacking); }, ErrorCode::Schema), "copy_within"));
    EXPECT_TRUE(
        has(refusal([] { (void)make_tensor(Dims{2}, DType::F32, kThere); }, ErrorCode::Device), "user1"));
    const ScopedOrigin one("one.so");
    OpTable::add_device(kThere, kHooks);  // for good
    OpTable::set_fallback(int(kThere), cpu_fallback);
  }
};

TEST_F(Devices, AreClaimedOnce) {
  const ScopedOrigin other("other.so");
  const std::string text = refusal([] { OpTable::add_device(kThere, kHooks); }, ErrorCode::Schema);
  EXPECT_TRUE(has(text, "one.so") && has(text, "other.so") && has(text, "user1")) << text;
  EXPECT_TRUE(has(refusal([] { OpTable::add_device(Device::CPU, kHooks); }, ErrorCode::Schema), "cpu"));
}

TEST_F(Devices, GetBackWhatTheyGave) {
  const int64_t before = allocated - freed;
  {
    const Tensor x = to_device(ones({100}), kThere), view = slice(x, 0, 10, 20);
    EXPECT_EQ(allocated - freed, before + 400);
    EXPECT_EQ(x.shares_storage(view), true);
    EXPECT_EQ(sum(view).item<float>(), 10);
  }
  EXPECT_EQ(allocated - freed, before);
}

TEST_F(Devices, HoldSmallTensorsThemselves) {
  const int64_t before = allocated;
  const Tensor x = full({2}, 3, DType::F32, kThere);
  EXPECT_GT(allocated, before);
  EXPECT_EQ(str(x), "f32[2] on user1 [3, 3]");
}

TEST_F(Devices, AreWaitedForWhereTheHostReads) {
  const Tensor x = full({}, 3, DType::F32, kThere);
  const int64_t before = waited;
  EXPECT_EQ(x.item<float>(), 3);
  EXPECT_EQ(to_device(x, Device::CPU).item<float>(), 3);
  (void)str(x);
  EXPECT_EQ(waited, before + 3);
  EXPECT_TRUE(has(refusal([&] { (void)x.data<float>(); }, ErrorCode::Device), "user1"));
}

TEST_F(Devices, DrawFromTheirGenerator) {
  const uint64_t host = default_generator().counter(), there = own_generator().counter();
  const Tensor drawn = rand({3}, {}, DType::F64, kThere);
  EXPECT_EQ(own_generator().counter(), there + 1);
  const auto lanes = vmap([](const Tensors&) { return Tensors{rand({2}, {}, DType::F64, kThere)}; },
                          {.in_dims = {}, .randomness = Randomness::Different, .size = 3});
  const Tensor y = lanes({})[0];
  EXPECT_EQ(own_generator().counter(), there + 2);
  EXPECT_EQ(default_generator().counter(), host);
  EXPECT_EQ(y.device(), kThere);
  Generator again(42);
  again.set_counter(there);
  const ScopedGenerator scope(again);
  EXPECT_EQ(rand({3}, {}, DType::F64).to_vector(), drawn.to_vector());  // equal keys, equal numbers
}

TEST_F(Devices, RunOutOfMemory) {
  full_up = true;
  EXPECT_TRUE(has(refusal([] { (void)zeros({2}, {}, kThere); }, ErrorCode::OutOfMemory), "user1"));
  full_up = false;
}

TEST_F(Devices, WithoutHooksHaveNoMemory) {
  EXPECT_TRUE(has(refusal([] { (void)to_device(ones({2}), Device::CUDA); }, ErrorCode::Device), "cuda"));
  EXPECT_TRUE(has(refusal([] { (void)empty({2}, {}, Device::CUDA); }, ErrorCode::Device), "cuda"));
  EXPECT_TRUE(
      has(refusal([] { (void)ones_like(ones({2}), {}, Device::CUDA); }, ErrorCode::NoKernel), "cuda"));
  const DefaultDevice none(Device::CUDA);
  EXPECT_TRUE(has(refusal([] { (void)zeros({2}); }, ErrorCode::NoKernel), "cuda"));
}

TEST_F(Devices, DoNotMix) {
  const Tensor here = ones({2}), there = to_device(here, kThere);
  const std::string text = refusal([&] { (void)add(here, there); }, ErrorCode::Device);
  EXPECT_TRUE(has(text, "add: b is on user1, and a is on cpu")) << text;
  copy_(here, there * Scalar(2));
  EXPECT_EQ(here.to_vector(), (std::vector<double>{2, 2}));
  copy_(there, here);
  EXPECT_EQ(there.to_vector(), (std::vector<double>{2, 2}));
  const Tensor key = to_device(scalar_tensor(Scalar(uint64_t{7}), DType::U64), kThere);
  const std::string elsewhere = refusal(
      [&] {
        call("rand_out", {here, Dims{2}, key, DType::F32, kThere});
      },
      ErrorCode::Device);
  EXPECT_TRUE(has(elsewhere, "out is on cpu, and device = user1")) << elsewhere;
}

/// Where the loop has no lane to run, too.
TEST_F(Devices, EmptyBatchesLieWhereLanesWould) {
  const ForceLoop loop;
  const auto away = [](const Tensors& v) { return Tensors{to_device(v[0], kThere)}; };
  EXPECT_EQ(vmap(away)({zeros({1, 3})})[0].device(), kThere);
  EXPECT_EQ(vmap(away)({zeros({0, 3})})[0].device(), kThere);
}

/// Views of one storage share the copy that the fallback works on.
TEST_F(Devices, FallBackWithoutLosingViews) {
  const Tensor x = to_device(arange(6, {}, {}, DType::F32), kThere);
  const Tensor even = slice(x, 0, 0, 6, 2), odd = slice(x, 0, 1, 6, 2);
  const int64_t before = cpu_fallbacks();
  add_(even, odd);
  EXPECT_GT(cpu_fallbacks(), before);
  EXPECT_EQ(x.to_vector(), (std::vector<double>{1, 1, 5, 3, 9, 5}));
  EXPECT_TRUE(has(refusal([&] { add_(slice(x, 0, 0, 3), slice(x, 0, 1, 4)); }, ErrorCode::Overlap), "add"));
  EXPECT_EQ(split(x, 2).size(), 3u);
  EXPECT_EQ(sort(x)[1].device(), kThere);
}

}  // namespace
}  // namespace lamella
