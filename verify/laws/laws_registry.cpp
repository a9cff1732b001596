// The law of the operator table: whatever was registered, pinned or taken back, calls run what a map says.
#include <map>
#include <memory>
#include <set>

#include "lamella/core/generator.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/pass_on.h"
#include "lamella/verify/case/series.h"

namespace lamella::verify {

namespace {

constexpr int kVersions = 4;

/// An operator whose rows are replaced, and which version ran last: -1 is the one there was.
struct Watched {
  const Op* op = nullptr;
  Values args;
  Cell cells[kKeyCount];
  int ran = -1;
};
thread_local Watched watched[2];

template <int Which, int Version> void version_cell(Frame& f, int key) {
  if (watched[Which].ran < 0) watched[Which].ran = Version;
  watched[Which].cells[key](f, key);
}
template <int Which> Cell cell_of(int version) {
  static constexpr Cell kCells[] = {version_cell<Which, 0>, version_cell<Which, 1>, version_cell<Which, 2>,
                                    version_cell<Which, 3>};
  return kCells[version];
}

/// A snapshot, and what the model says its names mean.
struct TableSnapshot {
  const OpTable* table;
  std::map<std::string, int> model;
};

/// What hides the published table: a pinned one, or a level, which pins the one it finds.
struct Scope {
  TableSnapshot shown;
  std::unique_ptr<ScopedTable> table;
  std::unique_ptr<PassOn> transform;
  std::unique_ptr<Level> level;
};

/// Everything that is made goes when the case ends, and the table that was published is so again.
class Registry {
 public:
  Registry() : published_before_(detail::published_table.load()), pinned_(dispatch_state().table) {
    TableSnapshot first{&OpTable::current(), {}};
    for (const Watched& w : watched) first.model[w.op->name] = -1;
    snapshots_.push_back(first);
    published_ = first;
  }
  ~Registry() {
    while (!scopes_.empty()) scopes_.pop_back();
    OpTable::publish(published_before_);
    std::set<const Op*> rows(mine_.begin(), mine_.end());
    for (size_t k = 1; k < snapshots_.size(); ++k) {
      rows.insert(snapshots_[k].table->rows().begin(), snapshots_[k].table->rows().end());
      delete snapshots_[k].table;
    }
    for (const Op* row : snapshots_[0].table->rows()) rows.erase(row);
    for (const Op* row : rows) delete row;
  }
  Registry(const Registry&) = delete;

  const TableSnapshot& shown() const {
    return !scopes_.empty() ? scopes_.back().shown : pinned_ ? snapshots_[0] : published_;
  }

  /// Registers another version of an operator: publishes a snapshot made from the one that is shown.
  void add(int which, int version) {
    const TableSnapshot from = shown();
    const Op& now = *from.table->find(watched[which].op->name);
    Op* row = new Op(now);
    mine_.push_back(row);
    row->base = row;
    for (int key = 0; key < kKeyCount; ++key)
      if ((kBackendKeys.bits >> key & 1) || row->composite)
        row->cells[key] = which ? cell_of<1>(version) : cell_of<0>(version);
    TableSnapshot next{from.table->with(*row), from.model};
    next.model[row->name] = version;
    snapshots_.push_back(next);
    publish(next);
  }
  const TableSnapshot& any(uint32_t w) const { return snapshots_[w % snapshots_.size()]; }
  void publish(const TableSnapshot& s) {
    OpTable::publish(s.table);
    published_ = s;
  }
  void pin(const TableSnapshot& s) { scopes_.push_back({s, std::make_unique<ScopedTable>(s.table), {}, {}}); }
  void enter() {
    Scope s{shown(), {}, std::make_unique<PassOn>(), {}};
    s.level = std::make_unique<Level>(*s.transform);
    scopes_.push_back(std::move(s));
  }
  void leave() {
    if (!scopes_.empty()) scopes_.pop_back();
  }
  bool room() const { return scopes_.size() < 4; }

