// Which cell serves each key of a row: the precedence of NOTE: [columns].
#pragma once

#include "lamella/dispatch/op.h"

LAMELLA_API_BEGIN
namespace lamella {

/// What serves operators that say nothing of a key themselves; part of a table's value.
struct KeyDefaults {
  Cell fallback[kAutogradKey] = {};
  std::string_view fallback_from[kAutogradKey] = {};  ///< who registered them
  struct OfClass {
    ShapeClass shape;
    int key;
    Cell cell;
    std::string_view from;
  };
  std::vector<OfClass> classes;
};

namespace detail {
std::string origin_str(std::string_view origin);  ///< "the library", or the plug-in's file
std::string_view origin_now();
bool is_claimed(Device device);  ///< REQUIRES: the table's lock
/// Error undefined where a cell that somebody brought for `key` has left a result out.
void check_given(const Frame& frame, int key);
}  // namespace detail

/// Gives a row that stands in the place of another the alternatives that were registered for that, whose
/// columns it has: "built_in" is its own.
void fit_columns(Op& op);
/// Makes the kernels of the row those of its columns' chosen alternatives.
void take_kernels(Op& op);
/// Fills `cells` and `served` of a row whose other fields are final; a form's base has been filled.
void fill_cells(Op& op, const KeyDefaults& defaults);
/// Makes the rows of `rules_of_types` anew, of this row.
void fit_rules(Op& op, const KeyDefaults& defaults);
/// Of a row that serves no key any more.
void empty_cells(Op& op);
/// For cells of an operator: what would run if it had none of its own for this key: its class's cell or
/// kernel, or a composite's body. Error usage where it has none, as when a class's cell asks, beneath which
/// there is nothing to call.
void call_built_in(Frame& frame, int key);
/// For tests that compare the two: runs in the place of every cell that somebody brought for a composite on a
/// device; null: no more.
void watch_overrides(Cell watch);
/// Hands the call on to the next key of its arguments, as if they had not this one. As a fallback: the key
/// lets every operator through.
void fall_through(Frame& frame, int key);

}  // namespace lamella
LAMELLA_API_END
