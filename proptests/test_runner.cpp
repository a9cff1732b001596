// The runner: seeds, shards, processes, workers that die, and failures that need more than their case.
#include <array>
#include <atomic>
#include <csignal>
#include <gtest/gtest.h>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

#include "lamella/dispatch/table.h"
#include "lamella/verify/run/record.h"
#include "lamella/verify/run/runner.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

const Op& op(const char* name) { return *OpTable::current().find(name); }
bool every(const Op&) { return true; }
Law law_that(std::string_view id, Verdict (*check)(Case&)) {
  return {0, id, "test", "Is known.", {}, false, every, check};
}
Verdict passes(Case&) { return Verdict::pass(); }

Report run_all(const std::vector<const Law*>& laws, double seconds, uint64_t seed = 1, int processes = 2,
               uint64_t cases = 0) {
  static const volatile std::sig_atomic_t never = 0;
  RunOptions o{{&op("neg"), &op("add")}, laws, seconds, seed, processes};
  o.cases = cases, o.patience = 0.4;
  return run(o, never);
}
const Failure* found(const Report& r, std::string_view law) {
  for (const Failure& f : r.failures)
    if (f.law == law) return &f;
  return nullptr;
}
uint64_t cases_of(const Report& r, std::string_view law) {
  uint64_t n = 0;
  for (const auto& [key, t] : r.tallies)
    if (key.second == law) n += t.cases;
  return n;
}

bool is_wide(const Case& c) {
  const Tensor x = c.at(c.tensors()[0]);
  return x.rank() == 2 && x.size(1) >= 3;
}
Verdict crashes(Case& c) {
  if (is_wide(c)) ::raise(SIGSEGV);
  return Verdict::pass();
}
Verdict aborts(Case& c) {
  if (is_wide(c)) {
    ::signal(SIGABRT, SIG_DFL);
    ::raise(SIGABRT);
  }
  return Verdict::pass();
}
Verdict exits(Case& c) {
  if (is_wide(c)) ::_exit(0);
  return Verdict::pass();
}
Verdict exits_wrong(Case& c) {
  if (is_wide(c)) ::_exit(7);
  return Verdict::pass();
}
Verdict spins(Case& c) {
  volatile bool for_ever = is_wide(c);
  while (for_ever) {}
  return Verdict::pass();
}
Verdict waits(Case& c) {
  if (is_wide(c)) ::pause();
  return Verdict::pass();
}

struct Death {
  const char* id;
  Verdict (*check)(Case&);
  const char* kind;  ///< of a build without sanitizers
};

/// The reducer worked on it in processes of their own: the smallest case that ends one.
void expect_the_smallest(const Failure& f, const Law& law) {
  const Record r = from_blob(f.blob);
  const Case c(op(f.op.c_str()), r.choices, law.options);
  const Tensor x = c.at(c.tensors()[0]);
  EXPECT_EQ(x.rank(), 2) << f.program;
  EXPECT_EQ(x.size(1), 3) << f.program;
  EXPECT_NE(f.program.find("call("), std::string::npos) << f.program;
}

TEST(Runner, NamesTheCaseAndTheEndOfAProcess) {
  for (const Death& d :
       {Death{"crashes", crashes, "crashed: Segmentation fault (signal 11)"},
        Death{"aborts", aborts, "crashed: Aborted (signal 6)"}, Death{"exits", exits, "exited with status 0"},
        Death{"exits_wrong", exits_wrong, "exited with status 7"}}) {
    const Law law = law_that(d.id, d.check);
    const Report r = run_all({&law}, 0.8);
    const Failure* f = found(r, d.id);
    ASSERT_TRUE(f) << d.id;
    if (str(f->kind) != "exited with status 1") {  // as sanitizers end a crash
      EXPECT_EQ(str(f->kind), d.kind);
    }
    EXPECT_NE(f->message.find(" of seed 1)"), std::string::npos) << f->message;
    EXPECT_FALSE(f->flaky) << f->needs;
    expect_the_smallest(*f, law);
  }
}

