// Docs of typed functions. A sentence is here if it follows from the row; what does not is in the row's doc.
#include "doc.h"

#include <algorithm>
#include <sstream>

#include "sentences.h"

namespace lamella::api {

namespace {
/// Text behind "/// ".
constexpr size_t kColumns = 105;

template <size_t N> std::string said_by(const Row& row, const std::string& field, const Said (&all)[N]) {
  for (const Said& s : all)
    if (row.says(field, s.word)) return std::string(s.sentence);
  return "";
}

int tensors_of(const Schema& s) { return int(std::ranges::count(s.params, ParamKind::Tensor, &Param::kind)); }
bool has_role(const Schema& s, ParamRole role) {
  return std::ranges::find(s.params, role, &Param::role) != s.params.end();
}

std::string shapes(const Row& row) {
  if (row.says("shape", "Broadcast"))
    return tensors_of(row.schema) < 2 ? "that of x."
                                      : "the tensors broadcast against each other; one result per element.";
  if (const std::string own = said_by(row, "infer", kShapesOf); !own.empty()) return own;
  std::string out = said_by(row, "shape", kShapes);
  if (row.says("shape", "Reduce") && row.schema.find("keepdim") >= 0)
    out.insert(out.size() - 1, ", or of size 1 there with `keepdim`");
  return out;
}

std::string dtypes(const Row& row) {
  const std::string usual = tensors_of(row.schema) < 2 ? "that of x" : "promoted to a common one";
  std::string out = said_by(row, "infer", kDTypes);
  if (out.starts_with('@')) out.replace(0, 1, usual);
  if (out.empty() && row.says("shape", "Broadcast") && !row.fields.contains("infer")) out = usual + ".";
  if (out.empty() && row.says("shape", "View") && !row.says("properties", "kAnyDevice")) out = "that of x.";
  return out;
}

std::string errors(const Function& f) {
  const Row& row = *f.row;
  std::string out;
  const auto add = [&](const char* code) { out += (out.empty() ? "" : ", ") + std::string(code); };
  if (tensors_of(row.schema) > 0) add("undefined");
  if (row.says("shape", "Broadcast") && tensors_of(row.schema) > 1) add("broadcast");
  if (has_role(row.schema, ParamRole::Dim)) add("dim_out_of_range");
  if (has_role(row.schema, ParamRole::Size)) add("shape");
  if (tensors_of(row.schema) > 1) add("device");
  if (row.says("properties", "kValueErrors")) add("value or index_out_of_range, which depend on elements");
  if (row.says("properties", "kRandom")) add("randomness");
  return out;
}

std::string functional(const Function& f) {
  const std::string shape = shapes(*f.row), dtype = dtypes(*f.row), error = errors(f);
  std::string out = doc_lines(f.row->doc);
  if (!shape.empty()) out += doc_lines("Shapes: " + shape);
  if (!dtype.empty()) out += doc_lines("Dtypes: " + dtype);
  if (!error.empty()) out += doc_lines("Errors besides: " + error + ".");
  return out;
}
}  // namespace

std::string doc_lines(const std::string& text) {
  std::istringstream in(text);
  std::string out, line;
  for (std::string word; in >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kColumns) {
      out += "///" + line + "\n";
      line.clear();
    }
    line += " " + word;
  }
  return line.empty() ? out : out + "///" + line + "\n";
}

std::string doc_of(const Function& f) {
  const std::string& name = f.row->schema.name;
  const std::string& written = f.schema.params.empty() ? name : f.schema.params[0].name;
  switch (f.form) {
    case Form::InPlace:
      return doc_lines(
          format("{} written to `{}`, which it returns. Errors besides those of {}: shape and "
                 "dtype where the result does not fit, overlap, storage.",
                 name, written, name));
    case Form::Out:
      return doc_lines(format("{} written to `out`, which it returns. Errors likewise, of `out`.", name));
    default: return functional(f);
  }
}

}  // namespace lamella::api
