// Naming sizes about thresholds, and looking at what came of it.
#include "lamella/verify/case/near_threshold.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "lamella/ops/thresholds_of.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {

bool takes_list(const Op& op) {
  return std::ranges::any_of(op.tensor_params,
                             [&](uint8_t i) { return op.schema.params[i].kind == ParamKind::TensorList; });
}

/// Matrices: what a product of them may be asked for.
bool multiplies_matrices(const Op& op) { return op.shape == ShapeClass::Contract; }

/// The list of thresholds as bits by position: one case in four asks whom they concern, and reading the words
/// of all rows took as long as the rest of a short case.
struct Rows {
  uint64_t entries = 0, products = 0, sizes = 0, of_all = 0, of_pointwise = 0;
  struct Named {
    std::string_view kernel;
    uint64_t bits;
  };
  std::array<Named, 96> kernels;  // no memory of the heap: the first case that asks would leave it behind
  size_t named = 0;

  Rows() {
    const std::span<const Threshold> all = all_thresholds();
    LAMELLA_ASSERT(all.size() <= 64);
    for (size_t k = 0; k < all.size(); ++k) {
      if (!all[k].is_drawn()) continue;  // laws 98 and 173 lower it
      const uint64_t bit = uint64_t{1} << k;
      if (all[k].in == CountedIn::Entries) entries |= bit;
      if (all[k].in == CountedIn::Products) products |= bit;
      if (all[k].in == CountedIn::Size) sizes |= bit;
      for (std::string_view words = readers_of(all[k]); !words.empty();) {
        std::string_view word = words.substr(0, words.find(' '));
        words.remove_prefix(std::min(words.size(), word.size() + 1));
        if (word.ends_with('~')) word.remove_suffix(1);
        add(word, bit);
      }
    }
    of_all = of("all"), of_pointwise = of("pointwise");
  }
  void add(std::string_view kernel, uint64_t bit) {
    size_t k = 0;
    while (k < named && kernels[k].kernel != kernel) ++k;
    LAMELLA_ASSERT(k < kernels.size());
    if (k == named) kernels[named++] = {kernel, 0};
    kernels[k].bits |= bit;
  }
  uint64_t of(std::string_view kernel) const {
    for (size_t k = 0; k < named; ++k)
      if (kernels[k].kernel == kernel) return kernels[k].bits;
    return 0;
  }
};

uint64_t bits_of(const Op& op) {
  static const Rows rows;
  uint64_t its_own = 0;
  if (op.kernel.name.empty()) its_own = op.composite ? rows.sizes : 0;
  else its_own = rows.of(op.kernel.name) | (op.shape == ShapeClass::Broadcast ? rows.of_pointwise : 0);
  uint64_t bits = (its_own & ~rows.of_all) | (takes_tensors(op) ? rows.of_all : 0);
  bits = (bits & ~rows.entries) | (takes_list(op) ? rows.entries : 0);
  return multiplies_matrices(op) ? bits : bits & ~rows.products;
}

/// A product of hundreds of numbers leaves the range on its way, and where its roundings are to be bounded it
/// has as many factors as elements: laws of small cases would tell of the first and wait for the second.
constexpr int64_t kMostFactors = 64;
bool multiplies_all(const Op& op) { return op.kernel.name == "prod" || op.kernel.name == "cumprod"; }

std::vector<size_t> words_named(const std::vector<std::string>& parts, std::string_view what) {
  std::vector<size_t> out;
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i] == what) out.push_back(i);
  return out;
}

/// What words of a vector choose.
struct Drawn {
  std::vector<size_t> sizes, rank, entries;
  int64_t itemsize = 1;

  Drawn(const Law& law, const Op& op, const Choices& choices) {
    std::vector<std::string> parts;
    DrawOptions options = law.options;
    options.parts = &parts;
    const Case c(op, choices, options);
    sizes = words_named(parts, "size"), rank = words_named(parts, "rank");
    entries = words_named(parts, "entries");
    const size_t read = choices.size();
    for (auto* list : {&sizes, &rank, &entries}) std::erase_if(*list, [=](size_t i) { return i >= read; });
    if (!c.tensors().empty()) itemsize = lamella::itemsize(c.at(c.tensors()[0]).dtype());
  }
};

