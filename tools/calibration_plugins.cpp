// Questions about what a process loads and registers: whose file a path means, and what the first to ask
// find.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "calibration_aids.h"
#include "calibrations.h"
#include "plugin.h"

namespace lamella::tools {

namespace {
namespace fs = std::filesystem;

/// The words of a refusal without the path, which is what differs.
std::string refusal_of(const std::string& path) {
  std::string text = raised_by([&] { load_plugin(path); });
  const std::string name = fs::path(path).filename().string();
  for (size_t at; (at = text.find(name)) != std::string::npos;) {
    size_t from = at;
    while (from > 0 && text[from - 1] != ' ' && text[from - 1] != '"') --from;
    text.erase(from, at + name.size() - from);
  }
  return text;
}

/// A file that is no library is refused as that, from wherever and however it is named.
std::string paths_mean_files() {
  const Folder scratch;
  const fs::path folder = scratch.path / "inside";
  fs::create_directory(folder);
  const auto spellings = [&]() -> std::string {
    fs::current_path(folder);
    Dice dice(23);
    for (int round = 0; round < 12; ++round) {
      const std::string name =
          dice.of({"lib", "plugin", "x"}) + std::to_string(round) + dice.of({".so", "", ".txt"});
      write_plainly(folder / name, dice.bytes(200));
      const std::string want = refusal_of((folder / name).string());
      if (want.empty()) return "a file of drawn bytes is loaded";
      for (const std::string& path :
           {name, "./" + name, "../inside/" + name, (folder / ".." / "inside" / name).string()})
        if (const std::string got = refusal_of(path); got != want)
          return format("\"{}\" is refused with: {}; by its whole path with: {}", path, got, want);
    }
    return "";
  };
  return said_apart(spellings, 10);
}

/// `lamella doctor` asks the table from several threads before anybody else has.
std::string first_threads_find_all() {
  const Folder scratch;
  for (int round = 0; round < 3; ++round) {
    const fs::path said = scratch.path / "said";
    const int status = status_of_program({"lamella", "doctor"}, said, size_t{1} << 20);
    if (status != 0) return format("lamella doctor ends with {}: {}", status, read_plainly(said));
  }
  return "";
}
}  // namespace

Calibrations calibrations_of_plugins() {
  return {
      {"paths_mean_files",
       "A plug-in's path means the file that it names from the current folder, however it is spelled.",
       guarded<paths_mean_files>},
      {"first_threads_find_all",
       "Threads that are the first of a process to ask for operators, one while another registers them, find "
       "all.",
       guarded<first_threads_find_all>},
  };
}

}  // namespace lamella::tools
