"""What NumPy says of calls of the library's operators: a function each, from PyTorch's arguments to results.

A function asks NumPy's function of the same meaning and raises where NumPy refuses. Where the two libraries
mean different things by one call, the difference stands here as a translation, in words:

- PyTorch's dtypes are another lattice (i64 and f32 give f32, sums of whole numbers are i64, functions of
  whole numbers are f32): operands are converted to PyTorch's common dtype before NumPy is asked. Dtypes have
  witnesses of their own (laws 11, 146).
- A tensor without dims has the dims 0 and -1 in PyTorch: NumPy is given one of one element.
- Indices in a tensor are counted from the front in PyTorch, and an index has as many dims as the tensor:
  NumPy's ravel_multi_index asks for both, where take and put would wrap and broadcast.
- What replaces a part has its sizes in PyTorch, where an assignment in NumPy broadcasts: np.stack asks
  whether two shapes are equal.

What stays unasked, because the two differ by design, is named at its function as "none is drawn".
"""
import math
import warnings

import numpy as np

F32, F64, I64 = np.dtype("f4"), np.dtype("f8"), np.dtype("i8")

# What counts as a refusal; anything else that is raised is an error of these functions.
REFUSALS = (ValueError, TypeError, IndexError, ZeroDivisionError, FloatingPointError, OverflowError,
            np.linalg.LinAlgError, np.exceptions.ComplexWarning)


def kind(dtype):
    """0 bool, 1 whole number, 2 real number, 3 complex number."""
    return {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}[dtype.kind]


def common(*arrays):
    """The arrays in PyTorch's common dtype: of the highest kind; a lower kind does not widen it."""
    highest = max(kind(a.dtype) for a in arrays)
    widest = np.result_type(*(a.dtype for a in arrays if kind(a.dtype) == highest))
    if widest.kind == "c" and any(a.dtype == F64 for a in arrays):
        widest = np.dtype("c16")
    return [a.astype(widest) for a in arrays]


def inexact(x):
    return x if x.dtype.kind in "fc" else x.astype(F32)


def with_dims(f):
    """f for a tensor without dims: on one of one element, whose dim the result loses again."""

    def asked(x, *rest, **named):
        if x.ndim:
            return f(x, *rest, **named)
        out = f(x.reshape(1), *rest, **named)
        return [y.reshape(()) for y in out] if isinstance(out, list) else out.reshape(())

    return asked


def unary(f):
    return lambda x: f(x)


def function(f):
    return lambda x: f(inexact(x))


def pair(f):
    return lambda a, b: f(*common(a, b))


def float_pair(f):
    return lambda a, b: f(*map(inexact, common(a, b)))


def by_element(f):
    """A function of Python's math that NumPy lacks: in f64, rounded to the dtype of x."""
    return function(lambda x: np.vectorize(f, otypes=[F64])(x).astype(x.dtype))


def modulo(f):
    """PyTorch refuses whole numbers by 0, for which NumPy warns: the warning counts as a refusal."""

    def asked(a, b):
        a, b = common(a, b)
        with np.errstate(divide="raise" if a.dtype.kind in "iu" else "ignore"):
            return f(a, b)

    return asked


def x_log_y(x, y):
    """x log(y), and 0 where x is 0: NumPy has no function of it. NaN stays NaN: none is drawn."""
    return np.where(x == 0, x.dtype.type(0), x * np.log(np.where(x == 0, y.dtype.type(1), y)))


def addcmul(x, tensor1, tensor2, value=1):
    x, tensor1, tensor2 = common(x, tensor1, tensor2)
    return x + x.dtype.type(value) * tensor1 * tensor2


def lerp(start, end, weight):
    start, end, weight = common(start, end, weight)
    return start + weight * (end - start)


def softplus(x, beta=1, threshold=20):
    scaled = x * x.dtype.type(beta)
    return np.where(scaled > threshold, x, np.log1p(np.exp(scaled)) / x.dtype.type(beta))


def add(a, b, alpha=1):
    a, b = common(a, b)
    return a + b if alpha == 1 else a + b * a.dtype.type(alpha)


