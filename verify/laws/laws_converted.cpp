// The law of operands that are converted: values and derivatives are those of operands converted before.
#include <algorithm>

#include "lamella/transforms/grad.h"
#include "lamella/transforms/jvp.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/real_function.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

/// The numbers of `t` in another dtype, rounded once by the definition of rounding; imaginary parts come as 0
/// and go. No operator is called.
Tensor converted(const Tensor& t, DType d) {
  if (t.dtype() == d) return t;
  if (!is_inexact(d)) {  // parts of whole numbers are exact
    const Tensor out = make_tensor(t.sizes(), d);
    const std::vector<double> v = t.to_vector();
    visit_dtype(d, [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      for (size_t i = 0; i < v.size(); ++i) static_cast<T*>(out.raw_data())[i] = Scalar(v[i]).to<T>();
    });
    return out;
  }
  Reals parts;
  if (is_inexact(t.dtype())) {
    parts = flatten({t});
  } else {
    visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      if constexpr (is_integer_type<T> || std::is_same_v<T, bool>)
        each_element(t, [&](int64_t at) { parts.push_back(f128(static_cast<const T*>(t.raw_data())[at])); });
    });
  }
  const bool from_pairs = is_complex(t.dtype()), to_pairs = is_complex(d);
  Reals out;
  for (size_t i = 0; i < parts.size(); i += from_pairs ? 2 : 1) {
    out.push_back(parts[i]);
    if (to_pairs) out.push_back(from_pairs ? parts[i + 1] : 0);
  }
  const Tensor result = make_tensor(t.sizes(), d);
  write_parts(result, out.data());
  return result;
}

/// An operator, some of whose operands it has to convert, and the same call with all of them converted.
struct Conversion {
  std::vector<Case::Slot> slots;  ///< of the operands that carry derivatives
  Tensors xs;                     ///< as they are given
  Values before;                  ///< arguments of the call whose operands are converted
  DType compute = DType::F64;
};

/// Of an operator that is given the dtype in which it computes.
bool by_argument(Case& c, Conversion& v) {
  const size_t at = size_t(c.op.schema.find("dtype"));
  const Tensor x = c.at(c.tensors()[0]);
  static constexpr DType kWide[] = {DType::F64, DType::F32, DType::C128, DType::F16, DType::C64, DType::BF16};
  v.compute = kWide[c.draw.below(6)];
  if (v.compute == x.dtype() || !is_inexact(x.dtype())) return false;
  c.args[at] = v.compute;
  v.slots = {c.inexact()[0]};
  v.xs = {x};
  v.before = c.args;
  v.before[at] = Value();
  entry(v.before, v.slots[0]) = converted(x, v.compute);
  return true;
}

/// Makes numbers of the others equal to those of the first, or apart by less than the narrow dtype shows.
void bring_together(Draw& d, Tensors& xs, DType narrow) {
  const Reals v = flatten({xs[0]});
  const size_t from = is_complex(xs[0].dtype()) ? 2 : 1;
  const f128 apart = 0.125 * std::max(unit_roundoff(narrow), unit_roundoff(DType::F32));
  for (size_t j = 1; j < xs.size(); ++j) {
    if (v.empty() || !is_inexact(xs[j].dtype())) continue;
    const size_t width = is_complex(xs[j].dtype()) ? 2 : 1, n = v.size() / from;
    Reals out;
    for (size_t i = 0; i < size_t(xs[j].numel()); ++i)
      for (size_t k = 0; k < width; ++k)
        out.push_back(k < from ? v[i % n * from + k] * (1 + apart * (int(d.below(3)) - 1)) : 0);
    write_parts(xs[j], out.data());
  }
}

/// Halves compute in f32, where a scalar of a wider dtype keeps its precision: it is not converted first.
bool keeps_precision(const Tensor& x, DType compute) {
  return is_half(compute) && !differs(converted(converted(x, compute), x.dtype()), x).empty();
}

