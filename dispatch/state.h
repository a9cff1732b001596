// The thread's dispatch state: masks, live levels, observers. One plain struct, one thread-local access.
#pragma once

#include <memory>

#include "lamella/core/rng.h"
#include "lamella/dispatch/op.h"

LAMELLA_API_BEGIN
namespace lamella {

class OpTable;
class Transform;

/// How much a transform sees. Carried: operators with an argument it wraps. Ambient: also random operators
/// and those that take callables. Mode: every operator.
enum class TransformKind : uint8_t { Carried, Ambient, Mode };

/// NOTE: [callables] An operator may take functions (parameters of type Function or Rule). What they capture
/// is not seen in the arguments, so such a call reaches every live level and base autograd. A level passes
/// each function on as one of values one level down: called with such values, it enters the level again,
/// wraps them, calls the function it was given, and unwraps what that returns. So at any depth the function
/// runs at the levels its caller saw, captures included. It may be called when the level has ended (rules are
/// called by backward): then the level is opened again for the call, in its old place with its old serial if
/// that place is free, since captured values know it, else as a new level.

/// An interpreter: what happens to an operator call that reaches a level.
class Transform {
 public:
  virtual ~Transform() = default;
  virtual TransformKind kind() const = 0;
  virtual std::string_view name() const = 0;
  /// Runs one level down: keys at and above this level are masked meanwhile.
  virtual void call(Frame& frame, int key) = 0;
  /// Likewise an operator that takes functions. Unless overridden, the functions reach this level again while
  /// it lives, and `call` does the rest.
  virtual void call_with_functions(Frame& frame, int key);
  /// ", size 8" for error texts and traces.
  virtual std::string detail() const { return ""; }
  /// Whether composites reach `call` whole; else their bodies run at once, and what they call reaches it.
  bool takes_composites = false;
};

/// What happens to calls of a kernel that may give other bits each time: see NOTE: [determinism].
enum class Determinism : uint8_t { Any, Warned, Required };

/// What a thread is set to, until a scope ends or for good. Captured states carry all of it.
struct ThreadSettings {
  DType default_dtype = DType::F32;
  Device default_device = Device::CPU;  ///< see DefaultDevice
  Determinism determinism = Determinism::Any;
  uint8_t random_stream = kLatestRandomStream;  ///< see RandomStream

  bool operator==(const ThreadSettings&) const = default;
  ThreadSettings& settings() { return *this; }
  const ThreadSettings& settings() const { return *this; }
  /// Which of them is another one, "" for none.
  const char* differs(const ThreadSettings& other) const;
};

struct LevelSlot {
  Transform* transform = nullptr;
  uint64_t serial = 0;
};

/// Sees every operator call when installed; used by the dispatch trace, profilers and anomaly mode.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_call(const Frame& frame, KeySet keys, int chosen) = 0;
  /// The call has given its results; what this raises leaves the call.
  virtual void on_result(const Frame&) {}
  /// It ends, with results or an exception.
  virtual void on_return(const Frame& frame) = 0;
};

/// NOTE: [thread-local state] All of it, with its scoping: docs/thread_state.md. New threads start with the
/// defaults below.
struct DispatchState : ThreadSettings {
  uint64_t exclude = 0;            ///< masked keys
  uint64_t modes = 0;              ///< keys of live Mode levels
  uint64_t ambient = 0;            ///< keys of live Ambient and Mode levels
  const OpTable* table = nullptr;  ///< pinned snapshot; null: the published one
  Observer* observer = nullptr;
  uint64_t next_serial = 0, serial_end = 0;
  uint64_t captured_at = 0;    ///< next_serial when the captured state was applied
  int32_t captured_depth = 0;  ///< levels that are another thread's, through a captured state
  int32_t depth = 0;           ///< live levels
  LevelSlot levels[kMaxLevels];

  /// A copy of what a worker thread needs to act on behalf of this one.
  struct Captured {
    uint64_t exclude, modes, ambient;
    const OpTable* table;
    int32_t depth;
    ThreadSettings settings;
    bool inference;
    std::vector<LevelSlot> levels;
  };
  static Captured capture();
};

namespace detail {
inline thread_local constinit DispatchState dispatch_state{};
}
inline DispatchState& dispatch_state() { return detail::dispatch_state; }

/// Where operators without tensors make their results when they are given no device=, for a scope. The
/// innermost one counts; a captured state carries it.
class DefaultDevice {
 public:
  explicit DefaultDevice(Device device) : saved_(dispatch_state().default_device) {
    check_device("DefaultDevice", device);
    dispatch_state().default_device = device;
  }
  ~DefaultDevice() { dispatch_state().default_device = saved_; }
  DefaultDevice(const DefaultDevice&) = delete;

 private:
  Device saved_;
};

