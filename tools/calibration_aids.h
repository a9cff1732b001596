// What the calibrations of the program share: drawn numbers, a folder, output that is caught.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lamella/core/check.h"

#include "scratch.h"

namespace lamella::tools {

/// Drawn numbers, the same in every run: a calibration that fails fails again.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t n) { return next() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  /// 0 to 1.
  double share() { return double(next() >> 11) * 0x1p-53; }
  template <class T> T of(std::initializer_list<T> list) { return list.begin()[below(list.size())]; }
  template <class T> const T& of(const std::vector<T>& list) { return list[below(list.size())]; }
  template <class T> void shuffle(std::vector<T>& list) {
    for (size_t k = list.size(); k > 1; --k) std::swap(list[k - 1], list[below(k)]);
  }
  std::string bytes(size_t size);

 private:
  uint64_t next();

  uint64_t state_;
};

/// A folder for a while, in memory where the system has such: renaming on a disk may wait for it.
struct Folder : Scratch {
  Folder();
};

std::string read_plainly(const std::filesystem::path& path);
void write_plainly(const std::filesystem::path& path, std::string_view bytes);

/// What is in a folder, by name: "file 640", "link to x", "pipe 600".
using Listing = std::map<std::string, std::string>;
Listing listing_of(const std::filesystem::path& folder);
std::string str(const Listing& listing);

/// While one lives, standard output and errors go into this file.
class Caught {
 public:
  explicit Caught(const std::filesystem::path& file);
  ~Caught();
  Caught(const Caught&) = delete;
  Caught& operator=(const Caught&) = delete;

 private:
  int out_, err_;
};

/// What `f` says in a fork of this process, where it has so many seconds of processor time; how that process
/// ended if it did so by itself.
std::string said_apart(const std::function<std::string()>& f, double seconds);

/// This program's exit status when its standard output goes to a file and takes no more than so many bytes.
int status_of_program(std::vector<std::string> words, const std::filesystem::path& output, size_t room);

/// "" when it returns; else "usage: text" of what it raised.
std::string raised_by(const std::function<void()>& f);

/// The calibration, with what it raises as its answer.
template <std::string (*Check)()> std::string guarded() {
  try {
    return Check();
  } catch (const std::exception& e) { return std::string("raised ") + e.what(); }
}

/// "got ..., expected ..." for the first difference of two texts; empty where there is none.
std::string first_difference(std::string_view got, std::string_view want);

}  // namespace lamella::tools
