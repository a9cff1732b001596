// Tensors made from a shape and a number.
#include <cmath>
#include <cstring>
#include <memory>

#include "lamella/core/device_hooks.h"
#include "lamella/ops/batch.h"
#include "lamella/ops/constant.h"
#include "lamella/ops/define.h"

namespace lamella::ops {

namespace {
DType dtype_or(const Frame& f, DType otherwise) { return f.arg_or<DType>(param(f, "dtype"), otherwise); }

DType dtype_of_number(const Scalar& value) {
  const DType floating = dispatch_state().default_dtype;
  if (value.is_integral()) return value.kind();
  return is_complex(value.kind()) ? to_complex(floating) : floating;
}

void check_value(const Frame& f, int at, DType dtype) {
  const Scalar& value = f.arg<Scalar>(at);
  LAMELLA_CHECK(!is_complex(value.kind()) || is_complex(dtype), DType,
                "{}: {} = {} is complex, expected a real number for {}", op_name(f), arg_name(f, at),
                value.str(), dtype);
  LAMELLA_CHECK(value.fits(dtype), Overflow, "{}: {} = {} does not fit {}; expected a number that it holds",
                op_name(f), arg_name(f, at), value.str(), dtype);
}

void infer_size(const Frame& f, Inferred& out, DType dtype) {
  const Ints size = f.ints(param(f, "size"));
  checked_numel(size, op_name(f).c_str());
  out.compute = dtype;
  out.outs.push_back({size, dtype});
}
void infer_sized(const Frame& f, Inferred& out) {
  infer_size(f, out, dtype_or(f, dispatch_state().default_dtype));
}
void infer_new(const Frame& f, Inferred& out) { infer_size(f, out, dtype_or(f, f.tensor(0).dtype())); }

void infer_full(const Frame& f, Inferred& out) {
  const Scalar& value = f.arg<Scalar>(1);
  infer_size(f, out, dtype_or(f, dtype_of_number(value)));
  check_value(f, 1, out.compute);
}

void infer_new_full(const Frame& f, Inferred& out) {
  infer_new(f, out);
  check_value(f, 2, out.compute);
}

void infer_like(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  out.compute = dtype_or(f, x.dtype());
  out.outs.push_back({x.sizes(), out.compute});
}

void infer_full_like(const Frame& f, Inferred& out) {
  infer_like(f, out);
  check_value(f, 1, out.compute);
}

void fill_with(const Launch& l, const Scalar& value) {
  const View out = l.outs[0].view_of();
  run(l, {&out, 1}, {}, {}, {&value, 1});
}
void launch_zeros(const Launch& l) { fill_with(l, 0); }
void launch_ones(const Launch& l) { fill_with(l, 1); }
void launch_value(const Launch& l) {
  int at = 1;  // the one number behind a tensor or a size, whatever its name
  while (l.frame.op->schema.params[size_t(at)].kind != ParamKind::Scalar) ++at;
  fill_with(l, l.frame.arg<Scalar>(at));
}
[[noreturn]] void refuse_internal(DType dtype) {
  fail(ErrorCode::DType, "empty: dtype = {} exists in the reference column only; expected a public one",
       dtype);
}
/// Bytes that are neither 0 nor 1 may not even be read as bool, so these elements are false.
void clear_bools(const Tensor& t) {
  if (t.dtype() != DType::Bool || t.numel() == 0 || t.device() == Device::Meta) return;
  const size_t n = size_t(t.numel());
  if (is_host(t.device())) std::memset(t.raw_data(), 0, n);
  static constexpr char kZeros[4096] = {};
  for (size_t at = 0; at < n && !is_host(t.device()); at += sizeof kZeros)
    copy_bytes(static_cast<char*>(t.raw_data()) + at, t.device(), kZeros, Device::CPU,
               std::min(sizeof kZeros, n - at));
}

[[gnu::noinline]] void run_empty_specially(Frame& f, DType dtype) {
  const Device device = device_of_call(f);
  if (is_internal(dtype) && device != Device::Reference) refuse_internal(dtype);
  clear_bools(*std::construct_at(f.results, make_tensor(f.ints(0), dtype, device)));
}

/// Nothing to infer or launch: the shortest way to an allocation. The slot of a result is empty before a
/// call.
inline void run_empty_on(Frame& f, Device device) {
  DType dtype = dispatch_state().default_dtype;
  if (!f.none(1)) [[unlikely]]
    dtype = f.arg<DType>(1);
  if (dtype == DType::Bool || is_internal(dtype)) [[unlikely]]
    return run_empty_specially(f, dtype);
  std::construct_at(f.results, make_tensor(f.ints(0), dtype, device));
}
void run_empty(Frame& f) { run_empty_on(f, device_of_call(f)); }
/// The key says where.
void empty_on_cpu(Frame& f, int) { run_empty_on(f, Device::CPU); }

void launch_empty(const Launch& l) { clear_bools(l.outs[0]); }

/// The lanes share the result: only the shape is asked for.
void batch_new(BatchCall& b) {
  Frame lower{b.frame.op, b.frame.args, b.results};
  call(lower);
  b.mapped[0] = false;
}

struct Progression {
  Scalar start = 0, end, step = 1;
  bool integral;
  DType whole;  ///< the integer dtype that holds all three
  explicit Progression(const Frame& f) {
    if (!f.none(1)) start = f.arg<Scalar>(0);
    end = f.arg<Scalar>(f.none(1) ? 0 : 1);
    if (!f.none(2)) step = f.arg<Scalar>(2);
    integral = start.is_integral() && end.is_integral() && step.is_integral();
    const bool large = start.kind() == DType::U64 || end.kind() == DType::U64;
    whole = large ? DType::U64 : DType::I64;
  }
};

void check_real(const Frame& f, std::string_view arg, const Scalar& value) {
  LAMELLA_CHECK(!is_complex(value.kind()), DType, "{}: {} = {} is complex, expected a real number",
                op_name(f), arg, value.str());
  LAMELLA_CHECK(std::isfinite(value.to_double()), Value, "{}: {} = {}, expected a finite number", op_name(f),
                arg, value.str());
}

__int128 exact(const Scalar& s) {
  return s.kind() == DType::U64 ? __int128(s.to<uint64_t>()) : __int128(s.to_int());
}
/// Where all three are integers, rounded once; in double otherwise.
double distance_of(const Progression& p) {
  return p.integral ? double(exact(p.end) - exact(p.start)) : p.end.to_double() - p.start.to_double();
}
/// Where all three are integers exact, as are integers below 2^64 in 64 bits of significand; in double
/// otherwise.
long double count_of(const Progression& p) {
  if (!p.integral) return std::ceil(distance_of(p) / p.step.to_double());
  const __int128 step = exact(p.step), distance = exact(p.end) - exact(p.start);
  return static_cast<long double>((distance + step - (step > 0 ? 1 : -1)) / step);
}

void infer_arange(const Frame& f, Inferred& out) {
  const Progression p(f);
  check_real(f, f.none(1) ? "end" : "start", p.start);
  check_real(f, "end", p.end);
  check_real(f, "step", p.step);
  out.compute = dtype_or(f, p.integral ? p.whole : dispatch_state().default_dtype);
  LAMELLA_CHECK(is_integer(out.compute) || is_floating(out.compute), DType,
                "{}: dtype = {}, expected a real number type", op_name(f), out.compute);
  const double step = p.step.to_double(), distance = distance_of(p);
  const bool vanishes = is_integer(out.compute) && std::abs(step) < 1;
  LAMELLA_CHECK(step != 0 && !vanishes, Value, "{}: step = {}, expected a step that is not 0 in {}",
                op_name(f), p.step.str(), out.compute);
  LAMELLA_CHECK(distance == 0 || (distance > 0) == (step > 0), Value,
                "{}: step = {} leads away from end = {}, starting at {}; expected the other sign", op_name(f),
                p.step.str(), p.end.str(), p.start.str());
  const long double n = count_of(p);
  LAMELLA_CHECK(n <= 0x1p58L, Overflow,
                "{}: end = {} is {} steps away, more than memory can hold; expected at most 2^58", op_name(f),
                p.end.str(), double(n));
  out.outs.push_back({Dims{int64_t(n)}, out.compute});
}

void launch_arange(const Launch& l) {
  const Progression p(l.frame);
  const View out = l.outs[0].view_of();
  const Scalar scalars[] = {p.start, p.step};
  run(l, {&out, 1}, {}, {}, scalars);
}

void infer_eye(const Frame& f, Inferred& out) {
  const int64_t n = f.arg<int64_t>(0), m = f.arg_or<int64_t>(1, n);
  LAMELLA_CHECK(n >= 0 && m >= 0, Shape, "{}: n = {}, m = {}; expected sizes >= 0", op_name(f), n, m);
  LAMELLA_CHECK(double(std::max<int64_t>(n, 1)) * double(std::max<int64_t>(m, 1)) <= 0x1p58, Overflow,
                "{}: n = {}, m = {} are more elements than memory can hold; expected at most 2^58",
                op_name(f), n, m);
  out.compute = dtype_or(f, dispatch_state().default_dtype);
  out.outs.push_back({Dims{n, m}, out.compute});
}

void launch_eye(const Launch& l) {
  fill_with(l, 0);
  View ones = l.outs[0].view_of();
  const int64_t size = std::min(ones.sizes[0], ones.sizes[1]), stride = ones.strides[0] + ones.strides[1];
  ones.rank = 1;
  ones.sizes = &size;
  ones.strides = &stride;
  const Scalar one = 1;
  run(l, {&ones, 1}, {}, {}, {&one, 1});
}

/// And device=, which comes behind it.
Values with_dtype(Draw& d, Values v) {
  const DType t = d.dtype(kAllTypes);
  const size_t at = v.size() + 1;
  if (d.flag()) v.push_back(t);
  return d.with_device(std::move(v), at);
}

Values sized_samples(Draw& d) {
  d.dtype(kAllTypes);
  return with_dtype(d, {d.shape()});
}

/// Unspecified elements compare to nothing: only tensors without any are drawn.
Values empty_samples(Draw& d) {
  d.dtype(kAllTypes);
  Dims size = d.shape(0, 2);
  size.push_back(0);
  return with_dtype(d, {size});
}

Values like_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  return with_dtype(d, {d.tensor(d.shape(), t)});
}

Values empty_like_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  Dims size = d.shape(0, 2);
  size.push_back(0);
  return with_dtype(d, {d.tensor(size, t)});
}

