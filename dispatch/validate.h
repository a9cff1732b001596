// The one door that rows pass before a table takes them.
#pragma once

#include "lamella/dispatch/op.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [validation] Whatever a row states that would later be an index out of a fixed array, a value read
/// as another type or a rule that never runs is refused when it is registered: by `validate` for the row, by
/// `bind` (dispatch/bind.h) for each formula of its rules. The error names operator, field, what it got and
/// what was expected. `gives_one`: the shape function gives one result whatever the arguments. Error schema.
void validate(const Op& op, bool gives_one);

}  // namespace lamella
LAMELLA_API_END
