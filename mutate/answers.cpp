// The cells that answer wrongly, and asking a law.
#include "lamella/mutate/answers.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <mutex>
#include <set>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/run/apart.h"

namespace lamella::verify {

namespace {

constexpr int64_t kOnce = std::numeric_limits<int64_t>::max();

/// What wrapped cells do, in the process of one check.
struct Plan {
  const OpTable* right = nullptr;
  Wrong kind = Wrong::Nan;
  std::atomic<int64_t> chosen{-1};  ///< which of the calls that fit; none while they are counted
  std::atomic<int64_t> fitting{0};
  int64_t each_run = kOnce;  ///< calls that fit in one run: a leak counts if each run of the case leaks
  std::mutex lock;
  Tensors kept;
} plan;

/// Whether this call, which fits, is the one to answer wrongly.
bool takes_turn() { return plan.fitting.fetch_add(1) % plan.each_run == plan.chosen; }

bool is_plain(const Tensor& t) {
  return t.defined() && !(t.keys() >> kAutogradKey) && t.device() == Device::CPU && !is_internal(t.dtype());
}

TensorSpan results_of(const Frame& f) {
  const bool list = f.op->schema.result_kind == ResultKind::TensorList;
  return list && f.list ? TensorSpan(*f.list)
                        : TensorSpan(f.results, list ? 0 : size_t(f.op->schema.n_results));
}

template <class R> R off(R v) { return v - v == 0 ? v + (v < 0 ? -v : v) / 4 + 1 : R(1); }

/// A copy with the element in the middle turned to NaN, or off by more than any bound.
Tensor with_element(const Tensor& t, Wrong kind) {
  const Tensor out = plain_copy(t);
  visit_dtype(out.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const bool nan = kind == Wrong::Nan;
    T& x = static_cast<T*>(out.raw_data())[out.numel() / 2];
    if constexpr (std::is_same_v<T, bool>) x = !x;
    else if constexpr (std::is_integral_v<T>) x = T(x + T(1));
    else if constexpr (is_half_type<T>) x = T(nan ? float(kNan) : off(float(x)));
    else if constexpr (is_complex_type<T>) {
      using R = typename T::value_type;
      x = T(nan ? R(kNan) : off(R(x.real())), R(x.imag()));
    } else x = nan ? T(kNan) : off(x);
  });
  return out;
}

/// The first and the last of its longest dim changed places; undefined where that changes nothing.
Tensor with_lanes_swapped(const Tensor& t) {
  int longest = -1;
  for (int d = 0; d < t.rank(); ++d)
    if (t.size(d) > 1 && (longest < 0 || t.size(d) > t.size(longest))) longest = d;
  if (longest < 0 || t.numel() == 0) return Tensor();
  const Tensor from = plain_copy(t), out = plain_copy(t);
  const int64_t size = itemsize(t.dtype()), inner = contiguous_strides(t.sizes())[longest];
  const int64_t n = t.size(longest), block = inner * size;
  auto* const to = static_cast<char*>(out.raw_data());
  const auto* const source = static_cast<const char*>(from.raw_data());
  for (int64_t outer = 0; outer < t.numel() / (n * inner); ++outer) {
    char* const first = to + outer * n * block;
    std::copy_n(source + (outer * n + n - 1) * block, block, first);
    std::copy_n(source + outer * n * block, block, first + (n - 1) * block);
  }
  return differs(out, from).empty() ? Tensor() : out;
}

/// The same elements with a gap after each.
Tensor with_gaps(const Tensor& t) {
  const Tensor from = plain_copy(t), memory = make_tensor(Dims{2 * t.numel()}, t.dtype());
  const size_t size = size_t(itemsize(t.dtype()));
  for (int64_t i = 0; i < 2 * t.numel(); ++i)
    std::copy_n(static_cast<const char*>(from.raw_data()) + size_t(i / 2) * size, size,
                static_cast<char*>(memory.raw_data()) + size_t(i) * size);
  Dims strides = contiguous_strides(t.sizes());
  for (int64_t& s : strides) s *= 2;
  return make_view_unchecked(memory, t.sizes(), strides, 0);
}

DType another_dtype(DType d) {
  switch (d) {
    case DType::F32: return DType::F64;
    case DType::F64:
    case DType::F16:
    case DType::BF16: return DType::F32;
    case DType::C64: return DType::C128;
    case DType::C128: return DType::C64;
    case DType::I64: return DType::I32;
    case DType::Bool: return DType::U8;
    default: return DType::I64;
  }
}

/// The wrong answer in the place of a result; undefined where this result cannot be answered so.
Tensor wrong_for(const Tensor& y) {
  if (!is_plain(y)) return Tensor();
  switch (plan.kind) {
    case Wrong::Nan: return y.numel() && is_inexact(y.dtype()) ? with_element(y, Wrong::Nan) : Tensor();
    case Wrong::Off: return y.numel() ? with_element(y, Wrong::Off) : Tensor();
    case Wrong::Swapped: return with_lanes_swapped(y);
    case Wrong::DType: return to(y, another_dtype(y.dtype()));
    case Wrong::Strides: return y.numel() > 1 ? with_gaps(y) : Tensor();
    default: return Tensor();
  }
}

/// Every result is looked at, until one has been answered wrongly.
void spoil(Frame& f) {
  const bool list = f.op->schema.result_kind == ResultKind::TensorList;
  if (list && !f.list) return;
  const TensorSpan ys = results_of(f);
  if (plan.kind == Wrong::Dropped) {  // of a list its last entry, else what a caller finds undefined
    if (ys.empty() || !takes_turn()) return;
    if (list) f.list->pop_back();
    else f.results[ys.size() - 1] = Tensor();
    return;
  }
  if (plan.kind == Wrong::Leaks) {
    if (ys.empty() || !takes_turn()) return;
    const std::lock_guard<std::mutex> held(plan.lock);
    plan.kept.push_back(ys[0]);
    return;
  }
  for (size_t k = 0; k < ys.size(); ++k) {
    const Tensor wrong = wrong_for(ys[k]);
    if (wrong.defined() && takes_turn()) (list ? (*f.list)[k] : f.results[k]) = wrong;
  }
}

/// Something where an error was due: copies of the first argument.
void give_anything(Frame& f) {
  Tensor any = zeros({2});
  for (const uint8_t p : f.op->tensor_params)
    if (!f.none(p) && f.op->schema.params[p].kind == ParamKind::Tensor && is_plain(f.tensor(p)))
      any = plain_copy(f.tensor(p));
  if (f.op->schema.result_kind == ResultKind::TensorList) *f.list = {any};
  else std::fill_n(f.results, f.op->schema.n_results, any);
}

/// In every functional row, in the place of the cell for plain tensors.
void wrapped(Frame& f, int key) {
  const Op* const here = f.op;
  struct Restored {
    Frame& f;
    const Op* op;
    ~Restored() { f.op = op; }
  } restored{f, here};
  const Op& right = plan.right->row(here->id);
  if (plan.kind == Wrong::Raises && takes_turn()) fail(ErrorCode::Value, "a wrong answer of {}", here->name);
  try {
    f.op = &right;
    right.cells[key](f, key);
  } catch (const Error&) {
    if (plan.kind != Wrong::Silent || !takes_turn()) throw;
    const ScopedTable unwrapped(plan.right);
    return give_anything(f);
  }
  if (here->is_view() && plan.kind < Wrong::Dropped) return;  // a copy would be wrong twice
  const ScopedTable unwrapped(plan.right);
  spoil(f);
}

/// The table with every functional row wrapped.
const OpTable* wrapped_table() {
  const OpTable* table = plan.right = &OpTable::current();
  static auto& rows = *new std::deque<Op>;  // a table points to its rows
  for (const Op* op : plan.right->rows()) {
    if (op->form != OpForm::Functional || op->has(kTestOnly)) continue;
    Op& row = rows.emplace_back(*op);
    row.base = &row;
    row.cells[int(Device::CPU)] = wrapped;
    table = table->with(row);
  }
  return table;
}

/// One operator of each shape class that the law is about: the first in the table.
std::vector<const Op*> operators_for(const Law& law) {
  std::vector<const Op*> out;
  std::set<std::pair<ShapeClass, bool>> known;
  for (const Op* op : all_operators()) {
    const bool several = op->tensor_params.size() > 1;
    if (law.applies(*op) && !op->has(kUnspecified) && known.emplace(op->shape, several).second)
      out.push_back(op);
  }
  return out;
}

constexpr uint64_t kSeed = 20261122;
constexpr int kCasesEach = 6, kCasesThatRaise = 48;  ///< of every operator, until the law refuses
constexpr size_t kMost = 120, kMostSlow = 40;  ///< checks with a wrong answer; of a law that asks the oracle

/// Runs in a process of its own: what it says is a Verdict that fails where the law has refused, discards
/// where no call fitted. `used` are the checks with a wrong answer.
Verdict ask(const Law& law, Wrong kind, Verdicts verdicts) {
  const std::vector<const Op*> ops = operators_for(law);
  OpTable::publish(wrapped_table());
  plan.kind = kind;
  Verdict out = Verdict::discard();
  size_t asked = 0;
  const uint64_t most = kind == Wrong::Silent ? kCasesThatRaise : kCasesEach;  // few calls raise
  for (uint64_t i = 1; i <= most; ++i)
    for (const Op* op : ops) {
      const Op& row = OpTable::current().row(op->id);
      const Choices choices = choices_of(kSeed, law, row, i);
      plan.chosen = -1, plan.fitting = 0, plan.each_run = kOnce;
      if (run_check(law, row, choices).kind != Verdict::Pass) continue;
      if (kind == Wrong::Leaks) {  // what a first run leaves for good lets the case run twice
        plan.fitting = 0;
        (void)run_check(law, row, choices);
      }
      const int64_t n = plan.fitting;
      const std::set<int64_t> tried{0, n - 1, n / 2, int64_t(i) % std::max<int64_t>(n, 1)};
      for (const int64_t nth : tried) {
        if (nth < 0 || nth >= n) continue;
        plan.chosen = nth, plan.fitting = 0;
        if (kind == Wrong::Leaks) plan.each_run = n;
        const Verdict v = run_check(law, row, choices);
        plan.kept.clear();
        ++asked;
        if (v.kind == Verdict::Fail && verdicts == Verdicts::AsGiven)
          return Verdict::fail({v.failure, op->name + ": " + v.message}, {}, int(asked));
        out = Verdict::pass(int(asked));
        if (asked >= (law.oracle ? kMostSlow : kMost)) return out;
      }
    }
  return out;
}

/// A bit for each kind that the law refuses.
struct Seen {
  std::string_view law;
  uint32_t kinds;
};
constexpr Seen kSeen[] = {
#include "answers_seen.inc"
};

}  // namespace

