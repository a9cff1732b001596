// Laws of memory: strides do not matter, arguments are left alone, broadcasting is expanding, views share.
#include <cmath>
#include <cstring>

#include "lamella/ops/functions/copy.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/oracle.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

bool specified(const Op& op) { return takes_tensors(op) && !op.has(kUnspecified); }

Values contiguous_args(const Case& c) {
  Tensors xs;
  for (const Case::Slot& s : c.tensors()) xs.push_back(plain_copy(c.at(s)));
  return c.with(c.tensors(), xs);
}

/// Both within the oracle's bound: for sums, which may be ordered by strides.
bool both_within(const Case& c, const Tensors& a, const Tensors& b) {
  Oracle oracle(c, c.inexact());
  const DType coarsest = coarsest_dtype(a);
  const Bounds bounds = oracle.tolerances(oracle.value_bounds(unit_roundoff(coarsest)), coarsest);
  size_t at = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    if (!is_inexact(a[k].dtype())) {
      if (!differs(a[k], b[k]).empty()) return false;
      continue;
    }
    const Tensor bound =
        plus(unflatten(bounds, at, oracle.values()[k], 1), oracle.lost_to_underflow(a[k].dtype(), {}));
    if (!outside(a[k], oracle.values()[k], bound).empty() ||
        !outside(b[k], oracle.values()[k], bound).empty())
      return false;
  }
  return true;
}

/// Integers summed or multiplied in floating point are exact, in any order, only below 1/u.
bool beyond_exact(const Tensors& ys) {
  for (const Tensor& y : ys) {
    if (!is_inexact(y.dtype())) continue;
    for (const f128 v : flatten({y}))
      if (std::abs(double(v)) * unit_roundoff(y.dtype()) >= 1) return true;
  }
  return false;
}

/// Terms that may cancel to a small, inexact sum.
bool has_large_integers(const Case& c) {
  for (const Case::Slot& s : c.tensors())
    for (const double v : c.at(s).to_vector())
      if (std::abs(v) >= 0x1p16) return true;
  return false;
}

Verdict compare_with(Case& c, const Values& other) {
  const Tensors got = call_boxed(c.op, c.args), want = call_boxed(c.op, other);
  const Finding d = differs(got, want);
  if (d.empty()) return Verdict::pass();
  const bool may_round = c.op.shape != ShapeClass::Broadcast && c.op.shape != ShapeClass::View;
  const bool rounds = may_round && got.size() == want.size() && is_inexact(want[0].dtype());
  if (rounds && (!finite(got) || !finite(want))) return Verdict::discard();  // overflow in one order only
  // Of integers too: (a + 0i)(b + 0i) has a zero whose sign depends on the order, long products are rounded.
  if (rounds && both_within(c, got, want)) return Verdict::pass();
  if (rounds && c.inexact().empty() && (beyond_exact(want) || has_large_integers(c)))
    return Verdict::discard();
  Tensors others;
  for (const Value& v : other) {
    if (const Tensor* t = std::get_if<Tensor>(&v); t && t->defined()) others.push_back(*t);
    if (const Tensors* ts = std::get_if<Tensors>(&v)) others.insert(others.end(), ts->begin(), ts->end());
  }
  std::vector<std::string> names;
  for (size_t k = 0; k < others.size(); ++k) names.push_back("b" + std::to_string(k));
  return Verdict::fail(
      d, cpp_got_want(c, cpp_tensors("b", others), cpp_call(c.op, c.args), cpp_call(c.op, other, names)));
}

Verdict layout_is_invisible(Case& c) {
  if (draws_anew(c)) return Verdict::discard();
  bool strided = false;
  for (const Case::Slot& s : c.tensors()) strided |= !c.at(s).is_contiguous();
  if (!strided) return Verdict::discard();
  return compare_with(c, contiguous_args(c));
}

/// Everything about a tensor that a functional operator may not change: header, version, all bytes of the
/// storage.
struct StoredBytes {
  Tensor tensor;
  Dims sizes, strides;
  int64_t offset;
  uint32_t version;
  std::string bytes;

  explicit StoredBytes(const Tensor& t)
      : tensor(t),
        sizes(t.sizes()),
        strides(t.strides()),
        offset(t.impl()->offset),
        version(t.impl()->storage->version.load()),
        bytes(static_cast<const char*>(t.impl()->storage->data), t.impl()->storage->nbytes) {}
  std::string changed() const {
    const TensorImpl& now = *tensor.impl();
    if (!std::ranges::equal(tensor.sizes(), Ints(sizes))) return "sizes";
    if (!std::ranges::equal(tensor.strides(), Ints(strides))) return "strides";
    if (now.offset != offset) return "offset";
    if (now.storage->version.load() != version) return "version";
    if (bytes.size() != now.storage->nbytes || std::memcmp(bytes.data(), now.storage->data, bytes.size()))
      return "memory";
    return "";
  }
};

Verdict arguments_unchanged(Case& c) {
  std::vector<StoredBytes> before;
  for (const Case::Slot& s : c.tensors()) before.emplace_back(c.at(s));
  const std::string program = cpp_declarations(c.args);  // as they are before
  call_boxed(c.op, c.args);
  for (size_t k = 0; k < before.size(); ++k)
    if (const std::string what = before[k].changed(); !what.empty())
      return Verdict::fail(
          format("the call changed the {} of argument {}", what, k),
          program + "  " + cpp_call(c.op, c.args) + ";\n" + format("  std::cout << str(a{});\n", k));
  return Verdict::pass();
}

