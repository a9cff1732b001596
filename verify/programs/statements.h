// Statement programs: one to sixteen drawn calls, views, writes and captures over handles that share memory,
// run alike by every engine; and what a plain run, differences of it and a model of memory say of them.
#pragma once

#include <functional>

#include "lamella/verify/case/law.h"
#include "lamella/verify/oracle/oracle.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

enum class StatementKind : uint8_t { Call, View, InPlace, Out, Fresh, Drop, Custom, Scope, Hook };
std::string_view name(StatementKind kind);
/// What a statement opens or closes: the innermost one that is open.
enum class ScopeKind : uint8_t { NoGrad, EnableGrad, NoGradLevels, End };

/// A function with several results and a rule of its own; `plain` is the same without the rule.
struct CustomFunction {
  size_t operands;
  const char* cpp;  ///< the function with the rule
  Function plain, ruled;
};
const std::vector<CustomFunction>& custom_functions();

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
  size_t custom = 0;          ///< of Custom: which one
  ScopeKind scope = ScopeKind::End;
  /// NOTE: [hooks of programs] A hook of the handle of the first link, in base autograd: cotangents times
  /// `factor`. It belongs to what the handle was made by: statement `made_at`, or -1 for an input. What was
  /// computed from the handle between the two is multiplied as well.
  double factor = 1;
  bool retains = false;
  int made_at = -1;
  bool is_write() const { return kind == StatementKind::InPlace || kind == StatementKind::Out; }
  int target() const { return links[0].handle; }
};

/// NOTE: [what an engine may refuse] A plain run has no derivatives to keep. What it allows and an engine
/// need not allow is decided here, from the statements alone: who shares memory with whom in the plain run,
/// what depends on which inputs, and what the formulas of the operators declare to save.
struct Refusals {
  std::vector<bool> leaf;      ///< by statement: base autograd has to refuse it, a write to an input
  std::vector<bool> argument;  ///< by statement: levels have to, for the same reason
  std::vector<bool> gaps;      ///< by statement: writes to a view of what has gaps between its elements
  std::vector<bool> level;     ///< by statement: it writes what depends on an input into memory that does not
                               ///< and that others see
  std::vector<bool> lanes;     ///< by statement: vmap alone may refuse it, a write of lanes to what has none
  std::vector<bool> lanes_must;  ///< and has to: the caller's memory would get all lanes in one place
  bool base_version = false;     ///< something that base autograd may have saved is overwritten later
  bool level_version = false;    ///< likewise something plain, which levels do not replace
  bool must_notice = false;      ///< and base autograd has to refuse that: see Model::note_certain
  std::vector<bool> certain;     ///< by handle: a write to it after the program has to be noticed there
  bool constants = false;        ///< NOTE: [constants that are written]
  std::vector<bool> saved;       ///< by handle: some formula may ask for its memory again
};