def sub(a, b, alpha=1):
    a, b = common(a, b)
    return a - b if alpha == 1 else a - b * a.dtype.type(alpha)


def div(a, b, rounding_mode=None):
    """PyTorch refuses whole numbers by 0, for which NumPy warns: the warning counts as a refusal."""
    a, b = common(a, b)
    if rounding_mode is None:
        return inexact(a) / inexact(b)
    with np.errstate(divide="raise" if a.dtype.kind in "iu" else "ignore"):
        floor = np.floor_divide(a, b)
        if rounding_mode == "floor":
            return floor
        if rounding_mode != "trunc":
            raise ValueError("no such rounding")
        if a.dtype.kind not in "iu":
            return np.trunc(a / b)
        return floor + ((floor < 0) & (floor * b != a)).astype(a.dtype)


def power(a, b):
    """NumPy refuses negative exponents of whole numbers, PyTorch has a result for them: none is drawn."""
    return np.power(*common(a, b))


def where(x, condition, y):
    x, y = common(x, y)
    return np.where(condition, x, y)


def clamp(x, min=None, max=None):
    """NumPy takes a call without bounds, PyTorch refuses it: one bound at least is drawn."""
    given = common(x, *(b for b in (min, max) if b is not None))
    low = given[1] if min is not None else None
    high = given[-1] if max is not None else None
    return np.clip(given[0], low, high)


def axes(dim):
    return None if dim is None or dim == [] else tuple(dim)


def reduction(f):
    """Over all dims when dim is None or empty, where NumPy would reduce none. Whole numbers add up in i64."""

    def asked(x, dim=None, keepdim=False, dtype=None):
        if dtype is not None:
            x = x.astype(dtype)
        elif f in (np.sum, np.prod) and x.dtype.kind in "biu":
            x = x.astype(I64)
        return np.asarray(f(x, axis=axes(dim), keepdims=keepdim))

    return with_dims(asked)


@with_dims
def var(x, dim=None, correction=1, keepdim=False):
    return np.asarray(np.var(x, axis=axes(dim), ddof=correction, keepdims=keepdim))


@with_dims
def logsumexp(x, dim, keepdim=False):
    return np.log(np.asarray(np.sum(np.exp(inexact(x)), axis=axes(dim), keepdims=keepdim)))


@with_dims
def cummax(x, dim):
    """NumPy has the values alone; of equal ones PyTorch names the last."""
    greatest = np.maximum.accumulate(x, axis=dim)
    at = np.indices(x.shape)[dim]
    return [greatest, np.maximum.accumulate(np.where(x == greatest, at, 0), axis=dim).astype(I64)]


def choice(f):
    return with_dims(lambda x, dim=[], keepdim=False: np.asarray(f(x, axis=axes(dim), keepdims=keepdim)))


@with_dims
def argmax(x, dim=None, keepdim=False):
    return np.asarray(np.argmax(x, axis=dim, keepdims=keepdim))


def scan(f):
    return with_dims(lambda x, dim: f(x.astype(I64) if x.dtype.kind in "biu" else x, axis=dim))


@with_dims
def softmax(x, dim):
    return np.exp(x) / np.sum(np.exp(x), axis=dim, keepdims=True)


@with_dims
def log_softmax(x, dim):
    return x - np.log(np.sum(np.exp(x), axis=dim, keepdims=True))


@with_dims
def sort(x, dim=-1, descending=False, stable=False):
    """NumPy sorts upwards only: downwards is upwards from the far end; equal ones keep their order."""
    if not descending:
        order = np.argsort(x, axis=dim, kind="stable")
    else:
        mirrored = np.flip(x, axis=dim)
        order = x.shape[dim] - 1 - np.flip(np.argsort(mirrored, axis=dim, kind="stable"), axis=dim)
    return [np.take_along_axis(x, order, axis=dim), order.astype(I64)]


@with_dims
def flip(x, dims):
    return np.flip(x, axis=tuple(dims))


def mm(a, b):
    """NumPy's matmul takes more ranks: einsum asks for two dims each. It broadcasts 1, matmul does not."""
    np.einsum("ij,jk->ik", a, b)
    return np.matmul(a, b)


