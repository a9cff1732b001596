// Foreign memory comes in through the checks of make_view.
#include "lamella/core/adopt.h"

#include <cstdint>

#include "lamella/core/visit.h"

namespace lamella {

namespace {
/// Stands for null, to which no offset may be added: views without elements have offsets, too.
alignas(64) char no_bytes[64];
}  // namespace

Tensor adopt_memory(const ForeignMemory& memory, DType dtype, Ints sizes, Ints strides, int64_t offset) {
  check_dtype("adopt_memory", dtype);
  LAMELLA_CHECK(memory.data || memory.nbytes == 0, Value,
                "adopt_memory: data is null for nbytes = {}; expected memory", memory.nbytes);
  LAMELLA_CHECK(memory.nbytes <= size_t(INT64_MAX), Overflow,
                "adopt_memory: nbytes = {}; expected less than 2^63", memory.nbytes);
  const size_t alignment = visit_dtype(dtype, []<class Tag>(Tag) { return alignof(typename Tag::type); });
  LAMELLA_CHECK(reinterpret_cast<uintptr_t>(memory.data) % alignment == 0, Value,
                "adopt_memory: data is not aligned for {}; expected a multiple of {} bytes", dtype,
                alignment);
  const Tensor whole = Tensor::adopt(TensorImpl::create_bare());
  TensorImpl* const impl = whole.impl();
  impl->dtype = dtype;
  impl->device = Device::CPU;
  impl->keys = uint64_t{1} << int(Device::CPU);
  impl->set_contiguous(Dims{int64_t(memory.nbytes) / itemsize(dtype)});
  void* const data = memory.data ? memory.data : no_bytes;
  impl->storage = adopt_storage(data, memory.nbytes, nullptr, nullptr).detach();
  impl->storage->disown();
  // An alias, for a view would join the family of `whole`, which nobody holds.
  const Tensor out = make_alias(make_view(whole, sizes, strides, offset));
  out.impl()->storage->context = memory.context;  // from here on nothing fails
  out.impl()->storage->deleter = memory.deleter;
  return out;
}

}  // namespace lamella
