// Small contiguous tensors take a short way through pointwise operators: it gives what the general way gives.
#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

#include "lamella/dispatch/draw.h"
#include "lamella/dispatch/table.h"
#include "lamella/lamella.h"

namespace {
using namespace lamella;

/// The same values, every other element of a longer tensor: the general way.
Tensor spread(const Tensor& x) {
  const Tensor wide = make_tensor(Dims{2 * x.numel()}, x.dtype());
  const Tensor view = make_view(wide, x.sizes(), Dims{2}, 0);
  const size_t item = size_t(itemsize(x.dtype()));
  for (int64_t i = 0; i < x.numel(); ++i)
    std::memcpy(static_cast<char*>(wide.raw_data()) + 2 * size_t(i) * item,
                static_cast<const char*>(x.raw_data()) + size_t(i) * item, item);
  return view;
}

/// The result, or the code of the error.
std::pair<Tensor, int> outcome(const Op& op, const Values& args) {
  try {
    return {call(op, args)[0], -1};
  } catch (const Error& e) { return {Tensor(), int(e.code())}; }
}

TEST(SmallTensors, TheShortWayIsTheGeneralWay) {
  int compared = 0, refused = 0, straight = 0;
  for (const Op* op : OpTable::current().rows()) {
    if (op->form != OpForm::Functional || !op->straight || op->has(kTestOnly)) continue;
    if (std::ranges::count(op->kernel.lines, nullptr) == kDTypeCount) continue;  // no short way at all
    for (int d = 0; d < int(DType::F128); ++d) {
      const uint32_t choices[] = {3, uint32_t(17 * d + 5), 9, 4, uint32_t(d), 9, 6, 2, 9, 1};
      Draw draw(choices, {.dtypes = kAllTypes, .layouts = false, .tame = true});
      Values near, far;
      for (int i = 0; i < op->straight; ++i) {
        const Tensor x = draw.tensor(Dims{5}, DType(d), Domain::NonZero);
        near.push_back(x);
        far.push_back(spread(x));
      }
      const auto [got, got_code] = outcome(*op, near);
      const auto [want, want_code] = outcome(*op, far);
      ASSERT_EQ(got_code, want_code) << op->name << " " << DType(d);
      straight += op->kernel.lines[size_t(d)] != nullptr;
      if (got_code >= 0) {
        ++refused;
        continue;
      }
      ++compared;
      ASSERT_EQ(type_str(got), type_str(want)) << op->name << " " << DType(d);
      EXPECT_EQ(str(got), str(want)) << op->name << " " << DType(d);
    }
  }
  EXPECT_GT(compared, 300);
  EXPECT_GT(refused, 20);
  EXPECT_GT(straight, 200);
}
}  // namespace
