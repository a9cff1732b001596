// Telling branches apart, by hashes of what is seen where calls, plans and errors are made.
#include "lamella/verify/run/branches.h"

#include <algorithm>
#include <utility>

#include "lamella/core/thresholds.h"
#include "lamella/dispatch/call.h"
#include "lamella/dispatch/frame_copy.h"

namespace lamella::verify {

namespace {
thread_local constinit CountBranches* counting = nullptr;

enum class Seen : uint64_t { Call, Alternative, Plan, Refusal };

uint64_t mixed(uint64_t a, uint64_t b) {
  a = (a ^ b) * 0x9E3779B97F4A7C15u;
  return a ^ a >> 29;
}

/// Backends and base autograd by key, levels by the transform that has the key.
uint64_t way(int chosen) {
  if (!is_level_key(chosen)) return uint64_t(chosen);
  const Transform* const t = dispatch_state().levels[chosen - kFirstLevelKey].transform;
  uint64_t h = uint64_t(kFirstLevelKey);
  if (t)
    for (const char c : t->name()) h = mixed(h, uint64_t(uint8_t(c)));
  return h;
}

uint64_t operand(const Tensor& t) {
  if (!t.defined()) return 1;
  const uint64_t layout =
      uint64_t(t.is_contiguous()) << 1 | uint64_t(t.numel() == 0) << 2 | uint64_t(t.impl()->offset != 0) << 3;
  return layout | uint64_t(std::min(t.rank(), 3)) << 4 | uint64_t(t.dtype()) << 6;
}

/// How many thresholds lie at or below it.
uint64_t side_of(int64_t n) {
  return uint64_t(std::ranges::count_if(
      all_thresholds(), [n](const Threshold& t) { return t.in == CountedIn::Size && t.usual <= n; }));
}

/// Words without numbers: sizes and dims differ from case to case, the check that refuses does not.
uint64_t words(std::string_view text) {
  uint64_t h = 0;
  for (const char c : text)
    if ((c >= 'a' && c <= 'z') || c == ' ') h = mixed(h, uint64_t(uint8_t(c)));
  return h;
}
}  // namespace

std::string Branches::bytes() const {
  std::string out(kBits / 8, '\0');
  for (size_t i = 0; i < kBits; ++i)
    if (taken_[i]) out[i / 8] = char(uint8_t(out[i / 8]) | 1u << i % 8);
  return out;
}

Branches Branches::parse(const std::string& bytes) {
  Branches b;
  for (size_t i = 0; i < std::min(kBits, bytes.size() * 8); ++i)
    if (uint8_t(bytes[i / 8]) >> i % 8 & 1) b.taken_.set(i);
  return b;
}

CountBranches::CountBranches(Branches& into)
    : into_(into),
      outer_(std::exchange(counting, this)),
      observing_(this),
      plans_(on_plan),
      errors_(on_error) {}
CountBranches::~CountBranches() { counting = outer_; }

void CountBranches::on_call(const Frame& frame, KeySet, int chosen) {
  Call& by = innermost();
  const uint64_t what = mixed(mixed(uint64_t(Seen::Call), frame.op->id), way(chosen));
  ++depth_;
  innermost() = {what, 0};
  if (chosen == int(Device::Reference)) return;  // the oracle is not what is looked for
  add(mixed(mixed(what, by.what), by.last));
  if (by.what != 0) by.last = what;  // else the law calls, and the order is its own
  if (chosen >= kAutogradKey) return;
  uint64_t alternative = mixed(mixed(uint64_t(Seen::Alternative), frame.op->id), thresholds().lowered);
  for_each_tensor(frame, [&](const Tensor& t, int i, int element) {
    if (element < 2) alternative = mixed(alternative, operand(t) << 4 | uint64_t(i));
  });
  add(alternative);
}

void CountBranches::on_return(const Frame&) { --depth_; }

void CountBranches::on_plan(IterPlan& p) {
  CountBranches& c = *counting;
  uint64_t h = mixed(mixed(uint64_t(Seen::Plan), c.innermost().what),
                     uint64_t(std::min(p.rank, 3)) << 8 | uint64_t(std::min(p.given_rank, 3)));
  for (int k = 0; k < p.operands; ++k)
    h = mixed(
        h, uint64_t(p.packed(k)) << 2 | uint64_t(p.stride(k, 0) == 0) << 1 | uint64_t(p.stride(k, 1) == 0));
  c.add(mixed(h, side_of(p.size(0))));
}

void CountBranches::on_error(ErrorCode code, std::string_view text) {
  CountBranches& c = *counting;
  c.add(mixed(mixed(uint64_t(Seen::Refusal), uint64_t(code)), words(text)));
}

}  // namespace lamella::verify
