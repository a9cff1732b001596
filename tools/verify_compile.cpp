// Counterexamples as programs: compiled to a shared object, whose main runs in a child of this process.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.h"
#include "verify_more.h"

namespace lamella::tools {

namespace {
namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string first_lines(const std::string& text, int lines) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; lines-- > 0 && std::getline(in, line);) out += "  | " + line.substr(0, 200) + "\n";
  return out;
}

/// One word for the shell.
std::string quoted(const std::string& s) {
  std::string out = "'";
  for (const char c : s) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// The compiler's answer; empty when the object is there.
std::string compile(const fs::path& source, const fs::path& object) {
  const char* chosen = std::getenv("CXX");
  const std::string compiler = chosen && *chosen ? chosen : quoted(LAMELLA_CXX);  // CXX may be "ccache g++"
  std::string command = compiler + " -std=c++20 -O0 -w -fPIC -shared";
  if (!fs::is_directory(LAMELLA_BUILD_INCLUDE)) return "the headers of the build are gone";
  for (const auto& room : fs::directory_iterator(LAMELLA_BUILD_INCLUDE))
    command += " -I" + quoted(room.path().string());
  const fs::path errors = object.parent_path() / "errors";
  command += " -I" + quoted(LAMELLA_PUBLIC_INCLUDE) + " -o " + quoted(object.string()) + " " +
             quoted(source.string()) + " > " + quoted(errors.string()) + " 2>&1";
  const int status = std::system(command.c_str());
  if (status == 0 && fs::exists(object)) return "";
  const std::string said = text_of(errors);
  return said.empty()
             ? "nothing was said: is there a compiler, and room in " + errors.parent_path().string() + "?"
             : said;
}

/// The main of a shared object.
int run_main(const fs::path& object) {
  void* const handle = ::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle) return reinterpret_cast<int (*)()>(::dlsym(handle, "main"))();
  std::printf("%s\n", ::dlerror());
  return 3;
}

/// In the child.
[[noreturn]] void run_to_end(const std::function<int()>& program, const fs::path& output) {
  const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(fd, STDOUT_FILENO);
  ::dup2(fd, STDERR_FILENO);
  ::alarm(20);
  int status = 3;
  try {
    status = program();
  } catch (const std::exception& e) { std::printf("raised: %s\n", e.what()); }
  std::fflush(nullptr);
  ::_exit(status);
}
}  // namespace

namespace {
/// What follows `word` and blanks at the beginning of the line.
bool after(const std::string& line, const std::string& word, std::string& rest) {
  if (!line.starts_with(word + ' ')) return false;
  rest = line.substr(std::min(line.find_first_not_of(' ', word.size()), line.size()));
  return true;
}

/// Lines "got ..." are followed by lines "expected ...": whether the program showed what it was printed for.
std::string judged(const std::string& output, int status) {
  if (WIFSIGNALED(status)) return std::string("it ended by signal ") + ::strsignal(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0 || output.starts_with("raised: ") ||
      output.find("\nraised: ") != std::string::npos)
    return "it raises";
  std::istringstream in(output);
  std::string got, expected;
  size_t pairs = 0, unequal = 0;
  for (std::string line; std::getline(in, line);)
    if (after(line, "expected", expected)) ++pairs, unequal += got != expected;
    else after(line, "got", got);
  if (pairs == 0) return "it prints";
  if (unequal == 0) return "both sides print alike";
  return format("{} of {} results are not as expected", unequal, pairs);
}
}  // namespace

std::optional<int> run_aside(const std::function<int()>& program, const std::string& output) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return std::nullopt;
  if (child == 0) run_to_end(program, output);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

std::string compile_and_run(const std::string& program) {
  const Scratch scratch;
  if (scratch.path.empty()) return "not compiled: no temporary directory (TMPDIR)\n";
  const fs::path source = scratch.path / "shown.cpp", object = scratch.path / "shown.so",
                 output = scratch.path / "output";
  std::ofstream(source) << program;
  const std::string errors = compile(source, object);
  if (!errors.empty()) return "not compiled:\n" + first_lines(errors, 8);
  const std::optional<int> status = run_aside([&] { return run_main(object); }, output);
  if (!status) return "compiled, but no process could be started to run it\n";
  const std::string said = text_of(output);
  return "compiled and run; " + judged(said, *status) + ":\n" + first_lines(said, 24);
}

}  // namespace lamella::tools
