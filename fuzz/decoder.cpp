// Any words are a case of any operator under any law's options; calling it answers, and printing it works.
#include "lamella/verify/programs/drawn.h"
#include "lamella/verify/run/runner.h"

#include "target.h"

namespace lamella::fuzz {
namespace {

void run_decoder(const uint8_t* data, size_t size) {
  static const std::vector<const Op*> ops = verify::all_operators();
  Bytes bytes(data, size);
  const Op& op = *ops[bytes.byte() % ops.size()];
  const verify::Law& law = verify::laws()[bytes.byte() % verify::laws().size()];
  const verify::Choices choices = bytes.words();
  answers([&] {
    verify::Case c(op, choices, law.options);
    if (verify::cpp_declarations(c.args).empty() != c.tensors().empty())
      finding("declarations of another case");
    (void)verify::cpp_call(op, c.args);
    call_boxed(op, c.args);
    if (auto s = verify::draw_function(c)) s->f(s->xs);
  });
}

[[maybe_unused]] const bool decoder_added = add_target("decoder", run_decoder);
}  // namespace
}  // namespace lamella::fuzz
