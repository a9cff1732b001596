// Cases that once broke a law, replayed: one text file each in regressions/, in the form that a failing law
// prints.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "lamella/dispatch/table.h"
#include "lamella/verify/law.h"

namespace {
using namespace lamella;
using namespace lamella::verify;
namespace fs = std::filesystem;

/// "# why", "law ID", "operator NAME", "choices 0 17 …", one a line.
struct Regression {
  std::string law, op;
  Choices choices;
};

Regression read(const fs::path& path) {
  Regression r;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "law") words >> r.law;
    if (key == "operator") words >> r.op;
    if (key != "choices") continue;
    for (uint32_t w; words >> w;) r.choices.push_back(w);
  }
  return r;
}

class RegressionTest : public testing::Test {
 public:
  explicit RegressionTest(fs::path path) : path_(std::move(path)) {}
  void TestBody() override {
    const Regression r = read(path_);
    const Law* law = find_law(r.law);
    ASSERT_TRUE(law) << path_ << ": there is no law \"" << r.law << "\"";
    const Op* op = OpTable::current().find(r.op);
    ASSERT_TRUE(op) << path_ << ": there is no operator \"" << r.op << "\"";
    const Verdict v = run_check(*law, *op, r.choices);
    EXPECT_NE(v.kind, Verdict::Fail) << law->statement << "\n" << v.message << "\n" << v.program;
  }

 private:
  fs::path path_;
};

[[maybe_unused]] const bool registered = [] {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(LAMELLA_SOURCE_DIR) / "proptests/regressions"))
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths)
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