class Namer {
 public:
  Namer(const Law& law, const Op& op, uint64_t bits, Choices& choices)
      : law_(law), op_(op), bits_(bits), choices_(choices), drawn_(law, op, choices) {
    if (!drawn_.sizes.empty() || drawn_.rank.empty()) return;
    choices_[drawn_.rank[0]] = 1;  // rank 0 has no sizes
    drawn_ = Drawn(law, op, choices);
  }

  void large() {
    if (drawn_.sizes.empty()) return;
    if (drawn_.sizes.size() < 2 || !below(2)) return one_of_sizes(1990 + below(20));
    const size_t rows = drawn_.sizes[0], columns = drawn_.sizes[1];
    matrix(rows, columns);
    drawn_ = Drawn(law_, op_, choices_);  // values take another number of words: sizes behind them have moved
    matrix(rows, columns);
  }

  void medium(int64_t most) { one_of_sizes(7 + int64_t(below(uint64_t(most - 6)))); }

  void near(const Threshold& t) {
    const int64_t off = int64_t(below(3)) - 1;
    switch (t.in) {
      case CountedIn::Size: return one_of_sizes(t.usual + off);
      case CountedIn::Bytes: return one_of_sizes(t.usual / drawn_.itemsize + off);
      case CountedIn::Rank: return name(drawn_.rank, t.usual + off);
      case CountedIn::Entries: return name(drawn_.entries, t.usual + off);
      case CountedIn::Work:
      case CountedIn::Cached: return;
      case CountedIn::Products: return sides_of_a_cube(int64_t(std::cbrt(double(t.usual)) + 0.5) + off);
    }
  }

 private:
  uint64_t below(uint64_t n) {
    const uint64_t r = bits_ % n;
    bits_ = bits_ / n * 0x9E3779B97F4A7C15u >> 3;
    return r;
  }
  void matrix(size_t rows, size_t columns) {
    name(drawn_.sizes, 1);
    choices_[rows] = named_size(45), choices_[columns] = named_size(44);
  }
  void name(const std::vector<size_t>& words, int64_t n) {
    for (const size_t i : words) choices_[i] = named_size(n);
  }
  /// The others are 1, or 2 sometimes, where the one is long.
  void one_of_sizes(int64_t n) {
    if (drawn_.sizes.empty()) return;
    const size_t chosen = drawn_.sizes[below(drawn_.sizes.size())];
    for (const size_t i : drawn_.sizes)
      if (n > 64) choices_[i] = named_size(n > 1100 ? 1 : 1 + int64_t(below(2)));
    choices_[chosen] = named_size(n);
  }
  /// The last three sizes of a matrix product; batches are of one.
  void sides_of_a_cube(int64_t n) {
    const std::vector<size_t>& words = drawn_.sizes;
    for (size_t k = 0; k < words.size(); ++k) choices_[words[k]] = named_size(k + 3 >= words.size() ? n : 1);
  }

  const Law& law_;
  const Op& op_;
  uint64_t bits_;
  Choices& choices_;
  Drawn drawn_;
};

/// Rows, inner size and columns of the first two tensors.
int64_t products_of(const Case& c) {
  if (c.tensors().size() < 2) return 0;
  const Tensor a = c.at(c.tensors()[0]), b = c.at(c.tensors()[1]);
  const int64_t rows = a.rank() >= 2 ? a.size(-2) : 1, columns = b.rank() >= 2 ? b.size(-1) : 1;
  return a.rank() == 0 ? 0 : rows * a.size(-1) * columns;
}

/// -1, 0 or 1 where `n` lies within `step` of `at`, else 2.
int side(int64_t n, int64_t at, int64_t step = 1) {
  return n < at - step || n > at + step ? 2 : n < at ? -1 : n > at;
}

