// Docs of typed functions. A sentence is here if it follows from the row; what does not is in the row's doc.
#include "doc.h"

#include <algorithm>
#include <sstream>

namespace lamella::api {

namespace {
/// Text behind "/// ".
constexpr size_t kColumns = 105;

struct Said {
  std::string_view word, sentence;
};
constexpr Said kShapes[] = {
    {"Reduce", "those of x without the dims of `dim`."},
    {"AlongDim", "lines along `dim` are one computation each; the other dims stay."},
    {"Contract", "a dim that the arguments share is summed over."},
    {"View", "a view: shares the memory of the first argument."},
    {"Index", "elements by indices along a dim."},
    {"Linalg", "matrices in the last two dims; those before are a batch."},
    {"Factory", "a new tensor, of the sizes that the arguments say."},
    {"Random", "a new tensor, of the sizes that the arguments say."},
    {"Dynamic", "sizes depend on the elements."},
    {"Composite", "as the operators that it is composed of have them."},
};
constexpr Said kDTypes[] = {
    {"infer_compare", "compared after promotion; the result is bool."},
    {"infer_order", "compared after promotion; the result is bool."},
    {"infer_float", "that of x; integers and bool compute in the default dtype."},
    {"infer_true_div", "promoted; integers and bool divide in the default dtype."},
    {"infer_same", "that of x."},
    {"infer_no_bool", "that of x; not bool."},
    {"infer_like", "that of x where `dtype` is None."},
    {"infer_softmax", "that of x where `dtype` is None; integers and bool compute in the default dtype."},
    {"infer_logsumexp", "that of x; integers and bool compute in the default dtype."},
};

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
  std::string out = said_by(row, "shape", kShapes);
  if (row.says("shape", "Reduce") && row.schema.find("keepdim") >= 0)
    out.insert(out.size() - 1, ", or of size 1 there with `keepdim`");
  return out;
}

std::string dtypes(const Row& row) {
  std::string out = said_by(row, "infer", kDTypes);
  if (out.empty() && row.says("shape", "Broadcast") && !row.fields.contains("infer"))
    out = tensors_of(row.schema) < 2 ? "that of x." : "promoted to a common one.";
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
