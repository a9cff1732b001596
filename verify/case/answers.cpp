// Answers as text: numbers, dims, dtypes and scalars, bit by bit.
#include "lamella/verify/case/answers.h"

#include <bit>
#include <charconv>

namespace lamella::verify {

std::string_view next_word(std::string_view& rest) {
  const size_t end = rest.find(' ');
  const std::string_view word = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return word;
}

Answer answer_in(std::string_view line) {
  Answer out;
  const size_t what = line.find("  # ");
  if (what != std::string_view::npos) out.what = line.substr(what + 4);
  line = line.substr(0, what);
  out.kind = next_word(line);
  out.text = line;
  return out;
}

namespace {
template <class T> T parsed(std::string_view text, int base, const char* what) {
  T v{};
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), v, base);
  LAMELLA_CHECK(wrong == std::errc() && end == text.data() + text.size(), Value, "record: \"{}\" is no {}",
                std::string(text), what);
  return v;
}

std::string bits_text(double v) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(std::bit_cast<uint64_t>(v)));
  return text;
}
double from_bits(std::string_view text) {
  return std::bit_cast<double>(parsed<uint64_t>(text, 16, "number of 64 bits"));
}
}  // namespace

int64_t number_in(std::string_view text) { return parsed<int64_t>(text, 10, "integer"); }

Dims dims_in(std::string_view text) {
  LAMELLA_CHECK(text.starts_with('[') && text.ends_with(']'), Value,
                "record: \"{}\" is no list; expected [2,3]", std::string(text));
  Dims out;
  for (std::string_view rest = text.substr(1, text.size() - 2); !rest.empty();) {
    const size_t end = rest.find(',');
    out.push_back(number_in(rest.substr(0, end)));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return out;
}

DType dtype_in(std::string_view text) {
  DType d{};
  LAMELLA_CHECK(parse_dtype(text, d), Value, "record: \"{}\" is no dtype", std::string(text));
  return d;
}

std::string scalar_text(const Scalar& s) {
  const std::string kind(name(s.kind()));
  if (s.kind() == DType::U64) return kind + " " + std::to_string(uint64_t(s.to_int()));
  if (s.is_integral()) return kind + " " + std::to_string(s.to_int());
  const c128 z = s.to_complex();
  const std::string bits = kind + " " + s.str() + " bits " + bits_text(z.real());
  return s.kind() == DType::C128 ? bits + " " + bits_text(z.imag()) : bits;
}

Scalar scalar_in(std::string_view text) {
  std::string_view rest = text;
  const DType kind = dtype_in(next_word(rest));
  if (kind == DType::Bool) return Scalar(number_in(rest) != 0);
  if (kind == DType::U64) return Scalar(parsed<uint64_t>(rest, 10, "number of 64 bits"));
  if (kind == DType::I64) return Scalar(number_in(rest));
  const size_t bits = rest.find("bits ");
  LAMELLA_CHECK(bits != std::string_view::npos, Value, "record: the number \"{}\" has no bits",
                std::string(text));
  rest = rest.substr(bits + 5);
  const double re = from_bits(next_word(rest));
  return kind == DType::C128 ? Scalar(c128(re, from_bits(rest))) : Scalar(re);
}

}  // namespace lamella::verify
