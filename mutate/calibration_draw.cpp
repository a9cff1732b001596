// Generators: each value that may be drawn is drawn, and no two seeds, pairs or processes draw the same.
#include <cmath>
#include <set>

#include "lamella/mutate/calibration_parts.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/oracle/oracle.h"
#include "lamella/verify/programs/census.h"

namespace lamella::verify {

namespace {

std::string cases_vary() {
  const Law& law = laws().front();
  for (const Op* op : smooth_ones()) {
    std::set<std::string> texts;
    int empty = 0, scalars = 0, large = 0;
    for (uint64_t i = 0; i < 200; ++i) {
      const Choices choices = choices_of(3, law, *op, i);
      const Case c(*op, choices, law.options);
      texts.insert(cpp_declarations(c.args));
      const Tensor x = c.at(c.tensors()[0]);
      empty += x.numel() == 0, scalars += x.rank() == 0, large += x.numel() > 8;
    }
    if (texts.size() < 120) return format("{}: 200 cases are {} different ones", op->name, texts.size());
    if (!empty || !scalars || !large)
      return format("{}: of 200 cases {} are empty, {} scalars, {} of more than 8 elements", op->name, empty,
                    scalars, large);
  }
  return "";
}

std::string census_has_its_floors() {
  const std::vector<std::string> missed = missed_floors(Census::usual(6));
  return missed.empty() ? "" : missed[0];
}
/// A sixth of it, without the large case of each pair: floors less four standard deviations.
std::string small_census_has_its_floors() {
  const Census small = Census::of_pairs(all_operators(), Census::usual_laws(), 6, Census::kUsual, 5, 6);
  for (const FeatureFloor& f : feature_floors()) {
    const double n = double(small.of(f.of)), least = f.share * n, hits = double(small.of(f.what));
    if (n > 0 && hits < least - 4 * std::sqrt(least))
      return format("{}: {} of {} ({})", f.what, hits, n, f.of);
  }
  return "";
}

/// Draws from `n` vectors of words.
template <class F> void each_draw(uint64_t n, F&& f, const DrawOptions& options = {}) {
  for (uint64_t i = 0; i < n; ++i) {
    const Choices words = choices_of(5, laws().front(), *smooth_ones().at(0), 8 * i + 4);
    Decoder d(words, options);
    f(d);
  }
}

/// "dims: -3 is never drawn"
template <class T> std::string missing(const char* what, const std::set<T>& got, const std::set<T>& want) {
  for (const T& v : want)
    if (!got.contains(v)) return format("{}: {} is never drawn", what, v);
  for (const T& v : got)
    if (!want.contains(v)) return format("{}: {} is drawn", what, v);
  return "";
}

std::string dims_are_drawn() {
  std::set<int64_t> one, of_lists, lengths, outs, signs;
  each_draw(300, [&](Draw& d) {
    one.insert(d.dim(3));
    const Dims some = d.dims(3);
    lengths.insert(some.size());
    for (const int64_t k : some) of_lists.insert(k);
    for (const int k : draw_out_dims(d, {counted_up(Dims{2, 2}, DType::F64)})) outs.insert(k);
    for (const int k : some_negative(d, {1, kNone}, Tensors(2, counted_up(Dims{2, 2}, DType::F64))))
      signs.insert(k);
  });
  const std::set<int64_t> all{-3, -2, -1, 0, 1, 2};
  for (const std::string& wrong :
       {missing("a dim", one, all), missing("dims of lists", of_lists, all),
        missing("numbers of dims", lengths, {0, 1, 2, 3}), missing("dims of results", outs, all),
        missing("dims turned negative", signs, {-1, 1, int64_t(kNone)})})
    if (!wrong.empty()) return wrong;
  return "";
}

std::string sizes_are_drawn() {
  std::set<int64_t> sizes, ranks, entries, indices, beside;
  each_draw(2000, [&](Draw& d) {
    sizes.insert(d.size());
    ranks.insert(d.shape(0, 3).size());
    entries.insert(d.entries(1, 3));
    beside.insert(d.broadcastable(Dims{2, 3}).size());
  });
  each_draw(100, [&](Draw& d) {
    const Tensor t = plain_copy(d.index(Dims{8}, 5));
    for (int64_t k = 0; k < 8; ++k) indices.insert(t.data<int64_t>()[k]);
  });
  for (const int64_t usual : {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33})
    if (!sizes.contains(usual)) return format("no dim of size {} is drawn", usual);
  for (const std::string& wrong :
       {missing("ranks", ranks, {0, 1, 2, 3}), missing("entries", entries, {1, 2, 3}),
        missing("ranks beside two dims", beside, {0, 1, 2}),
        missing("indices below 5", indices, {0, 1, 2, 3, 4})})
    if (!wrong.empty()) return wrong;
  return "";
}

/// Cases of one seed are no others' cases, whichever numbers these have.
std::string seeds_share_no_case() {
  std::set<Choices> all;
  for (uint64_t seed = 0; seed < 12; ++seed)
    for (uint64_t i = 16; i < 96; ++i) {
      const Choices words = choices_of(seed, laws().front(), *smooth_ones().at(0), i);
      if (!all.insert(words).second) return format("case {} of seed {} is one of a smaller seed", i, seed);
    }
  return "";
}

std::string numbers_are_drawn() {
  std::set<std::pair<bool, bool>> signs, parts, whole;
  each_draw(300, [&](Draw& d) {
    const double x = d.scalar(DType::F64).to<double>();
    signs.emplace(x < 0, x != std::trunc(x));
    const c128 z = d.scalar(DType::C128).to<c128>();
    parts.emplace(z.imag() < 0, z.imag() != 0);
    whole.emplace(d.scalar(DType::I64).to<int64_t>() < 0, d.flag());
  });
  if (signs.size() != 4) return "numbers are not of both signs, or all are whole";
  if (parts.size() != 3) return "imaginary parts of numbers are not of both signs and 0";
  return whole.size() == 4 ? "" : "integers are not of both signs";
}

struct Layouts {
  int offset = 0, permuted = 0, stepped = 0, repeated = 0, dense = 0, shared = 0;
};

std::string layouts_are_drawn() {
  Layouts n;
  each_draw(400, [&](Draw& d) {
    const Tensor t = d.tensor(Dims{2, 3}, DType::F64), again = d.tensor(Dims{2, 3}, DType::F64);
    n.offset += t.impl()->offset > 0;
    n.permuted += t.stride(0) == 1 && t.stride(1) > 1, n.stepped += t.stride(0) > 1 && t.stride(1) > 1;
    n.repeated += t.stride(0) == 0 || t.stride(1) == 0, n.dense += t.is_contiguous();
    n.shared += t.shares_storage(again);
  });
  const std::pair<const char*, int> all[] = {{"begin behind the start of their storage", n.offset},
                                             {"are stored by columns", n.permuted},
                                             {"have steps", n.stepped},
                                             {"repeat elements", n.repeated},
                                             {"are contiguous", n.dense},
                                             {"share a storage", n.shared}};
  for (const auto& known : all)
    if (known.second < 4) return format("of 400 drawn tensors {} {}", known.second, known.first);
  return "";
}

/// Where a law asks for them, in every floating dtype.
std::string special_values_are_drawn() {
  for (const DType d : {DType::F64, DType::F32, DType::F16, DType::BF16, DType::C64, DType::C128}) {
    int nan = 0, inf = 0, minus_inf = 0, minus_zero = 0, negative = 0, apart = 0;
    const auto count = [&](Draw& draw) {
      const Reals parts = flatten({draw.tensor(Dims{4}, d)});
      for (size_t k = 0; k + 1 < parts.size(); k += 2) apart += parts[k] != parts[k + 1];
      for (const f128 v : parts) {
        const double x = double(v);
        nan += x != x, inf += x == kInf, minus_inf += x == -kInf, negative += x < 0;
        minus_zero += x == 0 && std::signbit(x);
      }
    };
    each_draw(400, count, {.layouts = false, .nonfinite = true});
    const std::pair<const char*, int> all[] = {
        {"NaN", nan}, {"inf", inf}, {"-inf", minus_inf}, {"-0", minus_zero}, {"negative numbers", negative}};
    for (const auto& known : all)
      if (known.second == 0) return format("no {} is drawn for {}", known.first, d);
    const int pairs = is_complex(d) ? 1600 : 800;
    if (4 * apart < 3 * pairs)
      return format("{} of {} {} of {} differ", apart, pairs, is_complex(d) ? "pairs of parts" : "neighbours",
                    d);
  }
  return "";
}

std::string batches_vary() {
  std::set<int64_t> sizes;
  std::set<std::vector<bool>> pairs, triples;
  each_draw(500, [&](Draw& d) {
    sizes.insert(draw_lanes(d));
    pairs.insert(draw_mapped(d, 2)), triples.insert(draw_mapped(d, 3));
  });
  if (sizes != std::set<int64_t>{0, 1, 2, 3, 7})
    return format("{} different numbers of lanes are drawn", sizes.size());
  if (pairs.size() != 3) return format("{} of the 3 ways to map two arguments are drawn", pairs.size());
  return triples.size() == 7 ? "" : format("{} of 7 ways to map three are drawn", triples.size());
}

/// One stack in eight has one lane for all.
std::string lanes_differ() {
  const Tensor example = row_of({1, 2, 4});
  for (const bool rotate : {false, true}) {
    int differing = 0, batches = 0;
    std::set<int> dims;
    each_draw(200, [&](Draw& d) {
      const Batch b = draw_batch(d, {example}, {true}, 3, rotate);
      ++batches, dims.insert(b.in_dims[0]);
      std::set<std::vector<double>> lanes;
      for (int64_t k = 0; k < 3; ++k) lanes.insert(lane(b, k)[0].to_vector());
      differing += lanes.size() == 3;
    });
    if (4 * differing < 3 * batches)
      return format("of {} batches of three lanes {} have different ones", batches, differing);
    if (dims != std::set<int>{0, 1}) return "not every dim is mapped";
  }
  return "";
}

/// Words, not arguments: small cases are met again by chance.
std::string series_differ() {
  const std::vector<const Op*> ops = smooth_ones();
  std::set<Choices> known;
  size_t drawn = 0;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{2}, ~uint64_t{0}})
    for (const Op* op : ops)
      for (const Law* law : Census::usual_laws())
        for (uint64_t i = 0; i < 24; ++i)
          if (const Choices words = choices_of(seed, *law, *op, i); !words.empty())
            ++drawn, known.insert(words);
  if (known.size() != drawn)
    return format("of {} cases of other seeds, operators, laws or numbers {} differ", drawn, known.size());
  for (const Op* op : ops)
    for (uint64_t i = 0; i < 24; ++i)
      if (choices_of(3, laws().front(), *op, i) != choices_of(3, laws().front(), *op, i))
        return "one case is drawn in two ways";
  return "";
}

