// A case by its choices, and as a line of text: what a program that draws alike reads again.
#pragma once

#include <optional>

#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

struct Record {
  std::string law, op;
  Choices choices;
  Decoding decoding = {};
  std::optional<uint32_t> meaning = {};  ///< what the words gave where a blob was made: see meaning_of
};
/// What to keep of a case that was run: `verdict` knows which operators it drew.
Record record_of(const Law& law, const Op& op, Choices choices, const Verdict& verdict);

/// A print of what its words give here: the arguments of the operator, and answers of every kind to words
/// that are always the same. 0 where the law or the operator does not exist.
uint32_t meaning_of(const Record& r);

/// "LE.bWF0…": the record, the print of what its words give, and a checksum, in base64url.
std::string to_blob(const Record& r);
/// Error value for text that is no blob, or is damaged.
Record from_blob(std::string_view blob);

/// Runs it again. Error value when the law or an operator does not exist, and where the words of a blob gave
/// something else: files keep what they gave (kept_case.h).
Verdict replay(const Record& r);

}  // namespace lamella::verify
LAMELLA_API_END
