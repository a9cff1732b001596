// Forward in f128 by ordinary dispatch; first and second derivatives by central differences of it.
#include "lamella/verify/oracle/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <quadmath.h>

#include "lamella/ops/structured.h"
#include "lamella/verify/case/fault.h"

namespace lamella::verify {

namespace {

DType widen(DType d) { return is_complex(d) ? DType::C256 : is_floating(d) ? DType::F128 : d; }

/// The real parts of a contiguous f128 or c256 tensor lie in a row in both.
f128* parts(const Tensor& t) { return static_cast<f128*>(t.raw_data()); }
f128 step_for(f128 x, int exponent) { return ldexpq(fmaxq(1, fabsq(x)), exponent); }

/// +1 or -1, fixed: sign patterns of the perturbations that estimate sensitivities.
int sign_of(size_t sample, size_t i) { return ((i + 1) * 0x9E3779B97F4A7C15u >> (20 + sample)) & 1 ? 1 : -1; }

bool normwise(const Op& op) { return op.shape == ShapeClass::Linalg || op.has(kSymmetricInput); }

constexpr size_t kSamples = 4;
constexpr int kNearbyExponent = -30, kNearbyStep = -48;

}  // namespace

f128 unit_noise(size_t sample, size_t i) {
  uint64_t z = (sample + 5) * 0xD1B54A32D192ED03u + (i + 1) * 0x9E3779B97F4A7C15u;  // splitmix64
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return f128(int64_t(z >> 11) - (int64_t{1} << 52)) * 0x1p-52;
}

size_t part_count(const Tensor& t) { return size_t(t.numel()) * (is_complex(t.dtype()) ? 2 : 1); }

Tensor to_reference(const Tensor& t) {
  Tensor out = make_tensor(t.sizes(), widen(t.dtype()), Device::Reference);
  if (!is_inexact(t.dtype())) {
    const Tensor flat = plain_copy(t);
    std::memcpy(out.raw_data(), flat.raw_data(), size_t(t.numel() * itemsize(t.dtype())));
    return out;
  }
  f128* to = parts(out);
  visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    const T* const from = static_cast<const T*>(t.raw_data());
    each_element(t, [&](int64_t offset) {
      if constexpr (is_complex_type<T>) *to++ = from[offset].real(), *to++ = from[offset].imag();
      else if constexpr (is_half_type<T>) *to++ = float(from[offset]);
      else *to++ = from[offset];
    });
  });
  return out;
}

Tensor narrow(const Tensor& wide, DType dtype) {
  if (!is_inexact(wide.dtype()) || !is_inexact(dtype)) return plain_copy(wide);
  const Tensor flat = plain_copy(wide);
  const f128* from = parts(flat);
  Tensor out = make_tensor(wide.sizes(), dtype);
  visit_dtype(dtype, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    T* to = static_cast<T*>(out.raw_data());
    for (int64_t i = 0; i < out.numel(); ++i, ++to) {
      if constexpr (is_complex_type<T>) {
        using R = typename T::value_type;
        *to = T(R(from[2 * i]), R(from[2 * i + 1]));
      } else if constexpr (is_floating_type<T>) {
        *to = T(from[i]);
      }
    }
  });
  return out;
}

Values to_reference(const Values& args) {
  Values out = args;
  for (Value& v : out) {
    if (Tensor* t = std::get_if<Tensor>(&v); t && t->defined()) *t = to_reference(*t);
    if (Tensors* list = std::get_if<Tensors>(&v))
      for (Tensor& t : *list) t = to_reference(t);
    if (DType* d = std::get_if<DType>(&v)) *d = widen(*d);
    if (Device* d = std::get_if<Device>(&v); d && *d == Device::CPU) *d = Device::Reference;
  }
  return out;
}

Tensors forward_on_cpu(const Op& op, Values args);  // oracle_on_cpu.cpp

Tensors reference_forward(const Op& op, const Values& reference_args) {
  if (faulty(Fault::OracleOnCpu)) return forward_on_cpu(op, reference_args);
  const WideDefault wide;
  Tensors ys =
      ops::has_definition(op) ? ops::call_definition(op, reference_args) : call_boxed(op, reference_args);
  for (Tensor& y : ys)
    if (y.dtype() != widen(y.dtype())) y = to_reference(y);  // a dtype the operator's rules name
    else if (!y.is_contiguous()) y = plain_copy(y);
  return ys;
}

