// Why writes and reads of written values are refused, beside the texts: Error::reason().
#pragma once

#include "lamella/core/check.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Backward asks for a value that a formula saved, and its memory was written later.
struct WrittenLater {};
/// A write to a view of what carries derivatives and has gaps between its elements.
struct HasGaps {};
/// A write of a value of a level to what has none, while views of it exist.
struct HasViews {};

}  // namespace lamella
LAMELLA_API_END
