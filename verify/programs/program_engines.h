// Engines that run statement programs, and what is asked of each: the same values, geometry, errors and
// derivatives as the plain program.
#pragma once

#include "lamella/verify/case/lanes.h"
#include "lamella/verify/programs/statements.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// What one engine gave for one program.
struct EngineRun {
  Script::Seen seen;
  Status status;
  Tensors ys;                  ///< results, where the engine gives them as they are
  std::vector<double> values;  ///< weighted sums of results, one for each lane
  std::vector<double> slopes;  ///< derivatives of those along the directions
  double curve = 0;            ///< second derivative
  Tensors retained;            ///< gradients of the handles that the program retains
  Finding wrong;               ///< of types and memory of gradients
};

/// A program, the engine that ran it, and the lanes it ran on.
struct EngineCase {
  const Script& program;
  std::string engine;  ///< C++ behind the declarations that prints what it got
  int depth = 1;
  bool levels = true;               ///< false: base autograd, with its own refusals
  bool saves = true;                ///< a tape is run backwards
  uint32_t traced = ~0u;            ///< inputs that are differentiated
  uint32_t mapped = 0;              ///< inputs that differ from lane to lane, or have tangents
  std::vector<Tensors> lanes = {};  ///< inputs of each; one for engines without lanes
  Tensors ts = {}, ss = {};         ///< directions; ss for second derivatives
  bool summed = false;              ///< the lanes' slopes are given as one sum
  bool second = false;
  bool lanes_alone = false;  ///< vmap and no derivatives: inputs may be written
  bool further_out = false;  ///< inputs and captures are values of a level around all
};

/// Compares everything that the run has.
Verdict judge(const EngineCase& s, const EngineRun& run);
/// How an error relates to what the plain run raises: empty where it may be.
Finding wrong_status(const EngineCase& s, const EngineRun& run);
/// The failure, with a program that shows it.
Verdict program_failure(const EngineCase& s, const Finding& wrong);

/// Weighted sum of results, by calls.
Tensor weighted_sum(const Tensors& ys, const Tensors& weights);
/// Own copies.
Tensors copies(const Tensors& ts);
std::vector<int> all_argnums(const Script& p);

/// What laws of programs ask of a case, and whom they are about.
DrawOptions program_options();
bool has_programs(const Op& op);
/// One lane, first derivatives.
EngineCase engine_case(const Script& p, std::string engine, int depth, bool levels = true);

// What a printed program says after the declarations, to print the derivative it got.
inline constexpr const char* kPrintLeaves =
    "  double got = 0;\n  for (size_t k = 0; k < leaves.size(); ++k)\n    if (grad_of(leaves[k]).defined()) "
    "got += "
    "along(grad_of(leaves[k]), ts[k]);\n  std::cout << \"got      \" << got << '\\n';\n";
inline constexpr const char* kMakeLeaves =
    "  Tensors leaves;\n  for (const Tensor& x : inputs) leaves.push_back(requires_grad(x));\n";
inline constexpr const char* kPrintGradients =
    "  double got = 0;\n  for (size_t k = 0; k < gs.size(); ++k) got += along(gs[k], ts[k]);\n"
    "  std::cout << \"got      \" << got << '\\n';\n";

/// Leaves, the program, backward: into `leaves`. Raises what it raises.
void run_backward_on(const Script& p, const Tensors& leaves, bool one_by_one, EngineRun& run);
Tensors leaves_of(const Tensors& xs);
/// Gradients of leaves along directions, and what is wrong with them.
double slope_of_leaves(const Tensors& leaves, const Tensors& ts, Finding& wrong);

}  // namespace lamella::verify
LAMELLA_API_END
