// The predicates that constraints are made of.
#include "lamella/verify/oracle/constraints_call.h"

#include <algorithm>
#include <quadmath.h>

#include "lamella/core/visit.h"
#include "lamella/dispatch/state.h"
#include "lamella/verify/case/case.h"

namespace lamella::verify {

bool Questioned::given(std::string_view name) const {
  const Value& v = value(name);
  if (const Tensor* t = std::get_if<Tensor>(&v)) return t->defined();
  return !is_none(v);
}

Tensor Questioned::tensor(std::string_view name) const {
  return given(name) ? std::get<Tensor>(value(name)) : Tensor();
}

int kind_of(DType d) { return is_bool(d) ? 0 : is_integer(d) ? 1 : is_floating(d) ? 2 : 3; }

bool is_of(DType d, Kinds kinds) {
  switch (kinds) {
    case Kinds::NotBool: return kind_of(d) != 0;
    case Kinds::Real: return kind_of(d) != 3;
    case Kinds::RealNotBool: return kind_of(d) == 1 || kind_of(d) == 2;
    case Kinds::Floating: return kind_of(d) == 2;
    case Kinds::Inexact: return kind_of(d) >= 2;
    case Kinds::Complex: return kind_of(d) == 3;
    case Kinds::Factorable: return kind_of(d) >= 2 && d != DType::F16 && d != DType::BF16;
    case Kinds::U64: return d == DType::U64;
    default: return kind_of(d) == 0;
  }
}

std::optional<int> place(int64_t dim, int rank) {
  const int64_t places = std::max(rank, 1);
  if (dim >= 0 && dim < places) return int(dim);
  if (dim < 0 && dim >= -places) return int(dim + places);
  return std::nullopt;
}

Constraint of_kind(Name tensor, Kinds kinds) {
  return [=](Questioned& q) {
    const Tensor t = q.tensor(tensor);
    if (t.defined() && !is_of(t.dtype(), kinds)) q.object({ErrorCode::DType}, {tensor});
  };
}

Constraint result_of_kind(Names tensors, Kinds kinds) {
  return [=](Questioned& q) {
    int highest = 0;
    for (const Name name : tensors)
      if (const Tensor t = q.tensor(name); t.defined()) highest = std::max(highest, kind_of(t.dtype()));
    const DType like[] = {DType::Bool, DType::I64, DType::F64, DType::C128};
    if (!is_of(like[highest], kinds)) q.object({ErrorCode::DType}, tensors);
  };
}

Constraint same_dtype(Name a, Name b) {
  return [=](Questioned& q) {
    if (q.tensor(a).dtype() != q.tensor(b).dtype()) q.object({ErrorCode::DType}, {a, b});
  };
}

Constraint dtype_of_kind(Name dtype, Name tensor, Kinds kinds) {
  return [=](Questioned& q) {
    if (q.given(dtype)) {
      if (!is_of(std::get<DType>(q.value(dtype)), kinds)) q.object({ErrorCode::DType}, {dtype});
    } else if (!tensor.empty() && !is_of(q.tensor(tensor).dtype(), kinds)) {
      q.object({ErrorCode::DType}, {tensor});
    }
  };
}

Constraint broadcasting(Names tensors) {
  return [=](Questioned& q) {
    for (size_t i = 0; i < tensors.size(); ++i)
      for (size_t k = 0; k < i; ++k) {
        const Tensor a = q.tensor(tensors[i]), b = q.tensor(tensors[k]);
        if (!a.defined() || !b.defined()) continue;
        for (int d = 1; d <= std::min(a.rank(), b.rank()); ++d)
          if (a.size(-d) != b.size(-d) && a.size(-d) != 1 && b.size(-d) != 1)
            return q.object({ErrorCode::Broadcast}, tensors);
      }
  };
}

Constraint of_rank(Name tensor, int least, int most) {
  return [=](Questioned& q) {
    const int rank = q.tensor(tensor).rank();
    if (rank < least || rank > most) q.object({ErrorCode::Shape}, {tensor});
  };
}

Constraint one_dim(Name dim, Name tensor) {
  return [=](Questioned& q) {
    if (q.given(dim) && !place(q.integer(dim), q.tensor(tensor).rank()))
      q.object({ErrorCode::DimOutOfRange}, {dim});
  };
}

Constraint new_dim(Name dim, Name tensor) {
  return [=](Questioned& q) {
    if (!place(q.integer(dim), q.tensor(tensor).rank() + 1)) q.object({ErrorCode::DimOutOfRange}, {dim});
  };
}

Constraint distinct_dims(Name dims, Name tensor) {
  return [=](Questioned& q) {
    if (!q.given(dims)) return;
    std::vector<int> seen;
    for (const int64_t d : q.integers(dims)) {
      const std::optional<int> at = place(d, q.tensor(tensor).rank());
      if (!at) q.object({ErrorCode::DimOutOfRange}, {dims});
      else if (std::ranges::find(seen, *at) != seen.end()) q.object({ErrorCode::Shape}, {dims});
      if (at) seen.push_back(*at);
    }
  };
}

Constraint has_dims(Name tensor, Name dim) {
  return [=](Questioned& q) {
    if (q.tensor(tensor).rank() == 0) q.object({ErrorCode::DimOutOfRange, ErrorCode::Shape}, {dim, tensor});
  };
}

Constraint sizes(Name size) {
  return [=](Questioned& q) {
    long double elements = 1;
    bool negative = false;
    for (const int64_t s : q.integers(size)) {
      negative |= s < 0;
      elements *= static_cast<long double>(std::max<int64_t>(s, 1));
    }
    if (negative) q.object({ErrorCode::Shape}, {size});
    if (elements > 0x1p58L) q.object({ErrorCode::Overflow}, {size});
  };
}

Constraint at_least(Name integer, int64_t least, ErrorCode code) {
  return [=](Questioned& q) {
    if (q.integer(integer) < least) q.object({code}, {integer});
    else if (q.integer(integer) > int64_t{1} << 58) q.object({ErrorCode::Overflow}, {integer, "size"});
  };
}

Constraint equal_sizes(Name a, int dim_a, Name b, int dim_b) {
  return [=](Questioned& q) {
    const Tensor x = q.tensor(a), y = q.tensor(b);
    const auto inside = [](const Tensor& t, int d) { return d < 0 ? -d <= t.rank() : d < t.rank(); };
    if (inside(x, dim_a) && inside(y, dim_b) && x.size(dim_a) != y.size(dim_b))
      q.object({ErrorCode::Shape}, {a, b});
  };
}

namespace {
/// torch.full: "value cannot be converted to type ... without overflow".
bool is_beyond(f128 v, bool whole, DType to) {
  if (is_bool(to)) return false;
  if (is_integer(to)) {
    const int bits = int(8 * itemsize(to)) - is_signed_integer(to);
    const f128 end = ldexpq(1, bits);  // for an unsigned dtype -1 is its largest number, and so on
    if (is_signed_integer(to)) return !(v >= -end && v <= end - 1);
    return !(v <= end - 1 && (whole ? v > -end : v > -1));
  }
  if (v != v || isinfq(v)) return false;
  constexpr std::pair<DType, double> kLargest[] = {{DType::F16, 65504},
                                                   {DType::BF16, 0x1.fep127},
                                                   {DType::F32, 0x1.fffffep127},
                                                   {DType::C64, 0x1.fffffep127}};
  for (const auto& [dtype, largest] : kLargest)
    if (dtype == to) return fabsq(v) > largest;
  return false;
}
}  // namespace

Constraint number_fits(Name number, Name tensor, Name dtype) {
  return [=](Questioned& q) {
    const Scalar& n = q.scalar(number);
    const DType usual = dispatch_state().default_dtype;  // without both, by the kind of the number
    DType to = n.is_integral() ? n.kind() : is_complex(n.kind()) ? to_complex(usual) : usual;
    if (!tensor.empty()) to = q.tensor(tensor).dtype();
    if (!dtype.empty() && q.given(dtype)) to = std::get<DType>(q.value(dtype));
    if (is_complex(n.kind()) && !is_complex(to)) return q.object({ErrorCode::DType}, {number});
    const f128 re = n.kind() == DType::U64 ? f128(n.to<uint64_t>())
                    : n.is_integral()      ? f128(n.to_int())
                                           : f128(n.to_double());
    if (is_beyond(re, n.is_integral(), to) || is_beyond(n.to_complex().imag(), false, to))
      q.object({ErrorCode::Overflow}, {number});
  };
}

/// torch.add: a fraction or a complex number multiplies no whole numbers, True only bools.
Constraint multiplier(Name alpha, Names tensors) {
  return [=](Questioned& q) {
    int highest = 0;
    for (const Name name : tensors) highest = std::max(highest, kind_of(q.tensor(name).dtype()));
    const int kind = kind_of(q.scalar(alpha).kind());
    if (kind > std::max(highest, 1)) q.object({ErrorCode::DType}, {alpha});
    else if (kind == 0 && highest > 0) q.open("PyTorch refuses True for numbers, which is not documented");
  };
}

std::vector<int64_t> offsets_of(Ints sizes, Ints strides, int64_t offset) {
  std::vector<int64_t> out{offset};
  for (size_t d = 0; d < sizes.size(); ++d) {
    std::vector<int64_t> next;
    next.reserve(out.size() * size_t(sizes[d]));
    for (const int64_t at : out)
      for (int64_t i = 0; i < sizes[d]; ++i) next.push_back(at + i * strides[d]);
    out = std::move(next);
  }
  return out;
}

std::vector<int64_t> integers_of(const Tensor& t) {
  std::vector<int64_t> out;
  visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (std::is_integral_v<T>)
      each_element(t, [&](int64_t at) { out.push_back(int64_t(static_cast<const T*>(t.raw_data())[at])); });
  });
  return out;
}

}  // namespace lamella::verify
