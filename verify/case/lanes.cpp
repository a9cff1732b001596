// Batches drawn from examples, lanes cut from them, and the comparison of two computations of one thing.
#include "lamella/verify/case/lanes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/coverage.h"
#include "lamella/verify/case/fault.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {
/// Strides for `sizes` stored with the dims of `order` from the slowest to the fastest.
Dims strides_in_order(Ints sizes, const Dims& order) {
  Dims strides(int(sizes.size()));
  int64_t step = 1;
  for (int k = order.size() - 1; k >= 0; --k) {
    strides[int(order[k])] = step;
    step *= std::max<int64_t>(sizes[size_t(order[k])], 1);
  }
  return strides;
}

/// Lane `lane` of an element: keeps signs, zeros, bounds of indices and order of magnitude.
template <class T> T varied(T x, int64_t lane, bool exact) {
  if constexpr (std::is_same_v<T, bool>) return bool(x ^ (lane & 1));
  else if constexpr (std::is_integral_v<T>) {
    for (int64_t k = 0; k < lane % 3; ++k) x = T(x / 2 + x % 2);
    return x;
  } else {
    static constexpr float kFactors[] = {1, 1.25f, 0.75f, 1.5f, 0.875f}, kExact[] = {1, 2, 3, 2, 1};
    const float factor = (exact ? kExact : kFactors)[lane % 5];
    if constexpr (is_complex_type<T>) return T(x.real() * factor, x.imag() * factor);
    else return T(x * factor);
  }
}

struct Variation {
  int64_t lane = 0;
  bool rotate = false, exact = false;
};
/// Writes a variation of `example` to the elements of `out` (its sizes, any strides).
void write_variation(const Tensor& out, const Tensor& example, Variation v) {
  visit_dtype(example.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    const int64_t n = example.numel();
    const Tensor dense = example.is_contiguous() ? example : plain_copy(example);
    const T* in = static_cast<const T*>(dense.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    int64_t at = v.rotate && n > 0 ? v.lane % n : 0;
    each_element(out, [&](int64_t offset) {
      to[offset] = varied(in[at], v.lane, v.exact);
      if (++at == n) at = 0;
    });
  });
}

template <class T> bool is_structured(const T* at, Ints strides, int64_t n) {
  bool hermitian = true, lower = true, upper = true;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) {
      const T below = at[i * strides[0] + j * strides[1]];
      T above = at[j * strides[0] + i * strides[1]];
      lower &= above == T(0);
      upper &= below == T(0);
      if constexpr (is_complex_type<T>) above = T(above.real(), -above.imag());
      hermitian &= below == above;
    }
  return hermitian || lower || upper;
}

Tensor draw_stack(Draw& d, const Tensor& example, int64_t size, int dim, bool rotate, bool dense) {
  Dims sizes(example.sizes());
  sizes.insert(dim, size);
  Dims order;
  const uint32_t memory = dense ? 1 : d.below(4);  // as it is, mapped dim slowest, reversed, one lane for all
  for (int k = 0; k < sizes.size(); ++k) order.push_back(memory == 2 ? sizes.size() - 1 - k : k);
  if (dense) {  // the example's dims as they lie, so that its lanes lie together too
    const auto behind = [&](int64_t k) {
      return k == dim ? INT64_MAX : example.stride(int(k < dim ? k : k - 1));
    };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return behind(a) > behind(b); });
  } else if (memory == 1) {
    order.erase(dim);
    order.insert(0, dim);
  }
  Dims strides = strides_in_order(sizes, order);
  const bool repeated = memory == 3 && d.flag() && size > 0;
  const Tensor base =
      make_tensor(repeated ? Ints(example.sizes()) : Ints(sizes), example.dtype(), example.device());
  if (repeated) {
    strides = contiguous_strides(example.sizes());
    strides.insert(dim, 0);
  }
  const Tensor out = make_view_unchecked(base, sizes, strides, base.impl()->offset);
  for (int64_t i = 0; i < (repeated ? 1 : size); ++i)
    write_variation(lane(out, dim, i), example, {i, rotate, d.options().exact});
  return out;
}
}  // namespace

