// Calls that several devices take part in, to_device, and the fallback of devices.
#include "lamella/ops/devices.h"

#include <algorithm>

#include "lamella/core/device_hooks.h"
#include "lamella/core/generator.h"
#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/define.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/devices.h"
#include "lamella/ops/structured.h"

namespace lamella {

namespace {
thread_local int64_t fallbacks = 0;

/// Copies, in memory of the CPU, of what arguments span of storages elsewhere.
class HostCopies {
 public:
  explicit HostCopies(const Frame& f) {
    for_each_tensor(f, [&](const Tensor& t, int, int) {
      if (!is_elsewhere(t)) return;
      Region& r = region_of(t);
      if (t.numel() == 0) return;
      const ByteSpan b = bytes_spanned(t);
      r.bytes =
          r.bytes.end == 0 ? b : ByteSpan{std::min(b.begin, r.bytes.begin), std::max(b.end, r.bytes.end)};
    });
    for (Region& r : regions_) {
      r.copy = allocate_storage(size_t(r.bytes.end - r.bytes.begin), Device::CPU);
      copy_bytes(r.copy->data, Device::CPU, there(r), r.of->device, r.copy->nbytes);
    }
  }
  static bool is_elsewhere(const Tensor& t) {
    return t.defined() && t.impl()->storage && !is_host(t.device());
  }
  Tensor here(const Tensor& t) {
    const Region& r = region_of(t);
    return in_copy(t, r.copy, r.bytes.begin);
  }
  /// What was written to the copy of t goes to its device.
  void write_back(const Tensor& t) {
    const Region& r = region_of(t);
    copy_bytes(there(r), r.of->device, r.copy->data, Device::CPU, r.copy->nbytes);
    r.of->bump();
  }