/// Of a case of a law: total; the operator of the case is one of the statements where it can be.
class Script {
 public:
  /// `base`: for base autograd alone. NOTE: [written before viewed] Half of such
  /// programs write to a capture that lies with gaps or behind others before anything views it, then view it
  /// and write on: the history of a family begins with a first member that is not all of its memory. By lot
  /// one program in three thousand did so. Levels refuse that first write.
  explicit Script(Case& c, bool base = false);

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
    Tensors retained = {};           ///< handles given to retain_grad, in order
    std::vector<size_t> hooks = {};  ///< the statements that gave them
    bool leaves_are_shared = false;  ///< asked for: hooks of leaves are somebody else's to add
    void note(const Tensor& t);
    /// The first result in which `want` differs; empty when none does.
    Finding unlike(const Seen& want) const;
  };
  /// Handles that are alive at the end. `captures` are written where the program says so: fresh copies,
  /// please.
  Tensors run(const Tensors& xs, const Tensors& captures, Seen* seen = nullptr) const;
  Tensors fresh_captures() const;
  /// Whether memory of the handle of this hook is written later.
  bool is_written_after(size_t hook) const;
  Tensor hook_direction(size_t hook) const;
  /// The hooks that the program gives to its inputs.
  void hook_leaves(const Tensors& leaves) const;
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
  /// `traced`: those that carry derivatives; the others are ordinary tensors.
  /// `further_out`: captures and inputs are values of a level around all.
  Refusals refusals(bool levels, uint32_t mapped = 0, uint32_t traced = ~0u, bool further_out = false) const;
  /// By statement: where captures and inputs are values of a level further out, it may refuse this one.
  std::vector<bool> refused_further_out() const;
  /// By statement: what it computes is constant to levels, or to base autograd.
  std::vector<bool> constants(bool levels) const;
  /// Whether some values are constants, or cotangents are multiplied, so that differences of the plain
  /// program are not its derivatives.
  bool has_constants(bool levels) const;
  /// Whether the derivative of a derivative passes a hook that a first one does not: where the formula of
  /// what is hooked reads its result. Differences know nothing of formulas.
  bool hooks_read_results() const;
  /// Whether each operator has a second derivative at what it is given from these inputs on, as far as
  /// operands that hold a 0 tell: pow(0, 1.99) has a first one and no second. What is 0 whatever the inputs
  /// are (x - x) makes of it a constant to differences, and infinity times 0 to every chain rule.
  bool has_second_derivatives(const Tensors& xs) const;
  /// NOTE: [constants that are written] Under levels a detached handle shows what its base is, as a constant.
  /// Where values with derivatives are written through it, docs/autograd.md promises values alone.
  bool writes_constants() const;

  /// Declares x0, x1, ... (inputs), c0, ... (captures), u0, ... (weights), and the function `f`.
  std::string cpp() const;

  friend class Differences;
  friend class Drawer;
  friend class Twin;

 private:
  void execute(const Statement& s, Tensors& handles, bool wide, size_t index) const;
  void hook(size_t index, const Tensors& handles, Seen* seen) const;
  /// Sum of weights times results in f128 at inputs on the reference column; results of calls and writes are
  /// put off by 2^-30 of themselves at most where `jitter` is not 0.
  f128 wide_value(const Tensors& xs, uint32_t jitter) const;
  void make_wide_args() const;

  Tensors inputs_, captures_, weights_, directions_, values_;
  Tensors sizes_;  ///< of each handle, without elements
  std::vector<Statement> statements_;
  std::vector<bool> alive_, dense_;
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
  Differences(const Script& p, const Tensors& xs, const Tensors& ts, bool levels)
      : p_(p), xs_(xs), ts_(ts), levels_(levels), twin_(p.has_constants(levels)) {}
  /// Along `by`, added to the handle that the hook at this statement retains; inputs stay.
  Differences(const Script& p, const Tensors& xs, const Tensors& none, size_t hook, const Tensor& by)
      : p_(p), xs_(xs), ts_(none), levels_(false), twin_(true), hook_(hook), by_(by) {}
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
  bool levels_, twin_;
  size_t hook_ = 0;
  Tensor by_;
};

/// What is added to one handle of a program that runs as a Twin.
struct Injected {
  size_t hook = 0;  ///< the statement that says to which
  Tensor by = {};   ///< undefined: nothing
  f128 step = 0;
};
/// NOTE: [constants of programs] The program at `moved` with constants as they are at `still`: both run side
/// by side. Handles that detach, or a scope, took out of a family have memory of their own in the moved one;
/// a write through one family changes the values of the others over the same memory, and leaves what they
/// moved by. A hook multiplies what its handle moved by. Results are put off as in Script::wide_value.
f128 twin_value(const Script& p, bool levels, Tensors moved, Tensors still, uint32_t jitter,
                const Injected& injected);

/// Multiples of 1/8 between 1/8 and 15/8 of either sign, of the type of `like`.
Tensor few_bits(const Tensor& like, uint64_t& state);
/// f(part) for the real and imaginary parts of the elements in row-major order; of T, which is const or not.
template <class T, class F> void each_part(const Tensor& t, F&& f) {
  const int64_t n = is_complex(t.dtype()) ? 2 : 1;
  auto* const data = static_cast<T*>(t.raw_data());
  each_element(t, [&](int64_t at) {
    for (int64_t k = 0; k < n; ++k) f(data[n * at + k]);
  });
}
/// Each element times 1 + e, 2^-31 <= |e| <= 2^-30.
void put_off(const Tensor& t, uint64_t& state);
f128 weighted(const Tensor& y, const Tensor& u);

/// Copies that lie as `t` does, in memory of their own; in f128; and lanes that lie so, with the lanes along
/// `dim`.
Tensor copy_as(const Tensor& t);
Tensor wide_as(const Tensor& t);
Tensor lanes_as(const Tensors& lanes, int dim);

/// Declares it with the memory around it, if there is any.
std::string cpp_placed(const std::string& name, const Tensor& t);

/// Sum over all elements of the real part of conj(a) * b, exactly enough: in f128. Undefined ones are zero.
double dot(const Tensors& as, const Tensors& bs);

}  // namespace lamella::verify
LAMELLA_API_END
