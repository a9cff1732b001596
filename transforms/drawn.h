// What random operators draw in lanes.
#pragma once

#include "lamella/dispatch/frame.h"
#include "lamella/transforms/vmap.h"

LAMELLA_API_BEGIN
namespace lamella {

/// The key of a random call; undefined when it is None, or the operator has none.
Tensor key_of(const Frame& f);

struct Drawn {
  Tensor result;        ///< one level down
  bool mapped = false;  ///< in dim 0
};

/// NOTE: [randomness] One key a call, whatever the batch size: `different` folds the lane into it, `same`
/// shares it, so that a loop that runs lane i in LaneScope(i) draws the same bits. `given`: a key of the call
/// that is not mapped. Error randomness.
Drawn drawn_in_lanes(const Frame& f, const Tensor& given, Randomness randomness, int64_t first,
                     int64_t lanes);
/// With this key; undefined: None. Mapped keys, those of the lanes, are streams of their own.
Drawn drawn_with(const Frame& f, const Tensor& key, bool mapped);

}  // namespace lamella
LAMELLA_API_END
