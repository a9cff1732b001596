// Any text is a kept case or refused, while it is read or while it is played; what is written of it reads
// alike.
#include "lamella/verify/run/kept_case.h"

#include "lamella/dispatch/table.h"
#include "lamella/verify/case/player.h"

#include "target.h"

namespace lamella::fuzz {
namespace {

void run_kept_case(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  answers([&] {
    const verify::KeptCase kept = verify::kept_case_in(text, "fuzz");
    const std::string again = verify::to_file_text(kept, "", "");
    if (verify::to_file_text(verify::kept_case_in(again, "fuzz"), "", "") != again)
      finding("a case that is written and read is another one");
    const Op* const op = OpTable::current().find(kept.op);
    if (!op || !op->base->samples) return;
    std::string wrong;
    verify::Player player(kept.answers, kept.law, {}, wrong);
    const verify::Case c(*op->base, player);
    (void)verify::cpp_declarations(c.args);
  });
}

[[maybe_unused]] const bool kept_case_added = add_target("kept_case", run_kept_case);
}  // namespace
}  // namespace lamella::fuzz