Reals flatten(const Tensors& ts) {
  Reals out;
  size_t n = 0;
  for (const Tensor& t : ts)
    if (is_inexact(t.dtype())) n += part_count(t);
  out.reserve(n);
  for (const Tensor& t : ts) {
    if (!is_inexact(t.dtype())) continue;
    visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      const T* const from = static_cast<const T*>(t.raw_data());
      each_element(t, [&](int64_t offset) {
        if constexpr (is_complex_type<T>) {
          out.push_back(from[offset].real());
          out.push_back(from[offset].imag());
        } else if constexpr (is_half_type<T>) out.push_back(float(from[offset]));
        else out.push_back(from[offset]);
      });
    });
  }
  return out;
}

Tensor unflatten(const Reals& flat, size_t& at, const Tensor& like) {
  Tensor out = make_tensor(like.sizes(), widen(like.dtype()), Device::Reference);
  const size_t n = part_count(out);
  std::copy_n(flat.begin() + long(at), n, parts(out));
  at += n;
  return out;
}

Tensor unflatten(const Bounds& flat, size_t& at, const Tensor& like, double factor) {
  Tensor out = make_tensor(like.sizes(), DType::F64);
  for (int64_t i = 0; i < out.numel(); ++i) {
    double b = flat[at++];
    if (is_complex(like.dtype())) b = std::max(b, flat[at++]);
    out.data<double>()[i] = b * factor;
  }
  return out;
}

namespace {
void symmetrise(Tensor& x) {
  const int64_t n = x.size(-1);
  const bool has_imaginary = is_complex(x.dtype());
  const Tensor old = plain_copy(x);  // lanes of a batch have strides
  x = plain_copy(old);
  const f128* const from = parts(old);
  f128* const to = parts(x);
  const int64_t width = has_imaginary ? 2 : 1;
  for (int64_t at = 0; at < x.numel(); ++at) {
    const int64_t matrix = at / (n * n) * (n * n), row = at / n % n, column = at % n;
    const int64_t mirrored = matrix + column * n + row;
    to[at * width] = (from[at * width] + from[mirrored * width]) / 2;
    if (has_imaginary) to[at * 2 + 1] = (from[at * 2 + 1] - from[mirrored * 2 + 1]) / 2;
  }
}
}  // namespace

Values symmetrised(const Op& op, Values reference_args) {
  if (op.has(kSymmetricInput)) symmetrise(std::get<Tensor>(reference_args[0]));
  return reference_args;
}

Oracle::Oracle(const Case& c, std::vector<Case::Slot> slots) : op_(c.op) {
  const Values all = to_reference(c.args);
  args_ = all;
  const auto add = [&](const Case::Slot& s) {
    Value& v = args_[size_t(s.param)];
    inputs_.push_back(std::holds_alternative<Tensor>(v) ? std::get<Tensor>(v)
                                                        : std::get<Tensors>(v)[size_t(s.element)]);
  };
  for (const Case::Slot& s : slots) add(s);
  active_ = flatten(inputs_).size();
  for (const Case::Slot& s : c.inexact())
    if (std::none_of(slots.begin(), slots.end(),
                     [&](const Case::Slot& t) { return t.param == s.param && t.element == s.element; }))
      add(s);
  x_ = flatten(inputs_);
  values_ = forward();
  for (Tensor& y : values_) y = plain_copy(y);  // a result may be a view of an input, which moves
  y_ = flatten(values_);
}

Tensors Oracle::forward() const { return reference_forward(op_, symmetrised(op_, args_)); }

Reals Oracle::evaluate(const Reals& x) {
  size_t at = 0;
  for (const Tensor& t : inputs_) {
    std::copy_n(x.begin() + long(at), part_count(t), parts(t));
    at += part_count(t);
  }
  return flatten(forward());
}

/// Complex arithmetic is right relative to the modulus, not to each part. Factorisations and solves are
/// stable as a whole, not entry by entry: a large entry next to a zero one leaves its roundoff there.
template <class Numbers> void Oracle::make_normwise(Numbers& bounds, const Tensors& of) const {
  if (normwise(op_) && !bounds.empty())
    bounds.assign(bounds.size(), *std::max_element(bounds.begin(), bounds.end()));
  size_t at = 0;
  for (const Tensor& t : of) {
    if (!is_inexact(t.dtype())) continue;
    if (is_complex(t.dtype()))
      for (size_t i = at; i + 1 < bounds.size() && i < at + part_count(t); i += 2)
        bounds[i] = bounds[i + 1] = bounds[i] + bounds[i + 1];
    at += part_count(t);
  }
}

