// The law of definitions that replace others: of a name and its forms there is always the last one alone.
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {

constexpr std::string_view kDocs[] = {"as it was", "the first one", "the second one", "the third one"};
constexpr uint32_t kForms = kNoInPlace | kNoOut;

/// The row as a definition again, without derivatives, told from others by its doc. Its kernels are the
/// library's: a chosen alternative goes on to stand before them, and may call them.
OpDef definition_of(const Op& op, std::string_view schema, uint32_t properties, std::string_view doc) {
  return {.schema = schema,
          .shape = op.shape,
          .infer = op.infer,
          .kernel = op.library ? *op.library : op.kernel,
          .launch = op.launch,
          .view = op.view,
          .composite = op.composite,
          .jvp = not_differentiable("a copy of a row"),
          .vjp = not_differentiable("a copy of a row"),
          .batch = op.batch,
          .properties = properties,
          .at_kinks = op.at_kinks,
          .samples = op.samples,
          .doc = doc};
}

/// The published table; whatever is published meanwhile is gone at the end, with its rows.
class Published {
 public:
  Published() : before_(detail::published_table.load()) {}
  ~Published() {
    OpTable::publish(before_);
    std::set<const Op*> rows;
    for (const OpTable* t : made_) rows.insert(t->rows().begin(), t->rows().end());
    for (const Op* row : before_->rows()) rows.erase(row);
    for (const Op* row : rows) delete row;
    for (const OpTable* t : made_) delete t;
  }
  Published(const Published&) = delete;
  const OpTable& replace(const OpDef& def) {
    return changed([&] { OpTable::replace(def); });
  }
  const OpTable& changed(const std::function<void()>& change) {
    change();
    return **made_.insert(detail::published_table.load()).first;
  }

 private:
  const OpTable* before_;
  std::set<const OpTable*> made_;
};

/// What a map of names says: the name has this doc, these forms it has and no other.
struct Model {
  std::string name;
  std::string_view doc;
  bool in_place, out;
};

/// Empty when names, handles and rows of the table mean what the model says.
Finding unlike_model(const OpTable& table, const Model& m, const std::map<std::string, uint32_t>& ids) {
  const ScopedTable shown(&table);
  const Op* const base = table.find(m.name);
  if (!base || base->doc != m.doc)
    return format("{} is {}, expected {}", m.name, base ? base->doc : "gone", m.doc);
  for (const auto& [suffix, there] : {std::pair("_", m.in_place), std::pair("_out", m.out)}) {
    const std::string name = m.name + suffix;
    const Op* const form = table.find(name);
    if (bool(form) != there) return name + (form ? " is still there" : " is gone");
    if (form && (form->base != base || form->doc != m.doc)) return name + " is a form of another row";
  }
  for (const auto& [name, id] : ids) {
    const Op& row = table.row(id);  // what handles from before call
    const Op* const now = table.find(name);
    if (now && now != &row) return format("the handle of {} calls another row", name);
    if (!now && row.base != &row && row.base != base)
      return format("{} is gone, but its handle calls a form of {}", name, row.base->doc);
  }
  for (const Op* row : table.rows())
    if (row->base != table.rows()[row->base->id]) return format("{} has a base that is in no row", row->name);
  return "";
}

/// What the form leaves in a copy of its target, or raises.
Tensor written_by(const Op& form, const Case& c, const Tensor& result) {
  Values args = c.args;
  if (form.form == OpForm::Out) args.insert(args.begin(), plain_copy(result));
  else args[0] = plain_copy(std::get<Tensor>(args[0]));
  Tensor out;
  const Status s = status_of([&] { out = call_boxed(form, args)[0]; });
  return s.raised ? tensor_of({}, {double(s.code)}, DType::F64) : out;
}

constexpr int kHere = int(Device::CPU);
constexpr size_t kMostChoices = 3;
/// Which of the law's cells a call has come to; -1: none.
thread_local int cell_that_ran = -1;
template <int Which> void numbered_cell(Frame& f, int key) {
  cell_that_ran = Which;
  call_built_in(f, key);
}
constexpr Cell kCells[kMostChoices] = {numbered_cell<0>, numbered_cell<1>, numbered_cell<2>};
constexpr const char* kCellNames[kMostChoices + 1] = {"cell0", "cell1", "cell2", "built_in"};

int cell_of_call(const OpTable& table, const Case& c) {
  const ScopedTable shown(&table);
  cell_that_ran = -1;
  call_boxed(*table.find(c.op.name), c.args);
  return cell_that_ran;
}

/// Of several cells that were set, calls of the row that replaces another run the one that was chosen before,
/// or what the library has: where that was chosen, and where a short way was, which was for the old row.
Finding choice_lost(Case& c, Published& published, const OpDef& by) {
  const size_t n = 1 + c.draw.below(uint32_t(kMostChoices));
  bool is_short[kMostChoices + 1] = {};
  std::string log = " of";
  for (size_t k = 0; k < n; ++k) {
    is_short[k] = c.draw.flag();
    published.changed([&] {
      OpTable::set(c.op.name, kHere, {.name = kCellNames[k], .cell = kCells[k], .asks_itself = is_short[k]});
    });
    log += format(" {}{}", kCellNames[k], is_short[k] ? " (a short way)" : "");
  }
  const size_t drawn = c.draw.below(uint32_t(n + 1)), chosen = drawn < n ? drawn : kMostChoices;
  const char* const name = kCellNames[chosen];
  const OpTable& before = published.changed([&] { OpTable::choose(c.op.name, kHere, name); });
  const OpTable& after = published.replace(by);
  const bool kept = chosen < n && !is_short[chosen];
  const std::string want = kept ? name : "built_in";
  const Column* const column = after.find(c.op.name)->column(kHere);
  if (!column || column->now().name != want)
    return format("{} is chosen, expected {}: {} was{}", column ? column->now().name : "nothing", want, name,
                  log);
  if (cell_of_call(before, c) < 0 && kept) return "";  // this call does not come to the CPU
  const int ran = cell_of_call(after, c), expected = kept ? int(chosen) : -1;
  return ran == expected ? "" : format("cell {} ran, expected {}: {} was chosen{}", ran, expected, name, log);
}

Verdict replaced_rows_are_alone(Case& c) {
  const std::string schema = str(c.op.schema);  // a copy of names is taken of it
  const OpTable& first = OpTable::current();
  std::map<std::string, uint32_t> ids;
  std::map<std::string, Tensor> written;
  const Tensor result = call_boxed(c.op, c.args)[0];
  for (const char* suffix : {"", "_", "_out"})
    if (const Op* row = first.find(c.op.name + suffix)) {
      ids[row->name] = row->id;
      if (row->form != OpForm::Functional) written[row->name] = written_by(*row, c, result);
    }
  const bool may_in_place = ids.contains(c.op.name + "_"), may_out = ids.contains(c.op.name + "_out");
  Published published;
  const uint32_t steps = 1 + c.draw.below(4);
  std::string log;
  for (uint32_t k = 0; k < steps; ++k) {
    const uint32_t lacking = c.draw.below(4);
    uint32_t properties = c.op.properties & ~kForms;
    if (!may_in_place || lacking & 1) properties |= kNoInPlace;
    if (!may_out || lacking & 2) properties |= kNoOut;
    const Model model{c.op.name, kDocs[1 + k % 3], !(properties & kNoInPlace), !(properties & kNoOut)};
    const OpTable& table = published.replace(definition_of(c.op, schema, properties, model.doc));
    log += format("{}replaced {} in place and {} out=", k ? ", then " : "",
                  model.in_place ? "with" : "without", model.out ? "with" : "without");
    Finding wrong = unlike_model(table, model, ids);
    for (const auto& [name, want] : written)
      if (const Op* form = wrong.empty() ? table.find(name) : nullptr) {
        const ScopedTable shown(&table);
        wrong = differs(written_by(*form, c, result), want);
      }
    if (!wrong.empty()) return Verdict::fail(wrong + " after it was " + log, "  // " + log + "\n");
  }
  if (!c.draw.one_in(3)) return Verdict::pass();
  const uint32_t kept = c.op.properties, no_out = may_out ? 0 : uint32_t(kNoOut);
  const uint32_t properties = kept | no_out | (may_in_place ? 0 : uint32_t(kNoInPlace));
  const Finding lost = choice_lost(c, published, definition_of(c.op, schema, properties, kDocs[0]));
  if (lost.empty()) return Verdict::pass();
  return Verdict::fail("after another replacement " + lost, "  // " + lost.text() + "\n");
}

bool has_forms(const Op& op) {
  const OpTable& table = OpTable::current();
  return !op.takes_functions && !op.has(kRandom) &&
         (table.find(op.name + "_") || table.find(op.name + "_out"));
}

}  // namespace

void add_replaced_laws(std::vector<Law>& laws) {
  laws.push_back(
      {145,
       "replaced_rows_are_alone",
       "dispatch",
       "After a definition replaces another, names and handles mean it and its forms, and no form of "
       "another one; of cells that were set for it the chosen one stays so.",
       {.tame = true, .max_numel = 4},
       false,
       has_forms,
       replaced_rows_are_alone});
}

}  // namespace lamella::verify