/// One that fits.
Scalar number_of(Draw& d, DType t) { return is_bool(t) ? Scalar(d.flag()) : d.scalar(t).stored(t); }

Values full_like_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  return with_dtype(d, {d.tensor(d.shape(), t), number_of(d, t)});
}

Values full_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  Values v = with_dtype(d, {d.shape(), number_of(d, t)});
  if (v.size() > 2 && !is_none(v[2])) return v;  // else the number says the dtype, which may be narrower
  Scalar& value = std::get<Scalar>(v[1]);
  value = value.stored(dtype_of_number(value));
  return v;
}

Values new_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  return with_dtype(d, {d.tensor(d.shape(), t), d.shape()});
}

Values new_full_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  return with_dtype(d, {d.tensor(d.shape(), t), d.shape(), number_of(d, t)});
}

Values arange_samples(Draw& d) {
  const DType t = d.dtype(kRealTypes);
  const int64_t n = d.range(0, 6);
  if (const int64_t last = d.anywhere(0, n); t == DType::I64 && std::abs(last / 2) > INT64_MAX / 4) {
    const int64_t step = last > 0 ? 3 : -3;  // up to an end of i64, or down to the other one
    return d.with_device({Scalar(last - n * step), Scalar(last), Scalar(step)}, 4);
  }
  if (!d.options().exact && !d.options().tame && n > 0 && d.one_in(3)) {
    if (is_floating(t))  // steps that are rounded, and pile up where they are added
      return {Scalar(0.1), Scalar(0.1 + 0.3 * (double(n) - 0.25)), Scalar(0.3), t};
    constexpr int64_t kBeyondDoubles = (int64_t{1} << 53) + 1;
    constexpr int64_t kFarApart = int64_t{1} << 59;  // one beside a multiple is the multiple in double
    if (t == DType::I64 && d.flag()) return {Scalar(0), Scalar(n * kFarApart + 1), Scalar(kFarApart)};
    if (t == DType::I64) return {Scalar(kBeyondDoubles), Scalar(kBeyondDoubles + 3 * n), Scalar(3)};
  }
  if (d.flag()) return d.with_device({Scalar(n), {}, {}, t}, 4);
  const bool down = !(is_integer(t) && !is_signed_integer(t)) && d.flag();
  const int64_t start = down ? 3 : d.range(0, 3), step = (down ? -1 : 1) * d.range(1, 3),
                end = start + n * step;
  Values v{Scalar(start), Scalar(end)};
  const double last = n == 0 ? 0 : (double(n) - 0.25) * double(step);  // between two elements
  if (is_floating(t) && d.flag()) v = {Scalar(double(start) + 0.5), Scalar(double(start) + 0.5 + last)};
  v.push_back(Scalar(step));
  if (t != DType::I64 || d.flag()) v.push_back(t);
  return d.with_device(std::move(v), 4);
}

