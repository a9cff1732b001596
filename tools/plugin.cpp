// dlopen, a look at the stamp, and a name to call.
#include "plugin.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <dlfcn.h>
#include <exception>
#include <filesystem>
#include <iterator>
#include <unistd.h>

#include "lamella/core/version.h"
#include "lamella/dispatch/plugin.h"
#include "lamella/ops/all.h"

namespace lamella::tools {

namespace {
/// The words of what is in flight, whatever it is.
std::string raised() {
  try {
    throw;
  } catch (const std::exception& e) { return e.what(); } catch (...) {
    return "something that is no std::exception";
  }
}

/// While a plug-in is loaded: its path, and what of it runs.
const std::string* being_loaded = nullptr;
const char* running = "";

/// An exception does not pass the loader, so what a static initialiser raises ends the program; it says why.
[[noreturn]] void could_not_load() {
  std::fprintf(stderr, "lamella: plug-in: %s of \"%s\" raised: %s\n", running, being_loaded->c_str(),
               std::current_exception() ? raised().c_str() : "nothing, and called std::terminate");
  std::fflush(nullptr);
  std::_Exit(2);
}

/// A program that ends with 0 before it has done anything looks like a run without failures.
void ended_meanwhile() {
  if (!being_loaded) return;
  std::fprintf(stderr, "lamella: plug-in: %s of \"%s\" ended the program\n", running, being_loaded->c_str());
  std::fflush(nullptr);
  std::_Exit(2);
}

void say(std::string_view text) { (void)!::write(STDERR_FILENO, text.data(), text.size()); }
/// The loader maps a file by what its head says: beyond the end of one that is cut off lies SIGBUS.
void crashed(int signal) {
  say("lamella: plug-in: "), say(running), say(" of \""), say(*being_loaded);
  say(signal == SIGBUS ? "\" crashed (SIGBUS): the file is cut off, perhaps\n" : "\" crashed\n");
  ::_exit(2);
}

/// Whatever ends the program while one lives is told of. Who handles a signal already (a sanitizer) goes on
/// doing so.
class Loading {
 public:
  explicit Loading(const std::string& path) : terminate_(std::set_terminate(could_not_load)) {
    static const bool asked [[maybe_unused]] = std::atexit(ended_meanwhile) == 0;
    being_loaded = &path;
    running = "a static initialiser";
    for (size_t k = 0; k < std::size(kSignals); ++k) {
      ::sigaction(kSignals[k], nullptr, &before_[k]);
      struct sigaction action {};
      action.sa_handler = crashed;
      if (before_[k].sa_handler == SIG_DFL) ::sigaction(kSignals[k], &action, nullptr);
    }
  }
  ~Loading() {
    for (size_t k = 0; k < std::size(kSignals); ++k) ::sigaction(kSignals[k], &before_[k], nullptr);
    std::set_terminate(terminate_);
    being_loaded = nullptr;
  }
  Loading(const Loading&) = delete;

 private:
  static constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  std::terminate_handler terminate_;
  struct sigaction before_[std::size(kSignals)] = {};
};

/// NOTE: [versions] The version that a plug-in's headers are of, if the loader misses the symbol of another
/// one.
std::string other_version(std::string_view why) {
  constexpr std::string_view kBefore = "lamella_linked_here_is_not_version_", kAfter = "_of_the_headers";
  const size_t begin = why.find(kBefore);
  const size_t end = begin == why.npos ? begin : why.find(kAfter, begin);
  if (end == why.npos) return "";
  std::string version(why.substr(begin + kBefore.size(), end - begin - kBefore.size()));
  std::ranges::replace(version, '_', '.');
  return version;
}

void* load(const std::string& path) {
  void* library = nullptr;
  std::string wrong;
  try {
    // A path with a slash: a bare name would be looked for in the system's folders instead. Never unloaded:
    // rows point into it.
    library = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  } catch (...) { wrong = raised(); }
  LAMELLA_CHECK(wrong.empty(), Usage, "plug-in: a static initialiser of \"{}\" raised: {}", path, wrong);
  if (!library) {
    const char* const why = dlerror();
    const std::string other = other_version(why ? why : "");
    LAMELLA_CHECK(
        other.empty(), Usage,
        "plug-in: \"{}\" was compiled with headers of lamella {}, expected {}: compile it again with "
        "this version's headers",
        path, other, version());
    fail(ErrorCode::Usage, "plug-in: \"{}\" cannot be loaded: {}", path, why ? why : "for no stated reason");
  }
  return library;
}

std::string str(const PluginStamp& s) {
  return format("abi {}, compiler {}, sizes {} {} {} {} {} {} {}", s.abi, s.compiler, s.op_def, s.op, s.table,
                s.schema, s.tensor, s.storage, s.state);
}
}  // namespace

namespace {
/// Those of examples/ are built when they are asked for.
std::string how_it_is_built(const std::filesystem::path& path) {
  if (path.parent_path().filename() != "plugins") return "";
  return "; ./run build plugin_" + path.stem().string() + " builds examples/" + path.stem().string() + ".cpp";
}
}  // namespace

void load_plugin(const std::string& path) {
  std::error_code ignored;
  LAMELLA_CHECK(std::filesystem::is_regular_file(path, ignored), Usage, "plug-in: there is no file \"{}\"{}",
                path, how_it_is_built(path));
  install_operators();                   // a plug-in may replace a built-in operator
  static std::deque<std::string> paths;  // rows name their origin
  const ScopedOrigin origin(paths.emplace_back(path));
  const Loading loading(path);
  void* const library = load(path);
  using Entry = void (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, kPluginEntry));
  const auto* const stamp = static_cast<const PluginStamp*>(dlsym(library, kPluginStamp));
  LAMELLA_CHECK(entry && stamp, Usage,
                "plug-in: \"{}\" exports no {}; expected LAMELLA_PLUGIN() of lamella/dispatch/plugin.h", path,
                entry ? kPluginStamp : kPluginEntry);
  const PluginStamp ours;
  LAMELLA_CHECK(stamp->magic == ours.magic && stamp->abi == ours.abi, Usage,
                "plug-in: \"{}\" was made for ABI {} of lamella, expected {}: compile it with this version's "
                "headers",
                path, stamp->magic == ours.magic ? std::to_string(stamp->abi) : "\"no number\"", ours.abi);
  LAMELLA_CHECK(*stamp == ours, Usage,
                "plug-in: \"{}\" was compiled from other headers or by another compiler ({}), expected ({}): "
                "compile it again",
                path, str(*stamp), str(ours));
  std::string wrong;
  running = "lamella_plugin()";
  try {
    entry();
    return;
  } catch (...) { wrong = raised(); }
  fail(ErrorCode::Usage, "plug-in: lamella_plugin() of \"{}\" raised: {}", path, wrong);
}

}  // namespace lamella::tools