TEST(Runner, EndsWhatDoesNotEnd) {
  for (const Death& d : {Death{"spins", spins, "did not end"}, Death{"waits", waits, "did not end"}}) {
    const Law law = law_that(d.id, d.check), other = law_that("passes", passes);
    // Either process may meet it first: the other law has the time behind its patience.
    const Report r = run_all({&law, &other}, d.check == waits ? 23 : 8);
    const Failure* f = found(r, d.id);
    ASSERT_TRUE(f) << d.id;
    EXPECT_EQ(str(f->kind), d.kind);
    EXPECT_GT(cases_of(r, "passes"), 100u);
  }
}

/// Where checks say that they ran: memory of all processes.
struct Board {
  static constexpr size_t kMost = 1 << 16;
  std::atomic<uint64_t> n{0};
  std::array<std::atomic<uint64_t>, kMost> seen{};
};
Board& board() {
  static Board* const shared =
      new (::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Board;
  return *shared;
}
/// Arguments, and words that no operator reads, tell cases apart.
Verdict notes_its_words(Case& c) {
  uint64_t h = c.op.id;
  for (const char letter : cpp_declarations(c.args)) h = (h ^ uint8_t(letter)) * 0x9E3779B97F4A7C15u;
  for (int k = 0; k < 40; ++k) h = (h ^ c.draw.word()) * 0x9E3779B97F4A7C15u;
  const uint64_t at = board().n.fetch_add(1);
  if (at < Board::kMost) board().seen[at] = h;
  return Verdict::pass();
}
std::vector<uint64_t> words_of_run(uint64_t seed, int processes, uint64_t cases, double seconds = 1) {
  board().n = 0;
  const Law law = law_that("notes_its_words", notes_its_words);
  (void)run_all({&law}, seconds, seed, processes, cases);
  std::vector<uint64_t> out;
  for (size_t k = 0; k < std::min<size_t>(board().n, Board::kMost); ++k) out.push_back(board().seen[k]);
  std::sort(out.begin(), out.end());
  return out;
}
size_t distinct(const std::vector<uint64_t>& sorted) {
  return std::set<uint64_t>(sorted.begin(), sorted.end()).size();
}

TEST(Runner, ProcessesCheckDifferentCases) {
  for (const int processes : {2, 3}) {
    const std::vector<uint64_t> seen = words_of_run(3, processes, 300);
    EXPECT_EQ(seen.size(), 600u);
    EXPECT_GE(distinct(seen), 598u) << processes;  // one case of each operator is the simplest one
  }
  const std::vector<uint64_t> by_the_clock = words_of_run(3, 2, 0, 0.3);
  EXPECT_GT(by_the_clock.size(), 1000u);
  EXPECT_EQ(distinct(by_the_clock), by_the_clock.size());
}

TEST(Runner, CasesDependOnTheSeedAlone) {
  const std::vector<uint64_t> one = words_of_run(3, 1, 200);
  EXPECT_EQ(one, words_of_run(3, 2, 200));
  EXPECT_EQ(one, words_of_run(3, 3, 200));
  std::vector<uint64_t> both, other = words_of_run(4, 1, 200);
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(both));
  EXPECT_LE(both.size(), 2u);
}

TEST(Runner, ShardsAreDisjointAndComplete) {
  for (const int shards : {1, 2, 3, 7})
    for (const Law& law : laws())
      for (const Op* o : all_operators()) {
        int owners = 0;
        for (int k = 0; k < shards; ++k) owners += in_shard(*o, law, k, shards);
        ASSERT_EQ(owners, 1) << o->name << ", " << law.id << ", " << shards;
      }
}

TEST(Runner, CountsAreRightWhenAWorkerDies) {
  const Law dies = law_that("crashes", crashes), notes = law_that("notes_its_words", notes_its_words);
  board().n = 0;
  const Report r = run_all({&dies, &notes}, 1, 5, 2, 400);
  EXPECT_EQ(cases_of(r, "notes_its_words"), 800u);  // of two operators, each case once
  std::vector<uint64_t> seen;
  for (size_t k = 0; k < std::min<size_t>(board().n, Board::kMost); ++k) seen.push_back(board().seen[k]);
  EXPECT_GE(std::set<uint64_t>(seen.begin(), seen.end()).size(), 798u);
  const auto at = r.tallies.find({"neg", "crashes"});
  ASSERT_NE(at, r.tallies.end());
  EXPECT_GE(at->second.failures, 1u);
  EXPECT_LE(at->second.failures, 2u) << "a crash retires the pair; each process may have met one";
  EXPECT_EQ(r.total().failures,
            r.tallies.at({"neg", "crashes"}).failures + r.tallies.at({"add", "crashes"}).failures);
}

