// Rows are judged when they are registered: what a later call would trip over is refused, by field.
#include <gtest/gtest.h>

#include "lamella/dispatch/table.h"
#include "lamella/draw/draw.h"
#include "lamella/ops/infer.h"

#include "support.h"

namespace {
using namespace lamella;
using tests::first_line;
using tests::refusal;

void nothing(const KernelCall&) {}
Values no_samples(Draw&) { return {}; }
Rules none() { return not_differentiable("a test's own operator"); }

OpDef definition(std::string_view schema) {
  return {.schema = schema,
          .shape = ShapeClass::Broadcast,
          .kernel = {.cpu = nothing, .reference = nothing},
          .jvp = none(),
          .vjp = none(),
          .properties = kNoInPlace | kNoOut | kTestOnly,
          .samples = no_samples,
          .doc = "A test's."};
}

/// Registrations of a test go when it ends.
class Rows : public testing::Test {
 protected:
  Rows() : before_(&OpTable::current()) {}
  ~Rows() override { OpTable::take_back(before_); }
  /// What refuses the row, by both doors; the table is as it was.
  std::string refused(const OpDef& def) {
    const OpTable& table = OpTable::current();
    const std::string text = first_line(refusal([&] { OpTable::add(def); }));
    EXPECT_EQ(first_line(refusal([&] { OpTable::replace(def); })), text);
    EXPECT_EQ(&OpTable::current(), &table);
    return text;
  }
  std::string refused_jvp(std::string_view schema, std::vector<Formula> rules) {
    OpDef def = definition(schema);
    def.jvp = Rules(std::move(rules));
    return refused(def);
  }

