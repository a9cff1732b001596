// The list of thresholds, and what it says of a kernel.
#include "lamella/core/thresholds.h"

#include "lamella/core/tensor.h"

namespace lamella {

namespace detail {
constinit Thresholds thresholds_of_process;
}

// Headers that everything reads do not read this one.
static_assert(Dims::kInline == kUsualThresholds.inline_dims);
static_assert(TensorImpl::kInlineRank == kUsualThresholds.inline_dims);
static_assert(TensorImpl::kInlineBytes == kUsualThresholds.inline_bytes);

namespace {
constexpr Threshold kAll[] = {
#define LAMELLA_THRESHOLD_ROW(name, usual, lowered, in, kernels, what) \
  {#name, usual, lowered, CountedIn::in, kernels, what},
    LAMELLA_THRESHOLDS(LAMELLA_THRESHOLD_ROW)
#undef LAMELLA_THRESHOLD_ROW
};

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

bool Threshold::concerns(std::string_view kernel) const { return listed(kernels, kernel) != 0; }
bool Threshold::rounds(std::string_view kernel) const { return listed(kernels, kernel) == 2; }

std::span<const Threshold> all_thresholds() { return kAll; }

}  // namespace lamella
