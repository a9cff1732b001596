// Any operator by name with any arguments, plain or under a transform: it answers.
#include <algorithm>

#include "lamella/dispatch/call.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/jvp.h"
#include "lamella/transforms/vmap.h"

#include "values.h"

namespace lamella::fuzz {
namespace {

/// Ordinary tensors, views with steps and repeats, other devices, empty and undefined ones.
Tensor draw_tensor(Bytes& b) {
  const uint8_t how = b.byte();
  if (how == 255) return {};
  const DType dtype = DType(b.below(kDTypeCount));
  static constexpr Device kDevices[] = {Device::CPU, Device::CPU, Device::CPU, Device::Reference,
                                        Device::Meta};
  const Device device = kDevices[how / 8 % 5];
  const int rank = how % 8 < 6 ? how % 8 % 4 : int(b.below(8));
  Dims sizes;
  for (int d = 0; d < rank; ++d) sizes.push_back(b.below(4));
  const uint8_t layout = b.byte();
  if (device != Device::Meta && layout % 4 == 3) {
    Dims strides;
    int64_t last = 0;
    for (int d = 0; d < rank; ++d) {
      strides.push_back(b.below(4));
      last += (sizes[d] ? sizes[d] - 1 : 0) * strides[d];
    }
    const int64_t offset = layout / 4 % 4;
    const Tensor base = make_tensor(Dims{last + offset + 1}, dtype, device);
    uint8_t* bytes = static_cast<uint8_t*>(base.raw_data());
    for (int64_t i = 0; i < (last + offset + 1) * itemsize(dtype); ++i)
      bytes[i] = dtype == DType::Bool ? b.byte() % 2 : b.byte();
    return make_view(base, sizes, strides, offset);
  }
  const Tensor t = make_tensor(sizes, dtype, device);
  if (device == Device::Meta) return t;
  uint8_t* bytes = static_cast<uint8_t*>(t.raw_data());
  for (int64_t i = 0; i < t.numel() * itemsize(dtype); ++i)
    bytes[i] = dtype == DType::Bool ? b.byte() % 2 : b.byte();
  return t;
}

struct Call {
  const Op* op;
  Values args;

  /// Positions of tensor arguments that keep `wanted`.
  template <class F> std::vector<size_t> tensors(F&& wanted) const {
    std::vector<size_t> out;
    for (size_t i = 0; i < args.size(); ++i)
      if (const auto* t = std::get_if<Tensor>(&args[i]); t && t->defined() && wanted(*t)) out.push_back(i);
    return out;
  }
  Function with(std::vector<size_t> at) const {
    return [this, at](const Tensors& xs) {
      Values full = args;
      for (size_t k = 0; k < at.size(); ++k) full[at[k]] = xs[k];
      return call(*op, full);
    };
  }
  Tensors values(const std::vector<size_t>& at) const {
    Tensors out;
    for (const size_t i : at) out.push_back(std::get<Tensor>(args[i]));
    return out;
  }
};

constexpr int64_t kMostSummed = 1 << 20;

bool differentiable(const Tensor& t) { return is_inexact(t.dtype()); }

void call_under(const Call& c, uint32_t transform) {
  if (transform == 0) {
    for (const Tensor& y : call(*c.op, c.args)) (void)str(y);
    return;
  }
  if (transform == 1) {
    const auto at = c.tensors([](const Tensor& t) { return t.rank() > 0; });
    vmap(c.with(at), {{0}, {0}, Randomness::Different, -1})(c.values(at));
    return;
  }
  const auto at = c.tensors(differentiable);
  const Tensors xs = c.values(at);
  if (transform == 2) {
    jvp(c.with(at), xs, xs);
    return;
  }
  const VjpResult r = vjp(c.with(at), xs);
  // expand makes results of 10^12 elements from one, and its pullback adds them up: right, but no answer in
  // time.
  if (std::ranges::any_of(r.values, [](const Tensor& y) { return y.numel() > kMostSummed; })) return;
  r.pullback(r.values);
}

void run_boxed_call(const uint8_t* data, size_t size) {
  static const std::vector<const Op*> ops = OpTable::current().rows();
  Bytes b(data, size);
  const Op& op = *ops[(b.byte() | size_t(b.byte()) << 8) % ops.size()];
  const uint32_t transform = b.below(4);
  answers([&] {
    Call c{&op, {}};
    const int off = b.byte();  // one more or fewer than the schema has
    const size_t n =
        op.schema.params.size() + (off == 255 ? 1 : 0) - (off == 254 && !op.schema.params.empty() ? 1 : 0);
    for (size_t i = 0; i < n; ++i) c.args.push_back(draw_value(b, op.schema, i, draw_tensor));
    call_under(c, transform);
  });
}

[[maybe_unused]] const bool boxed_call_added = add_target("boxed_call", run_boxed_call);
}  // namespace
}  // namespace lamella::fuzz
