// A plug-in that adds a device: memory of its own that the host cannot touch, twelve kernels of its own, the
// rest by the fallback, which runs on the CPU. A real device differs in what the hooks and kernels do inside.
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <sys/mman.h>
#include <unistd.h>

#include "lamella/core/device_hooks.h"
#include "lamella/core/visit.h"
#include "lamella/dispatch/plugin.h"
#include "lamella/ops/devices.h"
#include "lamella/ops/functions.h"

namespace {
using namespace lamella;
constexpr Device kMine = Device::User0;

/// The same pages mapped twice: where addresses say, for nobody; elsewhere, for the device.
struct Memory {
  Memory() {
    const int file = memfd_create("my_device", 0);
    if (file < 0 || ftruncate(file, kBytes) != 0) return;
    outside_ = map(PROT_NONE, file), inside_ = map(PROT_READ | PROT_WRITE, file);
  }
  void* allocate(size_t nbytes) {
    const std::lock_guard lock(mutex_);
    // A child shares the pages: each process has a part of them.
    if (pid_ != getpid()) pid_ = getpid(), used_ = size_t(pid_ % 4096) << 30, free_.clear();
    std::vector<char*>& waiting = free_[class_of(nbytes)];
    const size_t size = size_t{64} << class_of(nbytes);
    if (waiting.empty() && inside_ && used_ + size <= kBytes)
      waiting.push_back(outside_ + used_), used_ += size;
    if (waiting.empty()) return nullptr;
    char* const p = waiting.back();
    waiting.pop_back();
    return p;
  }
  void free(void* p, size_t nbytes) {
    const std::lock_guard lock(mutex_);
    free_[class_of(nbytes)].push_back(static_cast<char*>(p));
  }
  char* inside(const void* p) const { return inside_ + (static_cast<const char*>(p) - outside_); }