void note_side(NearSides& s, size_t bit, int where) {
  s.below |= uint64_t(where == -1) << bit;
  s.above |= uint64_t(where == 1) << bit;
}

void note_tensor(NearSides& s, const Tensor& t, const Threshold& row, size_t bit) {
  if (row.in == CountedIn::Rank) note_side(s, bit, side(t.rank(), row.usual));
  if (row.in == CountedIn::Bytes) {
    const int64_t item = itemsize(t.dtype());
    note_side(s, bit, side(t.numel() * item, row.usual, item));
  }
  if (row.in != CountedIn::Size) return;
  note_side(s, bit, side(t.numel(), row.usual));
  for (int d = 0; d < t.rank(); ++d) note_side(s, bit, side(t.size(d), row.usual));
}

/// Sizes of a result that no argument has: of what is drawn or filled.
void note_sizes(NearSides& s, const Dims& sizes, const Threshold& row, size_t bit) {
  if (row.in != CountedIn::Size) return;
  int64_t numel = 1;
  for (const int64_t n : sizes) {
    note_side(s, bit, side(n, row.usual));
    numel *= n;
  }
  note_side(s, bit, side(numel, row.usual));
}

}  // namespace

std::vector<size_t> thresholds_of(const Op& op) {
  std::vector<size_t> out;
  for (uint64_t bits = bits_of(op); bits != 0; bits &= bits - 1)
    out.push_back(size_t(std::countr_zero(bits)));
  return out;
}

bool rounds_by_thresholds(const Op& op) {
  if (op.kernel.name.empty()) return op.composite != nullptr;
  return std::ranges::any_of(all_thresholds(), [&](const Threshold& t) { return rounds(t, op.kernel.name); });
}

bool draws_large(const Law& law) { return largest_named(law.options) == kMostNamed; }

bool draws_near(const Law& law) { return draws_large(law) || (law.options.one_large && !law.oracle); }

bool draws_medium(const Law& law) { return largest_named(law.options) > 0 && !draws_large(law); }

NamedSizes name_sizes(const Law& law, const Op& op, Sized how, uint64_t bits, Choices& choices) {
  NamedSizes out{how};
  if (how == Sized::No) return out;
  Namer namer(law, op, bits >> 8, choices);
  if (how == Sized::Large) namer.large();
  if (how == Sized::Medium) namer.medium(largest_named(law.options));
  if (how != Sized::NearThreshold) return out;
  std::vector<size_t> have = thresholds_of(op);
  if (!draws_large(law) && multiplies_all(op))
    std::erase_if(have, [](size_t k) { return all_thresholds()[k].usual > kMostFactors; });
  if (have.empty()) return out;
  out.threshold = int(have[bits % have.size()]);
  namer.near(all_thresholds()[size_t(out.threshold)]);
  return out;
}

NearSides sides_of(const Case& c) {
  NearSides s;
  const std::span<const Threshold> all = all_thresholds();
  const uint64_t bits = bits_of(c.op);
  for (const Case::Slot& slot : c.tensors()) {
    const Tensor t = c.at(slot);
    for (uint64_t left = bits; left != 0; left &= left - 1) {
      const auto k = size_t(std::countr_zero(left));
      note_tensor(s, t, all[k], k);
    }
  }
  for (uint64_t left = bits; left != 0; left &= left - 1) {
    const auto k = size_t(std::countr_zero(left));
    if (c.op.shape == ShapeClass::Random)
      for (const Value& v : c.args)
        if (const Dims* sizes = std::get_if<Dims>(&v)) note_sizes(s, *sizes, all[k], k);
    if (all[k].in == CountedIn::Products)
      note_side(s, k,
                side(products_of(c), all[k].usual, all[k].usual / 10));  // a size each: 2 % a size of 48
    if (all[k].in != CountedIn::Entries) continue;
    for (const Value& v : c.args)
      if (const Tensors* list = std::get_if<Tensors>(&v))
        note_side(s, k, side(int64_t(list->size()), all[k].usual));
  }
  return s;
}

}  // namespace lamella::verify
