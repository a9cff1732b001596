// NaN below levels.
#include "lamella/transforms/first_nan.h"

#include <algorithm>
#include <cmath>

#include "lamella/core/visit.h"
#include "lamella/dispatch/state.h"

namespace lamella {

namespace {
template <class T> bool is_nan(const T& x) {
  if constexpr (is_complex_type<T>) return is_nan(x.real()) || is_nan(x.imag());
  else if constexpr (std::is_integral_v<T>) return false;
  else return x != x;
}

template <class T> bool next_nan(const View& v, Dims& at) {
  int64_t numel = 1;
  for (int d = 0; d < v.rank; ++d) numel *= v.sizes[d];
  for (int64_t i = 0; i < numel; ++i) {
    int64_t offset = 0;
    for (int d = 0; d < v.rank; ++d) offset += at[d] * v.strides[d];
    if (is_nan(v.as<T>()[offset])) return true;
    for (int d = v.rank - 1; d >= 0 && ++at[d] == v.sizes[d]; --d) at[d] = 0;
  }
  return false;
}

std::optional<Element> nan_in_memory(const Tensor& t) {
  if (!is_inexact(t.dtype()) || (t.device() != Device::CPU && t.device() != Device::Reference)) return {};
  Element out{Dims(t.rank()), {}, {}};
  const bool found = visit_dtype(
      t.dtype(), [&]<class Tag>(Tag) { return next_nan<typename Tag::type>(t.view_of(), out.index); });
  return found ? std::optional(std::move(out)) : std::nullopt;
}

const Wrapper* wrapper_of(const Tensor& t) {
  return !t.impl()->storage && t.keys() >> kFirstLevelKey ? static_cast<const Wrapper*>(t.impl()->wrap)
                                                          : nullptr;
}
}  // namespace

std::optional<Element> first_nan(const Tensor& t) {
  if (!t.defined()) return {};
  const Wrapper* const w = wrapper_of(t);
  if (!w) return t.impl()->storage ? nan_in_memory(t) : std::nullopt;
  if (std::optional<Element> e = first_nan(w->value)) {
    const int d = w->mapped_dim();
    if (d < 0) return e;
    e->lanes.insert(e->lanes.begin(), {live_key_name(w->key), e->index[d]});
    e->index.erase(d);
    return e;
  }
  std::optional<Element> e = first_nan(w->companion());
  if (e) e->tangent_of = live_key_name(w->key);
  return e;
}

std::string Element::lanes_text() const {
  std::string out;
  for (const auto& [level, lane] : lanes)
    out += format("{}lane {} of {}", out.empty() ? ", in " : " of ", lane, level);
  return out;
}

DimInMemory dim_in_memory(const Tensor& t, int d) {
  const Tensor* at = &t;
  while (const Wrapper* const w = wrapper_of(*at)) {
    if (const int mapped = w->mapped_dim(); mapped >= 0 && mapped <= d) ++d;
    at = &w->value;
  }
  if (!at->impl()->storage) return {};
  return {at->impl()->storage, at->size(d), at->stride(d)};
}

}  // namespace lamella
