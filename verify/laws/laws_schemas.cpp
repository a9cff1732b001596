// The law of schemas as text: drawn ones, written by a printer of its own, are read as what they say.
#include <bit>
#include <cmath>

#include "lamella/dispatch/call.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {

struct Written {
  std::string_view text;
  ParamKind kind;
  ParamRole role;
  std::string_view list;  ///< suffix, for lists
};
constexpr Written kTypes[] = {{"Tensor", ParamKind::Tensor, ParamRole::Plain, ""},
                              {"Tensor", ParamKind::TensorList, ParamRole::Plain, "[]"},
                              {"int", ParamKind::Int, ParamRole::Plain, ""},
                              {"int", ParamKind::Ints, ParamRole::Plain, "[]"},
                              {"Dim", ParamKind::Int, ParamRole::Dim, ""},
                              {"Dim", ParamKind::Ints, ParamRole::Dim, "[]"},
                              {"Size", ParamKind::Ints, ParamRole::Size, ""},
                              {"float", ParamKind::Float, ParamRole::Plain, ""},
                              {"bool", ParamKind::Bool, ParamRole::Plain, ""},
                              {"Scalar", ParamKind::Scalar, ParamRole::Plain, ""},
                              {"DType", ParamKind::DType, ParamRole::Plain, ""},
                              {"str", ParamKind::String, ParamRole::Plain, ""},
                              {"Function", ParamKind::Function, ParamRole::Plain, ""},
                              {"Rule", ParamKind::Function, ParamRole::Rule, ""},
                              {"Device", ParamKind::Device, ParamRole::Plain, ""}};

/// A drawn schema beside its text, in which spaces stand between tokens as drawn.
class Drawing {
 public:
  explicit Drawing(Draw& d) : draw_(d) {}
  Schema schema;
  std::string text;

  void run() {
    schema.name = name("op");
    put(schema.name), put("(");
    const uint32_t n = draw_.below(5), star = draw_.below(8);
    for (uint32_t k = 0; k < n; ++k) {
      if (k) put(",");
      if (k == star) put("*"), put(",");
      schema.params.push_back(param(k, k >= star));
    }
    put(")"), put("->");
    results();
  }

 private:
  void put(std::string_view token) {
    for (uint32_t k = draw_.below(6); k > 4; --k) text += ' ';
    text += token;
  }
  /// What follows a name must be set off from it.
  void put_apart(std::string_view token) { text += ' ', put(token); }
  std::string name(std::string_view stem) {
    static constexpr std::string_view kTails[] = {"", "_", ".x", "7", "_out"};
    return std::string(stem) + std::string(kTails[draw_.below(std::size(kTails))]);
  }
  Param param(uint32_t k, bool keyword_only) {
    const Written& type = kTypes[draw_.below(std::size(kTypes))];
    Param p;
    p.kind = type.kind, p.role = type.role, p.keyword_only = keyword_only;
    put(type.text);
    if (p.kind == ParamKind::Tensor && draw_.one_in(4)) put("(a!)"), p.mutated = true;
    if (!type.list.empty()) put(type.list);
    if (draw_.one_in(3)) put("?"), p.optional = true;
    p.name = name(std::string(1, char('a' + k)));
    put_apart(p.name);
    if (draw_.flag()) give_default(p);
    return p;
  }
  void give_default(Param& p) {
    static constexpr int64_t kWhole[] = {0, -1, 7, INT64_MAX, INT64_MIN};
    static constexpr double kReal[] = {0.5, -0.0, 1e300, -2.25, 0x1p-1074, 3, 2};
    static constexpr std::string_view kReals[] = {"0.5", "-0.0", "1e300", "-2.25", "5e-324", "3", "2.0"};
    const uint32_t w = draw_.word();
    const size_t i = w / 8 % std::size(kWhole), r = w / 8 % std::size(kReal);
    const auto set = [&](Value v, std::string_view as) {
      put("="), put(as);
      p.has_default = true, p.default_value = std::move(v);
    };
    if (p.optional && w % 2 == 0) return set({}, "None");
    switch (p.kind) {
      case ParamKind::Int: return set(kWhole[i], std::to_string(kWhole[i]));
      case ParamKind::Float: return set(kReal[r], kReals[r]);
      case ParamKind::Bool: return set((w & 8) != 0, w & 8 ? "True" : "False");
      case ParamKind::Ints: return set(Dims{}, "[]");
      case ParamKind::String:
        return set(std::string(w & 8 ? "a \"b\", c)" : ""), w & 8 ? "'a \"b\", c)'" : "''");
      case ParamKind::Scalar:
        if (w & 4) return set(Scalar(kWhole[i]), std::to_string(kWhole[i]));
        return kReals[r] == "3" ? set(Scalar(3), "3") : set(Scalar(kReal[r]), kReals[r]);
      default: return;
    }
  }
  void results() {
    switch (draw_.below(5)) {
      case 0: return put("Tensor");
      case 1: schema.returns_alias = true; return put("Tensor"), put(written() ? "(a!)" : "(a)");
      case 2:
        schema.result_kind = ResultKind::TensorList, schema.returns_alias = draw_.flag();
        put("Tensor");
        if (schema.returns_alias) put("(a)");
        return put("[]");
      case 3: schema.n_results = 0; return put("("), put(")");
      default: schema.n_results = 2 + int(draw_.below(3)); put("(");
    }
    for (int k = 0; k < schema.n_results; ++k) {
      if (k) put(",");
      put("Tensor");
    }
    put(")");
  }
  bool written() const { return !schema.params.empty() && schema.params[0].mutated; }
  Draw& draw_;
};

