// One place that knows the kinds of parameters: visiting a frame's tensors, and frames with some of them
// replaced.
#pragma once

#include <memory>
#include <type_traits>

#include "lamella/dispatch/op.h"

LAMELLA_API_BEGIN
namespace lamella {

/// f(std::type_identity<T>{}) with the type that a frame points at for parameters of this kind.
template <class F> decltype(auto) visit_kind(ParamKind kind, F&& f) {
  switch (kind) {
    case ParamKind::Tensor: return f(std::type_identity<Tensor>{});
    case ParamKind::TensorList: return f(std::type_identity<TensorSpan>{});
    case ParamKind::Int: return f(std::type_identity<int64_t>{});
    case ParamKind::Ints: return f(std::type_identity<Ints>{});
    case ParamKind::Float: return f(std::type_identity<double>{});
    case ParamKind::Bool: return f(std::type_identity<bool>{});
    case ParamKind::Scalar: return f(std::type_identity<Scalar>{});
    case ParamKind::DType: return f(std::type_identity<DType>{});
    case ParamKind::String: return f(std::type_identity<std::string>{});
    case ParamKind::Function: return f(std::type_identity<FunctionRef>{});
    case ParamKind::Device: return f(std::type_identity<Device>{});
  }
  __builtin_unreachable();
}

inline bool is_list(const Op& op, int param) {
  return op.schema.params[size_t(param)].kind == ParamKind::TensorList;
}
/// The tensors given as parameter `param`; none for None.
inline TensorSpan tensors_at(const Frame& f, int param) {
  if (f.none(param)) return {};
  return is_list(*f.op, param) ? f.tensors(param) : TensorSpan(&f.tensor(param), 1);
}
/// f(tensor, param, element) for every tensor argument; element counts within a list. Tensors given as
/// undefined handles come too.
template <class F> void for_each_tensor(const Frame& frame, F&& f) {
  for (const uint8_t i : frame.op->tensor_params) {
    int element = 0;
    for (const Tensor& t : tensors_at(frame, i)) f(t, int(i), element++);
  }
}

/// Raises undefined for the first tensor argument that is None or an undefined tensor and may not be.
[[gnu::cold]] void check_defined(const Frame& frame);
/// Raises device for the first tensor argument that is on another device than the first one, naming both.
[[gnu::cold]] void check_one_device(const Frame& frame);

/// NOTE: [frames with replaced arguments] Starts as the frame's own pointers; what is set lives here. Up to
/// kInline tensors need no heap.
class FrameCopy {
 public:
  explicit FrameCopy(const Frame& frame) : frame_(frame) {
    for (int i = 0; i < frame.op->arity; ++i) args_[i] = frame.args[i];
  }
  ~FrameCopy() { std::destroy_n(inline_tensors(), n_inline_); }
  FrameCopy(const FrameCopy&) = delete;

  void set(int param, int element, Tensor t) {
    if (is_list(*frame_.op, param)) own_list(param)[element] = std::move(t);
    else args_[param] = put(std::move(t));
  }
  void set(int param, Tensor t) { set(param, 0, std::move(t)); }
  void set(int param, Dims v);
  void set(int param, int64_t v);
  void set(int param, FunctionRef v);
  void set(int param, Device v);
  /// Leaves the argument out: None.
  void clear(int param) { args_[param] = nullptr; }

  const void* const* args() const { return args_; }
  Frame into(Tensor* results, Tensors* list = nullptr) const { return {frame_.op, args_, results, list}; }

 private:
  static constexpr size_t kInline = 8;
  struct Rare {
    std::vector<std::unique_ptr<Tensor>> tensors;
    std::vector<std::unique_ptr<Tensor[]>> lists;
    int64_t numbers[kMaxArity];
    Dims dims[kMaxArity];
    Ints ints[kMaxArity];
    FunctionRef functions[kMaxArity];
    Device devices[kMaxArity];
  };

  Tensor* inline_tensors() { return reinterpret_cast<Tensor*>(bytes_); }
  const Tensor* put(Tensor t);
  Tensor* own_list(int param);
  Rare& rare();

  const Frame& frame_;
  const void* args_[kMaxArity];
  TensorSpan spans_[kMaxArity];  ///< of lists that are owned
  size_t n_inline_ = 0;
  alignas(Tensor) unsigned char bytes_[kInline * sizeof(Tensor)];
  std::unique_ptr<Rare> rare_;
};

}  // namespace lamella
LAMELLA_API_END
