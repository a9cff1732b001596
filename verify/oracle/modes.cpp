// Running a function on the Reference column, or with perturbed operands.
#include "lamella/verify/oracle/modes.h"

#include <algorithm>

#include "lamella/ops/functions/copy.h"

namespace lamella::verify {

namespace {

void give(Frame& frame, Tensors ys) {
  if (frame.list) *frame.list = std::move(ys);
  else std::ranges::move(ys, frame.results);
}

/// Calls f with each defined tensor of the frame; false as soon as f is.
template <class F> bool each_tensor(const Frame& frame, F&& f) {
  for (const uint8_t i : frame.op->tensor_params) {
    if (frame.none(i)) continue;
    if (frame.op->schema.params[i].kind == ParamKind::Tensor) {
      if (frame.tensor(i).defined() && !f(frame.tensor(i))) return false;
    } else {
      for (const Tensor& t : frame.tensors(i))
        if (!f(t)) return false;
    }
  }
  return true;
}

/// A dtype that holds less, or the CPU, where none of the oracle's exist.
bool names_narrow_dtype(const Frame& frame) {
  const auto& params = frame.op->schema.params;
  for (size_t i = 0; i < params.size(); ++i) {
    if (frame.none(int(i))) continue;
    if (params[i].kind == ParamKind::Device && frame.arg<Device>(int(i)) == Device::CPU) return true;
    if (params[i].kind == ParamKind::DType && is_inexact(frame.arg<DType>(int(i))) &&
        !is_internal(frame.arg<DType>(int(i))))
      return true;
  }
  return false;
}

/// An operator without tensors makes its result on the CPU, where there is no f128.
void make_wide(Frame& frame) {
  Values args = own(frame);
  for (Value& v : args)
    if (DType* d = std::get_if<DType>(&v); d && is_internal(*d))
      *d = is_complex(*d) ? DType::C128 : DType::F64;
  Tensors ys = call_boxed(*frame.op, args);
  for (Tensor& y : ys) y = to_reference(y);
  give(frame, std::move(ys));
}

}  // namespace

namespace {
/// The frame's arguments with those tensors moved that are not there yet: wrapped ones are.
Values moved(const Frame& frame) {
  Values args = own(frame);
  const auto move = [](Tensor& t) {
    if (t.defined() && t.device() != Device::Reference) t = to_reference(t);
  };
  for (Value& v : args) {
    if (Tensor* t = std::get_if<Tensor>(&v)) move(*t);
    else if (Tensors* list = std::get_if<Tensors>(&v)) std::ranges::for_each(*list, move);
    else v = to_reference({v})[0];
  }
  return args;
}

/// A composite may look at dtypes before any of its operators comes to the mode.
void composite_cell(Frame& frame, int) {
  const auto here = [](const Tensor& t) { return t.device() == Device::Reference; };
  if (each_tensor(frame, here) && !names_narrow_dtype(frame)) return frame.op->composite(frame);
  if (each_tensor(frame, [](const Tensor&) { return false; })) return frame.op->composite(frame);
  const Values wide = moved(frame);
  const BoxedArgs args(*frame.op, wide);
  Frame there{frame.op, args.data(), frame.results, frame.list};
  frame.op->composite(there);
}
}  // namespace

const OpTable* ReferenceTables::of(const OpTable& table) {
  const std::lock_guard lock(mutex_);
  const auto [it, fresh] = known_.try_emplace(&table, &table);
  if (!fresh) return it->second;
  for (const Op* op : table.rows()) {
    if (op->form != OpForm::Functional || !op->composite) continue;
    auto* row = new Op(*op);
    row->base = row;
    for (Cell& cell : row->cells) cell = composite_cell;
    it->second = it->second->with(*row);
  }
  known_[it->second] = it->second;  // already such a table
  return it->second;
}

ReferenceRun::ReferenceRun() : table_(reference_tables().of(OpTable::current())), level_(mode_) {}

void OnReference::call(Frame& frame, int key) {
  const Op& op = *frame.op;
  const bool factory = each_tensor(frame, [](const Tensor&) { return false; });
  const auto here = [](const Tensor& t) { return t.device() == Device::Reference; };
  if (op.composite) return op.composite(frame);  // its operators come here one by one
  const Below below(key);
  if (factory) return make_wide(frame);
  const WideDefault wide;
  if (each_tensor(frame, here) && !names_narrow_dtype(frame)) return lamella::call(frame);
  LAMELLA_CHECK(op.form == OpForm::Functional || here(frame.tensor(0)), Device,
                "{}: {} was made outside the Reference column", op.name, frame.tensor(0));
  give(frame, call_boxed(op, moved(frame)));
}

double Shaken::noise() {
  uint64_t z = (++counter_ + sample_ * 0x9E3779B97F4A7C15u) * 0xD1B54A32D192ED03u;
  z = (z ^ (z >> 29)) * 0x94D049BB133111EBu;
  return z >> 63 ? 1 : -1;
}

Tensor Shaken::shake(const Tensor& t, double size) {
  if (!t.defined() || !is_inexact(t.dtype())) return t;
  Tensor out = plain_copy(t);
  visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    T* const p = static_cast<T*>(out.raw_data());
    for (int64_t i = 0; i < out.numel(); ++i) {
      const double factor = 1 + size * noise();
      if constexpr (is_complex_type<T>) {
        using R = typename T::value_type;
        p[i] = T(p[i].real() * R(factor), p[i].imag() * R(1 + size * noise()));
      } else if constexpr (is_half_type<T>) p[i] = T(float(p[i]) * float(factor));
      else if constexpr (is_floating_type<T>) p[i] = T(p[i] * T(factor));
    }
  });
  return out;
}

