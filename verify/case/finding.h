// What a comparison or a check found wrong: its text, and of which kind it is.
#pragma once

#include <compare>
#include <iosfwd>
#include <string>
#include <string_view>

#include "lamella/core/check.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// NOTE: [kinds of failure] One operator, law and kind is one bug until shown otherwise: runs keep one
/// failure of each, and a case is reduced while it fails in the same way. The kind is set where something is
/// found wrong, and is no part of the text, which people read and rewrite.
enum class What : uint8_t {
  Value,    ///< a number, and all that no other kind names
  Nan,      ///< NaN where a number was due
  DType,    ///< of a result
  Shape,    ///< of a result
  Results,  ///< too many, too few, or one that is undefined
  Strides,
  Raised,    ///< an exception, or another one than was due
  Accepted,  ///< none where one was due
  State,     ///< of dispatch, after the check
  Leak,      ///< alive after the check
  Memory,    ///< beside a block of guarded memory
  Crashed,   ///< these three end a process
  Exited,
  NeverEnded
};

struct FailureKind {
  What what = What::Value;
  std::string about = {};  ///< of Raised the code, and the operator if known; of Crashed and Exited how
  auto operator<=>(const FailureKind&) const = default;
};
/// "value", "raises shape of softmax", "crashed: Segmentation fault (signal 11)"
std::string str(const FailureKind& kind);
/// Of an exception: by its code and operator, or by its type if it is none of the library's.
FailureKind failure_kind(const std::exception& e);
/// Empty when nothing is wrong. What is put before or behind the text leaves the kind; it turns into text
/// only by text(), so that none is lost unseen.
class Finding {
 public:
  Finding() = default;
  Finding(std::string text) : text_(std::move(text)) {}
  Finding(const char* text) : text_(text) {}
  Finding(FailureKind kind, std::string text) : text_(std::move(text)), kind_(std::move(kind)) {}
  Finding(What what, std::string text) : Finding(FailureKind{what}, std::move(text)) {}

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  const FailureKind& kind() const { return kind_; }
  void clear() { *this = {}; }

  Finding& operator+=(std::string_view behind) {
    text_ += behind;
    return *this;
  }
  friend Finding operator+(Finding f, std::string_view behind) { return std::move(f += behind); }
  friend Finding operator+(std::string_view before, Finding f) {
    f.text_.insert(0, before);
    return f;
  }
  friend bool operator==(const Finding& f, std::string_view text) { return f.text_ == text; }
  friend void PrintTo(const Finding& f, std::ostream* out);  ///< for GoogleTest

 private:
  std::string text_;
  FailureKind kind_;
};

/// What e says, behind `before`.
Finding raised_by(const std::exception& e, std::string_view before = "raised: ");

}  // namespace lamella::verify
LAMELLA_API_END