bool same_value(const Value& a, const Value& b) {
  if (a.index() != b.index()) return false;
  if (const double* x = std::get_if<double>(&a))
    return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(std::get<double>(b));
  if (const Scalar* s = std::get_if<Scalar>(&a)) {
    const Scalar& t = std::get<Scalar>(b);
    return *s == t && std::signbit(s->to_double()) == std::signbit(t.to_double());
  }
  if (const Dims* d = std::get_if<Dims>(&a)) return d->size() == std::get<Dims>(b).size();
  if (const int64_t* i = std::get_if<int64_t>(&a)) return *i == std::get<int64_t>(b);
  if (const bool* f = std::get_if<bool>(&a)) return *f == std::get<bool>(b);
  if (const std::string* s = std::get_if<std::string>(&a)) return *s == std::get<std::string>(b);
  return true;
}

Finding schemas_differ(const Schema& got, const Schema& want) {
  if (got.name != want.name) return "its name is " + got.name;
  if (got.params.size() != want.params.size()) return format("{} parameters", got.params.size());
  for (size_t k = 0; k < want.params.size(); ++k) {
    const Param &a = got.params[k], &b = want.params[k];
    if (a.name != b.name || a.kind != b.kind || a.role != b.role) return format("parameter {} is another", k);
    if (a.optional != b.optional || a.mutated != b.mutated || a.keyword_only != b.keyword_only)
      return format("a mark of parameter {} is lost or won", k);
    if (a.has_default != b.has_default || !same_value(a.default_value, b.default_value))
      return format("the default of parameter {} is {}", k, str(a.default_value));
  }
  const bool same = got.result_kind == want.result_kind && got.returns_alias == want.returns_alias &&
                    (want.result_kind == ResultKind::TensorList || got.n_results == want.n_results);
  return same ? "" : "its results are others";
}

