// One call of a checkpointed function: what it needs to run again, and what came of that.
#include "lamella/transforms/checkpoint.h"

#include <algorithm>
#include <mutex>

#include "lamella/core/generator.h"
#include "lamella/dispatch/given.h"
#include "lamella/transforms/machine/interpreter.h"
#include "lamella/transforms/machine/tape.h"
#include "lamella/transforms/tapes/reasons.h"

namespace lamella {

namespace {

/// Where a tensor's values lay, and how often that had been written. Writes that replace what a wrapper holds
/// do not count: arguments are fixed, and the function's own are made again.
struct Mark {
  const Storage* memory = nullptr;
  uint32_t version = 0;

  Mark() = default;
  explicit Mark(const Tensor& t) {
    const TensorImpl* impl = t.impl();
    while (impl && !impl->storage && impl->keys >> kFirstLevelKey)
      impl = static_cast<const Wrapper*>(impl->wrap)->value.impl();
    if (!impl || !impl->storage) return;
    memory = impl->storage;
    version = memory->version.load(std::memory_order_relaxed);
  }
};

/// NOTE: [regions] All values that tapes save while the function runs (but for those of levels that it opens
/// itself) are counted, and kept as their numbers. Run again, it saves the same values in the same order. A
/// region's arguments are saved values to a region around it.
class Region final : public Packer, public std::enable_shared_from_this<Region> {
 public:
  Region(const Function& f, const Tensors& xs)
      : f_(f), random_(random_state()), state_(DispatchState::capture()) {
    for (const LevelSlot& slot : state_.levels) {
      const auto* level = dynamic_cast<const Interpreter*>(slot.transform);
      ended_.push_back(level ? level->copy() : nullptr);
    }
    Packer* const around = packer_in_force();
    for (size_t i = 0; i < xs.size(); ++i) {
      const Tensor& x = xs[i];
      const auto same = std::ranges::find_if(xs, [&](const Tensor& y) { return y.is_same(x); });
      if (size_t(same - xs.begin()) < i) {
        arguments_.push_back({.same = same - xs.begin()});
        continue;
      }
      Argument a{fixed(x), nullptr, {}};
      a.mark = Mark(a.value);
      if (around && around->takes_arguments() && x.defined())
        a.packed = around->pack("checkpoint", a.value, state_.depth ? first_inside() - 1 : 0);
      if (a.packed) a.value = {};
      arguments_.push_back(std::move(a));
    }
  }

  Tensors first_run(const Tensors& xs) {
    const ScopedPacker scope(this);
    const Running running(*this);
    return f_(xs);
  }

  bool takes_arguments() const override { return true; }
  std::shared_ptr<Packed> pack(std::string_view saver, const Tensor& value, int key) override {
    if (key >= first_inside()) return nullptr;
    saved_.push_back({saver, value.numel(), Mark(value)});
    return std::make_shared<Place>(shared_from_this(), saved_.size() - 1);
  }

 private:
  /// The key that the first level opened by the function itself gets.
  int first_inside() const { return kFirstLevelKey + state_.depth; }

  struct Argument {
    Tensor value = {};
    std::shared_ptr<Packed> packed = nullptr;
    Mark mark = {};
    int64_t same = -1;  ///< the number of the argument that is this very tensor; -1: none before it
  };
  struct SavedValue {
    std::string_view saver;  ///< of a row, which is never freed
    int64_t numel;
    Mark first;         ///< when the function ran first
    Tensor value = {};  ///< and what it saved when it ran again, as tapes save it
    int key = 0;
    int last = 0;  ///< level
    uint32_t version = 0;
  };

  class Place final : public Packed {
   public:
    Place(std::shared_ptr<Region> region, size_t number) : region_(std::move(region)), number_(number) {}
    Tensor unpack() override { return region_->value(number_); }
    void used() override { region_->drop(number_); }

   private:
    std::shared_ptr<Region> region_;
    size_t number_;
  };

  struct Running {
    Region& region;
    explicit Running(Region& r) : region(r) { r.running_ = true; }
    ~Running() { region.running_ = false; }
  };

