// Statement programs: one to sixteen drawn calls, views, writes and captures over handles that share memory,
// run alike by every engine; and what a plain run, differences of it and a model of memory say of them.
#pragma once

#include <functional>

#include "lamella/verify/law.h"
#include "lamella/verify/oracle.h"

namespace lamella::verify {

enum class StatementKind : uint8_t { Call, View, InPlace, Out, Fresh, Drop };
inline constexpr int kStatementKinds = 6;
std::string_view name(StatementKind kind);

/// One line of a program. Handles are numbered: inputs, captures, then results in order.
struct Statement {
  struct Link {
    Case::Slot slot;
    int handle;
  };
  StatementKind kind = StatementKind::Call;
  const Op* op = nullptr;     ///< none for Fresh and Drop
  Values args = {};           ///< at full arity; tensors that no link replaces are constants
  std::vector<Link> links{};  ///< the first one of a write is its target, that of Drop what is let go
  std::vector<bool> kept{};   ///< results that become handles
  Tensor fresh{};             ///< of Fresh: the values of new memory
  bool own = false;           ///< calls the operator of the case
  bool is_write() const { return kind == StatementKind::InPlace || kind == StatementKind::Out; }
  int target() const { return links[0].handle; }
};

/// NOTE: [what an engine may refuse] A plain run has no derivatives to keep. What it allows and an engine
/// need not allow is decided here, from the statements alone: who shares memory with whom in the plain run,
/// what depends on which inputs, and what the formulas of the operators declare to save.
struct Refusals {
  std::vector<bool> leaf;      ///< by statement: it writes to memory of an input
  std::vector<bool> level;     ///< by statement: it writes what depends on an input into memory that does not
                               ///< and that others see
  bool base_version = false;   ///< something that base autograd may have saved is overwritten later
  bool level_version = false;  ///< likewise something plain, which levels do not replace
  std::vector<bool> saved;     ///< by handle: some formula may ask for its memory again
};

/// Of a case of a law: total; the operator of the case is one of the statements where it can be.
class Script {
 public:
  explicit Script(Case& c);

  const Tensors& inputs() const { return inputs_; }
  const Tensors& captures() const { return captures_; }
  const std::vector<Statement>& statements() const { return statements_; }
  /// The plain run raises at the last statement, with this code.
  bool raises() const { return raises_; }
  ErrorCode code() const { return code_; }
  /// Has a write to memory that another live handle shows, too.
  bool writes_through_alias() const { return alias_writes_ > 0; }
  size_t writes() const;

  /// How far a run came, and rank, sizes and strides of each result as the program saw them. Strides of dims
  /// that nothing steps along are 0.
  struct Seen {
    size_t at = 0;
    std::vector<int64_t> geometry;
    void note(const Tensor& t);
    /// The first result in which `want` differs; empty when none does.
    std::string unlike(const Seen& want) const;
  };
  /// Handles that are alive at the end. `captures` are written where the program says so: fresh copies,
  /// please.
  Tensors run(const Tensors& xs, const Tensors& captures, Seen* seen = nullptr) const;
  Tensors fresh_captures() const;
  /// The handle that each result is.
  std::vector<int> result_handles() const;
  /// One weight for each result, and a direction for each input: multiples of 1/8 of at most 2.
  const Tensors& weights() const { return weights_; }
  const Tensors& directions() const { return directions_; }
  Tensors more_directions() const;
  /// Sum of |weights| times |results|, at least 1 each.
  double weight() const;
  /// Results of the plain run, and what it saw.
  const Tensors& values() const { return values_; }
  const Seen& seen() const { return seen_; }

  /// `mapped`: inputs whose lanes differ, where there are lanes.
  Refusals refusals(uint32_t mapped = 0) const;

  /// Declares x0, x1, ... (inputs), c0, ... (captures), u0, ... (weights), and the function `f`.
  std::string cpp() const;

  friend class Differences;
  friend class Drawer;

 private:
  void execute(const Statement& s, Tensors& handles, bool wide, size_t index) const;
  /// Sum of weights times results in f128 at inputs on the reference column; results of calls and writes are
  /// put off by 2^-30 of themselves at most where `jitter` is not 0.
  f128 wide_value(const Tensors& xs, uint32_t jitter) const;

  Tensors inputs_, captures_, weights_, directions_, values_;
  std::vector<Statement> statements_;
  std::vector<bool> alive_;
  std::vector<int> storage_, header_;  ///< of each handle, numbered, in the plain run
  Seen seen_;
  uint64_t seed_ = 0;
  int alias_writes_ = 0;
  bool raises_ = false;
  ErrorCode code_ = ErrorCode::Internal;
  mutable std::vector<Values> wide_args_;
};

/// NOTE: [differences of programs] The plain program in f128, as a function of one number h: inputs x + h t.
/// Every statement was looked at when it was drawn: near its operands it is smooth and its slopes are below
/// 2^8. How far rounding may move a derivative is measured: each element of each result (inputs and captures
/// too) is put off by a drawn part of 2^-30 of itself, all at once, and the derivative moves by the sum of
/// what each does. Two such sums are taken; an engine rounds each result to 2^-53 of itself, in values and in
/// what it sends backwards (each term of a gradient passes the same results). k = 2^10 stands for the
/// roundings inside an operator (at most 64 of it here: sums of 12, a division and a root) and for sums that
/// happen to cancel (a factor of 16 below the typical size). Terms that cancel inside an operator (softmax of
/// one element) show in no result: they are taken to be as large as the weighted results.
struct Expected {
  f128 want = 0;
  double bound = 0;
  bool smooth = true;  ///< one-sided differences agree
};

class Differences {
 public:
  /// Along `ts`; undefined ones are zero.
  Differences(const Script& p, const Tensors& xs, const Tensors& ts) : p_(p), xs_(xs), ts_(ts) {}
  Expected value() const;
  Expected slope() const;
  /// The derivative along `ts` of that along `ss`.
  Expected curve(const Tensors& ss) const;
  /// Whether `got` is so near that no bound need be measured: less than its own size alone would allow.
  bool quick_value(double got) const;
  bool quick_slope(double got) const;
  bool quick_curve(double got, const Tensors& ss) const;
  /// Likewise the sum of several slopes.
  static bool quick_sum(double got, const std::vector<Differences>& slopes);

 private:
  f128 at(f128 h, const Tensors& ss, f128 k, uint32_t jitter) const;
  f128 slope(f128 h, uint32_t jitter) const;
  f128 curve(const Tensors& ss, f128 h, uint32_t jitter) const;
  Expected bounded(f128 want, f128 own, const std::function<f128(uint32_t)>& again) const;

  const Script& p_;
  const Tensors &xs_, &ts_;
};

/// Sum of a * b over all elements, exactly enough: in f128. Undefined ones are zero.
double dot(const Tensors& as, const Tensors& bs);

}  // namespace lamella::verify
