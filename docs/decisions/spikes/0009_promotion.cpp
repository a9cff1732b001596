// Spike 0009: the promotion lattice and its three groups, enumerated; contiguous results against kept
// layouts.
#include "lamella/core/dtype.h"
#include "lamella/core/plan.h"
#include "lamella/core/tensor.h"

#include "timing.h"

namespace {
using namespace lamella;
constexpr int kPublic = 15;  // without f128 and c256

void lattice() {
  int commutes = 0, bounded = 0, associates = 0, triples = 0;
  for (int i = 0; i < kPublic; ++i)
    for (int j = 0; j < kPublic; ++j) {
      const DType a = DType(i), b = DType(j), ab = promote(a, b);
      commutes += ab == promote(b, a) && promote(a, a) == a;
      bounded += promote(a, ab) == ab && promote(b, ab) == ab;
      for (int k = 0; k < kPublic; ++k, ++triples)
        associates += promote(ab, DType(k)) == promote(a, promote(b, DType(k)));
    }
  std::printf(
      "of %d pairs, %d commute and are idempotent, %d have a result above both; of %d triples, %d "
      "associate\n",
      kPublic * kPublic, commutes, bounded, triples, associates);
}

using Operand = std::pair<DType, int>;  // group 0: has dims, 1: rank 0, 2: a number
DType result_type(std::initializer_list<Operand> operands) {
  std::optional<DType> groups[3];
  for (auto [dtype, group] : operands) {
    if (group == 2) dtype = is_complex(dtype) ? DType::C64 : is_floating(dtype) ? DType::F32 : dtype;
    groups[group] = groups[group] ? promote(*groups[group], dtype) : dtype;
  }
  std::optional<DType> out;
  for (const auto& g : groups) {
    if (!g) continue;
    if (!out) out = g;
    else if (category(*g) > category(*out)) out = is_complex(*g) && is_floating(*out) ? to_complex(*out) : *g;
  }
  return *out;
}

/// (a + b) + c against one operator on a, b and c: how often the order of grouping changes the dtype.
void order_matters() {
  std::vector<Operand> all;
  for (int d = 0; d < kPublic; ++d) all.push_back({DType(d), 0}), all.push_back({DType(d), 1});
  for (const DType d : {DType::Bool, DType::I64, DType::F64, DType::C128}) all.push_back({d, 2});
  int same = 0, total = 0;
  for (const Operand& a : all)
    for (const Operand& b : all)
      for (const Operand& c : all) {
        const Operand ab{result_type({a, b}), std::min(a.second, b.second)};
        same += ab.second == 2 || result_type({ab, c}) == result_type({a, b, c}), ++total;
      }
  std::printf("(a + b) + c has the dtype of one operator on a, b, c in %d of %d triples\n", same, total);
  std::printf("i32[3] + f64[] is %s; i32[3] + f64[] + f32[3] is %s, as one operator %s\n",
              name(result_type({{DType::I32, 0}, {DType::F64, 1}})).data(),
              name(promote(result_type({{DType::I32, 0}, {DType::F64, 1}}), DType::F32)).data(),
              name(result_type({{DType::I32, 0}, {DType::F64, 1}, {DType::F32, 0}})).data());
}

void add(const View& out, const View& a, const View& b) {
  const View ins[] = {a, b};
  const IterPlan plan = make_plan({&out, 1}, ins);
  for_each_outer(plan, 1, [&](char* const* p) {
    const int64_t so = plan.stride(0, 0), sa = plan.stride(1, 0), sb = plan.stride(2, 0);
    if (plan.packed(0) && plan.packed(1) && plan.packed(2)) {
      for (int64_t i = 0; i < plan.size(0); ++i) ((float*)p[0])[i] = ((float*)p[1])[i] + ((float*)p[2])[i];
    } else {
      for (int64_t i = 0; i < plan.size(0); ++i)
        *(float*)(p[0] + i * so) = *(float*)(p[1] + i * sa) + *(float*)(p[2] + i * sb);
    }
  });
}

void layouts(int64_t n) {
  const Tensor a = make_tensor(Dims{n, n}, DType::F32), b = make_tensor(Dims{n, n}, DType::F32);
  std::fill_n(a.data<float>(), n * n, 1.0f), std::fill_n(b.data<float>(), n * n, 1.0f);
  const Tensor out = make_tensor(Dims{n, n}, DType::F32);
  const auto t = [&](const Tensor& x) { return make_view(x, Dims{n, n}, Dims{1, n}, 0); };
  const Tensor at = t(a), bt = t(b), ot = t(out);
  spike::Contest contest("add f32[" + std::to_string(n) + "," + std::to_string(n) + "]");
  const int64_t times = 1 + 400000 / (n * n);
  contest.add("contiguous operands, contiguous result", times,
              [&] { add(out.view_of(), a.view_of(), b.view_of()); });
  contest.add("transposed operands, their layout kept", times,
              [&] { add(ot.view_of(), at.view_of(), bt.view_of()); });
  contest.add("transposed operands, contiguous result", times,
              [&] { add(out.view_of(), at.view_of(), bt.view_of()); });
  contest.run(5);
}
}  // namespace

int main() {
  lattice();
  order_matters();
  for (const int64_t n : {16, 256, 2048}) layouts(n);
}
