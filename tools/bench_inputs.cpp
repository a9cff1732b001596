// Arguments of an operator at a size: what its parameters' names, kinds and its shape class say.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>

#include "lamella/dispatch/call.h"

#include "bench_call.h"

namespace lamella::tools::bench {

std::optional<Layout> layout_of(std::string_view text) {
  for (const Layout l :
       {Layout::Contiguous, Layout::Transposed, Layout::Stepped, Layout::Row, Layout::Column})
    if (name(l) == text) return l;
  return std::nullopt;
}

std::string_view name(Layout layout) {
  switch (layout) {
    case Layout::Contiguous: return "contiguous";
    case Layout::Transposed: return "transposed";
    case Layout::Stepped: return "stepped";
    case Layout::Row: return "broadcast";
    case Layout::Column: return "column";
  }
  return "";
}

Dims parse_sizes(std::string_view text) {
  Dims out;
  const auto wrong = [&](bool is_right) {
    LAMELLA_CHECK(is_right, Usage, "bench: --sizes: \"{}\" is no size; expected e.g. 1000, 2^20 or 64x128",
                  text);
  };
  const auto read = [&](std::string_view part) {
    int64_t v = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), v);
    wrong(error == std::errc() && end == part.data() + part.size() && v >= 0);
    return v;
  };
  for (std::string_view rest = text;;) {
    const size_t x = rest.find('x');
    const std::string_view part = rest.substr(0, x);
    const size_t power = part.find('^');
    const int64_t base = read(part.substr(0, power));
    const int64_t exponent = power == std::string_view::npos ? 1 : read(part.substr(power + 1));
    const double value = std::pow(double(base), double(exponent));
    wrong(value < 1e12);
    out.push_back(int64_t(value));
    if (x == std::string_view::npos) return out;
    rest.remove_prefix(x + 1);
  }
}

