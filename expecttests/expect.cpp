// Comparing with inline texts and pages, and recording differences, one file of records per test.
#include "expect.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "lamella/core/check.h"
#include "lamella/text/inline_text.h"

namespace lamella::expect {
namespace {
namespace fs = std::filesystem;

std::string test_name(const testing::TestInfo* test) {
  return test ? std::string(test->test_suite_name()) + "." + test->name() : "outside";
}

fs::path record_file(const std::string& test) {
  std::string name = test;
  for (char& c : name)
    if (c == '/') c = '-';
  return fs::path(pending_folder()) / (name + ".pending");
}

/// A test that starts anew has nothing pending: what an earlier run of it left must not be accepted later.
class ForgetsFormerRuns : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    std::error_code none;
    fs::remove(record_file(test_name(&test)), none);
  }
};

[[maybe_unused]] const bool kListens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new ForgetsFormerRuns);  // GoogleTest owns it
  return true;
}();

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

testing::AssertionResult differs(std::string_view what, const std::string& path, int line,
                                 std::string_view source, std::string_view expected, std::string_view got) {
  verify::PendingText p;
  p.test = test_name(testing::UnitTest::GetInstance()->current_test_info());
  p.file = path;
  p.line = line;
  p.source_hash = verify::source_hash(source);
  p.expected = expected;
  p.got = got;
  fs::create_directories(pending_folder());
  std::ofstream(record_file(p.test), std::ios::binary | std::ios::app) << str(p);
  return testing::AssertionFailure() << what << " (- expected, + got):\n"
                                     << verify::line_diff(expected, got)
                                     << "if it is right, run: lamella accept\n";
}
}  // namespace

std::string& pending_folder() {
  static std::string folder = LAMELLA_BUILD_DIR "/expect-pending";
  return folder;
}

testing::AssertionResult compare(const char* file, int line, std::string_view got, std::string_view literal) {
  const std::string expected = verify::unindent(literal);
  if (expected == got) return testing::AssertionSuccess();
  // `file` is as the compiler was told, which runs in the build's folder.
  const std::string path = fs::weakly_canonical(fs::path(LAMELLA_BUILD_DIR) / file).string();
  return differs("the text differs", path, line, read(path), expected, got);
}

testing::AssertionResult compare_page(const std::string& path, std::string_view got) {
  const bool there = fs::exists(path);
  const std::string expected = there ? read(path) : "";
  if (there != got.empty() && expected == got) return testing::AssertionSuccess();
  const std::string_view what = got.empty() ? "should not be there" : there ? "differs" : "is not there";
  return differs(format("{} {}", path, what), path, 0, expected, expected, got);
}

}  // namespace lamella::expect
