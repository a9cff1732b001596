// The list of thresholds.
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
#define LAMELLA_THRESHOLD_ROW(name, usual, lowered, in, what) {#name, usual, lowered, CountedIn::in, what},
    LAMELLA_THRESHOLDS(LAMELLA_THRESHOLD_ROW)
#undef LAMELLA_THRESHOLD_ROW
};
}  // namespace

std::span<const Threshold> all_thresholds() { return kAll; }

}  // namespace lamella
