// A list of int64 with room for 5 inline: sizes, strides, dims.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <span>
#include <type_traits>
#include <vector>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

using Ints = std::span<const int64_t>;

class Dims {
 public:
  static constexpr int kInline = 5;
  Dims() = default;
  explicit Dims(int n, int64_t value = 0) { resize(n, value); }
  Dims(Ints v) { assign(v); }
  Dims(std::initializer_list<int64_t> v) { assign({v.begin(), v.size()}); }
  Dims(const Dims& o) {
    if (o.heap_) {
      assign(o);
    } else {
      size_ = o.size_;
      std::memcpy(inline_, o.inline_, sizeof inline_);  // whole: quicker than asking how many
    }
  }
  Dims(Dims&& o) noexcept { take(o); }
  Dims& operator=(const Dims& o) {
    if (this != &o) assign(o);
    return *this;
  }
  Dims& operator=(Dims&& o) noexcept {
    if (this != &o) {
      drop();
      take(o);
    }
    return *this;
  }
  ~Dims() { drop(); }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t* data() { return heap_ ? heap_ : inline_; }
  const int64_t* data() const { return heap_ ? heap_ : inline_; }
  int64_t* begin() { return data(); }
  int64_t* end() { return data() + size_; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  int64_t& operator[](int i) { return data()[i]; }
  int64_t operator[](int i) const { return data()[i]; }
  operator Ints() const { return {data(), size_t(size_)}; }
  int64_t back() const { return data()[size_ - 1]; }

  void resize(int n, int64_t value = 0) {
    reserve(n);
    for (int i = size_; i < n; ++i) data()[i] = value;
    size_ = n;
  }
  void push_back(int64_t v) {
    reserve(size_ + 1);
    data()[size_++] = v;
  }
  void insert(int at, int64_t v) {
    push_back(0);
    int64_t* p = data();
    std::memmove(p + at + 1, p + at, size_t(size_ - 1 - at) * sizeof(int64_t));
    p[at] = v;
  }
  void erase(int at) {
    int64_t* p = data();
    std::memmove(p + at, p + at + 1, size_t(size_ - 1 - at) * sizeof(int64_t));
    --size_;
  }
  bool operator==(const Dims& o) const { return equal(o); }
  bool equal(Ints o) const {
    return size_t(size_) == o.size() &&
           (size_ == 0 || !std::memcmp(data(), o.data(), o.size() * sizeof(int64_t)));
  }

 private:
  void assign(Ints v) {
    reserve(int(v.size()));
    size_ = int(v.size());
    int64_t* const p = data();
    for (size_t i = 0; i < v.size(); ++i) p[i] = v[i];  // few: quicker than a call of memcpy
  }
  void reserve(int n) {
    if (n <= capacity_) return;
    const int grown = n < 2 * capacity_ ? 2 * capacity_ : n;
    auto* p = new int64_t[size_t(grown)];
    if (size_) std::memcpy(p, data(), size_t(size_) * sizeof(int64_t));
    delete[] heap_;
    heap_ = p;
    capacity_ = grown;
  }
  void take(Dims& o) {
    size_ = o.size_;
    heap_ = o.heap_;
    capacity_ = o.capacity_;
    if (!heap_) std::memcpy(inline_, o.inline_, sizeof inline_);
    o.heap_ = nullptr;
    o.size_ = 0;
    o.capacity_ = kInline;
  }
  void drop() {
    delete[] heap_;
    heap_ = nullptr;
    capacity_ = kInline;
    size_ = 0;
  }

  int32_t size_ = 0;
  int32_t capacity_ = kInline;
  int64_t* heap_ = nullptr;
  int64_t inline_[kInline];
};

/// "[2,3]"
inline std::ostream& operator<<(std::ostream& out, const Dims& d) {
  out << '[';
  for (int i = 0; i < d.size(); ++i) out << (i ? "," : "") << d[i];
  return out << ']';
}

/// A list of integers as typed calls take it: from {1, 2}, Dims, std::vector<int64_t> or Ints. Borrows.
class IntArg : public Ints {
 public:
  IntArg(Ints v) : Ints(v) {}
  IntArg(const Dims& v) : Ints(v.data(), size_t(v.size())) {}
  IntArg(const std::vector<int64_t>& v) : Ints(v.data(), v.size()) {}
  IntArg(std::initializer_list<int64_t> v) : Ints(v.begin(), v.size()) {}
};

/// An integer of a braced list, made of integers alone: an int64_t would be made of {}, too, so that {{}}, a
/// list of none, became {0}.
class ListedInt {
 public:
  template <std::integral T>
  requires(!std::is_same_v<T, bool>) ListedInt(T v) : value_(int64_t(v)) {}
  static Ints all(std::initializer_list<ListedInt> v) {
    return {v.size() ? &v.begin()->value_ : nullptr, v.size()};
  }

 private:
  int64_t value_;
};
static_assert(sizeof(ListedInt) == sizeof(int64_t));

/// One that may be left out: nullopt, {}, or what makes an IntArg. Borrows.
class OptionalInts {
 public:
  OptionalInts() = default;
  template <std::same_as<std::nullopt_t> T> OptionalInts(T) {}  ///< not of {}: then {{}} could be it
  OptionalInts(IntArg v) : value_(v), given_(true) {}
  template <class T>
  requires(std::is_convertible_v<const T&, IntArg> && !std::is_same_v<T, IntArg>) OptionalInts(const T& v)
      : OptionalInts(IntArg(v)) {}
  OptionalInts(std::initializer_list<ListedInt> v) : OptionalInts(IntArg(ListedInt::all(v))) {}
  const Ints* given() const { return given_ ? &value_ : nullptr; }

 private:
  Ints value_;
  bool given_ = false;
};

/// Row-major strides of `sizes`; sizes 0 and 1 count as 1.
Dims contiguous_strides(Ints sizes);
/// Product of the sizes. Error overflow when the product of the non-zero sizes exceeds int64: an empty tensor
/// with overflowing strides is refused too.
int64_t checked_numel(Ints sizes, const char* op);

}  // namespace lamella
LAMELLA_API_END
