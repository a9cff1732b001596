// The law of transforms' own arguments: in_dims, lanes, chunks, argnums, tangents, cotangents, and functions
// that do not do the same each time.
#include <algorithm>
#include <climits>
#include <memory>

#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/checkpoint.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/jacobian.h"
#include "lamella/transforms/jvp.h"
#include "lamella/transforms/linearize.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/drawn.h"

namespace lamella::verify {

namespace {

/// What a transform has to say of its arguments: nothing, or an error of one of these codes that begins with
/// its name and has one of these texts in it.
struct Expected {
  std::vector<ErrorCode> codes;
  std::vector<std::string> texts;
  bool open = false;  ///< documented nowhere: a typed error, or what the loop gives
  void object(ErrorCode code, const std::string& text) { codes.push_back(code), texts.push_back(text); }
};

/// A call of a transform, and what it gives where it is accepted.
struct Asked {
  std::string transform;
  std::function<Tensors()> call;
  Expected expected;
  std::function<Finding(const Tensors&)> compare;
  std::string program;
};

int beyond(uint32_t w, int rank) {
  const int all[] = {rank, -rank - 1, INT_MAX, INT_MIN, rank - 1, -rank, 0};
  return all[w % std::size(all)];
}
bool is_dim(int d, int rank) { return d == kNone || (-rank <= d && d < rank); }

/// The arguments of a drawn vmap, some of them changed.
struct Mapping {
  VmapOptions options;
  Tensors xs;
};

void spoil(Draw& d, Mapping& m) {
  const uint32_t w = d.word();
  const size_t n = m.xs.size(), k = w / 16 % n;
  VmapOptions& o = m.options;
  if (!m.xs[k].defined() || k >= o.in_dims.size()) return;
  switch (w % 10) {
    case 0: o.in_dims[k] = beyond(w / 256, m.xs[k].rank()); break;
    case 1: w & 256 || n == 1 ? o.in_dims.push_back(0) : o.in_dims.pop_back(); break;
    case 2: {  // one lane more, or fewer, in one argument
      const int given = o.in_dims[k], rank = m.xs[k].rank();
      const int at = given == kNone || !is_dim(given, rank) ? 0 : given < 0 ? given + rank : given;
      Dims sizes(m.xs[k].sizes());
      if (sizes.empty()) break;
      sizes[at] = w & 256 ? sizes[at] + 1 : std::max<int64_t>(sizes[at] - 1, 0);
      if (w & 512) sizes[at] = 1;
      m.xs[k] = is_integer(m.xs[k].dtype()) ? d.index(sizes, 1) : d.tensor(sizes, m.xs[k].dtype());
      break;
    }
    case 3: o.size = int64_t(w / 256 % 5); break;
    case 4: o.in_dims.assign(n, kNone); break;
    case 5: {
      const int64_t chunks[] = {-1, INT64_MIN, 1, 2, INT64_MAX};
      o.chunk = chunks[w / 256 % 5];
      break;
    }
    case 6: o.out_dims = {beyond(w / 256, 1 + int(w / 4096 % 3))}; break;
    case 7: o.out_dims = {0, 0, 0, 0}; break;
    case 8: m.xs[k] = {}; break;
    default: o.out_dims = {kNone}; break;
  }
}

/// What vmap.h promises for these arguments: `plain` are the results of a lane.
Expected of_mapping(const Mapping& m) {
  Expected e;
  const VmapOptions& o = m.options;
  const size_t n = m.xs.size();
  if (o.in_dims.size() != 1 && o.in_dims.size() != n) e.object(ErrorCode::MappedSize, "in_dims");
  if (o.chunk < 0) e.object(ErrorCode::Value, "chunk");
  int64_t size = o.size;
  bool differ = false;
  for (size_t i = 0; i < n; ++i) {
    if (!m.xs[i].defined()) {
      e.object(ErrorCode::Undefined, format("argument {}", i));
      continue;
    }
    if (o.in_dims.size() != 1 && i >= o.in_dims.size()) continue;
    const int d = o.in_dims.size() == 1 ? o.in_dims[0] : o.in_dims[i], rank = m.xs[i].rank();
    if (!is_dim(d, rank)) e.object(ErrorCode::DimOutOfRange, format("in_dims = {}", d));
    if (d == kNone || !is_dim(d, rank)) continue;
    const int64_t lanes = m.xs[i].size(d);
    differ |= size >= 0 && lanes != size;
    if (size < 0) size = lanes;
  }
  if (differ) e.object(ErrorCode::MappedSize, "lanes");
  if (size < 0) e.object(ErrorCode::MappedSize, "mapped");
  return e;
}

/// And of its results, which `ys` are in a lane; `depends` on the lane.
void of_results(Expected& e, const VmapOptions& o, const Tensors& ys, const std::vector<bool>& depends) {
  if (o.out_dims.size() != 1 && o.out_dims.size() != ys.size())
    return e.object(ErrorCode::MappedSize, "out_dims");
  for (size_t k = 0; k < ys.size(); ++k) {
    const int d = o.out_dims.size() == 1 ? o.out_dims[0] : o.out_dims[k];
    const bool wrong = d == kNone ? bool(depends[k]) : !is_dim(d, ys[k].rank() + 1);
    if (wrong) e.object(ErrorCode::DimOutOfRange, "out_dims");
  }
}

Tensor lane_of(const Mapping& m, size_t i, int64_t at) {
  const InDims& dims = m.options.in_dims;
  const int d = dims.size() == 1 ? dims[0] : dims[i];
  return d == kNone ? m.xs[i] : lane(m.xs[i], d < 0 ? d + m.xs[i].rank() : d, at);
}

std::optional<Asked> ask_vmap(Case& c) {
  const std::vector<Case::Slot> slots = c.tensors();
  if (slots.empty() || c.op.has(kRandom) || c.op.shape == ShapeClass::Dynamic) return {};
  const Batch b = draw_batch(c, slots, draw_mapped(c.draw, slots.size()), 1 + c.draw.below(3));
  auto m = std::make_shared<Mapping>(Mapping{{b.in_dims, {0}, Randomness::Error}, b.xs});
  if (c.draw.flag()) {  // an argument that f does not look at
    m->xs.push_back(c.draw.tensor(Dims{b.size, 2}, DType::F64));
    m->options.in_dims.push_back(0);
  }
  spoil(c.draw, *m);
  if (c.draw.one_in(3)) spoil(c.draw, *m);
  const Function f = [&c, slots](const Tensors& xs) {
    return call_boxed(c.op, c.with(slots, {xs.begin(), xs.begin() + long(slots.size())}));
  };
  Asked asked{"vmap",
              [f, m] { return vmap(f, m->options)(m->xs); },
              of_mapping(*m),
              {},
              cpp_setting(c, slots, b.xs) + "  // vmap(f0, changed options)(xs);\n"};
  if (!asked.expected.codes.empty()) return asked;
  int64_t size = m->options.size;
  bool mapped = false;
  for (size_t i = 0; i < m->xs.size(); ++i) {
    const InDims& dims = m->options.in_dims;
    const int d = dims.size() == 1 ? dims[0] : dims[i];
    if (d != kNone) size = m->xs[i].size(d);
    mapped |= d != kNone && i < slots.size();
  }
  std::vector<Tensors> lanes;
  const Status loop = status_of([&] {
    for (int64_t i = 0; i < size; ++i) {
      Tensors xs;
      for (size_t k = 0; k < m->xs.size(); ++k) xs.push_back(lane_of(*m, k, i));
      lanes.push_back(f(xs));
    }
  });
  asked.expected.open = loop.raised || size == 0;  // lanes of other sizes: law 62's subject
  if (asked.expected.open) return asked;
  of_results(asked.expected, m->options, lanes[0], std::vector<bool>(lanes[0].size(), mapped));
  const bool kept = std::ranges::find(m->options.out_dims, kNone) != m->options.out_dims.end();
  const bool alike =
      std::ranges::all_of(lanes, [&](const Tensors& ys) { return differs(ys, lanes[0]).empty(); });
  asked.expected.open |= kept && mapped && alike;  // where all lanes agree, who can say what depends?
  asked.compare = [&c, lanes, m](const Tensors& got) -> Finding {
    if (got.size() != lanes[0].size())
      return {What::Results, format("{} results, in a lane {}", got.size(), lanes[0].size())};
    for (size_t k = 0; k < got.size(); ++k) {
      const int out = m->options.out_dims.size() == 1 ? m->options.out_dims[0] : m->options.out_dims[k];
      for (size_t i = 0; i < lanes.size(); ++i) {
        const Tensor mine =
            out == kNone ? got[k] : lane(got[k], out < 0 ? out + got[k].rank() : out, int64_t(i));
        if (Finding d = disagrees(mine, lanes[i][k], agreement(c.op), of_sums(m->xs)); !d.empty())
          return format("result {}, lane {}: ", k, i) + d;
      }
    }
    return "";
  };
  return asked;
}

/// Directions for `like`, one of them changed.
Tensors spoiled_directions(Draw& d, const Tensors& like, std::string_view what, Expected& e, bool undefined) {
  Tensors out;
  for (const Tensor& t : like)
    out.push_back(is_inexact(t.dtype()) ? d.tensor(Dims(t.sizes()), t.dtype()) : Tensor());
  const uint32_t w = d.word();
  const size_t k = out.empty() ? 0 : w / 16 % out.size();
  if (out.empty() || w % 6 == 0) {
    w & 256 && !out.empty() ? out.pop_back() : out.push_back(ones({2}, DType::F64));
    e.object(ErrorCode::Shape, std::string(what));
  } else if (w % 6 < 3) {
    Dims sizes(like[k].sizes());
    if (w % 6 == 1 || sizes.empty()) sizes.push_back(w & 256 ? 1 : 2);
    else sizes[int(w / 512 % uint32_t(sizes.size()))] += 1;
    out[k] = d.tensor(sizes, like[k].dtype());
    e.object(ErrorCode::Shape, format("{} {}", what, k));
  } else if (w % 6 < 5) {
    const DType other = DType(w / 512 % uint32_t(DType::F128));
    if (other != like[k].dtype()) e.object(ErrorCode::DType, format("{} {}", what, k));
    out[k] = d.tensor(Dims(like[k].sizes()), other);
  } else {
    out[k] = {};
    if (!undefined) e.object(ErrorCode::Undefined, format("{} {}", what, k));
  }
  return out;
}

Asked ask_directions(Case& c, const Function& f, const Tensors& xs) {
  static constexpr std::string_view kKinds[] = {"jvp", "pullback", "linearize", "linear_transpose"};
  const uint32_t kind = c.draw.below(4);
  Asked asked{std::string(kKinds[kind]), {}, {}, {}, ""};
  Expected& e = asked.expected;
  if (kind == 0 || kind == 2) {
    const Tensors ts = spoiled_directions(c.draw, xs, "tangent", e, true);
    if (kind == 0) asked.call = [=] { return jvp(f, xs, ts).values; };
    else asked.call = [=] { return linearize(f, xs).map(ts), f(xs); };
  } else {
    const Tensors ys = f(xs), us = spoiled_directions(c.draw, ys, "cotangent", e, true);
    if (kind == 1) asked.call = [=] { return vjp(f, xs).pullback(us), f(xs); };
    else asked.call = [=] { return linear_transpose(f, xs)(us), f(xs); };
    if (kind == 3 && status_of([&] { linear_transpose(f, xs); }).raised) e.open = true;  // at zero
  }
  asked.compare = [f, xs](const Tensors& got) { return differs(got, f(xs)); };
  return asked;
}

/// Which argument a derivative is taken in: argnums out of range or twice, arguments that are no numbers with
/// derivatives, chunks.
Asked ask_argnums(Case& c, const Function& f, Tensors xs) {
  static constexpr std::string_view kKinds[] = {"grad", "jacrev", "jacfwd"};
  const uint32_t kind = c.draw.below(3), w = c.draw.word();
  Asked asked{std::string(kKinds[kind]), {}, {}, {}, ""};
  Expected& e = asked.expected;
  xs.push_back(w & 1 ? ones({2}, DType::F64) : ones({2}, DType::I64));
  const int n = int(xs.size());
  std::vector<int> argnums;
  for (uint32_t k = 0; k < 1 + w / 2 % 2; ++k) argnums.push_back(beyond(w / 8 >> (5 * k), n));
  JacobianOptions options{.argnums = argnums};
  if (kind > 0 && w >> 20 & 1) options.chunk = w >> 21 & 1 ? -1 : INT64_MIN;
  std::vector<int> places;
  for (const int a : argnums) {
    const int at = a < 0 ? a + n : a;
    if (a >= n || a < -n) e.object(ErrorCode::Usage, "argnums");
    else if (std::ranges::find(places, at) != places.end()) e.object(ErrorCode::Usage, "argnums");
    else places.push_back(at);
  }
  for (const int at : places) {
    const DType d = xs[size_t(at)].dtype();
    if (!is_inexact(d)) e.object(ErrorCode::DType, "input");
    else if (kind > 0 && is_complex(d)) e.object(ErrorCode::DType, "input");
  }
  if (options.chunk < 0) e.object(ErrorCode::Value, "chunk");
  const size_t used = xs.size() - 1;
  const Function first = [f, used](const Tensors& v) { return f({v.begin(), v.begin() + long(used)}); };
  const Tensors ys = first(xs);
  if (kind == 0) {
    const bool one = ys.size() == 1 && ys[0].numel() == 1;
    if (!one) e.object(ErrorCode::Shape, "one element");
    if (!one || !is_floating(ys[0].dtype())) e.object(ErrorCode::DType, "floating");
    asked.call = [=] {
      (void)grad([&](const Tensors& v) { return first(v)[0]; }, argnums)(xs);
      return first(xs);
    };
  } else {
    for (const Tensor& y : ys)
      if (!is_inexact(y.dtype())) e.object(ErrorCode::DType, "result");
    asked.call = [=] {
      (void)(kind == 1 ? jacrev(first, options) : jacfwd(first, options))(xs);
      return first(xs);
    };
  }
  if (kind == 0 && ys.size() != 1) e.open = true;
  asked.compare = [first, xs](const Tensors& got) { return differs(got, first(xs)); };
  return asked;
}

/// A checkpointed function that does something else when it runs again: by another operator, to fewer
/// elements, with one step more or one less.
Asked ask_checkpoint(Draw& d, const Function& f, const Tensors& xs) {
  const uint32_t change = d.below(4);
  Asked asked{"checkpoint", {}, {}, {}, ""};
  asked.expected.object(ErrorCode::Value, "when it ran again");
  asked.call = [=] {
    const auto runs = std::make_shared<int>(0);
    const Function g = [=](const Tensors& ts) {
      const bool again = (*runs)++ > 0;
      Tensors ys = f(ts);
      const Tensor x = reshape(ts[0], {-1});
      if (change == 0) ys.push_back(again ? sin(x) : exp(x));
      else if (change == 1) ys.push_back(exp(slice(x, 0, 0, x.numel() - again)));
      else ys.push_back(again == (change == 2) ? exp(exp(x)) : exp(x));
      return ys;
    };
    const auto r = vjp(checkpoint(g), xs);
    Tensors us;
    for (const Tensor& y : r.values) us.push_back(is_inexact(y.dtype()) ? ones_like(y) : Tensor());
    (void)r.pullback(us);
    return f(xs);
  };
  return asked;
}

std::optional<Asked> ask(Case& c) {
  if (c.draw.flag()) return ask_vmap(c);
  const std::vector<Case::Slot> slots = c.inexact();
  if (slots.empty() || c.op.has(kRandom) || !has_jvp(c.op) || !has_vjp(c.op)) return ask_vmap(c);
  const Function f = [&c, slots](const Tensors& xs) { return call_boxed(c.op, c.with(slots, xs)); };
  const Tensors xs = c.values(slots);
  Asked asked = c.draw.one_in(6) && xs[0].numel() > 0 ? ask_checkpoint(c.draw, f, xs)
                : c.draw.flag()                       ? ask_directions(c, f, xs)
                                                      : ask_argnums(c, f, xs);
  asked.program = cpp_setting(c, slots, c.values(slots)) + "  // " + asked.transform + " of f0\n";
  return asked;
}

Finding wrong(const Asked& a) {
  Tensors got;
  const Status raised = status_of([&] { got = a.call(); });  // what is made once for the process is there now
  if (!raised.raised) {
    if (!a.expected.codes.empty() && !a.expected.open)
      return {What::Accepted, format("is accepted, expected an error [{}] about {}",
                                     name(a.expected.codes[0]), a.expected.texts[0])};
    return a.compare && a.expected.codes.empty() ? a.compare(got) : "";
  }
  const Snapshot before;
  if (!status_of([&] { a.call(); }).raised) return "raises the first time only";
  if (const Finding left = before.changed(); !left.empty()) return "after a refusal: " + left;
  if (raised.code == ErrorCode::Internal) return "raises " + str(raised);
  if (a.expected.open) return "";
  if (a.expected.codes.empty()) return "raises " + str(raised) + "; expected no error";
  for (size_t k = 0; k < a.expected.codes.size(); ++k)
    if (a.expected.codes[k] == raised.code && raised.text.rfind(a.transform + ":", 0) == 0 &&
        raised.text.find(a.expected.texts[k]) != std::string::npos)
      return "";
  return "raises " + str(raised) +
         format("; expected [{}] about {}, from {}", name(a.expected.codes[0]), a.expected.texts[0],
                a.transform);
}

Verdict transforms_judge_arguments(Case& c) {
  const std::optional<Asked> asked = ask(c);
  if (!asked) return Verdict::discard();
  const Finding what = wrong(*asked);
  if (what.empty()) return Verdict::pass(1);
  return Verdict::fail(asked->transform + " of " + c.op.name + ": " + what, asked->program, 1);
}

bool may_be_mapped(const Op& op) {
  return takes_tensors(op) && !op.has(kRandom) && !op.has(kUnspecified) && op.shape != ShapeClass::Dynamic;
}

}  // namespace

void add_transform_refusal_laws(std::vector<Law>& laws) {
  laws.push_back(
      {110,
       "transforms_judge_arguments",
       "compose",
       "vmap, grad, jvp, pullbacks, linearize and Jacobians refuse in_dims, lanes, chunks, argnums, "
       "tangents and cotangents that do not fit, with the code and the argument, and checkpoints a function "
       "that does something else when it runs again, and leave nothing behind; what fits gives what the loop "
       "or the plain call gives.",
       {.tame = true, .max_numel = 8},
       false,
       may_be_mapped,
       transforms_judge_arguments});
}

}  // namespace lamella::verify