def mv(a, v):
    np.einsum("ij,j->i", a, v)
    return np.matmul(a, v)


def outer(a, b):
    """np.outer makes vectors of anything, PyTorch asks for them."""
    return np.einsum("i,j->ij", *common(a, b))


def dot(a, b):
    """einsum broadcasts sizes of 1, PyTorch does not: np.stack asks for equal ones."""
    np.stack([np.zeros(a.shape), np.zeros(b.shape)])
    return np.asarray(np.einsum("i,i->", a, b))


@with_dims
def roll(x, shifts, dims):
    """A shift a dim, where NumPy would repeat a single one."""
    np.stack([np.zeros(len(shifts)), np.zeros(len(dims))])
    return np.roll(x, shifts, axis=tuple(dims))


def bmm(a, b):
    """A product a lane, of as many lanes on both sides, where NumPy's matmul would repeat a single one."""
    np.einsum("bij,bjk->bik", a, b)
    np.stack([np.empty(len(a)), np.empty(len(b))])
    return np.matmul(a, b)


def diagonal(x, offset=0, dim1=0, dim2=1):
    return np.diagonal(x, offset, dim1, dim2)


def cholesky(x, upper=False):
    """Whether a NaN is a pivot depends on the LAPACK behind NumPy: none is drawn. PyTorch refuses it."""
    lower = np.linalg.cholesky(x)
    return np.conj(np.swapaxes(lower, -1, -2)) if upper else lower


def solve_triangular(A, B, upper, left=True, unitriangular=False):
    """NumPy solves whole systems: it is given the triangle alone. From the right: the transposed system.

    np.triu makes a matrix of a vector, which PyTorch refuses: swapaxes asks for two dims.
    """
    np.swapaxes(A, -1, -2)
    t = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        n = A.shape[-1]
        t = np.where(np.eye(n, dtype=bool), t.dtype.type(1), t)
    if left:
        return np.linalg.solve(t, B)
    return np.swapaxes(np.linalg.solve(np.swapaxes(t, -1, -2), np.swapaxes(B, -1, -2)), -1, -2)


def reshape(x, size):
    """NumPy takes any negative size for the one to be found, PyTorch -1 alone: broadcast_to says so."""
    np.broadcast_to(0, [1 if s == -1 else s for s in size])
    return np.reshape(x, size)


def expand(x, size):
    """-1 keeps a size of x; in front of x's dims it is a negative size, which NumPy refuses."""
    added = len(size) - x.ndim
    kept = [x.shape[d - added] if s == -1 and d >= added >= 0 else s for d, s in enumerate(size)]
    return np.broadcast_to(x, kept)


@with_dims
def checked_dims(x, dims):
    return np.flip(x, axis=tuple(dims))


def squeeze(x, dim=None):
    """PyTorch leaves dims of other sizes as they are, where NumPy refuses: it is asked for those of 1."""
    if dim is None:
        return np.squeeze(x)
    checked_dims(x, dim)
    return np.squeeze(x, axis=tuple(d for d in dim if x.ndim and x.shape[d] == 1))


def permute(x, dims):
    """np.transpose cuts axes to 32 bits, so that 2^63 - 1 counts as -1: flip asks for the dims first."""
    checked_dims(x, dims)
    return np.transpose(x, dims)


def transpose(x, dim0, dim1):
    if x.ndim == 0:
        np.swapaxes(x.reshape(1), dim0, dim1)
        return x
    return np.swapaxes(x, dim0, dim1)


def select(x, dim, index):
    return np.moveaxis(x, dim, 0)[index]


def slice_of(x, dim=0, start=None, end=None, step=1):
    """NumPy walks backwards for negative steps, PyTorch refuses them: none is drawn."""
    return np.moveaxis(np.moveaxis(x, dim, 0)[start:end:step], 0, dim)


def replaced(part_of):
    """x with a part replaced: the part's flat positions are that part of a tensor of positions."""

    def asked(x, src, *rest):
        positions = part_of(np.arange(x.size).reshape(x.shape), *rest)
        np.stack([positions, np.zeros(src.shape, positions.dtype)])
        y = x.copy()
        y.reshape(-1)[positions] = src
        return y

    return asked


