// The law of attributes: integers at the ends of i64, and about sizes and ranks.
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/oracle.h"

namespace lamella::verify {

namespace {

/// An integer of the arguments: a number, or an entry of a list. One that the case leaves out, or a list
/// without entries, is given then: every case has something to ask about.
struct Attribute {
  size_t param;
  int entry;  ///< kNumber: the number itself; kAlone: a list of this one
};
constexpr int kNumber = -1, kAlone = -2;

std::vector<Attribute> attributes(const Case& c) {
  std::vector<Attribute> out;
  for (size_t i = 0; i < c.args.size(); ++i) {
    const ParamKind kind = c.op.schema.params[i].kind;
    const Dims* const many = std::get_if<Dims>(&c.args[i]);
    if (kind == ParamKind::Int) out.push_back({i, kNumber});
    if (kind == ParamKind::Ints && (!many || many->empty())) out.push_back({i, kAlone});
    for (int k = 0; many && k < many->size(); ++k) out.push_back({i, k});
  }
  return out;
}

void set_number(Values& args, const Attribute& a, int64_t v) {
  if (a.entry == kNumber) args[a.param] = v;
  else if (a.entry == kAlone) args[a.param] = Dims{v};
  else std::get<Dims>(args[a.param])[a.entry] = v;
}

int64_t largest_size(const Case& c) {
  int64_t out = 1;
  for (const Case::Slot& s : c.tensors())
    for (const int64_t n : c.at(s).sizes()) out = std::max(out, n);
  return out;
}

int64_t end_of(uint32_t w, int64_t size) {
  const int64_t few = w / 8 % 3;
  switch (w % 8) {
    case 0: return INT64_MAX - few;
    case 1: return INT64_MIN + few;
    case 2: return size + few - 1;
    case 3: return -size - few + 1;
    case 4: return int64_t{1} << 60;
    case 5: return -(int64_t{1} << 31) - few;
    case 6: return 0;
    default: return w / 8 % 2 ? INT64_MAX / 2 + few : INT64_MIN / 2 - few;
  }
}

/// The answer to a call: results, or how it is refused; none where results would be too large to look at.
struct Answer {
  Tensors results;
  Status refusal;
};
std::optional<Answer> answer(const Op& op, const Values& args) {
  Answer out;
  Values meta = args;
  const auto without_elements = [](Tensor& t) {
    if (t.defined())
      t = make_view_unchecked(make_tensor({}, t.dtype(), Device::Meta), t.sizes(), t.strides(), 0);
  };
  for (Value& v : meta) {
    if (Tensor* t = std::get_if<Tensor>(&v)) without_elements(*t);
    if (Tensors* list = std::get_if<Tensors>(&v)) std::ranges::for_each(*list, without_elements);
  }
  Tensors shapes;
  if (!status_of([&] { shapes = call_boxed(op, meta); }).raised)
    for (const Tensor& y : shapes)
      if (y.numel() > 4096) return std::nullopt;
  out.refusal = status_of([&] { out.results = call_boxed(op, args); });
  return out;
}

/// Whether an error of the arguments says what a caller can mend.
bool is_typed(const Status& s) { return s.code != ErrorCode::Internal && s.code != ErrorCode::NoKernel; }

/// The rank that a dim of this parameter may count: that of the first tensor, or one more where dims are
/// made.
bool is_dim_of(const Case& c, int64_t d) {
  const int rank = c.tensors().empty() ? 0 : c.at(c.tensors()[0]).rank();
  return d >= -std::max(rank, 1) && d < std::max(rank, 1);
}
bool is_no_dim(const Case& c, int64_t d) {
  const int rank = 1 + (c.tensors().empty() ? 0 : c.at(c.tensors()[0]).rank());
  return d < -rank || d >= rank;
}

/// Of numbers that give results too large to look at another one is drawn: of 0 and below no result is.
constexpr int kTries = 16;

Verdict attributes_are_judged(Case& c) {
  const std::vector<Attribute> all = attributes(c);
  const Attribute a = all[c.draw.below(uint32_t(all.size()))];
  const Param& p = c.op.schema.params[a.param];
  Values args = c.args;
  const bool dim = p.role == ParamRole::Dim;
  const int rank = c.tensors().empty() ? 0 : c.at(c.tensors()[0]).rank();
  int64_t v = 0;
  std::optional<Answer> got;
  for (int tries = 0; tries < kTries && !got; ++tries) {
    v = end_of(c.draw.word(), dim ? std::max(rank, 1) : largest_size(c));
    set_number(args, a, v);
    got = answer(c.op, args);
  }
  if (!got) return Verdict::discard();
  const auto failed = [&](const Finding& what) {
    return Verdict::fail(format("{} = {}: ", p.name, v) + what,
                         cpp_declarations(args) + "  for (const Tensor& y : " + cpp_call(c.op, args) +
                             ") std::cout << str(y) << '\\n';\n");
  };
  const Status& refusal = got->refusal;
  if (refusal.raised && !is_typed(refusal)) return failed("raises " + str(refusal));
  if (dim && !refusal.raised && is_no_dim(c, v)) return failed("taken for a dim");
  if (dim && refusal.raised && refusal.code == ErrorCode::DimOutOfRange && is_dim_of(c, v))
    return failed("is a dim, but raises " + str(refusal));
  // Beyond every size all numbers of one sign are one, and of shifts those that are one modulo the elements.
  const bool counts = p.role == ParamRole::Size || refusal.code == ErrorCode::Overflow;
  if (!dim && !(refusal.raised && counts) && p.role != ParamRole::Size &&
      (v > int64_t{1} << 31 || v < -(int64_t{1} << 30))) {
    const bool turns = p.name == "shifts";
    const int64_t elements = std::max<int64_t>(c.at(c.tensors()[0]).numel(), 1);
    set_number(args, a, turns ? (v % elements + elements) % elements : v > 0 ? 1 << 20 : -(1 << 20));
    const std::optional<Answer> near = answer(c.op, args);
    set_number(args, a, v);
    if (near && near->refusal.raised != refusal.raised)
      return failed(refusal.raised ? "raises " + str(refusal) + ", but a million does not"
                                   : "does not raise, but a million raises " + str(near->refusal));
    if (near && !refusal.raised)
      if (const Finding d = differs(got->results, near->results); !d.empty())
        return failed("unlike a million: " + d);
  }
  const bool exact = c.op.promises.once || c.op.has(kLinear) || c.op.is_view();
  if (refusal.raised || !exact) return Verdict::pass();
  const Tensors want = reference_forward(c.op, to_reference(args));
  for (size_t k = 0; k < want.size(); ++k)
    if (const Finding d = differs(got->results[k], narrow(want[k], got->results[k].dtype()), false);
        !d.empty())
      return failed("unlike the reference: " + d);
  return Verdict::pass();
}

bool has_integers(const Op& op) {
  if (!stays_on_device(op) || op.has(kRandom) || op.has(kUnspecified) || op.shape == ShapeClass::Contract)
    return false;
  return std::ranges::any_of(
      op.schema.params, [](const Param& p) { return p.kind == ParamKind::Int || p.kind == ParamKind::Ints; });
}

}  // namespace

void add_attribute_laws(std::vector<Law>& laws) {
  laws.push_back({105,
                  "attributes_are_judged",
                  "forms",
                  "Integers at the ends of i64, about sizes and about ranks are refused by a typed error, or "
                  "mean what the "
                  "reference makes of them; a dim is refused exactly when there is none.",
                  {.exact = true, .max_numel = 16, .mixed = false, .one_large = true},
                  true,
                  has_integers,
                  attributes_are_judged});
}

}  // namespace lamella::verify