bool structured(const Tensor& t) {
  const int r = t.rank();
  if (r < 2 || t.size(-1) != t.size(-2) || t.numel() == 0 || !is_inexact(t.dtype()) ||
      t.device() != Device::CPU)
    return false;
  return visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (std::is_integral_v<T>) return false;
    else {
      bool all = true;  // of the first two matrices: enough to tell a sample's kind
      const int64_t batch = r > 2 && t.size(0) > 1 ? t.stride(0) : 0;
      for (const int64_t start : {int64_t{0}, batch})
        all &= is_structured(static_cast<const T*>(t.raw_data()) + start, t.strides().subspan(size_t(r - 2)),
                             t.size(-1));
      return all;
    }
  });
}

bool may_rotate(const Case& c) {
  for (const Case::Slot& s : c.tensors())
    if (structured(c.at(s))) return false;
  return true;
}

bool Batch::any_mapped() const {
  return std::any_of(in_dims.begin(), in_dims.end(), [](int d) { return d != kNone; });
}

int64_t draw_lanes(Draw& d) {
  static constexpr int64_t kSizes[] = {2, 3, 1, 7, 0, 2, 3, 3};
  return kSizes[faulty(Fault::LanesConstant) ? 0 : d.below(8)];
}

Batch draw_batch(Draw& d, const Tensors& examples, const std::vector<bool>& mapped, int64_t size, bool rotate,
                 bool dense) {
  Batch b{size, {}, {}};
  for (size_t k = 0; k < examples.size(); ++k) {
    const int dim = mapped[k] ? int(d.below(uint32_t(examples[k].rank() + 1))) : kNone;
    b.in_dims.push_back(dim);
    b.xs.push_back(mapped[k] ? draw_stack(d, examples[k], size, dim, rotate, dense) : examples[k]);
  }
  return b;
}

Batch draw_batch(Case& c, const std::vector<Case::Slot>& slots, const std::vector<bool>& mapped,
                 int64_t size) {
  return draw_batch(c.draw, c.values(slots), mapped, size, may_rotate(c));
}

std::vector<bool> draw_mapped(Draw& d, size_t n) {
  std::vector<bool> out(n, true);
  for (size_t k = 0; k < n; ++k) out[k] = !d.one_in(3) || faulty(Fault::AlwaysAllMapped);
  if (n > 0 && std::none_of(out.begin(), out.end(), [](bool m) { return m; }))
    out[d.below(uint32_t(n))] = true;
  observe_mapped(out);
  return out;
}

Tensor lane(const Tensor& x, int dim, int64_t i) {
  Dims sizes(x.sizes()), strides(x.strides());
  const int64_t offset = x.impl()->offset + i * strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  return make_view_unchecked(x, sizes, strides, offset);
}

Tensors lane(const Batch& b, int64_t i) {
  Tensors out;
  for (size_t k = 0; k < b.xs.size(); ++k)
    out.push_back(b.in_dims[k] == kNone ? b.xs[k] : lane(b.xs[k], b.in_dims[k], i));
  return out;
}

Tensor in_layout_of_lane(const Tensor& x, int dim, const Tensor& example) {
  Dims strides(x.strides());
  strides.erase(dim);
  int64_t extent = 1;
  for (int d = 0; d < example.rank(); ++d) extent += std::max<int64_t>(example.size(d) - 1, 0) * strides[d];
  const Tensor base = make_tensor(Dims{extent}, example.dtype(), example.device());
  const Tensor out = make_view_unchecked(base, example.sizes(), strides, base.impl()->offset);
  write_variation(out, example, {0, false, true});
  return out;
}

Tensor moved(const Tensor& x, int from, int to) {
  Dims sizes(x.sizes()), strides(x.strides());
  const int64_t size = sizes[from], stride = strides[from];
  sizes.erase(from);
  strides.erase(from);
  sizes.insert(to, size);
  strides.insert(to, stride);
  return make_view_unchecked(x, sizes, strides, x.impl()->offset);
}

