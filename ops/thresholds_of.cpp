// Which kernels read a threshold.
#include "lamella/ops/thresholds_of.h"

#include "lamella/core/check.h"
#include "lamella/kernels/readers.h"

namespace lamella {

namespace {
constexpr std::string_view kByRow[] = {
#define LAMELLA_THRESHOLD_ROW(name, usual, lowered, in, what) kernels::kReaders.name,
    LAMELLA_THRESHOLDS(LAMELLA_THRESHOLD_ROW)
#undef LAMELLA_THRESHOLD_ROW
};
static_assert([] {
  for (const std::string_view readers : kByRow)
    if (readers.empty()) return false;
  return true;
}());

/// 0: not among these words, 1: there, 2: there with a mark.
int listed(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t end = words.find(' ');
    const std::string_view next = words.substr(0, end);
    if (next == word) return 1;
    if (next.ends_with('~') && next.substr(0, next.size() - 1) == word) return 2;
    words.remove_prefix(end == std::string_view::npos ? words.size() : end + 1);
  }
  return 0;
}
}  // namespace

std::string_view readers_of(const Threshold& row) {
  const auto at = size_t(&row - all_thresholds().data());
  LAMELLA_ASSERT(at < std::size(kByRow));
  return kByRow[at];
}
bool concerns(const Threshold& row, std::string_view kernel) { return listed(readers_of(row), kernel) != 0; }
bool rounds(const Threshold& row, std::string_view kernel) { return listed(readers_of(row), kernel) == 2; }

}  // namespace lamella
