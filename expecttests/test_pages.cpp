// What is expected of each operator's row: a page of its own, expecttests/ops/NAME.txt.
#include <filesystem>
#include <fstream>
#include <set>
#include <unistd.h>
#include <utility>

#include "lamella/dispatch/call.h"
#include "lamella/ops/all.h"
#include "lamella/text/inline_text.h"

#include "expect.h"
#include "page.h"

namespace {
using namespace lamella;
namespace fs = std::filesystem;

constexpr const char* kPages = LAMELLA_SOURCE_DIR "/expecttests/ops";

std::string page_file(const fs::path& folder, const std::string& op) {
  return (folder / (op + ".txt")).string();
}

bool has_page(const Op& op) { return op.form == OpForm::Functional && !op.has(kTestOnly); }

/// Files of a folder that are no operator's page.
std::vector<std::string> strays(const fs::path& folder, const std::set<std::string>& ops) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() != ".txt" || !ops.contains(entry.path().stem().string()))
      out.push_back(entry.path().string());
  return out;
}

class PageTest : public testing::Test {
 public:
  explicit PageTest(const Op& op) : op_(op) {}
  void TestBody() override {
    EXPECT_TRUE(expect::compare_page(page_file(kPages, op_.name), expect::page(op_)));
  }

 private:
  const Op& op_;
};

/// The library's own: other tests add operators while they run.
const std::set<std::string>& operators() {
  static const std::set<std::string> kNames = [] {
    install_operators();
    std::set<std::string> out;
    for (const Op* op : OpTable::current().rows())
      if (has_page(*op)) out.insert(op->name);
    return out;
  }();
  return kNames;
}

[[maybe_unused]] const bool pages_added = [] {
  for (const std::string& name : operators())  // this runs before main
    testing::RegisterTest("Pages", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [op = OpTable::current().find(name)]() -> PageTest* { return new PageTest(*op); });
  return true;
}();

TEST(PagesFolder, HasNoPageWithoutAnOperator) {
  EXPECT_GT(operators().size(), 100u);
  for (const std::string& file : strays(kPages, operators())) EXPECT_TRUE(expect::compare_page(file, ""));
}

/// A folder with planted faults, and what comparing with it leaves for accept.
struct Planted {
  fs::path folder = fs::path(testing::TempDir()) / format("expect_pages_{}", getpid());  // tests run abreast
  const std::set<std::string> ops = {"exp", "log", "sin"};

  Planted() {
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  ~Planted() { fs::remove_all(folder); }

  void write(const std::string& op, std::string_view text) const {
    std::ofstream(page_file(folder, op), std::ios::binary) << text;
  }
  /// What the tests of these operators say, paths aside.
  std::string compared() const {
    const std::string saved = std::exchange(expect::pending_folder(), (folder / "pending").string());
    std::string out;
    const auto say = [&](const testing::AssertionResult& r) {
      if (!r) out += std::string(r.message()).substr(folder.string().size() + 1);
    };
    for (const std::string& op : ops)
      say(expect::compare_page(page_file(folder, op), "page of " + op + "\nline\n"));
    for (const std::string& file : strays(folder, ops))
      if (!fs::is_directory(file)) say(expect::compare_page(file, ""));
    expect::pending_folder() = saved;
    return out;
  }
  /// As `lamella accept` does, which accept_test.py runs.
  void accept() const {
    for (const auto& entry : fs::directory_iterator(folder / "pending")) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string records(std::istreambuf_iterator<char>(in), {});
      for (const verify::PendingText& p : verify::parse_pending(records)) {
        const verify::AcceptedTexts done = verify::accept_texts(p.expected, {&p, 1});
        EXPECT_EQ(done.refused[0], "");
        if (done.source.empty()) fs::remove(p.file);
        else std::ofstream(p.file, std::ios::binary) << done.source;
      }
    }
  }
};

TEST(PagesFolder, EachFaultIsSeenAndMended) {
  const Planted planted;
  planted.write("exp", "page of exp\nline\n");
  planted.write("log", "page of logs\nline\n");
  planted.write("gone", "page of gone\n");
  EXPECT_INLINE(planted.compared(), R"(
      log.txt differs (- expected, + got):
      - page of logs
      + page of log
        line
        
      if it is right, run: lamella accept
      sin.txt is not there (- expected, + got):
      + page of sin
      + line
        
      if it is right, run: lamella accept
      gone.txt should not be there (- expected, + got):
      - page of gone
        
      if it is right, run: lamella accept
      )");
  planted.accept();
  EXPECT_EQ(planted.compared(), "");
  EXPECT_FALSE(fs::exists(page_file(planted.folder, "gone")));
}

TEST(PagesFolder, AnEmptyPageIsNone) {
  const Planted planted;
  planted.write("exp", "");
  const std::string saved = std::exchange(expect::pending_folder(), (planted.folder / "pending").string());
  EXPECT_FALSE(expect::compare_page(page_file(planted.folder, "exp"), ""));
  EXPECT_TRUE(expect::compare_page(page_file(planted.folder, "log"), ""));
  expect::pending_folder() = saved;
}
}  // namespace
