// Comparisons and bounds: pairs that differ in one thing, errors of known size, numbers of all dtypes.
#include <cmath>
#include <cstring>

#include "lamella/mutate/calibration_parts.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/tolerances.h"

namespace lamella::verify {

namespace {

constexpr int kPlainTypes = int(DType::F128);  ///< dtypes of tensors of users come first

std::string differences_are_seen() {
  struct Pair {
    Tensor got, want;
    bool differ;
  };
  const double next = std::nextafter(1.0, 2.0);
  const Tensor stepped = make_view_unchecked(row_of({1, 9, 2, 9}), Dims{2}, Dims{2}, 0);
  const Pair pairs[] = {
      {row_of({1, 2}), row_of({1, 2}), false},
      {stepped, row_of({1, 2}), false},
      {stepped, row_of({1, 9}), true},
      {row_of({kNan, 2}), row_of({kNan, 2}), false},
      {row_of({kNan, 2}), row_of({1, 2}), true},
      {row_of({1, 2}), row_of({1, kNan}), true},
      {row_of({1, 2}), row_of({next, 2}), true},
      {row_of({1, 2}), row_of({1, 3}), true},
      {row_of({0, 2}), row_of({-0.0, 2}), true},
      {row_of({kInf, 2}), row_of({-kInf, 2}), true},
      {row_of({1, 2}), row_of({1, 2}, DType::F32), true},
      {row_of({1, 2}), row_of({1}), true},
      {row_of({1, 2}), tensor_of({1, 2}, {1, 2}, DType::F64), true},
      {Tensor(), row_of({1}), true},
  };
  for (const Pair& p : pairs)
    if (differs(p.got, p.want).empty() == p.differ)
      return format("{} and {} are said to {}", p.got, p.want, p.differ ? "agree" : "differ");
  return "";
}

/// Nine elements as they are, transposed, and every other one of more.
std::vector<Tensor> layouts_of(DType d) {
  const Tensor dense = counted_up(Dims{3, 3}, d), long_row = counted_up(Dims{18}, d);
  return {dense, make_view_unchecked(dense, Dims{3, 3}, Dims{1, 3}, 0),
          make_view_unchecked(long_row, Dims{3, 3}, Dims{6, 2}, 1)};
}

std::string every_element_counts() {
  for (int k = 0; k < kPlainTypes; ++k)
    for (const Tensor& right : layouts_of(DType(k))) {
      const size_t bytes = size_t(itemsize(right.dtype())), parts = is_complex(right.dtype()) ? 2 : 1;
      for (size_t at = 0; at < 9 * parts; ++at) {
        const Tensor wrong = plain_copy(right);
        auto* const p = static_cast<char*>(wrong.raw_data()) + at * bytes / parts;
        *p = char(*p ^ 1);  // the least change there is
        const Finding d = differs(wrong, right), e = differs(right, wrong);
        const bool exact = !is_inexact(right.dtype());
        if (d.empty() || e.empty() || disagrees(wrong, right, Agreement::Bitwise).empty() ||
            (exact && disagrees(wrong, right, Agreement::Rounding).empty()))
          return format("{} with another part {} is said to be equal", right, at);
      }
      if (!differs(plain_copy(right), right).empty()) return format("{} differs from its copy", right);
    }
  return "";
}

std::string lists_have_lengths() {
  const Tensor x = row_of({1, 2});
  for (size_t n = 0; n < 4; ++n)
    for (size_t m = 0; m < 4; ++m) {
      const Tensors a(n, x), b(m, x);
      for (const Finding& d :
           {differs(a, b), disagrees(a, b, Agreement::Bitwise), disagrees(a, b, Agreement::Rounding)})
        if (d.empty() != (n == m)) return format("lists of {} and {} equal tensors: \"{}\"", n, m, d.text());
    }
  return "";
}

std::string bounds_are_tight() {
  const Tensor bound = row_of({0x1p-40});
  for (const double off : {0.0, 0.5, 0.99, 1.5, 2.0, 10.0, 1000.0}) {
    const bool seen = !outside(row_of({1 + off * 0x1p-40}), row_of({1}), bound).empty();
    if (seen != (off > 1))
      return format("an error of {} bounds is said to be {}", off, seen ? "outside" : "inside");
  }
  return "";
}

/// NaN is near NaN alone, an infinity near itself and what rounds to it.
std::string bounds_of_specials() {
  const Tensor bound = row_of({0x1p-40});
  for (const DType d : {DType::F16, DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128}) {
    const double most = largest_number(d);
    for (const double want : {kNan, kInf, -kInf, 0.0, 1.0, -1.0, most / 4, most, -most})
      for (const double got : {kNan, kInf, -kInf, 0.0, 1.0, -1.0}) {
        const bool overflows = std::isinf(got) && std::isfinite(want) && want == std::copysign(most, got);
        const bool near = got == want || (got != got && want != want) || overflows;
        const Tensor mine = row_of({got}, d);
        const Tensor right = row_of({want}, is_complex(d) ? DType::C128 : DType::F64);
        if (outside(mine, right, bound).empty() != near)
          return format("{}: {} is said to lie {} a bound of {}", d, got, near ? "beyond" : "within", want);
      }
  }
  return "";
}

std::string roundings_are_few() {
  for (const DType d : {DType::F64, DType::F32, DType::F16, DType::BF16})
    for (const double off : {0.0, 32.0, 96.0, 128.0}) {
      const double u = unit_roundoff(d);
      const bool seen =
          !disagrees(row_of({1, 1 + off * u}, d), row_of({1, 1}, d), Agreement::Rounding).empty();
      if (seen != (off > 64))
        return format("{}: {} roundings are said to be {}", d, off, seen ? "too many" : "fine");
    }
  return "";
}

/// What a dtype holds, found by halving and doubling in it.
struct Numbers {
  double roundoff = 0.5, smallest = 1, largest = 1;
};
template <class T> Numbers numbers_of() {
  const auto rounded = [](double v) {
    if constexpr (is_half_type<T>) return double(float(T(float(v))));
    else return double(T(v));
  };
  Numbers n;
  while (rounded(1 + n.roundoff) != 1) n.roundoff /= 2;
  while (rounded(n.smallest / 2) != 0) n.smallest /= 2;
  while (std::isfinite(rounded(2 * n.largest))) n.largest *= 2;
  for (double step = n.largest / 2; n.largest + step != n.largest; step /= 2)
    if (std::isfinite(n.largest + step) && rounded(n.largest + step) == n.largest + step) n.largest += step;
  return n;
}

std::string numbers_are_those_of_dtypes() {
  const std::pair<DType, Numbers> all[] = {
      {DType::F16, numbers_of<f16>()},   {DType::BF16, numbers_of<bf16>()},
      {DType::F32, numbers_of<float>()}, {DType::F64, numbers_of<double>()},
      {DType::C64, numbers_of<float>()}, {DType::C128, numbers_of<double>()}};
  for (const auto& known : all) {
    const DType d = known.first;
    const Numbers& n = known.second;
    if (unit_roundoff(d) != n.roundoff)
      return format("{} rounds at {}, and is said to at {}", d, n.roundoff, unit_roundoff(d));
    if (smallest_number(d) != n.smallest)
      return format("the smallest {} is {}, and is said to be {}", d, n.smallest, smallest_number(d));
    if (largest_number(d) != n.largest)
      return format("the largest {} is {}, and is said to be {}", d, n.largest, largest_number(d));
    const Tensor zero = row_of({0}, is_complex(d) ? DType::C128 : DType::F64);
    if (outside(row_of({64 * n.smallest}, d), zero, row_of({0})).empty())
      return format("64 times the smallest {} is said to be 0", d);
  }
  return "";
}

/// What an element may be off does not hang on another one that is infinite.
std::string infinities_allow_nothing_else() {
  for (const double wide : {kInf, -kInf, kNan})
    for (const DType d : {DType::F32, DType::F64, DType::C64})
      if (disagrees(row_of({wide, 1}, d), row_of({wide, 2}, d), Agreement::Rounding).empty())
        return format("beside {} two numbers that differ agree", wide);
  return "";
}

/// An operator that was exact whenever it was measured is allowed no rounding.
std::string exact_ones_are_exact() {
  for (const char* const name : {"neg", "transpose", "flip"})
    if (const double k = tolerance(name).value; k != 0)
      return format("{} was exact whenever it was measured, and is allowed {} roundings", name, k);
  return "";
}

}  // namespace

void add_compare_calibrations(std::vector<Calibration>& all) {
  all.push_back({"differences_are_seen", "Pairs that differ in one thing differ, and others do not.",
                 differences_are_seen});
  all.push_back({"every_element_counts",
                 "One bit of any part of any element makes a difference, in every dtype and layout.",
                 every_element_counts});
  all.push_back({"lists_have_lengths", "Lists of different lengths differ.", lists_have_lengths});
  all.push_back(
      {"bounds_are_tight", "An error of 1.5 bounds is outside, one of 0.99 is not.", bounds_are_tight});
  all.push_back({"bounds_of_specials",
                 "Within a bound of NaN lies NaN alone, and an infinity within that of what overflows to it.",
                 bounds_of_specials});
  all.push_back({"exact_ones_are_exact", "Operators whose measured error is 0 are allowed none.",
                 exact_ones_are_exact});
  all.push_back({"infinities_allow_nothing_else",
                 "Beside an infinity or a NaN other elements have to agree all the same.",
                 infinities_allow_nothing_else});
  all.push_back({"roundings_are_few", "96 roundings are too many, 32 are not.", roundings_are_few});
  all.push_back({"numbers_are_those_of_dtypes",
                 "Roundoff, smallest and largest number are those of a dtype's own arithmetic.",
                 numbers_are_those_of_dtypes});
}

}  // namespace lamella::verify
