// The threads of kernels: one pool of the process, and a loop over tiles that it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [threads of kernels] A kernel cuts its work into tiles, by the shapes and dtypes it is given and by
/// nothing else; which thread computes a tile, and in which order, is left to chance. A tile writes elements
/// that no other tile reads or writes, and partial results of tiles are put together by one thread, in the
/// order of tiles. So results are the same bits for every number of threads, one among them (law 173).
///
/// The pool starts with the first loop that is worth it, grows to threads() - 1, and never ends; its threads
/// look for the next loop for a tenth of a millisecond and then sleep. To wake one takes as long as a small
/// loop, which is therefore shared only while loops follow each other closely (helpers_near). Who calls while
/// it works for another thread, who calls out of a tile, and who calls inside a parallel region of OpenMP,
/// has the loop to itself: there are never more busy threads than threads(). A child of fork() has no pool
/// and starts one of its own. Tiles may allocate, but nothing of tensors: storages, plans, calls of operators
/// and the state that docs/thread_state.md lists belong to the caller. Thresholds, rounding mode and the
/// treatment of subnormals are the caller's in every tile.
///
/// Everything that two threads share is a mutex's or atomic; a loop ends under the mutex that its last tile
/// took, so what tiles wrote happens before what the caller does next.

/// How many threads a kernel may use, the caller's among them. Until set_threads: LAMELLA_THREADS, else as
/// many as there are processors that this process may run on. Error usage: LAMELLA_THREADS is no number from
/// 1 to kMaxThreads.
int threads();

/// From now on, for the whole process; bits of results do not change. Kernels that run meanwhile keep what
/// they began with. Error usage: n < 1 or n > kMaxThreads.
void set_threads(int n);

/// Another number for a scope: of the whole process, so not in two threads at once.
class ScopedThreads {
 public:
  explicit ScopedThreads(int n) : saved_(threads()) { set_threads(n); }
  ~ScopedThreads() { set_threads(saved_); }
  ScopedThreads(const ScopedThreads&) = delete;

 private:
  int saved_;
};

/// Whether the calling thread runs a tile, or is a thread of the pool.
bool in_parallel();

/// Whether a loop that is too short to wake anybody for should be shared: a thread of the pool is awake, or
/// the last who asked did so within the last 0.2 ms, so that it pays to wake one. Only time depends on it.
bool helpers_near();

namespace detail {
/// What LAMELLA_THREADS asks for. Error usage: see threads().
int threads_asked(std::string_view text);
using TilesFn = void (*)(void* body, int64_t first, int64_t last);
void run_tiles(int64_t tiles, TilesFn run, void* body);
}  // namespace detail

/// Calls body(first, last) for ranges that together are [0, tiles), each once, some at the same time on other
/// threads. Ranges depend on the number of threads: what is computed must not. The first exception by tile is
/// raised again here, an Error with this thread's transforms, once no tile runs any more; tiles behind it may
/// not have run.
template <class Body> void parallel_for(int64_t tiles, Body&& body) {
  using B = std::remove_reference_t<Body>;
  const auto run = [](void* b, int64_t first, int64_t last) { (*static_cast<B*>(b))(first, last); };
  detail::run_tiles(tiles, run, const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

}  // namespace lamella
LAMELLA_API_END
