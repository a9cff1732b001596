// The law of spoiled calls: the specification says who is refused and how; who is accepted is compared.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/linalg.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/jvp.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/constraints_call.h"
#include "lamella/verify/oracle/oracle.h"
#include "lamella/verify/oracle/real_function.h"
#include "lamella/verify/programs/drawn.h"

namespace lamella::verify {

namespace {

/// A way to call the operator with the arguments of the case, what the specification says of it, and what it
/// gives where it is accepted.
struct Way {
  std::string name;
  std::function<Tensors()> call;
  Ruling ruling;
  Tensor written = {};                                  ///< what it would write to
  std::function<Finding(const Tensors&)> compare = {};  ///< with the plain call; none: it is the plain call
  int depth = 0;
  /// Of a call in lanes: what the first lane that is refused raises alone; empty where that is left open.
  std::function<std::string()> words = {};
};

/// What an error says of the call, without what it says of transforms around it.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

void join(Ruling& all, const Ruling& more) {
  all.objections.insert(all.objections.end(), more.objections.begin(), more.objections.end());
  if (!more.open.empty()) all.open = more.open;
}

Values with_front(const Values& args, const Tensor& front) {
  Values out = args;
  out.insert(out.begin(), front);
  return out;
}

/// Whether another call gives other elements.
bool is_open(const Case& c) { return draws_anew(c) || c.op.has(kUnspecified); }
bool on_cpu(const Case& c) {
  return std::ranges::all_of(c.tensors(),
                             [&](const Case::Slot& s) { return c.at(s).device() == Device::CPU; });
}

/// Whether a form may look at its target before it sees what is wrong: elements, not sizes or dtypes.
bool by_values(const Ruling& r) {
  return std::ranges::all_of(r.objections, [](const Objection& o) {
    return o.codes[0] == ErrorCode::Value || o.codes[0] == ErrorCode::IndexOutOfRange;
  });
}

/// The plain result, where there is one.
Tensors plain_result(const Case& c) {
  Tensors out;
  (void)status_of([&] { out = call_boxed(c.op, c.args); });
  return out;
}

Finding same(const Case& c, const Tensors& got) {
  return is_open(c) ? "" : differs(got, call_boxed(c.op, c.args));
}

/// The forms that write: on a target that fits the plain result, or does not quite.
std::optional<Way> in_place(Case& c, const Ruling& plain) {
  const Op* const form = form_of(c.op, OpForm::InPlace);
  if (!form || !on_cpu(c) || c.op.tensor_params.empty() || c.op.tensor_params[0] != 0 || is_none(c.args[0]))
    return {};
  const Tensor target = std::get<Tensor>(c.args[0]);
  if (!target.defined() || target.device() != Device::CPU) return {};
  Way way{form->name, [&c, form] { return call_boxed(*form, c.args); }, plain, target};
  const Tensors want = plain.refuses() ? Tensors() : plain_result(c);
  if (plain.refuses() && by_values(plain))
    way.ruling.objections.push_back(
        {{ErrorCode::Shape, ErrorCode::DType, ErrorCode::Overlap}, {c.op.schema.params[0].name}});
  if (!want.empty()) {
    const Tensor y = plain_copy(want[0]);
    join(way.ruling, writing(c.op, target, c.op.schema.params[0].name, {Dims(y.sizes()), y.dtype()}, c.args));
    way.compare = [&c, y](const Tensors& got) {
      return is_open(c) || got[0].dtype() != y.dtype() ? "" : differs(got[0], y);
    };
  }
  return way;
}

/// Of the size that the result would have if its elements alone are refused: a target that does not fit is
/// refused for itself, and says nothing of when a kernel looks at elements.
Tensor like_refused(const Op& op, const Values& args, const Ruling& plain) {
  Tensors ys;
  if (by_values(plain)) (void)status_of([&] { ys = call_boxed(op, to_meta(args)); });
  return ys.size() == 1 ? zeros(ys[0].sizes(), ys[0].dtype()) : zeros({2}, DType::F64);
}

/// Of elements that are refused, on a target that fits: kernels that look at them are about to write it.
std::optional<Way> refused_into_out(const Case& c, const Values& args, const Ruling& plain) {
  const Op* const form = c.op.device_param < 0 ? form_of(c.op, OpForm::Out) : nullptr;
  if (!form || !on_cpu(c) || !plain.refuses() || !by_values(plain)) return {};
  const Tensor like = like_refused(c.op, args, plain), target = ones(like.sizes(), like.dtype());
  Way way{form->name, [form, all = with_front(args, target)] { return call_boxed(*form, all); }, plain,
          target};
  way.ruling.objections.push_back({{ErrorCode::Shape, ErrorCode::DType, ErrorCode::Overlap}, {"out"}});
  return way;
}

std::optional<Way> with_out(Case& c, const Ruling& plain) {
  const Op* const form = form_of(c.op, OpForm::Out);
  if (!form || !on_cpu(c)) return {};
  const Tensors want = plain.refuses() ? Tensors() : plain_result(c);
  const bool known = !want.empty() && want[0].device() == Device::CPU;
  if (!known && !plain.refuses()) return {};
  const Tensor y = known ? plain_copy(want[0]) : like_refused(c.op, c.args, plain);
  Dims sizes(y.sizes());
  DType dtype = y.dtype();
  const uint32_t w = c.draw.word();
  if (w % 6 == 0) sizes.push_back(1 + w / 6 % 2);
  if (w % 6 == 1 && !sizes.empty()) sizes[int(w / 6 % uint32_t(sizes.size()))] += 1;
  if (w % 6 == 2) dtype = DType(w / 6 % uint32_t(DType::F128));
  Tensor target = c.draw.tensor(sizes, dtype);
  if (w % 6 == 3 && target.rank() > 0)  // one element for all
    target = make_view_unchecked(target, target.sizes(), Dims(target.rank()), target.impl()->offset);
  Way way{form->name, [form, args = with_front(c.args, target)] { return call_boxed(*form, args); }, plain,
          target};
  if (plain.refuses() && by_values(plain))
    way.ruling.objections.push_back({{ErrorCode::Shape, ErrorCode::DType, ErrorCode::Overlap}, {"out"}});
  const int named = c.op.schema.find("device");
  const Device* const there = named < 0 ? nullptr : std::get_if<Device>(&c.args[size_t(named)]);
  if (there && *there != Device::CPU) way.ruling.objections.push_back({{ErrorCode::Device}, {"out"}});
  if (known) {
    join(way.ruling, writing(c.op, target, "out", {Dims(y.sizes()), y.dtype()}, c.args));
    if (way.ruling.accepts() && y.dtype() != dtype) way.ruling.open = "kernels may write one dtype only";
  }
  if (known)
    way.compare = [&c, y](const Tensors& got) {
      return is_open(c) || got[0].dtype() != y.dtype() ? "" : differs(got[0], y);
    };
  return way;
}

std::optional<Way> mapped(Case& c) {
  const std::vector<Case::Slot> slots = c.tensors();
  for (const Case::Slot& s : slots)
    if (c.at(s).device() != Device::CPU) return {};
  if (slots.empty()) return {};
  static constexpr int64_t kLanes[] = {2, 1, 3, 0};
  auto lanes = std::make_shared<Batch>(
      draw_batch(c, slots, draw_mapped(c.draw, slots.size()), kLanes[c.draw.below(4)]));
  const auto values = [&c, slots](const Tensors& xs) { return c.with(slots, xs); };
  Ruling all;
  if (lanes->size == 0) {  // the shapes and strides of lanes that are not there
    Tensors examples = lanes->xs;
    for (size_t k = 0; k < slots.size(); ++k)
      if (lanes->in_dims[k] != kNone)
        examples[k] = in_layout_of_lane(lanes->xs[k], lanes->in_dims[k], c.at(slots[k]));
    all = ruling(c.op, values(examples), Seen::Shapes);
  }
  for (int64_t i = 0; i < lanes->size; ++i) join(all, ruling(c.op, values(lane(*lanes, i))));
  if (c.op.shape == ShapeClass::Dynamic) all.open = "lanes may have results of different sizes";
  const VmapOptions options{lanes->in_dims, {0}, Randomness::Same, lanes->size};
  Way way{"vmap(" + c.op.name + ")",
          [&c, lanes, values, options] {
            return vmap([&](const Tensors& xs) { return call_boxed(c.op, values(xs)); }, options)(lanes->xs);
          },
          all};
  way.depth = 1;
  way.words = [&c, lanes, values]() -> std::string {
    for (int64_t i = 0; i < lanes->size; ++i)
      if (const Status s = status_of([&] { (void)call_boxed(c.op, values(lane(*lanes, i))); }); s.raised)
        return first_line(s.text);
    return "";
  };
  way.compare = [&c, lanes, values](const Tensors& got) -> Finding {
    for (int64_t i = 0; i < lanes->size && !is_open(c); ++i) {
      const Tensors want = call_boxed(c.op, values(lane(*lanes, i)));
      if (got.size() != want.size())
        return {What::Results, format("{} results, in a lane {}", got.size(), want.size())};
      for (size_t k = 0; k < got.size(); ++k)
        if (Finding d = disagrees(lane(got[k], 0, i), want[k], agreement(c.op), of_sums(lanes->xs));
            !d.empty())
          return format("lane {}: ", i) + d;
    }
    return "";
  };
  return way;
}

/// As the primal of a derivative.
std::optional<Way> differentiated(Case& c, const Ruling& plain, bool forward) {
  const std::vector<Case::Slot> slots = c.inexact();
  for (const Case::Slot& s : slots)
    if (c.at(s).device() != Device::CPU) return {};
  if (slots.empty()) return {};
  const Function f = [&c, slots](const Tensors& xs) { return call_boxed(c.op, c.with(slots, xs)); };
  const Tensors xs = c.values(slots);
  Way way{forward ? "jvp(" + c.op.name + ")" : "vjp(" + c.op.name + ")",
          [f, xs, forward] { return forward ? jvp(f, xs, xs).values : vjp(f, xs).values; }, plain};
  way.depth = 1;
  way.compare = [&c](const Tensors& got) { return same(c, got); };
  return way;
}

/// By name where names are free to choose.
Way named(Case& c, const Ruling& plain) {
  std::vector<std::pair<std::string, Value>> by_name;
  for (size_t i = c.args.size(); i-- > 0;) by_name.emplace_back(c.op.schema.params[i].name, c.args[i]);
  Way way{"boxed " + c.op.name, [&c, by_name] { return call(c.op, {}, by_name); }, plain};
  way.compare = [&c](const Tensors& got) { return same(c, got); };
  return way;
}

Way draw_way(Case& c, const Ruling& plain) {
  const uint32_t kind = c.draw.below(7);
  std::optional<Way> way;
  if (kind == 1) way = in_place(c, plain);
  if (kind == 2) way = with_out(c, plain);
  if (kind == 3) way = mapped(c);
  if (kind == 4 || kind == 5) way = differentiated(c, plain, kind == 4);
  if (kind == 6) way = named(c, plain);
  if (!way) way = Way{c.op.name, [&c] { return call_boxed(c.op, c.args); }, plain};
  return *way;
}

/// Bytes and versions of whatever the call may have touched.
class Untouched {
 public:
  Untouched(const Case& c, const Tensor& written) {
    for (const Case::Slot& s : c.tensors()) watch(c.at(s));
    if (written.defined()) watch(written);
  }
  Finding changed() const {
    for (const Watched& w : all_) {
      const Storage& s = *w.tensor.impl()->storage;
      if (s.nbytes > 0 && std::memcmp(s.data, w.bytes.data(), s.nbytes) != 0)
        return "memory of an argument was written";
      if (s.version.load() != w.version) return "the version of an argument changed";
    }
    return "";
  }

