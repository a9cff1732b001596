// A recorded case: law, operator, choices and the version of the decoder that reads them; as a line of text
// and as a file.
#pragma once

#include <filesystem>

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

/// "LD5.bWF0…": the version of the decoder, then the record in base64url with a checksum. Never changes its
/// meaning, whatever is registered or set later. Those that begin with "LC" have a shorter checksum.
std::string to_blob(const Record& r);
/// Error value for text that is no blob, is damaged, or is of a later version.
Record from_blob(std::string_view blob);

/// Lines "# …", "law ID", "operator NAME", "version N", "depth N", "partners NAME …", "choices 0 17 …". A
/// file without a version is of the first one.
std::string to_file_text(const Record& r, const std::string& message, const std::string& program);
Record read_record(const std::filesystem::path& file);
/// Files *.txt of a directory, by name.
std::vector<std::filesystem::path> record_files(const std::filesystem::path& directory);

/// Runs it again. Error value when the law or an operator does not exist.
Verdict replay(const Record& r);

}  // namespace lamella::verify
LAMELLA_API_END
