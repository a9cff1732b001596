// Serials of levels: no two of a process are equal, whichever threads open them and when.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>

#include "lamella/core/tensor.h"
#include "lamella/dispatch/state.h"
#include "lamella/verify/case/pass_on.h"
#include "lamella/verify/case/thread_schedule.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

/// Serials of levels that threads had open, in their order.
using Opened = std::vector<std::vector<uint64_t>>;

/// Who had which so far: what is wrong with those of further threads; empty when nothing is.
std::string repeated(std::map<uint64_t, size_t>& owners, const Opened& opened) {
  const size_t first = owners.empty() ? 0 : 1 + std::ranges::max_element(owners, {}, [](const auto& o) {
                                                  return o.second;
                                                })->second;
  for (size_t t = 0; t < opened.size(); ++t)
    for (size_t k = 0; k < opened[t].size(); ++k) {
      const uint64_t serial = opened[t][k];
      if (serial == 0) return format("thread {} has a level of serial 0", first + t);
      if (k > 0 && serial <= opened[t][k - 1])
        return format("thread {} has {} after {}", first + t, serial, opened[t][k - 1]);
      if (const auto [at, fresh] = owners.try_emplace(serial, first + t); !fresh)
        return format("threads {} and {} have levels of serial {}", at->second, first + t, serial);
    }
  return "";
}

/// Fresh threads ask for their first serials at once, or stop in drawn order between the steps of asking.
Opened opened_by_fresh_threads(uint32_t word, size_t threads) {
  Opened out(threads);
  std::vector<std::function<void()>> bodies;
  for (std::vector<uint64_t>& mine : out) {
    mine.reserve(4);
    bodies.push_back([&mine] {
      PassOn outer, inner;
      for (int k = 0; k < 2; ++k) {
        const Level one(outer);
        mine.push_back(one.serial());
        Schedule::yield();
        const Level two(inner);
        mine.push_back(two.serial());
      }
    });
  }
  for (const Finding& raised : Schedule(word, word % 8 == 0).run(bodies)) EXPECT_EQ(raised, "");
  return out;
}

TEST(Serials, NoTwoThreadsHaveOne) {
  std::map<uint64_t, size_t> owners;
  for (uint32_t round = 0; round < 4000; ++round)
    ASSERT_EQ(repeated(owners, opened_by_fresh_threads(round, 2 + round % 3)), "") << "round " << round;
}

TEST(Serials, ThoseOfTwoThreadsAreNamed) {
  std::map<uint64_t, size_t> owners;
  EXPECT_EQ(repeated(owners, {{1, 2}, {9, 10}}), "");
  EXPECT_EQ(repeated(owners, {{17}, {18, 2}}), "thread 3 has 2 after 18");
  owners.clear();
  EXPECT_EQ(repeated(owners, {{1, 2}, {9, 10}}), "");
  EXPECT_EQ(repeated(owners, {{17}, {2}}), "threads 0 and 3 have levels of serial 2");
  EXPECT_EQ(repeated(owners, {{0}}), "thread 3 has a level of serial 0");
}

/// The state of a thread that acts for another: its levels, and nothing of it afterwards.
TEST(ScopedStates, CarryLevelsToAThreadAndLeaveItsOwn) {
  PassOn transform, own_transform;
  const Level level(transform);
  dispatch_state().ambient |= 2;
  const DispatchState::Captured captured = DispatchState::capture();
  dispatch_state().ambient &= ~uint64_t{2};
  std::vector<uint64_t> seen;
  const auto note = [&] {
    const DispatchState& s = dispatch_state();
    seen.insert(seen.end(), {uint64_t(s.depth), s.depth > 0 ? s.levels[0].serial : 0, s.ambient & 2});
  };
  uint64_t own_serial = 0;
  const std::vector<Finding> raised = Schedule(1, true).run({[&] {
    const Level own(own_transform);
    own_serial = own.serial();
    note();
    try {
      const ScopedState on(captured);
      note();
      throw 1;
    } catch (int) {}
    note();
  }});
  ASSERT_EQ(raised.size(), 1u);
  EXPECT_EQ(raised[0], "");
  EXPECT_EQ(seen, (std::vector<uint64_t>{1, own_serial, 0, 1, level.serial(), 2, 1, own_serial, 0}));
  EXPECT_NE(own_serial, level.serial());
}

}  // namespace