/// Promotes the entries of a list.
bool joins(const Op& op) {
  return !op.tensor_params.empty() && op.schema.params[op.tensor_params[0]].kind == ParamKind::TensorList;
}

/// Of operands that are promoted: each has one of two dtypes, and one in three a single element.
bool by_promotion(Case& c, Conversion& v) {
  static constexpr DType kPairs[][2] = {{DType::F32, DType::F64},  {DType::F16, DType::F32},
                                        {DType::BF16, DType::F32}, {DType::F16, DType::F64},
                                        {DType::F32, DType::F64},  {DType::C64, DType::C128},
                                        {DType::I64, DType::F32},  {DType::I64, DType::F64}};
  const auto& pair = kPairs[c.draw.below(8)];
  std::vector<Case::Slot> operands;
  Tensors xs;
  for (const Case::Slot& s : c.tensors()) {
    if (c.op.schema.params[size_t(s.param)].name == "condition") continue;
    const Tensor given = c.at(s);
    if (given.numel() == 0 && !joins(c.op)) return false;
    Tensor x = plain_copy(converted(given, pair[c.draw.below(2)]));
    if (c.draw.one_in(3) && !joins(c.op)) x = plain_copy(make_view_unchecked(x, {}, {}, x.impl()->offset));
    operands.push_back(s);
    xs.push_back(x);
  }
  if (operands.size() < 2) return false;
  if (c.draw.flag()) bring_together(c.draw, xs, pair[0]);
  c.args = c.with(operands, xs);
  c.find_tensors();
  Tensor y;
  if (status_of([&] { y = call_boxed(c.op, c.args)[0]; }).raised || !is_inexact(y.dtype())) return false;
  v.compute = y.dtype();
  v.before = c.args;
  bool any = false;
  for (size_t k = 0; k < xs.size(); ++k) {
    if (keeps_precision(xs[k], v.compute)) return false;
    entry(v.before, operands[k]) = converted(xs[k], v.compute);
    any |= xs[k].dtype() != v.compute;
    if (is_inexact(xs[k].dtype())) v.slots.push_back(operands[k]), v.xs.push_back(xs[k]);
  }
  return any && !v.slots.empty();
}

/// Roundings of numbers as large as these, in the dtype of `got` or the one computed in.
Roundings roundings(const Conversion& v, const Tensor& got, double size) {
  return {32, size, std::max(unit_roundoff(got.dtype()), unit_roundoff(v.compute))};
}

double size_of(const Tensors& ts) { return total(flatten(ts)); }

std::string cpp_values(const Case& c, const Conversion& v) {
  return cpp_declarations(c.args) + "  // computed in " + std::string(name(v.compute)) +
         "; expected: the derivative of " + cpp_call(c.op, v.before) +
         "\n  const Function f = " + cpp_function(c, v.slots, true) + ";\n";
}