std::string shards_are_complete() {
  for (const int shards : {1, 2, 3, 7}) {
    std::vector<int> sizes(size_t(shards), 0);
    for (const Law& law : laws())
      for (const Op* op : smooth_ones()) {
        int owners = 0;
        for (int k = 0; k < shards; ++k)
          if (in_shard(*op, law, k, shards)) ++owners, ++sizes[size_t(k)];
        if (owners != 1) return format("{} of {} shards check {} of {}", owners, shards, law.id, op->name);
      }
    for (const int n : sizes)
      if (n == 0) return format("one of {} shards has nothing to do", shards);
  }
  return "";
}

/// Two processes, or two seeds, of the usual census: what both draw is small and simple.
std::string censuses_differ() {
  std::vector<const Op*> ops = smooth_ones();
  const auto taken = [&](uint64_t seed, int process, int of) {
    return Census::of_pairs(ops, Census::usual_laws(), seed, 30, process, of);
  };
  const Census one = taken(1, 0, 1), other = taken(2, 0, 1), first = taken(1, 0, 2), second = taken(1, 1, 2);
  const auto shared = [](const Census& a, const Census& b) {
    size_t n = 0;
    for (const uint64_t h : a.cases()) n += b.cases().contains(h);
    return n;
  };
  if (shared(one, other) * 2 > one.cases().size())
    return format("{} of {} cases are those of another seed", shared(one, other), one.cases().size());
  if (shared(first, second) * 2 > first.cases().size())
    return format("{} of {} cases are the other process's", shared(first, second), first.cases().size());
  if (first.of("cases") + second.of("cases") != one.of("cases"))
    return "two processes do not draw as many cases as one";
  for (const uint64_t h : first.cases())
    if (!one.cases().contains(h)) return "a case of two processes is none of one";
  return "";
}

}  // namespace

