// Promotion of tensors with views: all that show one memory become wrappers at once.
#include <algorithm>

#include "lamella/core/family.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/transforms/machine/interpreter.h"

namespace lamella {

void become(TensorImpl* header, Wrapper* wrapper) {
  Storage* const memory = header->storage;
  TensorExtra* const known = header->wrap;
  // What lies in the header's own block stays there, for the block's next life.
  const bool own = header->full && memory == header->suffix();
  header->storage = nullptr;
  header->wrap = wrapper;
  header->keys |= KeySet::of(wrapper->key).bits;
  if (memory && !own && memory->release()) Storage::destroy(memory);
  if (!known) return;
  known->in_block ? known->~TensorExtra() : delete known;
}

namespace {
const OpHandle kPart{"strided_copy"};

/// Whether nobody but these headers holds the memory.
bool hold_alone(Storage* memory, const Tensors& headers) {
  for (size_t k = 1; k < headers.size(); ++k)
    if (memory->release()) return false;  // never: there are as many references as headers
  const bool alone = memory->unique();
  for (size_t k = 1; k < headers.size(); ++k) memory->retain();
  return alone;
}

/// The step from memory in one dim to the part that `seen` shows.
Ref<ViewStep> step_to(const Tensor& whole, const TensorImpl& seen) {
  const Ints size{seen.sizes(), seen.rank}, stride{seen.strides(), seen.rank};
  const void* const args[] = {&whole, &size, &stride, &seen.offset, &seen.dtype};
  return Ref<ViewStep>::adopt(new ViewStep({}, Frame{&*kPart, args, nullptr}));
}
}  // namespace

Tensors plain_family(const Tensor& t) {
  Family* const family = t.impl()->family();
  Storage* const memory = t.impl()->storage;
  if (!family || !memory || has_late_history(t.impl())) return {};
  Tensors members = family->handles();
  const bool plain = std::ranges::all_of(members, [&](const Tensor& m) {
    return m.impl()->storage == memory && !m.impl()->wrap && !m.impl()->number && m.dtype() == family->dtype;
  });
  // A small tensor's memory lies in a header: who promotes that cannot leave it to anybody else.
  return plain && (!memory->embedded || hold_alone(memory, members)) ? members : Tensors();
}

Tensor part_of_lanes(const Tensor& batch, const Tensor& plain, int64_t lanes) {
  Dims sizes(plain.sizes()), strides(plain.strides());
  sizes.insert(0, lanes);
  strides.insert(0, batch.stride(0));
  const Tensor part = make_view_unchecked(batch, sizes, strides, plain.impl()->offset);
  Family::join(part, Family::of(batch));
  return part;
}

Wrapper* Interpreter::shell_of_part(const Tensor& whole, const Tensor& plain) {
  Wrapper* const w = shell(plain);
  auto view = std::make_unique<ViewOf>(whole);
  view->last = step_to(whole, *plain.impl());
  static_cast<ReplacingWrapper*>(w)->view = std::move(view);
  return w;
}

/// The memory becomes a tensor of the level in one dim, and each member a view of that by its strides.
void Interpreter::promote_family(const Tensors& members) {
  const TensorImpl* const first = members[0].impl();
  const int64_t n = int64_t(first->storage->nbytes) / itemsize(first->dtype);
  const Tensor plain = clone(make_view_unchecked(make_alias(members[0]), Dims{n}, Dims{1}, 0));
  const Tensor whole = Tensor::adopt(TensorImpl::create());
  whole.impl()->set_contiguous(plain.sizes());
  whole.impl()->dtype = plain.dtype();
  whole.impl()->device = plain.device();
  whole.impl()->keys = plain.keys();
  become(whole.impl(), shell(plain));
  std::vector<std::unique_ptr<Wrapper>> parts;
  for (const Tensor& m : members)
    parts.emplace_back(
        shell_of_part(whole, make_view_unchecked(plain, m.sizes(), m.strides(), m.impl()->offset)));
  for (size_t k = 0; k < members.size(); ++k) become(members[k].impl(), parts[k].release());
}

}  // namespace lamella
