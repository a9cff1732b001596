// The rows of a family: its lists of designated fields, of which one is `.schema` and says a schema.
#pragma once

#include <map>

#include "lamella/dispatch/schema.h"

#include "tokens.h"

namespace lamella::api {

/// What a row says of its operator. Fields that a helper fills in are not known here; what follows from one
/// is compared with the table when the program is tested: tools/typed_api_test.py.
struct Row {
  Schema schema;
  std::string doc;
  std::map<std::string, std::vector<Token>> fields;

  /// Whether the field's text has this word in it.
  bool says(const std::string& field, std::string_view word) const;
};

/// In the order of the file. Error schema: what parse_schema refuses.
std::vector<Row> rows_of(const std::vector<Token>& tokens);

}  // namespace lamella::api
