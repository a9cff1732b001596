// The table of kernels: each name with its text for the CPU and the oracle's.
#include "lamella/kernels/kernels.h"

namespace lamella::kernels {

#define LAMELLA_DEFINE_KERNEL(name) const Kernel name = {#name, cpu::name, reference::name};
LAMELLA_POINTWISE_KERNELS(LAMELLA_DEFINE_KERNEL)
LAMELLA_OTHER_KERNELS(LAMELLA_DEFINE_KERNEL)
#undef LAMELLA_DEFINE_KERNEL

}  // namespace lamella::kernels
