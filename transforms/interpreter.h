// What vmap, grad and jvp share: forms derived from functional calls, views replayed after writes, escape
// checks.
#pragma once

#include "lamella/dispatch/call.h"

namespace lamella {

/// NOTE: [views and writes] Under grad and jvp a write replaces the value a wrapper holds; nothing saved is
/// overwritten. A view remembers its base and how it was made; a write to a view goes to the base as well,
/// and other views of the base are replayed when they are next read (decision 0005).
struct ViewStep {
  const Op* op;
  Values args;  ///< args[0] is replaced by the value the step applies to
};
struct ViewOf {
  Tensor base;
  std::vector<ViewStep> steps;
  uint64_t generation = 0;
};

/// A wrapper of grad or jvp.
struct ReplacingWrapper : Wrapper {
  std::unique_ptr<ViewOf> view;  ///< null when it is no view
  uint64_t generation = 0;       ///< counts writes
  bool argument = false;         ///< holds an argument of the transform: its memory belongs to the caller
};

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
  impl->extra = w;
  impl->dtype = value.dtype();
  impl->device = value.device();
  impl->keys = value.keys() | KeySet::of(key).bits;
  w->value = std::move(value);
  w->serial = serial;
  w->key = key;
  return out;
}
/// Wrapped tensor with the sizes and strides of `shape`.
template <class W> Tensor make_wrapper(Tensor value, int key, uint64_t serial, const TensorImpl& shape) {
  Tensor out = make_wrapper<W>(std::move(value), key, serial);
  out.impl()->set_shape_of(shape);
  return out;
}
template <class W> Tensor make_wrapper(Tensor value, int key, uint64_t serial, Ints sizes, Ints strides) {
  Tensor out = make_wrapper<W>(std::move(value), key, serial);
  out.impl()->set_shape(sizes, strides);
  return out;
}

class Interpreter : public Transform {
 public:
  void call(Frame& frame, int key) final;

 protected:
  /// A functional (or view) call with at least one argument of this level; keys from `key` up are masked.
  virtual void functional(Frame& frame) = 0;
  /// Makes `target`, a tensor this level wraps, stand for `value` (of its shape and dtype), for all who hold
  /// it.
  virtual void assign(const Frame& frame, const Tensor& target, const Tensor& value) = 0;
  /// A heap-made wrapper around `plain`, a tensor this level did not know: what promotion puts into its
  /// header.
  virtual Wrapper* shell(const Tensor& plain) = 0;
  bool wraps(const Tensor& t) const { return t.keys() >> key_ & 1; }

  int key_ = 0;
  uint64_t serial_ = 0;
  friend struct OpenLevel;

 private:
  void written(Frame& frame);
  void promote(const Frame& frame, std::string_view arg, const Tensor& target);
};

/// Opens a level for an interpreter and tells it its key.
struct OpenLevel {
  Level level;
  explicit OpenLevel(Interpreter& t) : level(t) {
    t.key_ = level.key();
    t.serial_ = level.serial();
  }
};

/// Lets calls reach level `key` again inside its own rule, for a scope: replaying views.
class Reaching {
 public:
  explicit Reaching(int key) : saved_(dispatch_state().exclude) {
    dispatch_state().exclude &= ~KeySet::of(key).bits;
  }
  ~Reaching() { dispatch_state().exclude = saved_; }
  Reaching(const Reaching&) = delete;

 private:
  uint64_t saved_;
};

/// The wrapper of t at the interpreter's level, up to date. Null when t is not wrapped. Error
/// escaped_wrapper.
using Take = void (*)(const Tensor& to, const Tensor& from);
ReplacingWrapper* replayed(const Tensor& t, ReplacingWrapper* w, int key, Take take);
inline ReplacingWrapper* current_wrapper(const Frame& frame, const Tensor& t, int key, uint64_t serial,
                                         Take take) {
  if (!(t.keys() >> key & 1)) return nullptr;
  auto* w = wrapper_at<ReplacingWrapper>(t, key, serial);
  if (!w) [[unlikely]]
    raise_escaped(frame, key);
  return w->view ? replayed(t, w, key, take) : w;
}
/// Notes that `result` is `frame.op` applied to the wrapped `frame.tensor(0)`.
void note_view(const Frame& frame, const Tensor& result, int key, uint64_t serial);
/// The write of NOTE: [views and writes]. `take(to, from)` gives the wrapped `to` the content of `from`,
/// wrapped or plain.
void replace_value(const Frame& frame, const Tensor& target, const Tensor& value, int key, uint64_t serial,
                   Take take);

}  // namespace lamella
