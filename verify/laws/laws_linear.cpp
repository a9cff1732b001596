// Laws of transforms alone: derivatives are linear, add up, and do not depend on what else is traced; lanes
// do not depend on how they are grouped.
#include <cstring>
#include <quadmath.h>

#include "lamella/ops/functions/factory.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/oracle.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

/// A copy with the same strides, times a power of two, which rounds nothing; no operator is called.
Tensor scaled(const Tensor& t, double factor) {
  const Tensor out = strided_copy(t);
  int64_t stored = t.numel() > 0;  // elements from the first to the last in memory
  for (int d = 0; d < t.rank() && stored > 0; ++d) stored += (t.size(d) - 1) * t.stride(d);
  visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    T* const data = static_cast<T*>(out.raw_data());
    for (int64_t i = 0; i < stored; ++i) {
      if constexpr (is_complex_type<T>) {
        using R = typename T::value_type;
        data[i] = T(R(data[i].real() * R(factor)), R(data[i].imag() * R(factor)));
      } else if constexpr (is_half_type<T>) {
        data[i] = T(float(data[i]) * float(factor));
      } else if constexpr (std::is_floating_point_v<T>) {
        data[i] = T(data[i] * T(factor));
      }
    }
  });
  return out;
}
Tensors scaled(const Tensors& ts, double factor) {
  Tensors out;
  for (const Tensor& t : ts) out.push_back(t.defined() ? scaled(t, factor) : t);
  return out;
}

Tensor zeros_of(const Tensor& t) {
  Tensor z = make_tensor(t.sizes(), t.dtype());
  std::memset(z.raw_data(), 0, size_t(z.numel() * itemsize(z.dtype())));
  return z;
}

/// The first difference, zeros of either sign being equal.
Finding first_difference(const Tensors& got, const Tensors& want) {
  if (got.size() != want.size()) return other_number(got, want);
  for (size_t k = 0; k < got.size(); ++k)
    if (const Finding d = differs(got[k], want[k], false); !d.empty()) return format("result {}: ", k) + d;
  return "";
}

/// Whether any part is so small that what it was made of may have been subnormal, where a factor rounds: less
/// than 2^64 times the smallest normal number.
bool near_subnormal(const Tensors& ts) {
  for (const Tensor& t : ts) {
    if (!t.defined()) continue;
    const DType d = is_complex(t.dtype()) ? to_real(t.dtype()) : t.dtype();
    const f128 least = ldexpq(1, (d == DType::F64 ? -1022 : -126) + 64);
    for (const f128 y : flatten({t}))
      if (y != 0 && fabsq(y) < least) return true;
  }
  return false;
}

Verdict derivatives_scale(Case& c) {
  Subject s;
  if (!prepare(c, s) || near_subnormal(s.ys)) return Verdict::discard();
  constexpr double kFactor = 4;
  if (has_jvp(c.op)) {
    const Tensors ts = directions(c, s.xs), four = scaled(ts, kFactor);
    const Tensors want = scaled(jvp(s.f, s.xs, ts).tangents, kFactor), got = jvp(s.f, s.xs, four).tangents;
    if (!finite(want) || near_subnormal(want)) return Verdict::discard();
    if (const Finding d = first_difference(got, want); !d.empty())
      return Verdict::fail("four times the tangents: " + d, jvp_program(c, s, four, want), 1);
  }
  if (!has_vjp(c.op)) return Verdict::pass(1);
  const Tensors us = directions(c, s.ys), four = scaled(us, kFactor);
  const Tensors want = scaled(vjp(s.f, s.xs).pullback(us), kFactor), got = vjp(s.f, s.xs).pullback(four);
  if (!finite(want) || near_subnormal(want)) return Verdict::discard();
  const Finding d = first_difference(got, want);
  if (d.empty()) return Verdict::pass(1);
  return Verdict::fail("four times the cotangents: " + d, vjp_program(c, s, four, want), 1);
}