Values eye_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  const int64_t n = d.range(0, 4);
  if (d.flag()) return d.with_device({n, {}, t}, 3);
  const int64_t m = d.range(0, 5);
  return d.with_device({n, m, t}, 3);
}

void define_filled() {
  OpTable::add({.schema = "zeros(Size size, *, DType? dtype=None, Device? device=None) -> Tensor",
                .shape = ShapeClass::Factory,
                .infer = infer_sized,
                .kernel = kernel("fill"),
                .launch = launch_zeros,
                .jvp = not_differentiable(kConstant),
                .vjp = not_differentiable(kConstant),
                .samples = sized_samples,
                .doc = "Zeros of the given shape; the default dtype and device unless one is given."});
  OpTable::add({.schema = "ones(Size size, *, DType? dtype=None, Device? device=None) -> Tensor",
                .shape = ShapeClass::Factory,
                .infer = infer_sized,
                .kernel = kernel("fill"),
                .launch = launch_ones,
                .jvp = not_differentiable(kConstant),
                .vjp = not_differentiable(kConstant),
                .samples = sized_samples,
                .doc = "Ones of the given shape; the default dtype and device unless one is given."});
  OpTable::add(
      {.schema = "empty(Size size, *, DType? dtype=None, Device? device=None) -> Tensor",
       .shape = ShapeClass::Factory,
       .infer = infer_sized,  // see NOTE: [definitions of composites]
       .composite = run_empty,
       .jvp = by_composition(),
       .vjp = by_composition(),
       .properties = kNoOut | kUnspecified,
       .samples = empty_samples,
       .doc = "A tensor whose elements are unspecified; of bool, false. The default device unless one is "
              "given."});
  OpTable::add(
      {.schema = "full(Size size, Scalar fill_value, *, DType? dtype=None, Device? device=None) -> Tensor",
       .shape = ShapeClass::Factory,
       .infer = infer_full,
       .kernel = kernel("fill"),
       .launch = launch_value,
       .jvp = not_differentiable(kConstant),
       .vjp = not_differentiable(kConstant),
       .samples = full_samples,
       .doc = "One number everywhere, on the default device unless one is given. Without a dtype: bool, i64, "
              "the default dtype or "
              "its complex form, "
              "as the number is. Error dtype for a complex number in a real dtype."});
  OpTable::add(
      {.schema = "arange(Scalar start, Scalar? end=None, Scalar? step=None, *, DType? dtype=None, Device? "
                 "device=None) -> Tensor",
       .shape = ShapeClass::Factory,
       .infer = infer_arange,
       .kernel = kernel("arange"),
       .launch = launch_arange,
       .jvp = not_differentiable(kConstant),
       .vjp = not_differentiable(kConstant),
       .samples = arange_samples,
       .doc = "start, start + step, ... before end; a single number is the end. i64 when all are integers, "
              "else the "
              "default dtype. Errors value: step 0 or of the wrong sign, bounds that are not finite."});
}

