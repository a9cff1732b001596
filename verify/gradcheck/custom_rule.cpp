// Batching and transposition of rules by users; differences are gradcheck's.
#include "lamella/verify/gradcheck/custom_rule.h"

#include <quadmath.h>

#include "lamella/core/generator.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/random.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/jvp.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/gradcheck/checker.h"

namespace lamella::verify {

namespace {
constexpr double kLanes[] = {1.0, 0.875, 0.9375};
constexpr size_t kMostMapped = 4;  // 15 subsets

class RuleCheck {
 public:
  RuleCheck(const Function& f, const Tensors& inputs, const CustomRuleOptions& options,
            CustomRuleReport& report)
      : f_(f), inputs_(inputs), options_(options), report_(report) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].defined() && is_inexact(inputs[i].dtype())) at_.push_back(i);
  }

  void run() {
    if (options_.transposition) transposition();
    const size_t n = std::min(at_.size(), kMostMapped);
    for (uint32_t mapped = 1; mapped < 1u << n; ++mapped) batching(mapped);
  }

 private:
  /// f of the inexact inputs alone.
  Tensors at(const Tensors& some) const {
    Tensors full = inputs_;
    for (size_t k = 0; k < at_.size(); ++k) full[at_[k]] = some[k];
    Tensors ys = f_(full);
    std::erase_if(ys, [](const Tensor& y) { return !y.defined() || !is_inexact(y.dtype()); });
    return ys;
  }
  Tensors inexact_inputs() const {
    Tensors out;
    for (const size_t i : at_) out.push_back(inputs_[i]);
    return out;
  }
  Tensors directions(const Tensors& like, uint64_t salt) const {
    Generator generator(options_.seed * 1000003 + salt);
    const ScopedGenerator scope(generator);
    Tensors out;
    for (const Tensor& t : like) out.push_back(to(randn(t.sizes()), t.dtype()));
    return out;
  }
  static Tensor inner(const Tensors& a, const Tensors& b) {
    Tensor total = zeros({}, DType::F64);
    for (size_t k = 0; k < a.size(); ++k) total = total + to(sum(real(conj(a[k]) * b[k])), DType::F64);
    return total;
  }

  void transposition() {
    const Function self = [this](const Tensors& xs) { return at(xs); };
    const Tensors xs = inexact_inputs();
    guarded("transposition", [&] {
      const Tensors us = directions(at(xs), 1), ts = directions(xs, 2);
      compare(
          "transposition: <u, J t> and <J^H u, t>",
          [&](const Tensors& x) { return Tensors{inner(us, jvp(self, x, ts).tangents)}; },
          [&](const Tensors& x) { return Tensors{inner(vjp(self, x).pullback(us), ts)}; }, xs);
    });
  }

  static Tensor lanes_of(const Tensor& x) {
    Tensors lanes;
    for (const double factor : kLanes) lanes.push_back(x * factor);
    return stack(lanes, 0);
  }
  static Tensors stacked(const std::vector<Tensors>& parts) {
    Tensors out;
    for (const Tensors& p : parts) out.push_back(stack(p, 0));
    return out;
  }

  void batching(uint32_t mapped) {
    const Function self = [this](const Tensors& xs) { return at(xs); };
    const auto is_mapped = [mapped](size_t k) { return k < kMostMapped && mapped >> k & 1; };
    InDims dims;
    Tensors xs = inexact_inputs();
    std::string subset;
    for (size_t k = 0; k < xs.size(); ++k) {
      dims.push_back(is_mapped(k) ? 0 : kNone);
      if (!is_mapped(k)) continue;
      subset += format("{}{}", subset.empty() ? "" : ", ", at_[k]);
      xs[k] = lanes_of(xs[k]);
    }
    const auto lane = [&](Tensors out, size_t l, bool all) {
      for (size_t k = 0; k < out.size(); ++k)
        if (all || is_mapped(k)) out[k] = select(out[k], 0, int64_t(l));
      return out;
    };
    const std::string where = format(" with inputs {} mapped", subset);
    guarded("batching" + where, [&] {
      const Function whole = vmap(self, dims);
      const Tensors us = directions(whole(xs), 3), ts = directions(xs, 4);
      const auto looped = [&](const Tensors& x, bool sums) {  // of pullbacks
        std::vector<Tensors> parts(x.size());
        for (size_t l = 0; l < std::size(kLanes); ++l) {
          const Tensors g = vjp(self, lane(x, l, false)).pullback(lane(us, l, true));
          for (size_t k = 0; k < g.size(); ++k) parts[k].push_back(g[k]);
        }
        Tensors out = stacked(parts);
        for (size_t k = 0; k < x.size(); ++k)
          if (sums && !is_mapped(k)) out[k] = sum(out[k], Dims{0});
        return out;
      };
      compare(
          "vjp of vmap" + where, [&](const Tensors& x) { return vjp(whole, x).pullback(us); },
          [&](const Tensors& x) { return looped(x, true); }, xs);
      dims.resize(dims.size() + us.size(), 0);  // and the cotangents
      const Function pull = [&](const Tensors& all) {
        const auto middle = all.begin() + std::ptrdiff_t(xs.size());
        return vjp(self, Tensors(all.begin(), middle)).pullback(Tensors(middle, all.end()));
      };
      compare(
          "vmap of vjp" + where,
          [&](Tensors x) {
            x.insert(x.end(), us.begin(), us.end());
            return vmap(pull, dims)(x);
          },
          [&](const Tensors& x) { return looped(x, false); }, xs);
      compare(
          "jvp of vmap" + where, [&](const Tensors& x) { return jvp(whole, x, ts).tangents; },
          [&](const Tensors& x) {
            std::vector<Tensors> parts(us.size());
            for (size_t l = 0; l < std::size(kLanes); ++l) {
              const Tensors t = jvp(self, lane(x, l, false), lane(ts, l, false)).tangents;
              for (size_t k = 0; k < t.size(); ++k) parts[k].push_back(t[k]);
            }
            return stacked(parts);
          },
          xs);
    });
  }

  template <class F> void guarded(const std::string& law, F&& f) {
    try {
      f();
    } catch (const DerivativeRaised& r) {
      report_.findings.push_back(format("{}: raised {}", r.check, r.text));
    } catch (...) { report_.findings.push_back(format("{}: raised {}", law, raised_text())); }
  }

  /// Both sides are the same formulas, so `want`'s own condition bounds what may differ.
  void compare(const std::string& law, const Function& got, const Function& want, const Tensors& xs) {
    const Reals numbers = under_test(law, [&] { return flatten(got(xs)); });
    const RealFunction reference(want, xs, OracleKind::Differences);
    const Reals &expected = reference.values(), &noise = reference.noise();
    LAMELLA_CHECK(numbers.size() == expected.size(), Shape, "{}: got {} parts, expected {}", law,
                  numbers.size(), expected.size());
    for (size_t j = 0; j < numbers.size(); ++j) {
      const f128 g = numbers[j], e = expected[j];
      if (g == e || (g != g && e != e)) continue;
      const f128 bound = kDefaultTolerance.derivative * noise[j];
      if (within(fabsq(g - e), bound)) continue;
      report_.findings.push_back(format("{}: entry {} is {}, expected {} (bound {})", law, j,
                                        Scalar(double(g)).str(), Scalar(double(e)).str(),
                                        Scalar(double(bound)).str()));
      return;
    }
  }

  const Function& f_;
  const Tensors& inputs_;
  const CustomRuleOptions& options_;
  CustomRuleReport& report_;
  std::vector<size_t> at_;  ///< the inexact inputs
};

}  // namespace

CustomRuleReport check_custom_rule(const Function& f, const Tensors& inputs,
                                   const CustomRuleOptions& options) {
  given(f, "check_custom_rule");
  CustomRuleReport report;
  if (options.differences)
    report.differences = gradcheck(f, inputs, {.second_order = true, .batched = true, .seed = options.seed});
  RuleCheck(f, inputs, options, report).run();
  return report;
}

std::string CustomRuleReport::text() const {
  std::string out = differences ? differences->text() : "";
  out += format("custom rule {}\n", findings.empty() ? "ok: transposition and batching hold" : "FAILED");
  for (const std::string& f : findings) out += "  " + f + "\n";
  return out;
}

}  // namespace lamella::verify
