// Each answer taken from the list, and held to what is asked for.
#include "lamella/verify/case/player.h"

#include <algorithm>

namespace lamella::verify {

void Player::refuse(const std::string& text) {
  std::string where = "replay of law " + law_ + ": ";
  if (at_ > 0 && at_ <= answers_.all.size()) {
    const Answer& a = answers_.all[at_ - 1];
    where +=
        format("line {} is \"{}{}{}\"; ", a.line, a.kind, a.text.empty() ? "" : " ", a.text.substr(0, 60));
  }
  if (wrong_.empty()) wrong_ = where + text;
  fail(ErrorCode::Value, "{}", where + text);
}

const Answer* Player::next(std::string_view kind) {
  if (is_behind()) return nullptr;
  if (at_ >= answers_.all.size()) {
    at_ = answers_.all.size() + 1;
    refuse(format("the law asks for \"{}\", and the record ends after {} answers", kind, at_ - 1));
  }
  const Answer& a = answers_.all[at_++];
  if (a.kind != kind) refuse(format("the law asks for \"{}\"", kind));
  return &a;
}

template <class F> auto Player::read(F&& f) {
  try {
    return f();
  } catch (const Error& e) { refuse(e.text()); }
}

void Player::accept(bool fits, std::string_view asked) {
  if (!fits) refuse(format("the law asks for {}", asked));
}

void Player::finish() {
  if (!wrong_.empty() || at_ >= answers_.all.size()) return;
  wrong_ = format("replay of law {}: the law asked for {} answers; expected the {} of the record", law_, at_,
                  answers_.all.size());
}

uint32_t Player::word(std::string_view what) {
  const Answer* const a = next("word");
  if (!a) return simplest_.word(what);
  const int64_t w = read([&] { return number_in(a->text); });
  accept(w >= 0 && w <= int64_t(UINT32_MAX), "a word of 32 bits");
  return uint32_t(w);
}

uint32_t Player::below(uint32_t n, std::string_view what) {
  if (n <= 1) return 0;
  const Answer* const a = next("below");
  if (!a) return simplest_.below(n, what);
  const size_t of = std::min(a->text.find(" of "), a->text.size());
  const auto [v, most] = read([&] {
    const size_t behind = std::min(of + 4, a->text.size());
    return std::pair(number_in(a->text.substr(0, of)), number_in(a->text.substr(behind)));
  });
  accept(v >= 0 && v < most && most == int64_t(n), format("one of {}", n));
  return uint32_t(v);
}

std::string Player::partner_named(std::string drawn) {
  const Answer* const a = next("partner");
  return a ? a->text : drawn;
}

DTypeMask Player::as_before(DTypeMask supported) const {
  return supported & first_dtype_ ? supported & first_dtype_ : supported;
}
DType Player::dtype(DTypeMask supported) {
  const Answer* const a = next("dtype");
  if (!a) return simplest_.dtype(as_before(supported));
  const DType d = read([&] { return dtype_in(a->text); });
  accept(supported & mask(d), "a dtype that the operator supports");
  if (!first_dtype_) first_dtype_ = mask(d);
  return d;
}
DType Player::partner(DType first, DTypeMask supported) {
  const Answer* const a = next("other_dtype");
  if (!a) return simplest_.partner(first, supported);
  const DType d = read([&] { return dtype_in(a->text); });
  accept(d == first || supported & mask(d), "a dtype that the operator supports");
  return d;
}
Value Player::dtype_argument(DType of, DTypeMask supported, bool always) {
  const Answer* const a = next("dtype_argument");
  if (!a) return simplest_.dtype_argument(of, supported, always);
  if (a->text == "none" && !always) return {};
  const DType d = read([&] { return dtype_in(a->text); });
  accept(supported & mask(d), "a dtype that the operator supports");
  return d;
}

Dims Player::shape(int min_rank, int max_rank) {
  const Answer* const a = next("shape");
  if (!a) return simplest_.shape(min_rank, max_rank);
  Dims s = read([&] { return dims_in(a->text); });
  const bool fits = (s.size() <= max_rank || (max_rank >= 3 && s.size() <= kMostNamedRank)) &&
                    std::ranges::none_of(s, [](int64_t n) { return n < 0; });
  accept(fits && s.size() >= min_rank, format("a shape of rank {} to {}", min_rank, max_rank));
  return s;
}
int64_t Player::size(bool nonzero) {
  const Answer* const a = next("size");
  if (!a) return simplest_.size(nonzero);
  const int64_t s = read([&] { return number_in(a->text); });
  accept(s >= int64_t(nonzero), nonzero ? "a size that is not 0" : "a size");
  return s;
}
int64_t Player::size_below(int64_t limit) {
  const Answer* const a = next("size_below");
  if (!a) return simplest_.size_below(limit);
  const int64_t s = read([&] { return number_in(a->text); });
  accept(s >= 0, "a size");
  return s;
}
int64_t Player::entries(int64_t low, int64_t high) {
  const Answer* const a = next("entries");
  if (!a) return simplest_.entries(low, high);
  const int64_t n = read([&] { return number_in(a->text); });
  accept(n >= low, format("{} entries or more", low));
  return n;
}
int64_t Player::most_elements(int64_t size) {
  const Answer* const a = next("most_elements");
  return a ? read([&] { return number_in(a->text); }) : simplest_.most_elements(size);
}

Dims Player::broadcastable(const Dims& s) {
  const Answer* const a = next("broadcast");
  if (!a) return simplest_.broadcastable(s);
  Dims got = read([&] { return dims_in(a->text); });
  bool fits = got.size() <= s.size();
  for (int k = 1; k <= got.size() && fits; ++k)
    fits = got[got.size() - k] == 1 || got[got.size() - k] == s[s.size() - k];
  accept(fits, format("a shape that broadcasts to {}", s));
  return got;
}
Dims Player::broadcastable(const Dims& s, DType) { return broadcastable(s); }

int64_t Player::dim(int rank) {
  const Answer* const a = next("dim");
  if (!a) return simplest_.dim(rank);
  const int64_t d = read([&] { return number_in(a->text); }), most = std::max(rank, 1);
  accept(d >= -most && d < most, format("a dim of rank {}", rank));
  return d;
}
int64_t Player::anywhere(int64_t usual, int64_t size) {
  const Answer* const a = next("attribute");
  return a ? read([&] { return number_in(a->text); }) : simplest_.anywhere(usual, size);
}
int64_t Player::positive(int64_t usual, int64_t size) {
  const int64_t v = anywhere(usual, size);
  accept(v > 0, "an attribute of 1 or more");
  return v;
}
Dims Player::dims(int rank, int least) {
  const Answer* const a = next("dims");
  if (!a) return simplest_.dims(rank, least);
  Dims got = read([&] { return dims_in(a->text); });
  bool fits = got.size() >= std::min(rank, least) && got.size() <= rank;
  for (const int64_t d : got) fits &= d >= -rank && d < rank;
  accept(fits, format("at least {} dims of rank {}", least, rank));
  return got;
}

Tensor Player::noted(std::string_view kind, const Dims& sizes, DType dtype) {
  const Answer* const a = next(kind);
  const Tensor t = read([&] { return tensors_.tensor(a->text); });
  const bool fits = t.defined() && t.dtype() == dtype && sizes.equal(t.sizes());
  accept(fits, type_str(dtype, sizes));
  return t;
}
Tensor Player::tensor(const Dims& sizes, DType dtype, Domain domain) {
  if (is_behind()) return simplest_.tensor(sizes, dtype, domain);
  Tensor t = noted("tensor", sizes, dtype);
  held_.push_back(t);
  return t;
}
Tensor Player::index(const Dims& sizes, int64_t bound, DType dtype) {
  return is_behind() ? simplest_.index(sizes, bound, dtype) : noted("index", sizes, dtype);
}
Tensor Player::boolean(const Dims& sizes) {
  return is_behind() ? simplest_.boolean(sizes) : noted("boolean", sizes, DType::Bool);
}
Tensor Player::keys(const Dims& sizes) {
  return is_behind() ? simplest_.keys(sizes) : noted("keys", sizes, DType::U64);
}

namespace {
Dims matrices(const Dims& batch, int64_t n) {
  Dims sizes(batch);
  sizes.push_back(n), sizes.push_back(n);
  return sizes;
}
}  // namespace

Tensor Player::positive_definite(const Dims& batch, int64_t n, DType dtype) {
  if (is_behind()) return simplest_.positive_definite(batch, n, dtype);
  return noted("positive_definite", matrices(batch, n), dtype);
}
Tensor Player::triangular(const Dims& batch, int64_t n, DType dtype) {
  if (is_behind()) return simplest_.triangular(batch, n, dtype);
  return noted("triangular", matrices(batch, n), dtype);
}

Scalar Player::scalar(DType dtype) {
  const Answer* const a = next("scalar");
  return a ? read([&] { return scalar_in(a->text); }) : simplest_.scalar(dtype);
}

void Player::begin_arguments() {
  simplest_.begin_arguments(), tensors_.begin(), held_.clear();
  first_dtype_ = 0;
  if (const Answer* const a = next("arguments")) accept(a->text == "begin", "the arguments of another case");
}
void Player::end_arguments() {
  simplest_.end_arguments(), tensors_.forget();
  if (const Answer* const a = next("arguments")) accept(a->text == "end", "no more of its arguments");
}

}  // namespace lamella::verify
