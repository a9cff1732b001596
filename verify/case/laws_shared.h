// What laws of several files ask of a case.
#pragma once

#include <map>
#include <mutex>

#include "lamella/dispatch/call.h"
#include "lamella/dispatch/state.h"
#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Sees what each call gives, those within composites too: tensors with elements of inexact dtypes.
class SeesResults : public Observer {
 public:
  void on_call(const Frame&, KeySet, int) final {}
  void on_result(const Frame& f) final;
  void on_return(const Frame&) final {}

 private:
  virtual void sees(const Tensor& t) = 0;
};
/// Whether one of the first `tries` cases of a fixed series is so: what laws ask to know whom they are about.
bool some_case(const Op& op, const DrawOptions& options, uint32_t tries,
               const std::function<bool(Case&)>& is_so);
/// Answers of one question, kept by the operator's name: laws ask often.
class AskedOnce {
 public:
  bool operator()(const Op& op, const std::function<bool()>& question) {
    const std::lock_guard lock(guard_);
    const auto [it, fresh] = known_.try_emplace(op.name, false);
    if (fresh) it->second = question();
    return it->second;
  }

 private:
  std::mutex guard_;
  std::map<std::string, bool> known_;
};
/// The row of this form that the table has now, of Functional that of the name; null where there is none.
const Op* form_of(const Op& op, OpForm form);
/// One argument changed into something the operator may have to refuse: sizes, dtypes, numbers at and beyond
/// the ends of what they may be. `anything`: also another device, or an undefined tensor.
void spoil(Case& c, bool anything = false);
/// One element changed: an index that is none, a divisor 0, a matrix that has no factor.
void spoil_values(Case& c);
/// Law 1 for one case, whatever its arguments: results against the Reference column's.
Verdict agrees_with_reference(Case& c);
/// Law 1 for results that come from elsewhere: a discard where an infinity may come up on the way.
Verdict within_reference(Case& c, const Tensors& got);
/// Law 14 likewise: NaN and infinities are where the reference's are.
Verdict classes_as_reference(Case& c, const Tensors& got);
/// Whether what the row says it computes may overflow on numbers as these, where it is kept in this dtype.
bool may_overflow_inside(const Case& c, DType kept);
/// `wide` in the dtype of `got`, with got's own entries where the exact result needs rounding.
Tensor exact_parts(const Tensor& wide, const Tensor& got);
/// Of a composite: whether what it computes before its results has many bits, so that numbers which need no
/// rounding come of some that were rounded: (-1 - 0.4) / 2.8 is -0.5. Of others nobody knows; their kernels
/// are asked to be exact.
bool rounds_inside(const Op& op, const Values& given, DType d);
/// A random operator that is given no key: another call gives other numbers.
bool draws_anew(const Case& c);
/// Of an operator that takes its dims by `Dim` parameters: whether each of the `rank` dims is among them. A
/// reduction without dims reduces all; along-dim operators then touch none.
std::vector<bool> named_dims(const Case& c, int rank);

}  // namespace lamella::verify
LAMELLA_API_END
