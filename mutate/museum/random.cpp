// Random numbers under transforms.
#include "lamella/ops/functions/random.h"

#include "lamella/mutate/museum/plant.h"

namespace lamella::verify {

namespace {

void one_draw_for_all(Frame& f, int key) {
  if (transform_at(key) != "vmap" || !f.none(f.op->schema.find("key"))) return right_cell(f, key);
  const Below below(key);
  Frame lower = f;
  call(lower);
}

/// All streams are that of the first key.
void first_key_for_all(const KernelCall& c) {
  View keys = c.ins[0];
  const Dims none(keys.rank, 0);
  keys.strides = none.data();
  right("randn").kernel.cpu({c.outs, {&keys, 1}, c.compute, c.ints, c.scalars});
}

void empty_batch_refused(BatchCall& b) {
  LAMELLA_CHECK(b.size > 0, Value, "fold_in: a key is used twice");
  right_rule(b);
}

void frozen(const Launch& l) {
  if (l.frame.tensor(1).defined()) return right("rand").launch(l);
  static const Tensor first = next_key();
  const void* args[] = {l.frame.args[0], &first, l.frame.args[2]};
  const Frame keyed{l.frame.op, args, l.frame.results, l.frame.list};
  right("rand").launch({keyed, l.inferred, l.outs, l.device});
}

}  // namespace

void add_random_exhibits(std::vector<Exhibit>& list) {
  const Wing wing{list, "random"};
  wing.add("one_draw_for_all", "pt#92283", "rand", "random_lanes", at_levels<one_draw_for_all>,
           "Independent draws for an input that is not mapped come without lanes.");
  wing.add(
      "mode_not_seen", "ft#611", "randn", "random_lanes", [](Op& r) { r.properties &= ~uint32_t(kRandom); },
      "Random numbers drawn below vmap ignore its choice of same, different or error.");
  wing.add("first_key_for_all", "jax#19085 jax#34497", "randn", "random_keys", put_kernel<first_key_for_all>,
           "A generator uses one lane's key for all lanes.");
  wing.add("empty_batch_of_keys", "jax@4603e66", "fold_in", "vmap_sizes",
           put<&Op::batch, empty_batch_refused>, "The check for reused keys fires on an empty batch.");
  wing.add("frozen_draw", "mlx#4234 mlx#3828", "rand", "random_lanes", put<&Op::launch, frozen>,
           "Every call returns the numbers of the first one.");
}

}  // namespace lamella::verify
