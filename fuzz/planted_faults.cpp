// Touches memory that nobody may touch, one way a run: the address sanitizer must say so (NOTE: [poisoned
// pools]).
#include <cstdint>
#include <cstdio>
#include <map>
#include <string_view>

#include "lamella/core/family.h"
#include "lamella/core/tensor.h"

namespace {
using namespace lamella;

volatile uint8_t* bytes_of(const Tensor& t) { return static_cast<volatile uint8_t*>(t.raw_data()); }

Tensor made(int64_t n) { return make_tensor(Dims{n}, DType::F32); }

/// 13 and 45 numbers: the elements of a small tensor and of a pooled block end within them.
void read_behind_elements() { (void)bytes_of(made(13))[52]; }
void write_behind_elements() { bytes_of(made(13))[56] = 1; }
void read_behind_pooled() { (void)bytes_of(made(45))[180]; }
void write_behind_pooled() { bytes_of(made(45))[184] = 1; }

/// 16 and 32 numbers fill their blocks.
void read_behind_block() { (void)bytes_of(made(16))[64]; }
void write_behind_block() { bytes_of(made(32))[128] = 1; }
/// Reused: the second life of a block has other bounds than the first.
void write_behind_reused() {
  made(16), made(32);
  bytes_of(made(20))[80] = 1;
}
void read_behind_own() { (void)bytes_of(made(5000))[20000]; }

void read_waiting_header() {
  Tensor t = made(4);
  volatile uint8_t* const was = bytes_of(t);
  t = {};
  (void)was[0];
}
void write_waiting_block() {
  Tensor t = made(45);
  volatile uint8_t* const was = bytes_of(t);
  t = {};
  was[0] = 1;
}
void read_waiting_after_miss() {  // a tensor that asked for the block on top of the pool and did not take it
  Tensor t = made(4);
  volatile uint8_t* const was = bytes_of(t);
  t = {};
  const Tensor other = make_tensor(Dims{3, 30}, DType::F32);
  (void)was[0];
}
void read_waiting_family() {
  Tensor t = made(4);
  Family::of(t);
  volatile auto* const was = reinterpret_cast<volatile uint8_t*>(t.impl()->family());
  t = {};
  (void)was[0];
}

// What is lost, pools or not, the sanitizer says at the end; a register may keep the last one.
template <class Lose> void ten_times(Lose lose) {
  for (int k = 0; k < 10; ++k) lose();
}
void lose_tensor() {
  ten_times([] { made(4).impl()->retain(); });
}
void lose_storage() {
  ten_times([] { made(45).impl()->storage->retain(); });
}
void lose_family() {
  ten_times([] {
    const Tensor t = made(4);
    Family::of(t).retain();
  });
}
void lose_sizes() {
  ten_times([] {
    const Tensor t = make_tensor(Dims{1, 1, 1, 1, 1, 1}, DType::F32);
    t.impl()->heap = nullptr;
    t.impl()->rank = 0;
  });
}

/// Nothing that is not allowed: the sanitizer must be silent.
void nothing() {
  for (int round = 0; round < 3; ++round)
    for (const int64_t n : {1, 13, 16, 17, 32, 33, 45, 1000, 1024, 5000}) {
      const Tensor t = made(n), view = make_view(t, Dims{(n + 1) / 2}, Dims{1}, n / 2);
      for (int64_t i = 0; i < 4 * n; ++i) bytes_of(t)[i] = uint8_t(i);
      (void)bytes_of(view)[0];
      (void)make_tensor(Dims{1, 1, 1, 1, 1, 1, n}, DType::I64);
    }
}

const std::map<std::string_view, void (*)()> kWays{
    {"read_behind_elements", read_behind_elements},
    {"write_behind_elements", write_behind_elements},
    {"read_behind_pooled", read_behind_pooled},
    {"write_behind_pooled", write_behind_pooled},
    {"read_behind_block", read_behind_block},
    {"write_behind_block", write_behind_block},
    {"write_behind_reused", write_behind_reused},
    {"read_behind_own", read_behind_own},
    {"read_waiting_header", read_waiting_header},
    {"write_waiting_block", write_waiting_block},
    {"read_waiting_after_miss", read_waiting_after_miss},
    {"read_waiting_family", read_waiting_family},
    {"lose_tensor", lose_tensor},
    {"lose_storage", lose_storage},
    {"lose_family", lose_family},
    {"lose_sizes", lose_sizes},
    {"nothing", nothing},
};
}  // namespace

int main(int argc, char** argv) {
  const auto way = kWays.find(argc == 2 ? argv[1] : "");
  if (way == kWays.end()) {
    for (const auto& [name, run] : kWays) std::printf("%.*s\n", int(name.size()), name.data());
    return 2;
  }
  way->second();
  std::puts("nothing was reported");
  return 0;
}
