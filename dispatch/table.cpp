// Building rows from definitions, and publishing snapshots.
#include "lamella/dispatch/table.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <set>
#include <utility>

#include "lamella/core/yield.h"
#include "lamella/dispatch/bind.h"
#include "lamella/dispatch/call.h"
#include "lamella/dispatch/cells.h"
#include "lamella/dispatch/validate.h"

namespace lamella {

namespace detail {
std::atomic<const OpTable*> published_table{nullptr};

namespace {
RegisterAll register_builtin = nullptr;
std::vector<RegisterAll>& registered_above() {  // by static initialisers of other files, in any order
  static std::vector<RegisterAll> all;
  return all;
}
std::recursive_mutex table_mutex;
OpTable* under_construction = nullptr;  // while the built-in operators are added
std::atomic<size_t> built_in_rows{0};   // their number
thread_local constinit std::string_view current_origin;
std::vector<ClaimedKey>& claimed() {
  static std::vector<ClaimedKey> all = {
      {Device::CPU, "cpu", ""}, {Device::Reference, "reference", ""}, {Device::Meta, "meta", ""}};
  return all;
}

void index_params(Op& op) {
  op.tensor_params.clear();
  op.arity = uint8_t(op.schema.params.size());
  op.simple = true;
  op.takes_functions = false;
  op.device_param = -1;
  for (size_t i = 0; i < op.schema.params.size(); ++i) {
    const ParamKind kind = op.schema.params[i].kind;
    if (kind == ParamKind::Device) op.device_param = int8_t(i), op.properties |= kNamesDevice;
    if (kind == ParamKind::Function) op.takes_functions = true;
    if (kind == ParamKind::TensorList || kind == ParamKind::Function) op.simple = false;
    if (kind == ParamKind::Tensor || kind == ParamKind::TensorList) op.tensor_params.push_back(uint8_t(i));
  }
  const size_t n = op.tensor_params.size();
  const bool leading = n >= 1 && n <= kMaxStraight && op.tensor_params[n - 1] == n - 1 &&
                       op.schema.params.size() <= kMaxStraightArity;
  const bool plain = op.simple && !op.batch && !op.composite && !(op.properties & (kRandom | kAmbient));
  op.straight = op.shape == ShapeClass::Broadcast && leading && plain ? uint8_t(n) : 0;
}

std::unique_ptr<Op> build_row(const OpDef& def, const KeyDefaults& defaults) {
  auto op = std::make_unique<Op>();
  op->schema = parse_schema(def.schema.value);
  op->name = op->schema.name;
  op->base = op.get();
  op->shape = def.shape.value;
  op->infer = def.infer;
  op->kernel = def.kernel;
  op->launch = def.launch;
  op->view = op->edit_of = def.view;
  op->edit = def.edit;
  op->composite = def.composite;
  op->batch = def.batch;
  op->properties = def.properties;
  op->at_kinks = def.at_kinks;
  op->samples = def.samples.value;
  op->doc = def.doc.value;
  op->promises = def.promises;
  op->overflows_in = def.overflows_in;
  op->numerics = def.numerics;
  op->no_jvp = def.jvp.absent;
  op->no_vjp = def.vjp.absent;
  LAMELLA_CHECK(op->has(kKinks) == (op->at_kinks != AtKinks::Unstated), Schema,
                "{}: an operator states `at_kinks` if it has kKinks, and only then", op->name);
  index_params(*op);
  if (op->takes_functions) std::swap(op->composite, op->body);
  op->jvp = bind(*op, def.jvp);
  op->vjp = bind(*op, def.vjp);
  op->origin = current_origin;
  const ClassHooks& hooks = installed_class_hooks();
  validate(*op, hooks.gives_one && hooks.gives_one(*op));
  if (hooks.probe_lines) hooks.probe_lines(*op);
  fill_cells(*op, defaults);
  return op;
}

std::unique_ptr<Op> build_form(const Op& base, OpForm form, const KeyDefaults& defaults) {
  auto op = std::make_unique<Op>(base);
  op->form = form;
  op->base = &base;
  op->rules_of_types.clear();  // it runs its base
  op->schema.returns_alias = true;
  if (form == OpForm::InPlace) {
    op->schema.name += "_";
    op->schema.params[0].mutated = true;
  } else {
    op->schema.name += "_out";
    Param out;
    out.name = "out";
    out.mutated = true;
    op->schema.params.insert(op->schema.params.begin(), out);
  }
  op->name = op->schema.name;
  LAMELLA_CHECK(op->schema.params.size() <= kMaxArity, Schema,
                "{}: got {} parameters with out, expected at most {}: state kNoOut, or take fewer", base.name,
                op->schema.params.size(), kMaxArity);
  index_params(*op);
  fill_cells(*op, defaults);
  return op;
}

bool single_result(const Op& op) {
  return op.schema.result_kind == ResultKind::Tensors && op.schema.n_results == 1 && !op.schema.returns_alias;
}
std::string role_str(const Op& op) {
  return op.form == OpForm::Functional ? "an operator of its own" : format("a form of {}", op.base->name);
}
bool same_kinds(const Schema& a, const Schema& b) {
  const auto same = [](const Param& p, const Param& q) {
    return p.kind == q.kind && p.optional == q.optional && p.mutated == q.mutated;
  };
  return a.result_kind == b.result_kind && a.n_results == b.n_results && a.returns_alias == b.returns_alias &&
         std::ranges::equal(a.params, b.params, same);
}
bool has_in_place(const Op& op) {
  return single_result(op) && !op.has(kNoInPlace) && !op.schema.params.empty() &&
         op.schema.params[0].kind == ParamKind::Tensor && !op.schema.params[0].optional;
}
}  // namespace

std::string origin_str(std::string_view origin) {
  return origin.empty() ? std::string("the library") : format("plug-in \"{}\"", origin);
}
bool is_under_construction(const OpTable& table) { return &table == under_construction; }
std::string_view origin_now() { return current_origin; }
bool is_claimed(Device device) { return std::ranges::count(claimed(), device, &ClaimedKey::device) > 0; }

const OpTable& first_table() {
  std::lock_guard lock(table_mutex);
  if (const OpTable* t = published_table.load(std::memory_order_acquire)) return *t;
  LAMELLA_ASSERT(register_builtin);
  if (under_construction) return *under_construction;
  const ScopedOrigin as_library("");  // also where a plug-in is the first to ask
  under_construction = new OpTable;
  try {
    register_builtin();
    for (const RegisterAll more : registered_above()) more();
  } catch (...) {
    under_construction = nullptr;  // the next call begins anew, and says the same
    throw;
  }
  OpTable* built = under_construction;
  under_construction = nullptr;
  built_in_rows = built->size();
  published_table.store(built, std::memory_order_release);
  return *built;
}
}  // namespace detail

class TableBuilder {
 public:
  static const Op& append(OpTable& table, std::unique_ptr<Op> op) {
    const auto [it, fresh] = table.own_names().try_emplace(op->name, uint32_t(table.rows_.size()));
    LAMELLA_CHECK(fresh, Schema, "{}: {} defines it, and {} has an operator of this name; expected a new one",
                  op->name, detail::origin_str(op->origin),
                  detail::origin_str(table.rows_[it->second]->origin));
    op->id = it->second;
    table.rows_.push_back(op.get());
    return *op.release();
  }
  /// All of its forms or none of them.
  static void append_all(OpTable& table, const OpDef& def) {
    const size_t before = table.rows_.size();
    try {
      append_forms(table, def);
    } catch (...) {
      for (; table.rows_.size() > before; table.rows_.pop_back()) {
        table.own_names().erase(table.rows_.back()->name);
        delete table.rows_.back();
      }
      throw;
    }
  }
  static void append_forms(OpTable& table, const OpDef& def) {
    const Op& base = append(table, detail::build_row(def, table.defaults_));
    if (detail::has_in_place(base)) append(table, detail::build_form(base, OpForm::InPlace, table.defaults_));
    if (detail::single_result(base) && !base.has(kNoOut))
      append(table, detail::build_form(base, OpForm::Out, table.defaults_));
  }
  static std::vector<Column> without_short_ways(std::vector<Column> columns) {
    for (Column& c : columns) {
      const auto is_short = [](const Alternative& a) { return a.is_short_way(); };
      if (c.now().is_short_way()) c.chosen = 0;
      const auto before = c.alternatives.begin();
      c.chosen -= size_t(std::count_if(before, before + ptrdiff_t(c.chosen), is_short));
      std::erase_if(c.alternatives, is_short);
    }
    return columns;
  }
  /// Handles know the id: what was a form stays one, of the same operator, and typed functions and the
  /// library's own calls hand over what a built-in operator's schema said when they were compiled.
  static void check_fits(const Op& op, const Op& before) {
    LAMELLA_CHECK(op.form == before.form && (op.base == &op || op.base->id == before.base->id), Schema,
                  "{}: it would be {} where {} has {}; expected another name", op.name, detail::role_str(op),
                  detail::origin_str(before.origin), detail::role_str(before));
    LAMELLA_CHECK(before.id >= detail::built_in_rows || detail::same_kinds(op.schema, before.schema), Schema,
                  "{}: its schema {} is replaced by {}, and compiled calls hand over what it says; expected "
                  "parameters and results of these kinds",
                  op.name, str(before.schema), str(op.schema));
  }
  /// In the place of the row of that name, also of one that is gone: handles know its id.
  static const Op& put(OpTable& table, std::unique_ptr<Op> op) {
    const auto it = std::ranges::find(table.rows_, op->name, &Op::name);
    if (it == table.rows_.end()) return append(table, std::move(op));
    check_fits(*op, **it);
    const std::string_view theirs = (*it)->origin;
    LAMELLA_CHECK(theirs.empty() || op->origin.empty() || theirs == op->origin, Schema,
                  "{}: {} replaces it, and so has {}; expected one of them alone", op->name,
                  detail::origin_str(op->origin), detail::origin_str(theirs));
    op->id = (*it)->id;
    const Op& before = **it;
    if (op->form == OpForm::Functional && !(before.columns.empty() && before.rules_of_types.empty())) {
      op->columns = without_short_ways(before.columns);
      op->rules_of_types = before.rules_of_types;
      LAMELLA_CHECK(op->rules_of_types.empty() || str(op->schema) == str(before.schema), Schema,
                    "{}: its schema is replaced by {}, and types have rules for it; expected {}", op->name,
                    str(op->schema), str(before.schema));
      fit_columns(*op);
      fill_cells(*op, table.defaults_);
      fit_rules(*op, table.defaults_);
    }
    return put_at(table, std::move(op));
  }
  /// The key of a name views the row's own.
  static const Op& put_at(OpTable& table, std::unique_ptr<Op> op) {
    table.own_names().erase(op->name);
    table.own_names()[op->name] = op->id;
    table.rows_[op->id] = op.get();
    return *op.release();
  }
  /// The form of `base`, or, where it has none any more, nothing under the name that the old one had: a
  /// handle to it finds a row that serves no key.
  static void put_form(OpTable& table, const Op& base, OpForm form, bool has_it) {
    if (has_it) return void(put(table, detail::build_form(base, form, table.defaults_)));
    const std::string name = base.name + (form == OpForm::InPlace ? "_" : "_out");
    const auto it = std::ranges::find(table.rows_, name, &Op::name);
    if (it == table.rows_.end() || (*it)->form != form || (*it)->base->id != base.id) return;
    auto* const gone = new Op(**it);
    gone->base = &base;
    empty_cells(*gone);
    table.own_names().erase(name);
    *it = gone;
  }
};

OpTable::Names& OpTable::own_names() {
  if (by_name_.use_count() > 1) by_name_ = std::make_shared<Names>(*by_name_);
  return *by_name_;
}

const Op* OpTable::find(std::string_view name) const {
  const auto it = by_name_->find(name);
  return it == by_name_->end() ? nullptr : rows_[it->second];
}

const OpTable* OpTable::with(const Op& row) const {
  auto* next = new OpTable(*this);
  next->made_of_ = nullptr;
  LAMELLA_ASSERT(row.id < next->rows_.size());
  next->rows_[row.id] = &row;
  if (row.form != OpForm::Functional) return next;
  for (const Op*& other : next->rows_) {  // the forms follow their base
    if (other->form == OpForm::Functional || other->base->id != row.id) continue;
    auto* form = new Op(*other);
    form->base = &row;
    other = form;
  }
  return next;
}

OpTable OpTable::with_each(const std::function<const Op*(const Op&)>& change) const {
  OpTable next = *this;
  for (const Op*& row : next.rows_)
    if (const Op* const other = change(*row)) row = other;
  return next;
}

void OpTable::publish(const OpTable* next) { detail::published_table.store(next, std::memory_order_release); }

void OpTable::publish_made(std::unique_ptr<OpTable> next, const OpTable& of) {
  next->made_of_ = &of;
  detail::yield_point();
  publish(next.release());
}

void OpTable::publish_changed(const std::function<void(OpTable&)>& change) {
  std::lock_guard lock(detail::table_mutex);
  if (detail::under_construction) {
    detail::yield_point();
    return change(*detail::under_construction);
  }
  const OpTable& now = detail::first_table();
  auto next = std::make_unique<OpTable>(now);
  change(*next);
  publish_made(std::move(next), now);
}

void OpTable::add(const OpDef& def) {
  publish_changed([&](OpTable& next) { TableBuilder::append_all(next, def); });
}

void OpTable::replace(const OpDef& def) {
  publish_changed([&](OpTable& next) {
    const Op& base = TableBuilder::put(next, detail::build_row(def, next.defaults_));
    TableBuilder::put_form(next, base, OpForm::InPlace, detail::has_in_place(base));
    TableBuilder::put_form(next, base, OpForm::Out, detail::single_result(base) && !base.has(kNoOut));
  });
}

void OpTable::add_column(Device device, std::string_view name) {
  std::lock_guard lock(detail::table_mutex);
  LAMELLA_CHECK(device == Device::User0 || device == Device::User1, Schema,
                "column \"{}\": got the key {}, expected user0 or user1", name, lamella::name(device));
  LAMELLA_CHECK(!name.empty(), Schema, "column: {} gets no name; expected one", lamella::name(device));
  for (const ClaimedKey& c : detail::claimed())
    LAMELLA_CHECK(
        c.device != device && c.name != name, Schema,
        "column \"{}\": {} takes the key {}, and {} has taken {} for \"{}\"; expected another key and "
        "name",
        name, detail::origin_str(detail::current_origin), lamella::name(device), detail::origin_str(c.origin),
        lamella::name(c.device), c.name);
  static std::deque<std::string> names;  // views of them are handed out
  detail::claimed().push_back({device, names.emplace_back(name), detail::current_origin});
}

void OpTable::add_device(Device device, const DeviceHooks& hooks) {
  LAMELLA_CHECK(
      hooks.allocate && hooks.free && hooks.copy_to && hooks.copy_from && hooks.copy_within, Schema,
      "add_device: hooks of {} lack allocate, free, copy_to, copy_from or copy_within; expected all "
      "five",
      lamella::name(device));
  add_column(device, lamella::name(device));
  detail::set_device_hooks(device, hooks);
}

std::vector<ClaimedKey> claimed_keys() {
  std::lock_guard lock(detail::table_mutex);
  return detail::claimed();
}

ScopedOrigin::ScopedOrigin(std::string_view origin) : saved_(std::exchange(detail::current_origin, origin)) {}
ScopedOrigin::~ScopedOrigin() { detail::current_origin = saved_; }

void OpTable::take_back(const OpTable* base) {
  std::lock_guard lock(detail::table_mutex);
  std::vector<const OpTable*> made;
  for (const OpTable* t = &detail::first_table(); t != base; t = t->made_of_) {
    LAMELLA_CHECK(t, Usage, "take_back: the published table was not made of this one by add and replace");
    made.push_back(t);
  }
  publish(base);
  std::set<const Op*> rows;
  for (const OpTable* t : made) {
    for (size_t id = 0; id < t->rows_.size(); ++id)
      if (id >= base->rows_.size() || t->rows_[id] != base->rows_[id]) rows.insert(t->rows_[id]);
    delete t;
  }
  for (const Op* row : rows) delete row;
}

void set_builtin_operators(RegisterAll register_all) { detail::register_builtin = register_all; }
void add_builtin_operators(RegisterAll more) {
  // Another static initialiser may have asked for the table already.
  if (detail::published_table.load(std::memory_order_acquire)) more();
  else detail::registered_above().push_back(more);
}

std::string_view name(ShapeClass c) {
  static constexpr std::string_view kNames[] = {"broadcast", "reduce",  "along_dim", "contract",
                                                "view",      "index",   "linalg",    "factory",
                                                "random",    "dynamic", "composite", "other"};
  return kNames[int(c)];
}

namespace detail {
/// A copy that can be called, for files that know this header's declaration alone: the definition is inline
/// in call.h, where calls are.
extern const OpTable& (*const current_table)();
const OpTable& (*const current_table)() = &OpTable::current;
}  // namespace detail

}  // namespace lamella
