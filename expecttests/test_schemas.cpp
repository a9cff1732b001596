// The schemas of all operators with the forms each has, and that the parser reads what is printed.
#include "lamella/dispatch/call.h"
#include "lamella/ops/all.h"

#include "expect.h"

namespace {
using namespace lamella;

std::string listing() {
  std::string out;
  for (const Op* op : OpTable::current().rows()) {
    if (op->form != OpForm::Functional || op->has(kTestOnly)) continue;
    out += str(op->schema);
    for (const char* suffix : {"_", "_out"})
      if (const Op* form = OpTable::current().find(op->name + suffix)) out += "  " + form->name;
    out += "\n";
  }
  return out;
}

TEST(Schemas, AllOperators) {
  EXPECT_INLINE(listing(), R"(
      exp(Tensor x) -> Tensor  exp_  exp_out
      expm1(Tensor x) -> Tensor  expm1_  expm1_out
      exp2(Tensor x) -> Tensor  exp2_  exp2_out
      log(Tensor x) -> Tensor  log_  log_out
      log1p(Tensor x) -> Tensor  log1p_  log1p_out
      log2(Tensor x) -> Tensor  log2_  log2_out
      sqrt(Tensor x) -> Tensor  sqrt_  sqrt_out
      rsqrt(Tensor x) -> Tensor  rsqrt_  rsqrt_out
      reciprocal(Tensor x) -> Tensor  reciprocal_  reciprocal_out
      sin(Tensor x) -> Tensor  sin_  sin_out
      cos(Tensor x) -> Tensor  cos_  cos_out
      atan(Tensor x) -> Tensor  atan_  atan_out
      sinh(Tensor x) -> Tensor  sinh_  sinh_out
      cosh(Tensor x) -> Tensor  cosh_  cosh_out
      tanh(Tensor x) -> Tensor  tanh_  tanh_out
      asinh(Tensor x) -> Tensor  asinh_  asinh_out
      sigmoid(Tensor x) -> Tensor  sigmoid_  sigmoid_out
      erf(Tensor x) -> Tensor  erf_  erf_out
      erfc(Tensor x) -> Tensor  erfc_  erfc_out
      neg(Tensor x) -> Tensor  neg_  neg_out
      abs(Tensor x) -> Tensor  abs_  abs_out
      relu(Tensor x) -> Tensor  relu_  relu_out
      sign(Tensor x) -> Tensor  sign_  sign_out
      square(Tensor x) -> Tensor  square_  square_out
      add(Tensor a, Tensor b, *, Scalar alpha=1) -> Tensor  add_  add_out
      sub(Tensor a, Tensor b, *, Scalar alpha=1) -> Tensor  sub_  sub_out
      mul(Tensor a, Tensor b) -> Tensor  mul_  mul_out
      div(Tensor a, Tensor b, *, str? rounding_mode=None) -> Tensor  div_  div_out
      pow(Tensor a, Tensor b) -> Tensor  pow_  pow_out
      maximum(Tensor a, Tensor b) -> Tensor  maximum_  maximum_out
      minimum(Tensor a, Tensor b) -> Tensor  minimum_  minimum_out
      where(Tensor condition, Tensor x, Tensor y) -> Tensor  where_out
      clamp(Tensor x, Tensor? min=None, Tensor? max=None) -> Tensor  clamp_  clamp_out
      eq(Tensor a, Tensor b) -> Tensor  eq_out
      ne(Tensor a, Tensor b) -> Tensor  ne_out
      lt(Tensor a, Tensor b) -> Tensor  lt_out
      le(Tensor a, Tensor b) -> Tensor  le_out
      gt(Tensor a, Tensor b) -> Tensor  gt_out
      ge(Tensor a, Tensor b) -> Tensor  ge_out
      logical_and(Tensor a, Tensor b) -> Tensor  logical_and_out
      logical_or(Tensor a, Tensor b) -> Tensor  logical_or_out
      logical_not(Tensor x) -> Tensor  logical_not_out
      isnan(Tensor x) -> Tensor  isnan_out
      conj_physical(Tensor x) -> Tensor  conj_physical_  conj_physical_out
      real_part(Tensor x) -> Tensor(a)
      imag(Tensor x) -> Tensor(a)
      conj(Tensor x) -> Tensor(a)
      real(Tensor x) -> Tensor(a)
      complex(Tensor real, Tensor imag) -> Tensor  complex_out
      sum(Tensor x, Dim[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor  sum_out
      prod(Tensor x, Dim[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor  prod_out
      mean(Tensor x, Dim[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor  mean_out
      sum_to_size(Tensor x, Size size) -> Tensor  sum_to_size_out
      amax(Tensor x, Dim[] dim=[], bool keepdim=False) -> Tensor  amax_out
      amin(Tensor x, Dim[] dim=[], bool keepdim=False) -> Tensor  amin_out
      logsumexp(Tensor x, Dim[] dim, bool keepdim=False) -> Tensor  logsumexp_out
      argmax(Tensor x, Dim? dim=None, bool keepdim=False) -> Tensor  argmax_out
      cumsum(Tensor x, Dim dim, *, DType? dtype=None) -> Tensor  cumsum_  cumsum_out
      cumprod(Tensor x, Dim dim, *, DType? dtype=None) -> Tensor  cumprod_  cumprod_out
      cummax(Tensor x, Dim dim) -> (Tensor, Tensor)
      softmax(Tensor x, Dim dim, *, DType? dtype=None) -> Tensor  softmax_out
      log_softmax(Tensor x, Dim dim, *, DType? dtype=None) -> Tensor  log_softmax_out
      sort(Tensor x, Dim dim=-1, bool descending=False, bool stable=False) -> (Tensor, Tensor)
      flip(Tensor x, Dim[] dims) -> Tensor  flip_out
      mm(Tensor a, Tensor b) -> Tensor  mm_out
      bmm(Tensor a, Tensor b) -> Tensor  bmm_out
      mv(Tensor a, Tensor v) -> Tensor  mv_out
      matmul(Tensor a, Tensor b) -> Tensor  matmul_out
      outer(Tensor a, Tensor b) -> Tensor  outer_out
      dot(Tensor a, Tensor b) -> Tensor  dot_out
      tril(Tensor x, int diagonal=0) -> Tensor  tril_  tril_out
      triu(Tensor x, int diagonal=0) -> Tensor  triu_  triu_out
      linalg_cholesky(Tensor x, *, bool upper=False) -> Tensor  linalg_cholesky_out
      cholesky(Tensor x, bool upper=False) -> Tensor  cholesky_out
      linalg_solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, bool \
      unitriangular=False) -> Tensor  linalg_solve_triangular_out
      view(Tensor x, Size size) -> Tensor(a)
      reshape(Tensor x, Size size) -> Tensor(a)
      expand(Tensor x, Size size) -> Tensor(a)
      squeeze(Tensor x, Dim[]? dim=None) -> Tensor(a)
      unsqueeze(Tensor x, Dim dim) -> Tensor(a)
      permute(Tensor x, Dim[] dims) -> Tensor(a)
      transpose(Tensor x, Dim dim0, Dim dim1) -> Tensor(a)
      select(Tensor x, Dim dim, int index) -> Tensor(a)
      slice(Tensor x, Dim dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)
      diagonal(Tensor x, int offset=0, Dim dim1=0, Dim dim2=1) -> Tensor(a)
      select_scatter(Tensor x, Tensor src, Dim dim, int index) -> Tensor  select_scatter_  \
      select_scatter_out
      slice_scatter(Tensor x, Tensor src, Dim dim=0, int? start=None, int? end=None, int step=1) -> \
      Tensor  slice_scatter_  slice_scatter_out
      diagonal_scatter(Tensor x, Tensor src, int offset=0, Dim dim1=0, Dim dim2=1) -> Tensor  \
      diagonal_scatter_  diagonal_scatter_out
      cat(Tensor[] tensors, Dim dim=0) -> Tensor  cat_out
      stack(Tensor[] tensors, Dim dim=0) -> Tensor
      split(Tensor x, int split_size, Dim dim=0) -> Tensor(a)[]
      split_with_sizes(Tensor x, int[] split_sizes, Dim dim=0) -> Tensor(a)[]
      roll(Tensor x, int[] shifts, Dim[]? dims=None) -> Tensor  roll_out
      gather(Tensor x, Dim dim, Tensor index) -> Tensor  gather_out
      scatter_add(Tensor x, Dim dim, Tensor index, Tensor src) -> Tensor  scatter_add_  scatter_add_out
      index_select(Tensor x, Dim dim, Tensor index) -> Tensor  index_select_out
      index_add(Tensor x, Dim dim, Tensor index, Tensor src, *, Scalar alpha=1) -> Tensor  index_add_  \
      index_add_out
      nonzero(Tensor x) -> Tensor  nonzero_out
      zeros(Size size, *, DType? dtype=None, Device? device=None) -> Tensor  zeros_out
      ones(Size size, *, DType? dtype=None, Device? device=None) -> Tensor  ones_out
      empty(Size size, *, DType? dtype=None, Device? device=None) -> Tensor
      full(Size size, Scalar fill_value, *, DType? dtype=None, Device? device=None) -> Tensor  full_out
      arange(Scalar start, Scalar? end=None, Scalar? step=None, *, DType? dtype=None, Device? \
      device=None) -> Tensor  arange_out
      eye(int n, int? m=None, *, DType? dtype=None, Device? device=None) -> Tensor  eye_out
      zeros_like(Tensor x, *, DType? dtype=None, Device? device=None) -> Tensor
      ones_like(Tensor x, *, DType? dtype=None, Device? device=None) -> Tensor
      empty_like(Tensor x, *, DType? dtype=None, Device? device=None) -> Tensor
      full_like(Tensor x, Scalar value, *, DType? dtype=None, Device? device=None) -> Tensor
      new_zeros(Tensor x, Size size, *, DType? dtype=None, Device? device=None) -> Tensor
      new_full(Tensor x, Size size, Scalar value, *, DType? dtype=None, Device? device=None) -> Tensor
      rand(Size size, *, Tensor? key=None, DType? dtype=None, Device? device=None) -> Tensor  rand_out
      randn(Size size, *, Tensor? key=None, DType? dtype=None, Device? device=None) -> Tensor  randn_out
      fold_in(Tensor key, Tensor data) -> Tensor  fold_in_  fold_in_out
      split_key(Tensor key, int num) -> Tensor
      detach(Tensor x) -> Tensor(a)
      clone(Tensor x) -> Tensor
      copy(Tensor self, Tensor src) -> Tensor  copy_  copy_out
      fill(Tensor x, Scalar value) -> Tensor  fill_  fill_out
      to(Tensor x, DType dtype, *, Device? device=None) -> Tensor
      contiguous(Tensor x) -> Tensor(a)
      to_device(Tensor x, Device device) -> Tensor
      layer_norm(Tensor x, Size normalized_shape, Tensor? weight=None, Tensor? bias=None, float \
      eps=1e-05) -> Tensor  layer_norm_out
      native_layer_norm(Tensor x, Size normalized_shape, Tensor? weight, Tensor? bias, float eps) -> \
      (Tensor, Tensor, Tensor)
      var(Tensor x, Dim[]? dim=None, *, float? correction=1, bool keepdim=False) -> Tensor  var_out
      floor(Tensor x) -> Tensor  floor_  floor_out
      ceil(Tensor x) -> Tensor  ceil_  ceil_out
      round(Tensor x) -> Tensor  round_  round_out
      trunc(Tensor x) -> Tensor  trunc_  trunc_out
      frac(Tensor x) -> Tensor  frac_  frac_out
      fmod(Tensor a, Tensor b) -> Tensor  fmod_  fmod_out
      remainder(Tensor a, Tensor b) -> Tensor  remainder_  remainder_out
      atan2(Tensor y, Tensor x) -> Tensor  atan2_  atan2_out
      hypot(Tensor a, Tensor b) -> Tensor  hypot_  hypot_out
      logaddexp(Tensor a, Tensor b) -> Tensor  logaddexp_  logaddexp_out
      xlogy(Tensor x, Tensor y) -> Tensor  xlogy_  xlogy_out
      addcmul(Tensor x, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor  addcmul_  \
      addcmul_out
      lerp(Tensor start, Tensor end, Tensor weight) -> Tensor  lerp_  lerp_out
      softplus(Tensor x, *, Scalar beta=1, Scalar threshold=20) -> Tensor  softplus_  softplus_out
      )");
}

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
