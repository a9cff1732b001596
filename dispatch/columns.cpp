// Registering for single keys: alternatives of a column, cells of classes, fallbacks.
#include <algorithm>

#include "lamella/dispatch/bind.h"
#include "lamella/dispatch/call.h"
#include "lamella/dispatch/validate.h"

namespace lamella {

namespace detail {
bool is_under_construction(const OpTable& table);  // table.cpp
}

namespace {

constexpr std::string_view kBuiltIn = "built_in";

bool is_device(int key) { return key >= 0 && kBackendKeys.has(key); }

void check_key(std::string_view what, int key, int end) {
  LAMELLA_CHECK(key >= 0 && key<end, Schema, "{}: key = {}, expected 0 to {}: a device, a layout or a type{}",
                                what, key, end - 1, end>
                                kAutogradKey
                    ? ", or base autograd"
                    : "");
}

/// What serves all operators of a device that nobody has would serve whoever takes its key.
void check_claimed(std::string_view what, int key) {
  LAMELLA_CHECK(!is_device(key) || detail::is_claimed(Device(key)), Schema,
                "{}: {}, which no column has taken; expected add_column or add_device first", what,
                Argument{"key", key_name(key)});
}

std::string names_of(const Column& column) {
  std::string out;
  for (const Alternative& a : column.alternatives) out += (out.empty() ? "" : ", ") + a.name;
  return out;
}

void check_alternative(const Op& op, int key, const Alternative& a) {
  LAMELLA_CHECK(!is_device(key) || detail::is_claimed(Device(key)), Schema,
                "{}: the cell \"{}\" is for {}, which no column has taken; expected add_column first",
                op.name, a.name, key_name(key));
  LAMELLA_CHECK(!a.name.empty(), Schema, "{}: an alternative for {} has no name", op.name, key_name(key));
  LAMELLA_CHECK(
      a.name != kBuiltIn, Schema,
      "{}: an alternative for {} is named \"{}\", as what the library has there; expected another name",
      op.name, key_name(key), a.name);
  LAMELLA_CHECK(!a.cell != !a.kernel, Schema,
                "{}: alternative \"{}\" for {} has {}; expected a cell or a kernel", op.name, a.name,
                key_name(key), a.cell ? "both a cell and a kernel" : "neither a cell nor a kernel");
  if (a.cell) return;
  LAMELLA_CHECK(
      is_device(key) && Device(key) != Device::Meta, Schema,
      "{}: alternative \"{}\" is a kernel for {}; expected a cell, or the key of a device with memory",
      op.name, a.name, key_name(key));
  LAMELLA_CHECK(!op.view && !op.body && (!op.composite || op.infer), Schema,
                "{}: alternative \"{}\" for {} is a kernel, but the operator {}; expected a cell", op.name,
                a.name, key_name(key),
                op.view   ? "is a view"
                : op.body ? "calls functions"
                          : "is a composite that states no shapes");
}

/// What stands in for one that varies gives the same bits each time, and is there.
void check_instead(const Op& op, int key, const Alternative& a) {
  LAMELLA_CHECK(a.varies || a.instead.empty(), Schema,
                "{}: alternative \"{}\" for {} names another one instead; expected one that varies", op.name,
                a.name, key_name(key));
  LAMELLA_CHECK(!a.varies || key < kAutogradKey, Schema,
                "{}: alternative \"{}\" for {} varies; expected a key below it", op.name, a.name,
                key_name(key));
  if (a.instead.empty() || a.instead == kBuiltIn) return;
  const Column* const column = op.column(key);
  const bool there = column && std::ranges::any_of(column->alternatives, [&](const Alternative& other) {
                       return other.name == a.instead && !other.varies;
                     });
  LAMELLA_CHECK(
      there, Schema,
      "{}: alternative \"{}\" for {} names \"{}\" instead; expected one of the column that does not "
      "vary",
      op.name, a.name, key_name(key), a.instead);
}

/// Alternatives of the library and of one plug-in share a column, whichever comes first; those of two
/// plug-ins are refused, and so is a name that is there.
void check_free(const Op& op, int key, const Alternative& a) {
  const Column* const column = op.column(key);
  for (size_t k = 1; column && k < column->alternatives.size(); ++k) {
    const Alternative& theirs = column->alternatives[k];
    if (theirs.is_short_way()) continue;
    const std::string_view mine = detail::origin_now();
    const bool shared = theirs.from.empty() || mine.empty() || theirs.from == mine;
    LAMELLA_CHECK(shared && theirs.name != a.name, Schema,
                  "{}: {} sets its cell for {} to \"{}\", and {} has set it to \"{}\"; expected one of them",
                  op.name, detail::origin_str(detail::origin_now()), key_name(key), a.name,
                  detail::origin_str(theirs.from), theirs.name);
  }
}

Column& column_of(Op& op, int key) {
  for (Column& c : op.columns)
    if (c.key == key) return c;
  Column fresh{key, {}, 0};
  fresh.alternatives.push_back({.name = std::string(kBuiltIn)});
  return op.columns.emplace_back(std::move(fresh));
}

}  // namespace

/// Straight runs are of the library's own.
void take_kernels(Op& op) {
  if (!op.library) return;
  op.kernel = *op.library;
  for (const Column& c : op.columns) {
    if (c.chosen == 0 || !c.now().kernel) continue;
    op.kernel.set(Device(c.key), c.now().kernel);
    if (Device(c.key) == Device::CPU) op.kernel.lines = {};
  }
}

void fit_rules(Op& op, const KeyDefaults& defaults) {
  for (RulesOfType& rules : op.rules_of_types) {
    auto row = std::make_shared<Op>(op);
    row->jvp = rules.row->jvp, row->vjp = rules.row->vjp;
    row->no_jvp = rules.row->no_jvp, row->no_vjp = rules.row->no_vjp;
    row->rules_of_types.clear();
    fill_cells(*row, defaults);
    rules.row = std::move(row);
  }
}

void fit_columns(Op& op) {
  op.library = std::make_shared<const Kernels>(op.kernel);
  take_kernels(op);
}

void OpTable::renew(uint32_t id, const std::function<void(Op&)>& edit) {
  // The key of a name views the row's own. Rows of a table that nobody has seen go; others stay for good.
  const auto put = [this](const Op*& row, const Op* by) {
    const Op* const before = row;
    row = by;
    if (!detail::is_under_construction(*this)) return;
    if (own_names().erase(before->name)) own_names()[by->name] = by->id;
    delete before;
  };
  auto base = std::make_unique<Op>(*rows_[id]);
  base->base = base.get();
  edit(*base);
  take_kernels(*base);
  fill_cells(*base, defaults_);
  fit_rules(*base, defaults_);
  for (const Op*& other : rows_) {
    if (other->form == OpForm::Functional || other->base->id != id) continue;
    auto* const form = new Op(*other);
    form->base = base.get();
    form->columns = base->columns;
    form->rules_of_types.clear();  // it runs its base
    form->kernel = base->kernel;
    if (find(other->name) == other) fill_cells(*form, defaults_);  // else a form that is gone
    put(other, form);
  }
  put(rows_[id], base.release());
}

void OpTable::set(std::string_view name, int key, Alternative alternative) {
  check_key("OpTable::set", key, kAutogradKey + 1);
  publish_changed([&](OpTable& next) {
    const Op* const op = next.find(name);
    LAMELLA_CHECK(op, UnknownOperator,
                  "OpTable::set: there is no operator \"{}\"; expected one that `lamella ops` lists", name);
    LAMELLA_CHECK(op->form == OpForm::Functional, Schema,
                  "OpTable::set: {} is a form of {}; register for that, its forms write what it gives", name,
                  op->base->name);
    check_alternative(*op, key, alternative);
    check_instead(*op, key, alternative);
    check_free(*op, key, alternative);
    next.renew(op->id, [&](Op& row) {
      if (!row.library) row.library = std::make_shared<const Kernels>(row.kernel);
      Column& column = column_of(row, key);
      alternative.from = detail::origin_now();
      column.alternatives.push_back(std::move(alternative));
      column.chosen = column.alternatives.size() - 1;
    });
  });
}

void OpTable::choose(std::string_view name, int key, std::string_view alternative) {
  check_key("OpTable::choose", key, kAutogradKey + 1);
  publish_changed([&](OpTable& next) {
    const Op* const op = next.find(name);
    LAMELLA_CHECK(op, UnknownOperator,
                  "OpTable::choose: there is no operator \"{}\"; expected one that `lamella ops` lists",
                  name);
    const Column* const column = op->column(key);
    LAMELLA_CHECK(column, Schema, "{}: {} has no alternatives, got \"{}\"; expected built_in", op->name,
                  key_name(key), alternative);
    const auto at = std::ranges::find(column->alternatives, alternative, &Alternative::name);
    LAMELLA_CHECK(at != column->alternatives.end(), Schema,
                  "{}: {} has no alternative \"{}\"; expected one of {}", op->name, key_name(key),
                  alternative, names_of(*column));
    const auto index = size_t(at - column->alternatives.begin());
    next.renew(op->id, [&](Op& row) { column_of(row, key).chosen = index; });
  });
}

void OpTable::set_rules(std::string_view name, int key, const Rules& jvp, const Rules& vjp) {
  LAMELLA_CHECK(key >= kFirstTypeKey && key < kAutogradKey, Schema,
                "OpTable::set_rules: key = {}, expected {} to {}: a type", key, kFirstTypeKey,
                kAutogradKey - 1);
  publish_changed([&](OpTable& next) {
    const Op* const op = next.find(name);
    LAMELLA_CHECK(op, UnknownOperator,
                  "OpTable::set_rules: there is no operator \"{}\"; expected one that `lamella ops` lists",
                  name);
    LAMELLA_CHECK(op->form == OpForm::Functional && !op->composite && !op->body, Schema,
                  "OpTable::set_rules: {} is {}; expected an operator that has derivative rules", name,
                  op->form != OpForm::Functional ? "a form"
                  : op->body                     ? "one of functions"
                                                 : "a composite");
    for (const RulesOfType& r : op->rules_of_types)
      LAMELLA_CHECK(r.key != key, Schema,
                    "{}: {} sets its rules for {}, and {} has set them; expected one of them", name,
                    detail::origin_str(detail::origin_now()), key_name(key), detail::origin_str(r.from));
    auto row = std::make_shared<Op>(*op);
    row->jvp = bind(*op, jvp), row->vjp = bind(*op, vjp);
    row->no_jvp = jvp.absent, row->no_vjp = vjp.absent;
    validate(*row, false);
    next.renew(op->id, [&](Op& base) {
      base.rules_of_types.push_back({key, std::move(row), detail::origin_now()});
      std::ranges::sort(base.rules_of_types, std::greater(), &RulesOfType::key);
    });
  });
}

void OpTable::refill() {
  for (uint32_t id = 0; id < rows_.size(); ++id)
    if (rows_[id]->form == OpForm::Functional) renew(id, [](Op&) {});
}

void OpTable::set_fallback(int key, Cell cell) {
  check_key("OpTable::set_fallback", key, kAutogradKey);
  publish_changed([&](OpTable& next) {
    check_claimed("OpTable::set_fallback", key);
    LAMELLA_CHECK(
        !next.defaults_.fallback[key] || (!cell && next.defaults_.fallback_from[key] == detail::origin_now()),
        Schema, "OpTable::set_fallback: {} sets the fallback of {}, and {} has set it; expected one of them",
        detail::origin_str(detail::origin_now()), Argument{"key", key_name(key)},
        detail::origin_str(next.defaults_.fallback_from[key]));
    next.defaults_.fallback[key] = cell;
    next.defaults_.fallback_from[key] = detail::origin_now();
    next.refill();
  });
}

void OpTable::set_class(ShapeClass shape, int key, Cell cell) {
  check_key("OpTable::set_class", key, kAutogradKey);
  LAMELLA_CHECK(shape <= ShapeClass::Other, Schema,
                "OpTable::set_class: shape = ShapeClass({}); expected one of broadcast to other", int(shape));
  LAMELLA_CHECK(cell, Schema, "OpTable::set_class: the cell of {} for class {} is null; expected a function",
                Argument{"key", key_name(key)}, lamella::name(shape));
  publish_changed([&](OpTable& next) {
    check_claimed("OpTable::set_class", key);
    for (const KeyDefaults::OfClass& c : next.defaults_.classes)
      LAMELLA_CHECK(
          c.key != key || c.shape != shape, Schema,
          "OpTable::set_class: {} sets the cell of {} for class {}, and {} has set it; expected one "
          "of them",
          detail::origin_str(detail::origin_now()), Argument{"key", key_name(key)}, lamella::name(shape),
          detail::origin_str(c.from));
    next.defaults_.classes.push_back({shape, key, cell, detail::origin_now()});
    next.refill();
  });
}

}  // namespace lamella