/// Adds what the slope of an operator may be off in absolute terms, by a linear function.
Tensor Shaken::shift(const Tensor& y, const Tolerance& tol, f128 operand_sum) {
  if (!is_inexact(y.dtype())) return y;
  Reals flat = flatten({y});
  for (f128& part : flat) part += size_ * tol.derivative_floor * noise() * operand_sum;
  size_t at = 0;
  const Tensor wide = unflatten(flat, at, y);
  return y.device() == Device::Reference ? wide : narrow(wide, y.dtype());
}

/// name_ and name_out: the functional call, shaken, then the write.
void Shaken::write(Frame& frame, int key) {
  Tensor result;
  Frame base{frame.op->base, frame.args + (frame.op->form == OpForm::Out ? 1 : 0), &result};
  call(base, key);
  const Below below(key);
  const Tensor target = frame.tensor(0);
  copy_(target, result.dtype() == target.dtype() ? result : to(result, target.dtype()));
  frame.results[0] = target;
}

void Shaken::call(Frame& frame, int key) {
  const Op& op = *frame.op;
  if (op.form != OpForm::Functional) return write(frame, key);
  if (op.composite) return op.composite(frame);
  const Below below(key);
  if (op.is_view() || op.has(kDiscontinuous) || op.tensor_params.empty()) return lamella::call(frame);
  const Tolerance& tol = tolerance(op.name);
  const double size = size_ * tol.derivative / kDefaultTolerance.derivative;
  Values args = own(frame);
  f128 operand_sum = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    if (Tensor* t = std::get_if<Tensor>(&args[i])) *t = shake(*t, size);
    if (Tensors* list = std::get_if<Tensors>(&args[i]))
      for (Tensor& t : *list) t = shake(t, size);
    if (const Tensor* t = std::get_if<Tensor>(&args[i]); t && t->defined() && tol.derivative_floor > 0)
      for (const f128 v : flatten({*t})) operand_sum += noise() * v;
  }
  Tensors ys = call_boxed(op, args);
  if (tol.derivative_floor > 0)
    for (Tensor& y : ys) y = shift(y, tol, operand_sum);
  give(frame, std::move(ys));
}

}  // namespace lamella::verify
