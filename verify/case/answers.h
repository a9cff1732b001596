// What a case was given by whoever drew it, kept as text: one answer a line.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/core/guard.h"
#include "lamella/core/tensor.h"
#include "lamella/dispatch/value.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// NOTE: [kept answers] What words mean to the decoder may change on any day. So a file keeps of a failure
/// what its law and the row's samples were given, in order: numbers as they were decided, dtypes, whole
/// tensors with the memory around them. A case is played from it whatever the decoder has become, and a law
/// that asks for something else is told so.
struct Answer {
  std::string kind;       ///< what was asked for: "dim"
  std::string text;       ///< "-1"
  int line = 0;           ///< of the file
  std::string what = {};  ///< what it decides, for the reader
};
struct Answers {
  std::vector<Answer> all;
  GuardSide guard = GuardSide::None;  ///< see NOTE: [guarded cases]
  bool open = false;  ///< the law failed there: what it asks behind them, now, is the simplest
};

/// Told what a case is given. A check may run its case again: then it begins anew.
class AnswerSink {
 public:
  virtual void begin() = 0;
  /// A line, without its end.
  virtual void note(std::string_view line) = 0;

 protected:
  ~AnswerSink() = default;
};

/// The first word of `rest`, which goes on behind it.
std::string_view next_word(std::string_view& rest);
/// "size 3  # of a dim" as an answer.
Answer answer_in(std::string_view line);

/// Dims as format() writes them: "[2,3]"; error value for another text.
Dims dims_in(std::string_view text);
int64_t number_in(std::string_view text);
/// "f64"; error value for another text.
DType dtype_in(std::string_view text);
/// "f64 1.5 bits 3ff8000000000000": exact, whatever the number is.
std::string scalar_text(const Scalar& s);
Scalar scalar_in(std::string_view text);

/// Tensors as text: "f64[2,3] strides [1,2] offset 0 storage 1 of 48 bytes 3ff0000000000000*6", with the
/// whole storage where it is met first; "same 0" for a handle that was met before. Until forget(), both know
/// what they have met, so that what shares memory shares it again.
class TensorWriter {
 public:
  std::string text(const Tensor& t);
  void forget() { keeps_ = false, met_.clear(); }
  void begin() { keeps_ = true, met_.clear(); }

 private:
  struct Met {
    Tensor tensor;
    int number, storage;
  };
  std::vector<Met> met_;
  bool keeps_ = true;
  int tensors_ = 0, storages_ = 0;
};
class TensorReader {
 public:
  /// Error value: what the text says does not fit.
  Tensor tensor(std::string_view text);
  void forget() { keeps_ = false, storages_.clear(), tensors_.clear(); }
  void begin() { forget(), keeps_ = true; }

 private:
  struct Known {
    int number;
    Tensor tensor;
  };
  std::vector<Known> tensors_, storages_;  ///< of a storage the first tensor on it
  bool keeps_ = true;
  int tensors_met_ = 0, storages_met_ = 0;
};

}  // namespace lamella::verify
LAMELLA_API_END
