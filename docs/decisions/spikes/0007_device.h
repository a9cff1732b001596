// The emulated device of spike 0007: lanes are fibers, device memory is a type of its own, races are counted.
#pragma once

#include <functional>
#include <stdexcept>
#include <ucontext.h>
#include <vector>

#include "0007_text.h"

namespace spike {

/// The device as all fibers see it: who runs, and the shared memory with its history since the last barrier.
struct Machine {
  struct Cell {
    float value;
    int writer, reader;
    int64_t written = -1, read = -1;  // in which interval between barriers
  };
  bool running = false;
  int lane = 0, alive = 0;
  int64_t group = 0, groups = 0, interval = 0, races = 0, switches = 0;
  Cell cells[kLanes];
  ucontext_t scheduler, fibers[kLanes];
  bool done[kLanes];
  std::vector<char> stacks = std::vector<char>(kLanes << 16);
  std::function<void()> kernel;

  static void enter();
  void run(int64_t count, std::function<void()> body) {
    kernel = std::move(body);
    running = true;
    for (groups = count, group = 0; group < groups; ++group) {
      for (int l = 0; l < kLanes; ++l) {
        getcontext(&fibers[l]);
        fibers[l].uc_stack = {&stacks[size_t(l) << 16], 0, size_t(1) << 16};
        fibers[l].uc_link = &scheduler;
        makecontext(&fibers[l], enter, 0);
        done[l] = false;
      }
      for (alive = kLanes; alive > 0; ++interval)  // a round: every lane runs to its next barrier
        for (lane = 0; lane < kLanes; ++lane)
          if (!done[lane]) ++switches, swapcontext(&scheduler, &fibers[lane]);
    }
    running = false;
  }
};
inline Machine machine;
inline void Machine::enter() {
  machine.kernel();
  machine.done[machine.lane] = true;
  --machine.alive;
}

/// Memory of the device: an address that only a running kernel may follow, inside its bounds.
template <class T> struct DevicePointer {
  T* base;
  int64_t size, at = 0;
  DevicePointer operator+(int64_t n) const { return {base, size, at + n}; }
  T& operator[](int64_t i) const {
    if (!machine.running) throw std::logic_error("device memory reached from the host");
    if (at + i < 0 || at + i >= size) throw std::logic_error("outside device memory");
    return base[at + i];
  }
};

template <bool kBarriers> struct Emulated {
  int lane() const { return machine.lane; }
  int64_t group() const { return machine.group; }
  int64_t groups() const { return machine.groups; }
  void put(int l, float v) {
    Machine::Cell& c = machine.cells[l];
    machine.races += c.read == machine.interval && c.reader != lane();
    c.value = v, c.writer = lane(), c.written = machine.interval;
  }
  float get(int l) {
    Machine::Cell& c = machine.cells[l];
    machine.races += c.written == machine.interval && c.writer != lane();
    c.reader = lane(), c.read = machine.interval;
    return c.value;
  }
  void barrier() {
    if (kBarriers) swapcontext(&machine.fibers[machine.lane], &machine.scheduler);
  }
};
}  // namespace spike
