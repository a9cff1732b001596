// The operator table: a value behind immutable snapshots. Readers take no lock; writers publish a new
// snapshot.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "lamella/core/device_hooks.h"
#include "lamella/dispatch/cells.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [snapshots] A snapshot is a vector of row pointers; adding or replacing copies the pointers and one
/// row. Rows and published snapshots are never freed (a snapshot costs 76 bytes an operator), so a call, a
/// tape or a trace may keep using the one it began with while another thread registers.
class OpTable {
 public:
  const Op& row(uint32_t id) const { return *rows_[id]; }
  size_t size() const { return rows_.size(); }
  const std::vector<const Op*>& rows() const { return rows_; }
  /// Null when there is none.
  const Op* find(std::string_view name) const;

  /// The published snapshot, or the one pinned by this thread.
  static const OpTable& current();
  /// Builds a snapshot from this one with `row` in the place of the row of the same id; not published.
  const OpTable* with(const Op& row) const;
  /// A copy of this table with changed rows: what `change` returns stands in the place of its argument, null
  /// leaves it. Forms keep their base. The rows' owner is the caller; not published.
  OpTable with_each(const std::function<const Op*(const Op&)>& change) const;
  /// Makes `next` what other threads see from their next call on.
  static void publish(const OpTable* next);

  /// Registers an operator and its in-place and out= forms. Thread-safe. Errors schema: malformed, what
  /// validate() refuses, a name that exists (then both origins are named).
  static void add(const OpDef& def);
  /// Replaces or adds one operator as `add` would, keeping its id and the cells that were set: experiments
  /// and mutants from plug-ins. Error schema besides: another plug-in has defined it, it is a form of another
  /// operator, or the library's and of other parameters or results, which compiled calls hand over.
  static void replace(const OpDef& def);
  /// Names a backend key: the column of kernels that a plug-in brings. Errors schema: not a key of users, no
  /// name, or a key or name that is taken (then both origins are named).
  static void add_column(Device device, std::string_view name);
  /// Names a backend key likewise and gives its device memory, for good: see NOTE: [devices]. Errors schema
  /// besides: hooks without allocate, free or one of the copies.
  static void add_device(Device device, const DeviceHooks& hooks);
  /// NOTE: [columns] Adds an alternative to an operator's column for a key below kLevelKeys and makes it what
  /// calls run. The first alternative of a column is what the library has there, under the name "built_in".
  /// In-place and out= forms write what it gives. Thread-safe, as `add`. Errors: unknown_operator; schema for
  /// a key that is no device, type or autograd, for neither a cell nor a kernel or both, a kernel for a key
  /// that is no device's or for an operator without a shape function, "built_in" and names that the column
  /// has already, a column that another plug-in has added to (naming both), and a device that no column has
  /// taken.
  static void set(std::string_view op, int key, Alternative alternative);
  /// Makes another alternative of a column what calls run. Errors: unknown_operator, schema (listing the
  /// names).
  static void choose(std::string_view op, int key, std::string_view alternative);
  /// Derivative rules for calls that have an argument of the type `key`, at whatever depth of levels: of a
  /// sparse operand the gradient may be sparse, say. Formulas name arguments as OpDef's do, and are written
  /// in operators, so they nest. Errors: unknown_operator; schema for a form or a composite, a key that is no
  /// type's, rules that the type has there already, and formulas that `add` would refuse.
  static void set_rules(std::string_view op, int key, const Rules& jvp, const Rules& vjp);
  /// What serves every operator that has nothing else for `key`; null: an error does. Error schema for a key
  /// that is no device's or type's, a device that no column has taken, and a key that has one already, or
  /// another's that null would take away.
  static void set_fallback(int key, Cell cell);
  /// What serves operators of a shape class that say nothing of `key` themselves. Errors as set_fallback;
  /// schema for a class that there is not and no cell.
  static void set_class(ShapeClass shape, int key, Cell cell);
  /// Publishes `base` again, and frees the snapshots and rows that add and replace have made of it since: for
  /// laws that register by the thousand. Nobody may be using one. Error usage: what is published was not made
  /// of `base` by these two.
  static void take_back(const OpTable* base);

 private:
  friend class TableBuilder;
  static void publish_made(std::unique_ptr<OpTable> next, const OpTable& of);
  /// A copy of the newest table, changed, is published; the built-in operators' table is changed in place.
  static void publish_changed(const std::function<void(OpTable& next)>& change);
  /// An edited copy of a functional row stands in its place, with its kernels, cells and forms made anew.
  void renew(uint32_t id, const std::function<void(Op&)>& edit);
  void refill();
  const OpTable* made_of_ = nullptr;  ///< by add and replace
  std::vector<const Op*> rows_;
  using Names = std::unordered_map<std::string_view, uint32_t>;
  /// For changes of a table that nobody else has yet: copies share their names until then.
  Names& own_names();
  std::shared_ptr<Names> by_name_ = std::make_shared<Names>();  ///< ids
  KeyDefaults defaults_;
};

/// A backend's key, taken by add_column.
struct ClaimedKey {
  Device device;
  std::string_view name, origin;
};
/// Those that are taken, the library's first.
std::vector<ClaimedKey> claimed_keys();

/// Whose definitions add, replace, set and add_column take meanwhile; "" is the library. `origin` must live
/// for good. On this thread.
class ScopedOrigin {
 public:
  explicit ScopedOrigin(std::string_view origin);
  ~ScopedOrigin();
  ScopedOrigin(const ScopedOrigin&) = delete;

 private:
  std::string_view saved_;
};

/// What ops/ plugs into dispatch, so that dispatch names no operator: how a shape class runs on a backend.
struct ClassHooks {
  Cell backend = nullptr;   ///< CPU and Reference: infer, allocate, launch
  Cell meta = nullptr;      ///< infer alone
  Cell in_place = nullptr;  ///< backend cell of name_ forms
  Cell out = nullptr;       ///< backend cell of name_out forms
  Cell view = nullptr;      ///< backend cell of view operators
  Cell kernel = nullptr;    ///< of composites that have a kernel: infer, allocate, launch
  /// Before a cell that somebody brought for a device: raises what its own cells would of arguments that are
  /// not there, or none of its business; false when base autograd had to take the call instead.
  bool (*enter)(Frame&, int key) = nullptr;
  /// Finds out which straight runs of a new operator its shape function allows.
  void (*probe_lines)(Op&) = nullptr;
  /// Whether the row's shape function is one of the classes', which give one result each.
  bool (*gives_one)(const Op&) = nullptr;
};
void set_class_hooks(const ClassHooks& hooks);
const ClassHooks& installed_class_hooks();
/// How base autograd interprets an operator; set by transforms/.
void set_autograd_cell(Cell cell);
/// Likewise one that takes functions.
void set_autograd_function_cell(Cell cell);

/// Adds all built-in operators; called once by ops/ before the first call.
using RegisterAll = void (*)();
void set_builtin_operators(RegisterAll register_all);
/// Likewise operators of rooms above ops/, after those; by a static initialiser.
void add_builtin_operators(RegisterAll more);

}  // namespace lamella
LAMELLA_API_END
