// What arguments and results of a call take, beside what the machine has.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

#include "lamella/dispatch/call.h"

#include "bench_call.h"

namespace lamella::tools::bench {

namespace {
/// Of this machine, of the group of processes that this one is in, and of its address space: the least.
double memory_of_machine() {
  double most = double(::sysconf(_SC_PHYS_PAGES)) * double(::sysconf(_SC_PAGESIZE));
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream in(file);
    if (double limit = 0; in >> limit) most = std::min(most, limit);  // "max" is no number
  }
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    most = std::min(most, double(space.rlim_cur));
  return most;
}

/// Elements that are made: what is broadcast lies there once, what is stepped over twice.
double elements_made(const Operand& o) {
  double n = 1;
  for (const int64_t s : o.sizes) n *= double(s);
  if (o.layout == Layout::Stepped) n *= 2;
  if (o.layout == Layout::Row) n /= std::max(1.0, double(o.sizes[0]));
  if (o.layout == Layout::Column) n /= std::max(1.0, double(o.sizes.back()));
  return n;
}

/// Bytes of what is drawn: of 4 bytes an element, or more.
double drawn_bytes(const std::vector<Argument>& arguments) {
  double n = 0;
  for (const Argument& a : arguments)
    if (const auto* sizes = std::get_if<Dims>(&a.value); sizes && a.param->role == ParamRole::Size) {
      n = 4;
      for (const int64_t s : *sizes) n *= double(s);
    }
  return n;
}

/// Bytes of the results, which are kept and written to; 0 where only the call itself says.
double result_bytes(const Op& op, const std::vector<Argument>& arguments) {
  if (op.is_view()) return 0;
  if (op.shape == ShapeClass::Random) return drawn_bytes(arguments);
  double n = 0;
  try {
    Values args;
    for (const Argument& a : arguments) {
      if (!a.operand) args.push_back(a.value);
      else if (const Tensor t = make_tensor(Ints(a.operand->sizes), a.operand->dtype, Device::Meta);
               a.param->kind == ParamKind::TensorList)
        args.emplace_back(Tensors{t, t});
      else args.emplace_back(t);
    }
    if (op.device_param >= 0) args[size_t(op.device_param)] = Device::Meta;
    for (const Tensor& y : call_boxed(op, canonical(op, std::move(args))))
      n += double(y.numel()) * double(itemsize(y.dtype()));
  } catch (const Error&) {}  // sizes that depend on values, or that no tensor has: the call says so
  return n;
}
}  // namespace

void check_memory(const Op& op, const std::vector<Argument>& arguments, const Dims& sizes) {
  double kept = result_bytes(op, arguments), most_made = 0;
  for (const Argument& a : arguments) {
    if (!a.operand) continue;
    const double n = elements_made(*a.operand), bytes = n * double(itemsize(a.operand->dtype));
    kept += a.param->kind == ParamKind::TensorList ? 2 * bytes : bytes;
    most_made = std::max(most_made, a.operand->dtype == DType::F64 ? 0 : n * double(sizeof(double)));
  }
  constexpr double kGiB = double(int64_t{1} << 30);
  const double needed = kept + most_made, there = memory_of_machine();
  LAMELLA_CHECK(needed <= there, Usage,
                "bench: --sizes: {} of sizes {} takes {} GiB, and this machine has {}; expected smaller ones",
                op.name, sizes, std::round(needed / kGiB * 10) / 10, std::round(there / kGiB * 10) / 10);
}

}  // namespace lamella::tools::bench
