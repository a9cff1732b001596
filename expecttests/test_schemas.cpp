// Schemas of forms, and that the parser reads what is printed; those of operators stand in their pages.
#include "lamella/dispatch/call.h"
#include "lamella/ops/all.h"

#include "expect.h"

namespace {
using namespace lamella;

TEST(Schemas, OfTheForms) {
  std::string out;
  for (const char* name : {"add_", "add_out", "copy_", "cat_out"})
    out += str(OpTable::current().find(name)->schema) + "\n";
  EXPECT_INLINE(out, R"(
      add_(Tensor(a!) a, Tensor b, *, Scalar alpha=1) -> Tensor(a!)
      add_out(Tensor(a!) out, Tensor a, Tensor b, *, Scalar alpha=1) -> Tensor(a!)
      copy_(Tensor(a!) self, Tensor src) -> Tensor(a!)
      cat_out(Tensor(a!) out, Tensor[] tensors, Dim dim=0) -> Tensor(a!)
      )");
}

TEST(Schemas, TheParserReadsWhatIsPrinted) {
  int schemas = 0;
  for (const Op* op : OpTable::current().rows()) {
    const std::string text = str(op->schema);
    EXPECT_EQ(str(parse_schema(text)), text);
    ++schemas;
  }
  EXPECT_GT(schemas, 200);
}
}  // namespace
