// What kernels raise names the operator that was called.
#include <functional>
#include <gtest/gtest.h>

#include "lamella/dispatch/table.h"
#include "lamella/lamella.h"
#include "lamella/verify/case/decoder.h"

namespace {
using namespace lamella;

struct Raises {
  std::string begins;
  std::function<void()> call;
};

std::vector<Raises> on(Device device) {
  const auto there = [device](const Tensor& t) { return to_device(t, device); };
  const Tensor x = there(tensor_of({2}, {1, 2}, DType::F64));
  const Tensor far = there(tensor_of({1}, {5}, DType::I64)), one = there(ones({1}, DType::F64));
  const Tensor whole = there(ones({2}, DType::I64)), zero = there(zeros({2}, DType::I64));
  const Tensor matrix = there(neg(eye(2, {}, DType::F64)));
  return {
      {"linalg_cholesky: matrix 0 of x has no positive leading minor", [=] { linalg_cholesky(matrix); }},
      {"cholesky: matrix 0 of x has no positive leading minor", [=] { cholesky(matrix); }},
      {"gather: index = 5 is out of range", [=] { gather(x, 0, far); }},
      {"index_select: index = 5 is out of range", [=] { index_select(x, 0, far); }},
      {"scatter_add: index = 5 is out of range", [=] { scatter_add(x, 0, far, one); }},
      {"index_add: index = 5 is out of range", [=] { index_add(x, 0, far, one); }},
      {"div: b holds 0", [=] { div(whole, zero, "floor"); }},
      {"div: b holds 0", [=] { div_(whole, zero, "trunc"); }},
  };
}

void expect_raises(const Raises& r, std::string_view where) {
  try {
    r.call();
    ADD_FAILURE() << where << ": accepted what should raise " << r.begins;
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).substr(0, r.begins.size()), r.begins) << where << ": " << e.what();
  }
}

TEST(KernelErrors, NameTheOperator) {
  for (const Device device : {Device::CPU, Device::Reference})
    for (const Raises& r : on(device)) expect_raises(r, name(device));
}

/// Every operator with its tensors in dtypes it may not take: whoever refuses, shape function or kernel,
/// names the operator.
TEST(KernelErrors, OfWrongDtypesNameTheOperator) {
  int refused = 0;
  for (const Op* op : OpTable::current().rows()) {
    if (op->form != OpForm::Functional || op->composite || op->has(kTestOnly)) continue;
    for (uint32_t k = 0; k < 12 * 16; ++k) {
      const uint32_t choices[] = {k / 12, k * 7919, 1, 2, k, 5, 3, k};
      verify::Decoder draw(choices);
      Values args = op->samples(draw);
      for (Value& v : args)
        if (Tensor* t = std::get_if<Tensor>(&v); t && t->defined())
          *t = to(*t, DType(k % 12 + k % 12 / 9 * 2));
      try {
        call(*op, args);
      } catch (const Error& e) {
        ++refused;
        EXPECT_EQ(std::string(e.what()).rfind(op->name + ":", 0), 0u) << op->name << ": " << e.what();
      }
    }
  }
  EXPECT_GT(refused, 100);
}
}  // namespace
