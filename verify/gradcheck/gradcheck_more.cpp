// What gradcheck does on request: second derivatives, and vmap of the pullback.
#include <quadmath.h>

#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/jvp.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/gradcheck/checker.h"

namespace lamella::verify {

namespace {

/// Inexact entries of `all`, and the function of them with the rest fixed.
struct Split {
  Function f;
  Tensors all, xs;
  Split(const Function& g, const Tensors& inputs) : f(g), all(inputs) {
    for (const Tensor& t : all)
      if (t.defined() && is_inexact(t.dtype())) xs.push_back(t);
  }
  Tensors operator()(const Tensors& values) const {
    Tensors full = all;
    size_t at = 0;
    for (Tensor& t : full)
      if (t.defined() && is_inexact(t.dtype())) t = values[at++];
    return f(full);
  }
};

Tensors moved_beside(const Tensors& directions, const Tensors& primals) {
  Tensors out = directions;
  for (size_t k = 0; k < out.size(); ++k)
    if (out[k].defined() && primals[k].device() == Device::Reference) out[k] = to_reference(out[k]);
  return out;
}

}  // namespace

namespace {

/// Tensors of `like`'s types with a leading dim, holding lane after lane.
Tensors stacked(const std::vector<Reals>& lanes, const Tensors& like) {
  Tensors out;
  size_t begin = 0;
  for (const Tensor& t : like) {
    Dims sizes{int64_t(lanes.size())};
    for (const int64_t s : t.sizes()) sizes.push_back(s);
    const Tensor batch = make_tensor(sizes, t.dtype());
    const size_t width = size_t(t.numel()) * (is_complex(t.dtype()) ? 2 : 1);
    Reals flat;
    for (const Reals& lane : lanes)
      flat.insert(flat.end(), lane.begin() + long(begin), lane.begin() + long(begin + width));
    size_t at = 0;
    out.push_back(narrow(unflatten(flat, at, batch), t.dtype()));
    begin += width;
  }
  return out;
}

/// Real parts of lane `l` of stacked tensors.
Reals lane_of(const Tensors& batches, int64_t l) {
  Tensors lanes;
  for (const Tensor& t : batches) lanes.push_back(select(t, 0, l));
  return flatten(lanes);
}

/// All cotangents of one result at once: lane i must be row i of the Jacobian.
void map_cotangents(const VjpResult& r, Checker& first) {
  size_t row = 0;
  for (size_t k = 0; k < r.values.size(); ++k) {
    const size_t n = flatten({r.values[k]}).size();
    if (n == 0) continue;
    std::vector<Reals> basis(n, Reals(n));
    for (size_t i = 0; i < n; ++i) basis[i][i] = 1;
    const Function pull = [&](const Tensors& us) {
      Tensors cotangents(r.values.size());
      cotangents[k] = us[0];
      return r.pullback(cotangents);
    };
    const Tensors rows = vmap(pull, VmapOptions{})(stacked(basis, {r.values[k]}));
    for (size_t i = 0; i < n; ++i)
      first.compare_rows("vmap of the pullback", row++, lane_of(rows, int64_t(i)));
  }
}

/// Lanes at different inputs and cotangents against one call each. Both sides are the same formula, so its
/// own condition bounds what may differ.
void map_inputs(const Function& f, const Split& here, const Checker& first, const GradcheckOptions& options,
                GradcheckReport& report) {
  const Function both = [&](const Tensors& all) {
    const Split split(f, here.all);
    const Tensors xs(all.begin(), all.begin() + long(split.xs.size())),
        us(all.begin() + long(xs.size()), all.end());
    return vjp(split, xs).pullback(us);
  };
  std::vector<Reals> points, cotangents;
  for (const double factor : {1.0, 0.875, 0.9375}) {
    Reals x = flatten(here.xs);
    for (f128& v : x) v *= factor;
    points.push_back(x);
    cotangents.push_back(first.direction(first.results(), {}, 5 + points.size()));
  }
  Tensors batch = stacked(points, here.xs);
  for (const Tensor& u : stacked(cotangents, first.results())) batch.push_back(u);
  const Tensors mapped = vmap(both, VmapOptions{})(batch);
  const std::vector<GradcheckPart> parts = parts_of(here.all);
  for (size_t l = 0; l < points.size(); ++l) {
    Tensors lane;
    for (const Tensor& t : batch) lane.push_back(plain_copy(select(t, 0, int64_t(l))));
    const RealFunction loop(both, lane, OracleKind::Differences);
    const Reals got = lane_of(mapped, int64_t(l)), &want = loop.values(), &noise = loop.noise();
    LAMELLA_CHECK(got.size() == want.size(), Shape, "got lanes of {} parts, expected {}", got.size(),
                  want.size());
    for (size_t j = 0; j < got.size(); ++j) {
      if (got[j] == want[j] || (got[j] != got[j] && want[j] != want[j])) continue;
      const f128 bound = kDefaultTolerance.derivative * noise[j];
      if (within(fabsq(got[j] - want[j]), bound)) continue;
      GradcheckEntry e;
      e.check = format("vmap of vjp, lane {} of {}", l, points.size());
      e.input = parts[j];
      e.got = double(got[j]), e.expected = double(want[j]), e.bound = double(bound);
      e.bound_from = "roundings of the loop's own result times its condition; expected is the loop";
      add_finding(report, options, std::move(e));
    }
  }
}

}  // namespace

void check_batched(const Function& f, const Tensors& inputs, Checker& first, const GradcheckOptions& options,
                   GradcheckReport& report) {
  const Split here(f, inputs);
  try {
    under_test("batched", [&] {
      map_cotangents(vjp(here, here.xs), first);
      first.conclude();
      map_inputs(f, here, first, options, report);
    });
  } catch (const DerivativeRaised& r) {
    first.conclude();
    add_finding(report, options, raised_entry("", r));
  }
}

/// x -> J^H u and x -> J t, each checked as a function of its own: all four nestings of jvp and vjp.
void check_second_order(const Function& f, const Tensors& inputs, const GradcheckOptions& options,
                        GradcheckReport& report) {
  GradcheckReport scratch;
  const Checker at(f, inputs, options, 1, "", scratch);
  const Tensors us = tensors_of(at.direction(at.results(), {}, 3), at.results());
  const Split here(f, inputs);
  const Tensors ts = tensors_of(at.direction(here.xs, {}, 4), here.xs);
  const Function pulled = [&](const Tensors& xs) {
    const Split split(f, xs);
    const VjpResult r = vjp(split, split.xs);
    return r.pullback(moved_beside(us, r.values));
  };
  const Function pushed = [&](const Tensors& xs) {
    const Split split(f, xs);
    return jvp(split, split.xs, moved_beside(ts, split.xs)).tangents;
  };
  // The function is derivative code here: whatever it raises, or that it has no fixed values, is a finding.
  const auto check = [&](const Function& g, const char* label) {
    try {
      under_test("", [&] { Checker(g, inputs, options, kDefaultTolerance.second, label, report).run(); });
    } catch (const DerivativeRaised& r) { add_finding(report, options, raised_entry(label, r)); }
  };
  if (options.vjp) check(pulled, "second order, of the pullback: ");
  if (options.jvp) check(pushed, "second order, of the pushforward: ");
}

}  // namespace lamella::verify
