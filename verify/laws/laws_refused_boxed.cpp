// The law of boxed calls: which arguments may be left out, named, converted; all others are refused.
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/drawn.h"

namespace lamella::verify {

namespace {

using Named = std::vector<std::pair<std::string, Value>>;

/// A boxed call, some of its arguments by name.
struct Boxed {
  Values first;
  Named named;
  std::vector<std::string> changes;
};

/// Wrong kinds of values, and kinds that docs/schema.md converts.
const Values& kinds() {
  static const Values all = {std::string("0"), Value(),           Dims{0},    int64_t{1}, 0.5,        true,
                             Tensor(),         Tensors{Tensor()}, DType::F32, Scalar(2),  Tensors{},  2.0,
                             Scalar(-0.0),     Scalar(true),      -0.0,       false,      Scalar(0.5)};
  return all;
}
const Value& of_another_kind(uint32_t w) { return kinds()[w % kinds().size()]; }

/// All arguments, those by name last.
std::vector<Value*> arguments(Boxed& b) {
  std::vector<Value*> out;
  for (Value& v : b.first) out.push_back(&v);
  for (auto& [name, v] : b.named) out.push_back(&v);
  return out;
}

/// An undefined tensor in the list at `place`, in the place of one or beside all.
void leave_hole(Tensors& list, size_t place, bool instead) {
  if (instead && place < list.size()) list[place] = Tensor();
  else list.insert(list.begin() + std::ptrdiff_t(place), Tensor());
}

bool leave_any_hole(Boxed& b, uint32_t w) {
  std::vector<Tensors*> lists;
  for (Value* const v : arguments(b))
    if (Tensors* const list = std::get_if<Tensors>(v)) lists.push_back(list);
  if (lists.empty()) return false;
  Tensors& list = *lists[w % lists.size()];
  leave_hole(list, w / 8 % (list.size() + 1), w & 4);
  return true;
}

void change(Draw& d, Boxed& b) {
  const uint32_t w = d.word();
  if (w >> 30 == 3 && leave_any_hole(b, w)) {
    b.changes.push_back("a hole in a list");
    return;
  }
  const size_t n = b.first.size(), m = b.named.size();
  const auto say = [&](const std::string& what) { b.changes.push_back(what); };
  switch (w % 8) {
    case 0:
      if (m > 0) say("left out " + b.named[w / 8 % m].first), b.named.erase(b.named.begin() + w / 8 % m);
      else if (n > 0) say("left out the last"), b.first.pop_back();
      break;
    case 1: b.first.push_back(of_another_kind(w / 8)), say("one more"); break;
    case 2: b.named.emplace_back(w & 8 ? "no_such_argument" : "", int64_t{1}), say("an unknown name"); break;
    case 3:
      if (m > 0) say(b.named[w / 8 % m].first + " twice"), b.named.push_back(b.named[w / 8 % m]);
      break;
    case 4:
      if (n > 0 && m > 0) say("a name moved"), b.named[w / 8 % m].first = b.named[w / 64 % m].first;
      break;
    case 5:
      if (m > 0)
        b.named[w / 8 % m].second = of_another_kind(w / 64), say("kind of " + b.named[w / 8 % m].first);
      break;
    case 6:
      if (n > 0) b.first[w / 8 % n] = of_another_kind(w / 64), say(format("kind of argument {}", w / 8 % n));
      break;
    default:
      if (m > 1) std::swap(b.named.front(), b.named.back()), say("another order");
      break;
  }
}

enum class Fits : uint8_t { Yes, No, Undefined };

/// docs/schema.md's table of kinds, once more: int takes a bool, int[] one int, float an int, a Scalar an
/// int, float or bool, a Device its name; None where there is a question mark. `v` becomes what the operator
/// gets.
Fits fits(const Param& p, Value& v) {
  const auto is = [&]<class T>(std::type_identity<T>) { return std::holds_alternative<T>(v); };
  const auto yes = [](bool b) { return b ? Fits::Yes : Fits::No; };
  if (is_none(v)) return yes(p.optional);
  const int64_t* const integer = std::get_if<int64_t>(&v);
  const bool* const truth = std::get_if<bool>(&v);
  const double* const real = std::get_if<double>(&v);
  switch (p.kind) {
    case ParamKind::Tensor:
      if (!is(std::type_identity<Tensor>())) return Fits::No;
      return std::get<Tensor>(v).defined() || p.optional ? Fits::Yes : Fits::Undefined;
    case ParamKind::TensorList:
      if (!is(std::type_identity<Tensors>())) return Fits::No;
      for (const Tensor& t : std::get<Tensors>(v))
        if (!t.defined()) return Fits::Undefined;
      return Fits::Yes;
    case ParamKind::Int:
      if (truth) v = int64_t{*truth};
      return yes(is(std::type_identity<int64_t>()));
    case ParamKind::Ints:
      if (integer) v = Dims{*integer};
      return yes(is(std::type_identity<Dims>()));
    case ParamKind::Float:
      if (integer) v = double(*integer);
      return yes(is(std::type_identity<double>()));
    case ParamKind::Scalar:
      if (integer) v = Scalar(*integer);
      else if (truth) v = Scalar(*truth);
      else if (real) v = Scalar(*real);
      return yes(is(std::type_identity<Scalar>()));
    case ParamKind::Bool: return yes(truth);
    case ParamKind::DType: return yes(is(std::type_identity<DType>()));
    case ParamKind::String: return yes(is(std::type_identity<std::string>()));
    case ParamKind::Device:
      for (int d = 0; d <= int(Device::User1); ++d)
        if (const auto* text = std::get_if<std::string>(&v); text && name(Device(d)) == *text) v = Device(d);
      return yes(is(std::type_identity<Device>()));
    default: return Fits::No;
  }
}

/// What the call means, or why it means nothing: each with a word that the text must have.
struct Meaning {
  Values full;
  std::vector<std::pair<ErrorCode, std::string>> objections;
};

Meaning meaning(const Op& op, const Boxed& b) {
  Meaning out;
  const auto& params = lamella::detail::published_table.load()->row(op.id).schema.params;
  std::vector<int> given(params.size(), 0);
  out.full.resize(params.size());
  const auto object = [&](const std::string& word, ErrorCode code = ErrorCode::Schema) {
    out.objections.emplace_back(code, word);
  };
  if (b.first.size() > params.size()) object(format("{} arguments", b.first.size()));
  for (size_t i = 0; i < std::min(b.first.size(), params.size()); ++i) {
    out.full[i] = b.first[i], given[i] = 1;
  }
  for (const auto& [name, value] : b.named) {
    size_t i = 0;
    while (i < params.size() && params[i].name != name) ++i;
    if (i == params.size()) object("\"" + name + "\"");
    else if (++given[i] > 1) object("\"" + name + "\" is given twice");
    else out.full[i] = value;
  }
  for (size_t i = 0; i < params.size(); ++i) {
    if (!given[i] && params[i].has_default) out.full[i] = params[i].default_value;
    else if (!given[i]) object("\"" + params[i].name + "\" is missing");
    if (!given[i]) continue;
    const Fits f = fits(params[i], out.full[i]);
    if (f == Fits::No) object("\"" + params[i].name + "\"");
    if (f == Fits::Undefined) object("\"" + params[i].name + "\"", ErrorCode::Undefined);
  }
  return out;
}

std::string text_of(const Op& op, const Boxed& b) {
  std::string out = "  // " + op.name + " with";
  for (const Value& v : b.first) out += " " + str(v) + ",";
  for (const auto& [name, v] : b.named) out += " " + name + "=" + str(v) + ",";
  for (const std::string& change : b.changes) out += "  " + change + ";";
  return out + "\n";
}

/// Levels, modes and observers are asked about calls alone, not about what is none.
struct Counter final : Observer {
  int64_t calls = 0;
  void on_call(const Frame&, KeySet, int) override { ++calls; }
  void on_return(const Frame&) override {}
};

Finding wrong(const Case& c, const Boxed& b, const Meaning& m) {
  const auto ask = [&](Tensors& got) { return status_of([&] { got = call(c.op, b.first, b.named); }); };
  Tensors got;
  const Status raised = ask(got);  // what is made once for the process is there now
  if (m.objections.empty()) {
    Tensors want;
    const Status direct = status_of([&] { want = call_boxed(c.op, m.full); });
    if (raised.raised != direct.raised || raised.code != direct.code)
      return "gives " + str(raised) + "; all arguments in their places " + str(direct).text();
    return raised.raised || c.op.has(kRandom) || c.op.has(kUnspecified) ? "" : differs(got, want);
  }
  if (!raised.raised)
    return {What::Accepted, format("is accepted, expected an error about {}", m.objections[0].second)};
  const Snapshot before;
  Counter counter;
  {
    const ScopedObserver scope(&counter);
    if (!ask(got).raised) return "raises the first time only";
  }
  if (counter.calls)
    return "raises " + str(raised) + format(", after {} calls: as if it were one", counter.calls);
  if (const Finding left = before.changed(); !left.empty()) return "after a refusal: " + left;
  for (const auto& [code, word] : m.objections)
    if (code == raised.code && raised.text.rfind(c.op.name + ": ", 0) == 0 &&
        raised.text.find(word) != std::string::npos)
      return "";
  return "raises " + str(raised) +
         format("; expected [{}] about {}", name(m.objections[0].first), m.objections[0].second);
}

/// Each argument as each kind of value, and each list with a hole at each place: all calls that differ from
/// the drawn one in one argument.
Finding wrong_by_one(const Case& c, const Boxed& drawn, Boxed& b) {
  const auto ask = [&](size_t i, const Value& v) {
    b = drawn;
    *arguments(b)[i] = v;
    return wrong(c, b, meaning(c.op, b));
  };
  const size_t n = drawn.first.size() + drawn.named.size();
  for (size_t i = 0; i < n; ++i) {
    for (const Value& v : kinds())
      if (Finding what = ask(i, v); !what.empty()) return what;
    const Value own = *arguments(b = drawn)[i];
    const Tensors* const list = std::get_if<Tensors>(&own);
    for (size_t place = 0; list && place <= list->size(); ++place)
      for (const bool instead : {true, false}) {
        Tensors holed = *list;
        leave_hole(holed, place, instead);
        if (Finding what = ask(i, holed); !what.empty()) return what;
      }
  }
  return "";
}

Verdict boxed_calls_are_judged(Case& c) {
  const size_t positional = c.args.empty() ? 0 : c.draw.below(uint32_t(c.args.size() + 1));
  Boxed b;
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (i < positional && !c.op.schema.params[i].keyword_only && b.named.empty())
      b.first.push_back(c.args[i]);
    else b.named.emplace_back(c.op.schema.params[i].name, c.args[i]);
  }
  const Boxed drawn = b;
  for (uint32_t k = 1 + c.draw.below(2); k > 0; --k) change(c.draw, b);
  Finding what = wrong(c, b, meaning(c.op, b));
  if (what.empty()) what = wrong_by_one(c, drawn, b);
  if (what.empty()) return Verdict::pass();
  return Verdict::fail(what, cpp_declarations(c.args) + text_of(c.op, b));
}

bool takes_boxes(const Op&) { return true; }

}  // namespace

void add_boxed_refusal_laws(std::vector<Law>& laws) {
  laws.push_back(
      {111,
       "boxed_calls_are_judged",
       "dispatch",
       "A boxed call with arguments missing, left over, named twice or by no parameter's name, or of "
       "another kind, is refused with the parameter's name before any operator is called, or means what "
       "docs/schema.md says.",
       {.tame = true, .max_numel = 4},
       false,
       takes_boxes,
       boxed_calls_are_judged});
}

}  // namespace lamella::verify
