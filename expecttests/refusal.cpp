// Refusals: the snapshot of everything a refused call must leave alone.
#include "refusal.h"

#include <algorithm>
#include <cstring>

#include "arguments.h"
#include "without_argument.h"

namespace lamella::expect {
namespace {

/// All bytes of a tensor's storage, also those outside its view.
struct Watched {
  Tensor tensor;
  std::string bytes;
  Dims sizes, strides;
  uint32_t version = 0;

  explicit Watched(const Tensor& t) : tensor(t), sizes(t.sizes()), strides(t.strides()) {
    const Storage* s = t.impl()->storage;
    if (!s) return;
    bytes.assign(static_cast<const char*>(s->data), s->nbytes);
    version = s->version.load();
  }
  bool changed() const {
    const Watched now(tensor);
    return now.bytes != bytes || now.version != version || !now.sizes.equal(sizes) ||
           !now.strides.equal(strides);
  }
};

void watch(const Tensor& t, std::vector<Watched>& out) {
  if (t.defined()) out.emplace_back(t);
}

struct Snapshot {
  DispatchState state = dispatch_state();
  uint64_t birth = lamella::detail::birth_serial;
  MemoryStats memory = memory_stats();
  std::vector<Watched> watched;

  explicit Snapshot(const Tensors& tensors) {
    for (const Tensor& t : tensors) watch(t, watched);
    memory = memory_stats();
  }
  std::string changes() const {
    const DispatchState& now = dispatch_state();
    const MemoryStats m = memory_stats();
    std::string out;
    if (now.depth != state.depth) out += " live levels;";
    if (now.exclude != state.exclude || now.modes != state.modes || now.ambient != state.ambient)
      out += " masks;";
    if (now.table != state.table || now.observer != state.observer) out += " table or observer;";
    if (now.settings() != state.settings()) out += " settings;";
    for (int k = 0; k < kMaxLevels; ++k)
      if (now.levels[k].transform != state.levels[k].transform) out += format(" level {};", k);
    if (lamella::detail::birth_serial != birth) out += " birth serial;";
    if (m.blocks != memory.blocks || m.storages != memory.storages || m.bytes != memory.bytes)
      out += " memory;";
    for (size_t k = 0; k < watched.size(); ++k)
      if (watched[k].changed()) out += format(" tensor {};", k);
    return out;
  }
};

/// An Error's argument is one of the operator's, if it is the one that is called, and missing where a reason
/// says so, only.
void expect_argument(const Error& e, const Op* called) {
  const std::string text = e.op().empty() ? e.text() : e.op() + ": " + e.text();
  const auto is_meant = [&](const Param& p) { return p.name == e.argument(); };
  if (e.argument().empty()) {
    const auto& known = texts_without_argument();
    const bool has_reason = std::ranges::any_of(known, [&](const auto& w) { return fits(w.text, text); });
    EXPECT_TRUE(has_reason) << "its argument is not named, without a reason in without_argument.cpp: "
                            << text;
  } else if (called && e.op() == called->base->name) {
    EXPECT_TRUE(e.argument() == "out" || std::ranges::any_of(called->schema.params, is_meant))
        << "is no argument of the operator: \"" << e.argument() << "\" of " << text;
  }
}

std::string text_of(const std::function<void()>& call, const Tensors& watched, std::string_view where,
                    const Op* called = nullptr) {
  const Snapshot before(watched);
  std::string text = "accepted";
  try {
    call();
    ADD_FAILURE() << "accepted " << where;
  } catch (const Error& e) {
    expect_argument(e, called);
    text = format("[{}] {}", name(e.code()), e.what());
  }
  EXPECT_EQ(before.changes(), "") << "changed by the refusal " << where << ": " << text;
  return text;
}

/// What every error text owes its reader.
void expect_helpful(const Op& op, const std::string& text) {
  const std::string start = "] " + op.base->name + ": ";
  EXPECT_NE(text.find(start), std::string::npos) << "does not begin with the operator: " << text;
  EXPECT_NE(text.find("expected "), std::string::npos) << "does not say what was expected: " << text;
  bool names_argument = false;
  for (const Param& p : op.schema.params) {
    for (size_t at = 0; (at = text.find(p.name, at)) != std::string::npos; ++at) {
      const bool starts = !isalnum(uint8_t(text[at - 1])) && text[at - 1] != '_';
      const char next = at + p.name.size() < text.size() ? text[at + p.name.size()] : '.';
      names_argument |= starts && !isalnum(uint8_t(next)) && next != '_' && at > start.size();
    }
  }
  EXPECT_TRUE(names_argument) << "names no argument: " << text;
}

bool is_plain(const Tensors& tensors) {
  for (const Tensor& t : tensors)
    if (!t.defined() || t.device() != Device::CPU || overlaps_itself(t)) return false;
  return !tensors.empty();
}

void expect_same_under_transforms(const Op& op, const Values& args, const Named& named,
                                  const std::string& text) {
  const Tensors tensors = tensors_of(args);
  if (!is_plain(tensors)) return;
  const Function f = [&](const Tensors& ts) { return call(op, with_tensors(args, ts), named); };
  Tensors lanes;
  for (const Tensor& t : tensors) lanes.push_back(stack(Tensors{t, t}, 0));
  const auto mapped = [&] { vmap(f, VmapOptions{{0}, {0}, Randomness::Same, 2})(lanes); };
  EXPECT_EQ(text_of(mapped, lanes, "under vmap", &op), text + "\n  under: vmap#1 (size 2)");
  for (const Tensor& t : tensors)
    if (!is_inexact(t.dtype())) return;
  EXPECT_EQ(text_of([&] { vjp(f, tensors); }, tensors, "under vjp", &op), text + "\n  under: grad#1");
  EXPECT_EQ(text_of([&] { jvp(f, tensors, tensors); }, tensors, "under jvp", &op), text + "\n  under: jvp#1");
}

const Op& row(std::string_view name) { return *OpHandle(name); }
}  // namespace

std::string refused(const std::function<void()>& call, const Tensors& watched) {
  return text_of(call, watched, "");
}

std::string refused_plainly(std::string_view name, const Values& args, const Named& named) {
  const Op& op = row(name);
  const std::string text = text_of([&] { call(op, args, named); }, tensors_of(args), "", &op);
  expect_helpful(op, text);
  return text;
}

std::string refused(std::string_view name, const Values& args, const Named& named) {
  const std::string text = refused_plainly(name, args, named);
  expect_same_under_transforms(row(name), args, named, text);
  return text;
}

}  // namespace lamella::expect
