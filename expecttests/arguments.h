// The tensors among an operator's arguments.
#pragma once

#include "lamella/dispatch/value.h"

namespace lamella::expect {

inline Tensors tensors_of(const Values& args) {
  Tensors out;
  for (const Value& v : args) {
    if (const auto* t = std::get_if<Tensor>(&v)) out.push_back(*t);
    if (const auto* ts = std::get_if<Tensors>(&v)) out.insert(out.end(), ts->begin(), ts->end());
  }
  return out;
}

/// Replaced in order.
inline Values with_tensors(Values args, const Tensors& tensors) {
  size_t at = 0;
  for (Value& v : args) {
    if (auto* t = std::get_if<Tensor>(&v)) *t = tensors[at++];
    if (auto* ts = std::get_if<Tensors>(&v))
      for (Tensor& t : *ts) t = tensors[at++];
  }
  return args;
}

}  // namespace lamella::expect
