// A list of tensors that does not allocate each time.
#pragma once

#include "lamella/dispatch/value.h"

LAMELLA_API_BEGIN
namespace lamella {

/// A list whose memory its thread keeps for the next one, so that entering a level does not allocate.
class SpareList {
 public:
  explicit SpareList(size_t n) {
    if (!is_gone_) list.swap(spare_.list);
    list.reserve(n);
  }
  ~SpareList() {
    list.clear();
    if (list.capacity() <= 64 && !is_gone_) list.swap(spare_.list);
  }
  SpareList(const SpareList&) = delete;
  Tensors list;

 private:
  struct Spare {
    Tensors list;
    ~Spare() { is_gone_ = true; }  // destructors that run later in a thread's end may call vmap, too
  };
  static inline thread_local constinit bool is_gone_ = false;
  static thread_local Spare spare_;
};
inline thread_local SpareList::Spare SpareList::spare_;

}  // namespace lamella
LAMELLA_API_END
