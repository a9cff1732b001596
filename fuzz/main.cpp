// The program around the targets. With libFuzzer: LAMELLA_FUZZ_TARGET says which one runs. Without: replays
// files, `fuzz_replay TARGET [--seconds N] [--seed S] FILES OR FOLDERS...`, so that every build can rerun the
// corpus, and then runs random edits of them for N seconds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "lamella/ops/all.h"

#include "blind.h"

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
std::vector<std::filesystem::path> files_of(const char* path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
}  // namespace

int main(int argc, char** argv) {
  const Target* target = chosen(argc > 1 ? argv[1] : nullptr);
  int first = 2;
  double seconds = 0;
  uint64_t seed = 1;
  for (; first + 1 < argc && !std::strncmp(argv[first], "--", 2); first += 2)
    if (!std::strcmp(argv[first], "--seconds")) seconds = std::atof(argv[first + 1]);
    else if (!std::strcmp(argv[first], "--seed")) seed = std::strtoull(argv[first + 1], nullptr, 10);
  std::vector<std::string> corpus;
  for (int i = first; i < argc; ++i)
    for (const std::filesystem::path& file : files_of(argv[i])) {
      corpus.push_back(read(file));
      std::printf("%s\n", file.filename().c_str());
      std::fflush(stdout);  // the last line names the file that ends the process
      target->run(reinterpret_cast<const uint8_t*>(corpus.back().data()), corpus.back().size());
    }
  std::printf("%zu files of %s replayed\n", corpus.size(), target->name.data());
  if (seconds > 0) {
    const uint64_t before = lamella::fuzz::returned();
    const uint64_t runs = lamella::fuzz::run_blindly(*target, corpus, seconds, seed);
    std::printf("%llu edits of them run, %llu returned without an error, seed %llu\n",
                static_cast<unsigned long long>(runs),
                static_cast<unsigned long long>(lamella::fuzz::returned() - before),
                static_cast<unsigned long long>(seed));
  }
  return corpus.empty() ? 2 : 0;
}
#endif
