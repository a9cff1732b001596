// The library's further kernels, as alternatives of columns.
#pragma once

namespace lamella {

/// Adds the library's second kernels (matmul: own, openblas; softmax: online; clone: streaming, memcpy) to
/// the CPU columns of the operators that have the first ones; these go on to be what calls run, as
/// "built_in", which chooses by size. Idempotent. Not done at start: a table without them is what laws of
/// registrations are about. OpTable::choose makes one what calls run. Errors: none of its own.
void add_alternatives();

}  // namespace lamella
