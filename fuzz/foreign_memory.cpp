// Memory of someone else: adopted, seen through any sizes and strides, written by operators, let go in any
// order. What is accepted lies within the memory; the deleter runs once, after the last handle.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "lamella/core/adopt.h"
#include "lamella/core/visit.h"
#include "lamella/dispatch/call.h"
#include "lamella/verify/oracle/constraints_call.h"

#include "values.h"

namespace lamella::fuzz {
namespace {

constexpr int64_t kMostElements = 4096;
constexpr size_t kMostHeld = 12;
/// What also takes tensors with large sizes: others would work as long as they are large.
constexpr std::string_view kGeometry[] = {"select",   "slice",   "transpose", "permute",
                                          "diagonal", "squeeze", "unsqueeze", "expand",
                                          "view",     "reshape", "detach"};

/// A block of malloc's, which the address sanitizer knows to the byte.
struct Lent {
  char* block = nullptr;
  int deleted = 0;
  const Storage* storage = nullptr;  ///< null when it was refused or has no deleter
  bool deletes = true;

  ~Lent() {
    if (!deleted) std::free(block);
  }
  static void end(void* lent) {
    auto* const l = static_cast<Lent*>(lent);
    if (++l->deleted > 1) finding("the deleter ran twice");
    std::free(l->block);
  }
};

struct Geometry {
  Dims sizes, strides;
  int64_t offset = 0;
};

/// Small numbers, which mostly fit, or any.
Geometry draw_geometry(Bytes& b) {
  Geometry g;
  const bool wild = b.below(4) == 3;
  for (uint32_t rank = b.below(wild ? 8 : 4); rank > 0; --rank) {
    g.sizes.push_back(wild ? b.integer() : b.below(5));
    g.strides.push_back(wild ? b.integer() : b.below(6));
  }
  if (wild && b.below(8) == 7) g.strides.push_back(1);
  g.offset = b.below(4) == 3 ? b.integer() : b.below(6);
  return g;
}

/// What the documentation of make_view promises, in wide numbers.
bool is_within(const Geometry& g, int64_t room) {
  if (g.sizes.size() != g.strides.size() || g.sizes.size() > 64 || g.offset < 0) return false;
  __int128 last = g.offset, reach = g.offset, span = 1;
  bool empty = false;
  for (int d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] < 0 || g.strides[d] < 0) return false;
    span *= std::max<int64_t>(g.sizes[d], 1);
    if (span > __int128{1} << 58) return false;
    last += __int128(std::max<int64_t>(g.sizes[d] - 1, 0)) * g.strides[d];
    reach += __int128(std::max<int64_t>(g.sizes[d], 1)) * g.strides[d];
    empty |= g.sizes[d] == 0;
  }
  if (reach >= __int128{1} << 58) return false;
  return empty ? g.offset <= room : last < room;
}

/// Reads the first and the last byte of every element, writes them back.
void touch(const Tensor& t) {
  if (t.numel() > kMostElements || t.numel() == 0) return;
  auto* const bytes = static_cast<volatile char*>(t.impl()->storage->data);
  const int64_t item = itemsize(t.dtype());
  for (const int64_t at : verify::offsets_of(t.sizes(), t.strides(), t.impl()->offset))
    for (const int64_t byte : {at * item, (at + 1) * item - 1}) bytes[byte] = bytes[byte];
}

class Session {
 public:
  explicit Session(Bytes& b) : b_(b) {}

  void run() {
    for (uint32_t steps = 2 + b_.below(20); steps > 0; --steps) {
      const std::vector<int> before = holders();
      const uint32_t what = b_.below(8);
      try {
        if (what < 2) lend();
        else if (what < 4) view();
        else if (what < 7) call_operator();
        else let_go();
      } catch (const Error& e) {
        if (e.code() == ErrorCode::Internal) finding(e.what());
      } catch (const std::bad_alloc&) {}
      if (what < 7) keep_alive(before);
    }
    while (!held_.empty()) let_go();
    for (const auto& lent : lent_)
      if (lent->storage && lent->deleted != 1) finding("the deleter never ran");
  }

 private:
  std::vector<int> holders() const {
    std::vector<int> out;
    for (const auto& lent : lent_) out.push_back(lent->deleted ? 0 : holders_of(*lent));
    return out;
  }
  int holders_of(const Lent& lent) const {
    return int(std::ranges::count_if(
        held_, [&](const Tensor& t) { return lent.storage && t.impl()->storage == lent.storage; }));
  }
  void keep_alive(const std::vector<int>& before) {
    for (size_t i = 0; i < before.size(); ++i)
      if (before[i] && lent_[i]->deleted) finding("the deleter ran before the last handle was let go");
  }

  void hold(Tensor t) {
    if (held_.size() < kMostHeld) held_.push_back(std::move(t));
  }

