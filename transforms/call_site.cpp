// Return addresses, and their lines: by the stack unwinder, and by addr2line where there is one.
#include "lamella/transforms/call_site.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <map>
#include <memory>
#include <mutex>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include "lamella/core/check.h"

extern char** environ;

namespace lamella {

namespace {
constexpr size_t kMostFrames = 48, kMostLines = 6;

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* out) {
  auto& site = *static_cast<CallSite*>(out);
  void* const address = reinterpret_cast<void*>(_Unwind_GetIP(context));
  if (!address || site.size() == kMostFrames) return _URC_END_OF_STACK;
  site.push_back(address);
  return _URC_NO_REASON;
}

/// A file that is loaded, and where in it the call of a return address lies.
struct Place {
  std::string file;
  uintptr_t offset = 0;
};

struct Search {
  uintptr_t address;
  Place found;
};

int look_into(dl_phdr_info* info, size_t, void* out) {
  auto& search = *static_cast<Search*>(out);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || search.address - begin >= part.p_memsz) continue;
    search.found = {info->dlpi_name, search.address - info->dlpi_addr};
    return 1;
  }
  return 0;
}

/// The file of the program itself has no name in the list of those that are loaded.
std::string program_file() {
  std::string path(4096, '\0');
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(n < 0 ? 0 : size_t(n));
  return path;
}

/// Of the call, not of what comes after it: a return address may belong to the next line.
Place place_of(void* address) {
  Search search{reinterpret_cast<uintptr_t>(address) - 1, {}};
  dl_iterate_phdr(look_into, &search);
  if (search.found.offset && search.found.file.empty()) search.found.file = program_file();
  return search.found;
}

std::string hex(uintptr_t n) {
  char text[20];
  return "0x" + std::string(text, std::to_chars(text, text + sizeof text, n, 16).ptr);
}

/// What a program prints; empty when it cannot be run or fails.
std::string output_of(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> args;
  for (const std::string& word : command) args.push_back(const_cast<char*>(word.c_str()));
  args.push_back(nullptr);
  pid_t child = 0;
  const bool runs = posix_spawnp(&child, args[0], &actions, nullptr, args.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string out;
  char part[4096];
  for (ssize_t n; runs && (n = read(ends[0], part, sizeof part)) > 0;) out.append(part, size_t(n));
  close(ends[0]);
  int status = 1;
  if (runs && waitpid(child, &status, 0) != child) status = 1;
  return status == 0 ? out : "";
}

/// The frames of these offsets in one file; empty when no tool knows.
std::vector<std::vector<CallFrame>> frames_in(const std::string& file,
                                              const std::vector<uintptr_t>& offsets) {
  // A build may have replaced the program that runs; what runs is still to be had.
  const std::string here = file.ends_with(" (deleted)") ? format("/proc/{}/exe", getpid()) : file;
  for (const char* tool : {"addr2line", "llvm-addr2line"}) {
    std::vector<std::string> command{tool, "-a", "-f", "-C", "-i", "-e", here};
    for (const uintptr_t offset : offsets) command.push_back(hex(offset));
    auto frames = parse_frames(output_of(command));
    if (frames.size() == offsets.size()) return frames;
  }
  return {};
}

/// What was found before: programs that go on after errors make them at the same places. What tools said, by
/// file and offset; forgotten when it is much.
class FramesFound {
 public:
  std::vector<std::vector<CallFrame>> operator()(const std::string& file, const std::vector<uintptr_t>& at) {
    const std::lock_guard lock(guard_);
    std::map<uintptr_t, std::vector<CallFrame>>& known = by_file_[file];
    std::vector<uintptr_t> news;
    if (known.size() > kMost) known.clear();
    for (const uintptr_t offset : at)
      if (!known.contains(offset)) news.push_back(offset);
    if (!news.empty()) {
      auto frames = frames_in(file, news);
      if (frames.empty()) return {};
      for (size_t i = 0; i < news.size(); ++i) known[news[i]] = std::move(frames[i]);
    }
    std::vector<std::vector<CallFrame>> out;
    for (const uintptr_t offset : at) out.push_back(known[offset]);
    return out;
  }

 private:
  static constexpr size_t kMost = 1 << 14;
  std::mutex guard_;
  std::map<std::string, std::map<uintptr_t, std::vector<CallFrame>>> by_file_;
};

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? text.get() : name;
}

/// Without arguments, and without what is only noise in a line: "train" of "(anonymous
/// namespace)::train(int)".
std::string short_name(std::string name) {
  static const std::string kUnnamed = "(anonymous namespace)::", kCall = "operator()";
  for (size_t at; (at = name.find(kUnnamed)) != std::string::npos;) name.erase(at, kUnnamed.size());
  const size_t call = name.find(kCall);
  return name.substr(0, name.find('(', call == std::string::npos ? 0 : call + kCall.size()));
}

