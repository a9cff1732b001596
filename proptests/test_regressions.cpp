// Cases that once broke a law, replayed: one text file each in regressions/, in the form that a failing law
// prints.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "lamella/verify/run/kept_case.h"

namespace {
using namespace lamella;
using namespace lamella::verify;
namespace fs = std::filesystem;

class RegressionTest : public testing::Test {
 public:
  explicit RegressionTest(fs::path path) : path_(std::move(path)) {}
  void TestBody() override {
    const KeptCase c = read_kept_case(path_);
    const Verdict v = replay(c);  // raises where the law asks for other arguments than are kept
    EXPECT_NE(v.kind, Verdict::Fail) << find_law(c.law)->statement << "\n" << v.message << "\n" << v.program;
    EXPECT_EQ(v.kind == Verdict::Discard, says_discarded())
        << "a discarded case holds nothing: reduce the failure "
           "anew, or say in the file that it is out of scope";
  }

 private:
  /// A line "discarded: why": what once failed lies outside the law today.
  bool says_discarded() const {
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("# discarded: ")) return true;
    return false;
  }

  fs::path path_;
};

[[maybe_unused]] const bool registered = [] {
  for (const fs::path& path : record_files(fs::path(LAMELLA_SOURCE_DIR) / "proptests/regressions"))
    testing::RegisterTest("Regressions", path.stem().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [path]() -> RegressionTest* { return new RegressionTest(path); });
  return true;
}();

/// Lanes of two levels that both ask for different numbers get six of them.
TEST(RandomLanes, OfNestedLevelsDrawApart) {
  const Function draw = [](const Tensors&) {
    return Tensors{lamella::call("rand", {Dims{}, Value{}, DType::F64})[0]};
  };
  const Function inner = vmap(draw, {{0}, {0}, Randomness::Different, 2});
  const Tensor y = vmap(inner, {{0}, {0}, Randomness::Different, 3})({})[0];
  std::vector<double> values = y.to_vector();
  std::sort(values.begin(), values.end());
  EXPECT_EQ(std::unique(values.begin(), values.end()) - values.begin(), 6);
}
}  // namespace
