// Mutation as a level: a mode above all others, open while a rule runs, that changes one of its calls.
#pragma once

#include <functional>

#include "lamella/mutate/mutants.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Replaces a formula of a row (`right` is the same one of the right row) by one that runs the right formula
/// under live_bug's level, or live_bug's FormulaPerturbation in its place.
void plant_in_formula(BoundFormula& wrong, const BoundFormula& right);
/// Likewise for the batch rule.
void plant_in_batch_rule(Op& row);
/// Likewise for the body of a composite.
void plant_in_composite(Op& row);
/// What the batch rule of the right row computes, its class's if it has none.
void right_batch_rule(BatchCall& b);

/// Calls the right formula makes: seen on drawn cases.
std::vector<CallSite> sites_of_formula(const Op& op, bool vjp, size_t index);
std::vector<CallSite> sites_of_batch_rule(const Op& op);
std::vector<CallSite> sites_of_composite(const Op& op);

/// Results of a formula whichever form it has.
Tensors run_formula(const BoundFormula& f, const RuleArgs& args);

/// What a case of `op` shows of an operator: everything laws look at in some way. For recording, and for
/// equality.
enum class Probe : uint8_t {
  Forward,
  Forms,
  Vjp,
  Jvp,
  Second,
  JvpOfJvp,
  Vmap,
  VmapOfVmap,
  VjpOfVmap,
  Backward,
  State,
  Thread,
  Dead
};
Tensors probe(Probe kind, const Op& op, const Choices& choices, const DrawOptions& options);
/// Probes `op` with 200 drawn cases while its row is as `plant_recorder` leaves it: to see what its kernels
/// are given, before mutants are planted in them.
void observe(const Op& op, const std::function<void(Op&)>& plant_recorder);

}  // namespace lamella::verify
LAMELLA_API_END