Verdict unused_is_zero(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors us = directions(c, s.ys), want = vjp(s.f, s.xs).pullback(us);
  Tensors xs = s.xs;
  xs.push_back(c.direction(s.xs[0]));
  const Function f = [&](const Tensors& all) { return s.f({all.begin(), all.end() - 1}); };
  Tensors got = vjp(f, xs).pullback(us);
  const Tensor last = got.empty() ? Tensor() : got.back();
  got.resize(want.size());
  Finding d = first_difference(got, want);
  if (d.empty() && !last.defined()) d = "the unused input has no gradient";
  if (d.empty()) d = differs(last, zeros_of(xs.back()), false);
  if (d.empty()) return Verdict::pass(1);
  return Verdict::fail("with an input that is not used: " + d, vjp_program(c, s, us, want), 1);
}

/// f used twice: its gradients are added, and the sum of a number and itself is exact. Where several parts of
/// one use are added, the parts of two are added in another order.
Verdict uses_accumulate(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  Tensors us = directions(c, s.ys);
  const Tensors want = scaled(vjp(s.f, s.xs).pullback(us), 2);
  if (!finite(want)) return Verdict::discard();
  const Function twice = [&](const Tensors& xs) {
    Tensors ys = s.f(xs);
    for (const Tensor& y : s.f(xs)) ys.push_back(y);
    return ys;
  };
  const size_t n = us.size();
  for (size_t k = 0; k < n; ++k) us.push_back(us[k]);
  const Tensors got = vjp(twice, s.xs).pullback(us);
  Finding d = first_difference(got, want);
  if (c.op.composite || c.op.has(kSymmetricInput)) d = disagrees(got, want, Agreement::Rounding, {64, 1});
  if (d.empty()) return Verdict::pass(1);
  us.resize(n);
  return Verdict::fail(
      "the operator used twice: " + d,
      cpp_declarations(c.args) + cpp_tensors("u", us) + cpp_tensors("w", want) +
          "  const Function f = " + cpp_function(c, s.slots, true) +
          ";\n  const Function twice = [&](const Tensors& xs) {\n    Tensors ys = f(xs);\n"
          "    for (const Tensor& y : f(xs)) ys.push_back(y);\n    return ys;\n  };\n  Tensors us" +
          cpp_names("u", n) + ", all = us;\n  all.insert(all.end(), us.begin(), us.end());\n" +
          "  const Tensors got = vjp(twice, " + cpp_list(cpp_names(c, s.slots)) +
          ").pullback(all), want = " + cpp_names("w", want.size()) +
          ";\n  for (size_t k = 0; k < got.size(); ++k)\n"
          "    std::cout << \"got      \" << str(got[k]) << \"\\nexpected \" << str(want[k]) << '\\n';\n",
      1);
}

/// What else is traced does not change a derivative.
Verdict subsets_agree(Case& c) {
  Subject all;
  all.slots = c.inexact();
  if (all.slots.size() < 2) return Verdict::discard();
  all.xs = c.values(all.slots);
  all.f = c.smooth_function(all.slots);
  all.ys = all.f(all.xs);
  if (all.ys.empty() || !finite(all.ys)) return Verdict::discard();
  const size_t k = c.draw.below(uint32_t(all.slots.size()));
  Subject one;
  one.slots = {all.slots[k]};
  one.f = c.smooth_function(one.slots);
  one.xs = {all.xs[k]};
  if (has_vjp(c.op)) {
    const Tensors us = directions(c, all.ys);
    const Tensors want{vjp(all.f, all.xs).pullback(us)[k]}, got = vjp(one.f, one.xs).pullback(us);
    if (const Finding d = first_difference(got, want); !d.empty() && finite(want))
      return Verdict::fail(format("input {} alone, backwards: ", k) + d, vjp_program(c, one, us, want), 1);
  }
  if (!has_jvp(c.op)) return Verdict::pass(1);
  Tensors ts(all.xs.size());
  ts[k] = c.direction(all.xs[k]);
  const Tensors want = jvp(all.f, all.xs, ts).tangents, got = jvp(one.f, one.xs, {ts[k]}).tangents;
  const Finding d = first_difference(got, want);
  if (d.empty() || !finite(want)) return Verdict::pass(1);
  return Verdict::fail(format("input {} alone, forwards: ", k) + d, jvp_program(c, one, {ts[k]}, want), 1);
}

Tensor with_one_lane(const Tensor& t) {
  Dims sizes(t.sizes()), strides(t.strides());
  sizes.insert(0, 1), strides.insert(0, 1);
  return make_view_unchecked(t, sizes, strides, t.impl()->offset);
}

bool declined(const Op& op, const Status& s) {
  return op.composite && s.raised && s.code == ErrorCode::NoKernel;
}