void add_draw_calibrations(std::vector<Calibration>& all) {
  all.push_back({"cases_vary", "Drawn cases differ, and are empty, scalar and large.", cases_vary});
  all.push_back({"dims_are_drawn", "Every dim is drawn, alone, in lists and for results, from both ends.",
                 dims_are_drawn});
  all.push_back(
      {"sizes_are_drawn", "Every rank, usual size, number of entries and index is drawn.", sizes_are_drawn});
  all.push_back({"numbers_are_drawn",
                 "Numbers are of both signs, whole and not, with imaginary parts and without.",
                 numbers_are_drawn});
  all.push_back({"seeds_share_no_case", "No case of a seed is one of another seed.", seeds_share_no_case});
  all.push_back({"layouts_are_drawn", "Every layout of a tensor is drawn.", layouts_are_drawn});
  all.push_back({"special_values_are_drawn", "NaN, infinities and -0 are drawn in every dtype that has them.",
                 special_values_are_drawn});
  all.push_back(
      {"batches_vary", "All numbers of lanes and all subsets of arguments are drawn.", batches_vary});
  all.push_back({"lanes_differ", "Lanes of a batch differ from one another.", lanes_differ});
  all.push_back(
      {"series_differ", "Seed, operator, law and number of a case decide it, each of them.", series_differ});
  all.push_back({"shards_are_complete", "Each pair belongs to one shard, and each shard has pairs.",
                 shards_are_complete});
  all.push_back({"censuses_differ", "Cases of two seeds, or of two processes, are others.", censuses_differ});
  all.push_back({"small_census_has_its_floors",
                 "A few cases of each operator show every feature of the census.",
                 small_census_has_its_floors});
  all.push_back({"census_has_its_floors", "Drawn cases show every feature of the census often enough.",
                 census_has_its_floors, true});
}

}  // namespace lamella::verify