Tensor stacked(const Tensors& lanes, int dim) {
  const Tensor& first = lanes.front();
  Dims sizes(first.sizes());
  sizes.insert(dim, int64_t(lanes.size()));
  const Tensor out = make_tensor(sizes, first.dtype(), first.device());
  const size_t bytes = size_t(itemsize(first.dtype()));
  for (size_t i = 0; i < lanes.size(); ++i) {
    const Tensor to = lane(out, dim, int64_t(i));
    std::vector<int64_t> from(size_t(first.numel()), 0);
    each_element(lanes[i], [&, e = size_t{0}](int64_t offset) mutable { from[e++] = offset; });
    each_element(to, [&, e = size_t{0}](int64_t offset) mutable {
      std::memcpy(static_cast<char*>(to.raw_data()) + size_t(offset) * bytes,
                  static_cast<const char*>(lanes[i].raw_data()) + size_t(from[e++]) * bytes, bytes);
    });
  }
  return out;
}

Agreement agreement(const Op& op) {
  switch (op.shape) {
    case ShapeClass::Broadcast:
    case ShapeClass::View:
    case ShapeClass::Index:
    case ShapeClass::Factory:
    case ShapeClass::Dynamic:
    case ShapeClass::Random: return op.composite ? Agreement::Rounding : Agreement::Bitwise;
    default: return Agreement::Rounding;
  }
}

namespace {
std::vector<c128> values_of(const Tensor& t) {
  std::vector<c128> out;
  visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    const T* data = static_cast<const T*>(t.raw_data());
    each_element(t, [&](int64_t offset) {
      if constexpr (is_complex_type<T>)
        out.emplace_back(double(data[offset].real()), double(data[offset].imag()));
      else out.emplace_back(double(data[offset]), 0.0);
    });
  });
  return out;
}

bool close(double got, double want, double bound) {
  if (!std::isfinite(got) || !std::isfinite(want))
    return got == want || (std::isnan(got) && std::isnan(want));
  return std::abs(got - want) <= bound;
}
}  // namespace

double coarsest(const Tensors& ts) {
  double u = 0;
  for (const Tensor& t : ts)
    if (is_inexact(t.dtype())) u = std::max(u, unit_roundoff(t.dtype()));
  return u;
}

double largest_part(const Tensors& ts) {
  double largest = 0;
  for (const Tensor& t : ts)
    for (const c128& v : values_of(t))
      for (const double part : {v.real(), v.imag()})
        if (std::isfinite(part)) largest = std::max(largest, std::abs(part));
  return largest;
}

namespace {
/// Keeps the largest number that a call gives.
class SeesLargest final : public SeesResults {
 public:
  double largest = 0;

 private:
  void sees(const Tensor& t) override { largest = std::max(largest, largest_part({plain_copy(t)})); }
};
/// Notes whether a call gives a number near the end of its range.
class SeesTheEnd final : public SeesResults {
 public:
  bool near = false;

 private:
  void sees(const Tensor& t) override {
    near |= is_inexact(t.dtype()) && largest_part({plain_copy(t)}) > largest_number(t.dtype()) / 16;
  }
};
}  // namespace

Roundings on_the_way(const std::function<void()>& computation) {
  SeesLargest seen;
  const ScopedObserver scope(&seen);
  computation();
  return {.least = seen.largest};
}

bool nears_the_end(const std::function<void()>& computation) {
  SeesTheEnd seen;
  const ScopedObserver scope(&seen);
  computation();
  return seen.near;
}

Roundings of_sums(const Tensors& xs) {
  const double largest = std::max(1.0, largest_part(xs));
  return {64, 16 * largest * largest};
}

Finding disagrees(const Tensor& got, const Tensor& want, Agreement how, Roundings r) {
  Finding first = differs(got, want);
  if (first.empty() || how == Agreement::Bitwise || !is_inexact(want.dtype())) return first;
  if (got.dtype() != want.dtype() || !std::ranges::equal(got.sizes(), want.sizes())) return first;
  const std::vector<c128> g = values_of(got), w = values_of(want);
  const double scale = std::max(r.least, largest_part({want}));
  const double factor = faulty(Fault::RoundingTooWide) ? 1000 : 1;
  const double bound = factor * r.count * std::max(r.unit, unit_roundoff(want.dtype())) * scale;
  for (size_t i = 0; i < w.size(); ++i)
    if (!close(g[i].real(), w[i].real(), bound) || !close(g[i].imag(), w[i].imag(), bound))
      return first + format(" (more than {} roundings of the largest element, {})", r.count, scale);
  return "";
}

