// Arguments made into what an operator may have to refuse.
#include <cmath>
#include <limits>

#include "lamella/core/visit.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/devices.h"
#include "lamella/ops/functions/strided.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();

/// A size of some tensor of the case; 2 where there is none.
int64_t some_size(const Case& c, uint32_t w) {
  const auto& slots = c.tensors();
  if (slots.empty()) return 2;
  const Tensor t = c.at(slots[0]);
  return t.defined() && t.rank() > 0 ? t.size(int(w % uint32_t(t.rank()))) : 1;
}

int first_rank(const Case& c) {
  const auto& slots = c.tensors();
  return slots.empty() ? 0 : c.at(slots[0]).rank();
}

/// A number near or beyond an end of [-n, n).
int64_t at_an_end(uint32_t w, int64_t n) {
  const int64_t all[] = {n, -n - 1, n - 1, -n, kLeast, kMost, n + 1, -1, 0, 1};
  return all[w % std::size(all)];
}

int64_t spoiled_integer(const Case& c, const Param& p, int64_t v, uint32_t w) {
  static constexpr int64_t kSteps[] = {1, -1, 3, -3, 7, -7};
  if (w % 3 == 0) return int64_t(uint64_t(v) + uint64_t(kSteps[w / 3 % 6]));  // v may be an end of i64
  if (p.role == ParamRole::Dim) return at_an_end(w / 3, std::max(first_rank(c), 1));
  return at_an_end(w / 3, some_size(c, w / 64));
}

void spoil_integers(const Case& c, const Param& p, Dims& dims, uint32_t w) {
  static constexpr int64_t kSizes[] = {-1, -2, 0, kLeast, kMost, 1};
  if (dims.empty() && p.role == ParamRole::Dim && w >> 31) {  // one dim twice, perhaps from both ends
    const int64_t rank = std::max(first_rank(c), 1), d = w / 5 % uint32_t(rank);
    dims = {d, w >> 30 & 1 ? d - rank : d};
    return;
  }
  if (w % 5 == 0 || dims.empty()) return dims.push_back(w / 5 % 3);
  const int at = int(w / 64 % uint32_t(dims.size()));
  if (w % 5 == 1) return dims.erase(0);
  if (w % 5 == 2) {  // the same once more, perhaps counted from the other end
    const int64_t rank = std::max(first_rank(c), 1), d = dims[at];
    return dims.push_back(p.role == ParamRole::Dim && w & 1024 ? (d < 0 ? d + rank : d - rank) : d);
  }
  if (w % 5 == 3 && w & 1u << 31 && p.role != ParamRole::Dim &&
      dims.size() > 1) {  // what they add up to stays
    int64_t& other = dims[(at + 1) % dims.size()];
    const int64_t less = -1 - int64_t(w / 5 % 2);
    other = int64_t(uint64_t(other) + uint64_t(dims[at]) - uint64_t(less));
    dims[at] = less;
    return;
  }
  if (w % 5 == 3 && p.role != ParamRole::Dim) dims[at] = kSizes[w / 5 % 6];
  else dims[at] = spoiled_integer(c, p, dims[at], w / 5);
}

/// `anything`: another device too, or an undefined tensor.
Tensor spoiled_tensor(Case& c, const Tensor& t, bool anything) {
  if (!t.defined()) return t;
  Dims sizes(t.sizes());
  DType dtype = t.dtype();
  const uint32_t w = c.draw.word();
  const int d = sizes.empty() ? 0 : int(w / 8 % uint32_t(sizes.size()));
  switch (w % 8) {
    case 0:
    case 5:
      if (!sizes.empty()) sizes[d] += 1;
      else sizes.push_back(2);
      break;
    case 1: sizes.insert(w & 1024 ? 0 : sizes.size(), w & 2048 ? 1 : 2); break;
    case 2:
      if (!sizes.empty()) sizes.erase(d);
      break;
    case 3:
      if (!sizes.empty()) sizes[d] = w & 1024 ? 1 : 0;
      break;
    case 7:
      if (anything && w % 32 == 7) return to_device(t, Device::Reference);
      if (anything && w % 32 == 15) return {};
      [[fallthrough]];
    default: dtype = DType(w / 32 % uint32_t(DType::F128)); break;
  }
  if (is_integer(t.dtype()) && dtype == t.dtype()) return c.draw.index(sizes, 1);  // indices stay valid
  return c.draw.tensor(sizes, dtype);
}

Scalar spoiled_number(const Scalar& s, uint32_t w) {
  // 2^62 is exact in every dtype that holds it.
  const Scalar all[] = {c128(1, 1), 0.5, 0, std::nan(""), -1, int64_t{1} << 62, true, INFINITY, 2, s};
  return all[w % std::size(all)];
}