TEST(Runner, DeathsCountInTheProgressLine) {
  static const volatile std::sig_atomic_t never = 0;
  const Law dies = law_that("crashes", crashes), other = law_that("passes", passes);
  RunOptions o{{&op("neg")}, {&dies, &other}, 0.8, 1, 2};
  uint64_t ended = 0, failures = 0;
  bool backwards = false;
  (void)run(o, never, [&](const Progress& p) {
    backwards |= p.ended < ended;
    ended = p.ended, failures = p.failures;
  });
  EXPECT_GE(ended, 1u);
  EXPECT_GE(failures, ended);
  EXPECT_FALSE(backwards);
}

/// Breaks at the case that comes after a wide one, in the same process.
bool broken = false;
Verdict needs_another_before(Case& c) {
  if (broken) return Verdict::fail("got 1, expected 2");
  broken = is_wide(c);
  return Verdict::pass();
}

TEST(Runner, StateBesideTheCaseIsAFinding) {
  const Law law = law_that("needs_another_before", needs_another_before);
  broken = false;
  const Report r = run_all({&law}, 1, 7);
  const Failure* f = found(r, law.id);
  ASSERT_TRUE(f);
  EXPECT_GT(r.total().failures, 0u);
  EXPECT_TRUE(f->flaky);
  ASSERT_EQ(f->before.size(), 1u) << f->needs;
  const Record first = from_blob(f->before[0]), last = from_blob(f->blob);
  EXPECT_TRUE(is_wide(Case(op(first.op.c_str()), first.choices, law.options)));
  broken = false;  // the replay, by hand: the law is none of the table's
  EXPECT_EQ(run_check(law, op(last.op.c_str()), last.choices, last.decoding).kind, Verdict::Pass);
  broken = false;
  EXPECT_EQ(run_check(law, op(first.op.c_str()), first.choices, first.decoding).kind, Verdict::Pass);
  EXPECT_EQ(run_check(law, op(last.op.c_str()), last.choices, last.decoding).kind, Verdict::Fail);
  broken = false;
}

/// Fails once in the life of all processes: nothing repeats it.
Verdict fails_once(Case& c) {
  static std::atomic<int>* const left =
      new (::mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          std::atomic<int>(1);
  return is_wide(c) && left->exchange(0) ? Verdict::fail("got 1, expected 2") : Verdict::pass();
}

TEST(Runner, WhatNothingRepeatsIsAFindingToo) {
  const Law law = law_that("fails_once", fails_once);
  const Tensor none;
  (void)run_check(law, op("neg"), {});  // the counter lives before processes are forked
  const Report r = run_all({&law}, 0.5, 7);
  const Failure* f = found(r, law.id);
  ASSERT_TRUE(f);
  EXPECT_EQ(r.total().failures, 1u);
  EXPECT_TRUE(f->flaky);
  EXPECT_NE(f->needs.find("did not fail again"), std::string::npos) << f->needs;
  EXPECT_NE(choices_of(7, law, op(f->op.c_str()), f->index), Choices()) << "its case is named";
}

Verdict raises_an_error(Case& c) {
  if (is_wide(c)) fail(ErrorCode::Shape, "planted");
  return Verdict::pass();
}
Verdict raises_something(Case& c) {
  if (is_wide(c)) throw std::runtime_error("planted");
  return Verdict::pass();
}

TEST(Runner, LawsThatRaiseFail) {
  for (const auto& check : {raises_an_error, raises_something}) {
    const Law law = law_that("raises", check);
    const Report r = run_all({&law}, 0.3);
    ASSERT_TRUE(found(r, law.id));
    EXPECT_EQ(r.total().discards, 0u);
  }
}
}  // namespace
