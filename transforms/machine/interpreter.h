// What vmap, grad and jvp share: forms derived from functional calls, views replayed after writes, escape
// checks.
#pragma once

#include "lamella/dispatch/call.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [views and writes] Under grad and jvp a write replaces the value a wrapper holds; nothing saved is
/// overwritten. A view remembers its base and how it was made; a write to a view goes to the base as well,
/// and other views of the base are replayed when they are next read (decision 0005). Sizes, strides and
/// offset of a wrapper are those the program sees: of the memory it would have without the level. The value
/// may be laid out otherwise once it was replaced.
///
/// A step is shared by all views made from its view, so that a chain of n views costs n.
struct ViewStep : RefCounted {
  Ref<ViewStep> from;  ///< null: applies to the base
  const Op* op;
  Values args;  ///< args[0] is replaced by the value the step applies to
  ViewStep(Ref<ViewStep> before, const Frame& frame);
  static void destroy(ViewStep* step);
};
struct ViewOf {
  const Tensor base;
  Ref<ViewStep> last;
  uint64_t generation = 0;
  explicit ViewOf(Tensor b);
  ~ViewOf();
  ViewOf(const ViewOf&) = delete;
};

/// A wrapper of grad or jvp.
struct ReplacingWrapper : Wrapper {
  std::unique_ptr<ViewOf> view;           ///< null when it is no view
  uint64_t generation = 0;                ///< counts writes
  uint64_t birth = detail::birth_serial;  ///< as a storage's
  std::atomic<uint32_t> views{0};         ///< that are alive and have it for their base
  bool argument = false;  ///< holds an argument of the transform: its memory belongs to the caller
  uint64_t writes() const override { return view ? of_base(*view).generation : generation; }
  static ReplacingWrapper& of_base(const ViewOf& view) {
    return *static_cast<ReplacingWrapper*>(view.base.impl()->wrap);
  }
};

/// What promotion puts into a header (NOTE: [promotion of fresh storage]): a wrapper, and the tensor, of no
/// level or of levels further out, that the header was.
struct Promoted {
  Tensor before;
};
template <class W> struct PromotedWrapper : W, Promoted {};

/// The level that wraps a tensor last; 0: none.
inline int last_level(const TensorImpl& t) {
  return t.storage || !(t.keys >> kFirstLevelKey) ? 0 : KeySet(t.keys).highest();
}
/// A tape's handle `t`, of which `last` was the last level when the tape of level `key` saved it: as that
/// level saw it. Null when a level further out has promoted it, which to this one is a write.
const Tensor* before_promotion(const Tensor& t, int key, int last);

/// Where a write to a tensor ends: in the memory below wrappers of vmap, or in a wrapper that replaces its
/// value.
struct Content {
  const Tensor* holder;  ///< that tensor or wrapper
  uint64_t birth;        ///< as a storage's; 0 for memory of a caller
  bool shared;           ///< other tensors show it
  const Storage* memory() const { return holder->impl()->storage; }
};
Content content_of(const Tensor& t);
/// Puts a wrapper into a header, for what it was.
void become(TensorImpl* header, Wrapper* wrapper);
/// Handles of all that show t's memory, where all are plain, of one dtype, and known; else none.
Tensors plain_family(const Tensor& t);
/// Of a batch of memory in one dim, the lanes of the part that `plain` shows: they lie in those of the whole.
Tensor part_of_lanes(const Tensor& batch, const Tensor& plain, int64_t lanes);
/// Tells writes apart that a tensor has seen through any wrapper, for tapes that saved it.
uint32_t writes_through(const TensorImpl* impl);
inline uint32_t writes_seen(const TensorImpl& impl) {
  return impl.storage ? impl.storage->version.load(std::memory_order_relaxed) : writes_through(&impl);
}

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
template <class W> Tensor make_wrapper(Tensor value, int key, uint64_t serial, Ints sizes, Ints strides) {
  Tensor out = make_wrapper<W>(std::move(value), key, serial);
  out.impl()->set_shape(sizes, strides);
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
/// Makes `result` a view, by `frame.op`, of the wrapped `frame.tensor(0)`, and places it as `op.view` says.
void note_view(const Frame& frame, const Tensor& result, int key, uint64_t serial);
/// Whether a wrapper's value lies as the wrapper says: then the view of it lies as the wrapper's view.
bool lies_as_seen(const Tensor& wrapper, const Tensor& value);
/// The write of NOTE: [views and writes]. `take(to, from)` gives the wrapped `to` the content of `from`,
/// wrapped or plain.
void replace_value(const Frame& frame, const Tensor& target, const Tensor& value, int key, uint64_t serial,
                   Take take);

/// Likewise of any tensor: levels and base autograd see in it what they see in `t` now. Memory is shared.
Tensor fixed(const Tensor& t);

}  // namespace lamella
LAMELLA_API_END