void spoil_value(Case& c, const Param& p, Value& v, uint32_t w, bool anything) {
  static constexpr double kDoubles[] = {NAN, INFINITY, -1, 2};  // with 0, what is constant divides 0 by 0
  if (Tensor* t = std::get_if<Tensor>(&v)) {
    if (p.optional && w % 4 == 0) v = Value();
    else *t = spoiled_tensor(c, *t, anything);
    if (p.optional && !is_none(v) && !t->defined()) v = Value();
  } else if (Tensors* ts = std::get_if<Tensors>(&v)) {
    if (w % 4 == 0) ts->clear();
    else if (w % 4 == 1 && !ts->empty()) ts->push_back(spoiled_tensor(c, ts->front(), anything));
    else if (!ts->empty()) ts->back() = spoiled_tensor(c, ts->back(), anything);
  } else if (int64_t* n = std::get_if<int64_t>(&v)) {
    *n = spoiled_integer(c, p, *n, w);
  } else if (Dims* dims = std::get_if<Dims>(&v)) {
    spoil_integers(c, p, *dims, w);
  } else if (DType* d = std::get_if<DType>(&v)) {
    *d = DType(w % uint32_t(DType::F128));
  } else if (std::string* s = std::get_if<std::string>(&v)) {
    if (w & 1) s->clear();
    else *s += "?";
  } else if (bool* b = std::get_if<bool>(&v)) {
    *b = !*b;
  } else if (double* x = std::get_if<double>(&v)) {
    *x = kDoubles[w % 4];
  } else if (Scalar* n2 = std::get_if<Scalar>(&v)) {
    *n2 = spoiled_number(*n2, w);
  } else if (is_none(v) && p.kind == ParamKind::Tensor && !c.tensors().empty()) {
    v = c.draw.tensor(c.draw.shape(), c.at(c.tensors()[0]).dtype());
  } else if (is_none(v) && p.kind == ParamKind::Int) {
    v = at_an_end(w, p.role == ParamRole::Dim ? std::max(first_rank(c), 1) : some_size(c, w / 64));
  } else if (is_none(v) && p.kind == ParamKind::DType) {
    v = DType(w % uint32_t(DType::F128));
  }
}

template <class T> void set(const Tensor& t, int64_t at, T v) { static_cast<T*>(t.raw_data())[at] = v; }

/// A matrix without a factor: 0 or less on its diagonal, NaN, ones alone, zeros alone; the other triangle may
/// hold anything.
template <class T> void spoil_matrix(const Tensor& t, uint32_t w) {
  const int64_t n = t.size(-1), row = w / 8 % n, column = w / 64 % n,
                matrix = w / 1024 % (t.numel() / (n * n));
  const int64_t start = matrix * n * n;
  switch (w % 8) {
    case 0: return set<T>(t, start + row * n + row, T(0));
    case 1: return set<T>(t, start, T(0));
    case 2: return set<T>(t, start + row * n + row, T(-2));
    case 3: return set<T>(t, start + row * n + column, T(NAN));
    case 4:
      for (int64_t i = 0; i < n * n; ++i) set<T>(t, start + i, T(1));
      return;
    case 5:
      for (int64_t i = 0; i < n * n; ++i) set<T>(t, start + i, T(0));
      return;
    default: return set<T>(t, start + row * n + column, T(3));
  }
}

}  // namespace

void spoil(Case& c, bool anything) {
  c.find_tensors();
  if (c.args.empty()) return;
  const size_t i = c.draw.below(uint32_t(c.args.size()));
  const uint32_t w = c.draw.word();
  spoil_value(c, c.op.schema.params[i], c.args[i], w, anything);
  c.find_tensors();
}

void spoil_values(Case& c) {
  c.find_tensors();
  if (c.tensors().empty()) return;
  const uint32_t w = c.draw.word(), k = c.draw.below(uint32_t(c.tensors().size()));
  const Case::Slot slot = c.tensors()[k];
  if (c.at(slot).numel() == 0 || c.at(slot).device() != Device::CPU) return;
  const Tensor t = plain_copy(c.at(slot));
  const int64_t at = int64_t(w / 32) % t.numel();
  visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (std::is_same_v<T, bool>) set<T>(t, at, false);
    else if constexpr (std::is_integral_v<T>)
      set<T>(t, at, w % 4 == 0 ? T(0) : T(at_an_end(w / 4, some_size(c, w / 64))));
    else if constexpr (is_complex_type<T> || std::is_floating_point_v<T>) {
      const bool matrix = c.op.shape == ShapeClass::Linalg || c.op.has(kSymmetricInput);
      if (matrix && t.rank() >= 2 && t.size(-1) == t.size(-2)) spoil_matrix<T>(t, w);
      else set<T>(t, at, T(0));
    }
  });
  // A zero in another row than the first may be looked for by other code.
  const Tensor as_it_lay = strided_copy(c.at(slot));
  const bool keeps_strides = w >> 31 && !overlaps_itself(as_it_lay);
  entry(c.args, slot) = keeps_strides ? copy_(as_it_lay, t) : t;
}

}  // namespace lamella::verify