template void Oracle::make_normwise(Bounds&, const Tensors&) const;
template void Oracle::make_normwise(Reals&, const Tensors&) const;

Matrix Oracle::jacobian_at(const Reals& x, int step_exponent) {
  Matrix m{y_.size(), active_, Reals(y_.size() * active_)};
  Reals at = x;
  for (size_t j = 0; j < active_; ++j) {
    const f128 h = step_for(x[j], faulty(Fault::OracleStepTooLong) ? -10 : step_exponent);
    at[j] = x[j] + h;
    const Reals right = evaluate(at);
    at[j] = x[j] - h;
    const Reals left = evaluate(at);
    at[j] = x[j];
    for (size_t i = 0; i < m.rows; ++i) m.entries[i * m.columns + j] = (right[i] - left[i]) / (2 * h);
  }
  return m;
}

const Matrix& Oracle::jacobian() {
  if (jacobian_.entries.empty()) jacobian_ = jacobian_at(x_, kFirstStep);
  return jacobian_;
}

bool Oracle::smooth_within(int step_exponent) {
  if (!op_.has(kKinks) && !op_.has(kDiscontinuous)) return true;
  // Along each part, and along all of them at once: min(max(x, a), b) with x = a = b bends only where x and a
  // fall together.
  for (size_t j = 0; j < x_.size() + kSamples; ++j) {
    const bool all = j >= x_.size();
    const auto moved = [&](f128 by) {
      Reals at = x_;
      for (size_t i = all ? 0 : j; i < (all ? at.size() : j + 1); ++i)
        at[i] += by * step_for(x_[i], step_exponent) * (j > x_.size() ? sign_of(j - x_.size(), i) : 1);
      return evaluate(at);
    };
    // Second differences at h and h/4: they scale by 1/4 per step where f is smooth. First ones, which a jump
    // through its own middle (sign at 0) multiplies by 4: there the second ones vanish.
    std::vector<Reals> bends, slopes;
    f128 h = step_for(all ? 1 : x_[j], step_exponent);
    for (int k = 0; k < 2; ++k, h /= 4) {
      const f128 by = k ? 0.25 : 1;
      Reals bend = moved(by), slope = bend;
      const Reals left = moved(-by);
      for (size_t i = 0; i < y_.size(); ++i) {
        slope[i] = fabsq(slope[i] - left[i]) / h;
        bend[i] = fabsq(bend[i] + left[i] - 2 * y_[i]) / h;
      }
      bends.push_back(std::move(bend));
      slopes.push_back(std::move(slope));
    }
    for (size_t i = 0; i < y_.size(); ++i) {
      const f128 noise = ldexpq(fabsq(y_[i]) + 1, -70);
      const f128 wide = bends[0][i], narrow = bends[1][i];
      if (wide > noise && (narrow > f128(0.35) * wide || narrow < f128(0.15) * wide)) return false;
      if (narrow > noise && wide <= noise) return false;
      if (slopes[1][i] > 2 * slopes[0][i] + noise) return false;
    }
  }
  return true;
}

std::pair<Matrix, Matrix> Oracle::hull(size_t samples) {
  Matrix low, high;
  for (size_t s = 0; s < samples; ++s) {  // in pairs of opposite points: no tie is broken to one side only
    Reals x = x_;
    const int side = s % 2 ? -1 : 1;
    for (size_t i = 0; i < x.size(); ++i)
      x[i] += side * unit_noise(s / 2, i) * step_for(x_[i], kNearbyExponent);
    const Matrix m = jacobian_at(x, kNearbyStep);
    if (s == 0) low = high = m;
    for (size_t e = 0; e < m.entries.size(); ++e) {
      low.entries[e] = fminq(low.entries[e], m.entries[e]);
      high.entries[e] = fmaxq(high.entries[e], m.entries[e]);
    }
  }
  for (size_t i = 0; i < low.rows;
       ++i) {  // a few samples miss some entries of a tie: its whole row is widened
    f128 spread = 0;
    for (size_t j = 0; j < low.columns; ++j) spread = fmaxq(spread, high(i, j) - low(i, j));
    for (size_t j = 0; j < low.columns; ++j) {
      low.entries[i * low.columns + j] -= spread;
      high.entries[i * low.columns + j] += spread;
    }
  }
  return {low, high};
}