namespace {
/// Products and linear algebra want matrices: n means n x n.
Dims matrix_sizes(const Op& op, Dims s) {
  const bool square = op.shape == ShapeClass::Contract || op.shape == ShapeClass::Linalg ||
                      op.name == "matmul" || op.name == "cholesky" || op.name == "tril" || op.name == "triu";
  if (square && s.size() == 1) s.push_back(s[0]);
  return s;
}

bool is_product(const Op& op) { return op.shape == ShapeClass::Contract || op.name == "matmul"; }

Fill fill_of(const Op& op, const Param& p) {
  if (p.name == "condition") return Fill::Mask;
  if (p.name == "key") return Fill::Key;
  if (p.name == "index") return Fill::Index;
  if (op.name == "cholesky" || op.name == "linalg_cholesky") return Fill::Definite;
  if (op.name == "linalg_solve_triangular" && p.name == "A") return Fill::Triangular;
  return op.shape == ShapeClass::Broadcast ? Fill::Uniform : Fill::Normal;
}

Dims operand_sizes(const Op& op, const Param& p, const Dims& s) {
  const int64_t last = s.empty() ? 1 : s.back();
  if (p.name == "key" || (op.name == "clamp" && p.name == "min")) return {};
  if (p.name == "weight" || p.name == "bias" || (op.name == "mv" && p.name == "v")) return {last};
  if (p.name == "index" && (op.name == "index_select" || op.name == "index_add"))
    return {s.empty() ? 1 : s[0]};
  if (is_product(op) && p.name == "b") {
    Dims t = s;
    if (t.size() > 1) std::swap(t[t.size() - 1], t[t.size() - 2]);
    return t;
  }
  return s;
}

/// The dim that an index counts in: the first of index_select and index_add, the last of the others.
int64_t bound_of(const Op& op, const Dims& s) {
  if (s.empty()) return 1;
  return op.name == "index_select" || op.name == "index_add" ? s[0] : s.back();
}

/// Optional tensors that are given all the same.
bool is_given(const Op& op, const Param& p) {
  return !p.optional || p.name == "key" || p.name == "weight" || p.name == "bias" ||
         (op.name == "clamp" && p.name == "min");
}

Value attribute_of(const Op& op, const Param& p, const Dims& s) {
  const int64_t last = s.empty() ? 1 : s.back();
  if (p.name == "normalized_shape") return Dims{last};
  if (p.role == ParamRole::Size) return s;
  if (p.role == ParamRole::Dim) {
    const int64_t dim = op.name == "index_select" || op.name == "index_add" || op.is_view() ? 0 : -1;
    const bool second = p.name == "dim1";
    if (p.kind == ParamKind::Int) return second ? int64_t{-1} : dim;
    return Dims{dim};
  }
  switch (p.kind) {
    case ParamKind::Int: return p.name == "index" ? int64_t{0} : s.empty() ? int64_t{1} : s[0];
    case ParamKind::Ints: return s;
    case ParamKind::Float: return 1e-5;
    case ParamKind::Bool: return false;
    case ParamKind::Scalar: return 1.5;
    case ParamKind::DType: return DType::F64;
    default: return {};
  }
}

Argument argument_of(const Op& op, const Param& p, const Asked& a, const Dims& s) {
  Argument out{.param = &p};
  if (p.kind == ParamKind::Tensor || p.kind == ParamKind::TensorList) {
    if (!is_given(op, p)) return out;
    const Fill fill = fill_of(op, p);
    const DType dtype = fill == Fill::Index ? a.index : fill == Fill::Mask ? DType::Bool : a.dtype;
    out.operand = Operand{operand_sizes(op, p, s), dtype, fill, Layout::Contiguous, bound_of(op, s)};
    return out;
  }
  for (const auto& [key, text] : a.set)
    if (key == p.name) {
      out.value = parse_attribute(op, p, text);
      return out;
    }
  if (p.has_default) out.value = p.default_value, out.is_default = true;
  else if (!p.optional) out.value = attribute_of(op, p, s);
  if (op.shape == ShapeClass::Random && p.name == "dtype") out.value = a.dtype, out.is_default = false;
  if (op.shape == ShapeClass::Factory && p.name == "dtype") out.value = a.dtype, out.is_default = false;
  return out;
}

void refuse_unknown_attributes(const Op& op, const Asked& a) {
  for (const auto& [key, text] : a.set)
    LAMELLA_CHECK(op.schema.find(key) >= 0, Usage,
                  "bench: --arg {}={}: {} has no such parameter; expected one of {}", key, text, op.name,
                  str(op.schema));
}

std::vector<Argument> arguments_of(const Op& op, const Asked& a, const Dims& s) {
  refuse_unknown_attributes(op, a);
  std::vector<Argument> out;
  for (const Param& p : op.schema.params) out.push_back(argument_of(op, p, a, s));
  const auto last = std::find_if(out.rbegin(), out.rend(), [&](const Argument& x) {
    const Fill fill = x.operand ? x.operand->fill : Fill::Key;
    return x.operand && fill != Fill::Key && fill != Fill::Index && x.operand->sizes.size() >= 1;
  });
  LAMELLA_CHECK(a.layout == Layout::Contiguous || last != out.rend(), Usage,
                "bench: {} has no tensor to lay out as {}; expected --layout contiguous", op.name,
                name(a.layout));
  if (last != out.rend()) last->operand->layout = a.layout;
  return out;
}

Values values_of(const Op& op, const std::vector<Argument>& arguments) {
  Values out;
  uint64_t seed = 20261123;
  for (const Argument& a : arguments) {
    seed += 2;
    if (!a.operand) out.push_back(a.value);
    else if (a.param->kind != ParamKind::TensorList) out.emplace_back(made(*a.operand, seed));
    else out.emplace_back(Tensors{made(*a.operand, seed), made(*a.operand, seed + 1)});
  }
  return canonical(op, std::move(out));
}

/// A call with arguments that are kept, on whatever row is current: alternatives change rows.
std::function<void()> caller(const Op& op, Values args) {
  struct Held {
    Values args;
    std::optional<BoxedArgs> boxed;
    uint32_t id;
    bool lists;
  };
  const auto held = std::make_shared<Held>();
  held->args = std::move(args), held->boxed.emplace(op, held->args);
  held->id = op.id, held->lists = op.schema.result_kind == ResultKind::TensorList;
  return [held] {
    Tensors list;
    Tensor results[4];
    Frame frame{&OpTable::current().row(held->id), held->boxed->data(), results,
                held->lists ? &list : nullptr};
    call(frame);
  };
}

double sum_of_bytes(const Tensors& ts) {
  double n = 0;
  for (const Tensor& t : ts) n += own_bytes(t);
  return n;
}

Tensors tensors_in(const Values& args) {
  Tensors out;
  for (const Value& v : args) {
    if (const auto* t = std::get_if<Tensor>(&v); t && t->defined()) out.push_back(*t);
    if (const auto* ts = std::get_if<Tensors>(&v)) out.insert(out.end(), ts->begin(), ts->end());
  }
  return out;
}

double flops_of(const Op& op, const Tensors& ins, const Tensor& y) {
  if (is_product(op)) return 2.0 * double(y.numel()) * double(ins[0].size(-1));
  if (op.shape != ShapeClass::Linalg && op.name != "cholesky") return 0;
  const double n = double(ins[0].size(-1));
  const bool solves = op.name == "linalg_solve_triangular";
  return double(y.numel()) * (solves ? n : n / 3);
}

/// Few results beside the operands: they are read; one large operand: copied; more: added.
void measure(Work& w, const Op& op, const Tensors& ins, const Tensors& ys) {
  const double in = sum_of_bytes(ins), out = op.is_view() ? 0 : sum_of_bytes(ys);
  w.bytes = op.is_view() ? 0 : in + out;
  for (const Tensors* ts : {&ins, &ys})
    for (const Tensor& t : *ts) w.elements = std::max(w.elements, double(t.numel()));
  if (ys.empty() || op.is_view()) return;
  w.flops = flops_of(op, ins, ys[0]);
  const auto large = std::ranges::count_if(ins, [&](const Tensor& t) { return own_bytes(t) * 4 > in; });
  w.loop = w.flops > 0    ? Loop::Fma
           : in == 0      ? Loop::Write
           : out * 8 < in ? Loop::Read
           : large > 1    ? Loop::Add
                          : Loop::Copy;
}

void give_names(Work& w, const Op& op, const std::vector<Argument>& arguments, const Asked& a,
                const Dims& s) {
  std::string more;
  if (a.layout != Layout::Contiguous) more += format(" {}", name(a.layout));
  if (a.index != DType::I64 && op.schema.find("index") >= 0) more += format(" index {}", a.index);
  for (const Argument& x : arguments)
    if (!x.operand && !x.is_default && !is_none(x.value) && x.param->role != ParamRole::Size &&
        x.param->kind != ParamKind::DType)
      more += format(" {}={}", x.param->name, shown(x.value));
  w.family = format("{} {}{}", op.name, a.dtype, more);
  w.name = format("{} {}{}{}", op.name, a.dtype, s, more);
}
}  // namespace

