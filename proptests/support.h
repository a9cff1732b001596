// What tests of this room share: small tensors, what was raised, and numbers as text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lamella/lamella.h"

namespace lamella::tests {

inline Tensor f64(std::initializer_list<int64_t> sizes, std::initializer_list<double> values) {
  return tensor_of(sizes, values, DType::F64);
}
/// Of rank 1.
inline Tensor f64(std::initializer_list<double> values) { return f64({int64_t(values.size())}, values); }
inline Tensor number(double v) { return scalar_tensor(v, DType::F64); }

/// What f raises, as "code: message"; empty when it raises nothing.
inline std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) { return std::string(name(e.code())) + ": " + e.what(); }
  return "";
}
inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

inline std::string text(const std::vector<double>& v) {
  std::string out = "[";
  for (size_t i = 0; i < v.size(); ++i) out += (i ? ", " : "") + format("{}", v[i]);
  return out + "]";
}

}  // namespace lamella::tests

/// That `code` raises a message with `part` in it.
#define EXPECT_REFUSED(code, part)                                                \
  EXPECT_NE(lamella::tests::refusal([&] { code; }).find(part), std::string::npos) \
      << lamella::tests::refusal([&] { code; })