/// The text with one thing in it that no schema has.
std::string spoiled(const Drawing& right, uint32_t w) {
  static constexpr std::string_view kEnds[] = {" x", ")", ",", " ->", "[]?", "\""};
  static constexpr std::string_view kParams[] = {"Tensor 9",       "Tensr x",
                                                 "Tensor",         "float x[]",
                                                 "bool[] x",       "int x=None",
                                                 "int x=1.5",      "int x=",
                                                 "float x=0.5.5",  "Scalar x=1x",
                                                 "bool x=true",    "int[] x=[1]",
                                                 "str x=\"a\"",    "str x='a",
                                                 "Tensor x=1",     "int x=0x10",
                                                 "DType x=f32",    "int x=9223372036854775808",
                                                 "Scalar x=0.5 1", "*, int y, *, int x",
                                                 "Tensor? (a!) x", "int x, int x"};
  if (w % 4 == 0) return right.text + std::string(kEnds[w / 4 % std::size(kEnds)]);
  if (w % 4 == 1) return right.text.substr(0, w / 4 % right.text.size());
  return "f(" + std::string(kParams[w / 4 % std::size(kParams)]) + ") -> Tensor";
}

/// Where a boxed call of such a row has its lists: several of them, which no row of the table has.
Finding lists_elsewhere(const Schema& schema) {
  const size_t n = schema.params.size();
  Op row;
  row.schema = schema, row.simple = false;
  Values values(n);
  for (size_t i = 0; i < n; ++i) {
    if (schema.params[i].kind == ParamKind::TensorList) values[i] = Tensors(i + 1);
    if (schema.params[i].kind == ParamKind::Ints) values[i] = Dims(int(i) + 1, int64_t(i));
  }
  if (n > kMaxArity) return "";
  const BoxedArgs args(row, values);
  for (size_t i = 0; i < n; ++i) {
    const auto* const list = std::get_if<Tensors>(&values[i]);
    const auto* const ints = std::get_if<Dims>(&values[i]);
    bool right = true;
    if (list) {
      const auto& there = *static_cast<const TensorSpan*>(args.data()[i]);
      right = there.data() == list->data() && there.size() == list->size();
    }
    if (ints) right = ints->equal(*static_cast<const Ints*>(args.data()[i]));
    if (!right) return format("argument {} of a boxed call is another list", i);
  }
  return "";
}

Verdict schemas_as_written(Case& c) {
  Drawing d(c.draw);
  d.run();
  const auto parsed = [](const std::string& text, Schema& out) {
    return status_of([&] { out = parse_schema(text); });
  };
  Finding wrong;
  std::string text = d.text;
  Schema got, again;
  if (const Status s = parsed(text, got); s.raised) wrong = str(s);
  if (wrong.empty()) wrong = schemas_differ(got, d.schema);
  if (wrong.empty()) wrong = lists_elsewhere(got);
  if (wrong.empty()) {
    text = str(got);
    if (const Status s = parsed(text, again); s.raised) wrong = "printed, it is refused: " + str(s);
    else if (wrong = schemas_differ(again, d.schema); !wrong.empty()) wrong = "printed and read: " + wrong;
  }
  if (wrong.empty()) {
    text = spoiled(d, c.draw.word());
    const Status s = parsed(text, got);
    // What a part of a text means by chance is not asked: "op() -> Tensor" is one of "op() -> Tensor[]".
    const bool part = d.text.starts_with(text);
    if (!s.raised && !part) wrong = {What::Accepted, "accepted as " + str(got)};
    else if (s.raised && s.code != ErrorCode::Schema) wrong = str(s);
  }
  if (wrong.empty()) {  // and the operator's own, as a boxed call reads it
    text = str(c.op.schema);
    if (wrong = schemas_differ(parse_schema(text), c.op.schema); wrong.empty()) call_boxed(c.op, c.args);
  }
  if (wrong.empty()) return Verdict::pass();
  wrong = "\"" + text + "\": " + wrong;
  return Verdict::fail(wrong, "  // parse_schema of " + wrong.text() + "\n");
}

bool all_rows(const Op&) { return true; }

}  // namespace

void add_schema_laws(std::vector<Law>& laws) {
  laws.push_back({148,
                  "schemas_as_written",
                  "dispatch",
                  "A schema is read as its text says, with all kinds of parameters, marks and defaults, and "
                  "printed so that it reads back, and a boxed call has its lists; a text that is none raises "
                  "`schema`.",
                  {.tame = true, .max_numel = 4},
                  false,
                  all_rows,
                  schemas_as_written});
}

}  // namespace lamella::verify