void define_sized() {
  define_filled();
  OpTable::add({.schema = "eye(int n, int? m=None, *, DType? dtype=None, Device? device=None) -> Tensor",
                .shape = ShapeClass::Factory,
                .infer = infer_eye,
                .kernel = kernel("fill"),
                .launch = launch_eye,
                .jvp = not_differentiable(kConstant),
                .vjp = not_differentiable(kConstant),
                .samples = eye_samples,
                .doc = "[n, m] (m = n unless given) with ones on the main diagonal, zeros elsewhere."});
}

void define_like() {
  OpTable::add({.schema = "zeros_like(Tensor x, *, DType? dtype=None, Device? device=None) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_like,
                .kernel = kernel("fill"),
                .launch = launch_zeros,
                .jvp = not_differentiable(kConstant),
                .vjp = not_differentiable(kConstant),
                .properties = kNoInPlace | kNoOut,
                .samples = like_samples,
                .doc = "Zeros of x's shape and, unless given, dtype and device."});
  OpTable::add({.schema = "ones_like(Tensor x, *, DType? dtype=None, Device? device=None) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_like,
                .kernel = kernel("fill"),
                .launch = launch_ones,
                .jvp = not_differentiable(kConstant),
                .vjp = not_differentiable(kConstant),
                .properties = kNoInPlace | kNoOut,
                .samples = like_samples,
                .doc = "Ones of x's shape and, unless given, dtype and device."});
  OpTable::add(
      {.schema = "empty_like(Tensor x, *, DType? dtype=None, Device? device=None) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_like,
       .launch = launch_empty,
       .jvp = not_differentiable(kConstant),
       .vjp = not_differentiable(kConstant),
       .properties = kNoInPlace | kNoOut | kUnspecified | kAnyDevice,
       .samples = empty_like_samples,
       .doc = "Unspecified elements (of bool: false) in x's shape and, unless given, dtype and device."});
  OpTable::add(
      {.schema = "full_like(Tensor x, Scalar value, *, DType? dtype=None, Device? device=None) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_full_like,
       .kernel = kernel("fill"),
       .launch = launch_value,
       .jvp = not_differentiable(kConstant),
       .vjp = not_differentiable(kConstant),
       .properties = kNoInPlace | kNoOut,
       .promises = {.once = true},
       .samples = full_like_samples,
       .doc = "One number everywhere in x's shape and, unless given, dtype and device. Error dtype for "
              "a complex number in "
              "a real dtype."});
}

