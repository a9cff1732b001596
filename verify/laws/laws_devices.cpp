// Laws of devices: where results lie, what moves between devices, what is refused.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "lamella/core/generator.h"
#include "lamella/core/scoped_device.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/devices.h"
#include "lamella/ops/functions/join.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {

/// Those that have memory, and Meta.
std::vector<Device> devices() {
  std::vector<Device> out = {Device::CPU, Device::Reference, Device::Meta};
  for (const Device d : {Device::CUDA, Device::User0, Device::User1})
    if (device_hooks(d)) out.push_back(d);
  return out;
}

/// Elements of random operators and of arange are rounded by each column's own text.
Finding unlike(const Tensor& got, const Tensor& want, Device device) {
  const std::string where = format("on {}: ", name(device));
  if (got.device() != device) return where + format("the result lies on {}", name(got.device()));
  if (got.dtype() != want.dtype() || !std::ranges::equal(got.sizes(), want.sizes()))
    return {type_kind(got, want), where + format("got {}, expected {}", got, want)};
  if (device == Device::Meta) return "";
  const Finding d = disagrees(to_device(got, Device::CPU), want, Agreement::Rounding);
  return d.empty() ? "" : where + d;
}

/// The case with device= as given, or without it.
Tensor called(const Case& c, const Value& device) {
  Values args = c.args;
  args[size_t(c.op.device_param)] = device;
  Generator own(7);
  const ScopedGenerator on(own);
  return call_boxed(c.op, args)[0];
}

/// Where a call that says nothing of devices leaves its result inside DefaultDevice(device).
Finding default_counts(const Case& c, const Tensor& want, Device device) {
  const DefaultDevice around(device == Device::Meta ? Device::CPU : Device::Meta);
  const DefaultDevice here(device);
  const bool has_tensor = !c.tensors().empty();
  if (!c.op.schema.params[size_t(c.op.device_param)].optional) return "";
  Finding d = unlike(called(c, Value()), want, has_tensor ? Device::CPU : device);
  if (d.empty()) d = unlike(called(c, Device::CPU), want, Device::CPU);  // what is said counts more
  const DispatchState::Captured captured = DispatchState::capture();
  Device bare = device, carried = Device::CUDA;
  std::thread([&] {
    bare = dispatch_state().default_device;
    const ScopedState on(captured);
    carried = dispatch_state().default_device;
  }).join();
  if (d.empty() && bare != Device::CPU) d = format("another thread begins on {}", name(bare));
  if (d.empty() && carried != device) d = format("a captured state carries {}", name(carried));
  return d;
}

Verdict made_where_asked(Case& c) {
  const Tensor want = called(c, Device::CPU);
  const std::vector<Device> all = devices();
  const Device device = all[c.draw.below(uint32_t(all.size()))];
  Finding d = unlike(called(c, device), want, device);
  if (d.empty()) d = default_counts(c, want, device);
  if (d.empty() && dispatch_state().default_device != Device::CPU) d = "the scope left its device behind";
  const Op* const out = form_of(c.op, OpForm::Out);
  if (d.empty() && out && device != Device::CPU) {
    Values args = c.args;
    args[size_t(c.op.device_param)] = device;
    args.insert(args.begin(), make_tensor(want.sizes(), want.dtype()));
    const Status s = status_of([&] { call_boxed(*out, args); });
    if (!s.raised || s.code != ErrorCode::Device) d = "out= on another device than device= is taken";
  }
  return Verdict::of(d);
}

std::string text_of(const std::function<void()>& f, ErrorCode& code) {
  try {
    f();
  } catch (const Error& e) {
    code = e.code();
    return e.what();
  }
  return "";
}

