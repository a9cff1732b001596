// Columns: what an operator has for each key. Kernels by device, cells by key, alternatives by name.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "lamella/core/view.h"
#include "lamella/dispatch/frame.h"

LAMELLA_API_BEGIN
namespace lamella {

struct Inferred;
using InferFn = void (*)(const Frame&, Inferred&);

/// What runs when a call of an operator reaches a key.
using Cell = void (*)(Frame&, int key);

/// What the oracle's row of a kernel states of dtypes, apart from shape functions: verify holds them to it
/// where no list of its own names the operator.
struct StatedTypes {
  enum class Result : uint8_t {
    Unsaid,
    Promoted,  ///< of all tensors
    Floating,  ///< likewise, but integers and bool become the default dtype
    First,     ///< that of the first tensor
    Bool
  };
  Result result = Result::Unsaid;
  bool takes_bool = true, takes_complex = true;  ///< what is not taken is refused
  bool refuses_zero = false;                     ///< an integer 0 in the second tensor
};

/// The kernels of an operator by the device whose memory they read and write: what the class's cell launches.
struct Kernels {
  KernelFn cpu = nullptr;
  KernelFn reference = nullptr;  ///< an independent text, the oracle's
  KernelFn cuda = nullptr;
  KernelFn user0 = nullptr, user1 = nullptr;
  /// Straight contiguous runs on the CPU by compute dtype, for small tensors; null where there is none.
  using Line = void (*)(void* out, const void* const* ins, int64_t n);
  std::array<Line, kDTypeCount> lines = {};
  /// The dtype that each straight run gives, and the shape function that said so when the operator was added:
  /// runs it does not allow are taken out of `lines`. A row with another shape function uses none.
  std::array<DType, kDTypeCount> line_results = {};
  InferFn line_rule = nullptr;
  /// Whether the arguments that are no tensors leave a straight run valid (alpha = 1); null: there are none.
  bool (*line_ok)(const Frame&) = nullptr;
  /// Dtypes (a bit each) that a shape function of the row's own takes for all tensors: of others it is not
  /// asked. Of two tensors of different ones it must say what the class's do: that they broadcast, and are
  /// computed in their result type.
  uint32_t line_dtypes = 0;
  /// Dtypes that two tensors of a straight run may have beside each other, one of them of one element or both
  /// of one shape; 0: they are of one dtype and shape. Found out when the operator is added.
  uint32_t line_mixes = 0;
  std::string_view name = {};  ///< by which its thresholds are declared
  StatedTypes stated = {};

  /// Null where there is none; Device::Meta has no elements to run on.
  KernelFn on(Device device) const {
    const auto at = member(device);
    return at ? this->*at : nullptr;
  }
  void set(Device device, KernelFn kernel) { this->*member(device) = kernel; }
  /// Null for Device::Meta.
  static constexpr KernelFn Kernels::*member(Device device) {
    switch (device) {
      case Device::CPU: return &Kernels::cpu;
      case Device::Reference: return &Kernels::reference;
      case Device::CUDA: return &Kernels::cuda;
      case Device::User0: return &Kernels::user0;
      case Device::User1: return &Kernels::user1;
      case Device::Meta: break;
    }
    return nullptr;
  }
};

/// NOTE: [columns] A column is what one operator has for one key: named alternatives, one of which calls run.
/// What runs when a call reaches key k is the first of
///   1. explicit: the chosen alternative of the operator's column for k, a cell or a kernel,
///   2. class: the cell of its shape class for k, for operators that have a kernel there (or need none),
///   3. decompose: the composite's body, whose calls are dispatched by the same rule,
///   4. fallback: the cell that serves every operator for k (a loop, a conversion),
///   5. an error that names operator, key and arguments.
/// So a backend, a layout or a wrapper type brings what it wants to do itself, composites included.
/// Either a cell, which is all that happens to a call, or a kernel, which the class's cell launches on
/// results that it has allocated (keys of devices alone).
struct Alternative {
  std::string name;
  Cell cell = nullptr;
  KernelFn kernel = nullptr;
  std::string_view from = {};  ///< who registered it (ScopedOrigin); OpTable::set says it
  bool asks_itself = false;    ///< the cell needs no look at arguments in front of it: it has none, or looks
  /// Whether a call made again may give other bits; and the alternative of the column that runs where that is
  /// not allowed, which does not vary itself; "": none does, such calls are refused. NOTE: [determinism]
  bool varies = false;
  std::string instead = {};
  /// Additions in a row that a term of a result takes; 0: it adds as the operator's own does. NOTE:
  /// [numerics]
  double adds_in_a_row = 0;
  /// The library's own, for one row of its own: nobody need ask for another, and a new row has none.
  bool is_short_way() const { return asks_itself && from.empty(); }
};
struct Column {
  int key = 0;
  std::vector<Alternative> alternatives;
  size_t chosen = 0;
  Cell beneath = nullptr;  ///< what runs where the operator has no cell of its own for `key`
  Cell usual = nullptr;    ///< of one that varies: what runs where it may
  const Alternative& now() const { return alternatives[chosen]; }
};
/// By which line of NOTE: [columns] a key is served.
enum class Served : uint8_t { Explicit, Class, Decompose, Fallback, Hole };
std::string_view name(Served s);

}  // namespace lamella
LAMELLA_API_END
