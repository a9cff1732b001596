// Laws shown red: a bug each, planted in one row, that the law notices within a few hundred cases.
#include <gtest/gtest.h>

#include "lamella/core/visit.h"
#include "lamella/dispatch/table.h"
#include "lamella/ops/batch.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/infer.h"
#include "lamella/verify/run/runner.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

const Op* right = nullptr;  ///< the row that is replaced
int calls = 0;

void set(const View& v, int64_t offset, double value) {
  visit_dtype(v.dtype, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (std::is_constructible_v<T, double>) v.as<T>()[offset] = T(value);
    else v.as<T>()[offset] = T(float(value));
  });
}
bool has_elements(const View& v) { return v.numel() > 0; }

void second_call_wrong(const KernelCall& c) {
  right->kernel.cpu(c);
  if (++calls % 2 == 0 && has_elements(c.outs[0])) set(c.outs[0], 0, 77);
}
void last_element_wrong(const KernelCall& c) {
  right->kernel.cpu(c);
  const View& out = c.outs[0];
  int64_t last = 0;
  for (int d = 0; d < out.rank; ++d) last += (out.sizes[d] - 1) * out.strides[d];
  if (out.numel() > 1) set(out, last, 77);
}
void one_row_wrong(const KernelCall& c) {
  right->kernel.cpu(c);
  const View& out = c.outs[0];
  if (out.rank > 0 && out.sizes[0] == 1 && has_elements(out)) set(out, 0, 77);
}
void nan_forgotten(const KernelCall& c) {
  right->kernel.cpu(c);
  const View& out = c.outs[0];
  for (int64_t i = 0; i < out.numel() && !is_complex(out.dtype);
       ++i)  // results of functional calls are dense
    visit_dtype(out.dtype, [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      if constexpr (std::is_floating_point_v<T>)
        if (out.as<T>()[i] != out.as<T>()[i]) out.as<T>()[i] = 0;
    });
}

void zeros_without_sign(const KernelCall& c) {
  right->kernel.cpu(c);
  const View& out = c.outs[0];
  visit_dtype(out.dtype, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (std::is_floating_point_v<T>)
      for (int64_t i = 0; i < out.numel(); ++i)  // dense, as above
        if (out.as<T>()[i] == 0) out.as<T>()[i] = 0;
  });
}

Tensor plus_half(const RuleArgs& a) { return right->vjp[0].one(a) + 0.5; }
Tensor plus_half_tangent(const RuleArgs& a) { return right->jvp[0].one(a) + 0.5; }
/// Right at the first call in a row of three.
Tensor right_now_and_then(const RuleArgs& a) {
  const Tensor t = right->vjp[0].one(a);
  return ++calls % 3 == 1 ? t : t * 2;
}

/// Cases until the law fails with the bug and passes without it; 0 when it does not within 2000.
int cases_to_red(const char* law_id, const char* op_name, void (*plant)(Op&)) {
  const Law& law = *find_law(law_id);
  right = OpTable::current().find(op_name);
  auto* const row = new Op(*right);  // rows are never freed
  row->base = row;
  plant(*row);
  const OpTable* const table = OpTable::current().with(*row);
  for (uint64_t i = 0; i < 2000; ++i) {
    const Choices choices = choices_of(3, law, *right, i);
    Verdict v;
    {
      const ScopedTable pinned(table);
      v = run_check(law, table->row(right->id), choices);
    }
    if (v.kind != Verdict::Fail) continue;
    EXPECT_NE(run_check(law, *right, choices).kind, Verdict::Fail) << "the law fails without the bug";
    EXPECT_FALSE(v.program.empty());
    return int(i + 1);
  }
  return 0;
}

void wrong_kernel(Op& row, KernelFn kernel) {
  row.kernel.cpu = kernel;
  row.kernel.lines = {};  // small tensors take the kernel too
}

