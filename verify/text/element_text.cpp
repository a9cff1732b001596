// The texts of elements and tensors, read and written a second time.
#include "lamella/verify/text/element_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace lamella::verify {

namespace {
/// NaN is NaN; zeros have signs.
bool alike(double a, double b) {
  return (a != a && b != b) || (a == b && std::signbit(a) == std::signbit(b));
}

double as_element(double v, DType dtype) {
  switch (dtype) {
    case DType::F16: return double(Scalar(v).to<f16>());
    case DType::BF16: return double(Scalar(v).to<bf16>());
    default: return double(Scalar(v).to<float>());  // f32, and the parts of c64
  }
}

/// Reads one part; `at` is then behind it.
bool is_part(double want, DType dtype, const char*& at) {
  const char* const begin = at;
  char* end = nullptr;
  const double got = std::strtod(begin, &end);
  at = end;
  if (end == begin || !alike(as_element(got, dtype), want)) return false;
  int digits = 0, zeros = 0;  // zeros at either end say nothing of how many are needed
  for (const char* c = begin; c != at && *c != 'e'; ++c) {
    if (*c < '0' || *c > '9' || (digits == 0 && *c == '0')) continue;
    if (*c == '0') ++zeros;
    else digits += zeros + 1, zeros = 0;
  }
  if (digits < 2 || !std::isfinite(want)) return true;
  char shorter[64];
  std::snprintf(shorter, sizeof shorter, "%.*g", std::min(digits - 1, 17), want);
  return !alike(as_element(std::strtod(shorter, nullptr), dtype), want);
}
}  // namespace

bool is_text_of(const Scalar& element, DType dtype, const std::string& text) {
  const char* at = text.c_str();
  if (dtype != DType::C64) return is_part(element.to_double(), dtype, at) && *at == 0;
  const c128 z = element.to<c128>();
  return is_part(z.real(), dtype, at) && (*at == '+' || *at == '-') && at[1] != '+' && at[1] != '-' &&
         is_part(z.imag(), dtype, at) && std::strcmp(at, "j") == 0;
}

namespace {
std::string element_text(const Tensor& one) {
  const Scalar element = one.item_scalar();
  if (!prints_by_dtype(one.dtype())) return element.str();
  const std::string text = str(one), last = text.substr(text.rfind(' ') + 1);
  return is_text_of(element, one.dtype(), last) ? last : "a text that reads as " + element.str();
}

/// Nested lists, of more than 16 entries the first and the last 8.
std::string listed(const Tensor& t, std::vector<int64_t>& at) {
  const size_t dim = at.size();
  if (int(dim) == t.rank()) {
    int64_t offset = t.impl()->offset;
    for (size_t k = 0; k < dim; ++k) offset += at[k] * t.strides()[k];
    return element_text(make_view_unchecked(t, Dims{}, Dims{}, offset));
  }
  std::string out = "[";
  const int64_t n = t.sizes()[dim];
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0) out += ", ";
    if (n > 16 && i == 8) out += "..., ", i = n - 8;
    at.push_back(i);
    out += listed(t, at);
    at.pop_back();
  }
  return out + "]";
}
}  // namespace

std::string text_wrong(const Tensor& t) {
  std::vector<int64_t> at;
  const std::string where = t.device() == Device::CPU ? "" : " on " + std::string(name(t.device()));
  const std::string want = type_str(t) + where + " " + listed(t, at);
  return str(t) == want ? "" : "printed: " + str(t) + ", expected " + want;
}

}  // namespace lamella::verify
