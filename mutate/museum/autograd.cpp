// Base autograd: writes and views that histories do not follow, values saved by reference, formulas that
// share memory.
#include "lamella/transforms/autograd.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "lamella/mutate/museum/plant.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/view_scatter.h"
#include "lamella/transforms/history.h"

namespace lamella::verify {

namespace {

template <Cell C> void at_base(Op& row) { row.cells[kAutogradKey] = C; }

/// The write happens in memory, and autograd does not hear of it.
void in_place_unseen(Frame& f, int key) {
  const Below below(key);
  call(f);
}

void version_of_its_own(Frame& f, int key) {
  Storage* const memory = f.tensor(0).impl()->storage;
  const uint32_t before = memory ? memory->version.load() : 0;
  right_cell(f, key);
  if (memory) memory->version = before;
}

/// cos_ whose derivative is -sin of what it left: recorded when the target is written already.
void gradient_of_the_new_value(Frame& f, int) {
  const Tensor target = f.tensor(0);
  Tensor once, twice;
  const void* args[] = {&target};
  Frame first{f.op->base, args, &once};
  call(first);
  args[0] = &once;
  const Tensor shifted = target - detach(target) + detach(once);  // the new value with the old history
  args[0] = &shifted;
  Frame second{f.op->base, args, &twice};
  call(second);
  copy_(target, twice - detach(twice) + detach(once));
}

/// The view has a history and shares memory, but belongs to no family.
void view_on_its_own(Frame& f, int key) {
  right_cell(f, key);
  Tensor& y = f.results[0];
  NodeOutput from = history_of(y);
  y = make_alias(y);
  if (from.node) attach(y, std::move(from));
}

/// A result that refers to itself: nobody lets it go.
void own_result_kept(Frame& f, int key) {
  right_cell(f, key);
  if (meta_of(f.results[0])) f.results[0].impl()->retain();
}

void cotangent_overwritten(Op& row) {
  set_vjp(row, wrt("x", saves("result"), [](Tensor dy, Tensor y) {
            const Tensor slope = conj(1.0 - y * y);
            const bool plain = !(dy.keys() >> kFirstLevelKey) && !(slope.keys() >> kFirstLevelKey);
            return plain && !overlaps_itself(dy) ? mul_out(dy, dy, slope) : dy * slope;
          }));
}

/// The gradient lies in memory that the formula keeps for the next one.
void buffer_reused(Op& row) {
  set_vjp(row, wrt("x", saves("result"), [](Tensor dy, Tensor y) {
            static thread_local Tensor buffer;
            const Tensor product = dy * conj(y);
            if (product.keys() >> kAutogradKey) return product;
            const bool fits = buffer.defined() && buffer.dtype() == product.dtype() &&
                              buffer.device() == product.device() &&
                              std::ranges::equal(buffer.sizes(), product.sizes());
            if (!fits) return buffer = clone(product);
            std::memcpy(buffer.raw_data(), clone(product).raw_data(),
                        size_t(product.numel()) * size_t(itemsize(product.dtype())));
            return make_alias(buffer);
          }));
}

void lost_on_another_thread(Op& row) {
  set_vjp(row, wrt("a", saves("b"), [](Tensor dy, Tensor b) {
            static const std::thread::id first = std::this_thread::get_id();
            const Tensor right = dy * conj(b);
            return std::this_thread::get_id() == first ? right : zeros_like(right);
          }));
}

/// Of a real factor beside a complex one, the part that the imaginary parts give.
void imaginary_share_lost(Op& row) {
  set_vjp(row, wrt("a", saves("a.dtype", "b"), [](Tensor dy, DType a, Tensor b) {
            const bool mixed = !is_complex(a) && is_complex(dy.dtype()) && is_complex(b.dtype());
            return mixed ? real(dy) * real(b) : dy * conj(b);
          }));
}

/// A slice of one element in steps of two or more is taken for the span that it was picked from.
void one_of_a_longer_span(Op& row) {
  set_vjp(row, wrt("x", saves("x.sizes", "dim", "start", "end", "step"),
                   [](Tensor dy, Ints sizes, int64_t dim, std::optional<int64_t> start,
                      std::optional<int64_t> end, int64_t step) {
                     const Tensor all = new_zeros(dy, sizes);
                     const int64_t d = from_front_dim(dim, dy.rank());
                     const Tensor span = slice(all, d, start, end);
                     if (step < 2 || dy.size(int(d)) != 1) return slice_scatter(all, dy, d, start, end, step);
                     return slice_scatter(all, expand(dy, span.sizes()), d, start, end);
                   }));
}

}  // namespace

void add_autograd_exhibits(std::vector<Exhibit>& list) {
  constexpr std::string_view kPrograms = "programs_in_base_autograd";
  const Wing wing{list, "autograd"};
  wing.add("in_place_unseen", "pt#5871 warp#202", "mul", kPrograms, at_base<in_place_unseen>,
           "A write in place reaches memory and not the gradient: that of what was written is lost.",
           OpForm::InPlace);
  wing.add("gradient_of_the_new_value", "oneflow#6200", "cos", kPrograms, at_base<gradient_of_the_new_value>,
           "In place, the derivative is taken at the value that was written, not at the one that was there.",
           OpForm::InPlace);
  wing.add("version_of_its_own", "pt#5396 pt#14571", "mul", kPrograms, at_base<version_of_its_own>,
           "A write does not count in the version of what others saved: a silently wrong gradient.",
           OpForm::InPlace);
  wing.add("view_on_its_own", "pt#8874 pt#36403", "mul", kPrograms, at_base<view_on_its_own>,
           "A view and its base know nothing of each other's writes.", OpForm::Functional, "select");
  wing.add("own_result_kept", "pt#839 pt#3673 pt#21875 pt#105147", "tanh", "programs_leave_nothing",
           at_base<own_result_kept>, "A result keeps itself alive by what its node saves.");
  wing.add("cotangent_overwritten", "apex#1430 Liger-Kernel#272", "tanh", kPrograms, cotangent_overwritten,
           "A formula writes its gradient into its cotangent, which others read as well.");
  wing.add("buffer_reused", "ggml#1501", "exp", kPrograms, buffer_reused,
           "A gradient lies in memory that is used again before it has been read.");
  wing.add("lost_on_another_thread", "burn#5573 tenferro-rs#1075", "mul", "programs_on_threads",
           lost_on_another_thread, "backward on a second thread loses gradients.");
  wing.add("imaginary_share_lost", "pt#91996 jax#603", "mul", "vjp_is_adjoint", imaginary_share_lost,
           "A real argument of a complex product receives the gradient of the real parts alone.");
  wing.add("one_of_a_longer_span", "mlx#4444", "slice", "vjp_is_adjoint", one_of_a_longer_span,
           "The gradient of a slice of one element in steps is spread over the span it was picked from.");
}

}  // namespace lamella::verify