/// One tensor lies elsewhere: refused in words that name operator, both arguments and both devices.
Verdict devices_do_not_mix(Case& c) {
  const auto& slots = c.tensors();
  const size_t k = 1 + c.draw.below(uint32_t(slots.size() - 1));
  const Tensor moved = to_device(c.at(slots[k]), Device::Reference);
  ErrorCode code = ErrorCode::Internal;
  const Values args = c.with({slots[k]}, {moved});
  Tensors got;
  const std::string text = text_of([&] { got = call_boxed(c.op, args); }, code);
  if (c.op.has(kCrosses)) {
    if (!text.empty()) return Verdict::of("refused: " + text);
    const Tensors want = call_boxed(c.op, c.args);
    return Verdict::of(got[0].device() != Device::CPU ? "the result lies elsewhere" : differs(got, want));
  }
  const auto& params = c.op.schema.params;
  const std::string here = params[size_t(slots[0].param)].name, there = params[size_t(slots[k].param)].name;
  if (text.empty()) return Verdict::of("tensors of two devices are taken");
  if (code != ErrorCode::Device) return Verdict::of("refused as " + std::string(name(code)) + ": " + text);
  for (const std::string& word : {c.op.name + ":", here + " is on cpu", there + " is on reference"})
    if (text.find(word) == std::string::npos) return Verdict::of("\"" + word + "\" is not in: " + text);
  return Verdict::pass();
}

/// A device that does nothing until somebody waits for it: till then its memory holds what it held. Who reads
/// without waiting reads that.
thread_local std::vector<std::function<void()>> asked_of_device;
void do_what_was_asked() {
  for (const auto& todo : asked_of_device) todo();
  asked_of_device.clear();
}
constexpr DeviceHooks kLate{
    .allocate =
        [](size_t n) {
          void* const p = std::aligned_alloc(64, (n + 63) / 64 * 64);
          if (p) std::memset(p, 0x5a, n);
          return p;
        },
    .free =
        [](void* p, size_t) {
          do_what_was_asked();
          std::free(p);
        },
    .copy_to =
        [](void* to, const void* host, size_t n) {
          const auto* const bytes = static_cast<const char*>(host);
          asked_of_device.emplace_back(
              [to, now = std::vector<char>(bytes, bytes + n)] { std::memcpy(to, now.data(), now.size()); });
        },
    .copy_from = [](void* host, const void* from, size_t n) { std::memcpy(host, from, n); },
    .copy_within =
        [](void* to, const void* from, size_t n) {
          asked_of_device.emplace_back([to, from, n] { std::memmove(to, from, n); });
        },
    .synchronize = do_what_was_asked};

/// One that nobody has taken; CPU: there is none.
Device free_device() {
  for (const Device d : {Device::User1, Device::User0})
    if (!device_hooks(d)) return d;
  return Device::CPU;
}

/// What the host reads of a tensor elsewhere is what was written there, in whatever way it reads.
Finding unlike_there(const Tensor& x, Device device) {
  const auto there = [&] { return to_device(x, device); };
  if (Finding d = disagrees(to_device(there(), Device::CPU), x, Agreement::Bitwise); !d.empty())
    return "there and back: " + d;
  std::string text = str(there());
  const std::string on = format(" on {}", name(device));
  if (const size_t at = text.find(on); at != text.npos) text.erase(at, on.size());
  if (text != str(x)) return format("printed as {}, expected {}", text, str(x));
  if (x.numel() == 0) return "";
  const auto first = [](const Tensor& t) { return make_view(t, Dims{}, Dims{}, t.impl()->offset); };
  const std::string got = first(there()).item_scalar().str(), want = first(x).item_scalar().str();
  return got == want ? "" : format("its first element is read as {}, expected {}", got, want);
}