def cat(tensors, dim=0):
    """PyTorch joins tensors of sizes [0] with any other, NumPy does not: none is drawn beside others."""
    return np.concatenate(common(*tensors) if tensors else tensors, axis=dim)


def stack(tensors, dim=0):
    return np.stack(common(*tensors) if tensors else tensors, axis=dim)


def split(x, split_size, dim=0):
    """Pieces of one size: NumPy is told where each begins."""
    begins = range(0, np.moveaxis(x, dim, 0).shape[0], split_size)
    if split_size < 0:
        raise ValueError("a negative size")
    return np.split(x, begins[1:], axis=dim)


def split_with_sizes(x, split_sizes, dim=0):
    """NumPy is told where pieces begin and asks for no sum: joined to what was promised they must be x."""
    pieces = np.split(x, np.cumsum(split_sizes)[:-1], axis=dim)
    for piece, size in zip(pieces, split_sizes, strict=True):
        np.stack([np.empty(np.moveaxis(piece, dim, 0).shape[0]), np.empty(size)])
    return pieces


def places(index, dim, shape):
    """Flat positions: those of `index` along dim, its own along the others. Refused outside of `shape`."""
    coordinates = list(np.indices(index.shape))
    np.moveaxis(np.empty(shape), dim, 0)
    coordinates[dim] = index
    return np.ravel_multi_index(tuple(coordinates), shape)


@with_dims
def gather(x, dim, index):
    rows = places(index.reshape(index.shape or 1), dim, x.shape)
    return x.reshape(-1)[rows].reshape(index.shape)


@with_dims
def scatter_add(x, dim, index, src):
    index, src = index.reshape(index.shape or 1), src.reshape(src.shape or 1)
    taken = np.ravel_multi_index(tuple(np.indices(index.shape)), src.shape)
    y = x.copy()
    np.add.at(y.reshape(-1), places(index, dim, x.shape), src.reshape(-1)[taken])
    return y


@with_dims
def index_select(x, dim, index):
    index = np.atleast_1d(index)
    np.ravel_multi_index((index,), (np.moveaxis(x, dim, 0).shape[0],))
    return np.take(x, index, axis=dim)


def index_add(x, dim, index, src, alpha=1):
    y = x.copy()
    rows = np.moveaxis(y, dim, 0)
    np.ravel_multi_index((index,), rows.shape[:1])
    added = np.moveaxis(src, dim, 0)
    np.stack([rows[index], added])
    np.add.at(rows, index, added * x.dtype.type(alpha))
    return y


def arange(start, end, step, dtype):
    """PyTorch refuses steps that lead away from the end, where NumPy gives nothing: none is drawn."""
    return np.arange(start, end, step, dtype=dtype)


def converted(x, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)  # imaginary parts are dropped in both
        return x.astype(dtype)


def copy(self, src):
    y = self.copy()
    np.copyto(y, converted(src, self.dtype))
    return y


