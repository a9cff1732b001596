// A carried transform of one's own: what each tensor carries is said, all else is done here.
#pragma once

#include <string_view>

#include "lamella/core/tensor.h"
#include "lamella/dispatch/call.h"
#include "lamella/dispatch/value.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [carried transforms] A tensor goes beside each value, as a tangent does under jvp. Every operator is
/// called twice, one level down: on the values, and on what they carry; composites call their parts, views
/// and lists keep what they carry, writes replace it, and other transforms may stand within and around. These
/// say what is carried. Of static duration: tensors that outlive the call point to them.
struct CarriedRules {
  std::string_view name;  ///< of the level: "shadow"
  /// What a floating or complex tensor carries that is an argument, or that no argument led to.
  Tensor (*of_constant)(const Tensor& value);
  /// Calls the operator for what its results carry: `carried` has what the arguments carry (`values` their
  /// values) and room for the results. Null: the same operator.
  void (*beside)(const Frame& values, Frame& carried) = nullptr;
};

struct Carried {
  Tensors values, carried;
};
/// f at a level of its own. `values` are what f gives without, `carried` what they carry, of floating and
/// complex ones; of others the value itself. Errors: those of f.
Carried run_carried(const CarriedRules& rules, const Function& f, const Tensors& xs);

/// Calls g with each result of a call that has returned.
template <class G> void for_each_result(const Frame& f, G&& g) {
  if (f.op->schema.result_kind == ResultKind::TensorList)
    for (Tensor& t : *f.list) g(t);
  else
    for (int k = 0; k < f.op->schema.n_results; ++k) g(f.results[k]);
}

}  // namespace lamella
LAMELLA_API_END
