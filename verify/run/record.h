// A case by its choices, and as a line of text: what the decoder of today reads again.
#pragma once

#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

struct Record {
  std::string law, op;
  Choices choices;
  Decoding decoding = {};
};
/// What to keep of a case that was run: `verdict` knows which operators it drew.
Record record_of(const Law& law, const Op& op, Choices choices, const Verdict& verdict);

/// "LD16.bWF0…": the decoder's number, then the record in base64url with a checksum. A decoder reads its own
/// alone: files keep cases for longer (kept_case.h).
std::string to_blob(const Record& r);
/// Error value for text that is no blob, is damaged, or is of another decoder.
Record from_blob(std::string_view blob);

/// Runs it again. Error value when the law or an operator does not exist.
Verdict replay(const Record& r);

}  // namespace lamella::verify
LAMELLA_API_END
