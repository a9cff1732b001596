// The program around the targets. With libFuzzer: LAMELLA_FUZZ_TARGET says which one runs. Without: replays
// files, `fuzz_replay TARGET FILES OR FOLDERS...`, so that every build can rerun the corpus.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "lamella/ops/all.h"

#include "target.h"

namespace {
using lamella::fuzz::Target;

const Target* chosen(const char* name) {
  lamella::install_operators();
  if (const Target* t = lamella::fuzz::find_target(name ? name : "")) return t;
  std::fprintf(stderr, "there is no target \"%s\"; there are:", name ? name : "");
  for (const Target& t : lamella::fuzz::targets()) std::fprintf(stderr, " %s", t.name.data());
  std::fprintf(stderr, "\n");
  std::exit(2);
}
}  // namespace

#if LAMELLA_FUZZ
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Target* const target = chosen(std::getenv("LAMELLA_FUZZ_TARGET"));
  target->run(data, size);
  return 0;
}
#else
namespace {
void replay(const Target& target, const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::printf("%s\n", path.filename().c_str());
  std::fflush(stdout);  // the last line names the file that ends the process
  target.run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}
}  // namespace

int main(int argc, char** argv) {
  const Target* target = chosen(argc > 1 ? argv[1] : nullptr);
  int replayed = 0;
  for (int i = 2; i < argc; ++i) {
    std::vector<std::filesystem::path> files;
    if (!std::filesystem::is_directory(argv[i])) files.emplace_back(argv[i]);
    else
      for (const auto& entry : std::filesystem::directory_iterator(argv[i])) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const std::filesystem::path& file : files) {
      replay(*target, file);
      ++replayed;
    }
  }
  std::printf("%d files of %s replayed\n", replayed, target->name.data());
  return replayed ? 0 : 2;
}
#endif