  void let_go() {
    if (held_.empty()) return;
    const auto at = held_.begin() + b_.below(uint32_t(held_.size()));
    const Storage* const storage = at->impl()->storage;
    const auto whose = std::ranges::find_if(
        lent_, [&](const auto& l) { return storage && l->storage == storage && !l->deleted; });
    const int holders = whose == lent_.end() ? 0 : holders_of(**whose);
    *at = {};
    held_.erase(at);
    if (holders == 0) return;
    if ((*whose)->deleted != (holders == 1)) finding("the deleter did not run with the last handle");
  }

  void lend() {
    const uint8_t how = b_.byte();
    const DType dtype = DType(b_.below(kDTypeCount));
    const size_t nbytes = how % 16 == 2 ? 0 : size_t(b_.byte()) * (how % 16 == 3 ? 16 : 1);
    const size_t shift = how % 16 == 1 ? 1 + b_.below(15) : 0;
    lent_.push_back(std::make_unique<Lent>());
    Lent& lent = *lent_.back();
    lent.deletes = how / 16 % 8 != 7;
    char* data = nullptr;
    if (how % 16 != 0) {
      lent.block = static_cast<char*>(std::malloc(nbytes + shift));
      data = lent.block + shift;
      for (size_t i = 0; i < nbytes; ++i) data[i] = char(dtype == DType::Bool ? b_.byte() % 2 : b_.byte());
    }
    Geometry g = draw_geometry(b_);
    const int64_t room = int64_t(nbytes) / itemsize(dtype);
    if (how / 128) g = {Dims{room}, Dims{1}, 0};
    const size_t alignment = visit_dtype(dtype, []<class Tag>(Tag) { return alignof(typename Tag::type); });
    const bool right =
        (data || nbytes == 0) && reinterpret_cast<uintptr_t>(data) % alignment == 0 && is_within(g, room);
    Tensor t;
    try {
      t = adopt_memory({data, nbytes, lent.deletes ? Lent::end : nullptr, &lent}, dtype, g.sizes, g.strides,
                       g.offset);
    } catch (const Error& e) {
      if (lent.deleted) finding("the deleter ran although the memory was refused");
      if (right) finding(e.what());
      return;
    }
    if (!right) finding("memory was adopted that is null, not aligned or too small");
    if (lent.deletes) lent.storage = t.impl()->storage;
    touch(t);
    hold(std::move(t));
    if (!holders_of(lent) && lent.deletes && lent.deleted != 1) finding("the deleter did not run at once");
  }

  void view() {
    if (held_.empty()) return;
    const Tensor base = held_[b_.below(uint32_t(held_.size()))];
    const bool real = is_complex(base.dtype()) && b_.below(2);
    const DType dtype = real ? to_real(base.dtype()) : base.dtype();
    const Geometry g = draw_geometry(b_);
    if (!base.impl()->storage) return;
    const bool right = is_within(g, int64_t(base.impl()->storage->nbytes) / itemsize(dtype));
    Tensor t;
    try {
      t = make_view(base, g.sizes, g.strides, g.offset, dtype);
    } catch (const Error& e) {
      if (right) finding(e.what());
      return;
    }
    if (!right) finding("a view was accepted that leaves its memory");
    touch(t);
    hold(std::move(t));
  }

  Tensor argument(Bytes& b, bool any_size) {
    if (held_.empty()) return make_tensor(Dims{}, DType::F32);
    const Tensor& t = held_[b.below(uint32_t(held_.size()))];
    const bool small = t.numel() <= kMostElements &&
                       std::ranges::all_of(t.sizes(), [](int64_t s) { return s <= kMostElements; });
    return small || any_size ? t : Tensor();
  }

  void call_operator() {
    static const std::vector<const Op*> ops = OpTable::current().rows();
    const uint8_t which = b_.byte();
    const Op& op = which < 64 ? *OpTable::current().find(kGeometry[which % std::size(kGeometry)])
                              : *ops[(which | size_t(b_.byte()) << 8) % ops.size()];
    const bool any_size = std::ranges::find(kGeometry, op.name) != std::end(kGeometry);
    Values args;
    for (size_t i = 0; i < op.schema.params.size(); ++i)
      args.push_back(draw_value(b_, op.schema, i, [&](Bytes& b) { return argument(b, any_size); }));
    for (const Tensor& y : call(op, args)) {
      if (!y.defined() || !y.impl()->storage) continue;
      touch(y);
      hold(y);
    }
  }

  Bytes& b_;
  std::vector<std::unique_ptr<Lent>> lent_;  // outlives the handles
  std::vector<Tensor> held_;
};

void run_foreign_memory(const uint8_t* data, size_t size) {
  Bytes b(data, size);
  answers([&] { Session(b).run(); });
}

[[maybe_unused]] const bool foreign_memory_added = add_target("foreign_memory", run_foreign_memory);
}  // namespace
}  // namespace lamella::fuzz
