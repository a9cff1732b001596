// Blocks that end, or begin, at a page that nobody may touch: who reads or writes outside ends the process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

enum class GuardSide : uint8_t {
  None,
  End,    ///< no byte between the elements and the page: reads and writes behind them are seen
  Begin,  ///< likewise in front of them
  Blocks  ///< as End, for blocks as pools have them: elements lie behind headers, rounded to the pool's size
};

/// NOTE: [guarded blocks] While one lives, elements have blocks of their own, beside headers in pools as ever
/// (End, Begin), or pools of its thread stand aside (Blocks), and every fresh block of up to 256 KiB lies
/// beside a protected page. Pages stay protected: a block costs no call of the system once its place was used
/// before. A block that ends there has the alignment that its size has, at most 64: elements are aligned to
/// their own size and no more, as drawn views with offsets are. Fresh memory is full of 0xFF; on the side
/// without the page 64 bytes are looked at when the block is freed (damaged_memory()). Blocks may outlive it
/// and may be freed on any thread. Where 4,096 blocks are alive already, further ones are plain.
class GuardedMemory {
 public:
  explicit GuardedMemory(GuardSide side);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;

 private:
  GuardSide saved_;
};

/// From now on a fault beside a guarded block is described in `text`, of `size` bytes, before it ends the
/// process as it would have: "read of byte 52 of a block of 52 bytes". Null: to the standard error output.
void describe_faults(char* text, size_t size);
/// What the description on the standard error output begins with; texts that live as long as it may be
/// needed.
void name_guarded(const char* law, const char* op);

namespace detail {
/// Which side this thread's blocks are guarded on.
inline thread_local constinit GuardSide guard_side = GuardSide::None;
inline bool guards_elements() { return guard_side == GuardSide::End || guard_side == GuardSide::Begin; }
/// Whether storages of this thread have blocks of their own: a trial looks right beside the elements, too.
inline thread_local constinit bool elements_apart = false;
/// The list of this thread's tensors that carry their elements themselves.
struct FreeList;
inline thread_local constinit FreeList* carriers_list = nullptr;
/// Null when there is no place for it.
void* allocate_at_page(size_t bytes) noexcept;
/// False when the block does not lie at such a page.
bool free_at_page(void* p) noexcept;
}  // namespace detail

}  // namespace lamella
LAMELLA_API_END
