// What a frame's copy owns.
#include "lamella/dispatch/frame_copy.h"

#include <algorithm>

#include "lamella/core/thresholds.h"
#include "lamella/dispatch/given.h"

namespace lamella {

void check_defined(const Frame& frame) {
  const Op& op = *frame.op;
  for (const uint8_t i : op.tensor_params) {
    const Param& p = op.schema.params[i];
    LAMELLA_CHECK(p.optional || !frame.none(i), Undefined, "{}: argument \"{}\" is None; expected a tensor",
                  op.base->name, p.name);
    for (const Tensor& t : tensors_at(frame, i))
      LAMELLA_CHECK(p.optional || t.defined(), Undefined,
                    "{}: argument \"{}\" is an undefined tensor; expected a defined one", op.base->name,
                    p.name);
  }
}

void detail::refuse_number(const Frame& frame, int i) {
  const Param& p = frame.op->schema.params[size_t(i)];
  if (p.kind == ParamKind::DType)
    refuse_dtype(frame.op->base->name, *static_cast<const DType*>(frame.args[i]), p.name);
  refuse_device(frame.op->base->name, *static_cast<const Device*>(frame.args[i]), p.name);
}

void detail::refuse_empty_function(std::string_view who, std::string_view argument) {
  fail(ErrorCode::Usage, "{}: {} is an empty function; expected one that can be called", who,
       Argument{std::string(argument)});
}

void check_one_device(const Frame& frame) {
  const Tensor* first = nullptr;
  int first_at = 0;
  const auto arg = [&](int i) { return frame.op->schema.params[size_t(i)].name; };
  for_each_tensor(frame, [&](const Tensor& t, int i, int) {
    if (!t.defined()) return;
    if (!first) first = &t, first_at = i;
    LAMELLA_CHECK(t.device() == first->device(), Device,
                  "{}: {} is on {}, and {} is on {}; expected one device: to_device moves a tensor",
                  frame.op->base->name, arg(i), name(t.device()), arg(first_at), name(first->device()));
  });
}

FrameCopy::Rare& FrameCopy::rare() {
  if (!rare_) rare_ = std::make_unique<Rare>();
  return *rare_;
}

const Tensor* FrameCopy::put(Tensor t) {
  static_assert(kInline == kUsualThresholds.inline_values);
  if (n_inline_ < kInline) return std::construct_at(inline_tensors() + n_inline_++, std::move(t));
  return rare().tensors.emplace_back(std::make_unique<Tensor>(std::move(t))).get();
}

/// The list's tensors, copied when the first of them is replaced.
Tensor* FrameCopy::own_list(int param) {
  TensorSpan& span = spans_[param];
  if (span.data()) return const_cast<Tensor*>(span.data());
  const TensorSpan given = frame_.tensors(param);
  Tensor* to;
  if (given.size() <= kInline - n_inline_) {
    to = inline_tensors() + n_inline_;
    std::uninitialized_copy(given.begin(), given.end(), to);
    n_inline_ += given.size();
  } else {
    to = rare().lists.emplace_back(std::make_unique<Tensor[]>(given.size())).get();
    std::copy(given.begin(), given.end(), to);
  }
  args_[param] = &(span = TensorSpan(to, given.size()));
  return to;
}

void FrameCopy::set(int param, int64_t v) { args_[param] = &(rare().numbers[param] = v); }

void FrameCopy::set(int param, Dims v) {
  Dims& kept = rare().dims[param] = std::move(v);
  args_[param] = &(rare().ints[param] = Ints(kept));
}

void FrameCopy::set(int param, Device v) { args_[param] = &(rare().devices[param] = v); }

void FrameCopy::set(int param, FunctionRef v) { args_[param] = &(rare().functions[param] = std::move(v)); }

}  // namespace lamella
