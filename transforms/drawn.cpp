// Keys of random calls under vmap.
#include "lamella/transforms/drawn.h"

#include "lamella/core/generator.h"
#include "lamella/core/rng.h"
#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/random.h"
#include "lamella/ops/functions/view.h"
#include "lamella/ops/structured.h"

namespace lamella {

Tensor key_of(const Frame& f) {
  const int at = f.op->schema.find("key");
  return at < 0 ? Tensor() : f.tensor(at);
}

Drawn drawn_with(const Frame& f, const Tensor& key, bool mapped) {
  const int at = f.op->schema.find("key");
  FrameCopy values(f);
  if (at >= 0 && key.defined()) values.set(at, key);
  else if (at >= 0) values.clear(at);
  Drawn drawn{{}, mapped};
  Frame lower = values.into(&drawn.result);
  lamella::call(lower);
  return drawn;
}

Drawn drawn_in_lanes(const Frame& f, const Tensor& given, Randomness randomness, int64_t first,
                     int64_t lanes) {
  LAMELLA_CHECK(randomness != Randomness::Error || given.defined(), Randomness,
                "{}: key is None under vmap; expected a mapped key, or randomness same or different",
                f.op->name);
  if (given.defined() || randomness == Randomness::Same) return drawn_with(f, given, false);
  const Device device = device_of_call(f);
  const Tensor base = next_key(device);  // one level down: lanes of outer vmaps get keys of their own first
  const Tensor numbers = arange(first, first + lanes, {}, DType::U64, device);
  const Tensor keys = lamella::fold_in(unsqueeze(base, 0), numbers);
  if (f.op->schema.find("key") >= 0) return drawn_with(f, keys, true);
  return {keys, true};
}

}  // namespace lamella