Reals Oracle::pushforward(const Reals& t) {
  const Matrix& m = jacobian();
  Reals out(m.rows);
  for (size_t i = 0; i < m.rows; ++i)
    for (size_t j = 0; j < m.columns; ++j) out[i] += m(i, j) * t[j];
  return out;
}

Reals Oracle::pullback(const Reals& u) {
  const Matrix& m = jacobian();
  Reals out(m.columns);
  for (size_t i = 0; i < m.rows; ++i)
    for (size_t j = 0; j < m.columns; ++j) out[j] += m(i, j) * u[i];
  return out;
}

Reals Oracle::magnitudes() {
  const Matrix& m = jacobian();
  Reals out(m.rows);
  for (size_t i = 0; i < m.rows; ++i) {
    out[i] = fabsq(y_[i]);
    for (size_t j = 0; j < m.columns; ++j) out[i] += fabsq(m(i, j) * x_[j]);
  }
  make_normwise(out, values_);
  return out;
}

Bounds Oracle::pushforward_noise(const Reals& t) {
  const Reals size = magnitudes();
  Bounds out(size.size());
  for (size_t i = 0; i < size.size(); ++i)
    for (size_t j = 0; j < active_; ++j)
      out[i] += double(ldexpq(size[i] * fabsq(t[j]) / step_for(x_[j], kFirstStep), -109));
  make_normwise(out, values_);
  return out;
}

Bounds Oracle::pullback_noise(const Reals& u) {
  const Reals size = magnitudes();
  Bounds out(active_);
  for (size_t i = 0; i < size.size(); ++i)
    for (size_t j = 0; j < active_; ++j)
      out[j] += double(ldexpq(size[i] * fabsq(u[i]) / step_for(x_[j], kFirstStep), -109));
  make_normwise(out, inputs_);
  return out;
}

/// Jacobians at x (1 + 2^-26 s) for a few sign patterns s: their change estimates the sensitivity to rounding
/// of x.
std::vector<Matrix> Oracle::jacobians_nearby() {
  if (nearby_.empty())
    for (size_t s = 0; s < kSamples; ++s) {
      Reals x = x_;
      for (size_t i = 0; i < x.size(); ++i) x[i] += ldexpq(x_[i], -26) * sign_of(s, i);
      nearby_.push_back(jacobian_at(x, kFirstStep));
    }
  return nearby_;
}

Bounds Oracle::pushforward_bounds(const Reals& t) {
  const Matrix& m = jacobian();
  Bounds out(m.rows);
  const std::vector<Matrix> nearby = jacobians_nearby();
  for (size_t i = 0; i < m.rows; ++i) {
    f128 worst = 0, sum = 0;
    for (size_t j = 0; j < m.columns; ++j) sum += fabsq(m(i, j) * t[j]);
    for (const Matrix& other : nearby) {
      f128 change = 0;
      for (size_t j = 0; j < m.columns; ++j) change += fabsq((other(i, j) - m(i, j)) * t[j]);
      worst = fmaxq(worst, change);
    }
    out[i] = double(sum + ldexpq(worst, 26) * sqrtq(f128(m.columns)));
  }
  make_normwise(out, values_);
  return out;
}

Bounds Oracle::pullback_bounds(const Reals& u) {
  const Matrix& m = jacobian();
  Bounds out(m.columns);
  const std::vector<Matrix> nearby = jacobians_nearby();
  for (size_t j = 0; j < m.columns; ++j) {
    f128 worst = 0, sum = 0;
    for (size_t i = 0; i < m.rows; ++i) sum += fabsq(m(i, j) * u[i]);
    for (const Matrix& other : nearby) {
      f128 change = 0;
      for (size_t i = 0; i < m.rows; ++i) change += fabsq((other(i, j) - m(i, j)) * u[i]);
      worst = fmaxq(worst, change);
    }
    out[j] = double(sum + ldexpq(worst, 26) * sqrtq(f128(m.columns)));
  }
  make_normwise(out, inputs_);
  return out;
}

