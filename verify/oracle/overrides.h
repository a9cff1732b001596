// Cells that a plug-in brings for composites, beside the composites: what tells the two apart is rounding
// alone.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {
struct Frame;
}

namespace lamella::verify {

/// NOTE: [overrides held] Levels and base autograd take a composite apart, a plain call runs the cell that
/// somebody brought for it; so the two round differently, and laws that compare bits under a transform with
/// bits without would turn red for a cell that does nothing wrong. None of them is told to look less closely.
/// A case that fails is run again while each result of such a cell is held to the composite's definition, by
/// law 1 or, where arguments are not finite, by law 14, and then given the bits that the composite has for
/// these arguments: then all laws hold bit by bit, or the cell (what it gives, what it leaves out, what it
/// writes) or something else is wrong, and the first verdict stands.
class OverridesHeld {
 public:
  OverridesHeld();
  ~OverridesHeld();
  OverridesHeld(const OverridesHeld&) = delete;
  /// What a result was that is not what the composite is defined to be; empty: none.
  std::string wrong() const;
  /// Whether any call got bits of the composite: if none did, a second run says nothing of the first.
  bool replaced() const { return replaced_ > 0; }

 private:
  static void beside_composite(Frame& f, int key);
  mutable std::mutex telling_;  ///< calls may come from many threads
  std::string first_wrong_;
  std::atomic<int> replaced_{0};
};
std::atomic<OverridesHeld*>& overrides_held();  ///< the one in force: NOTE: [context]

/// Whether the current table has such a cell for the CPU.
bool has_overrides();

}  // namespace lamella::verify
LAMELLA_API_END
