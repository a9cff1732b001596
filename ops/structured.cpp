// How operators run on a backend: infer, allocate (or check), launch. One text for every operator, form and
// column.
#include "lamella/ops/structured.h"

#include <algorithm>
#include <bit>

#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/define.h"
#include "lamella/ops/devices.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/straight.h"

namespace lamella::ops {

namespace {
[[noreturn, gnu::cold, gnu::noinline]] void refuse_inferred(const Frame& f, const Tensor& t, Ints sizes) {
  fail(ErrorCode::Schema,
       "{}: its shape function gives {}, to which {} does not broadcast; expected sizes that all operands do",
       op_name(f), Dims(sizes), t);
}
}  // namespace

View broadcast_view(const Frame& f, const Tensor& t, Ints sizes, Dims& strides) {
  View v = t.view_of();
  const int rank = int(sizes.size()), shift = rank - v.rank;
  if (shift < 0) [[unlikely]]
    refuse_inferred(f, t, sizes);
  strides.resize(rank);
  int64_t* const to = strides.data() + shift;
  const int64_t* const wanted = sizes.data() + shift;
  for (int d = 0; d < shift; ++d) strides.data()[d] = 0;
  for (int d = 0; d < v.rank; ++d) {
    const bool same = v.sizes[d] == wanted[d];
    if (!same && v.sizes[d] != 1) [[unlikely]]
      refuse_inferred(f, t, sizes);
    to[d] = same ? v.strides[d] : 0;
  }
  v.rank = rank;
  v.sizes = sizes.data();
  v.strides = strides.data();
  return v;
}

/// What a kernel refuses is the operator's error: kernels do not know who called them.
void run_kernel(const Frame& frame, KernelFn kernel, const KernelCall& call) {
  LAMELLA_CHECK(
      kernel, NoKernel,
      "{}: a kernel that it runs is missing for its device; expected a cell of that device's own, or "
      "tensors on the CPU",
      op_name(frame));
  try {
    kernel(call);
  } catch (const Error& e) { throw e.within(op_name(frame)); }
}

bool sums_as_built_in() {
  static constinit const OpHandle handle("sum");
  const Column* const column = (*handle).column(int(Device::CPU));
  return !column || column->chosen == 0;
}

KernelFn clone_on(Device device) {
  static constinit const OpHandle handle("clone");
  return (*handle).kernel.on(device);
}

void run(const Launch& l, std::span<const View> outs, std::span<const View> ins, Ints ints,
         std::span<const Scalar> scalars) {
  run(l, l.frame.op->kernel, outs, ins, ints, scalars);
}

void run(const Launch& l, const Kernels& k, std::span<const View> outs, std::span<const View> ins, Ints ints,
         std::span<const Scalar> scalars) {
  run_kernel(l.frame, k.on(l.device), {outs, ins, l.inferred.compute, ints, scalars});
}

namespace {

/// An optional tensor is left out as None, or as an undefined one.
bool is_given(const Frame& f, int i) {
  return !f.none(i) && (f.op->schema.params[size_t(i)].kind != ParamKind::Tensor || f.tensor(i).defined());
}

void launch_broadcast(const Launch& l) {
  View ins[kMaxBroadcast];
  Dims strides[kMaxBroadcast];
  size_t n = 0;
  const View out = l.outs[0].view_of();
  for (const uint8_t i : l.frame.op->tensor_params)
    if (is_given(l.frame, i)) {
      ins[n] = broadcast_view(l.frame, l.frame.tensor(i), l.outs[0].sizes(), strides[n]);
      ++n;
    }
  run(l, {&out, 1}, {ins, n}, l.inferred.ints);
}

}  // namespace

namespace {
[[noreturn, gnu::cold, gnu::noinline]] void refuse_reduced(const Launch& l, const Tensor& x) {
  fail(ErrorCode::Schema, "{}: its shape function gives {} for {} without the dims {}; expected what is left",
       op_name(l.frame), l.outs[0], x, Dims(l.inferred.ints));
}
}  // namespace

/// The output seen with the input's rank: reduced dims have size 1.
void launch_reduce(const Launch& l, const Tensor& x) {
  const Tensor& y = l.outs[0];
  Dims sizes(x.rank(), 1), strides(x.rank(), 0);
  const bool kept = y.rank() == x.rank();
  int o = 0;
  bool fits = true;  // kernels go by one plan for both
  for (int d = 0; d < x.rank(); ++d) {
    const bool reduced =
        std::find(l.inferred.ints.begin(), l.inferred.ints.end(), d) != l.inferred.ints.end();
    if (reduced && !kept) continue;
    if (o == y.rank() || y.sizes()[size_t(o)] != (reduced ? 1 : x.sizes()[size_t(d)])) {
      fits = false;
      break;
    }
    if (!reduced) {
      sizes[d] = y.sizes()[size_t(o)];
      strides[d] = y.strides()[size_t(o)];
    }
    ++o;
  }
  if (!fits || o != y.rank()) [[unlikely]]
    refuse_reduced(l, x);
  View out = y.view_of();
  out.rank = x.rank();
  out.sizes = sizes.data();
  out.strides = strides.data();
  const View in = x.view_of();
  run(l, {&out, 1}, {&in, 1}, l.inferred.ints);
}

namespace {

void launch_plain(const Launch& l) {
  std::vector<View> ins, outs;
  for (const uint8_t i : l.frame.op->tensor_params)
    if (is_given(l.frame, i)) ins.push_back(l.frame.tensor(i).view_of());
  for (const Tensor& t : l.outs) outs.push_back(t.view_of());
  run(l, outs, ins, l.inferred.ints);
}

/// Lists have as many as their arguments say, and what is no list as many as the schema says.
[[gnu::cold, gnu::noinline]] void check_count(const Frame& f, const Inferred& inferred) {
  LAMELLA_CHECK(f.op->schema.result_kind == ResultKind::TensorList, Schema,
                "{}: its shape function gives {} results, expected {} as {} says", op_name(f),
                inferred.outs.size(), f.op->schema.n_results, str(f.op->schema));
}

void launch(const Frame& f, const Inferred& inferred, std::span<const Tensor> outs, Device device) {
  const Op& op = *f.op;
  const Launch l{f, inferred, outs, device};
  if (op.launch) return op.launch(l);
  if (op.shape == ShapeClass::Broadcast) return launch_broadcast(l);
  if (op.shape == ShapeClass::Reduce) return launch_reduce(l, f.tensor(0));
  launch_plain(l);
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_defined(const Frame& f, const Inferred& out) {
  fail(*out.refused, "{}: the definition refuses these arguments", op_name(f));
}

/// The results, or that they are refused: only by definitions of composites, others raise.
void ask(const Frame& f, Inferred& out) {
  const Op& op = *f.op;
  if (op.infer) op.infer(f, out);
  else if (op.shape == ShapeClass::Broadcast) infer_broadcast(f, out);
  else infer_same(f, out);
  if (!out.refused && out.outs.size() != size_t(op.schema.n_results)) [[unlikely]]
    check_count(f, out);
}

void infer(const Frame& f, Inferred& out) {
  ask(f, out);
  if (out.refused) [[unlikely]]
    refuse_defined(f, out);
}

[[gnu::noinline]] bool sent_up_slowly(Frame& f) {
  const auto late = [](const Tensor& t) { return t.defined() && comes_late(*t.impl()); };
  for (const uint8_t i : f.op->tensor_params) {
    if (f.none(i)) continue;
    if (f.op->schema.params[i].kind == ParamKind::TensorList) {
      if (!std::ranges::any_of(f.tensors(i), late)) continue;
    } else if (!late(f.tensor(i))) continue;
    f.op->cells[kAutogradKey](f, kAutogradKey);
    return true;
  }
  return false;
}

/// True when the call went up, for some tensor comes late. Most are in no family, or in one without history.
inline bool sent_up(Frame& f) {
  if (dispatch_state().exclude & KeySet::of(kAutogradKey).bits) return false;
  bool some = !f.op->simple;
  for (const uint8_t i : f.op->tensor_params)
    if (const auto* t = static_cast<const Tensor*>(f.args[i]); !some && t && t->impl())
      some = has_late_history(t->impl());
  return some && sent_up_slowly(f);
}

/// Of tensors beside device= the sizes alone are read.
bool names_device(const Frame& f) { return f.op->device_param >= 0 && !f.none(f.op->device_param); }

/// Whether another device may have a part in the call: its operator crosses devices, or it names one.
inline bool has_devices(const Frame& f) {
  if (!(f.op->properties & (kCrosses | kNamesDevice))) [[likely]]
    return false;
  return f.op->device_param < 0 || names_device(f);
}
inline bool is_sent_on(Frame& f, int key) { return sent_up(f) || (has_devices(f) && sent_across(f, key)); }

[[gnu::noinline]] void check_args_slowly(const Frame& f, int key) {
  check_defined(f);
  const bool anywhere = names_device(f);
  if (!anywhere) check_one_device(f);
  for_each_tensor(f, [&](const Tensor& t, int i, int) {
    if (!t.defined()) return;
    LAMELLA_CHECK(anywhere || int(t.device()) == key, Device, "{}: {} is on {}, expected {} as out",
                  op_name(f), arg_name(f, i), name(t.device()), name(Device(key)));
    // A mode that lies where the wrapper's level did lets it through.
    if (const uint64_t levels = t.keys() >> kFirstLevelKey; levels != 0 && !t.impl()->storage)
      raise_escaped(f, kFirstLevelKey + std::countr_zero(levels));
    LAMELLA_ASSERT(t.impl()->storage || t.device() == Device::Meta);  // no wrapper reaches a backend
    LAMELLA_CHECK(t.device() == Device::Reference || !is_internal(t.dtype()), DType,
                  "{}: {} is {}, a dtype of the reference column only; expected a public one", op_name(f),
                  arg_name(f, i), t);
  });
}

/// A look at what most arguments are; who is anything else is asked why.
inline void check_args(const Frame& f, int key) {
  bool usual = f.op->simple;
  for (const uint8_t i : f.op->tensor_params) {
    const TensorImpl* const t = usual && f.args[i] ? f.arg<Tensor>(i).impl() : nullptr;
    usual = t && int(t->device) == key && t->storage && !is_internal(t->dtype);
  }
  if (!usual) [[unlikely]]
    check_args_slowly(f, key);
}

/// A device's own author may take tensors of others.
bool enter(Frame& f, int key) {
  if (sent_up(f) || (names_device(f) && sent_across(f, key))) return false;
  Device(key) <= Device::Meta ? check_args(f, key) : check_defined(f);
  return true;
}

[[gnu::noinline]] void run_general(Frame& f, int key) {
  if (sent_up(f)) return;
  auto to = Device(key);
  if (has_devices(f)) [[unlikely]] {
    if (sent_across(f, key)) return;
    if (names_device(f)) to = f.arg<Device>(f.op->device_param);
  }
  check_args(f, key);
  Inferred inferred;
  infer(f, inferred);
  const size_t n = inferred.outs.size();
  Tensor outs[kMaxResults];
  for (size_t i = 0; i < n; ++i) {
    LAMELLA_CHECK(to == Device::Reference || !is_internal(inferred.outs[i].dtype), DType,
                  "{}: dtype = {} exists in the reference column only; expected a public one", op_name(f),
                  inferred.outs[i].dtype);
    under_own_name(f, "empty",
                   [&] { outs[i] = make_tensor(inferred.outs[i].sizes, inferred.outs[i].dtype, to); });
  }
  if (to != Device::Meta) launch(f, inferred, {outs, n}, Device(key));
  for (size_t i = 0; i < n; ++i) f.results[i] = std::move(outs[i]);
}

/// see NOTE: [definitions of composites]
void run_definition(Frame& f, const Inferred& inferred) {
  Tensors outs;
  for (const Shape& s : inferred.outs) outs.push_back(make_tensor(s.sizes, s.dtype, Device::Reference));
  launch(f, inferred, outs, Device::Reference);
  if (f.op->schema.result_kind == ResultKind::TensorList) *f.list = std::move(outs);
  else std::ranges::move(outs, f.results);
}

/// What the definition refuses the composite refuses in words that say why; what it lets pass is refused.
void definition_cell(Frame& f) {
  if (sent_up(f)) return;
  check_args(f, int(Device::Reference));
  Inferred inferred;
  ask(f, inferred);
  if (inferred.refused) [[unlikely]] {
    f.op->composite(f);
    refuse_defined(f, inferred);
  }
  run_definition(f, inferred);
}

void backend_cell(Frame& f, int key) {
  if (key == int(Device::CPU) && run_straight(f, nullptr)) return;
  f.op->composite ? definition_cell(f) : run_general(f, key);
}

/// Whether a view of x, by any operator but detach(), belongs to x's family: not in scopes without
/// derivatives, but where base autograd alone is off, as in its own backward, for the levels inside.
bool follows(const Tensor& x) {
  const DispatchState& s = dispatch_state();
  if (!(s.exclude & KeySet::of(kAutogradKey).bits)) return true;
  const Storage* const memory = x.impl()->storage;
  return memory && memory->made_under_level() && !s.modes;
}

/// The result, a view of x.
inline void enter_family_of(const Tensor& x, const Frame& f) {
  if (!f.op->vjp.empty() && follows(x)) return Family::join(f.results[0], Family::of(x));
  // No family knows of this view: memory that a level could promote counts as made outside from now on.
  if (Storage* const memory = x.impl()->storage; memory && memory->made_under_level()) memory->disown();
}

[[gnu::noinline]] void view_generally(Frame& f, int key) {
  if (sent_up(f)) return;
  check_args(f, key);
  const Tensor& x = f.tensor(f.op->tensor_params[0]);
  const Geometry g = f.op->view(f, {x.sizes(), x.strides(), x.impl()->offset});
  LAMELLA_CHECK(g.sizes.size() <= kMaxDims, Shape, "{}: {} is {}; expected a result of at most {} dims",
                op_name(f), arg_name(f, f.op->tensor_params[0]), x, kMaxDims);
  std::construct_at(f.results,  // an empty slot, as every result's before a call
                    make_view_unchecked(x, g.sizes, g.strides, g.offset, g.dtype.value_or(x.dtype())));
  enter_family_of(x, f);
}

void view_cell(Frame& f, int key) {
  if (const Op& op = *f.op; op.edit && op.view == op.edit_of) {
    const Tensor& x = f.tensor(0);
    if (view_in_header(f, x.impl(), key)) return enter_family_of(x, f);
  }
  view_generally(f, key);
}

/// Whether `target` is like the memory that a kernel gets for its result: gapless, of its dtype, apart from
/// all that it reads. What may raise in its middle is left out: then `target` stays as it was. Kernels of
/// indices look at all of them first.
bool may_be_result(const Frame& f, const Tensor& target, const Shape& result) {
  const bool raises = f.op->has(kValueErrors) && f.op->shape != ShapeClass::Index;
  if (raises || target.dtype() != result.dtype || !target.is_contiguous()) return false;
  return std::ranges::all_of(f.op->tensor_params, [&](uint8_t i) {
    return f.none(i) || (f.op->schema.params[i].kind == ParamKind::Tensor &&
                         (!f.tensor(i).defined() || overlap(target, f.tensor(i)) == Overlap::None));
  });
}

/// As a kernel's results are allocated and launched, but on `target`. Whether that write is still to be
/// counted: a copy counts itself, on Meta nothing is written.
bool launch_into(Frame& base, const Tensor& target, std::string_view arg, int key) {
  check_args(base, key);
  Inferred inferred;
  infer(base, inferred);
  check_written(base, arg, target, inferred.outs[0]);
  if (key == int(Device::Meta)) return false;
  // Into an out of another dtype a kernel would store what it has, halves in f32 and numbers as they were
  // given, and not what the result keeps of it. In place a result of another dtype is never a half.
  const bool as_result = arg != "out" || target.dtype() == inferred.outs[0].dtype;
  const bool straight = base.op->shape == ShapeClass::Broadcast || base.op->shape == ShapeClass::Factory;
  if ((as_result && straight) || may_be_result(base, target, inferred.outs[0])) {
    launch(base, inferred, {&target, 1}, Device(key));
    return true;
  }
  // Other kernels may read an element after writing it.
  const Tensor result = make_tensor(inferred.outs[0].sizes, inferred.outs[0].dtype, Device(key));
  launch(base, inferred, {&result, 1}, Device(key));
  copy_(target, result);
  return false;
}

/// Writes the functional result of `base` into `target`.
void write_into(Frame& base, const Tensor& target, std::string_view arg, int key) {
  if (base.op->composite || base.op->brought[key]) {
    Tensor result;
    base.results = &result;
    base.op->cells[key](base, key);
    check_written(base, arg, target, {result.sizes(), result.dtype()});
    static constinit const OpHandle copy("copy");
    if (base.op->id != (*copy).id) return void(copy_(target, result));
    Storage* const to_write = target.impl()->storage;
    if (!to_write) return;  // meta; else it is copy_ itself, for which somebody brought a cell
    if (overlap(target, result) != Overlap::None) result = clone(result);  // the cell may give what it took
    const View to = target.view_of(), from = result.view_of();
    run_kernel(base, clone_on(Device(key)), {{&to, 1}, {&from, 1}, target.dtype()});
    return void(to_write->bump());
  }
  const bool on_cpu = key == int(Device::CPU) && target.defined();
  const bool straight = on_cpu && run_straight(base, target.impl());
  if (!straight && !launch_into(base, target, arg, key)) return;
  target.impl()->storage->bump();
}

void in_place_cell(Frame& f, int key) {
  if (is_sent_on(f, key)) return;
  const Tensor& target = f.tensor(0);
  Frame base = f;
  base.op = f.op->base;
  write_into(base, target, arg_name(f, 0), key);
}

void out_cell(Frame& f, int key) {
  if (is_sent_on(f, key)) return;
  const Tensor& target = f.tensor(0);
  if (!target.defined()) [[unlikely]]
    check_defined(f);
  Frame base = f;
  base.op = f.op->base;
  base.args = f.args + 1;
  if (int(target.device()) != key) [[unlikely]] {
    check_one_device(base);
    fail(ErrorCode::Device, "{}: out is on {}, expected {} as the arguments", op_name(base),
         name(target.device()), name(Device(key)));
  }
  LAMELLA_ASSERT(target.impl()->storage || key == int(Device::Meta));
  write_into(base, target, "out", key);
}

}  // namespace

bool sent_on(Frame& frame, int key) { return is_sent_on(frame, key); }
void check_backend_args(const Frame& frame, int key) { check_args(frame, key); }

void check_target(const Op& base, std::string_view arg, const Tensor& target, const Shape& result) {
  LAMELLA_CHECK(std::ranges::equal(target.sizes(), Ints(result.sizes)), Shape,
                "{}: {} is {}, expected {} to hold the result", base.name, arg, target,
                type_str(target.dtype(), result.sizes));
  const bool internal = is_internal(target.dtype()) || is_internal(result.dtype);
  LAMELLA_CHECK(
      target.device() == Device::Reference || !internal, DType,
      "{}: {} is {} for a result of {}, a dtype of the reference column only; expected a public one",
      base.name, arg, target, result.dtype);
  LAMELLA_CHECK(can_store(result.dtype, target.dtype()), DType,
                "{}: {} is {}; expected a dtype that can hold the result's {}", base.name, arg, target,
                result.dtype);
  const bool converts = arg != "out" || !base.has(kExactOut);
  LAMELLA_CHECK(converts || result.dtype == target.dtype(), DType, "{}: {} is {}, expected dtype {}",
                base.name, arg, target, result.dtype);
  LAMELLA_CHECK(
      !overlaps_itself(target), Overlap,
      "{}: {} is {} with strides {}; expected elements that share no memory: clone it before writing",
      base.name, arg, target, Dims(target.strides()));
}

void check_written(const Frame& base, std::string_view arg, const Tensor& target, const Shape& result) {
  check_target(*base.op, arg, target, result);
  const auto check = [&](const Tensor& t, int i) {
    LAMELLA_CHECK(!t.defined() || overlap(target, t) != Overlap::Partial, Overlap,
                  "{}: {} and {} share part of their memory; expected all of it or none: clone one of them",
                  op_name(base), arg, arg_name(base, i));
  };
  for (const uint8_t i : base.op->tensor_params) {
    if (base.none(i)) continue;
    if (base.op->schema.params[i].kind == ParamKind::Tensor) check(base.tensor(i), i);
    else
      for (const Tensor& t : base.tensors(i)) check(t, i);
  }
}

void infer_frame(const Frame& frame, Inferred& out) { infer(frame, out); }

bool has_definition(const Op& op) { return op.composite && op.infer && op.kernel.reference; }

Tensors call_definition(const Op& op, const Values& values) {
  const BoxedArgs args(op, values);
  Tensors list, results(size_t(op.schema.n_results));
  Frame frame{&op, args.data(), results.data(), &list};
  check_args(frame, int(Device::Reference));
  Inferred inferred;
  infer(frame, inferred);
  run_definition(frame, inferred);
  return op.schema.result_kind == ResultKind::TensorList ? list : results;
}

void install_class_hooks() {
  const auto gives_one = [](const Op& op) { return is_of_class(op.infer); };
  set_class_hooks({.backend = backend_cell,
                   .meta = backend_cell,
                   .in_place = in_place_cell,
                   .out = out_cell,
                   .view = view_cell,
                   .kernel = run_general,
                   .enter = enter,
                   .probe_lines = probe_lines,
                   .gives_one = gives_one});
}

}  // namespace lamella::ops