const std::vector<WrongAnswer>& wrong_answers() {
  static const std::vector<WrongAnswer> all = {
      {Wrong::Nan, "nan", "NaN for a number"},
      {Wrong::Off, "off", "one element off"},
      {Wrong::Swapped, "swapped", "the first and the last lane swapped"},
      {Wrong::Dropped, "dropped", "one result missing"},
      {Wrong::DType, "dtype", "another dtype"},
      {Wrong::Strides, "strides", "other strides"},
      {Wrong::Raises, "raises", "an exception where none is due"},
      {Wrong::Silent, "silent", "none where one is due"},
      {Wrong::Leaks, "leaks", "a result that stays alive"},
  };
  return all;
}

Heard hear(const Law& law, Wrong kind, Verdicts verdicts) {
  const Verdict v = check_apart([&] { return ask(law, kind, verdicts); }, 60);
  Heard out;
  out.checks = v.depth;
  if (v.kind == Verdict::Discard) return out;
  out.kind = v.kind == Verdict::Fail ? Heard::Refused : Heard::Unseen;
  const size_t colon = v.message.find(": ");
  if (v.kind == Verdict::Fail && !is_end(v.failure) && colon != std::string::npos)
    out.op = v.message.substr(0, colon), out.message = v.message.substr(colon + 2);
  else out.message = v.message;
  return out;
}

bool is_refused(const Law& law, Wrong kind) {
  for (const Seen& s : kSeen)
    if (s.law == law.id) return s.kinds >> int(kind) & 1;
  return false;
}

}  // namespace lamella::verify
