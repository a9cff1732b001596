// Which cases a pair of an operator and a law has.
#pragma once

#include <map>
#include <mutex>

#include "lamella/verify/case/near_threshold.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// scrambled() of a text beside `seed`.
uint64_t scrambled(uint64_t seed, std::string_view text);
/// choices_of() in two steps: what seed, law and operator make of each index.
uint64_t series_of(uint64_t seed, const Law& law, const Op& op);
/// With `tail`, the first words alone where nothing is to be written into them; the others are there.
Choices choices_in(uint64_t series, const Law& law, const Op& op, uint64_t index, NamedSizes* named,
                   Tail* tail = nullptr);
/// The choices of case `index`: reproducible from these four alone. `named`: the sizes they name.
Choices choices_of(uint64_t seed, const Law& law, const Op& op, uint64_t index, NamedSizes* named = nullptr);

/// Whether a pair belongs to shard `shard` of `shards`. It depends on nothing else, neither the seed nor what
/// else was chosen, so that the shards are disjoint and together complete.
bool in_shard(const Op& op, const Law& law, int shard, int shards);

/// Which word of a case chooses the dtype, by operator: looked for once.
class DTypeWords {
 public:
  /// A large number where none of the first eight cases has one at the same place.
  size_t of(const Op& op);

 private:
  std::mutex mutex_;
  std::map<std::string, size_t> known_;
};
DTypeWords& dtype_words();  ///< NOTE: [context]

/// Operators to verify: functional, not kTestOnly.
std::vector<const Op*> all_operators();

}  // namespace lamella::verify
LAMELLA_API_END