void define_new() {
  OpTable::add(
      {.schema = "new_zeros(Tensor x, Size size, *, DType? dtype=None, Device? device=None) -> Tensor",
       .shape = ShapeClass::Factory,
       .infer = infer_new,
       .kernel = kernel("fill"),
       .launch = launch_zeros,
       .jvp = not_differentiable(kConstant),
       .vjp = not_differentiable(kConstant),
       .batch = batch_new,
       .properties = kNoInPlace | kNoOut,
       .samples = new_samples,
       .doc = "Zeros of the given shape with x's dtype and device, unless given."});
  OpTable::add(
      {.schema =
           "new_full(Tensor x, Size size, Scalar value, *, DType? dtype=None, Device? device=None) -> Tensor",
       .shape = ShapeClass::Factory,
       .infer = infer_new_full,
       .kernel = kernel("fill"),
       .launch = launch_value,
       .jvp = not_differentiable(kConstant),
       .vjp = not_differentiable(kConstant),
       .batch = batch_new,
       .properties = kNoInPlace | kNoOut,
       .promises = {.once = true},
       .samples = new_full_samples,
       .doc = "One number everywhere in the given shape, with x's dtype and device, unless given. "
              "Error dtype for a "
              "complex number in a real dtype."});
}
}  // namespace

void define_factory() {
  define_sized();
  OpTable::set("empty", int(Device::CPU), {.name = "at_once", .cell = empty_on_cpu, .asks_itself = true});
  define_like();
  define_new();
}

}  // namespace lamella::ops
