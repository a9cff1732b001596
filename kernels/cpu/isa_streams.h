// Lines of arithmetic that store past the caches: what an instruction set has of them. See isa.h, stream.h.
#pragma once

#include "lamella/kernels/cpu/isa_constants.h"
#include "lamella/kernels/kernels.h"

namespace lamella::kernels {

/// As a body's LineFn and its ConstantLines, of which `out` may be no operand; null where there is none: f32
/// and f64 have what memory bounds. Who calls them calls end_streams() before anybody else may look.
struct StreamLines {
  LineFn line = nullptr;
  ConstantLines beside = {};
};

#define LAMELLA_DECLARE_STREAM_LINES(isa)                    \
  namespace isa {                                            \
  StreamLines find_stream_lines(size_t row, DType dtype);    \
  void copy_past(char* to, const char* from, int64_t lines); \
  }
LAMELLA_DECLARE_STREAM_LINES(scalar)
LAMELLA_DECLARE_STREAM_LINES(avx2)
LAMELLA_DECLARE_STREAM_LINES(avx512)
#undef LAMELLA_DECLARE_STREAM_LINES

}  // namespace lamella::kernels