bool broadcasts(const Op& op) { return op.shape == ShapeClass::Broadcast && op.tensor_params.size() > 1; }

/// A dense tensor of `sizes` that repeats the elements of `t`.
Tensor expanded(const Tensor& t, Ints sizes) {
  Dims strides(int(sizes.size()), 0);
  const int shift = int(sizes.size()) - t.rank();
  for (int d = 0; d < t.rank(); ++d)
    if (t.size(d) == sizes[size_t(d + shift)]) strides[d + shift] = t.stride(d);
  return plain_copy(make_view_unchecked(t, sizes, strides, t.impl()->offset));
}

Verdict broadcast_is_expand(Case& c) {
  const Tensor y = call_boxed(c.op, c.args)[0];
  Tensors xs;
  bool changes = false;
  const DType dtype = c.at(c.tensors()[0]).dtype();
  bool same_dtype = true;
  for (const Case::Slot& s : c.tensors()) {
    const Tensor x = c.at(s);
    xs.push_back(expanded(x, y.sizes()));
    changes |= !std::ranges::equal(x.sizes(), y.sizes());
    same_dtype &= x.dtype() == dtype;
  }
  if (!changes || (!same_dtype && c.tensors().size() > 1 && y.rank() > 0)) return Verdict::discard();
  return compare_with(c, c.with(c.tensors(), xs));
}

/// Element i of `t` is first + i, in its dtype.
void fill_iota(const Tensor& t, int64_t first) {
  int64_t i = first;
  visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    T* const p = static_cast<T*>(t.raw_data());
    each_element(t, [&](int64_t offset) {
      if constexpr (is_complex_type<T>) p[offset] = T(typename T::value_type(i), typename T::value_type(-i));
      else if constexpr (is_half_type<T>) p[offset] = T(float(i));
      else p[offset] = T(i);
      ++i;
    });
  });
}

/// What the elements of a result that shares memory with `x` must become when x is refilled.
Verdict views_share(Case& c) {
  const Case::Slot first{c.op.tensor_params[0], 0};
  const Tensor x = c.at(first);
  if (is_bool(x.dtype()) || overlaps_itself(x)) return Verdict::discard();
  const Tensor y = call_boxed(c.op, c.args)[0];
  const std::string head =
      cpp_declarations(c.args) + "  const Tensor y = " + cpp_call(c.op, c.args) + "[0];\n";
  if (!y.shares_storage(x))
    return Verdict::fail("the result of a view operator has a storage of its own",
                         head + "  std::cout << y.shares_storage(a0);  // expected 1\n");
  fill_iota(x, 1);
  const Tensor fresh = call_boxed(c.op, c.with({first}, {plain_copy(x)}))[0];
  if (const Finding d = differs(y, fresh); !d.empty())
    return Verdict::fail(
        "after a write to x: " + d,
        head + "  fill_(a0, 7);\n  std::cout << str(y);  // expected the call on the new a0\n");
  if (overlaps_itself(y)) return Verdict::pass();
  const Tensor untouched = plain_copy(x);
  fill_iota(y, 60);
  const Tensor again = call_boxed(c.op, c.args)[0];
  if (const Finding d = differs(again, y); !d.empty())
    return Verdict::fail(
        "after a write to the view: " + d,
        head + "  fill_(y, 7);\n  std::cout << str(" + cpp_call(c.op, c.args) + "[0]);  // expected 7\n");
  // Elements outside the view are as they were: as many changed as the view has.
  const Reals was = flatten({untouched}), is = flatten({x});
  int64_t changed = 0;
  const int64_t parts = is_complex(x.dtype()) ? 2 : 1, view_parts = is_complex(y.dtype()) ? 2 : 1;
  for (size_t i = 0; i < was.size(); ++i) changed += was[i] != is[i];
  if (is_inexact(x.dtype()) && changed > y.numel() * view_parts)
    return Verdict::fail(
        format("a write to a view of {} elements changed {} of x", y.numel(), changed / parts),
        head + "  fill_(y, 7);\n  std::cout << str(a0);\n");
  return Verdict::pass();
}

}  // namespace

void add_layout_laws(std::vector<Law>& laws) {
  laws.push_back({3,
                  "layout_is_invisible",
                  "layout",
                  "Strides, offsets and repeated elements of arguments do not change results.",
                  {.nonfinite = true},
                  false,
                  specified,
                  layout_is_invisible});
  laws.push_back(
      {5,
       "arguments_unchanged",
       "layout",
       "A functional operator changes neither headers, versions nor any byte of its arguments' storages.",
       {.nonfinite = true},
       false,
       takes_tensors,
       arguments_unchanged});
  laws.push_back(
      {12,
       "broadcast_is_expand",
       "shape",
       "Operators on broadcast operands equal, bit by bit, operators on operands expanded in memory.",
       {.mixed = false, .nonfinite = true},  // an expanded scalar promotes as a tensor
       false,
       broadcasts,
       broadcast_is_expand});
  laws.push_back(
      {19,
       "views_share",
       "layout",
       "A view shares its base's storage: writes to either are seen in the other, and nowhere else.",
       {.dtypes = kAllTypes & ~kBoolType, .exact = true},
       false,
       is_view,
       views_share});
}

}  // namespace lamella::verify