std::string frame_text(const CallFrame& f, const Place& place) {
  const bool named = !f.function.empty() && !f.function.starts_with("std::");
  const std::string name = named ? "in " + short_name(f.function) : "";
  if (f.line > 0) return format("\n    {}:{}{}{}", f.file, f.line, named ? " " : "", name);
  const std::string module = place.file.substr(place.file.rfind('/') + 1);
  return format("\n    {}{}({}+{})", name, name.empty() ? "" : " ", module, hex(place.offset));
}

bool starts_program(const CallFrame& f) {
  return f.function == "main" || f.function.starts_with("__libc_start") || f.function == "_start";
}

struct Known {
  Place place;
  std::vector<CallFrame> frames;
};

std::vector<Known> known_of(const CallSite& site) {
  std::vector<Known> out;
  std::map<std::string, std::vector<size_t>> by_file;
  for (void* const address : site) {
    out.push_back({place_of(address), {}});
    if (!out.back().place.file.empty()) by_file[out.back().place.file].push_back(out.size() - 1);
  }
  for (const auto& [file, members] : by_file) {
    std::vector<uintptr_t> offsets;
    for (const size_t i : members) offsets.push_back(out[i].place.offset);
    static FramesFound found;
    auto frames = found(file, offsets);
    for (size_t k = 0; k < frames.size(); ++k) out[members[k]].frames = std::move(frames[k]);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    Dl_info info;
    if (!out[i].frames.empty() || !dladdr(static_cast<char*>(site[i]) - 1, &info) || !info.dli_sname)
      continue;
    out[i].frames = {{demangled(info.dli_sname), "", 0}};
  }
  return out;
}
/// What is said of a frame.
struct Line {
  CallFrame frame;
  Place place;
};

/// The frames that are shown: those of this library only if there are no others.
std::vector<Line> lines_of(const std::vector<Known>& known) {
  std::vector<Line> out;
  for (const bool all : {false, true}) {
    for (const Known& k : known) {
      for (const CallFrame& f : k.frames) {
        if (out.size() == kMostLines || f.function == "_start" || f.function.starts_with("__libc_start"))
          return out;
        if (!all && is_library_frame(f)) continue;
        out.push_back({f, k.place});
        if (starts_program(f)) return out;
      }
      if (k.frames.empty() && out.size() < kMostLines && !k.place.file.empty()) out.push_back({{}, k.place});
    }
    if (!out.empty()) return out;
  }
  return out;
}
}  // namespace

[[gnu::noinline]] CallSite call_site() {
  CallSite site;
  _Unwind_Backtrace(add_frame, &site);
  if (!site.empty()) site.erase(site.begin());  // this function
  return site;
}

std::vector<std::vector<CallFrame>> parse_frames(std::string_view output) {
  std::vector<std::vector<CallFrame>> out;
  std::string function;
  bool has_function = false;
  while (!output.empty()) {
    const size_t end = std::min(output.find('\n'), output.size());
    const std::string line(output.substr(0, end));
    output.remove_prefix(std::min(end + 1, output.size()));
    if (line.starts_with("0x")) {
      out.emplace_back();
      has_function = false;
    } else if (!has_function) {
      function = line == "??" ? "" : line;
      has_function = true;
    } else {
      CallFrame f{function, "", 0};
      const size_t colon = line.rfind(':');
      if (colon != std::string::npos && !line.starts_with("??")) f.line = std::atoi(line.c_str() + colon + 1);
      if (f.line > 0) f.file = line.substr(0, colon);
      if (!out.empty() && (f.line > 0 || !f.function.empty())) out.back().push_back(std::move(f));
      has_function = false;
    }
  }
  return out;
}

bool is_library_frame(const CallFrame& f) {
  static const std::string kHere = __FILE__, kRoot = kHere.substr(0, kHere.rfind("transforms/"));
  // Lines are surer than names: what was inlined may bear that of the function around it.
  if (f.file.empty()) return f.function.starts_with("std::") || f.function.starts_with("lamella::");
  if (f.file.find("/include/c++/") != std::string::npos) return true;
  for (const char* room : {"core/", "dispatch/", "ops/", "transforms/"})
    if (f.file.starts_with(kRoot + room) || f.file.find(std::string("/lamella/") + room) != std::string::npos)
      return true;
  return false;
}

std::string call_site_text(const CallSite& site) {
  std::string out;
  for (const Line& line : lines_of(known_of(site))) out += frame_text(line.frame, line.place);
  return out;
}

std::vector<std::string> call_site_functions(const CallSite& site) {
  std::vector<std::string> out;
  for (Line& line : lines_of(known_of(site)))
    if (!line.frame.function.empty()) out.push_back(std::move(line.frame.function));
  return out;
}

}  // namespace lamella
