// What vmap, grad and jvp share: wrappers, and how a call goes through a level.
#pragma once

#include "lamella/transforms/writes/content.h"
#include "lamella/transforms/writes/views.h"

LAMELLA_API_BEGIN
namespace lamella {

/// A tensor that wraps `value` at a level; its shape is the caller's to set.
template <class W> Tensor make_wrapper(Tensor value, int key, uint64_t serial) {
  TensorImpl* impl = TensorImpl::create();
  Tensor out = Tensor::adopt(impl);
  W* w;
  if constexpr (sizeof(W) <= TensorImpl::kSuffix) {
    w = new (impl->suffix()) W;
    w->in_block = true;
  } else {
    w = new W;
  }
  impl->wrap = w;
  impl->dtype = value.dtype();
  impl->device = value.device();
  impl->keys = value.keys() | KeySet::of(key).bits;
  w->value = std::move(value);
  w->serial = serial;
  w->key = key;
  return out;
}
/// Wrapped tensor with the sizes, strides and offset of `shape`.
template <class W> Tensor make_wrapper(Tensor value, int key, uint64_t serial, const TensorImpl& shape) {
  Tensor out = make_wrapper<W>(std::move(value), key, serial);
  out.impl()->set_shape_of(shape);
  out.impl()->offset = shape.offset;
  return out;
}

class Interpreter : public Transform {
 public:
  void call(Frame& frame, int key) final;
  void call_with_functions(Frame& frame, int key) final;
  int key() const { return key_; }
  uint64_t serial() const { return serial_; }

  /// The same transform, key and serial: what a function keeps that enters the level again.
  virtual std::unique_ptr<Interpreter> copy() const = 0;
  /// A value one level down as an argument at this level: a constant to derivatives, a batch to vmap.
  virtual Tensor entered(const Tensor& lower) const { return lower; }
  struct Left {
    Tensor value;          ///< one level down
    bool depends = false;  ///< derivatives of this level depend on it
  };
  /// The other way.
  virtual Left left(const Tensor& t) const = 0;
  /// What `t`, wrapped at this level, is now, in a header that later writes to it do not reach.
  virtual Tensor fixed(const Tensor& t) const = 0;

 protected:
  /// `functional` for operators that take functions, which are those for the next level by now.
  virtual void with_functions(Frame& frame) { functional(frame); }
  /// A functional (or view) call with at least one argument of this level; keys from `key` up are masked.
  virtual void functional(Frame& frame) = 0;
  /// Makes `target`, a tensor this level wraps, stand for `value` (of its shape and dtype), for all who hold
  /// it.
  virtual void assign(const Frame& frame, const Tensor& target, const Tensor& value) = 0;
  /// A heap-made wrapper around `plain`, a tensor this level does not wrap: what promotion puts into its
  /// header. A PromotedWrapper.
  virtual Wrapper* shell(const Tensor& plain) = 0;
  template <class W> W* make_shell(const Tensor& plain, Tensor value) const {
    auto* w = new PromotedWrapper<W>;
    w->before = plain;
    w->value = std::move(value);
    w->key = key_;
    w->serial = serial_;
    return w;
  }
  /// Likewise of what promotion puts into the header of a part of `whole`, a tensor of this level in one dim,
  /// where `plain` shows the same part without this level.
  virtual Wrapper* shell_of_part(const Tensor& whole, const Tensor& plain);
  bool wraps(const Tensor& t) const { return t.keys() >> key_ & 1; }

  int key_ = 0;
  uint64_t serial_ = 0;
  friend struct OpenLevel;

 private:
  FunctionRef lowered(const FunctionRef& f, const Op& op, const Param& param) const;
  void written(Frame& frame);
  void promote(const Frame& frame, std::string_view arg, const Tensor& target);
  void promote_family(const Tensors& members);
};

/// Opens a level for an interpreter and tells it its key.
struct OpenLevel {
  Level level;
  explicit OpenLevel(Interpreter& t) : level(t) {
    t.key_ = level.key();
    t.serial_ = level.serial();
  }
  /// Again, see NOTE: [callables].
  OpenLevel(Interpreter& t, int key, uint64_t serial) : level(t, key, serial) {}
};

/// As Interpreter::fixed, of any tensor: levels and base autograd see in it what they see in `t` now. Memory
/// is shared.
Tensor fixed(const Tensor& t);

}  // namespace lamella
LAMELLA_API_END
