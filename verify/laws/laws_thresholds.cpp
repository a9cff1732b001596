// Laws of thresholds: where blocks end, short ways begin and other code takes over does not show, nor do
// threads.
#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <thread>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "lamella/core/parallel.h"
#include "lamella/dispatch/table.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/transforms/vmap.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/near_threshold.h"
#include "lamella/verify/oracle/oracle.h"

namespace lamella::verify {

namespace {

/// Rows of a table without the short ways in front of kernels and view functions, with forms that write what
/// those rows give.
class WithoutShortWays {
 public:
  const Op* operator()(const Op& op) {
    const bool functional = op.form == OpForm::Functional;
    const auto base = made_.find(op.base);  // functional rows come before their forms
    if (functional ? op.straight == 0 && !op.edit : base == made_.end()) return nullptr;
    auto row = std::make_unique<Op>(op);
    row->kernel.lines = {}, row->edit = nullptr;
    if (functional) made_[&op] = row.get();
    else row->base = base->second;
    return rows.emplace_back(std::move(row)).get();
  }
  std::vector<std::unique_ptr<Op>> rows;

 private:
  std::map<const Op*, const Op*> made_;
};

/// Such a table; made again when the table it is made of is another one.
const OpTable* without_short_ways() {
  struct Copy {
    const OpTable* of = nullptr;
    std::vector<std::unique_ptr<Op>> rows;
    OpTable table;
  };
  static thread_local Copy copy;
  const OpTable& now = OpTable::current();
  if (copy.of == &now && copy.table.size() == now.size()) return &copy.table;
  WithoutShortWays change;
  copy.table = now.with_each([&](const Op& op) { return change(op); });
  copy.rows = std::move(change.rows), copy.of = &now;
  return &copy.table;
}

Tensors dense_copies(const Tensors& ts) {
  Tensors out;
  for (const Tensor& t : ts) out.push_back(plain_copy(t));
  return out;
}

Tensors with_lowered(const Op& op, const Values& args) {
  const ScopedTable table(without_short_ways());
  const ScopedThresholds lowered(kLoweredThresholds);
  return dense_copies(call_boxed(OpTable::current().row(op.id), args));
}

/// Which of two zeros is the least is up to the order in which a reduction meets them.
Finding first_difference(const Op& op, const Tensors& got, const Tensors& want) {
  if (got.size() != want.size()) return other_number(got, want);
  for (size_t k = 0; k < got.size(); ++k)
    if (Finding d = differs(got[k], want[k], op.shape != ShapeClass::Reduce); !d.empty()) return d;
  return "";
}

/// Elements 1 and -1 (unsigned: 1 and 0) in these places, in the same layout: sums and products are exact.
Values of_signs(const Case& c, const std::vector<Case::Slot>& slots) {
  Tensors signs;
  for (const Tensor& t : c.values(slots)) {
    Tensor s = strided_copy(t);
    visit_dtype(s.dtype(), [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      uint64_t i = signs.size();
      each_element(s, [&](int64_t offset) {
        i = i * 6364136223846793005u + 1442695040888963407u;
        const bool one = i >> 40 & 1;
        if constexpr (std::is_unsigned_v<T>) static_cast<T*>(s.raw_data())[offset] = T(one);
        else static_cast<T*>(s.raw_data())[offset] = T(one ? 1.0f : -1.0f);
      });
    });
    signs.push_back(s);
  }
  return c.with(slots, signs);
}

/// Whether inexact numbers are made of integers, by `dtype=` or where a sum of exponentials is: they have no
/// condition that law 1 knows, and -1 + log 2.74 is nearly 0.
bool makes_inexact(const Case& c) {
  if (c.op.shape == ShapeClass::Reduce && c.op.numerics.floor > 0 && c.inexact().empty()) return true;
  const int named = c.op.schema.find("dtype");
  const DType* const to = named < 0 ? nullptr : std::get_if<DType>(&c.args[size_t(named)]);
  return to && is_inexact(*to) && !c.tensors().empty() && !is_inexact(c.at(c.tensors()[0]).dtype());
}

/// The reference in f128 for what is too large for its Jacobian: exact where results need no rounding, else
/// 32 roundings of the result, and of 1 where operators are put together, also where an exact result is made
/// of rounded ones: a mean of nine signs has no end, and their variance may be 1.
Finding beyond_reference(const Op& op, const Values& args, const Tensors& got) {
  const Tensors want = reference_forward(op, to_reference(args));
  if (got.size() != want.size())
    return {What::Results, format("got {} results, the reference {}", got.size(), want.size())};
  for (size_t k = 0; k < got.size(); ++k) {
    if (!got[k].defined()) return format("result {} is missing", k);
    if (Finding d = differs(got[k], exact_parts(want[k], got[k]), false); !d.empty())
      if (!is_inexact(got[k].dtype()) || !rounds_inside(op, args, got[k].dtype())) return d;
    if (!is_inexact(got[k].dtype())) continue;
    if (differs(got[k], narrow(want[k], got[k].dtype())).empty()) continue;  // the reference, rounded once
    Reals size = flatten({want[k]});
    Bounds bounds;
    const double least = op.composite ? 1 : 0, units = 32 * unit_roundoff(coarsest_dtype(got));
    for (const f128 y : size) bounds.push_back(units * (double(y < 0 ? -y : y) + least));
    size_t at = 0;
    if (Finding d = outside(got[k], want[k], unflatten(bounds, at, want[k], 1)); !d.empty()) return d;
  }
  return "";
}

/// NaN in one element of one inexact argument, mostly among the last eight: where blocks and steps end.
Values with_a_nan(Case& c) {
  const std::vector<Case::Slot>& slots = c.inexact();
  const uint32_t which = c.draw.below(uint32_t(slots.size())), place = c.draw.word();
  Tensors xs;
  for (const Tensor& t : c.values(slots)) xs.push_back(strided_copy(t));
  const Tensor& x = xs[which];
  if (x.numel() == 0) return c.args;
  const auto n = uint64_t(x.numel());
  const uint64_t at = place & 3 ? n - 1 - place / 4 % std::min<uint64_t>(n, 8) : place / 4 % n;
  visit_dtype(x.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    uint64_t i = 0;
    if constexpr (is_floating_type<T> || is_complex_type<T>)
      each_element(x, [&](int64_t offset) {
        if (i++ == at) static_cast<T*>(x.raw_data())[offset] = T(std::numeric_limits<float>::quiet_NaN());
      });
  });
  return c.with(slots, xs);
}

/// What an element that is NaN makes of the results: NOTE: [lowered or usual] says nothing where both ways
/// miss it.
Verdict nan_as_reference(Case& c) {
  c.args = with_a_nan(c);
  for (const bool lowered : {false, true}) {
    const Verdict v = classes_as_reference(
        c, dense_copies(lowered ? with_lowered(c.op, c.args) : call_boxed(c.op, c.args)));
    if (v.kind != Verdict::Pass) return v;
  }
  return Verdict::pass();
}

size_t most_parts(const Case& c) {
  size_t n = 0;
  for (const Case::Slot& s : c.inexact()) n += part_count(c.at(s));
  return n;
}

/// NOTE: [lowered or usual] Equal bits, or, where a threshold changes the order of roundings, what law 1
/// allows. The oracle would take a forward for each element of a large case: that is asked with elements of 1
/// and -1, unless these may be refused, and so are integers that become inexact.
Verdict thresholds_are_invisible(Case& c) {
  if (draws_anew(c)) return Verdict::discard();
  constexpr size_t kMostParts = 96;
  const bool rounds = rounds_by_thresholds(c.op);
  const bool lone_nan = !c.inexact().empty() && !c.op.has(kValueErrors) && stays_on_device(c.op);
  if (lone_nan && c.draw.below(8) == 7) return nan_as_reference(c);
  const bool large = most_parts(c) > kMostParts && !c.op.has(kValueErrors), converts = makes_inexact(c);
  const bool signs = rounds && (large || converts);
  if (signs) c.args = of_signs(c, converts ? c.tensors() : c.inexact());
  // In this order: a result that is not written does not find the right one in memory that was freed.
  const Tensors got = with_lowered(c.op, c.args), want = dense_copies(call_boxed(c.op, c.args));
  Finding d = first_difference(c.op, got, want);
  if (d.empty()) return Verdict::pass();
  if (signs) d = beyond_reference(c.op, c.args, got);
  if (d.empty()) return Verdict::pass();
  if (rounds && !signs) {
    const Verdict v = within_reference(c, got);
    if (v.kind != Verdict::Fail) return v;
    d = {v.failure, v.message};
  }
  return Verdict::fail(
      "with lowered thresholds: " + d,
      "  setenv(\"LAMELLA_ISA\", \"tiny\", 1);  // lowered thresholds: core/thresholds.h\n" +
          cpp_got_want(c, cpp_tensors("w", want), cpp_call(c.op, c.args), cpp_names("w", want.size())));
}

/// The caller's arithmetic for a scope: a rounding mode, and whether subnormals are zeros.
class Arithmetic {
 public:
  explicit Arithmetic(uint32_t w) {
    static constexpr int kModes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    std::fegetenv(&saved_);
    std::fesetround(kModes[w & 3]);
#if defined(__SSE2__)
    if (w & 4) _mm_setcsr(_mm_getcsr() | 0x8040);  // results and operands
#endif
  }
  ~Arithmetic() { std::fesetenv(&saved_); }
  Arithmetic(const Arithmetic&) = delete;

