// Any text is an expression of three variables or refused, while it is read or while it is evaluated.
#include "lamella/verify/text/expression.h"

#include "target.h"

namespace lamella::fuzz {
namespace {

void run_expression(const uint8_t* data, size_t size) {
  static const verify::Bindings variables = verify::parse_shapes({"x=2x3", "y=3", "s="}, DType::F64);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  answers([&] { (void)str(verify::evaluate(text, variables)); });
}

[[maybe_unused]] const bool expression_added = add_target("expression", run_expression);
}  // namespace
}  // namespace lamella::fuzz
