// Stacks of transforms over small programs, in two readings: by the transforms themselves, and by loops and
// differences alone.
#pragma once

#include "lamella/verify/case/lanes.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// A transform of a stack, with what it needs at its level.
struct Layer {
  enum Kind : uint8_t {
    Vmap,
    Jvp,   ///< the tangents of the results
    Vjp,   ///< the pullback at `constants`
    Grad,  ///< of the sum of results weighted with `constants`
    Share  ///< no transform: the last input is the first one again
  } kind = Vmap;
  /// Inputs the transform acts on: mapped ones, differentiated ones. The others reach the inner function by
  /// capture.
  std::vector<bool> active;
  bool capture = false;  ///< Vmap: inputs that are not mapped are captured instead of having in_dim none
  InDims in_dims, out_dims;
  int64_t size = 0;
  Tensors constants;    ///< Jvp: tangents of the active inputs; Vjp and Grad: one for each result
  bool scaled = false;  ///< Jvp: the tangent is constant * primal, so it depends on outer levels
};

/// What comes before and after the operator.
struct Program {
  uint32_t before = 0;  ///< 0: nothing; 1: inputs scaled by a number that depends on all of them
  uint32_t after = 0;   ///< 0: nothing; 1: sin; 2: y * y; 3: log(1 + |y|^2); 4: y times the sum of the first
                        ///< input; 5: y * conj(y); 6, 7: written in place, through views
  bool extra = false;   ///< a last input: each result times 1 + the sum of its squares
};

/// Drawn from a case: the operator on `slots` within a program, under `layers` (innermost first), at
/// `inputs`.
class Stack {
 public:
  struct Options {
    int min_depth = 1, max_depth = 3;
    bool captures = false;  ///< an extra input; every layer acts on some inputs only
    bool shares =
        false;  ///< an extra input, which a Share layer ties to the first one in the middle of the stack
    double max_cost = 3000;  ///< evaluations the numeric reading may take
  };
  /// Not valid (empty layers) when the operator has no result or input that suits.
  Stack(Case& c, const Options& options);
  bool valid() const { return !layers_.empty(); }

  int depth() const;
  const Tensors& inputs() const { return inputs_; }
  /// By transforms.
  Function function() const;
  /// What calls the operator, but not what comes before and after it, in a way of its own.
  using Around = std::function<Tensors(const Function& op, const Tensors& operands)>;
  /// By loops over lanes and difference quotients in f128 on the reference column; `scale` multiplies every
  /// step.
  Function numeric(double scale = 1, const Around& around = {}) const;
  /// The operator alone, on the reference column.
  Function numeric_operator() const;
  /// What the operator is called with at the drawn point, before any layer.
  Tensors operands() const { return case_.values(slots_); }
  /// "vmap(jvp(mul))"
  std::string str() const;
  /// Largest unit roundoff among inputs, results and dtype arguments.
  double roundoff() const;
  /// Body of main(): prints function()(inputs()), and what it should be if that is given.
  std::string cpp(const Tensors& want = {}) const;

 private:
  void draw_layer(Draw& d, const Options& o, Layer::Kind kind);
  void draw_vmap(Draw& d, const Options& o, Layer& layer);
  Function program(Function op) const;
  void note_stratum() const;

  Case& case_;
  std::vector<Case::Slot> slots_;
  Program program_;
  std::vector<Layer> layers_;
  Tensors inputs_;   ///< of the outermost layer
  Tensors results_;  ///< their values or any tensors of their type, for shapes
  double cost_ = 1, max_cost_;
};

}  // namespace lamella::verify
LAMELLA_API_END
