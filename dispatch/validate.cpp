// What a row may be, and its formulas' names as positions.
#include "lamella/dispatch/validate.h"

#include <algorithm>
#include <charconv>

#include "lamella/dispatch/bind.h"

namespace lamella {

namespace {
int lists_of(const Op& op) {
  return int(std::ranges::count(op.schema.params, ParamKind::TensorList, &Param::kind));
}

void check_counts(const Op& op) {
  const int n = op.schema.n_results;
  LAMELLA_CHECK(op.schema.params.size() <= kMaxArity, Schema, "{}: got {} parameters, expected at most {}",
                op.name, op.schema.params.size(), kMaxArity);
  LAMELLA_CHECK(n <= kMaxResults, Schema, "{}: got {} results, expected at most {}", op.name, n, kMaxResults);
  const bool lists = op.schema.result_kind == ResultKind::TensorList;
  LAMELLA_CHECK(!lists || op.composite || op.body, Schema,
                "{}: got a list of results, expected a composite or a body: kernels fill single tensors",
                op.name);
  LAMELLA_CHECK(n > 0 || (op.composite && op.has(kTestOnly)), Schema,
                "{}: got no result, expected at least 1", op.name);
  LAMELLA_CHECK(op.samples || op.has(kTestOnly), Schema, "{}: samples is null, expected a function", op.name);
}

/// Laws look for these by name.
void check_promises(const Op& op) {
  const auto names = [&](std::string_view name, bool tensor) {
    const int at = op.schema.find(name);
    return at >= 0 && (!tensor || op.schema.params[size_t(at)].kind == ParamKind::Tensor);
  };
  const Promises& p = op.promises;
  LAMELLA_CHECK(p.sign_of.empty() || names(p.sign_of, true), Schema,
                "{}: promises.sign_of = \"{}\" for {}; expected the name of a tensor", op.name, p.sign_of,
                str(op.schema));
  LAMELLA_CHECK(p.whole.empty() || p.whole == "always" || names(p.whole, false), Schema,
                "{}: promises.whole = \"{}\" for {}; expected \"always\" or the name of an argument", op.name,
                p.whole, str(op.schema));
}

/// Class launches and shape functions count on these.
void check_class(const Op& op, bool gives_one) {
  if (op.composite || op.body) return;
  const auto& tensors = op.tensor_params;
  const int n = op.schema.n_results;
  const bool first = !tensors.empty() && op.schema.params[tensors[0]].kind == ParamKind::Tensor;
  LAMELLA_CHECK(!op.view || (first && n == 1), Schema,
                "{}: view is given for {}; expected a first tensor that is no list, and one result", op.name,
                str(op.schema));
  LAMELLA_CHECK(!op.edit || (op.view && tensors[0] == 0), Schema,
                "{}: edit is given for {}; expected a view whose first parameter is the tensor", op.name,
                str(op.schema));
  if (op.view) return;
  LAMELLA_CHECK(!gives_one || n == 1, Schema,
                "{}: got {} results, expected 1 as its shape function gives; infer may be one of its own",
                op.name, n);
  LAMELLA_CHECK(op.infer || first, Schema,
                "{}: got {}, expected a first tensor that is no list, or an infer of its own", op.name,
                str(op.schema));
  if (op.shape == ShapeClass::Broadcast) {
    LAMELLA_CHECK(lists_of(op) == 0, Schema,
                  "{}: shape is {}, but it takes Tensor[]; expected single tensors", op.name, name(op.shape));
    LAMELLA_CHECK(op.launch || tensors.size() <= size_t(kMaxBroadcast), Schema,
                  "{}: shape is {} of {} tensors; expected at most {}, or a launch of its own", op.name,
                  name(op.shape), tensors.size(), kMaxBroadcast);
  }
  if (op.launch || (op.shape != ShapeClass::Broadcast && op.shape != ShapeClass::Reduce)) return;
  LAMELLA_CHECK(n == 1, Schema, "{}: shape is {}, with {} results; expected 1, or a launch of its own",
                op.name, name(op.shape), n);
  LAMELLA_CHECK(op.shape == ShapeClass::Broadcast || (first && tensors[0] == 0), Schema,
                "{}: shape is {}; expected a first parameter that is a tensor and no list", op.name,
                name(op.shape));
}

bool is_tensor(const Param& p) { return p.kind == ParamKind::Tensor || p.kind == ParamKind::TensorList; }

void check_rules(const Op& op, const std::vector<BoundFormula>& rules, std::string_view field) {
  std::vector<std::pair<int, int>> saved;
  for (const BoundFormula& f : rules) {
    const Param& input = op.schema.params[size_t(f.input)];
    LAMELLA_CHECK(is_tensor(input), Schema, "{}: {} has a rule for \"{}\", which is {}; expected a tensor",
                  op.name, field, input.name, str(input));
    LAMELLA_CHECK(std::ranges::count(rules, f.input, &BoundFormula::input) == 1, Schema,
                  "{}: {} has two rules for \"{}\", expected one", op.name, field, input.name);
    const bool forward = field == "jvp";
    const bool list = forward ? op.schema.n_results > 1 || op.schema.result_kind == ResultKind::TensorList
                              : input.kind == ParamKind::TensorList;
    LAMELLA_CHECK(f.linear || list == (f.many != nullptr), Schema,
                  "{}: {} has a rule for \"{}\" that gives {}; expected {} for {}", op.name, field,
                  input.name, list ? "one tensor" : "a list", list ? "a list" : "one tensor",
                  forward ? str(op.schema) : str(input));
    for (const BoundSave& s : f.saves) saved.emplace_back(s.kind, s.index);
  }
  std::ranges::sort(saved);
  const auto n = size_t(std::unique(saved.begin(), saved.end()) - saved.begin());
  LAMELLA_CHECK(n <= kMaxSavedByNode, Schema, "{}: {} saves {} different values, expected at most {}",
                op.name, field, n, kMaxSavedByNode);
}

/// "result" is the first one, "result3" the fourth; nothing for other words.
std::optional<unsigned> result_number(std::string_view text) {
  if (!text.starts_with("result")) return {};
  text.remove_prefix(6);
  if (text.empty()) return 0;
  unsigned n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(n) : std::nullopt;
}

BoundSave bind_save(const Op& op, std::string_view text) {
  if (const std::optional<unsigned> n = result_number(text); n && op.schema.find(text) < 0) {
    LAMELLA_CHECK(*n < unsigned(op.schema.n_results), Schema,
                  "{}: a rule saves \"{}\" of {} results; expected result to result{}", op.name, text,
                  op.schema.n_results, op.schema.n_results - 1);
    return {BoundSave::Result, uint8_t(*n)};
  }
  auto kind = BoundSave::Argument;
  if (text.ends_with(".sizes")) kind = BoundSave::SizesOf;
  if (text.ends_with(".dtype")) kind = BoundSave::DTypeOf;
  if (text.ends_with(".meta")) kind = BoundSave::MetaOf;
  if (text.ends_with(".device")) kind = BoundSave::DeviceOf;
  const int index = op.schema.find(kind == BoundSave::Argument ? text : text.substr(0, text.rfind('.')));
  LAMELLA_CHECK(index >= 0, Schema, "{}: a rule saves \"{}\", which is neither an argument nor a result",
                op.name, text);
  const ParamKind of = op.schema.params[size_t(index)].kind;
  const ParamKind wanted = kind == BoundSave::MetaOf ? ParamKind::TensorList : ParamKind::Tensor;
  LAMELLA_CHECK(of == wanted || kind == BoundSave::Argument, Schema,
                "{}: a rule saves \"{}\"; expected .meta of lists of tensors, .sizes, .dtype and .device of "
                "tensors",
                op.name, text);
  return {kind, uint8_t(index)};
}

/// What the formula finds there.
Takes kept(const Op& op, const BoundSave& s) {
  const bool list = op.schema.result_kind == ResultKind::TensorList;
  switch (s.kind) {
    case BoundSave::Result: return {list ? ParamKind::TensorList : ParamKind::Tensor, false};
    case BoundSave::SizesOf: return {ParamKind::Ints, false};
    case BoundSave::DTypeOf: return {ParamKind::DType, false};
    case BoundSave::MetaOf: return {ParamKind::TensorList, false};
    case BoundSave::DeviceOf: return {ParamKind::Device, false};
    case BoundSave::Argument: break;
  }
  const Param& p = op.schema.params[s.index];
  return {p.kind, p.optional};
}

std::string kind_str(Takes t) {
  Param p;
  p.kind = t.kind;
  p.optional = t.none;
  std::string text = str(p);
  text.pop_back();  // the space before a name
  return text;
}
}  // namespace

BoundFormula bind(const Op& op, const Formula& f) {
  BoundFormula b{op.schema.find(f.input), {}, f.one, f.many, f.hidden};
  LAMELLA_CHECK(b.input >= 0, Schema, "{}: a rule is given for \"{}\", which is no argument", op.name,
                f.input);
  LAMELLA_CHECK(f.takes.size() == f.saves.size(), Schema,
                "{}: the rule for \"{}\" takes {} values, saves() names {}", op.name, f.input, f.takes.size(),
                f.saves.size());
  LAMELLA_CHECK(f.saves.size() <= kMaxSaves, Schema,
                "{}: the rule for \"{}\" saves {} values, expected at most {}", op.name, f.input,
                f.saves.size(), kMaxSaves);
  for (size_t i = 0; i < f.saves.size(); ++i) {
    const BoundSave s = b.saves.emplace_back(bind_save(op, f.saves[i]));
    const Takes got = kept(op, s), wanted = f.takes[i];
    LAMELLA_CHECK(got.kind == wanted.kind && (wanted.none || !got.none), Schema,
                  "{}: the rule for \"{}\" saves \"{}\", which is {}; expected {} as the formula takes it",
                  op.name, f.input, f.saves[i], kind_str(got), kind_str(wanted));
  }
  const auto count = [&](BoundSave::Kind kind) {
    return size_t(std::ranges::count(b.saves, kind, &BoundSave::kind));
  };
  LAMELLA_CHECK(count(BoundSave::SizesOf) <= kMaxSavedSizes, Schema,
                "{}: the rule for \"{}\" saves {} .sizes, expected at most {}", op.name, f.input,
                count(BoundSave::SizesOf), kMaxSavedSizes);
  return b;
}

std::vector<BoundFormula> bind(const Op& op, const Rules& rules) {
  std::vector<BoundFormula> out;
  for (const Formula& f : rules.formulas) out.push_back(bind(op, f));
  for (const std::string_view input : rules.linear) {
    BoundFormula b{op.schema.find(input), {}, nullptr, nullptr, nullptr, true};
    LAMELLA_CHECK(b.input >= 0, Schema, "{}: declared linear in \"{}\", which is no argument", op.name,
                  input);
    out.push_back(std::move(b));
  }
  return out;
}

void validate(const Op& op, bool gives_one) {
  check_counts(op);
  check_promises(op);
  check_class(op, gives_one);
  check_rules(op, op.jvp, "jvp");
  check_rules(op, op.vjp, "vjp");
}

}  // namespace lamella
