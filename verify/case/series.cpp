// The choices of a pair's cases: words by a counter, the dtype in turn, sizes near thresholds.
#include "lamella/verify/case/series.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "lamella/dispatch/table.h"
#include "lamella/verify/case/fault.h"

namespace lamella::verify {

uint64_t scrambled(uint64_t seed, std::string_view text) {
  for (const char c : text) seed = scrambled(seed ^ uint64_t(uint8_t(c)) * 0x9E3779B97F4A7C15u);
  return seed;
}

namespace {
constexpr uint64_t kSimplest = 3;  ///< shows least of the first four, which every pair gets

/// see NOTE: [sizes near thresholds]
Sized sized(const Law& law, uint64_t index, uint64_t bits) {
  if (index == kSimplest) return Sized::No;
  if (index == kLargeOfSmall && law.options.one_large) return Sized::Large;
  if (index == 1 && draws_large(law)) return Sized::Large;
  if (draws_near(law) && bits % kNearThresholdEvery == 0) return Sized::NearThreshold;
  return draws_medium(law) && bits % kMediumEvery == 0 ? Sized::Medium : Sized::No;
}
}  // namespace

uint64_t series_of(uint64_t seed, const Law& law, const Op& op) {
  return scrambled(scrambled(seed + 0x9E3779B97F4A7C15u, law.id), op.name);
}

namespace {
constexpr size_t kFirstWords = 12;  ///< most cases read no more
constexpr uint64_t kInTurn = 16;    ///< cases of a pair whose dtypes are given in turn: there are 15

size_t word_of_dtype(const Op& op) {
  std::vector<std::string> parts;
  DrawOptions options;
  options.parts = &parts;
  size_t found = SIZE_MAX;
  for (uint64_t k = 0; k < 8; ++k) {
    uint64_t state = k;
    Choices words(64);
    for (uint32_t& w : words) w = uint32_t(state = scrambled(state + 0x9E3779B97F4A7C15u));
    parts.clear();
    const Case c(op, words, options);
    const size_t at = size_t(std::ranges::find(parts, "dtype") - parts.begin());
    if (at == parts.size() || (k > 0 && at != found)) return SIZE_MAX;
    found = at;
  }
  return found;
}
}  // namespace

size_t DTypeWords::of(const Op& op) {
  const std::lock_guard lock(mutex_);
  const auto [it, fresh] = known_.try_emplace(op.name, SIZE_MAX);
  return fresh ? it->second = word_of_dtype(op) : it->second;
}

Choices choices_of(uint64_t seed, const Law& law, const Op& op, uint64_t index, NamedSizes* named) {
  return choices_in(series_of(seed, law, op), law, op, index, named);
}

Choices choices_in(uint64_t series, const Law& law, const Op& op, uint64_t index, NamedSizes* named,
                   Tail* tail) {
  if (law.numbered) return Choices(48, uint32_t(index));
  if (index == kSimplest || faulty(Fault::GeneratorConstant)) return {};
  uint64_t state = scrambled(series + index * 0xD1B54A32D192ED03u);
  const uint64_t bits = scrambled(state);
  const Sized is = sized(law, index, bits);
  const Tail words{state, 48 + size_t(index % 8 == 7) * (state % 208)};
  const bool whole = !tail || is != Sized::No || index < kInTurn;
  Choices out(whole ? words.end : kFirstWords);
  size_t i = 0;
  for (; i + 1 < out.size(); i += 2) {
    const uint64_t w = scrambled(state += Tail::kStep);
    std::memcpy(out.data() + i, &w, sizeof w);  // little-endian: the low half first
  }
  if (i < out.size()) out[i] = words.word(i);
  if (!whole) *tail = words;
  if (index < kInTurn)
    if (const size_t at = dtype_words().of(op); at < out.size())
      out[at] = dtype_in_turn(out[at], uint32_t(index - (index > kSimplest) + series % 15));
  const NamedSizes names = name_sizes(law, op, is, scrambled(bits), out);
  if (named) *named = names;
  return out;
}

bool in_shard(const Op& op, const Law& law, int shard, int shards) {
  return shards <= 1 || scrambled(scrambled(0, op.name + ' '), law.id) % uint64_t(shards) == uint64_t(shard);
}

std::vector<const Op*> all_operators() {
  (void)laws();  // one of which brings a type, for which the table's rows are made anew
  std::vector<const Op*> out;
  for (const Op* op : OpTable::current().rows())
    if (op->form == OpForm::Functional && !op->has(kTestOnly) && op->samples) out.push_back(op);
  return out;
}

}  // namespace lamella::verify
