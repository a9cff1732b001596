// Any text is a schema or refused; a schema survives printing and parsing.
#include "lamella/dispatch/schema.h"

#include "target.h"

namespace lamella::fuzz {
namespace {

void run_schema(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Schema schema;
  if (!answers([&] { schema = parse_schema(text); })) return;
  const std::string printed = str(schema);
  std::string again;
  if (!answers([&] { again = str(parse_schema(printed)); }))
    finding("a printed schema is refused: " + printed);
  if (again != printed) finding("printed as " + printed + ", then as " + again);
}

[[maybe_unused]] const bool schema_added = add_target("schema", run_schema);
}  // namespace
}  // namespace lamella::fuzz
