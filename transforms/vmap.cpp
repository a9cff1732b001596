// vmap: the public function and its interpreter.
#include "lamella/transforms/vmap.h"

#include <algorithm>

#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/batch.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/view.h"
#include "lamella/ops/structured.h"
#include "lamella/transforms/chunks.h"
#include "lamella/transforms/drawn.h"
#include "lamella/transforms/lanes.h"
#include "lamella/transforms/machine/interpreter.h"
#include "lamella/transforms/spare_list.h"
#include "lamella/transforms/tries.h"

namespace lamella {

namespace {

constexpr int kNotMapped = BatchCall::kNotMapped;

struct VmapWrapper : Wrapper {
  int dim = 0;  ///< of the mapped dim in `value`
  int mapped_dim() const override { return dim; }
  std::string str() const override { return format(" in {} of {}", live_key_name(key), lamella::str(value)); }
};

class Vmap final : public Interpreter {
 public:
  Vmap(int64_t size, const VmapOptions& o) : size_(size), first_(o.first_lane), randomness_(o.randomness) {}
  TransformKind kind() const override { return TransformKind::Ambient; }
  std::string_view name() const override { return "vmap"; }
  int64_t size() const { return size_; }
  int key() const { return key_; }
  std::string detail() const override { return format("size {}", size_); }

  Tensor wrap(Tensor value, int dim, Ints sizes, Ints strides, int64_t offset = 0) const {
    Tensor t = make_wrapper<VmapWrapper>(std::move(value), key_, serial_);
    static_cast<VmapWrapper*>(t.impl()->wrap)->dim = dim;
    t.impl()->set_shape(sizes, strides);
    t.impl()->offset = offset;
    return t;
  }
  /// Mapped dim in front, lanes of the shape of `lane`.
  Tensor wrap_as(Tensor value, const TensorImpl& lane) const {
    Tensor t = make_wrapper<VmapWrapper>(std::move(value), key_, serial_);
    t.impl()->set_shape_of(lane);
    return t;
  }
  /// The lane's type seen from outside: sizes and strides without the mapped dim.
  Tensor wrap_argument(const Tensor& value, int dim) const {
    const int64_t offset = value.impl()->offset;
    if (dim == 0) return wrap(value, 0, value.sizes().subspan(1), value.strides().subspan(1), offset);
    Dims sizes(value.sizes()), strides(value.strides());
    sizes.erase(dim);
    strides.erase(dim);
    return wrap(value, dim, sizes, strides, offset);
  }
  /// Results of operators are contiguous in each lane, whatever the physical layout.
  Tensor wrap_result(Tensor value) const {
    const Ints sizes = value.sizes().subspan(1), strides = value.strides().subspan(1);
    if (value.is_contiguous()) return wrap(std::move(value), 0, sizes, strides);
    return wrap(std::move(value), 0, sizes, contiguous_strides(sizes));
  }
  const VmapWrapper* wrapper(const Frame& f, const Tensor& t) const {
    if (!wraps(t)) return nullptr;
    auto* w = wrapper_at<VmapWrapper>(t, key_, serial_);
    if (!w) raise_escaped(f, key_);
    return w;
  }
  /// The value, if `t` is mapped and its mapped dim lies in front already.
  const Tensor* front_value(const Tensor& t) const {
    const auto* w = wraps(t) ? wrapper_at<VmapWrapper>(t, key_, serial_) : nullptr;
    return w && w->dim == 0 ? &w->value : nullptr;
  }
  /// The value with the mapped dim in front, or null when `t` is not mapped.
  Tensor mapped_value(const Tensor& t) const {
    const auto* w = wraps(t) ? wrapper_at<VmapWrapper>(t, key_, serial_) : nullptr;
    return w ? to_front(w->value, w->dim) : Tensor();
  }
  /// Likewise; what is not mapped is expanded.
  Tensor batch_of(const Tensor& t) const {
    if (Tensor value = mapped_value(t); value.defined()) return value;
    return expand_front(t, size_);
  }

  std::unique_ptr<Interpreter> copy() const override { return std::make_unique<Vmap>(*this); }
  Tensor entered(const Tensor& lower) const override { return wrap_argument(lower, 0); }
  Left left(const Tensor& t) const override { return {batch_of(t)}; }
  Tensor fixed(const Tensor& t) const override {
    const auto& w = *wrapper_at<VmapWrapper>(t, key_, serial_);
    return wrap(lamella::fixed(w.value), w.dim, t.sizes(), t.strides(), t.impl()->offset);
  }

