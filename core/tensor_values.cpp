// Tensors as values: reading elements, making small tensors from numbers, printing.
#include <charconv>
#include <cstdio>
#include <cstring>

#include "lamella/core/device_hooks.h"
#include "lamella/core/layout.h"
#include "lamella/core/visit.h"

namespace lamella {

namespace {
Scalar load(const Tensor& t, int64_t offset) {
  const View v = t.view_of();
  return visit_dtype(v.dtype, [&]<class Tag>(Tag) -> Scalar {
    using T = typename Tag::type;
    const T x = v.as<T>()[offset];
    if constexpr (is_complex_type<T>) return c128(double(x.real()), double(x.imag()));
    else if constexpr (std::is_same_v<T, bool>) return x;
    else if constexpr (std::is_integral_v<T>) return x;
    else return double(x);
  });
}

template <class F> void each_offset(const Tensor& t, F&& f) {
  Dims at(t.rank());
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t offset = 0;
    for (int d = 0; d < t.rank(); ++d) offset += at[d] * t.stride(d);
    f(offset);
    for (int d = t.rank() - 1; d >= 0 && ++at[d] == t.size(d); --d) at[d] = 0;
  }
}

/// The double of fewest digits that is x in T: 0.1 of f32 is 0.10000000149011612 as a double.
template <class T> double shortest(T x) {
  const double whole = double(x);
  if constexpr (!std::is_same_v<T, double>)
    for (int digits = 1; digits <= 9; ++digits) {
      char text[32];
      std::snprintf(text, sizeof text, "%.*g", digits, whole);
      double read = 0;
      std::from_chars(text, text + std::strlen(text), read);
      if (read == whole || double(Scalar(read).to<T>()) == whole) return read;
    }
  return whole;
}

/// The number as a text of its dtype.
std::string number_at(const Tensor& t, int64_t offset) {
  const Scalar x = load(t, offset);
  switch (t.dtype()) {
    case DType::F16: return Scalar(shortest(x.to<f16>())).str();
    case DType::BF16: return Scalar(shortest(x.to<bf16>())).str();
    case DType::F32: return Scalar(shortest(x.to<float>())).str();
    case DType::C64: {
      const c128 z = x.to<c128>();
      return Scalar(c128(shortest(float(z.real())), shortest(float(z.imag())))).str();
    }
    default: return x.str();
  }
}

void print_values(std::ostringstream& out, const Tensor& t, int dim, int64_t offset) {
  if (dim == t.rank()) {
    out << number_at(t, offset);
    return;
  }
  constexpr int64_t kEdge = 8;
  out << '[';
  for (int64_t i = 0; i < t.size(dim); ++i) {
    if (t.size(dim) > 2 * kEdge && i == kEdge) {
      out << ", ...";
      i = t.size(dim) - kEdge;
    }
    if (i) out << ", ";
    print_values(out, t, dim + 1, offset + i * t.stride(dim));
  }
  out << ']';
}
}  // namespace

void Tensor::refuse_dim(int d, const char* asked) const {
  LAMELLA_CHECK(impl_, Undefined, "{}: the tensor is undefined; expected a defined one", asked);
  fail(ErrorCode::DimOutOfRange, "{}: dim = {} is out of range for {}; expected {} <= dim < {}", asked, d,
       *this, -rank(), rank());
}

Scalar Tensor::item_scalar() const {
  LAMELLA_CHECK(impl_, Undefined, "item: the tensor is undefined; expected a defined one");
  LAMELLA_CHECK(numel() == 1, Shape, "item: got {}, expected a tensor with one element", *this);
  LAMELLA_CHECK(impl_->storage, Level,
                "item: the value of {} is not visible here: a transform wraps it; expected a plain tensor",
                *this);
  return load(on_host(*this), 0);
}

std::vector<double> Tensor::to_vector() const {
  LAMELLA_CHECK(impl_ && impl_->storage, Level,
                "to_vector: the values of {} are not visible here; expected a plain tensor that has some",
                *this);
  std::vector<double> values;
  const Tensor here = on_host(*this);
  each_offset(here, [&](int64_t offset) { values.push_back(load(here, offset).to_double()); });
  return values;
}

namespace {
void check_fits(std::string_view op, const Scalar& value, DType dtype) {
  LAMELLA_CHECK(value.fits(dtype), Overflow,
                "{}: value = {} does not fit {}; expected a number that it holds", op, value.str(), dtype);
}
}  // namespace

Tensor scalar_tensor(const Scalar& value, DType dtype, Device device) {
  check_dtype("scalar_tensor", dtype);
  check_fits("scalar_tensor", value, dtype);
  Tensor t = make_tensor({}, dtype, device);
  if (device == Device::Meta) return t;
  visit_dtype(dtype, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    const T number = value.to<T>();
    if (is_host(device)) *static_cast<T*>(t.raw_data()) = number;
    else copy_bytes(t.raw_data(), device, &number, Device::CPU, sizeof number);
  });
  return t;
}

Tensor tensor_of(Ints sizes, std::span<const double> values, DType dtype) {
  check_dtype("tensor_of", dtype);
  Tensor t = make_tensor(sizes, dtype);
  LAMELLA_CHECK(t.numel() == int64_t(values.size()), Shape,
                "tensor_of: values has {} entries for {}, expected one for each element", values.size(), t);
  visit_dtype(dtype, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    T* out = static_cast<T*>(t.raw_data());
    for (const double v : values) {
      check_fits("tensor_of", v, dtype);
      *out++ = Scalar(v).to<T>();
    }
  });
  return t;
}

Tensor tensor_of(std::initializer_list<int64_t> sizes, std::initializer_list<double> values, DType dtype) {
  return tensor_of(Ints(sizes.begin(), sizes.size()), std::span(values.begin(), values.size()), dtype);
}

std::string type_str(DType dtype, Ints sizes) { return format("{}{}", name(dtype), Dims(sizes)); }

std::string type_str(const Tensor& t) {
  return t.defined() ? type_str(t.dtype(), t.sizes()) : std::string("undefined");
}

std::string str(const Tensor& t) {
  std::ostringstream out;
  out << type_str(t);
  if (!t.defined()) return out.str();
  if (t.impl()->wrap) out << t.impl()->wrap->str();
  if (t.impl()->layout) out << t.impl()->layout->str();
  if (!t.impl()->storage) return out.str();
  if (t.device() != Device::CPU) out << " on " << name(t.device());
  try {
    const Tensor here = on_host(t);
    out << ' ';
    print_values(out, here, 0, 0);
  } catch (const Error&) {}  // no memory to copy them to
  return out.str();
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) { return out << type_str(t); }
std::ostream& operator<<(std::ostream& out, DType d) { return out << name(d); }

}  // namespace lamella