  /// In force while the function runs again.
  class Collector final : public Packer {
   public:
    explicit Collector(Region& region) : region_(region) {}
    bool takes_arguments() const override { return true; }
    std::shared_ptr<Packed> pack(std::string_view saver, const Tensor& value, int key) override {
      if (key >= region_.first_inside()) return nullptr;
      LAMELLA_CHECK(
          count < region_.saved_.size(), Value,
          "checkpoint: the function saved more than {} values when it ran again, as it had before; expected "
          "it to do the same each time",
          count);
      SavedValue& s = region_.saved_[count];
      LAMELLA_CHECK(
          s.saver == saver && s.numel == value.numel(), Value,
          "checkpoint: value {} that the function saved is {} of {} when it ran again, expected {} elements "
          "of {}: it must do the same each time",
          count, type_str(value), saver, s.numel, s.saver);
      s.value = value;
      s.key = key;
      s.last = last_level(*value.impl());
      s.version = writes_seen(*value.impl());
      ++count;
      return nullptr;
    }
    size_t count = 0;

   private:
    Region& region_;
  };

  Tensor value(size_t number) {
    const std::lock_guard lock(mutex_);
    LAMELLA_CHECK(
        !running_, Usage,
        "checkpoint: backward inside the function asks for a value that {} saved in it; expected backward "
        "after the function has returned",
        saved_[number].saver);
    if (!saved_[number].value.defined()) run_again();
    const SavedValue& s = saved_[number];
    const Mark now(s.value);  // the same memory as before: the function captures it
    if (s.first.memory == now.memory && s.first.version != now.version)
      fail(WrittenLater(), ErrorCode::Value,
           "backward: a value that {} saved in a checkpointed function was written in place later: "
           "version {}, expected {}; clone it first",
           s.saver, now.version, s.first.version);
    return *as_saved(s.saver, s.value, s.key, s.last, s.version);
  }

  void drop(size_t number) {
    const std::lock_guard lock(mutex_);
    saved_[number].value = {};
  }

  Tensors arguments() {
    Tensors xs;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      Argument& a = arguments_[i];
      if (a.same >= 0) {
        xs.push_back(xs[size_t(a.same)]);
        continue;
      }
      xs.push_back(a.packed ? a.packed->unpack() : a.value);
      const Mark now(xs.back());
      if (!a.packed && now.version != a.mark.version)
        fail(WrittenLater(), ErrorCode::Value,
             "checkpoint: argument {} was written in place since the function ran: version {}, expected {}; "
             "clone it first",
             i, now.version, a.mark.version);
    }
    return xs;
  }

  /// The state of then; levels that have ended are stood for by copies, which know the same wrappers. Other
  /// transforms than interpreters, which have none, see nothing when they have ended.
  DispatchState::Captured state_of_then() const {
    DispatchState::Captured state = state_;
    for (size_t i = 0; i < state.levels.size(); ++i) {
      const int key = int(i) + kFirstLevelKey;
      if (is_live(key, state.levels[i].serial)) continue;
      state.levels[i].transform = ended_[i].get();
      if (ended_[i]) continue;
      state.modes &= ~KeySet::of(key).bits;
      state.ambient &= ~KeySet::of(key).bits;
    }
    return state;
  }

  void run_again() {
    const Running running(*this);
    const Tensors xs = arguments();
    Collector collector(*this);
    {
      const ScopedState state(state_of_then());
      const ScopedRandomState random(random_);
      const ScopedPacker scope(&collector);
      f_(xs);
    }
    LAMELLA_CHECK(
        collector.count == saved_.size(), Value,
        "checkpoint: the function saved {} values when it ran again, expected {}: it must do the same each "
        "time",
        collector.count, saved_.size());
    for (Argument& a : arguments_)
      if (a.packed) a.packed->used();
  }

  Function f_;
  RandomState random_;
  DispatchState::Captured state_;
  std::vector<std::unique_ptr<Interpreter>> ended_;
  std::vector<Argument> arguments_;
  std::vector<SavedValue> saved_;
  std::recursive_mutex mutex_;
  bool running_ = false;
};

}  // namespace

Function checkpoint(Function f) {
  return [f = given(std::move(f), "checkpoint")](const Tensors& xs) {
    return std::make_shared<Region>(f, xs)->first_run(xs);
  };
}

}  // namespace lamella
