// The rare paths of a call: observers, list arguments; and boxed calls.
#include "lamella/dispatch/call.h"

#include "lamella/dispatch/frame_copy.h"

namespace lamella {

namespace detail {
void call_observed(Frame& frame, KeySet keys) {
  DispatchState& state = dispatch_state;
  Observer* observer = state.observer;
  const int key = keys.highest();
  observer->on_call(frame, keys, key);
  struct Return {
    Observer* observer;
    const Frame& frame;
    ~Return() { observer->on_return(frame); }
  } on_exit{observer, frame};
  frame.op->cells[key](frame, key);
  observer->on_result(frame);
}

void call_on_device(Frame& frame) {
  const int key = int(device_of_call(frame));  // whatever is masked
  if (dispatch_state.observer) return call_observed(frame, KeySet::of(key));
  frame.op->cells[key](frame, key);
}

KeySet keys_of_lists(const Frame& frame) {
  uint64_t bits = 0;
  for_each_tensor(frame, [&](const Tensor& t, int, int) { bits |= t.keys(); });
  // What a function captures is not known before it runs: every level may have to do with it.
  if (frame.op->takes_functions) bits |= live_levels().bits | KeySet::of(kAutogradKey).bits;
  return KeySet(bits);
}
}  // namespace detail

uint32_t OpHandle::find() const {
  const Op* op = OpTable::current().find(name_);
  LAMELLA_CHECK(op, UnknownOperator,
                "call: there is no operator \"{}\"; expected one that `lamella ops` lists", name_);
  id_.store(op->id, std::memory_order_release);
  return op->id;
}

namespace {
/// A value as the parameter's kind stores it; None stays None.
void coerce(const Op& op, const Param& p, Value& v) {
  if (is_none(v)) {
    LAMELLA_CHECK(p.optional, Schema, "{}: argument \"{}\" got None, expected {}", op.name, p.name, str(p));
    return;
  }
  bool fits = false;
  switch (p.kind) {
    case ParamKind::Tensor: fits = std::holds_alternative<Tensor>(v); break;
    case ParamKind::TensorList: fits = std::holds_alternative<Tensors>(v); break;
    case ParamKind::Int:
      if (const bool* b = std::get_if<bool>(&v)) v = int64_t(*b);
      fits = std::holds_alternative<int64_t>(v);
      break;
    case ParamKind::Ints:
      if (const int64_t* i = std::get_if<int64_t>(&v)) v = Dims{*i};
      fits = std::holds_alternative<Dims>(v);
      break;
    case ParamKind::Float:
      if (const int64_t* i = std::get_if<int64_t>(&v)) v = double(*i);
      fits = std::holds_alternative<double>(v);
      break;
    case ParamKind::Bool: fits = std::holds_alternative<bool>(v); break;
    case ParamKind::Scalar:
      if (const int64_t* i = std::get_if<int64_t>(&v)) v = Scalar(*i);
      else if (const double* d = std::get_if<double>(&v)) v = Scalar(*d);
      else if (const bool* b = std::get_if<bool>(&v)) v = Scalar(*b);
      fits = std::holds_alternative<Scalar>(v);
      break;
    case ParamKind::DType: fits = std::holds_alternative<DType>(v); break;
    case ParamKind::String: fits = std::holds_alternative<std::string>(v); break;
    case ParamKind::Function:
      if (const FunctionRef* f = std::get_if<FunctionRef>(&v)) fits = *f && **f;
      break;
    case ParamKind::Device:
      if (const auto* text = std::get_if<std::string>(&v))
        if (const std::optional<Device> d = device_named(*text)) v = *d;
      fits = std::holds_alternative<Device>(v);
      break;
  }
  LAMELLA_CHECK(fits, Schema, "{}: argument \"{}\" got {}, expected {}", op.name, p.name, str(v), str(p));
  if (p.kind == ParamKind::Tensor && !p.optional)
    LAMELLA_CHECK(std::get<Tensor>(v).defined(), Undefined,
                  "{}: argument \"{}\" is an undefined tensor; expected a defined one", op.name, p.name);
  if (p.kind == ParamKind::TensorList)
    for (const Tensor& t : std::get<Tensors>(v))
      LAMELLA_CHECK(t.defined(), Undefined,
                    "{}: argument \"{}\" holds an undefined tensor; expected defined ones", op.name, p.name);
}
}  // namespace

Values canonical(const Op& op, Values args, const std::vector<std::pair<std::string, Value>>& named) {
  const auto& params = op.schema.params;
  LAMELLA_CHECK(args.size() <= params.size(), Schema, "{}: got {} arguments, expected at most {}: {}",
                op.name, args.size(), params.size(), str(op.schema));
  if (named.empty()) {  // nearly always: nothing has to change its place
    args.reserve(params.size());
    for (size_t i = 0; i < params.size(); ++i) {
      if (i == args.size()) {
        LAMELLA_CHECK(params[i].has_default, Schema, "{}: argument \"{}\" is missing; expected {}", op.name,
                      params[i].name, str(op.schema));
        args.push_back(params[i].default_value);
      }
      coerce(op, params[i], args[i]);
    }
    return args;
  }
  Values full(params.size());
  std::vector<bool> given(params.size());
  for (size_t i = 0; i < args.size(); ++i) {
    full[i] = std::move(args[i]);
    given[i] = true;
  }
  for (const auto& [name, value] : named) {
    const int i = op.schema.find(name);
    LAMELLA_CHECK(i >= 0, Schema, "{}: got an argument \"{}\", expected {}", op.name, name, str(op.schema));
    LAMELLA_CHECK(!given[size_t(i)], Schema, "{}: argument \"{}\" is given twice, expected once", op.name,
                  name);
    full[size_t(i)] = value;
    given[size_t(i)] = true;
  }
  for (size_t i = 0; i < params.size(); ++i) {
    if (!given[i]) {
      LAMELLA_CHECK(params[i].has_default, Schema, "{}: argument \"{}\" is missing; expected {}", op.name,
                    params[i].name, str(op.schema));
      full[i] = params[i].default_value;
    }
    coerce(op, params[i], full[i]);
  }
  return full;
}

BoxedArgs::BoxedArgs(const Op& op, const Values& values) {
  const size_t n = op.schema.params.size();
  LAMELLA_ASSERT(values.size() == n && n <= kMaxArity);
  if (!op.simple) lists_.reserve(n);  // else there are none
  for (size_t i = 0; i < n; ++i) {
    const auto pointer = [&]<class T>(const T& v) -> const void* {
      if constexpr (std::is_same_v<T, std::monostate>) return nullptr;
      else if constexpr (std::is_same_v<T, Dims>) return &(ints_[i] = v);
      else if constexpr (std::is_same_v<T, Tensors>) return &lists_.emplace_back(v.data(), v.size());
      else return &v;
    };
    const Tensor* const tensor = std::get_if<Tensor>(&values[i]);  // most are, for which no table is asked
    pointers_[i] = tensor ? tensor : std::visit(pointer, values[i]);
  }
}

Tensors call_boxed(const Op& op, const Values& values) {
  const BoxedArgs args(op, values);
  Tensors list;
  Tensors results(size_t(op.schema.n_results));
  const bool is_list = op.schema.result_kind == ResultKind::TensorList;
  Frame frame{&op, args.data(), results.data(), is_list ? &list : nullptr};
  call(frame);
  if (op.form != OpForm::Functional) results[0] = std::get<Tensor>(values[0]);  // the tensor written to
  if (is_list) return list;
  return results;
}

Tensors call(const Op& op, Values args, const std::vector<std::pair<std::string, Value>>& named) {
  return call_boxed(op, canonical(op, std::move(args), named));
}
Tensors call(const Op& op, Values args) { return call(op, std::move(args), {}); }

Tensors call(std::string_view name, Values args) {
  const Op* op = OpTable::current().find(name);
  LAMELLA_CHECK(op, UnknownOperator,
                "call: there is no operator \"{}\"; expected one that `lamella ops` lists", name);
  return call(*op, std::move(args), {});
}

Values own(const Frame& frame) {
  Values values;
  for (int i = 0; i < frame.op->arity; ++i) {
    if (frame.none(i)) {
      values.emplace_back();
      continue;
    }
    visit_kind(frame.op->schema.params[size_t(i)].kind, [&]<class T>(std::type_identity<T>) {
      const T& v = frame.arg<T>(i);
      if constexpr (std::is_same_v<T, TensorSpan>) values.emplace_back(Tensors(v.begin(), v.end()));
      else if constexpr (std::is_same_v<T, Ints>) values.emplace_back(Dims(v));
      else values.emplace_back(v);
    });
  }
  return values;
}

}  // namespace lamella