 private:
  struct Region {
    Storage* of;
    ByteSpan bytes;
    StorageRef copy;
  };
  static char* there(const Region& r) { return static_cast<char*>(r.of->data) + r.bytes.begin; }
  Region& region_of(const Tensor& t) {
    for (Region& r : regions_)
      if (r.of == t.impl()->storage) return r;
    return regions_.emplace_back(Region{t.impl()->storage, {}, {}});
  }
  std::vector<Region> regions_;
};

void set_key(const Frame& f, FrameCopy& copy, Device device) {
  const int at = f.op->schema.find("key");
  if (at < 0 || f.tensor(at).defined()) return;
  copy.set(at, scalar_tensor(Scalar(generator_of(device).next()), DType::U64));
}
}  // namespace

int64_t cpu_fallbacks() { return fallbacks; }

void cpu_fallback(Frame& f, int key) {
  if (ops::sent_on(f, key)) return;
  ops::check_backend_args(f, key);
  ++fallbacks;
  const Op& op = *f.op;
  const DefaultDevice here(Device::CPU);
  HostCopies copies(f);
  FrameCopy copy(f);
  for_each_tensor(f, [&](const Tensor& t, int param, int element) {
    if (HostCopies::is_elsewhere(t)) copy.set(param, element, copies.here(t));
  });
  if (op.device_param >= 0) copy.set(op.device_param, Device::CPU);
  if (op.has(kRandom)) set_key(f, copy, Device(key));
  Tensor results[kMaxResults];
  Tensors list;
  Frame lower = copy.into(results, &list);
  call(lower);
  if (op.form != OpForm::Functional) return copies.write_back(f.tensor(0));
  for (const Tensor& t : list) f.list->push_back(to_device(t, Device(key)));
  const bool gives_list = op.schema.result_kind == ResultKind::TensorList;
  for (int i = 0; !gives_list && i < op.schema.n_results; ++i)
    f.results[i] = to_device(results[i], Device(key));
}

namespace ops {

namespace {
bool are_all_on(Device device, const Frame& f) {
  bool all = f.op->simple;
  for (const uint8_t i : f.op->tensor_params) {
    const TensorImpl* const t = all && f.args[i] ? f.arg<Tensor>(i).impl() : nullptr;
    all = t && t->device == device;
  }
  return all;
}

/// Those behind the first come to its device.
bool gathered(Frame& f, Device device) {
  const auto elsewhere = [device](const Tensor& t) { return t.defined() && t.device() != device; };
  bool some = false;
  for_each_tensor(f, [&](const Tensor& t, int, int) { some = some || elsewhere(t); });
  if (!some) return false;
  FrameCopy copy(f);
  for_each_tensor(f, [&](const Tensor& t, int param, int element) {
    if (elsewhere(t)) copy.set(param, element, to_device(t, device));
  });
  Frame together = copy.into(f.results, f.list);
  f.op->cells[int(device)](together, int(device));
  return true;
}

/// The result is made here and goes there.
void made_and_moved(Frame& f, int key, Device device) {
  FrameCopy copy(f);
  copy.clear(f.op->device_param);
  Tensor result;
  Frame here = copy.into(&result);
  f.op->cells[key](here, key);
  under_own_name(f, "to_device", [&] { f.results[0] = to_device(result, device); });
}
}  // namespace

bool sent_across(Frame& f, int key) {
  const Op& op = *f.op;
  if (op.has(kAnyDevice)) return false;  // its launch goes there itself
  if (op.device_param < 0 && are_all_on(Device(key), f)) [[likely]]
    return false;
  if (op.device_param < 0) {
    const Tensor &self = f.tensor(op.form == OpForm::Out), &written = f.tensor(0);
    if (!self.defined() || !written.defined() || written.device() != self.device()) return false;
    return gathered(f, self.device());
  }
  if (f.none(op.device_param)) return false;
  const auto device = f.arg<Device>(op.device_param);
  LAMELLA_CHECK(op.form == OpForm::Functional || f.tensor(0).device() == device, Device,
                "{}: out is on {}, and device = {}; expected one device", op_name(f),
                name(f.tensor(0).device()), name(device));
  if (int(device) == key) return op.has(kRandom) && gathered(f, device);
  if (op.has(kCrosses)) made_and_moved(f, key, device);
  else if (!op.has(kRandom) || !gathered(f, device)) op.cells[int(device)](f, int(device));
  return true;
}

namespace {
void launch_move(const Launch& l) {
  const Tensor &x = l.frame.tensor(0), &out = l.outs[0];
  LAMELLA_CHECK(x.device() != Device::Meta, Value,
                "{}: x: {} is on meta, and device = {}; expected a tensor that has values", op_name(l.frame),
                x, name(out.device()));
  const size_t nbytes = size_t(x.numel() * itemsize(x.dtype()));
  if (x.is_contiguous()) return copy_bytes(out.raw_data(), out.device(), x.raw_data(), x.device(), nbytes);
  const Tensor from = on_host(x), dense = is_host(out.device()) ? out : make_tensor(x.sizes(), x.dtype());
  const View result = dense.view_of(), source = from.view_of();
  static const kernels::Kernel& copy = kernels::named("copy");
  run_kernel(l.frame, copy.on(is_internal(x.dtype()) ? Device::Reference : Device::CPU),
             {{&result, 1}, {&source, 1}, x.dtype()});
  if (!is_host(out.device())) copy_bytes(out.raw_data(), out.device(), dense.raw_data(), Device::CPU, nbytes);
}

void infer_moved(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  LAMELLA_CHECK(!is_internal(x.dtype()) || f.arg<Device>(1) == Device::Reference, DType,
                "{}: x is {}, a dtype of the reference column only; expected a public one", op_name(f), x);
  infer_same(f, out);
}

/// Laws that go on with a result keep to one device; 170 and 172, and those of devices' plug-ins, cross.
Values move_samples(Draw& d) {
  Values v = unary(d, kAllTypes);
  v.push_back(Device::CPU);
  return v;
}
}  // namespace

void define_devices() {
  OpTable::add({.schema = "to_device(Tensor x, Device device) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_moved,
                .launch = launch_move,
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", saves("x.device"), on_device)},
                .properties = kLinear | kAnyDevice | kCrosses | kNoInPlace | kNoOut,
                .promises = {.once = true},
                .samples = move_samples,
                .doc =
                    "A contiguous copy of x on a device, also where it is already. Errors: device for one "
                    "without memory, value for x on meta, which has no elements, dtype for one that only the "
                    "reference column has."});
}

}  // namespace ops
}  // namespace lamella
