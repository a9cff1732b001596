// The law of hooks: what they see, in which order, what they may change, and what is left when one throws.
#include "lamella/verify/hooked_graph.h"
#include "lamella/verify/laws_more.h"

namespace lamella::verify {

namespace {

Verdict hooks_see_gradients(Case& c) {
  const Graph g(c);
  const bool throws = c.draw.one_in(3);
  const uint32_t runs = 1 + c.draw.below(2);
  if (!g.valid()) return Verdict::discard();
  HookedGraph hooked(c, g);
  Tensors want;
  const Status s = status_of([&] { want = hooked.wanted(); });
  if (s.raised || !small_numbers(want)) return Verdict::discard();
  std::string wrong;
  hooked.build();
  for (uint32_t r = 0; r < runs && wrong.empty(); ++r) {
    hooked.run();
    wrong = hooked.wrong(want);
  }
  if (wrong.empty() && throws) wrong = hooked.broken(want);
  hooked.end();
  return wrong.empty() ? Verdict::pass(1) : Verdict::fail(wrong, g.cpp() + hooked.cpp(), 1);
}

}  // namespace

void add_hook_laws(std::vector<Law>& laws) {
  laws.push_back(
      {87, "hooks_see_gradients", "derivative",
       "Hooks of tensors, nodes and accumulation run once each, in order, see complete cotangents and "
       "sums, change what goes on from there alone, and when one throws nothing has changed.",
       chain_options(), false, chained_smoothly, hooks_see_gradients});
}

}  // namespace lamella::verify
