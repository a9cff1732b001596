// The registry of types, and the fallback that every type has.
#include "lamella/dispatch/types.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "lamella/dispatch/call.h"
#include "lamella/dispatch/cells.h"
#include "lamella/dispatch/frame_copy.h"

namespace lamella {

namespace {

std::mutex registering;
std::array<std::atomic<const TensorType*>, kTypeKeys> types;  // never freed
thread_local int64_t fallbacks = 0;

constexpr uint64_t kTypeBits = (KeySet::from(kFirstTypeKey) - KeySet::from(kFirstTypeKey + kTypeKeys)).bits;

/// Types of the arguments that this call has passed by, in this order, for the error at the end.
struct Declined {
  const Op* op = nullptr;
  std::string names;
};
thread_local Declined declined;

bool is_alike(const Tensor& a, const Tensor& b) {
  return a.defined() && a.dtype() == b.dtype() && std::ranges::equal(a.sizes(), b.sizes());
}

Tensor strided(const Tensor& t) {
  if (!t.impl() || !t.impl()->layout) return t;
  const TensorType* const type = tensor_type(t.impl()->layout->key);
  if (!type || !type->to_strided) return t;
  Tensor out = type->to_strided(t);
  LAMELLA_CHECK(is_alike(out, t) && !out.impl()->layout, Value,
                "{}: to_strided of {} gave {}; expected an ordinary tensor of its sizes and dtype",
                type->name, t, out);
  return out;
}

bool all_have_values(const Frame& frame) {
  bool all = true;
  for_each_tensor(frame, [&](const Tensor& t, int, int) {
    if (!t.impl() || !t.impl()->layout) return;
    const TensorType* const type = tensor_type(t.impl()->layout->key);
    all = all && type && type->to_strided;
  });
  return all;
}

}  // namespace

Tensor detail::laid_out(const TensorType& type, const Tensor& value) {
  Tensor out = type.from_strided(value);
  LAMELLA_CHECK(is_alike(out, value) && out.impl()->layout && tensor_type(out.impl()->layout->key) == &type,
                Value,
                "{}: from_strided of {} gave {}; expected a tensor of the type, of its sizes and dtype",
                type.name, value, out);
  return out;
}

namespace {
/// A written argument gets the layout of the value that was written to its strided form.
void write_back(const Tensor& target, const Tensor& value) {
  const TensorType* const type = tensor_type(target.impl()->layout->key);
  LAMELLA_CHECK(type->from_strided, NoKernel,
                "{}: a tensor of type {} cannot be written: the type makes none of strided values",
                type->name, type->name);
  const Tensor fresh = detail::laid_out(*type, value);
  replace_layout(target, Ref<TensorLayout>::share(fresh.impl()->layout));
}

void run_strided(Frame& frame) {
  ++fallbacks;
  const Excluding without{KeySet(kTypeBits)};
  FrameCopy copy(frame);
  for_each_tensor(frame, [&](const Tensor& t, int param, int element) {
    if (t.impl() && t.impl()->layout) copy.set(param, element, strided(t));
  });
  Frame lower = copy.into(frame.results, frame.list);
  call(lower);
  if (frame.op->form == OpForm::Functional) return;
  const Tensor& target = frame.tensor(0);
  if (target.impl()->layout) write_back(target, lower.tensor(0));
}

/// The one fallback of all types: NOTE: [types].
void type_cell(Frame& frame, int key) {
  const TensorType* const type = tensor_type(key);
  LAMELLA_ASSERT(type);
  if (type->handle && type->handle(frame, key)) return detail::check_given(frame, key);
  not_mine(frame, key);
}

/// Whether somebody has registered something for a key that no type has: it is theirs.
bool is_served(int key) {
  return std::ranges::any_of(OpTable::current().rows(), [key](const Op* row) {
    const Served by = row->served[key];
    return by != Served::Hole && by != Served::Decompose;
  });
}

}  // namespace

int add_tensor_type(TensorType type) {
  const std::lock_guard lock(registering);
  LAMELLA_CHECK(type.handle || type.to_strided, Schema,
                "add_tensor_type: \"{}\" has neither handle nor to_strided; expected one at least",
                type.name);
  LAMELLA_CHECK(!type.name.empty(), Schema, "add_tensor_type: the type has no name; expected one");
  LAMELLA_CHECK(type.name != "strided", Schema,
                "add_tensor_type: \"{}\" is what tensors without a type are called; expected another name",
                type.name);
  const TensorType* const theirs = tensor_type(find_tensor_type(type.name));
  LAMELLA_CHECK(!theirs, Schema,
                "add_tensor_type: {} adds \"{}\", and {} has a type of this name; expected another one",
                detail::origin_str(detail::origin_now()), type.name, detail::origin_str(theirs->from));
  type.from = detail::origin_now();
  LAMELLA_CHECK(type.derives_from < 0 || tensor_type(type.derives_from), Schema,
                "add_tensor_type: \"{}\" derives from key {}, which no type has", type.name,
                type.derives_from);
  int at = 0;
  while (at < kTypeKeys && (types[size_t(at)].load() || is_served(kFirstTypeKey + at))) ++at;
  LAMELLA_CHECK(at < kTypeKeys, Schema, "add_tensor_type: got \"{}\", expected at most {} types in a program",
                type.name, kTypeKeys);
  OpTable::set_fallback(kFirstTypeKey + at, type_cell);  // what it refuses is no type
  types[size_t(at)].store(new TensorType(std::move(type)), std::memory_order_release);
  return kFirstTypeKey + at;
}

const TensorType* tensor_type(int key) {
  if (key < kFirstTypeKey || key >= kFirstTypeKey + kTypeKeys) return nullptr;
  return types[size_t(key - kFirstTypeKey)].load(std::memory_order_acquire);
}

int find_tensor_type(std::string_view name) {
  for (int key = kFirstTypeKey; key < kFirstTypeKey + kTypeKeys; ++key)
    if (type_name(key) == name && !name.empty()) return key;
  return -1;
}

std::string_view type_name(int key) {
  const TensorType* const type = tensor_type(key);
  return type ? std::string_view(type->name) : std::string_view();
}

bool is_derived(int key, int ancestor) {
  while (key >= 0 && key != ancestor) {
    const TensorType* const type = tensor_type(key);
    key = type ? type->derives_from : -1;
  }
  return key == ancestor;
}

void not_mine(Frame& frame, int key) {
  const uint64_t others = keys_of(frame).bits & kTypeBits & ~dispatch_state().exclude & ~KeySet::of(key).bits;
  const Declined before = declined;
  struct Restored {
    const Declined& before;
    ~Restored() { declined = before; }
  } restored{before};
  if (declined.op != frame.op) declined = {frame.op, ""};
  declined.names += (declined.names.empty() ? "" : ", ") + std::string(type_name(key));
  if (others & (KeySet::of(key).bits - 1)) return fall_through(frame, key);
  if (all_have_values(frame)) return run_strided(frame);
  fail(ErrorCode::NoKernel, "{}: no type of its arguments takes the call: {}; expected one that does",
       frame.op->name, declined.names);
}

int64_t strided_fallbacks() { return fallbacks; }

}  // namespace lamella
