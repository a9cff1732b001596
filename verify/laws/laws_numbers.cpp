// The law of numbers: what a Scalar and an element of a tensor are read as, converted to, negated and
// printed.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <quadmath.h>
#include <utility>

#include "lamella/dispatch/call.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/number.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/text/element_text.h"

namespace lamella::verify {

namespace {

/// A number as it was drawn, beside the Scalar that is to hold it.
struct Drawn {
  DType kind = DType::I64;  ///< bool, i64, u64, f64 or c128
  __int128 whole = 0;
  double re = 0, im = 0;
  bool integral() const { return is_bool(kind) || is_integer(kind); }
  Scalar scalar() const {
    switch (kind) {
      case DType::Bool: return whole != 0;
      case DType::U64: return uint64_t(whole);
      case DType::I64: return int64_t(whole);
      case DType::F64: return re;
      default: return c128(re, im);
    }
  }
};

double draw_double(Draw& d) {
  static constexpr double kSpecial[] = {
      0.0,     -0.0,    INFINITY, -INFINITY,       NAN,       0x1p63,   -0x1p63, 0x1p64, 0x1p-1074, -0x1p-149,
      0x1p-25, 65504,   65520,    -65519.99,       0x1p31,    -0x1p31,  0x1p32,  0.5,    -2.5,      255.5,
      -128.5,  0x1p128, 3.5e38,   -0x1.fffffep127, 0x1.8p-24, 0x1p-133, 1e300,   0x1p53, 0.1,       -1e-40};
  const uint32_t w = d.word();
  switch (w % 4) {
    case 0: return kSpecial[w / 4 % std::size(kSpecial)];
    case 1: return double(int32_t(d.word())) / 256;
    case 2: return std::nextafter(kSpecial[w / 8 % std::size(kSpecial)], w & 4 ? -INFINITY : INFINITY);
    default: return std::bit_cast<double>(uint64_t(w) << 32 | d.word());
  }
}

int64_t draw_whole(Draw& d) {
  static constexpr int64_t kEdges[] = {
      0,         1,         -1,     127,   128,        255,          256,         -128,
      -129,      32767,     -32769, 65535, 0x7fffffff, -0x80000001L, 0xffffffffL, (1L << 53) + 1,
      INT64_MAX, INT64_MIN, 2049,   65520};
  const uint32_t w = d.word();
  const int64_t edge = kEdges[w / 2 % std::size(kEdges)];
  return w & 1 ? int64_t(uint64_t(d.word()) << 32 | d.word()) : edge;
}

Drawn draw_number(Draw& d) {
  Drawn n;
  switch (d.below(5)) {
    case 0: n.kind = DType::Bool, n.whole = d.flag(); break;
    case 1: n.whole = draw_whole(d); break;
    case 2: n.kind = DType::U64, n.whole = (__int128(1) << 64) - 1 - (draw_whole(d) & INT64_MAX); break;
    case 3: n.kind = DType::F64, n.re = draw_double(d); break;
    default: n.kind = DType::C128, n.re = draw_double(d), n.im = draw_double(d); break;
  }
  return n;
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

/// The number of binary floating point of R that is nearest to x, ties to even, found by its neighbours.
template <class R> bool is_nearest(R got, f128 x) {
  if (x != x) return std::isnan(double(got));
  if (x == 0) return double(got) == 0;
  if (std::isinf(double(x))) return std::isinf(double(got)) && std::signbit(double(got)) == (x < 0);
  constexpr int digits = std::is_same_v<R, f16> ? 11 : std::is_same_v<R, bf16> ? 8 : sizeof(R) == 4 ? 24 : 53;
  constexpr int least = std::is_same_v<R, f16>    ? -24
                        : std::is_same_v<R, bf16> ? -133
                        : sizeof(R) == 4          ? -149
                                                  : -1074;
  constexpr int top = std::is_same_v<R, f16> ? 16 : sizeof(R) == 8 ? 1024 : 128;
  const f128 size = x < 0 ? -x : x;
  int exponent = 0;
  frexpq(size, &exponent);
  --exponent;  // of the binade of x
  const bool overflows = std::isinf(double(got)) && std::signbit(double(got)) == (x < 0);
  if (exponent >= top) return overflows;
  const int last = std::max(exponent - digits + 1, least);
  const f128 ratio = ldexpq(size, -last);  // in units of the last place, exact
  const auto below = static_cast<unsigned __int128>(ratio);
  const f128 rest = ratio - f128(below);
  const bool up = rest > 0.5 || (rest == 0.5 && below % 2 == 1);
  const f128 want = ldexpq(f128(below + (up ? 1 : 0)), last);
  if (want >= ldexpq(1, top)) return overflows;
  return f128(double(got)) == (x < 0 ? -want : want);
}

template <class T> bool converts(const Drawn& n, T got) {
  const f128 exact = n.integral() ? f128(n.whole) : f128(n.re);
  if constexpr (std::is_same_v<T, bool>) {
    return got == (n.integral() ? n.whole != 0 : !(n.re == 0 && n.im == 0));
  } else if constexpr (std::is_integral_v<T>) {
    if (n.integral()) return uint64_t(got) == uint64_t(T(n.whole));  // modulo a power of two
    const f128 low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    if (n.re != n.re) return got == 0;
    const f128 whole = exact <= low ? low : exact >= high ? high : f128(__int128(exact));
    return f128(got) == whole;
  } else if constexpr (is_complex_type<T>) {
    using R = typename T::value_type;
    const bool imaginary = n.integral() ? got.imag() == 0 : is_nearest<R>(got.imag(), f128(n.im));
    return imaginary && is_nearest<R>(got.real(), exact);
  } else {
    return is_nearest<T>(got, exact);
  }
}

Finding conversions_wrong(const Drawn& n, const Scalar& s) {
  Finding wrong;
  for (int k = 0; k < int(DType::F128); ++k)
    visit_dtype(DType(k), [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      if constexpr (!std::is_same_v<T, f128> && !std::is_same_v<T, c256>)
        if (wrong.empty() && !converts<T>(n, s.to<T>())) wrong = format("converted to {}", name(DType(k)));
    });
  return wrong;
}

/// Reads one real number; false where there is none.
bool read(const char*& at, double& out) {
  if (*at == '+' && (at[1] == '+' || at[1] == '-')) return false;
  char* end = nullptr;
  out = std::strtod(at, &end);
  return std::exchange(at, end) != end;
}

/// The text is one number, and this one.
bool prints(const Drawn& n, const std::string& text) {
  const char* at = text.c_str();
  if (is_bool(n.kind)) return text == (n.whole ? "true" : "false");
  if (n.integral()) {
    __int128 got = 0;
    const bool negative = *at == '-';
    for (at += negative; *at >= '0' && *at <= '9'; ++at) got = 10 * got + (*at - '0');
    return *at == 0 && (negative ? -got : got) == n.whole;
  }
  double re = 0, im = 0;
  if (!read(at, re) || !same(re, n.re)) return false;
  if (n.kind == DType::F64) return *at == 0;
  return (*at == '+' || *at == '-') && read(at, im) && same(im, n.im) && std::strcmp(at, "j") == 0;
}

Finding negation_wrong(const Drawn& n, const Scalar& s) {
  Scalar got;
  const Status status = status_of([&] { got = -s; });
  const bool fits = !n.integral() || -n.whole >= INT64_MIN;
  if (status.raised) return fits || status.code != ErrorCode::Overflow ? "negated: " + str(status) : "";
  if (!fits) return "negated, although no integer type holds that";
  Drawn want = n;
  want.whole = -n.whole, want.re = -n.re, want.im = -n.im;
  if (n.integral()) want.kind = want.whole > INT64_MAX ? DType::U64 : DType::I64;
  if (got.kind() != want.kind) return format("negated: a number of kind {}", name(got.kind()));
  return prints(want, got.str()) ? "" : "negated: " + got.str();
}

/// An element of each dtype with these bits is read as what they mean.
template <class T> std::string element_wrong(T x) {
  const Tensor t = make_tensor({}, dtype_of<T>);
  std::memcpy(t.raw_data(), &x, sizeof x);
  Drawn n;
  if constexpr (is_complex_type<T>) n.kind = DType::C128, n.re = double(x.real()), n.im = double(x.imag());
  else if constexpr (std::is_integral_v<T>)
    n.kind = std::is_same_v<T, bool>                              ? DType::Bool
             : x > T(INT64_MAX) && sizeof(T) == 8 && T(-1) > T(0) ? DType::U64
                                                                  : DType::I64,
    n.whole = x;
  else n.kind = DType::F64, n.re = double(x);
  const Scalar s = t.item_scalar();
  if (s.kind() != n.kind) return format("item of {}: a number of kind {}", name(dtype_of<T>), name(s.kind()));
  if (!prints(n, s.str())) return format("item of {}: {}", name(dtype_of<T>), s.str());
  const std::string text = str(t);
  const std::string shown = text.substr(text.find(' ') + 1);
  const bool right = prints_by_dtype(t.dtype()) ? is_text_of(s, t.dtype(), shown) : prints(n, shown);
  if (!right) return "printed: " + text;
  if (!converts<double>(n, t.to_vector()[0])) return format("to_vector of {}", name(dtype_of<T>));
  return "";
}

Finding elements_wrong(Draw& d) {
  const uint64_t bits[] = {d.word(), d.word(), d.word(), d.word()};
  const uint64_t word = (bits[0] << 32 | bits[1]) ^ (d.flag() ? uint64_t(draw_whole(d)) : 0);
  const double odd = draw_double(d);
  Finding wrong;
  for (int k = 0; k < int(DType::F128); ++k)
    visit_dtype(DType(k), [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      if (!wrong.empty()) return;
      if constexpr (std::is_same_v<T, bool>) wrong = element_wrong<bool>(word & 1);
      else if constexpr (std::is_integral_v<T>) wrong = element_wrong<T>(T(word));
      else if constexpr (is_complex_type<T> && !std::is_same_v<T, c256>) {
        using R = typename T::value_type;
        const R parts[] = {R(odd), R(std::bit_cast<double>(word))};
        T x;
        std::memcpy(&x, parts, sizeof x);
        wrong = element_wrong<T>(x);
      } else if constexpr (is_half_type<T>) {
        T half;
        half.bits = uint16_t(word);
        wrong = element_wrong<T>(half);
      } else if constexpr (std::is_same_v<T, float>)
        wrong = element_wrong<T>(std::bit_cast<float>(uint32_t(word)));
      else if constexpr (std::is_same_v<T, double>) wrong = element_wrong<T>(odd);
    });
  return wrong;
}

Finding texts_wrong(Draw& d) {
  static constexpr int64_t kSizes[] = {1, 2, 15, 16, 17, 18, 0, 24};
  Dims sizes;
  for (uint32_t k = d.below(3); k > 0; --k) sizes.push_back(kSizes[d.below(std::size(kSizes))]);
  Tensor t = make_tensor(sizes, DType::I64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<int64_t>()[i] = i;
  if (sizes.size() == 2 && d.flag())
    t = make_view_unchecked(t, Dims{sizes[1], sizes[0]}, Dims{t.stride(1), t.stride(0)}, 0);
  return text_wrong(t);
}

/// Another header of a number's tensor is the number still: it promotes as that does, beside any dtype.
Finding alias_wrong(Draw& d, const Scalar& s) {
  const DType dtype = DType(d.below(uint32_t(DType::F128)));
  const Tensor x = make_tensor(d.flag() ? Dims{1} : Dims{}, dtype);
  std::memset(x.raw_data(), 0, size_t(itemsize(dtype)));
  const Tensor number = number_like(s, x), alias = make_alias(number), again = make_alias(alias);
  Tensor want, got, second;
  const Status plain = status_of([&] { want = maximum(x, number); });
  const Status other = status_of([&] { got = maximum(x, alias), second = maximum(x, again); });
  if (plain.raised != other.raised) return "its alias beside " + type_str(x) + ": " + str(other);
  if (plain.raised) return "";
  for (const Tensor& t : {got, second})
    if (const Finding differ = differs(t, want); !differ.empty())
      return "its alias beside " + type_str(x) + ": " + differ;
  return "";
}

Verdict numbers_are_kept(Case& c) {
  const Drawn n = draw_number(c.draw);
  const Scalar s = n.scalar();
  Finding wrong;
  if (s.kind() != n.kind) wrong = format("a number of kind {}", name(s.kind()));
  if (wrong.empty() && !prints(n, s.str())) wrong = "printed";
  if (wrong.empty()) wrong = conversions_wrong(n, s);
  if (wrong.empty()) wrong = negation_wrong(n, s);
  if (wrong.empty()) wrong = alias_wrong(c.draw, s);
  if (!wrong.empty()) wrong = format("{} of kind {}: ", s.str(), name(n.kind)) + wrong;
  else if (wrong = elements_wrong(c.draw); wrong.empty()) wrong = texts_wrong(c.draw);
  if (wrong.empty()) wrong = text_wrong(call_boxed(c.op, c.args)[0]);
  return Verdict::of(wrong);
}

/// Empty when each element is the number, as its dtype holds it.
Finding holds_another(const Drawn& n, const Tensor& y, const Tensor& like, std::string_view what) {
  if (!y.defined() || y.dtype() != like.dtype() || !std::ranges::equal(y.sizes(), like.sizes()))
    return format("{}: got {}, expected {}", what, y, like);
  bool same = true;
  visit_dtype(y.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (!std::is_same_v<T, f128> && !std::is_same_v<T, c256>)
      each_element(y, [&](int64_t o) { same &= converts<T>(n, static_cast<const T*>(y.raw_data())[o]); });
  });
  return same ? "" : format("{} of {}: got {}", what, like.dtype(), y);
}

/// As halves see it, which are computed with in f32.
Drawn seen_by(const Drawn& n, DType d) {
  if (!is_half(d) || is_bool(n.kind)) return n;
  Drawn out = n;
  out.kind = DType::F64;
  out.re = n.kind == DType::U64 ? double(float(uint64_t(n.whole)))
           : n.integral()       ? double(float(int64_t(n.whole)))
                                : double(float(n.re));
  return out;
}

/// Decision 0017 again, by comparisons of its own: `v` as an element of `d`, which is not complex.
bool fits_in(long double v, bool integral, DType d) {
  if (is_bool(d)) return true;
  if (is_integer(d)) {
    const bool is_signed = d >= DType::I8;
    const long double end = std::ldexp(1.0L, 8 * int(itemsize(d)) - (is_signed ? 1 : 0));
    if (is_signed) return v >= -end && v <= end - 1;
    return v <= end - 1 && (v > -1 || (integral && v > -end));  // -1 is all ones
  }
  const long double largest = d == DType::F16    ? 65504.0L
                              : d == DType::BF16 ? std::ldexp(255.0L, 120)
                              : d == DType::F32  ? std::ldexp(16777215.0L, 104)
                                                 : std::ldexp(9007199254740991.0L, 971);
  return !(std::abs(v) > largest) || std::isinf(v);
}

bool fits_in(const Drawn& n, DType d) {
  const DType part = is_complex(d) ? to_real(d) : d;
  if (n.integral()) return fits_in((long double)n.whole, true, part);
  return fits_in(n.re, false, part) && (n.kind != DType::C128 || fits_in(n.im, false, part));
}

/// What makes elements of a number that `d` does not hold says so.
Finding taken_though_unfit(const Scalar& s, const Tensor& like) {
  const DType d = like.dtype();
  const std::function<void()> all[] = {
      [&] { full(like.sizes(), s, d); }, [&] { full_like(like, s); }, [&] { lamella::fill(like, s); },
      [&] { new_full(like, like.sizes(), s); }, [&] { fill_(clone(like), s); }};
  for (const auto& run : all)
    if (const Status got = status_of(run); !got.raised || got.code != ErrorCode::Overflow)
      return format("of {} nothing holds it: expected error overflow, got ", d) + str(got);
  return "";
}

/// A number beside a tensor that leaves it as it is: -0 + x, 1 x, max(lowest, x).
Finding beside_wrong(const Drawn& n, const Scalar& s, const Tensor& like) {
  const DType d = like.dtype();
  const Drawn seen = seen_by(n, d);
  Finding wrong = holds_another(seen, add(full_like(like, -0.0), s), like, "-0 + a number");
  if (wrong.empty()) wrong = holds_another(seen, add(s, full_like(like, -0.0)), like, "a number + -0");
  if (is_complex(d) || is_bool(d)) return wrong;
  if (wrong.empty()) wrong = holds_another(seen, mul(full_like(like, 1), s), like, "1 times a number");
  const bool is_signed = is_integer(d) && d >= DType::I8;
  const Scalar least = is_inexact(d) ? Scalar(-INFINITY)
                       : is_signed   ? Scalar(std::numeric_limits<int64_t>::min() >> (64 - 8 * itemsize(d)))
                                     : Scalar(0);
  const Tensor lowest = full_like(like, least);
  if (wrong.empty()) wrong = holds_another(seen, maximum(lowest, s), like, "the greater of a number");
  return wrong;
}

/// An end of what `d` holds, as a floating number, or one beside it: a number drawn for all dtypes meets that
/// of one of them seldom.
Drawn end_of(DType d, uint32_t w) {
  const DType part = is_complex(d) ? to_real(d) : d;
  double end = 1;
  if (is_integer(part)) end = std::ldexp(1.0, 8 * int(itemsize(part)) - (part >= DType::I8 ? 1 : 0));
  if (is_inexact(part)) end = largest_number(part);
  static constexpr double kBeside[] = {0, -1, 0.5, -0.5};
  Drawn n{.kind = DType::F64, .re = end + kBeside[w >> 2 & 3]};
  if (w & 2) n.re = std::nextafter(n.re, w >> 2 & 1 ? 0 : INFINITY);
  if (w & 1) n.re = -n.re;
  return n;
}

Finding end_wrong(DType d, uint32_t w) {
  const Drawn n = end_of(d, w);
  const Tensor like = zeros({1}, d);
  const Finding wrong = fits_in(n, d) ? holds_another(n, full_like(like, n.scalar()), like, "full_like")
                                      : taken_though_unfit(n.scalar(), like);
  return wrong.empty() ? "" : format("{}: ", n.scalar().str()) + wrong;
}

Verdict numbers_fill(Case& c) {
  const Drawn n = draw_number(c.draw);
  const Scalar s = n.scalar();
  const uint32_t w = c.draw.word();
  const Dims sizes{1 + int64_t(w % 2), 1 + int64_t(w / 2 % 19)};
  Finding wrong;
  for (int k = 0; k < int(DType::F128) && wrong.empty(); ++k) {
    const DType d = DType(k);
    if (wrong = end_wrong(d, (w >> 8) + uint32_t(k)); !wrong.empty()) break;
    if (is_complex(s.kind()) && !is_complex(d)) continue;  // refused
    const Tensor like = zeros(sizes, d), wide = zeros({sizes[0], 2 * sizes[1]}, d);
    if (!fits_in(n, d)) {
      wrong = taken_though_unfit(s, like);
      continue;
    }
    wrong = holds_another(n, full(sizes, s, d), like, "full");
    if (wrong.empty()) wrong = holds_another(n, full_like(like, s), like, "full_like");
    if (wrong.empty()) wrong = holds_another(n, lamella::fill(like, s), like, "fill");
    if (wrong.empty()) wrong = holds_another(n, new_full(like, sizes, s), like, "new_full");
    const Tensor stepped = make_view_unchecked(wide, sizes, Dims{2 * sizes[1], 2}, 0);
    if (wrong.empty()) wrong = holds_another(n, fill_(stepped, s), like, "fill_");
    if (wrong.empty() && category(s.kind()) <= category(d)) wrong = beside_wrong(n, s, like);
  }
  return Verdict::of(wrong.empty() ? "" : format("{} of kind {}: ", s.str(), name(n.kind)) + wrong);
}

/// Several tensors broadcast against each other: any of them may be a number.
bool broadcasts_numbers(const Op& op) {
  return op.shape == ShapeClass::Broadcast && op.simple && op.tensor_params.size() >= 2;
}

Verdict numbers_in_lanes(Case& c) {
  std::vector<Case::Slot> slots = c.tensors();
  if (slots.empty()) return Verdict::discard();
  Drawn n = draw_number(c.draw);
  const uint32_t w = c.draw.word();
  if (broadcasts_numbers(c.op)) {
    if (slots.size() < 2) return Verdict::discard();
    const size_t at = w % slots.size();
    // Beside halves, half of the time, one of 19 bits, which most halves have to round.
    if ((w >> 9 & 3) == 3 && w >> 12 & 1) n.kind = DType::F64, n.re = double(w >> 13) / 0x1p11 - 128;
    entry(c.args, slots[at]) = number_like(n.scalar(), c.at(slots[(at + 1) % slots.size()]));
    const bool in_lanes = w >> 9 & 1;
    for (size_t k = 0; in_lanes && w >> 10 & 1 && k < slots.size(); ++k)  // halves are computed in f32
      if (const Tensor t = c.at(slots[k]); k != at && is_floating(t.dtype()))
        entry(c.args, slots[k]) = to(t, w >> 11 & 1 ? DType::BF16 : DType::F16);
    if (!in_lanes) slots.erase(slots.begin() + ptrdiff_t(at));
  }
  for (size_t i = 0; i < c.args.size(); ++i)
    if (std::holds_alternative<Scalar>(c.args[i]) && w >> 8 & 1) c.args[i] = draw_number(c.draw).scalar();
  const Batch b = draw_batch(c, slots, draw_mapped(c.draw, slots.size()), 2);
  const Function f = [&c, &slots](const Tensors& xs) { return call_boxed(c.op, c.with(slots, xs)); };
  std::vector<Tensors> lanes(2);
  Tensors ys;
  for (int64_t i = 0; i < 2; ++i)
    if (status_of([&] { lanes[size_t(i)] = f(lane(b, i)); }).raised) return Verdict::discard();
  const Status mapped = status_of([&] { ys = vmap(f, {b.in_dims, {0}, Randomness::Error, b.size})(b.xs); });
  Finding wrong = mapped.raised ? "the lanes raise nothing, vmap raises " + str(mapped) : "";
  if (wrong.empty() && (ys.size() != lanes[0].size() || ys.size() != lanes[1].size()))
    wrong = other_number(ys, lanes[0]);
  for (size_t k = 0; k < ys.size() && wrong.empty(); ++k)
    for (int64_t i = 0; i < 2 && wrong.empty(); ++i) {
      const Tensor& want = lanes[size_t(i)][k];
      if (!want.defined() || !ys[k].defined()) wrong = "is missing";
      else if (ys[k].rank() != want.rank() + 1 || ys[k].size(0) != 2)
        wrong = format("got {}, lanes of {}", ys[k], want);
      else wrong = disagrees(lane(ys[k], 0, i), want, agreement(c.op));
      if (!wrong.empty()) wrong = format("result {}, lane {}: ", k, i) + wrong;
    }
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(wrong,
                       cpp_setting(c, slots, b.xs) + "  for (const Tensor& y : vmap(f0, VmapOptions{" +
                           cpp_dims(b.in_dims) + "})(xs)) std::cout << str(y) << '\\n';  // " + wrong.text() +
                           "\n",
                       1);
}

bool takes_number(const Op& op) {
  return std::ranges::any_of(op.schema.params, [](const Param& p) { return p.kind == ParamKind::Scalar; });
}

bool meets_numbers(const Op& op) {
  return !op.tensor_params.empty() && !op.has(kRandom) && (broadcasts_numbers(op) || takes_number(op));
}

}  // namespace

void add_number_laws(std::vector<Law>& laws) {
  laws.push_back(
      {147,
       "numbers_are_kept",
       "value",
       "A number, and an element read as one, is converted to every dtype with one rounding, modulo "
       "2^n or saturated, negated, and printed so that the text reads back as that number.",
       {.max_numel = 4},
       false,
       takes_number,
       numbers_are_kept});
  laws.push_back(
      {128,
       "numbers_fill",
       "value",
       "A tensor filled with a number, and a number beside a tensor that leaves it as it is, is that "
       "number as the dtype holds it, in all dtypes; at the ends of each, what it does not hold is refused.",
       {.max_numel = 2},
       false,
       takes_number,
       numbers_fill});
  laws.push_back(
      {152,
       "numbers_in_lanes",
       "vmap",
       "An operator with a number for an operand or an argument gives in a lane of vmap what it gives "
       "outside, in all dtypes.",
       {.max_numel = 12, .one_large = true},
       false,
       meets_numbers,
       numbers_in_lanes,
       8});
}

}  // namespace lamella::verify
