// Which memory a header shows, through wrappers.
#include "lamella/transforms/writes/content.h"

#include "lamella/core/family.h"
#include "lamella/transforms/writes/views.h"

namespace lamella {

Content content_of(const Tensor& t) {
  const Tensor* now = &t;
  bool held = false;  // by two wrappers: operators may return what they were given
  while (!now->impl()->storage && now->keys() >> kFirstLevelKey) {
    const auto* const w = static_cast<const Wrapper*>(now->impl()->wrap);
    if (const auto* const r = dynamic_cast<const ReplacingWrapper*>(w)) {
      const ReplacingWrapper& base = r->view ? ReplacingWrapper::of_base(*r->view) : *r;
      return {now, base.argument ? 0 : base.birth, held || base.views.load(std::memory_order_relaxed) > 0};
    }
    held |= !w->value.impl()->unique();
    now = &w->value;
  }
  const Storage* const memory = now->impl()->storage;
  if (!memory) return {now, 0, held};
  const Family* const family = now->impl()->family();
  // A small tensor's memory lies in its header: who promotes that cannot leave it to anybody else.
  const bool lost = now == &t && memory->embedded && !memory->unique();
  return {now, memory->birth, held || lost || (family && !family->unique())};
}

const Tensor* before_promotion(const Tensor& t, int key, int last) {
  const Tensor* now = &t;
  while (last_level(*now->impl()) != last) {
    const auto* w = static_cast<const Wrapper*>(now->impl()->wrap);
    const auto* promoted = dynamic_cast<const Promoted*>(w);
    if (!promoted || w->key < key) return nullptr;
    now = &promoted->before;
  }
  return now;
}

uint32_t writes_through(const TensorImpl* impl) {
  uint32_t seen = 0;
  while (!impl->storage && impl->keys >> kFirstLevelKey) {
    const auto* w = static_cast<const Wrapper*>(impl->wrap);
    seen = 7 * seen + uint32_t(w->writes()) * 1000003;  // a new value's memory starts at version 0
    impl = w->value.impl();
  }
  return impl->storage ? seen + writes_seen(*impl) : seen;
}

WritesSeen::WritesSeen(TensorSpan ts) {
  for (const Tensor& t : ts) seen_.push_back(t.defined() ? writes_seen(*t.impl()) : 0);
}

std::optional<size_t> WritesSeen::written(TensorSpan ts) const {
  for (size_t i = 0; i < seen_.size(); ++i)
    if (ts[i].defined() && writes_seen(*ts[i].impl()) != seen_[i]) return i;
  return std::nullopt;
}

}  // namespace lamella
