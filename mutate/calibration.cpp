// The harness measured: the list of its calibrations, and what several of them share.
#include "lamella/mutate/calibration.h"

#include "lamella/core/visit.h"
#include "lamella/mutate/calibration_parts.h"
#include "lamella/mutate/mutants.h"
#include "lamella/verify/run/worker.h"

namespace lamella::verify {

Tensor row_of(std::initializer_list<double> values, DType dtype) {
  return tensor_of({int64_t(values.size())}, values, dtype);
}

Tensor counted_up(Ints sizes, DType dtype) {
  const Tensor out = make_tensor(sizes, dtype);
  visit_dtype(dtype, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    for (int64_t i = 0; i < out.numel(); ++i) {
      T& x = static_cast<T*>(out.raw_data())[i];
      if constexpr (std::is_same_v<T, bool>) x = i % 2;
      else if constexpr (is_half_type<T>) x = T(float(i + 1));
      else if constexpr (is_complex_type<T>) x = T(typename T::value_type(i + 1), 1);
      else x = T(i + 1);
    }
  });
  return out;
}

std::vector<const Op*> smooth_ones() {
  std::vector<const Op*> out;
  for (const Op* op : all_operators()) {
    const bool unary = op->shape == ShapeClass::Broadcast && op->schema.params.size() == 1;
    if (unary && op->kernel.cpu && !op->vjp.empty() && !op->properties && out.size() < 3) out.push_back(op);
  }
  return out;
}

const Op& operator_named(std::string_view name) {
  const Op* const op = OpTable::current().find(name);
  LAMELLA_CHECK(op, UnknownOperator, "calibration: there is no operator \"{}\"", std::string(name));
  return *op;
}

bool every_op(const Op&) { return true; }
Law law_that(Verdict (*check)(Case&), std::string_view id) {
  return {0, id, "value", "A law with a known verdict.", {}, false, every_op, check};
}

Case case_with(const Op& op, const Tensors& xs) {
  const Choices none;
  Case c(op, none, {});
  c.args = c.with(c.tensors(), xs);
  c.find_tensors();
  return c;
}

size_t print_of(Case& c) {
  std::string text = c.op.name + cpp_declarations(c.args);
  for (int k = 0; k < 8; ++k) text += format(" {}", c.draw.word());
  return std::hash<std::string>()(text);
}

namespace {
const OpTable* table_with(const Op& right, void (*plant)(Op& row), std::string_view ending) {
  const Op& form = ending.empty() ? right : operator_named(right.name + std::string(ending));
  auto* const row = new Op(form);  // rows are never freed
  if (ending.empty()) row->base = row;
  live_bug.right = &form;
  plant(*row);
  return OpTable::current().with(*row);
}
}  // namespace

PlantedRow::PlantedRow(const Op& right, void (*plant)(Op& row), std::string_view ending)
    : id_(right.id),
      before_(live_bug.right),
      counted_before_(live_bug.counted),
      table_(table_with(right, plant, ending)),
      pinned_(table_) {}
PlantedRow::~PlantedRow() { live_bug.right = before_, live_bug.counted = counted_before_; }

int PlantedRow::cases_until_seen(const Law& law, int most) const {
  for (int i = 0; i < most; ++i) {
    Choices words = choices_of(1, law, row(), uint64_t(i));
    if (!words.empty()) words[0] &= (1u << 26) - 1;  // NOTE: [guarded cases]: guards would see it, too
    if (run_check(law, row(), words).kind == Verdict::Fail) return i + 1;
  }
  return 0;
}

static std::vector<Calibration>& all_calibrations() {
  static std::vector<Calibration> all = [] {
    std::vector<Calibration> list;  // those that take longest at the end
    add_compare_calibrations(list);
    add_record_calibrations(list);
    add_verdict_calibrations(list);
    add_count_calibrations(list);
    add_oracle_calibrations(list);
    add_gradcheck_calibrations(list);
    add_law_calibrations(list);
    add_mutant_calibrations(list);
    add_worker_calibrations(list);
    add_draw_calibrations(list);
    add_reduce_calibrations(list);
    add_process_calibrations(list);
    return list;
  }();
  return all;
}

const std::vector<Calibration>& calibrations() { return all_calibrations(); }

void add_calibrations(const std::vector<Calibration>& of_leaf) {
  all_calibrations().insert(all_calibrations().end(), of_leaf.begin(), of_leaf.end());
}

}  // namespace lamella::verify