  static constexpr size_t kBytes = size_t{1} << 42;
  static size_t class_of(size_t nbytes) { return size_t(std::bit_width((nbytes - 1) / 64)); }
  static char* map(int protection, int file) {
    void* const p = mmap(nullptr, kBytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
  }
  char *outside_ = nullptr, *inside_ = nullptr;
  size_t used_ = 0;
  pid_t pid_ = 0;
  std::map<size_t, std::vector<char*>> free_;
  std::mutex mutex_;
};
Memory& memory = *new Memory;  // for good: tensors may outlive everything
std::atomic<int64_t> launched{0}, waited{0};

Scalar load(const View& v, int64_t i) {
  return visit_dtype(v.dtype, [&]<class T>(type_tag<T>) -> Scalar {
    const T x = reinterpret_cast<const T*>(memory.inside(v.data))[i];
    if constexpr (std::is_integral_v<T>) return x;
    else if constexpr (is_complex_type<T>) return c128(double(x.real()), double(x.imag()));
    else return double(x);
  });
}
void store(const View& v, int64_t i, const Scalar& x) {
  visit_dtype(v.dtype,
              [&]<class T>(type_tag<T>) { reinterpret_cast<T*>(memory.inside(v.data))[i] = x.to<T>(); });
}

/// f(places of an element in outs[0] and in each input, its indices), over the sizes of `over`.
template <class F> void each(const KernelCall& c, const View& over, F&& f) {
  ++launched;
  Dims at(over.rank);
  for (int64_t left = over.numel(); left > 0; --left) {
    const auto place = [&](const View& v) { return std::inner_product(at.begin(), at.end(), v.strides, 0L); };
    int64_t in[3] = {};
    for (size_t k = 0; k < c.ins.size(); ++k) in[k] = place(c.ins[k]);
    f(place(c.outs[0]), in, at);
    for (int d = over.rank - 1; d >= 0 && ++at[d] == over.sizes[d]; --d) at[d] = 0;
  }
}

/// f of numbers of the dtype that the call asks for; integers in 128 bits, so that they wrap when stored.
template <class F> Scalar in_type(DType compute, const Scalar& a, const Scalar& b, F f) {
  const auto whole = [compute](const Scalar& s) {
    return compute == DType::U64 ? __int128(s.to<uint64_t>()) : __int128(s.to_int());
  };
  if (!is_inexact(compute)) return Scalar(int64_t(f(whole(a), whole(b))));
  if (compute == DType::C64) return Scalar(f(a.to<c64>(), b.to<c64>()));
  if (is_complex(compute)) return Scalar(f(a.to<c128>(), b.to<c128>()));
  return Scalar(f(a.to<double>(), b.to<double>()));
}
template <auto f> void pointwise(const KernelCall& c) {
  each(c, c.outs[0], [&](int64_t out, const int64_t* in, auto&&) {
    const DType read = is_half(c.compute) ? DType::F32 : c.compute;  // halves compute in f32
    const Scalar a = load(c.ins[0], in[0]).stored(read);
    const Scalar b = c.ins.size() > 1 ? load(c.ins[1], in[1]).stored(read) : a;
    store(c.outs[0], out, in_type(c.compute, a, b, f).stored(c.compute));
  });
}
/// Complex numbers have no order, and are never asked for it.
template <class T> bool less(T a, T b) { return a < b; }
template <class R> bool less(std::complex<R>, std::complex<R>) { return false; }
void choose(const KernelCall& c) {
  each(c, c.outs[0], [&](int64_t out, const int64_t* in, auto&&) {
    const size_t k = load(c.ins[0], in[0]).to<bool>() ? 1 : 2;
    store(c.outs[0], out, load(c.ins[k], in[k]).stored(c.compute));
  });
}
void fill(const KernelCall& c) {
  each(c, c.outs[0], [&](int64_t out, auto&&...) { store(c.outs[0], out, c.scalars[0]); });
}
/// In the order of the index, or in one that differs with each launch, as where a device's threads race.
template <bool races> void scatter_add(const KernelCall& c) {
  const View &y = c.outs[0], &index = c.ins[1];
  const int64_t dim = c.ints[0], size = y.sizes[dim], step = y.strides[dim];
  const DType type = is_half(y.dtype) ? DType::F32 : y.dtype;
  std::vector<std::pair<int64_t, Scalar>> terms;  // with their places in y
  each(c, index, [&](int64_t out, const int64_t* in, auto&& at) {
    const int64_t i = load(index, in[1]).to_int();
    LAMELLA_CHECK(i >= 0 && i < size, IndexOutOfRange, "index: got {}, expected [0, {})", i, size);
    terms.emplace_back(out + (i - at[dim]) * step, load(c.ins[2], in[2]));
  });
  if (races) std::rotate(terms.begin(), terms.begin() + launched / 2 % (std::ssize(terms) + 1), terms.end());
  std::map<int64_t, Scalar> sums;
  each(c, y, [&](int64_t out, const int64_t* in, auto&&) { sums[out] = load(c.ins[0], in[0]); });
  for (const auto& [to, x] : terms) sums[to] = in_type(type, sums[to], x, std::plus<>{}).stored(type);
  for (const auto& [to, sum] : sums) store(y, to, sum.stored(y.dtype));
}
constexpr DeviceHooks kHooks{
    .allocate = [](size_t n) { return memory.allocate(n); },
    .free = [](void* p, size_t n) { memory.free(p, n); },
    .copy_to = [](void* to, const void* host, size_t n) { std::memcpy(memory.inside(to), host, n); },
    .copy_from = [](void* host, const void* at, size_t n) { std::memcpy(host, memory.inside(at), n); },
    .copy_within = [](void* a, const void* b,
                      size_t n) { std::memmove(memory.inside(a), memory.inside(b), n); },
    .synchronize = [] { ++waited; }};
}  // namespace

// Tests: laws of its own, for `lamella verify --load`.
#include <csignal>
#include <set>
#include <sys/wait.h>

#include "lamella/dispatch/determinism.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/jvp.h"
#include "lamella/transforms/vmap.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/law.h"

namespace {
using verify::Case;
using verify::Verdict;

/// On the device, with the order of the first two dims in memory exchanged if `turned`.
Tensor moved(const Tensor& t, bool turned, Device to = kMine) {
  if (!t.defined()) return t;
  if (!turned || t.rank() < 2) return to_device(t, to);
  return transpose(to_device(transpose(t, 0, 1), to), 0, 1);
}
Values moved(Values args, bool turned, Device to = kMine) {
  for (Value& v : args) {
    if (auto* t = std::get_if<Tensor>(&v)) *t = moved(*t, turned, to);
    if (auto* list = std::get_if<Tensors>(&v))
      for (Tensor& t : *list) t = moved(t, turned, to);
  }
  return args;
}
Tensors back(Tensors ys) {
  for (Tensor& y : ys) y = to_device(y, Device::CPU);
  return ys;
}
Verdict verdict(const verify::Finding& wrong) { return Verdict::of(wrong); }

bool brings_kernel(const Op& op) {
  const Column* const c = op.column(int(kMine));
  return c && c->now().kernel;
}

Verdict as_on_cpu(Case& c) {
  const bool turned = c.draw.flag();
  Tensors want, got;
  const auto on_cpu =
      verify::status_of([&] { want = back(call_boxed(c.op, moved(c.args, turned, Device::CPU))); });
  const int at = c.op.device_param;
  const bool stays = at < 0 || is_none(c.args[size_t(at)]);
  const DefaultDevice here(kMine);
  const Deterministic on(true);  // for the same bits
  const Values args = moved(c.args, turned);
  const int64_t kernels = launched;
  bool there = true;
  const auto on_device = verify::status_of([&] {
    const Tensors ys = call_boxed(c.op, args);
    for (const Tensor& y : ys) there = there && (!stays || y.device() == kMine);
    got = back(ys);
  });
  if (on_cpu.raised != on_device.raised || on_cpu.code != on_device.code)
    return verdict("on the device " + str(on_device) + ", on the CPU " + str(on_cpu).text());
  if (!there) return verdict("a result does not lie on the device");
  if (brings_kernel(c.op) && stays && !on_cpu.raised && launched == kernels)
    return verdict("its own kernel did not run");
  return verdict(verify::disagrees(got, want, verify::agreement(c.op)));
}

/// There and back inside a function: all transforms see one and the same function.
Verdict transforms_pass(Case& c) {
  const auto slots = c.inexact();
  const Tensors xs = c.values(slots);
  const Function here = c.smooth_function(slots), there = [&](const Tensors&at) {
    Tensors inside, ys;
    for (const Tensor& x : at) inside.push_back(to_device(x, kMine));
    for (const Tensor& y : call_boxed(c.op, moved(c.with(slots, inside), false)))
      if (is_inexact(y.dtype())) ys.push_back(to_device(y, Device::CPU));
    return ys;
  };
  Tensors tangents, cotangents, batch;
  for (const Tensor& x : xs) tangents.push_back(c.direction(x));
  for (const Tensor& y : here(xs)) cotangents.push_back(c.direction(y));
  for (size_t k = 0; k < xs.size(); ++k) batch.push_back(stack({xs[k], tangents[k]}, 0));
  constexpr auto kRounding = verify::Agreement::Rounding;
  const auto backward = [&](const Function& f) -> Function {
    return [&, f](const Tensors& at) { return vjp(f, at).pullback(cotangents); };
  };
  const auto twice = [&](const Function& f) { return vjp(backward(f), xs).pullback(tangents); };
  verify::Finding d =
      verify::disagrees(jvp(there, xs, tangents).tangents, jvp(here, xs, tangents).tangents, kRounding);
  if (d.empty()) d = verify::disagrees(backward(there)(xs), backward(here)(xs), kRounding);
  if (d.empty()) d = verify::disagrees(twice(there), twice(here), kRounding);
  Tensors lanes, want;  // of directions, which may be no arguments
  const auto raised = verify::status_of([&] { want = vmap(here)(batch); });
  if (verify::status_of([&] { lanes = vmap(there)(batch); }).code != raised.code)
    return verdict(c.op.has(kValueErrors) ? "" : "other lanes raise");
  if (d.empty()) d = verify::disagrees(lanes, want, kRounding);
  return verdict(d);
}

/// A kernel of the CPU that is given the device's memory dies.
Verdict host_dies(Case& c) {
  const Tensor x = moved(std::get<Tensor>(c.args[0]), false), y = empty_like(x);
  if (x.numel() == 0) return Verdict::discard();
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    const View in = x.view_of(), out = y.view_of();
    c.op.kernel.cpu({{&out, 1}, {&in, 1}, x.dtype()});
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return verdict(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? ""
                                                                    : "the host read the device's memory");
}

/// Copies between devices, what is refused between them, and when the host waits.
Verdict meets_the_host(Case& c) {
  const Tensor &self = std::get<Tensor>(c.args[0]), &src = std::get<Tensor>(c.args[1]);
  const Tensor want = copy(self, src);
  const Tensor a = clone(self), b = moved(self, true);
  copy_(a, moved(src, true)), copy_(b, src);
  verify::Finding d = verify::disagrees(a, want, verify::Agreement::Bitwise);
  if (d.empty()) d = verify::disagrees(to_device(b, Device::CPU), want, verify::Agreement::Bitwise);
  const auto refusal = verify::status_of([&] { maximum(b, a); });
  if (d.empty() && (!refusal.raised || refusal.code != ErrorCode::Device))
    d = "operands on two devices are taken";
  const int64_t before = waited;
  (void)str(b), (void)b.to_vector();
  if (d.empty() && b.numel() > 0 && waited < before + 2) d = "the host did not wait";
  const Tensor key = fold_in(zeros({}, DType::U64), full({}, Scalar(int64_t(c.draw.word())), DType::U64));
  if (d.empty())
    d = verify::disagrees(to_device(rand({3}, key, DType::F32, kMine), Device::CPU),
                          rand({3}, key, DType::F32), verify::Agreement::Bitwise);
  return verdict(d);
}

/// Three terms whose sum depends on their order: it changes from call to call, but not where that is refused.
Verdict repeats_if_asked(Case& c) {
  const Tensor zero = moved(zeros({1}, DType::F64), false), index = moved(zeros({3}, DType::I64), false);
  const Tensor terms = moved(tensor_of({3}, {1, 1e16, -1e16}, DType::F64), c.draw.flag());
  const auto calls = [&] {
    std::set<double> seen;
    for (int n = 0; n < 8; ++n)
      seen.insert(to_device(scatter_add(zero, 0, index, terms), Device::CPU).to_vector()[0]);
    return seen.size();
  };
  if (calls() == 1) return verdict("all orders have one sum");
  const Deterministic on(true);
  return verdict(calls() == 1 ? "" : "sums vary where determinism is required");
}

bool is_judged(const Op& op) { return !op.has(kTestOnly) && !op.has(kUnspecified) && !op.takes_functions; }

void add_laws() {
  verify::add_law({1004,
                   "device_as_cpu",
                   "devices",
                   "Every operator gives on the device what it gives on the CPU.",
                   {},
                   false,
                   is_judged,
                   as_on_cpu});
  verify::add_law(
      {1005,
       "device_under_transforms",
       "devices",
       "A function that computes on the device has the derivatives and lanes of one that does not.",
       {.dtypes = kFloating, .exact = true, .tame = true, .max_numel = 8},  // for sums in another order
       false,
       [](const Op& op) {
         return is_judged(op) && verify::has_jvp(op) && verify::has_vjp(op) && !op.has(kRandom) &&
                !op.has(kSymmetricInput);  // whose functions the harness symmetrises itself
       },
       transforms_pass});
  verify::add_law({1006,
                   "host_dies",
                   "devices",
                   "A kernel of the CPU cannot touch the device's memory.",
                   {.dtypes = kFloating},
                   false,
                   [](const Op& op) { return op.name == "exp"; },
                   host_dies});
  verify::add_law({1007,
                   "device_meets_host",
                   "devices",
                   "copy_ crosses devices, operators do not, and the host waits for what it reads.",
                   {},
                   false,
                   [](const Op& op) { return op.name == "copy"; },
                   meets_the_host});
  verify::add_law({1008,
                   "device_repeats",
                   "devices",
                   "Sums whose order the device chooses repeat where determinism is required.",
                   {},
                   false,
                   [](const Op& op) { return op.name == "scatter_add"; },
                   repeats_if_asked});
}
}  // namespace

LAMELLA_PLUGIN() {
  OpTable::add_device(kMine, kHooks);
  OpTable::set_fallback(int(kMine), cpu_fallback);
  const std::pair<const char*, KernelFn> kKernels[] = {
      {"add", pointwise<std::plus<>{}>},
      {"sub", pointwise<std::minus<>{}>},
      {"mul", pointwise<std::multiplies<>{}>},
      {"eq", pointwise<std::equal_to<>{}>},
      {"ne", pointwise<std::not_equal_to<>{}>},
      {"neg", pointwise<[](auto a, auto) { return -a; }>},
      {"lt", pointwise<[](auto a, auto b) { return less(a, b); }>},
      {"gt", pointwise<[](auto a, auto b) { return less(b, a); }>},
      {"clone", pointwise<[](auto a, auto) { return a; }>},
      {"where", choose},
      {"full", fill},
      {"scatter_add", scatter_add<false>}};
  for (const auto& [op, kernel] : kKernels) OpTable::set(op, int(kMine), {"mine", nullptr, kernel});
  const Alternative racing{.name = "racing", .kernel = scatter_add<true>, .varies = true, .instead = "mine"};
  OpTable::set("scatter_add", int(kMine), racing);
  add_laws();
}
