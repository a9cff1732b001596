// Memory of someone else: who frees it and when, and whether levels leave it where it is.
#include <gtest/gtest.h>
#include <thread>

#include "lamella/core/adopt.h"
#include "lamella/core/allocation.h"
#include "lamella/ops/functions.h"
#include "lamella/transforms/vmap.h"
#include "lamella/verify/programs/drawn.h"

namespace {
using namespace lamella;

struct Owner {
  alignas(16) float numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  int freed = 0;
  ForeignMemory memory() {
    return {numbers, sizeof numbers, [](void* owner) { ++static_cast<Owner*>(owner)->freed; }, this};
  }
};

TEST(AdoptedMemory, IsFreedOnceAfterTheLastView) {
  Owner owner;
  const verify::Snapshot before;
  Tensor t = adopt_memory(owner.memory(), DType::F32, Dims{2, 3}, Dims{4, 1}, 1);
  EXPECT_EQ(t.to_vector(), (std::vector<double>{1, 2, 3, 5, 6, 7}));
  EXPECT_EQ(t.raw_data(), owner.numbers + 1);
  Tensor row = select(t, 0, 1), sum_of_row = sum(row);
  t = {};
  add_(row, sum_of_row);
  EXPECT_EQ(owner.numbers[7], 25);
  EXPECT_EQ(owner.freed, 0);
  row = {};
  EXPECT_EQ(owner.freed, 1);
  sum_of_row = {};
  EXPECT_EQ(owner.freed, 1);
  EXPECT_EQ(before.changed_beside_heap(), "");
}

TEST(AdoptedMemory, IsFreedOnceWhereTheLastViewDiesOnAnotherThread) {
  Owner owner;
  Tensor t = adopt_memory(owner.memory(), DType::F32, Dims{8}, Dims{1});
  std::thread([view = select(t, 0, 3), whole = std::move(t)]() mutable {
    whole = {};
    view = {};
  }).join();
  (void)memory_stats();  // the owner takes back what other threads let go
  EXPECT_EQ(owner.freed, 1);
}

/// Each block that the call asks for is refused once.
TEST(AdoptedMemory, StaysTheCallersWhereTheCallFails) {
  Owner owner;
  int64_t failed = 0;
  for (bool done = false; !done; ++failed) {
    const MemoryTrial trial({.fail_at = failed});
    try {
      (void)adopt_memory(owner.memory(), DType::F32, Dims{1, 1, 1, 1, 1, 2}, Dims{1, 1, 1, 1, 1, 3}, 1);
      done = true;
    } catch (const std::bad_alloc&) {
    } catch (const Error& e) { EXPECT_EQ(e.code(), ErrorCode::OutOfMemory); }
    EXPECT_EQ(owner.freed, int(done));
  }
  EXPECT_GT(failed, 3);
}

ErrorCode code_of(const ForeignMemory& memory, DType dtype, Ints sizes, Ints strides, int64_t offset) {
  try {
    adopt_memory(memory, dtype, sizes, strides, offset);
  } catch (const Error& e) { return e.code(); }
  return ErrorCode::Internal;
}

TEST(AdoptedMemory, IsRefusedWhereElementsWouldLieOutside) {
  Owner owner;
  ForeignMemory of = owner.memory();
  EXPECT_EQ(code_of(of, DType::F32, Dims{4}, Dims{2}, 2), ErrorCode::Storage);
  EXPECT_EQ(code_of(of, DType::F32, Dims{4}, Dims{-1}, 3), ErrorCode::Shape);
  EXPECT_EQ(code_of(of, DType::F32, Dims{4}, Dims{1}, -1), ErrorCode::Storage);
  EXPECT_EQ(code_of(of, DType::F32, Dims{int64_t{1} << 40, int64_t{1} << 40}, Dims{0, 0}, 0),
            ErrorCode::Overflow);
  // No element needs such a stride, but select and diagonal of the view would multiply and add it.
  EXPECT_EQ(code_of(of, DType::F32, Dims{0, 3}, Dims{1, INT64_MAX}, 0), ErrorCode::Overflow);
  EXPECT_EQ(code_of(of, DType::F32, Dims{1, 1}, Dims{INT64_MAX, INT64_MAX}, 0), ErrorCode::Overflow);
  of.nbytes = 31;
  EXPECT_EQ(code_of(of, DType::F32, Dims{8}, Dims{1}, 0), ErrorCode::Storage);
  of = {reinterpret_cast<char*>(owner.numbers) + 2, 16, of.deleter, of.context};
  EXPECT_EQ(code_of(of, DType::F32, Dims{2}, Dims{1}, 0), ErrorCode::Value);
  EXPECT_EQ(code_of({nullptr, 4, of.deleter, of.context}, DType::F32, Dims{1}, Dims{1}, 0), ErrorCode::Value);
  EXPECT_EQ(owner.freed, 0);
  // Of a view without elements, too, an offset is added to it, which null may not have.
  EXPECT_NE(adopt_memory({nullptr, 0, of.deleter, of.context}, DType::F32, Dims{0, 3}, Dims{3, 1})
                .impl()
                ->storage->data,
            nullptr);
  EXPECT_EQ(owner.freed, 1);
}

/// A level may take fresh memory for its own and leave the old where it was; not this.
TEST(AdoptedMemory, IsNotTakenByALevel) {
  Owner owner;
  const Function f = [&](const Tensors& xs) {
    Tensor t = adopt_memory(owner.memory(), DType::F32, Dims{}, Dims{});
    copy_(t, xs[0]);
    return Tensors{t};
  };
  EXPECT_THROW(vmap(f)({tensor_of({3}, {1, 2, 3})}), Error);
  EXPECT_EQ(owner.freed, 1);
  EXPECT_EQ(owner.numbers[0], 0);
}

}  // namespace