 private:
  const OpTable* before_;
};

TEST_F(Rows, PromisesNameArguments) {
  OpDef def = definition("row_promises(Tensor x, int n=0) -> Tensor");
  for (const char* name : {"y", "n", "x.sizes"}) {
    def.promises = {.sign_of = name};
    EXPECT_EQ(refused(def),
              format("schema: row_promises: promises.sign_of = \"{}\" for row_promises(Tensor x, int "
                     "n=0) -> Tensor; expected the name of a tensor",
                     name));
  }
  def.promises = {.whole = "never"};
  EXPECT_EQ(refused(def),
            "schema: row_promises: promises.whole = \"never\" for row_promises(Tensor x, int n=0) -> Tensor; "
            "expected \"always\" or the name of an argument");
  def.promises = {.sign_of = "x", .whole = "n"};
  EXPECT_EQ(refusal([&] { OpTable::add(def); }), "");
}

TEST_F(Rows, OperandsOfClassesAreCounted) {
  EXPECT_EQ(refused(definition("row_many(Tensor a, Tensor b, Tensor c, Tensor d, Tensor e) -> Tensor")),
            "schema: row_many: shape is broadcast of 5 tensors; expected at most 4, or a launch of its own");
  EXPECT_EQ(
      refused(definition("row_list(Tensor[] xs) -> Tensor")),
      "schema: row_list: got row_list(Tensor[] xs) -> Tensor, expected a first tensor that is no list, or an "
      "infer of its own");
  OpDef list = definition("row_list(Tensor[] xs) -> Tensor");
  list.infer = ops::infer_same;
  EXPECT_EQ(refused(list),
            "schema: row_list: shape is broadcast, but it takes Tensor[]; expected single tensors");
  OpDef reduce = definition("row_reduce(int n, Tensor x) -> Tensor");
  reduce.shape = ShapeClass::Reduce;
  EXPECT_EQ(refused(reduce),
            "schema: row_reduce: shape is reduce; expected a first parameter that is a tensor and no list");
}

TEST_F(Rows, ResultsAreAsManyAsAreFilled) {
  OpDef two = definition("row_two(Tensor x) -> (Tensor, Tensor)");
  EXPECT_EQ(refused(two),
            "schema: row_two: got 2 results, expected 1 as its shape function gives; infer may be one "
            "of its own");
  two.infer = [](const Frame& f, Inferred& out) { ops::infer_same(f, out); };
  EXPECT_EQ(refused(two),
            "schema: row_two: shape is broadcast, with 2 results; expected 1, or a launch of its own");
  EXPECT_EQ(refused(definition("row_none(Tensor x) -> ()")),
            "schema: row_none: got no result, expected at least 1");
  EXPECT_EQ(refused(definition("row_lists(Tensor x) -> Tensor[]")),
            "schema: row_lists: got a list of results, expected a composite or a body: kernels fill single "
            "tensors");
  OpDef view = definition("row_view(int n) -> Tensor(a)");
  view.view = [](const Frame&, const Geometry& g) { return g; };
  EXPECT_EQ(refused(view),
            "schema: row_view: view is given for row_view(int n) -> Tensor(a); expected a first "
            "tensor that is no list, and one result");
  OpDef edited = definition("row_edited(int n, Tensor x) -> Tensor(a)");
  edited.view = view.view;
  edited.edit = [](const Frame&, TensorImpl&) { return true; };
  EXPECT_EQ(refused(edited),
            "schema: row_edited: edit is given for row_edited(int n, Tensor x) -> Tensor(a); expected a view "
            "whose first parameter is the tensor");
  OpDef unsampled = definition("row_unsampled(Tensor x) -> Tensor");
  unsampled.samples = SampleFn(nullptr);
  unsampled.properties = 0;
  EXPECT_EQ(refused(unsampled), "schema: row_unsampled: samples is null, expected a function");
}

TEST_F(Rows, RulesAreReadAsTheyAreKept) {
  constexpr std::string_view kOne = "row_one(Tensor x, int n=0, int[]? dims=None) -> Tensor";
  const auto saving = [](std::string_view what) {
    return wrt("x", saves(what), [](Tensor t, Tensor) { return t; });
  };
  EXPECT_EQ(refused_jvp(kOne, {saving("results")}),
            "schema: row_one: a rule saves \"results\", which is neither an argument nor a result");
  EXPECT_EQ(refused_jvp(kOne, {saving("result9")}),
            "schema: row_one: a rule saves \"result9\" of 1 results; expected result to result0");
  EXPECT_EQ(refused_jvp(kOne, {saving("result1")}),
            "schema: row_one: a rule saves \"result1\" of 1 results; expected result to result0");
  EXPECT_EQ(refused_jvp(kOne, {saving("n")}),
            "schema: row_one: the rule for \"x\" saves \"n\", which is int; expected Tensor? as the formula "
            "takes it");
  EXPECT_EQ(refused_jvp(kOne, {wrt("x", saves("dims"), [](Tensor t, Ints) { return t; })}),
            "schema: row_one: the rule for \"x\" saves \"dims\", which is int[]?; expected int[] as the "
            "formula takes "
            "it");
  EXPECT_EQ(refused_jvp(kOne, {wrt("x", saves("x.sizes"), [](Tensor t, DType) { return t; })}),
            "schema: row_one: the rule for \"x\" saves \"x.sizes\", which is int[]; expected DType as the "
            "formula takes "
            "it");
  EXPECT_EQ(
      refused_jvp(kOne, {saving("x.meta")}),
      "schema: row_one: a rule saves \"x.meta\"; expected .meta of lists of tensors, .sizes, .dtype and "
      ".device of tensors");
  EXPECT_EQ(refused_jvp(kOne, {wrt("n", [](Tensor t) { return t; })}),
            "schema: row_one: jvp has a rule for \"n\", which is int n=0; expected a tensor");
  EXPECT_EQ(refused_jvp(kOne, {saving("x"), saving("x")}),
            "schema: row_one: jvp has two rules for \"x\", expected one");
  EXPECT_EQ(refused_jvp(kOne, {wrt("x", [](Tensor t) { return Tensors{t}; })}),
            "schema: row_one: jvp has a rule for \"x\" that gives a list; expected one tensor for "
            "row_one(Tensor x, int n=0, int[]? dims=None) -> Tensor");
  OpDef good = definition(kOne);
  good.jvp = Rules(wrt("x", saves("n", "dims", "x.sizes", "x.dtype", "result"),
                       [](Tensor t, int64_t, std::optional<Ints>, Ints, DType, Tensor) { return t; }));
  EXPECT_EQ(refusal([&] { OpTable::add(good); }), "");
}

int64_t cells_run = 0;
void counted_cell(Frame& f, int) {
  ++cells_run;
  f.results[0] = f.tensor(0);
}

TEST_F(Rows, TwoThatClaimOneAreBothNamed) {
  const ScopedOrigin a("a.so");
  OpTable::add(definition("row_claimed(Tensor x) -> Tensor"));
  OpTable::set("row_claimed", int(Device::CPU), {"mine", counted_cell});
  const Tensor x = ones({2});
  EXPECT_TRUE(call("row_claimed", {x})[0].is_same(x));
  EXPECT_EQ(cells_run, 1);
  const ScopedOrigin b("b.so");
  EXPECT_EQ(first_line(refusal([] { OpTable::add(definition("row_claimed(Tensor x) -> Tensor")); })),
            "schema: row_claimed: plug-in \"b.so\" defines it, and plug-in \"a.so\" has an operator of "
            "this name; "
            "expected a new one");
  EXPECT_EQ(first_line(refusal([] { OpTable::add(definition("tanh(Tensor x) -> Tensor")); })),
            "schema: tanh: plug-in \"b.so\" defines it, and the library has an operator of this name; "
            "expected a new "
            "one");
  EXPECT_EQ(first_line(refusal([] { OpTable::replace(definition("row_claimed(Tensor x) -> Tensor")); })),
            "schema: row_claimed: plug-in \"b.so\" replaces it, and so has plug-in \"a.so\"; expected one of "
            "them "
            "alone");
  EXPECT_EQ(first_line(refusal([] {
              OpTable::set("row_claimed", int(Device::CPU), {"theirs", counted_cell});
            })),
            "schema: row_claimed: plug-in \"b.so\" sets its cell for cpu to \"theirs\", and plug-in \"a.so\" "
            "has set "
            "it to \"mine\"; expected one of them");
  EXPECT_EQ(first_line(refusal([] {
              OpTable::set("row_claimed", int(Device::User1), {"theirs", counted_cell});
            })),
            "schema: row_claimed: the cell \"theirs\" is for user1, which no column has taken; expected "
            "add_column "
            "first");
  EXPECT_EQ(first_line(refusal([] { OpTable::add_column(Device::CPU, "mine"); })),
            "schema: column \"mine\": got the key cpu, expected user0 or user1");
  EXPECT_EQ(first_line(refusal([] { OpTable::add_column(Device::User0, ""); })),
            "schema: column: user0 gets no name; expected one");
  {
    const std::string name = "theirs";         // read by whoever asks later
    OpTable::add_column(Device::User0, name);  // for good: a column is never taken back
  }
  EXPECT_EQ(claimed_keys().back().name, "theirs");
  const ScopedOrigin c("c.so");
  EXPECT_EQ(first_line(refusal([] { OpTable::add_column(Device::User0, "other"); })),
            "schema: column \"other\": plug-in \"c.so\" takes the key user0, and plug-in \"b.so\" has taken "
            "user0 for "
            "\"theirs\"; expected another key and name");
}

void count_inputs(const KernelCall& c) {
  for (int64_t i = 0; i < c.outs[0].numel(); ++i) c.outs[0].as<float>()[i] = float(c.ins.size());
}

/// It crashed: an undefined tensor stood for one that is there.
TEST_F(Rows, AnOptionalTensorMayBeUndefined) {
  for (const ShapeClass shape : {ShapeClass::Broadcast, ShapeClass::Other}) {
    const std::string schema = format("row_optional_{}(Tensor x, Tensor? y=None) -> Tensor", name(shape));
    OpDef def = definition(schema);
    def.shape = shape;
    def.kernel = {.cpu = count_inputs, .reference = count_inputs};
    OpTable::add(def);
    const std::string_view op = OpTable::current().rows().back()->name;
    const Tensor x = ones({2});
    for (const Values& args : {Values{x}, Values{x, {}}, Values{x, Tensor()}})
      EXPECT_EQ(call(op, args)[0].to_vector(), (std::vector<double>{1, 1}));
    EXPECT_EQ(call(op, {x, x})[0].to_vector(), (std::vector<double>{2, 2}));
  }
}

TEST_F(Rows, SetCellsOutliveReplacementsAndFormsFollow) {
  OpTable::add(definition("row_set(Tensor x) -> Tensor"));
  OpTable::set("row_set", int(Device::CPU), {"mine", counted_cell});
  OpTable::replace(definition("row_set(Tensor x) -> Tensor"));
  const int64_t before = cells_run;
  call("row_set", {ones({2})});
  EXPECT_EQ(cells_run, before + 1);
  OpDef formed = definition("row_formed(Tensor x) -> Tensor");
  formed.properties = kTestOnly;
  OpTable::add(formed);
  OpTable::set("row_formed", int(Device::CPU), {"mine", counted_cell});
  const OpTable& table = OpTable::current();
  for (const char* form : {"row_formed", "row_formed_", "row_formed_out"})
    EXPECT_EQ(table.find(form)->base, table.find("row_formed")) << form;
}
}  // namespace