Verdict derivatives_agree(Case& c, const Conversion& v) {
  const Function f = c.smooth_function(v.slots);
  const Function g = [&c, v](const Tensors& xs) {
    Values all = v.before;
    for (size_t k = 0; k < v.slots.size(); ++k) entry(all, v.slots[k]) = xs[k];
    Tensors ys = call_boxed(c.op, all);
    std::erase_if(ys, [](const Tensor& y) { return !is_inexact(y.dtype()); });
    return ys;
  };
  Tensors wide, ys, plain;
  for (const Tensor& x : v.xs) wide.push_back(converted(x, v.compute));
  if (status_of([&] { plain = g(wide); }).raised) return Verdict::discard();
  ys = f(v.xs);
  if (ys.size() != plain.size() || !finite(ys)) return Verdict::discard();
  const auto failed = [&](const Finding& what, const std::string& more) {
    return Verdict::fail(what, cpp_values(c, v) + more, 1);
  };
  for (size_t k = 0; k < ys.size(); ++k)
    if (!differs(ys[k], plain[k], false).empty()) return Verdict::discard();  // scalars keep their precision
  const std::string xs = cpp_list(cpp_names(c, v.slots));
  if (has_jvp(c.op)) {
    Tensors ts = directions(c, v.xs), wide_ts;
    for (const Tensor& t : ts) wide_ts.push_back(converted(t, v.compute));
    const Tensors got = jvp(f, v.xs, ts).tangents, want = jvp(g, wide, wide_ts).tangents;
    if (!finite(want)) return Verdict::discard();
    const double size = size_of(want) + size_of(ts);
    for (size_t k = 0; k < got.size(); ++k)
      if (const Finding d =
              disagrees(got[k], want[k], Agreement::Rounding, {32, size, unit_roundoff(v.compute)});
          !d.empty())
        return failed("the tangent, operands converted in the call or before: " + d,
                      cpp_tensors("t", ts) + "  std::cout << str(jvp(f, " + xs + ", " +
                          cpp_names("t", ts.size()) + ").tangents[0]);\n");
  }
  if (!has_vjp(c.op)) return Verdict::pass(1);
  const Tensors us = directions(c, ys), got = vjp(f, v.xs).pullback(us), want = vjp(g, wide).pullback(us);
  if (!finite(want)) return Verdict::discard();
  for (size_t k = 0; k < got.size(); ++k) {
    const Tensor expected = converted(want[k], v.xs[k].dtype());
    if (!finite({expected})) continue;
    const Finding d = disagrees(got[k], expected, Agreement::Rounding,
                                roundings(v, got[k], size_of({want[k]}) + size_of(us)));
    if (!d.empty())
      return failed("the cotangent, operands converted in the call or before: " + d,
                    cpp_tensors("u", us) + "  std::cout << str(vjp(f, " + xs + ").pullback(" +
                        cpp_names("u", us.size()) + format(")[{}]);\n", k));
  }
  return Verdict::pass(1);
}

bool names_dtype(const Op& op) {
  const int at = op.schema.find("dtype");
  if (at < 0 || op.tensor_params.size() != 1) return false;
  const Param& p = op.schema.params[size_t(at)];
  return p.kind == ParamKind::DType && p.optional;
}
/// All but those whose operands must be of one dtype already.
bool promotes_operands(const Op& op) {
  const bool operands = op.shape == ShapeClass::Broadcast && op.tensor_params.size() > 1 && op.simple;
  if (!operands && !joins(op)) return false;
  return some_case(op, {.dtypes = kFloat32And64}, 16, [&op](Case& c) {
    Tensors xs = c.values(c.tensors());
    for (size_t k = 0; k < xs.size(); ++k)
      if (is_inexact(xs[k].dtype())) xs[k] = converted(xs[k], k ? DType::F64 : DType::F32);
    return !status_of([&] { call_boxed(op, c.with(c.tensors(), xs)); }).raised;
  });
}

Verdict operands_convert_first(Case& c) {
  Conversion v;
  if (c.inexact().empty()) return Verdict::discard();
  if (!(names_dtype(c.op) ? by_argument(c, v) : by_promotion(c, v))) return Verdict::discard();
  return derivatives_agree(c, v);
}

bool converts(const Op& op) {
  return (has_jvp(op) || has_vjp(op)) && !op.has(kRandom) && takes_tensors(op) &&
         (names_dtype(op) || promotes_operands(op));
}

}  // namespace

void add_conversion_laws(std::vector<Law>& laws) {
  laws.push_back(
      {83,
       "operands_convert_first",
       "derivative",
       "Where promotion or a dtype= argument makes an operator convert operands, its derivatives are "
       "those of operands converted before, to a rounding of the dtype it computes in.",
       {.dtypes = kWideTypes | kHalfTypes, .tame = true, .max_numel = 6, .one_large = true},
       false,
       converts,
       operands_convert_first});
}

}  // namespace lamella::verify