Work work_of(const Asked& asked) {
  const Op* const found = OpTable::current().find(asked.op);
  LAMELLA_CHECK(found, UnknownOperator,
                "bench: there is no operator \"{}\"; expected one that `lamella ops` lists", asked.op);
  LAMELLA_CHECK(!found->takes_functions, Usage, "bench: {} takes functions; expected an operator of tensors",
                found->name);
  const Op& op = *found->base;
  const Dims s = matrix_sizes(op, asked.sizes);
  const std::vector<Argument> arguments = arguments_of(op, asked, s);
  Work w;
  w.op = &op, w.dtype = asked.dtype;
  check_memory(op, arguments, s);
  w.args = values_of(op, arguments);
  give_names(w, op, arguments, asked, s);
  const Tensors ys = call_boxed(op, w.args);
  measure(w, op, tensors_in(w.args), ys);
  w.results = [id = op.id, args = w.args] { return call_boxed(OpTable::current().row(id), args); };
  // Of a composite out= is a copy more.
  const bool has_out = asked.into && ys.size() == 1 && !op.composite;
  const Op* const out = has_out ? OpTable::current().find(op.name + "_out") : nullptr;
  if (out) {
    Values args{make_tensor(ys[0].sizes(), ys[0].dtype())};
    args.insert(args.end(), w.args.begin(), w.args.end());
    w.run = caller(*out, std::move(args));
  } else w.run = caller(op, w.args);
  w.peer = peer_text(op, arguments, out != nullptr);
  return w;
}

}  // namespace lamella::tools::bench
