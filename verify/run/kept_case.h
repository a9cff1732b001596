// Failures as files keep them: law, operator and decoded answers, so that what they ask does not follow the
// decoder.
#pragma once

#include <filesystem>

#include "lamella/verify/run/record.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// See NOTE: [kept answers].
struct KeptCase {
  std::string law, op;
  int depth = 0;  ///< deepest stack of transforms
  Answers answers;
};

/// The case of a record, run once more in a process of its own: one that crashes or never ends keeps what it
/// was given until then. Error value when the law or an operator does not exist.
KeptCase kept(const Record& r);
/// Likewise in this process, with its verdict.
struct Noted {
  KeptCase kept;
  Verdict verdict;
};
Noted noted(const Law& law, const Op& op, const Choices& choices, const Decoding& decoding = {});

/// Lines "# …", "law ID", "operator NAME", "depth N", "guard end" if memory is guarded, "answers 17", or
/// "answers 17 and the simplest" where the law failed, and as many answers.
std::string to_file_text(const KeptCase& c, const std::string& message, const std::string& program);
/// Error value for another text, with the line of `file` that is wrong.
KeptCase kept_case_in(const std::string& text, const std::string& file);
KeptCase read_kept_case(const std::filesystem::path& file);
/// Files *.txt of a directory, by name.
std::vector<std::filesystem::path> record_files(const std::filesystem::path& directory);

/// Plays it. Error value when the law or an operator does not exist, or when what the law asks is not what
/// was kept.
Verdict replay(const KeptCase& c);
/// Its arguments and its call, in C++.
std::string cpp_plain_call(const KeptCase& c);

}  // namespace lamella::verify
LAMELLA_API_END
