// Laws: bugs of known size and kind that the laws they are meant for must see, and right operators that pass.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "lamella/mutate/calibration_parts.h"
#include "lamella/mutate/mutants.h"
#include "lamella/ops/batch.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/pointwise_other.h"

namespace lamella::verify {

namespace {

/// The right results, the first one off by a known part of itself.
double known_error = 0;
void slightly_wrong(const KernelCall& c) {
  right_row().kernel.cpu(c);
  const View& out = c.outs[0];
  if (out.dtype == DType::F64 && out.numel() > 0) out.as<double>()[0] *= 1 + known_error;
}
template <KernelFn kKernel> void with_kernel(Op& row) {
  row.kernel.cpu = kKernel;
  row.kernel.lines = {};  // small tensors take the kernel too
}

std::string known_errors_are_seen() {
  const Law& law = *find_law("matches_reference");
  for (const Op* op : smooth_ones()) {
    const PlantedRow planted(*op, with_kernel<slightly_wrong>);
    known_error = 0x1p-45;
    if (!planted.cases_until_seen(law, 300))
      return format("{}: no case of {} sees a relative error of 2^-45 in f64", op->name, law.id);
    known_error = 0;
    if (planted.cases_until_seen(law, 60))
      return format("{}: {} sees an error where there is none", op->name, law.id);
  }
  return "";
}

/// Another bit in the element at this offset.
void change(const View& v, int64_t offset) {
  auto* const p = static_cast<char*>(v.data) + offset * itemsize(v.dtype);
  *p = char(*p ^ 1);
}
int64_t last_of(const View& v) {
  int64_t at = 0;
  for (int d = 0; d < v.rank; ++d) at += (v.sizes[d] - 1) * v.strides[d];
  return at;
}

/// Wrong at the end of what has several elements.
void wrong_at_the_end(const KernelCall& c) {
  right_row().kernel.cpu(c);
  if (c.outs[0].numel() > 1) change(c.outs[0], last_of(c.outs[0]));
}

/// Right in memory of zeros, and of what was there by chance: elements of four bytes or more, all of them
/// alike, are none of it.
void wrong_in_filled_memory(const KernelCall& c) {
  const View& out = c.outs[0];
  bool filled = out.numel() > 0 && itemsize(out.dtype) >= 4;
  const auto* const bytes = static_cast<const uint8_t*>(out.data);
  for (int64_t k = 0; filled && k < itemsize(out.dtype); ++k) filled = bytes[0] != 0 && bytes[k] == bytes[0];
  right_row().kernel.cpu(c);
  if (filled) change(out, 0);
}

/// Wrong while another thread computes.
std::atomic<int> inside{0};
void wrong_beside_others(const KernelCall& c) {
  right_row().kernel.cpu(c);
  const bool entered_alone = inside.fetch_add(1) == 0;
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  if ((inside.load() > 1 || !entered_alone) && c.outs[0].numel() > 0) change(c.outs[0], 0);
  inside.fetch_sub(1);
}

void raises_in_batches(Op& row) {
  row.batch = [](BatchCall&) { fail(ErrorCode::Value, "planted"); };
  row.straight = 0;  // small tensors ask the rule, too
}
void raises_always(Op& row) {
  row.cells[int(Device::CPU)] = [](Frame&, int) { fail(ErrorCode::Value, "planted"); };
}
/// abs: NaN where its argument is 0, and nowhere else.
Tensor nan_at_zero(const Tensor& right, const Tensor& x) {
  return where(eq(x, 0), right * kNan + kNan, right);
}
void nan_tangent_at_kink(Op& row) {
  row.jvp[0].one = [](const RuleArgs& a) {
    return nan_at_zero(right_row().jvp[0].one(a), *static_cast<const Tensor*>(a.saved[0]));
  };
}
void nan_cotangent_at_kink(Op& row) {
  row.vjp[0].one = [](const RuleArgs& a) {
    return nan_at_zero(right_row().vjp[0].one(a), *static_cast<const Tensor*>(a.saved[0]));
  };
}

struct KnownBug {
  const char* what;
  const char* law;
  const char* op;
  void (*plant)(Op& row);
  const char* form = "";
};
constexpr int kMostCases = 120;

std::string bug_seen(const KnownBug& b) {
  const Law& law = *find_law(b.law);
  const PlantedRow planted(operator_named(b.op), b.plant, b.form);
  return planted.cases_until_seen(law, kMostCases) ? "" : format("{} passes {} that {}", b.law, b.op, b.what);
}

std::string laws_see_wrong_elements() {
  for (const KnownBug& b :
       {KnownBug{"is wrong in its last element", "elements_alone", "neg", with_kernel<wrong_at_the_end>},
        KnownBug{"is wrong in its last element", "elements_alone", "mul", with_kernel<wrong_at_the_end>},
        KnownBug{"depends on what memory was full of", "poison_is_invisible", "exp",
                 with_kernel<wrong_in_filled_memory>}})
    if (const std::string wrong = bug_seen(b); !wrong.empty()) return wrong;
  return "";
}

std::string laws_see_threads_meet() {
  return bug_seen(
      {"is wrong while other threads compute", "threads_are_apart", "exp", with_kernel<wrong_beside_others>});
}

std::string laws_see_refusals() {
  for (const KnownBug& b : {KnownBug{"raises under vmap", "vmap_equals_loop", "neg", raises_in_batches},
                            KnownBug{"raises under vmap", "vmap_equals_loop", "sum", raises_in_batches},
                            KnownBug{"raises always", "out_equals", "neg", raises_always, "_out"},
                            KnownBug{"raises always", "in_place_equals", "neg", raises_always, "_"}})
    if (const std::string wrong = bug_seen(b); !wrong.empty()) return wrong;
  return "";
}

std::string laws_see_nan_at_kinks() {
  for (const KnownBug& b :
       {KnownBug{"has tangents of NaN at 0", "jvp_equals_differences", "abs", nan_tangent_at_kink},
        KnownBug{"has cotangents of NaN at 0", "vjp_equals_differences", "abs", nan_cotangent_at_kink}})
    if (const std::string wrong = bug_seen(b); !wrong.empty()) return wrong;
  return "";
}

std::string right_operators_pass() {
  for (const Op* op : smooth_ones())
    for (const Law& law : laws())
      for (uint64_t i = 0; law.applies(*op) && i < 12; ++i) {
        const Verdict v = run_check(law, *op, choices_of(2, law, *op, i));
        if (v.kind == Verdict::Fail) return format("{} breaks {}: {}", op->name, law.id, v.message);
      }
  return "";
}

}  // namespace

void add_law_calibrations(std::vector<Calibration>& all) {
  all.push_back({"known_errors_are_seen", "A relative error of 2^-45 is seen, and none where there is none.",
                 known_errors_are_seen});
  all.push_back({"laws_see_wrong_elements",
                 "One wrong element is seen, wherever it is and whatever shows it.",
                 laws_see_wrong_elements});
  all.push_back({"laws_see_threads_meet", "What goes wrong while other threads compute is seen.",
                 laws_see_threads_meet});
  all.push_back({"laws_see_refusals", "A form or a batch that raises where the plain call does not is seen.",
                 laws_see_refusals});
  all.push_back(
      {"laws_see_nan_at_kinks", "A derivative that is NaN at a kink is seen.", laws_see_nan_at_kinks});
  all.push_back({"right_operators_pass", "Right operators pass all laws.", right_operators_pass, true});
}

}  // namespace lamella::verify
