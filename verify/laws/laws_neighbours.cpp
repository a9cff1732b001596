// The law of calls beside a valid one: each that is a single step away is refused exactly when the
// specification refuses it.
#include <algorithm>
#include <cmath>

#include "lamella/core/visit.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/constraints_call.h"

namespace lamella::verify {

namespace {

/// Dense, of ones, or of indices 0: values are law 62's subject.
Tensor plain_of(const Dims& sizes, DType d) {
  const Tensor out = make_tensor(sizes, d);
  visit_dtype(d, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    const T one = is_integer(d) ? Scalar(0).to<T>() : Scalar(1).to<T>();
    std::fill_n(static_cast<T*>(out.raw_data()), out.numel(), one);
  });
  return out;
}

/// Sizes one step from these: each dim alone one more, one less, 1 or 0; a dim of 1 in front; the first gone.
std::vector<Dims> sizes_beside(const Dims& sizes) {
  std::vector<Dims> out;
  for (int d = 0; d < sizes.size(); ++d)
    for (const int64_t s : {sizes[d] + 1, sizes[d] - 1, int64_t{1}, int64_t{0}}) {
      if (s < 0 || s == sizes[d]) continue;
      out.push_back(sizes);
      out.back()[d] = s;
    }
  out.push_back(sizes);
  out.back().insert(0, 1);
  if (sizes.empty()) return out;
  out.push_back(sizes);
  out.back().erase(0);
  return out;
}

std::vector<int64_t> beside(int64_t v) {
  std::vector<int64_t> out;
  for (const int64_t n : {v + 1, v - 1, int64_t{-1}, int64_t{0}, int64_t{1}, -v - 1})
    if (n != v && std::ranges::find(out, n) == out.end()) out.push_back(n);
  return out;
}
bool has_room(int64_t v) { return v > -(int64_t{1} << 40) && v < int64_t{1} << 40; }

/// All values that stand one step beside an argument.
std::vector<Value> values_beside(const Value& v) {
  std::vector<Value> out;
  if (const Tensor* t = std::get_if<Tensor>(&v); t && t->defined()) {
    for (const Dims& sizes : sizes_beside(Dims(t->sizes()))) out.emplace_back(plain_of(sizes, t->dtype()));
  } else if (const Tensors* list = std::get_if<Tensors>(&v)) {
    for (size_t k = 0; k < std::min<size_t>(list->size(), 3); ++k)
      for (const Dims& sizes : sizes_beside(Dims((*list)[k].sizes()))) {
        Tensors changed = *list;
        changed[k] = plain_of(sizes, changed[k].dtype());
        out.emplace_back(changed);
      }
  } else if (const int64_t* n = std::get_if<int64_t>(&v)) {
    if (has_room(*n))
      for (const int64_t other : beside(*n)) out.emplace_back(other);
  } else if (const Scalar* number = std::get_if<Scalar>(&v)) {
    const double d = number->to_double();
    if (number->is_integral() && std::fabs(d) < 0x1p40)
      for (const int64_t other : beside(int64_t(d))) out.emplace_back(Scalar(other));
    else if (std::isfinite(d) && !is_complex(number->kind()))
      for (const double other : {d + 1, d - 1, -d, 0.0}) out.emplace_back(Scalar(other));
  } else if (const Dims* dims = std::get_if<Dims>(&v)) {
    for (int d = 0; d < dims->size(); ++d)
      if (has_room((*dims)[d]))
        for (const int64_t other : beside((*dims)[d])) {
          Dims changed = *dims;
          changed[d] = other;
          out.emplace_back(changed);
        }
  }
  return out;
}

/// How the operator takes this call, if not as it must.
Finding misjudged(const Op& op, const Values& args) {
  const Ruling said = ruling(op, args);
  if (!said.open.empty()) return "";
  const Status s = status_of([&] { (void)call_boxed(op, args); });
  if (!s.raised) return said.refuses() ? Finding(What::Accepted, "is accepted, expected " + said.str()) : "";
  const std::string unfit = said.unfit(op, s.code, s.text);
  return unfit.empty() ? "" : "raises " + str(s) + "; " + unfit;
}

Verdict neighbours_are_judged(Case& c) {
  for (const Value& v : c.args)  // numbers at the ends of i64, which doubles round, are law 105's subject
    if (const Scalar* n = std::get_if<Scalar>(&v); n && !(std::fabs(n->to_double()) < 0x1p40))
      return Verdict::discard();
  std::vector<std::pair<size_t, Value>> all;
  for (size_t i = 0; i < c.args.size(); ++i)
    for (Value& v : values_beside(c.args[i])) all.emplace_back(i, std::move(v));
  if (all.empty()) return Verdict::discard();
  constexpr size_t kMost = 24;  // more take turns, from a drawn one on
  const size_t from = all.size() > kMost ? c.draw.below(uint32_t(all.size())) : 0;
  for (size_t n = 0; n < std::min(all.size(), kMost); ++n) {
    const auto& [i, v] = all[(from + n) % all.size()];
    Values args = c.args;
    args[i] = v;
    const Finding d = misjudged(c.op, args);
    if (d.empty()) continue;
    return Verdict::fail(format("with another {}: ", c.op.schema.params[i].name) + d,
                         cpp_declarations(args) + "  " + cpp_call(c.op, args) + ";\n");
  }
  return Verdict::pass();
}

bool has_neighbours(const Op& op) { return has_constraints(op.name) && !op.schema.params.empty(); }

}  // namespace

void add_neighbour_laws(std::vector<Law>& laws) {
  laws.push_back(
      {63,
       "neighbours_are_judged",
       "forms",
       "Each call one step beside a valid one, in a size, a rank or an integer, is refused exactly when "
       "the specification (verify/oracle/constraints.cpp) refuses it, with its code and argument.",
       {.layouts = false, .tame = true, .max_numel = 12, .mixed = false},
       false,
       has_neighbours,
       neighbours_are_judged});
}

}  // namespace lamella::verify
