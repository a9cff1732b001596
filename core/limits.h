// Every fixed limit: how much of something there may be. What goes beyond one is refused by a typed error.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [limits] Arrays on the stack and fields of 8 bits are as large as these constants say, so that each
/// has one door where more is refused: `proptests/test_limits.cpp` goes through every door. Sizes from which
/// something is merely done in another way are thresholds (core/thresholds.h).
inline constexpr int kMaxDims = 64;                     ///< of a tensor that calls take and give
inline constexpr int kMaxFileDims = 255;                ///< of a tensor in a file: what a header can hold
inline constexpr int64_t kMaxNumel = int64_t{1} << 58;  ///< elements of a tensor; also what strides reach
inline constexpr int kMaxPlanOperands = 5;              ///< tensors that one loop goes through, results first
inline constexpr size_t kMaxSchema = 4096;              ///< characters of a schema
inline constexpr size_t kMaxArity = 12;                 ///< parameters of an operator, `out` among them
inline constexpr int kMaxResults = 4;                   ///< of an operator
inline constexpr int kMaxBroadcast = kMaxPlanOperands - 1;  ///< tensors that a Broadcast operator takes
inline constexpr size_t kMaxSaves = 6, kMaxSavedSizes = 2;  ///< of one formula
inline constexpr size_t kMaxSavedByNode = 16;     ///< different ones of all formulas of one direction
inline constexpr int kMaxLevels = 48;             ///< live transforms of a thread
inline constexpr int kMaxTypes = 9;               ///< layouts and types of tensors in a program
inline constexpr size_t kMaxCustomResults = 255;  ///< values and residuals of a function with a rule
inline constexpr size_t kMaxListResults = 65535;  ///< tensors in the list that a recorded call gives
inline constexpr int kMaxThreads = 256;           ///< of a kernel
/// Tensors, and arguments in all, of calls that the short ways for small tensors take.
inline constexpr size_t kMaxStraight = 3, kMaxStraightArity = 8;

}  // namespace lamella
LAMELLA_API_END