 private:
  struct Watched {
    Tensor tensor;
    std::vector<char> bytes;
    uint32_t version;
  };
  void watch(const Tensor& t) {
    const Storage* const s = t.impl()->storage;
    const char* const data = static_cast<const char*>(s->data);
    all_.push_back({t, {data, data + s->nbytes}, s->version.load()});
  }
  std::vector<Watched> all_;
};

/// What is wrong with how `way` refuses. `before`: the first call; a write that each call repeats shows in it
/// alone.
Finding wrong_refusal(const Case& c, const Way& way, const Untouched& before) {
  const Status raised = status_of([&] { way.call(); });  // what is made once for the process is there now
  const Snapshot snapshot;
  const bool again = status_of([&] { way.call(); }).raised;
  if (again != raised.raised) return again ? "raises the second time only" : "raises the first time only";
  if (!again)
    return way.ruling.refuses() ? Finding(What::Accepted, "is accepted, expected " + way.ruling.str()) : "";
  if (const Finding left = snapshot.changed(); !left.empty()) return "after a refusal: " + left;
  if (const std::string unfit = way.ruling.unfit(c.op, raised.code, raised.text); !unfit.empty())
    return "raises " + str(raised) + "; " + unfit;
  if (const Finding changed = before.changed(); !changed.empty()) return "after a refusal: " + changed;
  if (const std::string words = way.words ? way.words() : "";
      !words.empty() && first_line(raised.text) != words)
    return "raises \"" + first_line(raised.text) + "\"; a lane alone raises \"" + words + "\"";
  return "";
}

/// Results of a plain call that is accepted: those of the Reference column.
/// Systems without a solution: which of inf and NaN comes out is that of the order of substitution.
bool has_nonfinite(const Tensors& ys) {
  for (const f128 v : flatten(ys))
    if (!(v - v == 0)) return true;
  return false;
}
Verdict agrees_where_finite(const Tensors& got, const Tensors& want) {
  const Reals a = flatten(got), b = flatten(want);
  for (size_t i = 0; i < a.size(); ++i)
    if ((a[i] - a[i] == 0) && !(b[i] - b[i] == 0))
      return Verdict::fail("is finite where the reference is not");
  return Verdict::pass();
}

/// Integers that bf16 may round: where they are computed with in a floating dtype, the result is that of
/// other numbers.
bool has_large_integers(const Case& c) {
  for (const Case::Slot& s : c.tensors())
    for (const int64_t v : integers_of(c.at(s)))
      if (v < (c.at(s).dtype() == DType::U64 ? 0 : -256) || v > 256) return true;
  for (const Value& v : c.args)
    if (const Scalar* s = std::get_if<Scalar>(&v); s && s->kind() == DType::U64) return true;
  return false;
}

/// Arguments that are rounded to the result's dtype before anything is computed: the oracle does not.
bool rounds_arguments(const Case& c, const Tensors& got) {
  const double u = coarsest(got);
  return std::ranges::any_of(c.inexact(), [&](const Case::Slot& s) { return coarsest({c.at(s)}) < u; });
}

/// The inexact numbers as the first inexact result's dtype holds them: what only stores a number rounds it,
/// and the oracle does not.
Values with_stored_numbers(const Case& c, const Tensors& got) {
  Values args = c.args;
  const auto y = std::ranges::find_if(got, [](const Tensor& t) { return is_inexact(t.dtype()); });
  for (Value& v : args)
    if (Scalar* const s = std::get_if<Scalar>(&v);
        s && y != got.end() && is_inexact(s->kind()) && category(s->kind()) <= category(y->dtype()))
      *s = s->stored(y->dtype());
  return args;
}

/// The matrices whose given triangle is x's, as their other triangle says too.
Tensor from_triangle(const Tensor& x, bool upper) {
  const Tensor part = upper ? triu(x) : tril(x), strict = upper ? triu(x, 1) : tril(x, -1);
  const Tensor diagonal = to(real(part - strict), x.dtype());
  return strict + conj(transpose(strict, -1, -2)) + diagonal;
}

/// `x` with NaN in its other triangle, and on the diagonal imaginary parts, which a Hermitian matrix has not.
Tensor with_unread(const Tensor& x, bool upper) {
  Reals parts = flatten({x});
  const size_t width = is_complex(x.dtype()) ? 2 : 1, n = size_t(x.size(-1));
  for (size_t k = 0; k < parts.size() / width; ++k) {
    const size_t row = k / n % n, column = k % n;
    if (upper ? row > column : row < column)
      std::fill_n(parts.begin() + long(k * width), width, f128(std::numeric_limits<double>::quiet_NaN()));
    else if (row == column && width == 2) parts[2 * k + 1] = 3;
  }
  const Tensor out = make_tensor(x.sizes(), x.dtype(), x.device());
  write_parts(out, parts.data());
  return out;
}

/// An operator on Hermitian matrices reads one triangle: the other one does not show, bit by bit.
Finding reads_one_triangle(Case& c) {
  Tensor& x = std::get<Tensor>(c.args[0]);
  if (x.numel() == 0) return "";
  const bool upper = std::get<bool>(c.args[size_t(c.op.schema.find("upper"))]);
  const Tensors with_both = call_boxed(c.op, c.args);
  x = from_triangle(x, upper);
  const Tensors with_one = call_boxed(c.op, c.args);
  if (Finding d = differs(with_both[0], with_one[0], false); !d.empty()) return d;
  Values args = c.args;
  args[0] = with_unread(x, upper);
  return differs(call_boxed(c.op, args)[0], with_one[0], false);
}

Verdict agrees(Case& c) {
  if (!stays_on_device(c.op) || is_open(c) || !on_cpu(c)) return Verdict::pass();
  if (c.op.has(kSymmetricInput))
    if (const Finding d = reads_one_triangle(c); !d.empty())
      return Verdict::fail("the triangle that is not read shows: " + d);
  if (has_large_integers(c) || rounds_arguments(c, call_boxed(c.op, c.args))) return Verdict::pass();
  if (c.op.shape == ShapeClass::Linalg && !c.inexact().empty())
    if (const Tensors want = reference_forward(c.op, to_reference(c.args)); has_nonfinite(want))
      return agrees_where_finite(call_boxed(c.op, c.args), want);
  Verdict v = agrees_with_reference(c);
  if (v.kind == Verdict::Fail) {
    c.args = with_stored_numbers(c, call_boxed(c.op, c.args));
    if (Verdict stored = agrees_with_reference(c); stored.kind != Verdict::Fail) v = std::move(stored);
  }
  return v.kind == Verdict::Discard ? Verdict::pass() : v;
}

/// Element `at` of a dense copy, or of one whose rows lie apart: what looks for a value there looks at
/// several rows.
struct Rows {
  Tensor t;
  int64_t size, step;
  explicit Rows(const Tensor& x) : t(plain_copy(x)), size(x.size(-1)), step(2 * size) {
    t = slice(cat({t, t}, -1), -1, 0, size);
  }
  int64_t place(int64_t at) const { return at / size * step + at % size; }
};

/// "" or the first element of `slot`, of a single row the first one alone, where 0, or the largest integer,
/// is not refused, though the specification says it is; or what the first one leaves in out=.
Finding accepted_somewhere(const Case& c, const Case::Slot& slot, bool largest) {
  const Rows rows(c.at(slot));
  Values args = c.args;
  entry(args, slot) = rows.t;
  std::string out;
  visit_dtype(rows.t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      for (int64_t i = 0; i < (rows.t.rank() > 1 ? rows.t.numel() : 1) && out.empty(); ++i) {
        T& element = static_cast<T*>(rows.t.raw_data())[rows.place(i)];
        const T bad = largest ? std::numeric_limits<T>::max() : T(0), before = std::exchange(element, bad);
        const Ruling r = ruling(c.op, args);
        if (!r.refuses()) return;  // in no element, then
        const Status s = status_of([&] { (void)call_boxed(c.op, args); });
        if (!s.raised) out = format("{} as element {} of rows that lie apart is accepted", uint64_t(bad), i);
        if (const auto into_out = i == 0 ? refused_into_out(c, args, r) : std::nullopt; into_out && s.raised)
          out = wrong_refusal(c, *into_out, Untouched(c, into_out->written)).text();
        element = before;
      }
  });
  return out;
}

/// Each takes two calls of the operator and two of the specification.
constexpr int64_t kMostSpoiledInTurn = 64;

/// 0 and the largest integer in each element in turn: "" or which one a call accepts though the specification
/// refuses it there.
Finding accepted_somewhere(const Case& c) {
  for (const Case::Slot& slot : c.tensors()) {
    const Tensor t = c.at(slot);
    const bool few = t.numel() > 0 && t.numel() <= kMostSpoiledInTurn;
    if (!is_integer(t.dtype()) || t.device() != Device::CPU || t.rank() < 1 || !few) continue;
    for (const bool largest : {false, true})
      if (Finding d = accepted_somewhere(c, slot, largest); !d.empty()) return d;
  }
  return "";
}

Verdict judged(Case& c, const Way& way) {
  const auto fail = [&](const Finding& what) {
    return Verdict::fail(way.name + ": " + what, cpp_declarations(c.args) + "  " + cpp_call(c.op, c.args) +
                                                     ";  // as " + way.name + "\n");
  };
  Tensors got;
  const Untouched before(c, way.written);
  Status s = status_of([&] { got = way.call(); });
  if (s.raised || way.ruling.refuses()) {
    got.clear(), s = {};
    const Finding wrong = wrong_refusal(c, way, before);
    return wrong.empty() ? Verdict::pass(way.depth) : fail(wrong);
  }
  if (way.compare) {
    const Finding d = way.compare(got);
    return d.empty() ? Verdict::pass(way.depth) : fail("is accepted: " + d);
  }
  return way.ruling.accepts() ? agrees(c) : Verdict::pass();
}

Verdict spoiled_calls_are_judged(Case& c) {
  if (const Finding d = accepted_somewhere(c); !d.empty())
    return Verdict::fail(
        d, cpp_declarations(c.args) + "  " + cpp_call(c.op, c.args) + ";  // " + d.text() + "\n");
  const uint32_t kind = c.draw.below(4);
  const bool by_values = kind == 3 || (kind == 1 && c.op.has(kValueErrors));
  if (by_values) spoil_values(c);
  else spoil(c, true);
  if (kind == 2) spoil(c, true);
  const Ruling plain = ruling(c.op, c.args);
  const Way way = draw_way(c, plain);
  Verdict v = judged(c, way);
  if (v.kind == Verdict::Pass)
    if (const std::optional<Way> into_out = refused_into_out(c, c.args, plain)) {
      v = judged(c, *into_out);
      v.depth = way.depth;
    }
  return v;
}

bool has_arguments(const Op& op) { return !op.schema.params.empty(); }

}  // namespace

void add_refusal_laws(std::vector<Law>& laws) {
  laws.push_back({62,
                  "bad_input_is_refused",
                  "forms",
                  "A call with changed arguments raises the error that the specification (constraints.cpp) "
                  "names, "
                  "in every form and under vmap, vjp and jvp, under vmap in the words of a lane, and nothing "
                  "is written, "
                  "leaked or left behind; where the "
                  "specification accepts it, its results are those of the Reference column.",
                  {.tame = true, .max_numel = 16},
                  false,
                  has_arguments,
                  spoiled_calls_are_judged,
                  4});
}

}  // namespace lamella::verify
