// Whom laws are about, asked where it does no harm.
#include "lamella/verify/run/asked_apart.h"

#include <span>

#include "lamella/core/check.h"
#include "lamella/verify/run/apart.h"

namespace lamella::verify {
namespace {

/// Passes unless the operator cannot be asked.
Verdict asked(const Op& op, std::span<const Law* const> laws, double seconds) {
  const auto ask = [&] {
    try {
      for (const Law* law : laws) (void)law->applies(op);
      return Verdict::pass();
    } catch (const std::exception& e) {
      return Verdict::fail({{What::Raised, e.what()}, format("raised: {}", e.what())});
    } catch (...) {
      return Verdict::fail({{What::Raised, "what is no exception"}, "raised what is no std::exception"});
    }
  };
  return check_apart(ask, seconds);
}
}  // namespace

void ask_apart(const std::vector<const Op*>& ops, const std::vector<const Law*>& laws, double seconds) {
  for (const Op* op : ops) {
    if (asked(*op, laws, seconds).kind == Verdict::Pass) continue;
    for (const Law* const& law : laws)
      if (const Verdict v = asked(*op, {&law, 1}, seconds); v.kind != Verdict::Pass)
        fail(ErrorCode::Usage,
             "verify: operator \"{}\", called with drawn arguments to know whether law {} applies: {}; "
             "expected that it returns",
             op->name, law->id, v.message);
  }
}

}  // namespace lamella::verify
