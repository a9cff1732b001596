// Drawing ranks, sizes, dims and lengths of lists.
#include <algorithm>

#include "lamella/verify/case/decoder.h"

namespace lamella::verify {

/// see NOTE: [named sizes]: what a word names, or -1
int64_t Decoder::named(uint32_t word) const {
  return largest_drawn(options()) > 0 && word >> 16 == kNamedSize ? int64_t(word & 0xffff) : -1;
}

/// Lengths about the widths of vectors may exceed the limit where it is no small one.
int64_t Decoder::most_elements(int64_t size) {
  if (named_) return largest_drawn(options());
  const bool long_size = size >= 7 && options().max_numel >= 32;
  return std::max(room_, long_size ? 3 * options().max_numel : options().max_numel);
}

int64_t Decoder::size(bool nonzero) {
  static constexpr int8_t kSizes[] = {2, 3, 2, 1, 3, 2, 5, 3, 2, 1, 3, 4,
                                      2, 5, 3, 2, 1, 3, 2, 0, 3, 5, 2, -1};
  static constexpr int8_t kMoreEdges[] = {7, 8, 9, 11, 13, 15, 16, 17, 31, 32, 33, 64, 65};
  const uint32_t w = word("size");
  const int64_t by_name = named(w);
  named_ = by_name >= 0 && by_name <= largest_drawn(options());
  if (named_) return std::max<int64_t>(by_name, nonzero);
  if (options().empty && !nonzero && (w >> 8 & 1)) return 0;
  int64_t s = kSizes[w % 24];
  if (s < 0) s = kMoreEdges[w / 24 % 13];
  if (s == 5 && w / 24 % 4 == 3) s = kMoreEdges[w / 96 % 5];
  s = std::min(s, most_elements(s));
  return s == 0 && nonzero ? 1 : s;
}

int64_t Decoder::entries(int64_t low, int64_t high) {
  const uint32_t w = word("entries");
  const int64_t by_name = named(w);
  return by_name >= low && by_name <= 64 ? by_name : low + int64_t(w % uint32_t(high - low + 1));
}

/// Operators that take any rank take those whose sizes lie elsewhere.
int Decoder::rank(int least, int most) {
  if (least == most) return least;
  const uint32_t w = word("rank");
  const int64_t by_name = named(w);
  if (most >= 3 && by_name >= least && by_name <= kMostNamedRank) return int(by_name);
  return least + int(w % uint32_t(most - least + 1));
}

Dims Decoder::shape(int min_rank, int max_rank) {
  const int many = rank(min_rank, max_rank);
  Dims out;
  int64_t numel = 1;
  for (int d = 0; d < many; ++d) {
    int64_t s = size();
    if (s > 1 && numel * s > most_elements(s)) s = numel * 2 <= options().max_numel ? 2 : 1;
    else if (named_) room_ = std::max(room_, std::min(largest_drawn(options()), 2 * s));
    out.push_back(s);
    numel *= std::max<int64_t>(s, 1);
  }
  return out;
}

Dims Decoder::broadcastable(const Dims& s) {
  const uint32_t w = word("broadcast");
  if (w % 2 == 0 || s.empty()) return s;
  const int dropped = int(w / 2 % uint32_t(s.size() + 1));
  Dims out;
  for (int d = dropped; d < s.size(); ++d) out.push_back((w >> 8 >> d) & 1 ? 1 : s[d]);
  return out;
}

Dims Decoder::broadcastable(const Dims& s, DType d) {
  if (mixed_ && d != dtype_ && one_in(2)) return {};
  return broadcastable(s);
}

int64_t Decoder::dim(int rank) {
  const int64_t r = std::max(rank, 1);
  const uint32_t w = word("dim");
  const int64_t d = int64_t(w % 64) % r;
  return w / 64 & 1 ? d - r : d;
}

Dims Decoder::dims(int rank, int least) {
  Dims out;
  if (rank == 0) return out;
  const uint32_t w = word("dims");
  const int count = std::min(rank, least + int(w % uint32_t(rank - least + 1)));
  for (int k = 0; k < count; ++k) {
    const int64_t d = (int64_t(w / 16 % uint32_t(rank)) + k * (w >> 12 & 1 && rank % 2 ? 2 : 1)) % rank;
    out.push_back(w >> (16 + k) & 1 ? d - rank : d);
  }
  return out;
}

}  // namespace lamella::verify
