// EXPECT_INLINE(got, R"(text)"): compares with a text in the test's own source, compare_page() with a file;
// `lamella accept` rewrites both.
#pragma once

#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace lamella::expect {

/// Where a difference is recorded: the build folder, unless a test of this very mechanism says otherwise.
std::string& pending_folder();

/// Compares; on a difference shows the lines that differ and leaves a record for `lamella accept`.
testing::AssertionResult compare(const char* file, int line, std::string_view got, std::string_view literal);

template <size_t N>
testing::AssertionResult check(const char* file, int line, std::string_view got, const char (&literal)[N]) {
  return compare(file, line, got, std::string_view(literal, N - 1));
}

/// Likewise with a whole file; an empty `got`: there should be none.
testing::AssertionResult compare_page(const std::string& path, std::string_view got);

}  // namespace lamella::expect

/// A literal that begins with a newline is a block: see NOTE: [blocks] in text/inline_text.h.
#define EXPECT_INLINE(...)                                                                                   \
  GTEST_AMBIGUOUS_ELSE_BLOCKER_                                                                              \
  if (const testing::AssertionResult inline_text_ = lamella::expect::check(__FILE__, __LINE__, __VA_ARGS__)) \
    ;                                                                                                        \
  else GTEST_NONFATAL_FAILURE_(inline_text_.failure_message())