/// A way to another device and back is the identity for every transform.
Verdict moves_are_identity(Case& c) {
  const auto slots = c.inexact();
  const Device late = c.draw.flag() ? free_device() : Device::CPU;
  std::optional<ScopedDevice> scope;
  if (late != Device::CPU) scope.emplace(late, kLate);
  const Device elsewhere = scope ? late : Device::Reference;
  const Tensors xs = c.values(slots);
  const Function f = c.smooth_function(slots);
  const auto there = [elsewhere](const Tensors& ts) {
    Tensors out;
    for (const Tensor& t : ts) {
      const Tensor far = to(t, t.dtype(), elsewhere);
      out.push_back(to_device(far, Device::CPU));
    }
    return out;
  };
  const Function g = [&](const Tensors& at) { return there(f(there(at))); };
  const Tensors ys = f(xs);
  Tensors us, ts, batch;
  for (const Tensor& x : xs) ts.push_back(c.direction(x));
  for (const Tensor& y : ys) us.push_back(c.direction(y));
  for (size_t k = 0; k < xs.size(); ++k) batch.push_back(stack({xs[k], ts[k]}, 0));
  const auto pulled = [&](const Function& h) -> Function {
    return [&, h](const Tensors& at) { return vjp(h, at).pullback(us); };
  };
  // What was moved lies without gaps, and folds in another order.
  const bool folds = c.op.shape != ShapeClass::Broadcast && !c.op.is_view();
  Finding d = disagrees(g(xs), ys, folds ? Agreement::Rounding : Agreement::Bitwise);
  for (size_t k = 0; k < xs.size() && d.empty(); ++k) d = unlike_there(xs[k], elsewhere);
  if (d.empty()) d = disagrees(jvp(g, xs, ts).tangents, jvp(f, xs, ts).tangents, Agreement::Rounding);
  if (d.empty()) d = disagrees(pulled(g)(xs), pulled(f)(xs), Agreement::Rounding);
  if (d.empty())
    d = disagrees(vjp(pulled(g), xs).pullback(ts), vjp(pulled(f), xs).pullback(ts), Agreement::Rounding);
  Tensors lanes, want;
  const Status moved = status_of([&] { lanes = vmap(g)(batch); }),
               still = status_of([&] { want = vmap(f)(batch); });
  if (d.empty() && (moved.raised != still.raised || moved.code != still.code)) d = "lanes raise otherwise";
  if (d.empty()) d = disagrees(lanes, want, Agreement::Rounding);
  // The cotangent may come on the primal's device or on the result's: it leaves on the primal's.
  const Function away = [&](const Tensors& at) { return Tensors{to_device(at[0], elsewhere)}; };
  const VjpResult r = vjp(away, {xs[0]});
  if (d.empty() && r.pullback({to_device(xs[0], elsewhere)})[0].device() != Device::CPU)
    d = "a cotangent stays on the device of the result";
  return Verdict::of(d);
}

bool takes_two(const Op& op) {
  size_t needed = 0;
  for (const uint8_t i : op.tensor_params)
    needed += op.schema.params[i].kind == ParamKind::Tensor && !op.schema.params[i].optional;
  return needed >= 2 && op.form == OpForm::Functional && op.device_param < 0;
}

}  // namespace

void add_device_laws(std::vector<Law>& laws) {
  laws.push_back({170,
                  "made_where_asked",
                  "devices",
                  "device= says where a result lies, and no number of it; without device= it is where the "
                  "tensors are, or on the innermost default device, which a captured state carries; out= on "
                  "another device is refused.",
                  {.tame = true},
                  false,
                  [](const Op& op) { return op.device_param >= 0; },
                  made_where_asked});
  laws.push_back(
      {171,
       "devices_do_not_mix",
       "devices",
       "Tensors of two devices are refused, by operator, both arguments and both devices; an operator "
       "that crosses devices brings them to the first one's.",
       {.tame = true, .max_numel = 8},
       false,
       takes_two,
       devices_do_not_mix});
  laws.push_back(
      {172,
       "moves_are_identity",
       "devices",
       "A way to another device and back, around arguments and results, changes no value, no "
       "derivative of first or second order and no lane; cotangents come back to the primal's device; one "
       "that works later is waited for.",
       {.dtypes = kFloating,
        .exact = true,
        .tame = true,
        .max_numel = 8,
        .one_large = true},  // for sums in another order
       false,
       [](const Op& op) { return has_jvp(op) && has_vjp(op); },
       moves_are_identity});
}

}  // namespace lamella::verify