 private:
  std::fenv_t saved_;
};

/// NOTE: [tiles that raise] Of a loop whose tiles raise, what the first of them raised is raised again, also
/// where a later one raises while the first is at work, or behind it. Both wait for each other, but not for
/// long: they may be one thread's.
Finding raises_another(Draw& d) {
  const int threads = 2 + int(d.below(3));
  const int64_t tiles = 2 + int64_t(d.below(uint32_t(4 * threads - 1)));
  const int64_t first = int64_t(d.below(uint32_t(tiles - 1))),
                later = first + 1 + int64_t(d.below(uint32_t(tiles - 1 - first)));
  std::array<std::atomic<bool>, 2> raising{};
  const auto wait_for = [&raising](size_t which) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    while (!raising[which] && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    for (int n = 0; n < 20 && raising[which]; ++n) std::this_thread::yield();  // until it has
  };
  const bool late = d.flag();
  const auto loop = [&](const Tensors& xs) {
    const ScopedThreads on(threads);
    const ScopedThresholds lowered(kLoweredThresholds);
    parallel_for(tiles, [&](int64_t from, int64_t to) {
      for (int64_t t = from; t < to; ++t) {
        if (t != first && t != later) continue;
        if ((t == first) == late) wait_for(t == first ? 1 : 0);
        raising[t == first ? 0 : 1] = true;
        fail(ErrorCode::Value, "tile {} of many", t);
      }
    });
    return xs;
  };
  const Status s = status_of([&] { vmap(Function(loop))({zeros({1}, DType::F32)}); });
  if (!s.raised) return "of a loop whose tiles raise nothing is raised";
  if (s.text.find("under: vmap") == std::string::npos)
    return {failure_kind(s), "what a tile raised does not say under which transform: " + s.text};
  if (s.text.find(format("tile {} of many", first)) != std::string::npos) return "";
  return {failure_kind(s),
          format("tiles {} and {} of {} raise; raised again is {}", first, later, tiles, s.text)};
}

/// As one thread and lowered thresholds: with them elements of a small case are work for all.
Verdict threads_are_invisible(Case& c) {
  if (draws_anew(c)) return Verdict::discard();
  const uint32_t w = c.draw.word();
  const auto of_threads = [&c, w](int n) {
    const ScopedThreads on(n);
    const Arithmetic of_caller(w & 8 ? w : 0);
    return with_lowered(c.op, c.args);
  };
  if ((w >> 4) % 8 == 7)
    if (const Finding d = raises_another(c.draw); !d.empty())
      return Verdict::fail(d, "  // " + d.text() + "\n");
  const Tensors want = of_threads(1);
  for (const int n : {2, 3, 7, 16})
    if (const Finding d = differs(of_threads(n), want); !d.empty())
      return Verdict::fail(
          format("with lowered thresholds{} and {} threads: ",
                 w & 8 && w & 7 ? ", in a rounding mode of the caller's," : "", n) +
              d,
          "  setenv(\"LAMELLA_ISA\", \"tiny\", 1);  // lowered thresholds: core/thresholds.h\n" +
              format("  set_threads({});\n", n) +
              cpp_got_want(c, cpp_tensors("w", want), cpp_call(c.op, c.args), cpp_names("w", want.size())));
  return Verdict::pass();
}

/// NOTE: [long lines] More elements than 16 bits count: one line of them, of 1 and -1 (integers: of a byte,
/// of 1 and -1 or 0 where `dtype=` makes them inexact), so that sums and products are exact. Nothing else
/// draws so many; a case takes as long as the reference for them, of exponentials 2400 instructions for each
/// element below the greatest: in most lines few are. Where it is one, or one alone is the greatest, that is
/// anywhere, so that its place has more than 16 bits, too; or it is NaN.
Tensor long_line(Draw& d, DType dtype, bool small) {
  Tensor x = make_tensor(Dims{(int64_t{1} << 16) + 1 + int64_t(d.below(500))}, dtype);
  uint64_t state = d.word() * uint64_t{2862933555777941757u} + 3037000493u;
  const uint32_t mix = d.below(6), word = d.word();
  const bool odd_one = mix >= 3;
  const int64_t odd_place = word & 1 ? x.numel() - 1 - word / 2 % 500 : word / 2 % x.numel();
  const float odd = d.below(3) == 2 ? std::numeric_limits<float>::quiet_NaN() : mix == 3 ? 1.0f : -1.0f;
  visit_dtype(dtype, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    T* const p = static_cast<T*>(x.raw_data());
    for (int64_t i = 0; i < x.numel(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      if constexpr (std::is_same_v<T, bool>) p[i] = state >> 40 & 1;
      else if constexpr (std::is_unsigned_v<T>) p[i] = T(small ? state >> 40 & 1 : state >> 40);
      else if constexpr (std::is_integral_v<T>) p[i] = T(small ? (state >> 39 & 2) - 1 : state >> 40);
      else if (odd_one) p[i] = T(i == odd_place ? odd : mix == 3 ? -1.0f : 1.0f);
      else p[i] = T(state >> 40 & (mix == 0 ? 1 : 15) ? 1.0f : -1.0f);
    }
  });
  return x;
}

Verdict long_lines_as_reference(Case& c) {
  Values args = c.args;
  args[c.op.tensor_params[0]] = long_line(c.draw, c.at(c.tensors()[0]).dtype(), makes_inexact(c));
  for (size_t i = 0; i < args.size(); ++i)
    if (c.op.schema.params[i].role == ParamRole::Dim && !is_none(args[i])) {
      if (std::holds_alternative<Dims>(args[i])) args[i] = Dims{0};
      else args[i] = int64_t{0};
    }
  const Tensors got = call_boxed(c.op, args);
  const Finding d = beyond_reference(c.op, args, got);
  if (d.empty()) return Verdict::pass();
  return Verdict::fail("of one line of more than 65,536 elements: " + d,
                       "  // a line of signs: " + d.text() + "\n");
}

/// Operators on the lines along the dims they name, which the reference knows, too.
bool has_long_lines(const Op& op) {
  const bool by_dim = op.shape == ShapeClass::Reduce || op.shape == ShapeClass::AlongDim;
  const auto is_dim = [](const Param& p) { return p.role == ParamRole::Dim; };
  return by_dim && op.simple && op.tensor_params.size() == 1 && stays_on_device(op) &&
         std::ranges::count_if(op.schema.params, is_dim) == 1;
}

bool has_values(const Op& op) { return !op.has(kUnspecified) && !op.takes_functions; }

}  // namespace

void add_threshold_laws(std::vector<Law>& laws) {
  laws.push_back(
      {98,
       "thresholds_are_invisible",
       "value",
       "Lowered thresholds give the bits of the usual ones; where they change the order of "
       "roundings, a result within the bound of law 1; with both an element that is NaN shows where the "
       "reference says.",
       {.max_numel = 256},  // matrices of 8 and more a side: the lowered thresholds
       false,
       has_values,
       thresholds_are_invisible,
       32});
  laws.push_back(
      {173,
       "threads_are_invisible",
       "value",
       "2, 3, 7 and 16 threads give the bits of one, where thresholds are so low that small "
       "tensors are cut into tiles, in each rounding mode and with subnormals taken for zeros, too; "
       "of tiles that raise, the first one's error is raised.",
       {.max_numel = 256},
       false,
       has_values,
       threads_are_invisible,
       4});
  laws.push_back(
      {153,
       "long_lines_as_reference",
       "value",
       "A line of more elements than 16 bits count gives the reference's results, exact ones bit by "
       "bit.",
       {.dtypes = kIntegers | mask(DType::F32), .max_numel = 2, .mixed = false},
       true,
       has_long_lines,
       long_lines_as_reference});
}

}  // namespace lamella::verify
