// Calling an operator: keys of the arguments, masks, highest bit, one table load, one indirect call.
#pragma once

#include "lamella/dispatch/state.h"
#include "lamella/dispatch/table.h"

LAMELLA_API_BEGIN
namespace lamella {

namespace detail {
extern std::atomic<const OpTable*> published_table;
const OpTable& first_table();
void call_observed(Frame& frame, KeySet keys);
/// Of a call whose arguments have none: device=, else the default device's.
[[gnu::noinline]] void call_on_device(Frame& frame);
KeySet keys_of_lists(const Frame& frame);
}  // namespace detail

inline const OpTable& OpTable::current() {
  if (const OpTable* pinned = detail::dispatch_state.table) [[unlikely]]
    return *pinned;
  const OpTable* t = detail::published_table.load(std::memory_order_acquire);
  return t ? *t : detail::first_table();
}

/// Union of the keys of all tensor arguments.
[[gnu::always_inline]] inline KeySet keys_of(const Frame& frame) {
  const Op& op = *frame.op;
  if (!op.simple) [[unlikely]]
    return detail::keys_of_lists(frame);
  uint64_t bits = 0;
  for (const uint8_t i : op.tensor_params) {
    const auto* t = static_cast<const Tensor*>(frame.args[i]);
    if (t && t->impl()) bits |= t->impl()->keys;
  }
  return KeySet(bits);
}

/// Likewise of a typed call's arguments, whose kinds are known where it is compiled.
inline uint64_t key_bits(const Tensor& t) { return t.impl() ? t.impl()->keys : 0; }
inline uint64_t key_bits(TensorSpan list) {
  uint64_t bits = 0;
  for (const Tensor& t : list) bits |= key_bits(t);
  return bits;
}
template <class... Ts> [[gnu::always_inline]] inline KeySet keys_of_all(const Ts&... tensors) {
  return KeySet((uint64_t{0} | ... | key_bits(tensors)));
}

/// Where an operator without tensor arguments makes its results.
inline Device device_of_call(const Frame& frame) {
  const int at = frame.op->device_param;
  return at >= 0 && frame.args[at] ? frame.arg<Device>(at) : dispatch_state().default_device;
}

/// Dispatches `frame` given the keys of its arguments. In line wherever operators are called: a call of its
/// own would cost as much as the rest.
[[gnu::always_inline]] inline void call_with_keys(Frame& frame, KeySet keys) {
  const DispatchState& state = detail::dispatch_state;
  const Op& op = *frame.op;
  uint64_t bits = keys.bits | state.modes;
  if (op.properties & (kRandom | kAmbient)) bits |= state.ambient;
  bits &= ~state.exclude;
  if (bits == 0) [[unlikely]]
    return detail::call_on_device(frame);  // operators without tensor arguments
  if (state.observer) [[unlikely]]
    return detail::call_observed(frame, KeySet(bits));
  const int key = KeySet(bits).highest();
  op.cells[key](frame, key);
}

[[gnu::always_inline]] inline void call(Frame& frame) { call_with_keys(frame, keys_of(frame)); }

/// A built-in or plug-in operator, looked up by name at its first use (error unknown_operator); the row is
/// read from the current table at every call. `name` must live as long.
class OpHandle {
 public:
  constexpr explicit OpHandle(std::string_view name) : name_(name) {}
  const Op& operator*() const {
    uint32_t id = id_.load(std::memory_order_acquire);
    if (id == kNotYet) [[unlikely]]
      id = find();
    const OpTable* const pinned = detail::dispatch_state.table;  // whoever has an id has seen a table
    return (pinned ? pinned : detail::published_table.load(std::memory_order_acquire))->row(id);
  }

 private:
  static constexpr uint32_t kNotYet = ~0u;
  uint32_t find() const;

  std::string_view name_;
  mutable std::atomic<uint32_t> id_{kNotYet};
};

/// Typed calls with one result; generated functions use it.
template <size_t N> [[gnu::always_inline]] inline Tensor call_one(const OpHandle& handle,
                                                                  const void* const (&args)[N], KeySet keys) {
  const Op& op = *handle;
  Tensor result;
  Frame frame{&op, args, &result};
  call_with_keys(frame, keys);
  return result;
}

/// Likewise of operators without tensors. Nothing masks a device's key.
template <size_t N> [[gnu::always_inline]] inline Tensor make_one(const OpHandle& handle,
                                                                  const void* const (&args)[N],
                                                                  const std::optional<Device>& device) {
  const Op& op = *handle;
  const DispatchState& state = detail::dispatch_state;
  Tensor result;
  Frame frame{&op, args, &result};
  const int key = int(state.default_device);
  const uint64_t seen =
      state.ambient | reinterpret_cast<uintptr_t>(state.observer);  // modes are ambient, too
  if (seen | uint64_t(device.has_value())) [[unlikely]]
    call_with_keys(frame, KeySet::of(int(device.value_or(Device(key)))));
  else op.cells[key](frame, key);
  return result;
}

/// Boxed call: checks kinds against the schema, fills defaults, dispatches. Results in order. Errors:
/// unknown_operator, schema.
Tensors call(std::string_view name, Values args);
Tensors call(const Op& op, Values args);
/// With keyword arguments, by parameter name.
Tensors call(const Op& op, Values args, const std::vector<std::pair<std::string, Value>>& named);
/// Full-arity values: defaults filled, int -> float/Scalar where the schema wants it. Errors schema.
Values canonical(const Op& op, Values args, const std::vector<std::pair<std::string, Value>>& named = {});
/// A frame's arguments as owned values (counted handles): for tapes, traces and fallbacks.
Values own(const Frame& frame);

/// Frame storage for boxed arguments: pointers into `values`, which must outlive it.
class BoxedArgs {
 public:
  BoxedArgs(const Op& op, const Values& values);
  const void* const* data() const { return pointers_; }

 private:
  const void* pointers_[kMaxArity];  // as many as there are parameters
  Ints ints_[kMaxArity];
  std::vector<TensorSpan> lists_;
};

/// Calls `op` on full-arity values; results in order.
Tensors call_boxed(const Op& op, const Values& values);

}  // namespace lamella
LAMELLA_API_END
