// The reducer: what it returns fails in the same way, and none of its own steps makes it smaller.
#include "lamella/mutate/calibration_parts.h"

namespace lamella::verify {

namespace {

/// Which of the laws of words below is asked.
uint32_t law_of_words = 0;

/// Laws that are false of many vectors of words, whatever the operator; each in its own way.
Verdict words_are_small(Case& c) {
  uint32_t w[6];
  for (uint32_t& word : w) word = c.draw.word();
  bool fails = false;
  switch (law_of_words % 6) {
    case 0: fails = w[0] % 16 + w[1] % 16 >= 9; break;  // a sum that either may give
    case 1: fails = w[0] % 8 > w[1] % 8 && w[2] % 4 == 1; break;
    case 2: fails = w[4] % 16 + 2 * (w[2] % 16) + 3 * (w[0] % 16) >= 21; break;  // places weigh
    case 3: fails = (w[0] ^ w[3]) % 32 == 11; break;
    case 4: fails = w[1] > w[0] && w[3] % 8 > 2; break;
    default: fails = w[0] % 64 >= 40 - w[5] % 32; break;
  }
  return fails ? Verdict::fail("got 1, expected 2") : Verdict::pass();
}

constexpr ShrinkLimits kPatient{.milliseconds = 60000, .executions = 100000, .explaining = 0};

std::string reduced_is_smallest() {
  const Law law = law_that(words_are_small);
  const Op& op = *smooth_ones().at(0);
  for (law_of_words = 0; law_of_words < 6; ++law_of_words) {
    int failing = 0;
    for (uint64_t i = 0; i < 400 && failing < 2; ++i) {
      const Choices words = choices_of(9, law, op, i);
      if (run_check(law, op, words).kind != Verdict::Fail) continue;
      ++failing;
      const Shrunk once = shrink(law, op, words, kPatient);
      if (once.verdict.kind != Verdict::Fail || run_check(law, op, once.choices).kind != Verdict::Fail)
        return "what the reducer returns does not fail";
      const Shrunk twice = shrink(law, op, once.choices, kPatient);
      if (twice.choices != once.choices)
        return format("words that were reduced are reduced again, {} of them to {} (law of words {})",
                      once.choices.size(), twice.choices.size(), law_of_words);
    }
    if (failing == 0) return format("no case breaks law of words {}", law_of_words);
  }
  return "";
}

/// Two bugs: a rare one, and a common one that smaller cases show.
Verdict two_kinds(Case& c) {
  const uint32_t w = c.draw.word(), v = c.draw.word();
  if (w % 8 == 5 && v % 4 == 3) return Verdict::fail({{What::Raised, "shape"}, "raised: sizes are wrong"});
  if (w % 8 == 2) return Verdict::fail({What::Nan, "got nan, expected 2"});
  return w % 8 == 4 ? Verdict::pass() : Verdict::fail("got 1, expected 2");
}

std::string reduced_fails_alike() {
  const Law law = law_that(two_kinds);
  const Op& op = *smooth_ones().at(0);
  std::map<std::string, int> kinds;
  for (uint64_t i = 0; i < 200; ++i) {
    const Choices words = choices_of(9, law, op, i);
    const Verdict v = run_check(law, op, words);
    if (v.kind != Verdict::Fail || ++kinds[str(v.failure)] > 3) continue;
    const Shrunk s = shrink(law, op, words);
    if (s.verdict.failure != v.failure || run_check(law, op, s.choices).failure != v.failure)
      return format("a failure \"{}\" is reduced to \"{}\"", v.message, s.verdict.message);
  }
  return kinds.size() == 3 ? "" : format("{} of 3 kinds of failures are told apart", kinds.size());
}

Verdict needs_f32(Case& c) {
  const bool fails = c.at(c.tensors()[0]).dtype() == DType::F32;
  return fails ? Verdict::fail("got 1, expected 2") : Verdict::pass();
}

std::string reduced_says_what_matters() {
  const Law law = law_that(needs_f32);
  const Op& op = *smooth_ones().at(0);
  for (uint64_t i = 0; i < 400; ++i) {
    const Choices words = choices_of(9, law, op, i);
    if (run_check(law, op, words).kind != Verdict::Fail) continue;
    const Shrunk s = shrink(law, op, words);
    const Case c(op, s.choices, law.options);
    if (c.at(c.tensors()[0]).rank() != 0) return "a law of dtypes is reduced to a tensor with dims";
    if (std::ranges::find(s.fixed, "dtype") == s.fixed.end()) return "the dtype is not said to matter";
    if (std::ranges::find(s.free, "values of a0") == s.free.end()) return "values are said to matter";
    return "";
  }
  return "no case is of f32";
}

/// Of all cases but one; and says which case it is.
std::vector<size_t> prints_asked;
size_t right_one = 0;
Verdict all_but_one(Case& c) {
  const size_t print = print_of(c);
  prints_asked.push_back(print);
  return print == right_one ? Verdict::pass() : Verdict::fail(format("got {}, expected 2", print));
}

/// A part whose values pass in one trial of its four matters, whichever of them that is.
std::string one_trial_is_enough() {
  const Law law = law_that(all_but_one);
  const Op& op = *smooth_ones().at(0);
  const Choices words = choices_of(9, law, op, 5);
  const auto asked = [&](int explaining) {
    prints_asked.clear(), prints_asked.reserve(4000);
    const Shrunk s = shrink(law, op, words, {.explaining = explaining});
    return std::pair(s, prints_asked);
  };
  right_one = 0;
  const std::vector<size_t> before = asked(0).second;
  const std::vector<size_t> all = asked(ShrinkLimits().explaining).second;
  int trials = 0;
  for (size_t k = before.size(); k < all.size(); ++k) {
    if (std::ranges::find(before, all[k]) != before.end()) continue;
    right_one = all[k], ++trials;
    const Shrunk s = asked(ShrinkLimits().explaining).first;
    if (s.fixed.empty()) return "a part of which one value of four passes is said to vary freely";
    const std::string said = s.verdict.message;
    if (const Verdict v = run_check(law, op, s.choices); v.message != said)
      return format("what is reported of a reduced case is \"{}\", and it says \"{}\"", said, v.message);
  }
  return trials > 3 ? "" : format("{} other cases are tried", trials);
}

int times_asked = 0;
Verdict fails_now_and_then(Case&) {
  return ++times_asked % 2 ? Verdict::fail("got 1, expected 2") : Verdict::pass();
}

/// Each time with other numbers: what has been printed cannot be found again.
Verdict fails_otherwise(Case&) { return Verdict::fail(format("got {}, expected 2", ++times_asked)); }

std::string flaky_ones_are_named() {
  const Law law = law_that(fails_now_and_then);
  for (times_asked = 0; times_asked < 3; ++times_asked)
    if (!shrink(law, *smooth_ones().at(0), {1, 2, 3}).flaky)
      return "a case that passes again is not called flaky";
  if (!shrink(law_that(fails_otherwise), *smooth_ones().at(0), {1, 2, 3}).flaky)
    return "a case that says something else each time is not called flaky";
  return "";
}

}  // namespace

void add_reduce_calibrations(std::vector<Calibration>& all) {
  all.push_back({"reduced_is_smallest", "What has been reduced fails, and cannot be reduced further.",
                 reduced_is_smallest});
  all.push_back({"reduced_fails_alike", "A failure is reduced to one of its own kind.", reduced_fails_alike});
  all.push_back({"reduced_says_what_matters",
                 "Parts of a case that may vary are told from those that may not.",
                 reduced_says_what_matters});
  all.push_back(
      {"one_trial_is_enough",
       "A part matters where one of its trials passes, and what is reported is what the reduced case says.",
       one_trial_is_enough});
  all.push_back(
      {"flaky_ones_are_named", "A failure that does not repeat is called flaky.", flaky_ones_are_named});
}

}  // namespace lamella::verify
