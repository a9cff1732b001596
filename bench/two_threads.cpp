// Do two threads gain what two processes of one thread each gain? Call by call in turn, in one run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "lamella/lamella.h"

namespace lamella {
namespace {

using Call = std::function<void()>;
struct Row {
  std::string_view name;
  std::function<Call()> make;
  int rounds_each;  ///< of this row one round stands for so many of the others
};

double microseconds(const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

double quantile(std::vector<double> all, double q) {
  std::ranges::sort(all);
  return all[size_t(q * double(all.size() - 1))];
}

/// A second process that makes the same call whenever it is told to. It waits in a read: one that looks every
/// 50 us whether it may go takes a tenth of its processor from the threads.
class Beside {
 public:
  explicit Beside(const Row& row) {
    void* const memory =
        ::mmap(nullptr, sizeof(Said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || ::pipe(to_) != 0 || (child_ = ::fork()) < 0) std::abort();
    said_ = new (memory) Said;
    if (child_ == 0) serve(row);
  }
  ~Beside() {
    tell('e');
    ::waitpid(child_, nullptr, 0);
    ::close(to_[0]), ::close(to_[1]);
    ::munmap(said_, sizeof(Said));
  }
  Beside(const Beside&) = delete;
  void go() const { tell('g'); }
  double took(int round) const {
    while (said_->done < round) {
      if (::waitpid(child_, nullptr, WNOHANG) == child_) {
        std::fprintf(stderr, "two_threads: the second process ended in round %d\n", round);
        std::exit(1);
      }
      ::usleep(20);
    }
    return said_->took;
  }

 private:
  struct Said {
    std::atomic<int> done{0};
    double took = 0;
  };
  void tell(char what) const {
    if (::write(to_[1], &what, 1) != 1) std::abort();
  }
  [[noreturn]] void serve(const Row& row) const {
    set_threads(1);
    const Call call = row.make();
    call();
    char what = 0;
    for (int round = 1; ::read(to_[0], &what, 1) == 1 && what == 'g'; ++round) {
      said_->took = microseconds(call);
      said_->done = round;
    }
    ::_exit(0);
  }
  int to_[2];
  pid_t child_ = 0;
  Said* said_ = nullptr;
};

void measure(const Row& row, int rounds) {
  const Beside beside(row);
  const Call call = row.make();
  std::vector<double> one, two, pair;
  for (int k = 1; k <= std::max(rounds / row.rounds_each, 1); ++k) {
    set_threads(1);
    one.push_back(microseconds(call));
    set_threads(2);
    call();  // the other thread is awake
    two.push_back(microseconds(call));
    set_threads(1);
    beside.go();
    ::usleep(30);
    const double mine = microseconds(call);
    pair.push_back((mine + beside.took(k)) / 2);
  }
  std::printf("%-10s", std::string(row.name).c_str());
  for (const double q : {0.0, 0.1, 0.25, 0.5}) {
    const double a = quantile(one, q), threads = a / quantile(two, q), processes = 2 * a / quantile(pair, q);
    std::printf(" | %8.0f us %.2f %.2f %.2f", a, threads, processes, threads / processes);
  }
  std::printf("\n"), std::fflush(stdout);
}

Tensor numbers(int64_t n) { return rand({n, n}); }

const Row kRows[] = {
    {"exp", [] { return [x = numbers(2048)] { (void)exp(x); }; }, 1},
    {"tanh", [] { return [x = numbers(2048)] { (void)tanh(x); }; }, 1},
    {"softmax", [] { return [x = numbers(2048)] { (void)softmax(x, 1); }; }, 1},
    {"rand", [] { return [] {
                    (void)rand({2048, 2048});
                  }; }, 1},
    {"randn", [] { return [] {
                     (void)randn({2048, 2048});
                   }; }, 1},
    {"matmul", [] { return [x = numbers(1024)] { (void)matmul(x, x); }; }, 1},
    {"layer_norm", [] { return [x = numbers(2048)] { (void)layer_norm(x, {2048}); }; }, 1},
    {"cumsum", [] { return [x = numbers(2048)] { (void)cumsum(x, 1); }; }, 1},
    {"sort", [] { return [x = numbers(2048)] { (void)sort(x); }; }, 4},
};

}  // namespace
}  // namespace lamella

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 80;
  std::printf(
      "f32[2048,2048] (matmul 1024), %d rounds: least | tenth | quarter | half of the rounds are faster;\n"
      "each: one thread, gain of two threads, of two processes, and the first over the second\n",
      rounds);
  for (const lamella::Row& row : lamella::kRows) lamella::measure(row, rounds);
}