/// Which version of the streams in docs/random.md random operators draw from, for a scope: 1, or 2, the
/// latest one. Error value for another. The innermost one counts; a captured state carries it.
class RandomStream {
 public:
  explicit RandomStream(int version);
  ~RandomStream() { dispatch_state().random_stream = saved_; }
  RandomStream(const RandomStream&) = delete;

 private:
  uint8_t saved_;
};

/// Applies a captured state to this thread for a scope.
class ScopedState {
 public:
  explicit ScopedState(const DispatchState::Captured& captured);
  ~ScopedState();
  ScopedState(const ScopedState&) = delete;

 private:
  DispatchState::Captured saved_;
  uint64_t saved_at_;
  int32_t saved_depth_;
};

/// Whether a storage with this birth serial was made while the live level was open, by this thread or by one
/// that acts for it through a captured state. Serials are in order within a thread only: what others made
/// counts as made outside.
bool born_inside(uint64_t birth, int key, uint64_t serial);

/// Masks `key` and everything above it for a scope: rules run one level down.
class Below {
 public:
  explicit Below(int key) : saved_(dispatch_state().exclude) {
    dispatch_state().exclude |= KeySet::from(key).bits;
  }
  ~Below() { dispatch_state().exclude = saved_; }
  Below(const Below&) = delete;

 private:
  uint64_t saved_;
};

/// Lets calls reach level `key` again inside its own rule, for a scope.
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

/// Masks exactly `keys` for a scope.
class Excluding {
 public:
  explicit Excluding(KeySet keys) : saved_(dispatch_state().exclude) {
    dispatch_state().exclude |= keys.bits;
  }
  ~Excluding() { dispatch_state().exclude = saved_; }
  Excluding(const Excluding&) = delete;

 private:
  uint64_t saved_;
};

/// A transform instance while it is live: takes one key and a fresh serial, gives the key back at scope exit,
/// also when an exception passes. Error level_limit beyond 48 nested levels. Belongs to the thread that
/// opened it.
class Level {
 public:
  explicit Level(Transform& transform);
  /// A level that has ended, again: under its old key, which no live level may have, and its old serial.
  Level(Transform& transform, int key, uint64_t serial);
  ~Level();
  Level(const Level&) = delete;
  int key() const { return key_; }
  uint64_t serial() const { return serial_; }

 private:
  void open(Transform& transform);
  int key_, saved_depth_;
  uint64_t serial_, saved_exclude_, saved_birth_;
  const OpTable* saved_table_;
};

/// Pins a table for a scope: mutants and experiments.
class ScopedTable {
 public:
  explicit ScopedTable(const OpTable* table) : saved_(dispatch_state().table) {
    dispatch_state().table = table;
  }
  ~ScopedTable() { dispatch_state().table = saved_; }
  ScopedTable(const ScopedTable&) = delete;

 private:
  const OpTable* saved_;
};

class ScopedObserver {
 public:
  explicit ScopedObserver(Observer* o) : saved_(dispatch_state().observer) { dispatch_state().observer = o; }
  ~ScopedObserver() { dispatch_state().observer = saved_; }
  ScopedObserver(const ScopedObserver&) = delete;

 private:
  Observer* saved_;
};

/// What a transform's level adds to a tensor: the value one level down, and who owns it.
struct Wrapper : TensorExtra {
  Tensor value;
  uint64_t serial = 0;
  int key = 0;
  /// Counts the writes that replaced the value, where a level replaces values.
  virtual uint64_t writes() const { return 0; }
  /// The dim of the value that the level maps, where it maps one.
  virtual int mapped_dim() const { return -1; }
  /// What travels with the value beside a graph: a tangent, undefined where there is none.
  virtual Tensor companion() const { return {}; }
};

/// The wrapper of `t` at level `key`, or null. Error escaped_wrapper when it belongs to a level that has
/// ended.
template <class W> W* wrapper_at(const Tensor& t, int key, uint64_t serial) {
  TensorImpl* impl = t.impl();
  if (!impl || !(impl->keys >> key & 1)) return nullptr;
  // Another transform's wrapper may sit here: look before the cast.
  auto* w = static_cast<Wrapper*>(impl->wrap);
  if (!w || w->key != key || w->serial != serial) [[unlikely]]
    return nullptr;
  return static_cast<W*>(w);
}
/// Raises escaped_wrapper for a tensor that carries a level key no live level of this thread owns.
[[noreturn]] void raise_escaped(const Frame& frame, int key);

/// The keys of all levels that are live on this thread.
KeySet live_levels();
/// Whether the level that was opened with this key and serial is.
inline bool is_live(int key, uint64_t serial) {
  const DispatchState& state = dispatch_state();
  return key - kFirstLevelKey < state.depth && state.levels[key - kFirstLevelKey].serial == serial;
}

/// A key's name with the live level's transform: "cpu", "vmap#2".
std::string live_key_name(int key);
/// "\n  under: vmap#2 (size 8) of grad#1", or empty: appended to every error text.
std::string live_levels_text();

}  // namespace lamella
LAMELLA_API_END