 protected:
  void with_functions(Frame& f) override {
    FrameCopy batches(f);
    for_each_tensor(f, [&](const Tensor& t, int i, int element) {
      wrapper(f, t);  // or it has escaped
      if (t.defined()) batches.set(i, element, batch_of(t));
    });
    Frame lower = batches.into(f.results, f.list);
    lamella::call(lower);
    for (Tensor& t : *f.list) t = wrap_argument(t, 0);
  }

  void functional(Frame& f) override {
    if (fast(f)) return;
    if (f.op->has(kRandom)) return random(f);
    if (f.op->composite) return f.op->composite(f);
    batch(f);
  }

  void assign(const Frame&, const Tensor& target, const Tensor& value) override {
    const Below below(key_);
    copy_(mapped_value(target), wraps(value) ? mapped_value(value) : value);
  }

  Wrapper* shell(const Tensor& plain) override {
    const Below below(key_);
    Tensor value = clone(expand_front(plain, size_));
    return make_shell<VmapWrapper>(plain, std::move(value));
  }

  [[gnu::cold, gnu::noinline]] Wrapper* shell_of_part(const Tensor& whole, const Tensor& plain) override {
    const Tensor& batch = static_cast<VmapWrapper*>(whole.impl()->wrap)->value;
    return make_shell<VmapWrapper>(plain, part_of_lanes(batch, plain, size_));
  }

 private:
  /// NOTE: [vmap's short way] Pointwise operands of one logical shape and dtype, mapped dim in front, need
  /// neither inference nor a rule: the physical call is the batched call.
  bool fast(Frame& f) {
    const Op& op = *f.op;
    const size_t n = op.straight;
    if (n == 0 || force_loop) return false;
    const void* args[kMaxStraightArity];
    std::copy_n(f.args, op.schema.params.size(), args);
    const TensorImpl* mapped = nullptr;
    for (size_t i = 0; i < n; ++i) {
      const TensorImpl* t = f.args[i] ? f.arg<Tensor>(int(i)).impl() : nullptr;
      if (!t) return false;
      if (!(t->keys >> key_ & 1)) {
        if (t->number) continue;
        return false;
      }
      const VmapWrapper* w = wrapper(f, f.arg<Tensor>(int(i)));
      if (w->dim != 0 || t->rank == 0) return false;  // mapped scalars: promotion is the rule's
      if (mapped && (mapped->dtype != t->dtype || !mapped->has_shape_of(*t))) return false;
      if (!mapped || t->contiguous) mapped = t;
      args[i] = &w->value;
    }
    if (!mapped) return false;
    Tensor result;
    Frame lower{&op, args, &result};
    if (!tried([&] { lamella::call(lower); }))
      return false;  // the long way raises it in the shapes of a lane
    // Without elements every tensor counts as contiguous, whatever its strides say.
    const bool same = mapped->contiguous && result.numel() > 0 && result.is_contiguous();
    f.results[0] = same ? wrap_as(std::move(result), *mapped) : wrap_result(std::move(result));
    return true;
  }

  [[gnu::noinline]] void batch(Frame& f) {
    const Op& op = *f.op;
    FrameCopy values(f);
    int dims[kMaxArity];
    std::fill_n(dims, op.arity, kNotMapped);
    std::vector<int> list_dims[kMaxArity];
    for_each_tensor(f, [&](const Tensor& t, int i, int element) {
      const VmapWrapper* w = wrapper(f, t);
      if (!w && !t.defined()) [[unlikely]]
        check_defined(f);  // shape functions, which come first, ask every tensor for its sizes
      if (w) values.set(i, element, w->value);
      if (is_list(op, i)) list_dims[i].push_back(w ? w->dim : kNotMapped);
      else if (w) dims[i] = w->dim;
    });
    Tensor results[kMaxResults];
    Tensors list;
    const Frame lower = values.into(results, &list);
    Inferred lane;
    BatchCall call{lower, dims, list_dims, size_, f, lane, results, &list};
    if (op.is_view()) return view(f, call);
    if (op.shape != ShapeClass::Dynamic)
      ops::infer_frame(f, lane);  // raises what a lane would raise, in its shapes
    for (const Shape& out : lane.outs) check_rank(op, out.sizes.size());
    // A rule speaks of other operators and of the batch; a lane's own words are better.
    const bool lanes_say = op.has(kValueErrors) && size_ > 0 && op.schema.result_kind == ResultKind::Tensors;
    if (!lanes_say) {
      rule(call);
    } else if (!tried([&] { rule(call); })) {
      call_lanes(call);
      rule(call);  // no lane raises: nobody else has words for it
    }
    for (int k = 0; k < op.schema.n_results; ++k)
      f.results[k] = call.mapped[k] ? wrap_result(results[k]) : results[k];
    if (f.list)
      for (const Tensor& t : list) f.list->push_back(wrap_result(t));
  }