TEST(LawsRed, CallsRepeat) {
  EXPECT_GT(cases_to_red("calls_repeat", "mul", [](Op& r) { wrong_kernel(r, second_call_wrong); }), 0);
}
TEST(LawsRed, NonfiniteAsReference) {
  EXPECT_GT(cases_to_red("nonfinite_as_reference", "sin", [](Op& r) { wrong_kernel(r, nan_forgotten); }), 0);
}
TEST(LawsRed, EndsAsReference) {
  EXPECT_GT(cases_to_red("ends_as_reference", "mul", [](Op& r) { wrong_kernel(r, zeros_without_sign); }), 0);
}
TEST(LawsRed, RangesAreKeptOfASign) {
  EXPECT_GT(cases_to_red("ranges_are_kept", "remainder",
                         [](Op& r) { wrong_kernel(r, OpTable::current().find("fmod")->kernel.cpu); }),
            0);
  EXPECT_GT(cases_to_red("ranges_are_kept", "fmod",
                         [](Op& r) { wrong_kernel(r, OpTable::current().find("remainder")->kernel.cpu); }),
            0);
}
TEST(LawsRed, ElementsAlone) {
  EXPECT_GT(cases_to_red("elements_alone", "mul", [](Op& r) { wrong_kernel(r, last_element_wrong); }), 0);
}
TEST(LawsRed, ChunksAgree) {
  EXPECT_GT(cases_to_red("chunks_agree", "mul", [](Op& r) { wrong_kernel(r, last_element_wrong); }), 0);
}
TEST(LawsRed, IdentityTransforms) {
  EXPECT_GT(cases_to_red("identity_transforms", "mul", [](Op& r) { wrong_kernel(r, one_row_wrong); }), 0);
}
TEST(LawsRed, DerivativesScaleBackwards) {
  EXPECT_GT(cases_to_red("derivatives_scale", "mul", [](Op& r) { r.vjp[0].one = plus_half; }), 0);
}
TEST(LawsRed, DerivativesScaleForwards) {
  EXPECT_GT(cases_to_red("derivatives_scale", "mul", [](Op& r) { r.jvp[0].one = plus_half_tangent; }), 0);
}
TEST(LawsRed, UnusedIsZero) {
  EXPECT_GT(cases_to_red("unused_is_zero", "mul", [](Op& r) { r.vjp[0].one = right_now_and_then; }), 0);
}
TEST(LawsRed, UsesAccumulate) {
  EXPECT_GT(cases_to_red("uses_accumulate", "mul", [](Op& r) { r.vjp[0].one = right_now_and_then; }), 0);
}
TEST(LawsRed, SubsetsAgree) {
  EXPECT_GT(cases_to_red("subsets_agree", "mul", [](Op& r) { r.vjp[0].one = right_now_and_then; }), 0);
}
TEST(LawsRed, DispatchModel) {
  EXPECT_GT(cases_to_red("dispatch_model", "mul", [](Op& r) { r.tensor_params.pop_back(); }), 0);
}
TEST(LawsRed, SchemaReadsBack) {
  EXPECT_GT(cases_to_red("schema_reads_back", "mul", [](Op& r) { r.jvp.clear(); }), 0);
}
TEST(LawsRed, PromotesByTable) {
  EXPECT_GT(cases_to_red("promotes_by_table", "mul",
                         [](Op& r) {
                           r.infer = [](const Frame& f, Inferred& out) {
                             ops::infer_broadcast(f, out);
                             if (out.compute == DType::F32) out.compute = out.outs[0].dtype = DType::F64;
                           };
                         }),
            0);
}

/// Of f32 the batch rule gives f64: values are right.
template <bool empty_alone> void widened(BatchCall& b) {
  ops::batch_front(b);
  if ((b.size == 0 || !empty_alone) && b.results[0].dtype() == DType::F32)
    b.results[0] = to(b.results[0], DType::F64);
}
TEST(LawsRed, VmapSizesOfNoLanes) {
  EXPECT_GT(cases_to_red("vmap_sizes", "cumsum", [](Op& r) { r.batch = widened<true>; }), 0);
}
TEST(LawsRed, VmapEqualsLoopOfADtype) {
  EXPECT_GT(cases_to_red("vmap_equals_loop", "cumsum", [](Op& r) { r.batch = widened<false>; }), 0);
}
TEST(LawsRed, VmapLevelsSwapOfADtype) {
  EXPECT_GT(cases_to_red("vmap_levels_swap", "cumsum", [](Op& r) { r.batch = widened<false>; }), 0);
}

// What every column and every composite shares, wrong: seen by lists, maps and definitions.

TEST(LawsRed, EqualsWhereExactOfAComposite) {
  EXPECT_GT(cases_to_red("equals_where_exact", "mean",
                         [](Op& r) {
                           r.composite = [](Frame& f) {
                             right->composite(f);
                             f.results[0] = f.results[0] * 2;
                           };
                         }),
            0);
}
TEST(LawsRed, CompositesAsDefined) {
  EXPECT_GT(cases_to_red("composites_as_defined", "mean",
                         [](Op& r) {
                           r.composite = [](Frame& f) {
                             right->composite(f);
                             f.results[0] = unsqueeze(f.results[0], 0);
                           };
                         }),
            0);
}
TEST(LawsRed, MemoryAsListed) {
  EXPECT_GT(cases_to_red("memory_as_listed", "detach",
                         [](Op& r) {
                           r.view = [](const Frame&, const Geometry& x) {
                             Geometry out = x;
                             for (int64_t& s : out.strides) s = s > 1 ? s - 1 : s;
                             return out;
                           };
                         }),
            0);
}
TEST(LawsRed, ViewsAsListed) {
  EXPECT_GT(cases_to_red("views_as_listed", "view",
                         [](Op& r) {
                           r.view = [](const Frame& f, const Geometry& x) {
                             Geometry dense = x;
                             dense.strides = contiguous_strides(x.sizes);
                             Geometry out = right->view(f, dense);
                             out.offset = x.offset;
                             return out;
                           };
                         }),
            0);
}
TEST(LawsRed, ElementsAsMapped) {
  EXPECT_GT(cases_to_red("elements_as_mapped", "flip", [](Op& r) { wrong_kernel(r, last_element_wrong); }),
            0);
}
TEST(LawsRed, LinesAlone) {
  EXPECT_GT(cases_to_red("lines_alone", "softmax",
                         [](Op& r) {
                           r.infer = [](const Frame& f, Inferred& out) {
                             right->infer(f, out);
                             if (f.tensor(0).rank() == 3) out.ints[0] = (out.ints[0] + 1) % 3;
                           };
                         }),
            0);
}
TEST(LawsRed, DtypesAsListed) {
  EXPECT_GT(cases_to_red("dtypes_as_listed", "sum",
                         [](Op& r) {
                           r.infer = [](const Frame& f, Inferred& out) {
                             right->infer(f, out);
                             if (f.tensor(0).dtype() == DType::U8)
                               out.compute = out.outs[0].dtype = DType::U8;
                           };
                         }),
            0);
}
}  // namespace