Oracle::Seconds Oracle::seconds_at(const Reals& x, int step_exponent) {
  if (faulty(Fault::OracleStepTooLong)) step_exponent += 10;
  Seconds out;
  Reals at = x;
  for (size_t i = 0; i < active_; ++i)
    for (size_t j = 0; j <= i; ++j) {
      const f128 hi = step_for(x[i], step_exponent), hj = step_for(x[j], step_exponent);
      Reals total(y_.size());
      for (const int a : {1, -1})
        for (const int b : {1, -1}) {
          at = x;
          at[i] += a * hi;
          at[j] += b * hj;
          const Reals y = evaluate(at);
          for (size_t k = 0; k < y.size(); ++k) total[k] += a * b * y[k];
        }
      for (f128& t : total) t /= 4 * hi * hj;
      out.push_back(std::move(total));
    }
  return out;
}

const Oracle::Seconds& Oracle::seconds(size_t exponent) {
  while (seconds_.size() <= exponent) seconds_.push_back(seconds_at(x_, kSecondStep + int(seconds_.size())));
  return seconds_[exponent];
}

/// see NOTE: [second differences]
Oracle::Seconds Oracle::combined(size_t exponent) {
  Seconds out = seconds(exponent + 1);  // the longer step is made last: what `seconds` gave before may move
  const Seconds& fine = seconds(exponent);
  for (size_t p = 0; p < out.size(); ++p)
    for (size_t k = 0; k < out[p].size(); ++k) out[p][k] = (4 * fine[p][k] - out[p][k]) / 3;
  return out;
}

Matrix Oracle::weighted(const Seconds& d, const Reals& u, bool magnitudes) const {
  Matrix m{active_, active_, Reals(active_ * active_)};
  size_t pair = 0;
  for (size_t i = 0; i < active_; ++i)
    for (size_t j = 0; j <= i; ++j, ++pair) {
      f128 sum = 0;
      for (size_t k = 0; k < u.size(); ++k) sum += magnitudes ? fabsq(d[pair][k] * u[k]) : d[pair][k] * u[k];
      m.entries[i * active_ + j] = m.entries[j * active_ + i] = sum;
    }
  return m;
}

Matrix Oracle::hessian(const Reals& u) { return weighted(combined(0), u); }

Matrix Oracle::hessian_noise(const Reals& u) {
  const Reals size = magnitudes();
  f128 total = 0;
  for (size_t k = 0; k < size.size(); ++k) total += size[k] * fabsq(u[k]);
  // The stencils' points lie up to two steps away: results there are no smaller than those steps make them,
  // also where x and f(x) are 0.
  const Matrix& m = jacobian();
  Reals steps(active_);
  for (size_t j = 0; j < active_; ++j) {
    Reals moved(size.size());
    for (size_t k = 0; k < moved.size(); ++k) moved[k] = fabsq(m(k, j)) * step_for(x_[j], kSecondStep + 1);
    make_normwise(moved, values_);
    for (size_t k = 0; k < moved.size(); ++k) steps[j] += moved[k] * fabsq(u[k]);
  }
  // Where the step is too long for the function, twice the step shows it.
  Matrix out = weighted(combined(1), u);
  const Matrix finer = hessian(u);
  for (size_t i = 0; i < active_; ++i)
    for (size_t j = 0; j < active_; ++j) {
      const f128 area = step_for(x_[i], kSecondStep) * step_for(x_[j], kSecondStep);
      const f128 roundoff =
          ldexpq(2 * (total + steps[i] + steps[j]) / area, -109);  // 17/12 of the short stencil's
      out.entries[i * active_ + j] = fabsq(out(i, j) - finer(i, j)) + roundoff;
    }
  return out;
}

Matrix Oracle::hessian_bounds(const Reals& u) {
  Matrix out = weighted(combined(0), u, true);
  const Matrix here = weighted(seconds(0), u);
  Reals worst(out.entries.size());
  for (size_t s = 0; s < 2; ++s) {
    Reals x = x_;
    for (size_t i = 0; i < x.size(); ++i) x[i] += ldexpq(x_[i], -18) * sign_of(s, i);
    const Matrix other = weighted(seconds_at(x, kSecondStep), u);
    for (size_t e = 0; e < worst.size(); ++e)
      worst[e] = fmaxq(worst[e], fabsq(other.entries[e] - here.entries[e]));
  }
  for (size_t e = 0; e < worst.size(); ++e) out.entries[e] += ldexpq(worst[e], 18) * sqrtq(f128(x_.size()));
  if (normwise(op_) && !out.entries.empty())
    out.entries.assign(out.entries.size(), *std::max_element(out.entries.begin(), out.entries.end()));
  return out;
}

}  // namespace lamella::verify