 private:
  const OpTable *published_before_, *pinned_;
  std::vector<TableSnapshot> snapshots_;
  std::vector<const Op*> mine_;
  std::vector<Scope> scopes_;
  TableSnapshot published_;
};

/// Calls by name and by handle, and the forms: all must mean the version of the model.
Finding ask(const Registry& registry, int which) {
  Watched& w = watched[which];
  const int want = registry.shown().model.at(w.op->name);
  const Op* found = OpTable::current().find(w.op->name);
  if (found != &*OpHandle(w.op->name)) return "its name and its handle mean different rows";
  for (const char* suffix : {"_", "_out"})
    if (const Op* form = OpTable::current().find(w.op->name + suffix); form && form->base != found)
      return format("the form {} belongs to another row", form->name);
  w.ran = -1;
  call(w.op->name, w.args);
  return w.ran == want ? "" : format("version {} ran, expected {}", w.ran, want);
}

/// A cell that somebody sets has to give all results: the caller and levels take them as they are.
thread_local size_t left_out = 0;
thread_local bool came_to_cell = false;
void forgetful_cell(Frame& f, int key) {
  call_built_in(f, key);
  came_to_cell = true;
  f.results[left_out] = {};
}

/// Of calls whose cell leaves out one result, each in turn: refused, by the operator and the result.
Finding undefined_taken(const Case& c) {
  const ScopedTable published(nullptr);
  const OpTable* const before = &OpTable::current();
  OpTable::set(c.op.name, int(Device::CPU), {.name = "forgetful", .cell = forgetful_cell});
  Finding wrong;
  for (left_out = 0; left_out < size_t(c.op.schema.n_results) && wrong.empty(); ++left_out) {
    came_to_cell = false;
    const Status s = status_of([&] { call(c.op.name, c.args); });
    const std::string says = format("left result {} undefined", left_out);
    const bool refused = s.raised && s.code == ErrorCode::Undefined && s.text.starts_with(c.op.name + ": ") &&
                         s.text.find(says) != std::string::npos;
    if (came_to_cell && !refused)
      wrong = "a cell " + says + "; expected an error that says so, got " + str(s);
  }
  OpTable::take_back(before);
  return wrong;
}

bool gives_tensors(const Op& op) {
  return op.form == OpForm::Functional && op.schema.result_kind == ResultKind::Tensors &&
         op.schema.n_results > 0 && !op.takes_functions;
}

Verdict table_is_a_map(Case& c) {
  const std::vector<const Op*> all = all_operators();
  const Op& other = c.partner(all);
  watched[0].op = &c.op, watched[1].op = &other;
  watched[0].args = c.args;
  const Choices none;
  watched[1].args = Case(other, none, {.tame = true}).args;
  for (Watched& w : watched) {
    const Op& row = *OpTable::current().find(w.op->name);
    std::copy(std::begin(row.cells), std::end(row.cells), w.cells);
  }
  const int names = &other == &c.op ? 1 : 2;
  std::string log;
  Finding wrong;
  Generator generator(0);
  const ScopedGenerator own(generator);  // random operators are called too
  {
    Registry registry;
    const uint32_t steps = 2 + c.draw.below(10);
    for (uint32_t k = 0; k < steps && wrong.empty(); ++k) {
      const uint32_t w = c.draw.word();
      const int which = int(w >> 8) % names;
      switch (w % 7) {
        case 0:
        case 1:
          registry.add(which, int(w >> 12) % kVersions);
          log += format("{}register {}", log.empty() ? "" : ", ", watched[which].op->name);
          break;
        case 2: registry.publish(registry.any(w >> 12)), log += ", publish"; break;
        case 3:
          if (registry.room()) registry.pin(registry.any(w >> 12)), log += ", pin";
          break;
        case 4:
          if (registry.room()) registry.enter(), log += ", level";
          break;
        case 5: registry.leave(), log += ", leave"; break;
        default: break;
      }
      for (int which_one = 0; which_one < names && wrong.empty(); ++which_one)
        if (wrong = ask(registry, which_one); !wrong.empty())
          wrong = watched[which_one].op->name + ": " + wrong;
    }
  }
  for (Watched& w : watched) w.args.clear();
  if (wrong.empty() && gives_tensors(c.op) && (c.op.schema.n_results > 1 || c.draw.one_in(8)))
    wrong = undefined_taken(c);
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(wrong + " after " + log, "  // " + c.op.name + ": " + log + "\n", 1);
}

bool every_op(const Op&) { return true; }

}  // namespace

void add_registry_laws(std::vector<Law>& laws) {
  laws.push_back(
      {54,
       "table_is_a_map",
       "dispatch",
       "Rows registered, published, pinned and taken back: a call runs what a map of names says; a cell "
       "that leaves out a result is refused.",
       {.tame = true, .max_numel = 4},
       false,
       every_op,
       table_is_a_map});
}

}  // namespace lamella::verify
