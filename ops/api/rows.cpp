// Rows of a family, found by the braces that they stand in.
#include "rows.h"

#include <algorithm>

namespace lamella::api {

namespace {
using Fields = std::map<std::string, std::vector<Token>>;

/// A text that consists of literals: what they say together; else nothing.
std::string literals(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  std::string out;
  if (found == fields.end()) return out;
  for (const Token& t : found->second) {
    if (t.kind != Token::Text) return "";
    out += t.text;
  }
  return out;
}

/// An open bracket, and of braces the fields `.name = value` that stand in them directly.
struct Group {
  bool braces;
  bool at_field = true;  ///< behind the brace or a comma
  std::string field = {};
  Fields fields = {};
};

bool opens(const Token& t) { return t.is("{") || t.is("(") || t.is("["); }
bool closes(const Token& t) { return t.is("}") || t.is(")") || t.is("]"); }

void close_group(std::vector<Group>& open, std::vector<Row>& rows) {
  const Fields fields = std::move(open.back().fields);
  open.pop_back();
  const std::string schema = literals(fields, "schema");
  if (!schema.empty()) rows.push_back({parse_schema(schema), literals(fields, "doc"), fields});
}
}  // namespace

bool Row::says(const std::string& field, std::string_view word) const {
  const auto found = fields.find(field);
  if (found == fields.end()) return false;
  return std::ranges::any_of(found->second,
                             [&](const Token& t) { return t.kind == Token::Word && t.text == word; });
}

std::vector<Row> rows_of(const std::vector<Token>& tokens) {
  std::vector<Row> rows;
  std::vector<Group> open = {{false}};
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& t = tokens[i];
    Group& group = open.back();
    if (closes(t) && open.size() > 1) {
      close_group(open, rows);
      continue;
    }
    if (group.braces && t.is(",")) {
      group.at_field = true;
      group.field.clear();
      continue;
    }
    if (group.at_field && t.is(".") && i + 2 < tokens.size() && tokens[i + 2].is("=")) {
      group.field = tokens[i + 1].text;
      group.at_field = false;
      i += 2;
      continue;
    }
    group.at_field = false;
    for (Group& outer : open)  // a value has its own brackets' words, too
      if (!outer.field.empty()) outer.fields[outer.field].push_back(t);
    if (opens(t)) open.push_back({t.is("{")});
  }
  return rows;
}

}  // namespace lamella::api