  /// Tensors have 64 dims at most, and one of them is the mapped one.
  static void check_rank(const Op& op, int rank) {
    LAMELLA_CHECK(rank < kMaxDims, Shape,
                  "{}: its result has {} dims in a lane; expected at most {}, for the mapped dim counts too",
                  op.base->name, rank, kMaxDims - 1);
  }

  void rule(BatchCall& call) {
    const Op& op = *call.frame.op;
    if (force_loop && !op.is_view()) return loop_over_lanes(call);
    if (op.batch) return op.batch(call);
    if (op.shape == ShapeClass::Broadcast) return ops::batch_broadcast(call);
    if (op.shape == ShapeClass::Dynamic || op.shape == ShapeClass::Other) return loop_over_lanes(call);
    ops::batch_front(call);
  }

  /// A view of a lane: legality and strides as the lane sees them; physically a view of the batch.
  void view(Frame& f, BatchCall& call) {
    const Tensor& x = f.tensor(f.op->tensor_params[0]);
    const Geometry lane = f.op->view(f, {x.sizes(), x.strides(), x.impl()->offset});
    check_rank(*f.op, lane.sizes.size());
    rule(call);
    f.results[0] = wrap(call.results[0], 0, lane.sizes, lane.strides, lane.offset);
  }

  /// See NOTE: [randomness].
  [[gnu::noinline]] void random(Frame& f) {
    const Tensor given = key_of(f);
    Inferred lane;
    if (given.defined()) ops::infer_frame(f, lane);  // raises what a lane would raise, in its shapes
    const VmapWrapper* w = given.defined() ? wrapper(f, given) : nullptr;
    const Drawn drawn = w ? drawn_with(f, to_front(w->value, w->dim), true)
                          : drawn_in_lanes(f, given, randomness_, first_, size_);
    f.results[0] = drawn.mapped ? wrap_result(drawn.result) : drawn.result;
  }

  int64_t size_, first_;
  Randomness randomness_;
};

/// Result i as the caller of vmap sees it.
Tensor unwrapped(const Vmap& transform, const Tensor& y, size_t i, size_t n, const InDims& out_dims) {
  LAMELLA_CHECK(y.defined(), Undefined, "vmap: result {} is an undefined tensor; expected a defined one", i);
  const int d = dim_for(out_dims, i, n, "out_dims");
  if (const Tensor* front = d == 0 ? transform.front_value(y) : nullptr) return *front;
  Tensor value = transform.mapped_value(y);
  if (d == kNone) {
    LAMELLA_CHECK(!value.defined(), DimOutOfRange,
                  "vmap: {} of result {} is none; expected a dim, for it depends on the lane",
                  Argument{"out_dims"}, i);
    return y;
  }
  const int at = wrap_mapped(d, y.rank() + 1, "out_dims", y);
  if (!value.defined()) value = expand_front(y, transform.size());
  return at == 0 ? value : from_front(value, at);
}

}  // namespace

static void unwrap_all(const Vmap& transform, Tensors& ys, const InDims& out_dims) {
  const Below below(transform.key());
  for (size_t i = 0; i < ys.size(); ++i) ys[i] = unwrapped(transform, ys[i], i, ys.size(), out_dims);
}

Function vmap(Function f, VmapOptions options) {
  check_mapping(f, options);
  return [f = std::move(f), o = std::move(options)](const Tensors& xs) {
    const int64_t size = mapped_size(xs, o);
    if (o.chunk != 0) [[unlikely]]
      return in_chunks(f, o, size, xs);
    Vmap transform(size, o);
    const OpenLevel open(transform);
    SpareList wrapped(xs.size());
    for (size_t i = 0; i < xs.size(); ++i) {
      const int d = mapped_dim(o, xs, i);
      wrapped.list.push_back(d == kNone ? xs[i] : transform.wrap_argument(xs[i], d));
    }
    Tensors ys = f(wrapped.list);
    if (o.result_dims) [[unlikely]]
      unwrap_all(transform, ys, o.result_dims());
    else unwrap_all(transform, ys, o.out_dims);
    return ys;
  };
}

UnaryFunction vmap(UnaryFunction f, int in_dim, int out_dim) {
  Function g = vmap([f = given(std::move(f), "vmap")](const Tensors& xs) { return Tensors{f(xs[0])}; },
                    InDims{in_dim}, InDims{out_dim});
  return [g = std::move(g)](const Tensor& x) { return g({x})[0]; };
}

}  // namespace lamella
