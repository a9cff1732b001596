// See NOTE: [across].
#include "lamella/kernels/cpu/across.h"

#include <cstring>

#include "lamella/kernels/cpu/transpose.h"

namespace lamella::kernels {
namespace {

constexpr int64_t kLine = 64;  // bytes that memory gives as one

/// Rows of `to` are columns of `from`, whole registers of them: both have room for what is beyond n0 and n1.
template <class T>
void transpose(char* to, int64_t to_pitch, const char* from, int64_t from_pitch, int64_t n0, int64_t n1) {
  constexpr int64_t kWide = kInRegister<T>, kItem = sizeof(T);
  for (int64_t j = 0; j < n1; j += kWide)
    for (int64_t i = 0; i < n0; i += kWide)
      transpose_registers(to + j * to_pitch + i * kItem, to_pitch,
                          reinterpret_cast<const T*>(from + i * from_pitch + j * kItem), from_pitch / kItem);
}

}  // namespace

bool runs_across(const IterPlan& plan, int operand, int64_t item) {
  return (item == 4 || item == 8) && plan.rank >= 2 && plan.stride(operand, 1) == item &&
         std::abs(plan.stride(operand, 0)) > item && plan.size(0) >= thresholds().square &&
         plan.size(1) >= thresholds().square;
}

// A line between rows of the operand's buffer: those of a register would share a set of the first cache.
AcrossReader::AcrossReader(int64_t item)
    : item_(item),
      pitch_(thresholds().across_rows * item),
      line_(thresholds().across_columns * item + kLine),
      lines_(size_t(line_ * thresholds().across_rows)),
      rows_(size_t(pitch_ * thresholds().across_columns)) {}

const char* AcrossReader::read(const IterPlan& plan, int operand, const AcrossBlock& block) {
  const int64_t pitch = plan.stride(operand, 0), bytes = block.n1 * item_;
  const int64_t next = block.next0 * pitch + block.next1 * plan.stride(operand, 1);
  const char* from = block.at[operand];
  for (int64_t i = 0; i < block.n0; ++i, from += pitch) {
    std::memcpy(&lines_[size_t(i * line_)], from, size_t(bytes));
    for (int64_t at = 0; next != 0 && at < bytes; at += kLine) __builtin_prefetch(from + next + at);
  }
  (item_ == 4 ? transpose<uint32_t> : transpose<uint64_t>)(rows_.data(), pitch_, lines_.data(), line_,
                                                           block.n0, block.n1);
  return rows_.data();
}

}  // namespace lamella::kernels