ASKED = {
    "exp": function(np.exp), "log": function(np.log), "sin": function(np.sin), "cos": function(np.cos),
    "tanh": function(np.tanh), "sqrt": function(np.sqrt), "reciprocal": lambda x: 1 / inexact(x),
    "expm1": function(np.expm1), "exp2": function(np.exp2), "log1p": function(np.log1p),
    "log2": function(np.log2), "rsqrt": function(lambda x: 1 / np.sqrt(x)), "atan": function(np.arctan),
    "sinh": function(np.sinh), "cosh": function(np.cosh), "asinh": function(np.arcsinh),
    "sech_squared": function(lambda x: 1 / np.cosh(x) ** 2), "erf": by_element(math.erf),
    "erfc": by_element(math.erfc), "sigmoid": function(lambda x: 1 / (1 + np.exp(-x))),
    "square": unary(np.square), "relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "floor": unary(np.floor), "ceil": unary(np.ceil), "round": unary(np.round), "trunc": unary(np.trunc),
    "frac": lambda x: x - np.trunc(x), "fmod": modulo(np.fmod), "remainder": modulo(np.remainder),
    "atan2": float_pair(np.arctan2), "hypot": float_pair(np.hypot), "logaddexp": float_pair(np.logaddexp),
    "xlogy": float_pair(x_log_y), "addcmul": addcmul, "lerp": lerp, "softplus": softplus,
    "std": lambda x, **named: np.sqrt(var(x, **named)), "logsumexp": logsumexp, "cummax": cummax,
    "outer": outer, "dot": dot, "roll": roll, "detach": unary(np.copy), "contiguous": unary(np.copy),
    "neg": unary(np.negative), "abs": unary(np.abs), "sign": unary(np.sign), "isnan": unary(np.isnan),
    "logical_not": unary(np.logical_not), "conj": unary(np.conj), "conj_physical": unary(np.conj),
    "real": unary(np.real), "real_part": unary(np.real), "imag": unary(np.imag), "clone": unary(np.copy),
    "add": add, "sub": sub, "mul": pair(np.multiply), "div": div, "pow": power,
    "maximum": pair(np.maximum), "minimum": pair(np.minimum), "eq": pair(np.equal), "ne": pair(np.not_equal),
    "lt": pair(np.less), "le": pair(np.less_equal), "gt": pair(np.greater), "ge": pair(np.greater_equal),
    "logical_and": pair(np.logical_and), "logical_or": pair(np.logical_or), "where": where, "clamp": clamp,
    "complex": lambda real, imag: real + 1j * imag,
    "sum": reduction(np.sum), "prod": reduction(np.prod), "mean": reduction(np.mean),
    "var": var,
    "amax": choice(np.amax), "amin": choice(np.amin), "argmax": argmax,
    "cumsum": scan(np.cumsum), "cumprod": scan(np.cumprod), "softmax": softmax, "log_softmax": log_softmax,
    "sort": sort, "flip": flip, "mm": mm, "mv": mv, "bmm": bmm, "matmul": np.matmul,
    "tril": lambda x, diagonal=0: np.tril(x, diagonal), "triu": lambda x, diagonal=0: np.triu(x, diagonal),
    "diagonal": diagonal, "linalg_cholesky": cholesky, "cholesky": cholesky,
    "linalg_solve_triangular": solve_triangular,
    "reshape": reshape, "view": reshape, "expand": expand, "squeeze": squeeze, "unsqueeze": np.expand_dims,
    "permute": permute, "transpose": transpose, "select": select, "slice": slice_of,
    "select_scatter": replaced(select), "slice_scatter": replaced(slice_of),
    "diagonal_scatter": replaced(diagonal), "cat": cat, "stack": stack, "split": split,
    "split_with_sizes": split_with_sizes, "gather": gather, "scatter_add": scatter_add,
    "index_select": index_select, "index_add": index_add, "nonzero": np.argwhere,
    "zeros": np.zeros, "ones": np.ones, "full": np.full, "arange": arange,
    "eye": lambda n, m, dtype: np.eye(n, m, dtype=dtype),
    "zeros_like": unary(np.zeros_like), "ones_like": unary(np.ones_like), "full_like": np.full_like,
    "new_zeros": lambda x, size: np.zeros(size, x.dtype),
    "new_full": lambda x, size, value: np.full(size, value, x.dtype),
    "fill": np.full_like, "copy": copy, "to": converted,
}


def written(y, out):
    """NumPy broadcasts what it writes, PyTorch does not: np.stack asks for equal shapes. Neither writes to a
    dtype of a lower kind. Within a kind PyTorch writes to any, also signed to unsigned: none is drawn."""
    np.stack([np.zeros(y.shape), np.zeros(out.shape)])
    target = out.copy()
    np.copyto(target, y, casting="same_kind")
    return target


def ask(op, args, named):
    """(results, "") or (None, why it is refused)."""
    named = dict(named)
    out = named.pop("out", None)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        try:
            y = ASKED[op](*args, **named)
            y = y if out is None else written(np.asarray(y), out)
        except REFUSALS as e:
            return None, f"{type(e).__name__}: {e}"
    return [np.asarray(one) for one in (y if isinstance(y, list) else [y])], ""
