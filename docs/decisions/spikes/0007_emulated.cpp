// Spike 0007 on the emulated device: the text, the text without barriers, and a host that follows a device
// address.
#include "0007_device.h"
#include "0007_reference.h"
#include "0007_simt.h"
#include "timing.h"

namespace {
using namespace spike;

template <bool kBarriers> bool run() {
  const std::vector<float> a = input(kLines * kLength, 1), b = input(kLines * kLength, 2);
  std::vector<float> c(a.size()), sums(kLines), scans(a.size());
  const auto in = [](const std::vector<float>& v) {
    return DevicePointer<const float>{v.data(), int64_t(v.size())};
  };
  const auto out = [](std::vector<float>& v) { return DevicePointer<float>{v.data(), int64_t(v.size())}; };
  machine.races = machine.switches = 0;
  const double start = now_ns();
  machine.run(3, [&] {
    whole_spike(LaneExecutor<Emulated<kBarriers>>{}, in(a), in(b), out(c), out(sums), out(scans), kLines,
                kLength);
  });
  const double elapsed = now_ns() - start;
  std::printf("%s: %lld races seen, %.1f ms, %lld switches of %.0f ns\n",
              kBarriers ? "the text" : "barriers left out", (long long)machine.races, elapsed / 1e6,
              (long long)machine.switches, elapsed / double(machine.switches));
  return report("pointwise", c, mul_add_expected(a, b)) &
         report("reduce", sums, sums_expected(a, kLines, kLength, false)) &
         report("scan", scans, sums_expected(a, kLines, kLength, true));
}
}  // namespace

int main() {
  const bool ok = run<true>() && machine.races == 0;
  run<false>();
  try {
    spike::keep(DevicePointer<float>{nullptr, 1}[0]);
  } catch (const std::logic_error& e) { std::printf("a host loop over device memory: %s\n", e.what()); }
  return ok ? 0 : 1;
}
