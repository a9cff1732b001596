// Random edits, and a handler that saves the input that ends the process.
#include "blind.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <unistd.h>

namespace lamella::fuzz {

namespace {
constexpr size_t kLongest = 4096;
constexpr unsigned kHangSeconds = 10;

const std::string* running = nullptr;  // read by the handler
char finding_path[64];

extern "C" void save_and_end(int signal) {
  const int file = ::open(finding_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0 && running) (void)!::write(file, running->data(), running->size());
  (void)!::write(2, "finding saved\n", 14);
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

class Editor {
 public:
  Editor(const std::vector<std::string>& corpus, uint64_t seed) : corpus_(corpus), random_(seed) {}
  std::string next() {
    std::string text = one();
    for (size_t edits = 1 + below(6); edits > 0; --edits) edit(text);
    text.resize(std::min(text.size(), kLongest));
    return text;
  }

 private:
  size_t below(size_t n) { return n ? random_() % n : 0; }
  char byte() { return char(random_()); }
  const std::string& one() {
    static const std::string kNothing;
    return corpus_.empty() ? kNothing : corpus_[below(corpus_.size())];
  }
  void edit(std::string& text) {
    const size_t at = below(text.size() + 1);
    const std::string& other = one();
    const size_t from = below(other.size());
    const std::string piece = other.substr(from, 1 + below(24));
    switch (below(7)) {
      case 0: text.insert(at, 1, byte()); break;
      case 1: text.insert(at, piece); break;
      case 2: text.replace(at, piece.size(), piece); break;
      case 3: text.erase(at, 1 + below(16)); break;
      case 4: text += std::string(1 + below(16), byte()); break;
      default:
        if (at < text.size()) text[at] = below(2) ? byte() : char(text[at] ^ char(1 << below(8)));
    }
  }
  const std::vector<std::string>& corpus_;
  std::mt19937_64 random_;
};
}  // namespace

uint64_t run_blindly(const Target& target, const std::vector<std::string>& corpus, double seconds,
                     uint64_t seed) {
  using Clock = std::chrono::steady_clock;
  std::snprintf(finding_path, sizeof finding_path, "finding-%.*s", int(target.name.size()),
                target.name.data());
  for (const int s : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM}) std::signal(s, save_and_end);
  Editor editor(corpus, seed);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  uint64_t runs = 0;
  for (; Clock::now() < end; ++runs) {
    const std::string text = editor.next();
    running = &text;
    ::alarm(kHangSeconds);
    target.run(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    running = nullptr;
  }
  ::alarm(0);
  return runs;
}

}  // namespace lamella::fuzz
