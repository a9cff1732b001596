// A drawn chain of one to eight operators: results go into later calls, as they are or through views and
// copies, into fresh memory or in place; what is not passed on is captured.
#pragma once

#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// One call. Tensors of `args` that no link replaces are constants.
struct Step {
  const Op* op;
  Values args;
  struct Link {
    Case::Slot slot;
    size_t value;  ///< among the inputs and all earlier results
  };
  std::vector<Link> links;
  std::vector<bool> inexact = {};  ///< which results are
  const Op* in_place = nullptr;    ///< called instead, on a view into a copy of the first argument
};

/// Of a case of a law with `exact` options: the operator of the case is one of the steps. Steps that raise on
/// the drawn values, or leave the small numbers, are left out.
class Chain {
 public:
  explicit Chain(Case& c);
  /// The operator of the case accepts what it is given, and there is an input to derive by or map over.
  bool valid() const { return valid_; }
  const Tensors& inputs() const { return inputs_; }
  bool writes() const;
  /// Of the inputs; returns the results of every step.
  Function function() const;
  /// Likewise, with integer and bool results left out.
  Function smooth_function() const;
  /// Which inexact result, counted over the program, and how many the call gave: what is given back takes its
  /// place before anything uses it.
  using Watch = std::function<Tensor(size_t value, size_t of, const Tensor& y)>;
  /// As smooth_function(), seen by `watch` on the way.
  Tensors watched(const Tensors& xs, const Watch& watch) const;
  /// Declares `f`, a Function, as C++; or `f0`, the smooth one.
  std::string cpp(bool smooth = false) const;

 private:
  bool add(Case& c, bool own);
  std::vector<std::string> names_of(const Step& s, const std::vector<std::string>& values,
                                    std::string& constants, int& next) const;

  std::vector<const Op*> pool_;  ///< what the other steps may call: few of all, so that they meet again

  Tensors inputs_;
  std::vector<Step> steps_;
  Tensors values_;  ///< inputs and results at the drawn values
  bool valid_ = false;
};

/// What laws of chains ask of a case, and whom they are about.
DrawOptions chain_options();
bool chained(const Op& op);
bool chained_smoothly(const Op& op);

/// Every part of every element is a multiple of 1/16 of at most 2^12: sums and products of a few are exact in
/// f64.
bool small_numbers(const Tensors& ts);

}  // namespace lamella::verify
LAMELLA_API_END