/// Under so many levels of one lane each that a tape sees more dims than its blocks of sizes have room for,
/// gradients are what they are without.
Finding many_lanes_show(const Subject& s) {
  constexpr int kLevels = 10;
  Tensors xs = s.xs, us = s.ys, lanes;
  for (Tensor& u : us) u = ones_like(u);
  const Tensors want = vjp(s.f, xs).pullback(us);
  if (!finite(want)) return "";
  Function f = s.f;
  for (int k = 0; k < kLevels; ++k) {
    f = vmap(std::move(f), {{0}, {0}, Randomness::Error, 1});
    for (Tensors* const all : {&xs, &us})
      for (Tensor& t : *all) t = with_one_lane(t);
  }
  const Tensors got = vjp(f, xs).pullback(us);
  for (size_t k = 0; k < got.size(); ++k) {
    Tensor g = got[k];
    for (int level = 0; level < kLevels && g.rank() > 0; ++level) g = lane(g, 0, 0);
    if (Finding d =
            disagrees(g, want[k], Agreement::Rounding, {256, std::max(64.0, largest_part(want)), s.u});
        !d.empty())
      return format("gradient {} under {} levels of one lane: ", k, kLevels) + d;
  }
  return "";
}

/// One lane of vmap around a jvp along zeros: nothing happens.
Verdict identity_transforms(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  Tensors lanes, zeros, got;
  for (const Tensor& x : s.xs) lanes.push_back(with_one_lane(x)), zeros.push_back(zeros_of(x));
  const Function inner = [&](const Tensors& xs) { return jvp(s.f, xs, zeros).values; };
  const Status status = status_of([&] { got = vmap(inner, {{0}, {0}, Randomness::Error, 1})(lanes); });
  if (declined(c.op, status)) return Verdict::discard();
  Finding d = status.raised ? str(status) : "";
  for (size_t k = 0; k < got.size() && d.empty(); ++k)
    d = disagrees(lane(got[k], 0, 0), s.ys[k], agreement(c.op));
  if (d.empty() && c.draw.one_in(8) && has_vjp(c.op) && finite(s.ys)) d = many_lanes_show(s);
  if (d.empty()) return Verdict::pass(2);
  return Verdict::fail("under vmap of one lane and jvp along zeros, or of many levels: " + d,
                       cpp_setting(c, s.slots, lanes) + cpp_tensors("z", zeros) +
                           "  const Function g = [&](const Tensors& x) { return jvp(f0, x, " +
                           cpp_names("z", zeros.size()) +
                           ").values; };\n  for (const Tensor& y : vmap(g, VmapOptions{{0}, {0}, "
                           "Randomness::Error, 1})(xs)) std::cout << str(y) << '\\n';\n",
                       2);
}

Tensor cut_lanes(const Tensor& x, int dim, int64_t from, int64_t to) {
  Dims sizes(x.sizes());
  sizes[dim] = to - from;
  return make_view_unchecked(x, sizes, x.strides(), x.impl()->offset + from * x.stride(dim));
}

