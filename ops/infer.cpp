// Shape functions of the classes.
#include "lamella/ops/infer.h"

#include <algorithm>

#include "lamella/ops/number.h"

namespace lamella {

namespace {
/// An element of the number's own kind, which holds it whatever it is.
Tensor on_cpu(const Scalar& value) {
  Tensor t = make_tensor({}, value.kind());
  void* const at = t.raw_data();
  switch (value.kind()) {
    case DType::F64: *static_cast<double*>(at) = value.to<double>(); break;
    case DType::I64: *static_cast<int64_t*>(at) = value.to<int64_t>(); break;
    case DType::U64: *static_cast<uint64_t*>(at) = value.to<uint64_t>(); break;
    case DType::Bool: *static_cast<bool*>(at) = value.to<bool>(); break;
    default: *static_cast<c128*>(at) = value.to<c128>();
  }
  return t;
}
}  // namespace

Tensor number_like(const Scalar& value, const Tensor& like) {
  LAMELLA_CHECK(like.defined(), Undefined,
                "got an undefined tensor beside the number {}; expected a defined one", value.str());
  const bool here = like.device() == Device::CPU;
  Tensor t = here ? on_cpu(value) : scalar_tensor(value, value.kind(), like.device());
  t.impl()->number = true;
  return t;
}

namespace ops {

namespace {
std::string name_of(const Tensor& t, const Frame& frame) {
  for (size_t p = 0; p < frame.op->schema.params.size(); ++p)
    if (frame.args[p] == &t) return arg_name(frame, int(p));
  return "";
}
std::string types(std::span<const Tensor* const> tensors, const Frame& frame) {
  std::string out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string name = name_of(*tensors[i], frame);
    if (!name.empty()) out += (out.empty() ? "" : ", ") + name + ": ";
    out += type_str(*tensors[i]);
  }
  return out;
}

/// Tensor arguments that take part: all Tensor parameters that are not None.
struct Operands {
  const Tensor* at[kMaxArity];
  size_t n = 0;
  explicit Operands(const Frame& f) {
    LAMELLA_CHECK(f.op->simple, Schema,
                  "{}: its shape function broadcasts tensors, but it is {}; expected no list", op_name(f),
                  str(f.op->schema));
    for (const uint8_t i : f.op->tensor_params)
      if (f.args[i] && f.tensor(i).defined()) at[n++] = &f.tensor(i);
  }
  operator std::span<const Tensor* const>() const { return {at, n}; }
};
}  // namespace

Dims broadcast(const Frame& frame, std::span<const Tensor* const> tensors) {
  int rank = 0;
  for (const Tensor* t : tensors) rank = std::max(rank, t->rank());
  Dims sizes(rank, 1);
  for (const Tensor* t : tensors) {
    const Ints of = t->sizes();
    const int shift = rank - t->rank();
    for (int d = 0; d < t->rank(); ++d) {
      const int64_t s = of[size_t(d)];
      int64_t& out = sizes[d + shift];
      LAMELLA_CHECK(s == out || s == 1 || out == 1, Broadcast,
                    "{}: sizes do not broadcast at dim {}: got {}; expected equal sizes or 1", op_name(frame),
                    d + shift - rank, Argument{name_of(*tensors[0], frame), types(tensors, frame)});
      if (s != 1) out = s;
    }
  }
  return sizes;
}

int64_t wrap_dim_of_rank(const Frame& frame, std::string_view arg, int64_t dim, int rank) {
  const int r = std::max(rank, 1);
  LAMELLA_CHECK(-r <= dim && dim < r, DimOutOfRange,
                "{}: {} = {} is out of range for rank {}; expected {} <= {} < {}", op_name(frame), arg, dim,
                rank, -r, arg, r);
  return dim < 0 ? dim + r : dim;
}

int64_t wrap_dim(const Frame& frame, std::string_view arg, int64_t dim, const Tensor& x) {
  const int r = std::max(x.rank(), 1);
  LAMELLA_CHECK(-r <= dim && dim < r, DimOutOfRange,
                "{}: {} = {} is out of range for {}: {}; expected {} <= {} < {}", op_name(frame), arg, dim,
                arg_name(frame, frame.op->tensor_params[0]), x, -r, arg, r);
  return dim < 0 ? dim + r : dim;
}

Dims wrap_dims(const Frame& frame, std::string_view arg, std::optional<Ints> dims, const Tensor& x,
               bool empty_is_all) {
  Dims out;
  if (!dims || (dims->empty() && empty_is_all)) {
    for (int d = 0; d < x.rank(); ++d) out.push_back(d);
    return out;
  }
  for (const int64_t d : *dims) {
    const int64_t w = wrap_dim(frame, arg, d, x);
    LAMELLA_CHECK(std::find(out.begin(), out.end(), w) == out.end(), Shape,
                  "{}: {} = {} names dim {} twice; expected distinct dims", op_name(frame), arg, Dims(*dims),
                  w);
    out.push_back(w);
  }
  if (x.rank() == 0) return {};  // what rank 0 accepts as dim 0 is no dim to work on
  std::sort(out.begin(), out.end());
  return out;
}

DType default_float(DType d) { return is_inexact(d) ? d : dispatch_state().default_dtype; }

namespace {
// NOTE: [promotion] Three groups: tensors with dims, rank-0 tensors, numbers. A lower group is heard only
// when its category is higher; a number then counts as the default dtype of its category
// (docs/decisions/0009).
int group_of(const TensorImpl& t) { return t.number ? 2 : t.rank == 0 ? 1 : 0; }

DType counted_as(const TensorImpl& t) {
  if (t.number && is_floating(t.dtype)) return dispatch_state().default_dtype;
  if (t.number && is_complex(t.dtype)) return to_complex(dispatch_state().default_dtype);
  return t.dtype;
}

/// The dtype of groups down to one of `lower`, above which they have `out`.
DType with_lower(DType out, DType lower) {
  if (category(lower) <= category(out)) return out;
  return is_complex(lower) && is_floating(out) ? to_complex(out) : lower;
}

DType type_of_two(const TensorImpl& a, const TensorImpl& b) {
  if (a.rank && b.rank && !a.number && !b.number) return promote(a.dtype, b.dtype);
  const int of_a = group_of(a), of_b = group_of(b);
  const DType x = counted_as(a), y = counted_as(b);
  if (of_a == of_b) return promote(x, y);
  return of_a < of_b ? with_lower(x, y) : with_lower(y, x);
}
}  // namespace

DType result_type(std::span<const Tensor* const> tensors) {
  if (tensors.size() == 2) return type_of_two(*tensors[0]->impl(), *tensors[1]->impl());  // nearly always
  bool seen[3] = {};
  DType types[3] = {};
  for (const Tensor* t : tensors) {
    const int group = group_of(*t->impl());
    const DType d = counted_as(*t->impl());
    types[group] = seen[group] ? promote(types[group], d) : d;
    seen[group] = true;
  }
  DType out = DType::Bool;
  bool any = false;
  for (int g = 0; g < 3; ++g) {
    if (!seen[g]) continue;
    out = any ? with_lower(out, types[g]) : types[g];
    any = true;
  }
  return out;
}

void infer_broadcast(const Frame& f, Inferred& out) {
  const Operands in(f);
  out.compute = result_type(in);
  out.outs.push_back({broadcast(f, in), out.compute});
}

void infer_float(const Frame& f, Inferred& out) {
  const Operands in(f);
  out.compute = default_float(result_type(in));
  out.outs.push_back({broadcast(f, in), out.compute});
}

void infer_real_float(const Frame& f, Inferred& out) {
  infer_float(f, out);
  for (const uint8_t i : f.op->tensor_params)
    LAMELLA_CHECK(!f.tensor(i).defined() || !is_complex(f.tensor(i).dtype()), DType,
                  "{}: {} is {}, expected a real number's dtype", op_name(f), arg_name(f, i), f.tensor(i));
}

void infer_compare(const Frame& f, Inferred& out) {
  const Operands in(f);
  out.compute = result_type(in);
  out.outs.push_back({broadcast(f, in), DType::Bool});
}

void infer_same(const Frame& f, Inferred& out) {
  LAMELLA_CHECK(f.op->simple && !f.op->tensor_params.empty(), Schema,
                "{}: its results are like its first tensor, but it is {}; expected a tensor, and no list",
                op_name(f), str(f.op->schema));
  const Tensor& x = f.tensor(f.op->tensor_params[0]);
  out.compute = x.dtype();
  out.outs.push_back({x.sizes(), x.dtype()});
}

int param(const Frame& frame, std::string_view name) {
  const int i = frame.op->schema.find(name);
  LAMELLA_ASSERT(i >= 0);
  return i;
}

void infer_reduce(const Frame& f, Inferred& out, DType result, DType compute) {
  const Tensor& x = f.tensor(0);
  const int at = param(f, "dim");
  std::optional<Ints> dims;
  Ints single;
  if (!f.none(at)) {
    const bool one = f.op->schema.params[size_t(at)].kind == ParamKind::Int;
    single = one ? Ints(&f.arg<int64_t>(at), 1) : f.ints(at);
    dims = single;
  }
  out.ints = wrap_dims(f, "dim", dims, x);
  out.compute = compute;
  const int keep_at = f.op->schema.find("keepdim");
  const bool keep = keep_at >= 0 && f.arg<bool>(keep_at);
  Dims sizes;
  for (int d = 0; d < x.rank(); ++d) {
    const bool reduced = std::find(out.ints.begin(), out.ints.end(), d) != out.ints.end();
    if (!reduced) sizes.push_back(x.size(d));
    else if (keep) sizes.push_back(1);
  }
  out.outs.push_back({sizes, result});
}

}  // namespace ops
}  // namespace lamella
