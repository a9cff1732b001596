// The one table of names. What is not in it has the operator's own name and the schema's own parameters.
#include "reference_ops.h"

#include <algorithm>
#include <sstream>

#include "lamella/ops/number.h"

namespace lamella::tools {

namespace {
/// `signature`: PyTorch's parameters in order, each as one word.
///   name         the schema's parameter of that name
///   name:param   the schema calls it `param`
///   name:param%  the sizes of that tensor are what the schema takes
///   name*        a list, or all integers that follow
///   name=value   accepted with this value (true, false, or * for any) and dropped
///   +param=value given to the operator at every call (integers, or a dtype)
struct Row {
  std::string_view pack, op, signature;
};
constexpr Row kRows[] = {
    {"true_divide", "div", ""},
    {"rsub", "sub", "input:b other:a alpha"},
    {"max.binary", "maximum", ""},
    {"min.binary", "minimum", ""},
    {"clamp_min", "clamp", "input:x min"},
    {"clamp_max", "clamp", "input:x max"},
    {"linalg.cholesky", "linalg_cholesky", ""},
    {"linalg.solve_triangular", "linalg_solve_triangular", ""},
    {"linalg.diagonal", "diagonal", "A:x offset +dim1=-2 +dim2=-1 dim1 dim2"},
    {"nn.functional.layer_norm", "layer_norm", ""},
    {"var", "var", "input:x dim unbiased:correction keepdim correction"},
    {"var.unbiased", "var", "input:x unbiased:correction"},
    {"nonzero", "nonzero", "input:x as_tuple=false"},
    {"where", "where", "self:x condition other:y"},
    {"eye", "eye", "n m dtype requires_grad=*"},
    {"sum_to_size", "sum_to_size", "input:x size*"},
    {"view_as", "view", "input:x other:size%"},
    {"reshape_as", "reshape", "input:x other:size%"},
    {"expand_as", "expand", "input:x other:size%"},
    {"broadcast_to", "expand", "input:x size"},
    {"split.list_args", "split_with_sizes", ""},
    {"mT", "transpose", "input:x +dim0=-2 +dim1=-1"},
    {"bool", "to", "input:x +dtype=bool"},
    {"byte", "to", "input:x +dtype=u8"},
    {"char", "to", "input:x +dtype=i8"},
    {"short", "to", "input:x +dtype=i16"},
    {"int", "to", "input:x +dtype=i32"},
    {"long", "to", "input:x +dtype=i64"},
    {"half", "to", "input:x +dtype=f16"},
    {"bfloat16", "to", "input:x +dtype=bf16"},
    {"float", "to", "input:x +dtype=f32"},
    {"double", "to", "input:x +dtype=f64"},
    {"cfloat", "to", "input:x +dtype=c64"},
    {"cdouble", "to", "input:x +dtype=c128"},
};

struct Word {
  std::string name, param, value;
  bool dropped = false, constant = false, sizes = false, rest = false;
};

Word parse_word(std::string text) {
  Word w;
  if (text.ends_with('%')) {
    w.sizes = true;
    text.pop_back();
  }
  if (text.ends_with('*') && text.find('=') == std::string::npos) {
    w.rest = true;
    text.pop_back();
  }
  const size_t equals = text.find('='), colon = text.find(':');
  if (equals != std::string::npos) {
    w.value = text.substr(equals + 1);
    w.constant = text[0] == '+';
    w.dropped = !w.constant;
    w.name = w.param = text.substr(w.constant, equals - w.constant);
  } else {
    w.name = text.substr(0, colon);
    w.param = colon == std::string::npos ? w.name : text.substr(colon + 1);
  }
  return w;
}

std::vector<Word> words_of(std::string_view signature, const Schema& schema) {
  std::vector<Word> out;
  if (signature.empty()) {
    for (const Param& p : schema.params) out.push_back({p.name, p.name, ""});
    return out;
  }
  std::istringstream in{std::string(signature)};
  for (std::string text; in >> text;) out.push_back(parse_word(text));
  return out;
}

Value constant_value(const std::string& text) {
  DType dtype;
  if (parse_dtype(text, dtype)) return dtype;
  return int64_t(std::stoll(text));
}

const Tensor* first_tensor(const PackArguments& args) {
  for (const PackArgument& a : args)
    if (const auto* t = std::get_if<Tensor>(&a.value)) return t;
  return nullptr;
}

std::optional<Scalar> number(const Value& v) {
  if (const auto* i = std::get_if<int64_t>(&v)) return Scalar(*i);
  if (const auto* d = std::get_if<double>(&v)) return Scalar(*d);
  if (const auto* b = std::get_if<bool>(&v)) return Scalar(*b);
  if (const auto* s = std::get_if<Scalar>(&v)) return *s;
  return std::nullopt;
}

void check_dropped(const Word& word, const Value& value) {
  const bool* b = std::get_if<bool>(&value);
  if (word.value == "*" || (b && word.value == (*b ? "true" : "false"))) return;
  throw NotExpressible(word.name + " = " + str(value));
}

/// The library has one device of PyTorch's.
bool is_cpu_device(const PackArgument& a) {
  const auto* text = std::get_if<std::string>(&a.value);
  if (a.name != "device" || is_none(a.value)) return a.name == "device";
  LAMELLA_CHECK(text && *text == "cpu", Device, "reference: device = {} is not there; expected \"cpu\"",
                str(a.value));
  return true;
}
}  // namespace

PackOperator::PackOperator(const std::string& name, const std::string& variant) {
  const std::string full = variant.empty() ? name : name + "." + variant;
  std::string_view target = name;
  const Row* row = nullptr;
  for (const Row& r : kRows)
    if (r.pack == full || (!row && r.pack == name)) row = &r;
  if (row) {
    target = row->op;
    signature_ = row->signature;
  }
  op_ = OpTable::current().find(target);
  if (op_ && op_->form == OpForm::Out) op_ = nullptr;
}

/// What PyTorch takes in more forms than a schema: a number for a tensor (never the first, whose method it
/// is), an empty list of tensors, yes or no for a correction of one.
Value PackOperator::fitted(const Param& param, Value value, const PackArguments& all) const {
  const auto* ints = std::get_if<Dims>(&value);
  if (param.kind == ParamKind::TensorList && ints && ints->empty()) return Tensors{};
  if (const auto* yes = std::get_if<bool>(&value); yes && param.kind == ParamKind::Float) return double(*yes);
  if (param.kind != ParamKind::Tensor || &param == &op_->schema.params[0]) return value;
  const Tensor* like = first_tensor(all);
  const std::optional<Scalar> scalar = number(value);
  return scalar && like ? Value(number_like(*scalar, *like)) : value;
}

PackOperator::Named PackOperator::bind(const PackArguments& args) const {
  const std::vector<Word> words = words_of(signature_, op_->schema);
  Named named;
  const auto set = [&](const std::string& param, Value value) {
    const int i = op_->schema.find(param);
    if (i < 0) throw NotExpressible("the operator has no parameter " + param);
    std::erase_if(named,
                  [&](const auto& n) { return n.first == param; });  // a constant, overruled by the case
    named.emplace_back(param, fitted(op_->schema.params[size_t(i)], std::move(value), args));
  };
  std::vector<const Word*> order;
  for (const Word& w : words) {
    if (w.constant) set(w.param, constant_value(w.value));
    else order.push_back(&w);
  }
  Dims rest;
  size_t position = 0;
  for (const PackArgument& a : args) {
    if (a.name == "out" || is_cpu_device(a)) continue;
    const Word* word = nullptr;
    if (a.name.empty()) {
      if (position < order.size()) word = order[position];
      const auto* number = std::get_if<int64_t>(&a.value);
      if (word && word->rest && number) {
        rest.push_back(*number);
        set(word->param, rest);
        continue;
      }
      ++position;
    } else {
      for (const Word* w : order)
        if (w->name == a.name) word = w;
    }
    if (!word)
      throw NotExpressible(a.name.empty() ? "more arguments than parameters" : "the argument " + a.name);
    const auto* t = std::get_if<Tensor>(&a.value);
    if (word->dropped) check_dropped(*word, a.value);
    else if (word->sizes && t) set(word->param, Dims(t->sizes()));
    else set(word->param, a.value);
  }
  return named;
}

Values PackOperator::arguments(const PackArguments& args) const { return canonical(*op_, {}, bind(args)); }

Tensors PackOperator::operator()(const PackArguments& args) const {
  Named named = bind(args);
  const Op* op = op_;
  for (const PackArgument& a : args) {
    if (a.name != "out" || is_none(a.value)) continue;
    op = OpTable::current().find(op_->name + "_out");
    if (!op) throw NotExpressible("the operator has no out= form");
    named.emplace_back("out", a.value);
  }
  return call(*op, {}, named);
}

}  // namespace lamella::tools
