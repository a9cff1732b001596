// What has one witness only: derived from the registry, and empty (docs/oracle.md).
#include <gtest/gtest.h>

#include "lamella/dispatch/table.h"
#include "lamella/ops/functions/devices.h"
#include "lamella/ops/structured.h"
#include "lamella/verify/laws/index_maps.h"
#include "lamella/verify/run/runner.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

bool asked(const Op& op, std::initializer_list<const char*> ids) {
  for (const char* id : ids)
    if (find_law(id)->applies(op)) return true;
  return false;
}

/// Elements: a kernel and another text of it, a composite and its definition, or an index map. Elements that
/// are whatever they are need none.
bool elements_have_two(const Op& op) {
  if (op.has(kUnspecified)) return true;
  if (op.composite) return ops::has_definition(op) && asked(op, {"equals_where_exact"});
  if (const IndexMap* map = index_map_of(op); map && map->origin) return asked(op, {"elements_as_mapped"});
  const bool two_texts = op.kernel.cpu && op.kernel.reference && op.kernel.cpu != op.kernel.reference;
  return two_texts && asked(op, {"equals_where_exact", "matches_reference"});
}

/// Questions about the operator that nobody answers a second time.
std::string unwitnessed(const Op& op) {
  std::string out;
  const auto missing = [&](const char* what) { out += op.name + ": " + what + "\n"; };
  if (!elements_have_two(op)) missing("elements");
  if (!asked(op, {"composites_as_defined", "elements_as_mapped", "lines_alone"})) missing("sizes");
  if (!asked(op, {"composites_as_defined", "dtypes_as_listed"})) missing("dtypes");
  if (op.composite && op.schema.returns_alias && !index_map_of(op) && !op.kernel.reference)
    missing("which memory it shares");
  if (op.is_view() && !asked(op, {"elements_as_mapped"})) missing("which memory it shows");
  if (!asked(op, {"bad_input_is_refused"})) missing("what it refuses");
  if (has_jvp(op) && !asked(op, {"jvp_equals_differences"})) missing("tangents");
  if (has_vjp(op) && !asked(op, {"vjp_equals_differences"})) missing("cotangents");
  if (has_jvp(op) && has_vjp(op) && !asked(op, {"second_derivatives_agree"})) missing("second derivatives");
  // One that has neither says why in its row: law 64.
  return out;
}

TEST(Witnesses, NothingHasOneOnly) {
  std::string all;
  for (const Op* op : all_operators()) all += unwitnessed(*op);
  EXPECT_EQ(all, "");
}

TEST(Witnesses, ALackIsSeen) {
  Op composite = *OpTable::current().find("layer_norm");
  composite.kernel.reference = nullptr;
  EXPECT_EQ(unwitnessed(composite), "layer_norm: elements\n");
  composite.infer = nullptr;
  EXPECT_EQ(unwitnessed(composite), "layer_norm: elements\nlayer_norm: sizes\nlayer_norm: dtypes\n");
  Op empty = *OpTable::current().find("mul");
  empty.schema.params.clear();
  EXPECT_EQ(unwitnessed(empty), "mul: what it refuses\n");
  Op view = *OpTable::current().find("transpose");
  view.name = "turn";
  EXPECT_EQ(unwitnessed(view), "turn: elements\nturn: sizes\nturn: dtypes\nturn: which memory it shows\n");
}

/// What law 14 excuses of overflow inside must be needed: some case fails without the excuse.
TEST(Witnesses, ExcusesAreNeeded) {
  const Law& law = *find_law("nonfinite_as_reference");
  for (const Op* op : all_operators()) {
    if (op->overflows_in.size == Inside::Nothing) continue;
    Op strict = *op;
    strict.overflows_in = {};
    bool needed = false;
    for (uint64_t i = 0; i < 20000 && !needed; ++i)
      needed = run_check(law, strict, choices_of(1, law, *op, i)).kind == Verdict::Fail;
    EXPECT_TRUE(needed) << op->name << ": " << op->overflows_in.what;
  }
}

/// The definition is another text: it calls no operator, where the composite does.
TEST(Witnesses, DefinitionsCallNothing) {
  struct Calls final : Observer {
    int made = 0;
    void on_call(const Frame&, KeySet, int) override { ++made; }
    void on_return(const Frame&) override {}
  };
  int definitions = 0;
  for (const Op* op : all_operators()) {
    if (!ops::has_definition(*op) || op->tensor_params.empty()) continue;
    ++definitions;
    for (uint64_t i = 0; i < 20; ++i) {
      const Law& law = *find_law("equals_where_exact");
      const Choices choices = choices_of(1, law, *op, i);
      const Case c(*op, choices, law.options);
      Values args = c.args;
      for (const Case::Slot& s : c.tensors()) entry(args, s) = to_device(c.at(s), Device::Reference);
      Calls calls;
      const ScopedObserver scope(&calls);
      ops::call_definition(*op, args);
      EXPECT_EQ(calls.made, 0) << op->name;
    }
  }
  EXPECT_GE(definitions, 14);
}
}  // namespace
