// Levels open and close; the state is saved, restored and described.
#include "lamella/dispatch/state.h"

#include <algorithm>
#include <atomic>

#include "lamella/core/yield.h"
#include "lamella/dispatch/call.h"
#include "lamella/dispatch/frame_copy.h"
#include "lamella/dispatch/types.h"

namespace lamella {

namespace detail {
namespace {
std::atomic<uint64_t> serial_blocks{1};
/// One lasts for a thread's life, so that the block tells threads apart.
constexpr uint64_t kSerialBlock = uint64_t{1} << 36;
uint64_t block_of(uint64_t serial) { return (serial - 1) / kSerialBlock; }

uint64_t next_serial(DispatchState& state) {
  if (state.next_serial == state.serial_end) {
    yield_point();
    state.next_serial = serial_blocks.fetch_add(kSerialBlock, std::memory_order_relaxed);
    state.serial_end = state.next_serial + kSerialBlock;
  }
  return state.next_serial++;
}

[[maybe_unused]] const bool context_installed = [] {
  error_context = live_levels_text;
  return true;
}();
}  // namespace
}  // namespace detail

std::string key_name(int key) {
  if (key < 6) return std::string(name(Device(key)));
  if (key == kAutogradKey) return "autograd";
  if (is_level_key(key)) return format("level#{}", key - kFirstLevelKey + 1);
  const std::string_view of_type = type_name(key);
  return of_type.empty() ? format("key{}", key) : std::string(of_type);
}

std::string live_key_name(int key) {
  const DispatchState& state = dispatch_state();
  const int slot = key - kFirstLevelKey;
  if (slot < 0 || !state.levels[slot].transform) return key_name(key);
  return format("{}#{}", state.levels[slot].transform->name(), slot + 1);
}

std::string live_levels_text() {
  const DispatchState& state = dispatch_state();
  std::string out;
  for (int i = state.depth - 1; i >= 0; --i) {
    const LevelSlot& slot = state.levels[i];
    if (!slot.transform) continue;
    out += out.empty() ? "\n  under: " : " of ";
    out += live_key_name(i + kFirstLevelKey);
    const std::string detail = slot.transform->detail();
    if (!detail.empty()) out += " (" + detail + ")";
  }
  return out;
}

Level::Level(Transform& transform) {
  DispatchState& state = dispatch_state();
  LAMELLA_CHECK(state.depth < kMaxLevels, LevelLimit, "{}: got {} nested transforms, expected at most {}",
                transform.name(), state.depth + 1, kMaxLevels);
  key_ = state.depth + kFirstLevelKey;
  serial_ = detail::next_serial(state);
  open(transform);
}

Level::Level(Transform& transform, int key, uint64_t serial) : key_(key), serial_(serial) {
  LAMELLA_ASSERT(key - kFirstLevelKey >= dispatch_state().depth);
  open(transform);
}

void Level::open(Transform& transform) {
  DispatchState& state = dispatch_state();
  const int slot = key_ - kFirstLevelKey;
  saved_depth_ = state.depth;
  saved_exclude_ = state.exclude;
  saved_birth_ = detail::birth_serial;
  saved_table_ = state.table;
  const uint64_t bit = KeySet::of(key_).bits;
  state.depth = slot + 1;
  state.levels[slot] = {&transform, serial_};
  state.exclude &= ~bit;
  if (transform.kind() != TransformKind::Carried) state.ambient |= bit;
  if (transform.kind() == TransformKind::Mode) state.modes |= bit;
  state.table = &OpTable::current();  // rules and kernels of one stack see one table
  detail::birth_serial = serial_ | (saved_birth_ & kInferenceBirth);
}

Level::~Level() {
  DispatchState& state = dispatch_state();
  const uint64_t bit = KeySet::of(key_).bits;
  state.exclude = saved_exclude_;
  state.ambient &= ~bit;
  state.modes &= ~bit;
  state.table = saved_table_;
  state.levels[key_ - kFirstLevelKey] = {};
  state.depth = saved_depth_;
  detail::birth_serial = saved_birth_;
}

KeySet live_levels() {
  const DispatchState& state = dispatch_state();
  uint64_t bits = 0;
  for (int i = 0; i < state.depth; ++i)
    if (state.levels[i].transform) bits |= KeySet::of(i + kFirstLevelKey).bits;
  return KeySet(bits);
}

/// Replaces every function by one that reaches `key` again.
void Transform::call_with_functions(Frame& frame, int key) {
  const uint64_t serial = dispatch_state().levels[key - kFirstLevelKey].serial;
  FrameCopy copy(frame);
  for (int i = 0; i < frame.op->arity; ++i) {
    if (frame.op->schema.params[size_t(i)].kind != ParamKind::Function || frame.none(i)) continue;
    const FunctionRef f = frame.arg<FunctionRef>(i);
    copy.set(i, std::make_shared<const Function>([f, key, serial](const Tensors& xs) {
               if (!is_live(key, serial)) return (*f)(xs);
               const Reaching reaching(key);
               return (*f)(xs);
             }));
  }
  Frame seen = copy.into(frame.results, frame.list);
  call(seen, key);
}

DispatchState::Captured DispatchState::capture() {
  const DispatchState& s = dispatch_state();
  const bool inference = detail::birth_serial & kInferenceBirth;
  return {.exclude = s.exclude,
          .modes = s.modes,
          .ambient = s.ambient,
          .table = s.table,
          .depth = s.depth,
          .settings = s,
          .inference = inference,
          .levels = {s.levels, s.levels + s.depth}};
}

namespace {
void apply(const DispatchState::Captured& c) {
  DispatchState& s = dispatch_state();
  s.exclude = c.exclude;
  s.modes = c.modes;
  s.ambient = c.ambient;
  s.table = c.table;
  s.settings() = c.settings;
  for (int i = 0; i < std::max(s.depth, c.depth); ++i)
    s.levels[i] = i < c.depth ? c.levels[size_t(i)] : LevelSlot{};
  s.depth = c.depth;
  detail::birth_serial =
      (c.levels.empty() ? 0 : c.levels.back().serial) | (c.inference ? kInferenceBirth : 0);
}
}  // namespace

const char* ThreadSettings::differs(const ThreadSettings& other) const {
  if (default_dtype != other.default_dtype) return "another default dtype";
  if (default_device != other.default_device) return "another default device";
  if (determinism != other.determinism) return "something else is required of kernels";
  return random_stream != other.random_stream ? "another version of random streams" : "";
}

RandomStream::RandomStream(int version) : saved_(dispatch_state().random_stream) {
  LAMELLA_CHECK(version >= 1 && version <= kLatestRandomStream, Value,
                "RandomStream: version {}, expected 1 to {}", version, int(kLatestRandomStream));
  dispatch_state().random_stream = uint8_t(version);
}

ScopedState::ScopedState(const DispatchState::Captured& captured)
    : saved_(DispatchState::capture()),
      saved_at_(dispatch_state().captured_at),
      saved_depth_(dispatch_state().captured_depth) {
  apply(captured);
  dispatch_state().captured_at = dispatch_state().next_serial;
  dispatch_state().captured_depth = captured.depth;
}
ScopedState::~ScopedState() {
  apply(saved_);
  dispatch_state().captured_at = saved_at_;
  dispatch_state().captured_depth = saved_depth_;
}

bool born_inside(uint64_t birth, int key, uint64_t serial) {
  birth &= ~kInferenceBirth;
  if (birth == 0) return false;
  if (detail::block_of(birth) == detail::block_of(serial)) return birth >= serial;
  const DispatchState& s = dispatch_state();
  const bool captured = key - kFirstLevelKey < s.captured_depth;  // then levels opened here lie inside it
  const bool own = s.serial_end != 0 && detail::block_of(birth) == detail::block_of(s.serial_end - 1);
  return captured && own && birth >= s.captured_at;
}

void raise_escaped(const Frame& frame, int key) {
  std::string_view arg = "an argument";
  for_each_tensor(frame, [&](const Tensor& t, int i, int) {
    if (t.keys() >> key & 1) arg = frame.op->schema.params[size_t(i)].name;
  });
  fail(ErrorCode::EscapedWrapper,
       "{}: {} is wrapped by {}, a transform that has ended (or lives on another thread); expected a value "
       "returned from the transformed function, not one stored outside",
       frame.op->name, arg, key_name(key));
}

}  // namespace lamella