Finding disagrees(const Tensors& got, const Tensors& want, Agreement how, Roundings r) {
  if (got.size() != want.size()) return other_number(got, want);
  for (size_t k = 0; k < got.size(); ++k) {
    const Finding d = disagrees(got[k], want[k], how, r);
    if (!d.empty()) return format("result {}: ", k) + d;
  }
  return "";
}

Status status_of(const std::function<void()>& f) {
  try {
    f();
    return {};
  } catch (const Error& e) {
    return {true, faulty(Fault::CodesIgnored) ? ErrorCode::Internal : e.code(), e.what(), e.reason()};
  }
}

FailureKind failure_kind(const Status& s) {
  return s.raised ? FailureKind{What::Raised, std::string(name(s.code))} : FailureKind{What::Accepted};
}
Finding str(const Status& s) {
  return {failure_kind(s), s.raised ? format("error {}: {}", name(s.code), s.text) : "no error"};
}

InDims draw_out_dims(Draw& d, const Tensors& lane_results) {
  InDims out;
  for (const Tensor& y : lane_results) {
    const int rank = y.rank() + 1, dim = int(d.below(uint32_t(rank)));
    out.push_back(d.flag() ? dim - rank : dim);
    if (faulty(Fault::OutDimsNotNegative)) out.back() = dim;
  }
  return out.empty() ? InDims{0} : out;
}

InDims some_negative(Draw& d, const InDims& dims, const Tensors& xs) {
  InDims out = dims;
  for (size_t k = 0; k < out.size(); ++k)
    if (out[k] != kNone && d.flag()) out[k] -= xs[k].rank();
  return out;
}

std::string cpp_dims(const InDims& dims) {
  std::string out;
  for (const int d : dims)
    out += (out.empty() ? "" : ", ") + (d == kNone ? std::string("kNone") : std::to_string(d));
  return "InDims{" + out + "}";
}

std::string cpp_setting(const Case& c, const std::vector<Case::Slot>& slots, const Tensors& xs) {
  return cpp_declarations(c.with(slots, xs)) + "  const Function f0 = " + cpp_function(c, slots) +
         ";\n  const Tensors xs" + cpp_list(cpp_names(c, slots)) + ";\n";
}

namespace {
/// Whether each of `ys` has the dtype and the sizes of the lanes' results stacked along its out dim: then
/// only values may differ. False without lanes: nothing says that an empty result is right but its type.
bool has_types_of(const Tensors& ys, const InDims& out_dims, const std::vector<Tensors>& lanes) {
  if (lanes.empty() || ys.size() != lanes[0].size()) return false;
  for (size_t k = 0; k < ys.size(); ++k) {
    const Tensor& one = lanes[0][k];
    const int rank = one.rank() + 1, dim = out_dims[k] < 0 ? out_dims[k] + rank : out_dims[k];
    Dims sizes(one.sizes());
    if (dim < 0 || dim >= rank) return false;
    sizes.insert(dim, int64_t(lanes.size()));
    if (ys[k].dtype() != one.dtype() || !std::ranges::equal(ys[k].sizes(), Ints(sizes))) return false;
  }
  return true;
}
}  // namespace

Verdict::Kind lanes_as_defined(const Case& c, const std::vector<Case::Slot>& slots, const Batch& b,
                               const Tensors& ys, const InDims& out_dims, const std::vector<Tensors>& lanes) {
  if (!has_types_of(ys, out_dims, lanes)) return Verdict::Fail;
  Verdict::Kind all = Verdict::Pass;
  for (int64_t i = 0; i < b.size && all != Verdict::Fail; ++i) {
    const Choices none;
    Case one(c.op, none, {});
    one.args = c.with(slots, lane(b, i));
    one.find_tensors();
    Tensors got;
    for (size_t k = 0; k < ys.size(); ++k)
      got.push_back(lane(ys[k], out_dims[k] < 0 ? out_dims[k] + ys[k].rank() : out_dims[k], i));
    if (const Verdict::Kind k = within_reference(one, got).kind; k != Verdict::Pass) all = k;
  }
  return all;
}

}  // namespace lamella::verify
