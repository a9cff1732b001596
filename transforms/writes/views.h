// Views of what a level wraps: made anew after writes to their base.
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

}  // namespace lamella
LAMELLA_API_END
