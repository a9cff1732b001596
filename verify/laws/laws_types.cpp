// Law of result types: promotion compared with PyTorch's table, written out.
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/number.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/law.h"

namespace lamella::verify {

namespace {

/// Rows and columns of kPromotion.
constexpr DType kOrder[] = {DType::Bool, DType::U8,   DType::I8,  DType::I16, DType::I32, DType::I64,
                            DType::F16,  DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128};
constexpr int kKnown = 12;

/// torch.promote_types for the dtypes of kOrder, as its documentation lists them; copied, not computed.
constexpr const char* kPromotion[kKnown] = {
    "bool u8   i8   i16  i32  i64  f16  bf16 f32  f64  c64  c128",
    "u8   u8   i16  i16  i32  i64  f16  bf16 f32  f64  c64  c128",
    "i8   i16  i8   i16  i32  i64  f16  bf16 f32  f64  c64  c128",
    "i16  i16  i16  i16  i32  i64  f16  bf16 f32  f64  c64  c128",
    "i32  i32  i32  i32  i32  i64  f16  bf16 f32  f64  c64  c128",
    "i64  i64  i64  i64  i64  i64  f16  bf16 f32  f64  c64  c128",
    "f16  f16  f16  f16  f16  f16  f16  f32  f32  f64  c64  c128",
    "bf16 bf16 bf16 bf16 bf16 bf16 f32  bf16 f32  f64  c64  c128",
    "f32  f32  f32  f32  f32  f32  f32  f32  f32  f64  c64  c128",
    "f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  c128 c128",
    "c64  c64  c64  c64  c64  c64  c64  c64  c64  c128 c64  c128",
    "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
};

int row_of(DType d) {
  for (int k = 0; k < kKnown; ++k)
    if (kOrder[k] == d) return k;
  return -1;
}

/// The unsigned types wider than u8, which PyTorch leaves out (decision 0009).
std::optional<DType> by_decision(DType a, DType b) {
  struct Entry {
    DType unsigned_type, other, result;
  };
  static constexpr Entry kEntries[] = {
      {DType::U16, DType::Bool, DType::U16}, {DType::U16, DType::U8, DType::U16},
      {DType::U16, DType::I8, DType::I32},   {DType::U16, DType::I16, DType::I32},
      {DType::U16, DType::I32, DType::I32},  {DType::U16, DType::I64, DType::I64},
      {DType::U32, DType::Bool, DType::U32}, {DType::U32, DType::U8, DType::U32},
      {DType::U32, DType::U16, DType::U32},  {DType::U32, DType::I8, DType::I64},
      {DType::U32, DType::I16, DType::I64},  {DType::U32, DType::I32, DType::I64},
      {DType::U32, DType::I64, DType::I64},  {DType::U64, DType::Bool, DType::U64},
      {DType::U64, DType::U8, DType::U64},   {DType::U64, DType::U16, DType::U64},
      {DType::U64, DType::U32, DType::U64},  {DType::U64, DType::I8, DType::I64},
      {DType::U64, DType::I16, DType::I64},  {DType::U64, DType::I32, DType::I64},
      {DType::U64, DType::I64, DType::I64},
  };
  if (a == b) return a;
  for (const Entry& e : kEntries)
    if ((e.unsigned_type == a && e.other == b) || (e.unsigned_type == b && e.other == a)) return e.result;
  if (is_inexact(a) != is_inexact(b)) return is_inexact(a) ? a : b;
  return std::nullopt;
}

DType looked_up(DType a, DType b) {
  const int row = row_of(a), column = row_of(b);
  if (row < 0 || column < 0) return by_decision(a, b).value();
  DType out;
  LAMELLA_ASSERT(
      parse_dtype(std::string_view(kPromotion[row])
                      .substr(size_t(column) * 5)
                      .substr(0, std::string_view(kPromotion[row]).substr(size_t(column) * 5).find(' ')),
                  out));
  return out;
}

/// Every pair of `promote`: draws meet a rare one seldom.
Finding unlike_table() {
  struct Pair {
    DType a, b, result;
  };
  static const std::vector<Pair> pairs = [] {
    std::vector<DType> all(std::begin(kOrder), std::end(kOrder));
    all.insert(all.end(), {DType::U16, DType::U32, DType::U64});
    std::vector<Pair> out;
    for (DType a : all)
      for (DType b : all) out.push_back({a, b, looked_up(a, b)});
    return out;
  }();
  for (const Pair& p : pairs)
    if (const DType got = promote(p.a, p.b); got != p.result)
      return format("promote({}, {}) is {}, the table says {}", p.a, p.b, got, p.result);
  return {};
}

int kind_of(DType d) { return is_bool(d) ? 0 : is_complex(d) ? 3 : is_floating(d) ? 2 : 1; }

/// torch.result_type: scalars count only when their kind is higher, and then by their own dtype; a complex
/// one beside floating tensors takes their precision.
DType table_type(const Tensors& operands) {
  std::optional<DType> tensors, scalars;
  for (const Tensor& t : operands) {
    std::optional<DType>& group = t.rank() == 0 ? scalars : tensors;
    group = group ? looked_up(*group, t.dtype()) : t.dtype();
  }
  if (!tensors) return scalars.value();
  if (!scalars || kind_of(*scalars) <= kind_of(*tensors)) return *tensors;
  if (kind_of(*scalars) < 3 || kind_of(*tensors) < 2) return *scalars;
  return *tensors == DType::F64 ? DType::C128 : DType::C64;
}

/// The usual one half of the time.
DType draw_default(Draw& d) {
  static constexpr DType kDefaults[] = {DType::F32, DType::F32, DType::F64, DType::F64, DType::BF16};
  return kDefaults[d.below(5)];
}

/// A number among tensors: heard where its kind is higher than theirs, then by that kind in the default
/// dtype (decision 0009).
DType table_type(const Tensors& operands, const Scalar& number) {
  const DType of_tensors = table_type(operands), floating = dispatch_state().default_dtype;
  if (kind_of(number.kind()) <= kind_of(of_tensors)) return of_tensors;
  if (!is_inexact(number.kind())) return number.kind();
  if (is_floating(number.kind())) return floating;
  const DType part = is_floating(of_tensors) ? of_tensors : floating;
  return part == DType::F64 ? DType::C128 : DType::C64;
}

Scalar draw_number(Draw& d) {
  switch (d.below(5)) {
    case 0: return true;
    case 1: return int64_t{3};
    case 2: return uint64_t{1} << 63;
    case 3: return 2.0;
    default: return c128(2, 1);
  }
}

/// Which tensors promote: all but conditions; and where the result is the promoted type itself.
bool promotes(const Op& op) {
  if (op.composite && op.tensor_params.size() == 3)
    return op.kernel.stated.result != StatedTypes::Result::Unsaid;
  return op.shape == ShapeClass::Broadcast && op.tensor_params.size() > 1 && !op.composite &&
         op.schema.find("real") < 0 && op.schema.n_results == 1 && !op.has(kRandom) &&
         (op.schema.find("b") >= 0 || op.schema.find("y") >= 0 || op.schema.find("min") >= 0);
}

/// Where integers come out as the default dtype: quotients that are not rounded, and rows that say so.
DType with_quotient(const Case& c, DType promoted) {
  const int rounding = c.op.schema.find("rounding_mode");
  const bool quotient = rounding >= 0 && is_none(c.args[size_t(rounding)]);
  const bool floating = c.op.composite && c.op.kernel.stated.result == StatedTypes::Result::Floating;
  return (quotient || floating) && !is_inexact(promoted) ? dispatch_state().default_dtype : promoted;
}

std::vector<Case::Slot> promoting_slots(const Case& c) {
  std::vector<Case::Slot> slots;
  for (const Case::Slot& s : c.tensors())
    if (c.op.schema.params[size_t(s.param)].name != "condition") slots.push_back(s);
  return slots;
}

/// One of the tensors that promote is `number`, and its dtype the default one where that is said.
Finding number_unlike_table(const Case& c, Values args, const Case::Slot& at, const Scalar& number) {
  Tensors others;
  for (const Case::Slot& s : promoting_slots(c))
    if (s.param != at.param) others.push_back(std::get<Tensor>(args[size_t(s.param)]));
  const DType want = with_quotient(c, table_type(others, number));
  entry(args, at) = number_like(number, others[0]);
  for (Value& v : args)
    if (std::holds_alternative<Scalar>(v)) v = Scalar(1);  // alpha, which was drawn for the tensor
  Tensor y;
  const Status s = status_of([&] { y = call_boxed(c.op, args)[0]; });
  // Complex numbers have no order, 2^63 is a divisor of 0 in narrow integers, and nobody subtracts bool.
  if (s.raised && (is_complex(number.kind()) || s.code == ErrorCode::Value || is_bool(want))) return "";
  if (s.raised) return {failure_kind(s), format("with {} for {}: ", number.str(), at.param) + str(s).text()};
  if (y.dtype() == want || (y.dtype() == DType::Bool && c.op.has(kDiscontinuous))) return "";
  return {What::DType,
          format("with {} for {} and the default {}: got {}, the table says {}", number.str(),
                 c.op.schema.params[size_t(at.param)].name, dispatch_state().default_dtype, y, want)};
}

/// A number that is drawn, under a default dtype that is drawn; of three operands each in turn as 2.0 among
/// integers, where it is the number that says the dtype.
Finding numbers_unlike_table(Case& c) {
  const std::vector<Case::Slot> slots = promoting_slots(c);
  if (slots.size() < 2) return "";
  const ScopedDefaultDType setting(draw_default(c.draw));
  const Case::Slot at = slots[c.draw.below(uint32_t(slots.size()))];
  const Scalar number = draw_number(c.draw);
  if (Finding d = number_unlike_table(c, c.args, at, number); !d.empty() || slots.size() == 2) return d;
  Values integers = c.args;
  for (const Case::Slot& s : slots) entry(integers, s) = ones(c.at(s).sizes(), DType::I64);
  for (const Case::Slot& s : slots)
    if (Finding d = number_unlike_table(c, integers, s, 2.0); !d.empty()) return d;
  return "";
}

Verdict promotes_by_table(Case& c) {
  Tensors operands;
  for (const Case::Slot& s : promoting_slots(c)) operands.push_back(c.at(s));
  const std::vector<bool> mapped = draw_mapped(c.draw, c.tensors().size());
  DType want = with_quotient(c, table_type(operands));
  const Tensor plain = call_boxed(c.op, c.args)[0];
  if (plain.dtype() == DType::Bool && c.op.has(kDiscontinuous)) want = DType::Bool;  // comparisons
  Finding d = unlike_table();
  if (d.empty() && plain.dtype() != want) d = format("got {}, the table says {}", plain, want);
  const Batch b = draw_batch(c, c.tensors(), mapped, 2);
  const Function f = [&](const Tensors& xs) { return call_boxed(c.op, c.with(c.tensors(), xs)); };
  const Tensor lanes = vmap(f, {b.in_dims, {0}, Randomness::Error, 2})(b.xs)[0];
  if (d.empty() && lanes.dtype() != want) d = format("under vmap got {}, the table says {}", lanes, want);
  if (d.empty())
    if (const Finding number = numbers_unlike_table(c); !number.empty())
      return Verdict::fail(number, cpp_declarations(c.args) + "  // " + number.text() + "\n", 1);
  if (d.empty()) return Verdict::pass(1);
  return Verdict::fail(d,
                       cpp_setting(c, c.tensors(), b.xs) + "  const Function f1 = vmap(f0, VmapOptions{" +
                           cpp_dims(b.in_dims) + ", {0}, Randomness::Error, 2});\n" +
                           "  std::cout << f1(xs)[0].dtype() << \"\\n\";  // expected " +
                           std::string(name(want)) + ", plain or mapped\n",
                       1);
}

// What docs say of the dtypes of results, by name: the first result, and the second one of those that index.
// For other operators the oracle's row may state it.

enum class ResultType : uint8_t {
  Promoted,  ///< of all tensors but a condition
  Quotient,  ///< likewise, but without a rounding mode no integer
  Floating,  ///< likewise: integers and bool become the default dtype
  Bool,
  I64,
  Sum,    ///< `dtype`, or i64 for integers and bool, or x's
  Named,  ///< `dtype`, or x's
  Made,   ///< `dtype`, or the default dtype; the number's kind decides where one is given
  First,  ///< that of the first tensor
  Real,   ///< likewise, of a complex one that of its parts
  Complex
};
struct NamedType {
  std::string_view ops;  ///< separated by spaces
  ResultType type;
};
constexpr NamedType kResultTypes[] = {
    {"add sub mul pow maximum minimum clamp where cat", ResultType::Promoted},
    {"div", ResultType::Quotient},
    {"exp log sin cos tanh sqrt reciprocal", ResultType::Floating},
    {"eq ne lt le gt ge logical_and logical_or logical_not isnan", ResultType::Bool},
    {"argmax nonzero", ResultType::I64},
    {"sum prod cumsum cumprod", ResultType::Sum},
    {"to softmax log_softmax zeros_like ones_like full_like empty_like new_zeros new_full",
     ResultType::Named},
    {"zeros ones full eye arange empty rand randn", ResultType::Made},
    {"neg sign conj_physical clone to_device copy fill fold_in amax amin sort flip tril triu mm bmm mv",
     ResultType::First},
    {"linalg_cholesky linalg_solve_triangular gather index_select index_add scatter_add", ResultType::First},
    {"view expand squeeze unsqueeze permute transpose select slice diagonal detach", ResultType::First},
    {"select_scatter slice_scatter diagonal_scatter", ResultType::First},
    {"abs real_part imag var", ResultType::Real},
    {"complex", ResultType::Complex},
};

std::optional<ResultType> result_type_of(const Op& op) {
  for (const NamedType& n : kResultTypes)
    if ((" " + std::string(n.ops) + " ").find(" " + op.name + " ") != std::string::npos) return n.type;
  switch (op.kernel.stated.result) {
    case StatedTypes::Result::Unsaid: break;
    case StatedTypes::Result::Promoted: return ResultType::Promoted;
    case StatedTypes::Result::Floating: return ResultType::Floating;
    case StatedTypes::Result::First: return ResultType::First;
    case StatedTypes::Result::Bool: return ResultType::Bool;
  }
  return std::nullopt;
}

DType parts_of(DType d) { return d == DType::C64 ? DType::F32 : d == DType::C128 ? DType::F64 : d; }

/// Numbers that are given: integers are i64 (u64 beyond it), bool stays, others have the default dtype.
DType made_type(const Case& c) {
  const DType floating = dispatch_state().default_dtype;
  DType widest = DType::Bool;
  bool any = false;
  for (size_t i = 0; i < c.args.size(); ++i) {
    const Scalar* const s = std::get_if<Scalar>(&c.args[i]);
    if (!s) continue;
    if (is_complex(s->kind())) return floating == DType::F64 ? DType::C128 : DType::C64;
    if (!s->is_integral()) widest = floating;
    else if (!is_floating(widest)) widest = looked_up(widest, s->kind());
    any = true;
  }
  return any ? widest : floating;
}

DType listed_type(const Case& c, ResultType type) {
  Tensors operands;
  for (const Case::Slot& s : c.tensors())
    if (c.op.schema.params[size_t(s.param)].name != "condition") operands.push_back(c.at(s));
  const DType first = operands.empty() ? DType::Bool : operands[0].dtype();
  const int at = c.op.schema.find("dtype");
  const bool named = at >= 0 && !is_none(c.args[size_t(at)]);
  switch (type) {
    case ResultType::Bool: return DType::Bool;
    case ResultType::I64: return DType::I64;
    case ResultType::First: return first;
    case ResultType::Real: return parts_of(first);
    case ResultType::Complex: return table_type(operands) == DType::F64 ? DType::C128 : DType::C64;
    case ResultType::Promoted: return table_type(operands);
    default: break;
  }
  if (named) return std::get<DType>(c.args[size_t(at)]);
  if (type == ResultType::Made) return made_type(c);
  if (type == ResultType::Named) return first;
  if (type == ResultType::Sum) return is_inexact(first) ? first : DType::I64;
  const DType promoted = table_type(operands);
  const int rounding = c.op.schema.find("rounding_mode");
  const bool rounds = rounding >= 0 && !is_none(c.args[size_t(rounding)]);
  return is_inexact(promoted) || rounds ? promoted : dispatch_state().default_dtype;
}

Verdict dtypes_as_listed(Case& c) {
  const ScopedDefaultDType setting(draw_default(c.draw));
  const DType want = listed_type(c, *result_type_of(c.op));
  const Tensors ys = call_boxed(c.op, c.args);
  for (size_t k = 0; k < ys.size(); ++k)
    if (const DType d = k == 0 ? want : DType::I64; ys[k].dtype() != d)
      return Verdict::fail({What::DType, format("result {} is {}, expected {}", k, ys[k], d)},
                           cpp_declarations(c.args) + "  std::cout << " + cpp_call(c.op, c.args) +
                               format("[{}];  // expected {}, the default dtype being {}\n", k, name(d),
                                      dispatch_state().default_dtype));
  return Verdict::pass();
}

bool has_listed_type(const Op& op) { return result_type_of(op).has_value(); }

}  // namespace

void add_type_laws(std::vector<Law>& laws) {
  laws.push_back({146,
                  "dtypes_as_listed",
                  "value",
                  "Results have the dtypes that a list by name says, from those of tensors and numbers and "
                  "from the default dtype, whichever that is.",
                  {.exact = true, .often_mixed = true},
                  false,
                  has_listed_type,
                  dtypes_as_listed});
  laws.push_back(
      {11,
       "promotes_by_table",
       "value",
       "Operands of several dtypes give the dtype of PyTorch's table, plain and under vmap, and so "
       "do numbers beside them, under each default dtype.",
       {.exact = true},
       false,
       promotes,
       promotes_by_table});
}

}  // namespace lamella::verify