/// Lanes in two groups are the lanes in one.
Verdict chunks_agree(Case& c) {
  const std::vector<Case::Slot>& slots = c.tensors();
  const int64_t size = 2 + c.draw.below(4), cut = 1 + int64_t(c.draw.below(uint32_t(size - 1)));
  const Batch b = draw_batch(c, slots, draw_mapped(c.draw, slots.size()), size);
  const Function f = [&](const Tensors& xs) { return call_boxed(c.op, c.with(slots, xs)); };
  const auto lanes_of = [&](int64_t from, int64_t to) {
    Tensors xs = b.xs;
    for (size_t k = 0; k < xs.size(); ++k)
      if (b.in_dims[k] != kNone) xs[k] = cut_lanes(xs[k], b.in_dims[k], from, to);
    return vmap(f, {b.in_dims, {0}, Randomness::Error, to - from})(xs);
  };
  const int64_t chunk = 1 + c.draw.below(uint32_t(size));
  Tensors whole, first, second, joined;
  if (status_of([&] { whole = lanes_of(0, size); }).raised) return Verdict::discard();
  uint32_t rank = 64;
  for (const Tensor& y : whole) rank = std::min(rank, uint32_t(y.rank()));
  const int out_dim = int(c.draw.below(rank));
  const Status s = status_of([&] {
    first = lanes_of(0, cut), second = lanes_of(cut, size);
    VmapOptions few{b.in_dims, {out_dim}, Randomness::Error, size};
    few.chunk = chunk;
    joined = vmap(f, few)(b.xs);
  });
  Finding d = s.raised ? "in chunks " + str(s) : "";
  // Where a product overflows on its way, infinity times a later 0 depends on the order of its factors.
  if (!s.raised && agreement(c.op) != Agreement::Bitwise && finite(b.xs) &&
      !(finite(whole) && finite(joined) && finite(first) && finite(second)))
    return Verdict::discard();
  for (size_t k = 0; k < whole.size() && d.empty(); ++k)
    for (int64_t i = 0; i < size && d.empty(); ++i)
      d = disagrees(i < cut ? lane(first[k], 0, i) : lane(second[k], 0, i - cut), lane(whole[k], 0, i),
                    agreement(c.op));
  for (size_t k = 0; k < whole.size() && d.empty(); ++k)
    if (joined[k].rank() != whole[k].rank() || joined[k].size(out_dim) != size)
      d = format("chunk {}: got {}, expected {} lanes along dim {}", chunk, joined[k], size, out_dim);
  for (size_t k = 0; k < whole.size() && d.empty(); ++k)
    for (int64_t i = 0; i < size && d.empty(); ++i)
      if (d = disagrees(lane(joined[k], out_dim, i), lane(whole[k], 0, i), agreement(c.op)); !d.empty())
        d = format("chunk {}, lane {} along dim {} of the results: ", chunk, i, out_dim) + d;
  if (d.empty()) return Verdict::pass(1);
  return Verdict::fail(format("lanes 0 to {} and the rest apart: ", cut) + d,
                       cpp_setting(c, slots, b.xs) + "  const Function f1 = vmap(f0, VmapOptions{" +
                           cpp_dims(b.in_dims) + ", {0}, Randomness::Error, " + std::to_string(size) +
                           "}), f2 = vmap(f0, VmapOptions{" + cpp_dims(b.in_dims) + ", {" +
                           std::to_string(out_dim) + "}, Randomness::Error, " + std::to_string(size) + ", " +
                           std::to_string(chunk) +
                           "});\n  for (const Tensor& y : f2(xs)) std::cout << str(y) << '\\n';\n  for "
                           "(const Tensor& y : f1(xs)) std::cout << str(y) << '\\n';\n",
                       1);
}

bool either_way(const Op& op) { return has_jvp(op) || has_vjp(op); }
bool of_several(const Op& op) { return either_way(op) && inexact_arguments(op) > 1; }
bool batchable(const Op& op) {
  return !op.has(kRandom) && takes_tensors(op) && op.shape != ShapeClass::Dynamic;
}

}  // namespace

void add_linear_laws(std::vector<Law>& laws) {
  const DrawOptions tame{.dtypes = kWideTypes, .tame = true, .max_numel = 8, .one_large = true};
  laws.push_back({24, "derivatives_scale", "derivative",
                  "Four times a tangent or cotangent gives four times the derivative, bit by bit.", tame,
                  false, either_way, derivatives_scale});  // not for f16: subnormal from 2^-14 on
  laws.push_back({29, "unused_is_zero", "derivative",
                  "An input that is not used has a gradient of zeros, and the others keep theirs.", tame,
                  false, has_vjp, unused_is_zero});
  laws.push_back({34, "uses_accumulate", "derivative",
                  "An operator used twice has twice the gradient, bit by bit.", tame, false, has_vjp,
                  uses_accumulate});
  laws.push_back(
      {47, "identity_transforms", "compose",
       "One lane of vmap and a jvp along zeros change nothing, and many levels of one lane no gradient.",
       tame, false, has_jvp, identity_transforms});
  laws.push_back({69, "subsets_agree", "derivative",
                  "A derivative in one input does not depend on which others are traced.", tame, false,
                  of_several, subsets_agree});
  laws.push_back({70,
                  "chunks_agree",
                  "vmap",
                  "Lanes mapped in two groups, or in chunks, are the lanes mapped in one.",
                  {.exact = true, .max_numel = 8, .one_large = true},
                  false,
                  batchable,
                  chunks_agree});
}

}  // namespace lamella::verify
