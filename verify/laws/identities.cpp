// The table of identities. A line is a promise about every operator it mentions; the laws find out which.
#include "lamella/verify/laws/identities.h"

#include "lamella/ops/functions.h"

namespace lamella::verify {

namespace {

#define LAMELLA_SIDE(expression)                                    \
  [](const Tensor& x, const Tensor& y, const Tensor& z) -> Tensor { \
    (void)x, (void)y, (void)z;                                      \
    return expression;                                              \
  }
/// The comma of C++ lists passes through.
#define LAMELLA_TEXT(...) #__VA_ARGS__
#define LAMELLA_PAIR(sides, letters, dtypes, domain, left, right)                                    \
  Identity {                                                                                         \
    LAMELLA_TEXT(left), LAMELLA_TEXT(right), Sides::sides, Letters::letters, dtypes, Domain::domain, \
        LAMELLA_SIDE(left), LAMELLA_SIDE(right)                                                      \
  }

constexpr DTypeMask kReal = kFloat32And64, kBoth = kFloat32And64 | kComplex, kSigned = kRealTypes | kComplex;
constexpr DTypeMask kOrdered = kRealTypes, kBools = kBoolType, kKeys = mask(DType::U64);

void add_elementary(std::vector<Identity>& out) {
  const Identity all[] = {
      LAMELLA_PAIR(Rounded, Alike, kBoth, Positive, exp(log(x)), x),
      LAMELLA_PAIR(Rounded, Alike, kReal, Any, log(exp(x)), x),
      LAMELLA_PAIR(Rounded, Alike, kBoth, Any, exp(x + y), exp(x) * exp(y)),
      LAMELLA_PAIR(Rounded, Alike, kReal, Positive, log(x * y), log(x) + log(y)),
      LAMELLA_PAIR(Rounded, Alike, kBoth, Any, sin(x) * sin(x) + cos(x) * cos(x), ones_like(x)),
      LAMELLA_PAIR(Rounded, Alike, kBoth, Any, sin(x + y), sin(x) * cos(y) + cos(x) * sin(y)),
      LAMELLA_PAIR(Rounded, Alike, kReal, Any, tanh(x), (exp(x) - exp(-x)) / (exp(x) + exp(-x))),
      LAMELLA_PAIR(Rounded, Alike, kBoth, Positive, sqrt(x) * sqrt(x), x),
      LAMELLA_PAIR(Rounded, Alike, kBoth, Positive, reciprocal(reciprocal(x)), x),
      LAMELLA_PAIR(Rounded, Alike, kBoth, Positive, x / y, x * reciprocal(y)),
      LAMELLA_PAIR(Rounded, Alike, kReal, Positive, pow(x, y), exp(y * log(x))),
      LAMELLA_PAIR(Rounded, Alike, kReal, Positive, pow(x, y + z), pow(x, y) * pow(x, z)),
      LAMELLA_PAIR(Rounded, Alike, kBoth, Any, (x + y) + z, x + (y + z)),
      LAMELLA_PAIR(Rounded, Alike, kBoth, Any, x * (y + z), x * y + x * z),
      LAMELLA_PAIR(Rounded, Alike, kBoth, Any, (x * y) * z, x * (y * z)),
      LAMELLA_PAIR(Rounded, Alike, kBoth, Any, abs(x * y), abs(x) * abs(y)),
      LAMELLA_PAIR(Rounded, Alike, kBoth, Any, sign(x) * abs(x), x),
      LAMELLA_PAIR(Equal, Alike, kReal, Any, sin(-x), -sin(x)),
      LAMELLA_PAIR(Equal, Alike, kReal, Any, cos(-x), cos(x)),
      LAMELLA_PAIR(Equal, Alike, kReal, Any, tanh(-x), -tanh(x)),
      LAMELLA_PAIR(Equal, Alike, kReal, Any, reciprocal(-x), -reciprocal(x)),
  };
  out.insert(out.end(), std::begin(all), std::end(all));
}

void add_exact(std::vector<Identity>& out) {
  const Identity all[] = {
      LAMELLA_PAIR(Equal, Alike, kSigned, Any, -(-x), x),
      LAMELLA_PAIR(Equal, Alike, kSigned, Any, x + y, y + x),
      LAMELLA_PAIR(Equal, Alike, kOrdered, Any, x * y, y * x),
      LAMELLA_PAIR(EqualNumbers, Alike, kSigned, Any, x - y, x + (-y)),
      LAMELLA_PAIR(Equal, Alike, kOrdered, Any, abs(abs(x)), abs(x)),
      LAMELLA_PAIR(Equal, Alike, kOrdered, Any, sign(sign(x)), sign(x)),
      LAMELLA_PAIR(EqualNumbers, Alike, kOrdered, Any, maximum(x, y), maximum(y, x)),
      LAMELLA_PAIR(EqualNumbers, Alike, kOrdered, Any, minimum(x, y),
                   where(lt(x, y), x, where(isnan(x), x, y))),
      LAMELLA_PAIR(EqualNumbers, Table, kFloating, Any, amax(x), -amin(-x)),
      LAMELLA_PAIR(EqualNumbers, Alike, kOrdered, Any, clamp(x, y, z), minimum(maximum(x, y), z)),
      LAMELLA_PAIR(Equal, Alike, kOrdered, Any, lt(x, y), gt(y, x)),
      LAMELLA_PAIR(Equal, Alike, kOrdered, Any, le(x, y), ge(y, x)),
      LAMELLA_PAIR(Equal, Alike, kAllTypes, Any, eq(x, y), logical_not(ne(y, x))),
      LAMELLA_PAIR(Equal, Alike, kSigned, Any, isnan(x), ne(x, x)),
      LAMELLA_PAIR(Equal, Alike, kBools, Any, logical_not(logical_and(x, y)),
                   logical_or(logical_not(x), logical_not(y))),
      LAMELLA_PAIR(Equal, Alike, kAllTypes, Any, where(eq(y, y), x, x), x),
      LAMELLA_PAIR(Equal, Alike, kOrdered, Any, where(lt(x, y), x, y), where(logical_not(lt(x, y)), y, x)),
      LAMELLA_PAIR(Equal, Alike, kAllTypes, Any, clone(x), x),
      LAMELLA_PAIR(Equal, Alike, kAllTypes, Any, copy(x, y), y),
      LAMELLA_PAIR(Equal, Alike, kAllTypes, Any, contiguous(x), x),
      LAMELLA_PAIR(Equal, Alike, kSigned, Any, fill(x, 2), full_like(x, 2)),
      LAMELLA_PAIR(Equal, Alike, kSigned, Any, new_full(x, x.sizes(), 1), ones_like(x)),
      LAMELLA_PAIR(Equal, Alike, kSigned, Any, new_zeros(x, x.sizes()), zeros_like(x)),
      LAMELLA_PAIR(Equal, Alike, kFloating, Any, to(to(x, DType::F64), x.dtype()), x),
      LAMELLA_PAIR(Equal, Alike, kComplex, Any, conj(conj(x)), x),
      LAMELLA_PAIR(Equal, Alike, kComplex, Any, complex(real(x), imag(x)), x),
      LAMELLA_PAIR(Equal, Alike, kReal, Any, imag(complex(x, y)), y),
      LAMELLA_PAIR(Equal, Alike, kComplex, Any, conj_physical(x), complex(real_part(x), -imag(x))),
      LAMELLA_PAIR(Equal, Alike, kKeys, Any, select(split_key(x, 3), -1, 2), fold_in(x, full_like(x, 2))),
  };
  out.insert(out.end(), std::begin(all), std::end(all));
}

void add_quotients(std::vector<Identity>& out) {
  // A quotient rounded down is negative where the signs differ, also when it vanishes (PyTorch's -1).
  out.push_back(LAMELLA_PAIR(
      Equal, Alike, kFloating, Any, where(eq(y, 0), isnan(x), lt(div(x, y, "floor"), 0)),
      where(
          eq(y, 0), isnan(x),
          logical_and(ne(lt(x, 0), lt(y, 0)), logical_and(ne(x, 0), logical_and(eq(x - x, 0), eq(y, y)))))));
}

void add_moves(std::vector<Identity>& out) {
  const Identity all[] = {
      LAMELLA_PAIR(Equal, Block, kAllTypes, Any, flip(flip(x, {0, 2}), {0, 2}), x),
      LAMELLA_PAIR(Equal, Table, kOrdered, Any, sort(sort(x, 0)[0], 0)[0], sort(x, 0)[0]),
      LAMELLA_PAIR(Equal, Table, kOrdered, Any, gather(x, 1, sort(x, 1)[1]), sort(x, 1)[0]),
      LAMELLA_PAIR(EqualNumbers, Table, kOrdered, Any, sort(x, 0, true)[0], flip(sort(x, 0)[0], {0})),
      LAMELLA_PAIR(EqualNumbers, Table, kOrdered, Any, sort(flip(x, {1}), 1)[0], sort(x, 1)[0]),
      LAMELLA_PAIR(EqualNumbers, Table, kOrdered, Any, gather(x, 1, argmax(x, 1, true)),
                   amax(x, IntArg{1}, true)),
      LAMELLA_PAIR(Equal, Table, kAllTypes, Any, cat(split(x, 2, 1), 1), x),
      LAMELLA_PAIR(Equal, Table, kAllTypes, Any, cat(split_with_sizes(x, {1, x.size(0) - 1}), 0), x),
      LAMELLA_PAIR(Equal, Alike, kAllTypes, Any, select(stack({x, y}, 0), 0, 1), y),
      LAMELLA_PAIR(Equal, Table, kAllTypes, Any, slice(cat({x, x}, 0), 0, x.size(0)), x),
      LAMELLA_PAIR(Equal, Table, kAllTypes, Any, index_select(x, 0, arange(x.size(0))), x),
      LAMELLA_PAIR(EqualNumbers, Table, kSigned, Any, index_add(zeros_like(x), 0, arange(x.size(0)), x), x),
      LAMELLA_PAIR(EqualNumbers, Table, kOrdered, Any,
                   scatter_add(zeros_like(x), 1, sort(x, 1)[1], sort(x, 1)[0]), x),
      LAMELLA_PAIR(Equal, Table, kAllTypes, Any, select_scatter(x, select(x, 1, 0), 1, 0), x),
      LAMELLA_PAIR(Equal, Table, kAllTypes, Any, select(select_scatter(x, y, 0, -1), 0, -1), y),
      LAMELLA_PAIR(Equal, Table, kAllTypes, Any, slice_scatter(x, slice(x, 1, 1), 1, 1), x),
      LAMELLA_PAIR(Equal, Table, kAllTypes, Any, diagonal_scatter(x, diagonal(x, 1), 1), x),
      LAMELLA_PAIR(EqualNumbers, Table, kIntegers, Any, tril(x) + triu(x, 1), x),
      LAMELLA_PAIR(Equal, Table, kAllTypes, Any, tril(x, -1), transpose(triu(transpose(x, 0, 1), 1), 0, 1)),
      LAMELLA_PAIR(Equal, Table, kIntegers, Any, select(cumsum(x, 0), 0, -1), sum(x, IntArg{0})),
      LAMELLA_PAIR(Equal, Table, kIntegers, Any, prod(prod(x, IntArg{0}), IntArg{0}), prod(x)),
      LAMELLA_PAIR(Equal, Table, kAllTypes, Any,
                   index_select(x, 0, select(nonzero(ones_like(select(x, 1, 0))), 1, 0)), x),
  };
  out.insert(out.end(), std::begin(all), std::end(all));
}

void add_sums(std::vector<Identity>& out) {
  const Identity all[] = {
      LAMELLA_PAIR(Rounded, Table, kBoth, Any, sum(sum(x, IntArg{1})), sum(x)),
      LAMELLA_PAIR(Rounded, Table, kBoth, Any, prod(prod(x, IntArg{0})), prod(x)),
      LAMELLA_PAIR(Rounded, Table, kBoth, Any, mean(x) * double(x.numel()), sum(x)),
      LAMELLA_PAIR(Rounded, Table, kReal, Positive, prod(x), exp(sum(log(x)))),
      LAMELLA_PAIR(Rounded, Table, kBoth, Any, select(cumsum(x, 1), 1, -1), sum(x, IntArg{1})),
      LAMELLA_PAIR(Rounded, Table, kBoth, Any, select(cumprod(x, 0), 0, -1), prod(x, IntArg{0})),
      LAMELLA_PAIR(Rounded, Table, kBoth, Any, sum_to_size(x + expand(y, x.sizes()), y.sizes()),
                   sum(x, IntArg{0}) + y * double(x.size(0))),
      LAMELLA_PAIR(Rounded, Table, kReal, Any, sum(softmax(x, 1), IntArg{1}), ones_like(select(x, 1, 0))),
      LAMELLA_PAIR(Rounded, Table, kReal, Any, softmax(x, 0), exp(log_softmax(x, 0))),
      LAMELLA_PAIR(Rounded, Table, kReal, Any, log_softmax(x, 1), x - log(sum(exp(x), IntArg{1}, true))),
      LAMELLA_PAIR(Rounded, Table, kReal, Any, sum(layer_norm(x, {x.size(1)})), zeros_like(sum(x))),
      LAMELLA_PAIR(Rounded, Table, kReal, Any, select(native_layer_norm(x, {x.size(1)}, y, y, 1e-5)[0], 0, 0),
                   select(layer_norm(x, {x.size(1)}) * y + y, 0, 0)),
      LAMELLA_PAIR(Rounded, Matrices, kBoth, Any, mm(mm(x, y), z), mm(x, mm(y, z))),
      LAMELLA_PAIR(Rounded, Matrices, kBoth, Any, mm(x, y),
                   sum(unsqueeze(x, 2) * unsqueeze(y, 0), IntArg{1})),
      LAMELLA_PAIR(Rounded, Matrices, kBoth, Any, matmul(x, y),
                   transpose(matmul(transpose(y, 0, 1), transpose(x, 0, 1)), 0, 1)),
      LAMELLA_PAIR(Rounded, Matrices, kBoth, Any, bmm(unsqueeze(x, 0), unsqueeze(y, 0)),
                   unsqueeze(mm(x, y), 0)),
      LAMELLA_PAIR(Rounded, Matrices, kBoth, Any, mm(x, eye(x.size(1), std::nullopt, x.dtype())), x),
      LAMELLA_PAIR(Rounded, Vector, kBoth, Any, mv(x, y), squeeze(mm(x, unsqueeze(y, 1)), IntArg{1})),
      LAMELLA_PAIR(Rounded, Definite, kBoth, Any,
                   mm(linalg_cholesky(x), conj(transpose(linalg_cholesky(x), 0, 1))), x),
      LAMELLA_PAIR(Rounded, Definite, kBoth, Any, cholesky(x), linalg_cholesky(x)),
      LAMELLA_PAIR(Rounded, Triangular, kBoth, Any, mm(tril(x), linalg_solve_triangular(x, y, false)), y),
  };
  out.insert(out.end(), std::begin(all), std::end(all));
}

void add_round_trips(std::vector<Identity>& out) {
  const Identity all[] = {
      LAMELLA_PAIR(SamePlace, Block, kAllTypes, Any, transpose(transpose(x, 0, -1), -1, 0), x),
      LAMELLA_PAIR(SamePlace, Block, kAllTypes, Any, permute(permute(x, {2, 0, 1}), {1, 2, 0}), x),
      LAMELLA_PAIR(SamePlace, Block, kAllTypes, Any, permute(x, {0, 2, 1}), transpose(x, 1, 2)),
      LAMELLA_PAIR(SamePlace, Block, kAllTypes, Any, squeeze(unsqueeze(x, 1), IntArg{1}), x),
      LAMELLA_PAIR(SamePlace, Block, kAllTypes, Any, select(unsqueeze(x, -1), -1, 0), x),
      LAMELLA_PAIR(SamePlace, Block, kAllTypes, Any, select(expand(unsqueeze(x, 0), {2, -1, -1, -1}), 0, 1),
                   x),
      LAMELLA_PAIR(SamePlace, Block, kAllTypes, Any, slice(x, 2, 0, x.size(2)), x),
      LAMELLA_PAIR(SamePlace, Block, kAllTypes, Any, split(x, x.size(0), 0)[0], x),
      LAMELLA_PAIR(SamePlace, Block, kAllTypes, Any, select(x, 0, 0), select(slice(x, 0, 0, 1), 0, 0)),
      LAMELLA_PAIR(SamePlace, Block, kAllTypes, Any, diagonal(transpose(x, 0, 1), 0, 0, 1),
                   diagonal(x, 0, 1, 0)),
      LAMELLA_PAIR(SamePlace, Dense, kAllTypes, Any, view(view(x, {-1}), x.sizes()), x),
      LAMELLA_PAIR(SamePlace, Dense, kAllTypes, Any, reshape(reshape(x, {x.size(1), -1, 1}), x.sizes()), x),
      LAMELLA_PAIR(SamePlace, Dense, kAllTypes, Any, contiguous(x), x),
      LAMELLA_PAIR(SamePlace, Block, kReal, Any, real(conj(x)), x),
  };
  out.insert(out.end(), std::begin(all), std::end(all));
}
}  // namespace

const std::vector<Identity>& identities() {
  static const std::vector<Identity> all = [] {
    std::vector<Identity> list;
    add_elementary(list), add_exact(list), add_moves(list), add_sums(list), add_round_trips(list);
    add_quotients(list);
    return list;
  }();
  return all;
}

}  // namespace lamella::verify
