// Questions about files that are written whole: what they hold, what they were, full disks, two writers.
#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibration_aids.h"
#include "calibrations.h"
#include "whole_file.h"

namespace lamella::tools {

namespace {
namespace fs = std::filesystem;

/// A file of drawn permissions behind up to three links, absolute ones or relative; the name to write to.
fs::path drawn_file(Dice& dice, const fs::path& folder) {
  const fs::path file = folder / "file";
  write_plainly(file, dice.bytes(dice.below(3000)));
  fs::permissions(file, fs::perms(0600 | dice.below(0100)));
  fs::path name = file;
  for (uint64_t k = dice.below(4); k > 0; --k) {
    const fs::path link = folder / ("link" + std::to_string(k));
    fs::create_symlink(dice.one_in(2) ? name : name.filename(), link);
    name = link;
  }
  return name;
}

std::string files_are_replaced_in_place() {
  Dice dice(1);
  for (int round = 0; round < 24; ++round) {
    const Folder scratch;
    const fs::path name = drawn_file(dice, scratch.path);
    const Listing before = listing_of(scratch.path);
    const std::string bytes = dice.bytes(dice.of<size_t>({0, 1, 700, 4096, 8191, 8192, 8193, 50000}));
    write_whole_file(name, bytes);
    if (const std::string d = first_difference(read_plainly(name), bytes); !d.empty()) return d;
    if (const Listing after = listing_of(scratch.path); after != before)
      return format("{} becomes {}", str(before), str(after));
  }
  return "";
}

std::string pipes_are_written_to() {
  const Folder scratch;
  const fs::path pipe = scratch.path / "pipe";
  LAMELLA_CHECK(::mkfifo(pipe.c_str(), 0600) == 0, Usage, "no pipe in {}", scratch.path.string());
  const Listing before = listing_of(scratch.path);
  const int fd = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const std::string bytes = Dice(2).bytes(3000);
  const std::string wrong = raised_by([&] { write_whole_file(pipe, bytes); });
  std::string got(4000, '\0');
  got.resize(size_t(std::max<ssize_t>(::read(fd, got.data(), got.size()), 0)));
  ::close(fd);
  if (!wrong.empty()) return wrong;
  if (const Listing after = listing_of(scratch.path); after != before)
    return format("{} becomes {}", str(before), str(after));
  return first_difference(got, bytes);
}

/// No file of this process gets longer than that, for a while.
class LongestFile {
 public:
  explicit LongestFile(size_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{std::min<rlim_t>(bytes, before_.rlim_max), before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~LongestFile() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  LongestFile(const LongestFile&) = delete;
  LongestFile& operator=(const LongestFile&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

std::string full_disks_are_noticed() {
  Dice dice(3);
  for (const size_t room : {0, 1, 100, 4096, 8191, 20000})
    for (const size_t size : {room / 2, room, room + 1, 2 * room + 30, room + 9000})
      for (const bool there : {false, true}) {
        const Folder scratch;
        const fs::path name = there ? drawn_file(dice, scratch.path) : scratch.path / "file";
        const Listing before = listing_of(scratch.path);
        const std::string old = read_plainly(name), bytes = dice.bytes(size);
        std::string raised;
        {
          const LongestFile limit(room);
          raised = raised_by([&] { write_whole_file(name, bytes); });
        }
        if (raised.empty() != (size <= room))
          return format("{} bytes where {} fit: {}", size, room, raised.empty() ? "no error" : raised);
        if (!first_difference(read_plainly(name), size <= room ? bytes : old).empty())
          return format("{} bytes where {} fit: the file is not as {}", size, room,
                        size <= room ? "given" : "it was");
        if (size > room && listing_of(scratch.path) != before)
          return format("after an error {} is {}", str(before), str(listing_of(scratch.path)));
      }
  return "";
}

/// Texts of one letter: which one, or 0 when the file holds anything else.
char letter_of(const std::string& text, size_t size) {
  if (text.size() != size || text.find_first_not_of(text[0]) != std::string::npos) return 0;
  return text[0];
}

constexpr size_t kText = 1000000;
bool writes(const fs::path& file, const std::string& text) {
  return raised_by([&] { write_whole_file(file, text); }).empty();
}

int stopped = -1, go_on = -1;
/// Says that it was stopped, wherever that was, and waits.
void wait_for_the_other(int) {
  char c = 0;
  [[maybe_unused]] const ssize_t n = ::write(stopped, &c, 1) + ::read(go_on, &c, 1);
}

/// Writes a text, is stopped so many microseconds later, and goes on when it is told to.
[[noreturn]] void write_in_two_steps(const fs::path& file, int microseconds) {
  const std::string text(kText, 'b');
  std::signal(SIGALRM, wait_for_the_other);
  const itimerval once{{0, 0}, {0, microseconds}};
  ::setitimer(ITIMER_REAL, &once, nullptr);
  const bool well = writes(file, text);
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::_exit(well ? 0 : 1);
}

/// One process writes while another has been stopped in the middle of the same.
std::string two_writers_meet(const fs::path& file, int microseconds) {
  int there[2], back[2];
  LAMELLA_CHECK(::pipe2(there, O_CLOEXEC) == 0 && ::pipe2(back, O_CLOEXEC) == 0, Usage, "no pipe");
  const pid_t other = ::fork();
  LAMELLA_CHECK(other >= 0, Usage, "no process");
  if (other == 0) {
    ::close(there[0]), ::close(back[1]);
    stopped = there[1], go_on = back[0];
    write_in_two_steps(file, microseconds);
  }
  ::close(there[1]), ::close(back[0]);
  char c = 0;
  [[maybe_unused]] ssize_t n = ::read(there[0], &c, 1);  // 0 bytes where it was not stopped
  const bool mine = writes(file, std::string(kText, 'a'));
  const char between = letter_of(read_plainly(file), kText);
  ::close(back[1]);
  int status = 0;
  ::waitpid(other, &status, 0);
  ::close(there[0]);
  if (!mine || status != 0) return "of two processes that write one file at once one fails";
  if (between != 'a' || !letter_of(read_plainly(file), kText)) return "texts of two writers mix";
  return "";
}

std::string two_writers_leave_one_text() {
  const Folder scratch;
  for (const int microseconds : {30, 60, 120, 240, 480}) {
    const std::string wrong = two_writers_meet(scratch.path / "file", microseconds);
    if (!wrong.empty()) return wrong;
  }
  const Listing after = listing_of(scratch.path);
  return after.size() == 1 ? "" : "they leave " + str(after);
}
}  // namespace

Calibrations calibrations_of_files() {
  return {
      {"files_are_replaced_in_place",
       "A file that is written again holds the new bytes, keeps its permissions and the links to it, and has "
       "no neighbour that was not there.",
       guarded<files_are_replaced_in_place>},
      {"pipes_are_written_to", "A pipe that is given as a file gets the bytes, and stays a pipe.",
       guarded<pipes_are_written_to>},
      {"full_disks_are_noticed",
       "What does not fit is an error, after which the folder and the file are as they were.",
       guarded<full_disks_are_noticed>},
      {"two_writers_leave_one_text",
       "Two processes that write one file at once leave the whole text of one of them, and nothing else.",
       guarded<two_writers_leave_one_text>},
  };
}

}  // namespace lamella::tools
