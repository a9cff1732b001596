// The peer: PyTorch in a process of its own, which times what it is asked for when it is asked.
#pragma once

#include <memory>
#include <string>

#include "bench_times.h"
#include "bench_work.h"

namespace lamella::tools::bench {

/// bench_torch.py, as the program was built with it.
extern const std::string_view kPeerScript;

class Peer {
 public:
  /// Starts `python3`. Errors: usage for a name that is not "torch"; where torch cannot be loaded, with the
  /// line that installs it.
  explicit Peer(const std::string& name);
  ~Peer();
  Peer(const Peer&) = delete;

  const std::string& version() const { return version_; }
  /// Makes the arguments there and calls once. Why it could not; "" is fine.
  std::string prepare(const PeerText& text, int threads);
  /// Of what was prepared: so many calls, 0: as many as take `seconds`. None once it has ended.
  std::optional<Timing> time(int64_t calls, double seconds);
  /// Forgets the arguments.
  void drop();

 private:
  std::optional<std::string> ask(const std::string& line);
  std::string version_;
  int to_ = -1, from_ = -1, pid_ = -1;
  std::string read_;
};

}  // namespace lamella::tools::bench
