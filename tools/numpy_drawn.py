"""Calls of the library's operators, drawn with a seed: good ones, and ones that are spoiled in one place.

A function draws the arguments of a family of operators; make_numpy_cases.py has the table of them. A good
call is one that NumPy must accept; whether a spoiled one is refused is for NumPy to say, not for this file.
"""
import random

import numpy as np

FLOATS, COMPLEXES, WHOLES = ("f8", "f8", "f4"), ("c16", "c8"), ("i8", "i8", "i4", "u1", "i2")
NUMBERS = FLOATS + COMPLEXES + WHOLES
REALS = FLOATS + WHOLES
ALL = NUMBERS + ("?",)
SPECIAL = (np.nan, np.inf, -np.inf, -0.0)


class Draw:
    """One call: `spoil` is the name of what is to be wrong in it, or None."""

    def __init__(self, seed, spoil):
        self.random, self.spoil = random.Random(seed), spoil

    def below(self, n):
        return self.random.randrange(n)

    def one(self, options):
        return self.random.choice(options)

    def often(self, part=0.5):
        return self.random.random() < part

    def shape(self, least=0, most=4, empty=True):
        if most == 4 and self.often(0.04):  # more dims than a header holds
            return tuple(self.one((1, 1, 2)) for _ in range(self.random.randint(5, 8)))
        sizes = (1, 2, 3, 2, 3, 4, 1, 0) if empty and self.often(0.3) else (1, 2, 3, 2, 4)
        return tuple(self.one(sizes) for _ in range(self.random.randint(least, most)))

    def array(self, shape, dtype, special=False, apart_from_0=False):
        dtype = np.dtype(dtype)
        n = int(np.prod(shape, dtype=np.int64))
        if dtype.kind == "b":
            values = [self.often() for _ in range(n)]
        elif dtype.kind in "iu":
            low = (0 if dtype.kind == "u" else -4) + (5 if apart_from_0 else 0)
            values = [self.random.randint(low, 4 + (5 if apart_from_0 else 0)) for _ in range(n)]
        else:
            values = [self.random.randint(-8, 8) / 4 for _ in range(n)]
            if dtype.kind == "c":
                values = [complex(v, self.random.randint(-8, 8) / 4) for v in values]
            if apart_from_0:
                values = [v or 1.5 for v in values]
            if special and dtype.kind == "f":
                values = [self.one(SPECIAL) if self.often(0.1) else v for v in values]
        return np.array(values, dtype).reshape(shape)

    def dim(self, rank, spoils=True):
        """A dim of a tensor of that rank; out of range, mostly by one, when that is to be spoiled.

        -2^31 is drawn nowhere: several of NumPy's functions have it for "no axis" and accept it.
        """
        rank = max(rank, 1)
        if spoils and self.spoil == "dim = ndim":
            return self.one((rank, rank, rank, 64, 2**31, 2**63 - 1))
        if spoils and self.spoil == "dim < -ndim":
            return self.one((-rank - 1, -rank - 1, -rank - 1, -65, -(2**31) - 1, -(2**63)))
        return self.random.randint(-rank, rank - 1)

    def dims(self, rank, least=0):
        """Different dims, counted from either end."""
        some = self.random.sample(range(rank), self.random.randint(min(least, rank), rank))
        some = [d - rank if self.often() else d for d in some]
        if self.spoil in ("dim = ndim", "dim < -ndim"):
            some.insert(self.below(len(some) + 1), self.dim(rank))
        if self.spoil == "a dim twice":
            d = self.below(max(rank, 1))
            some = [d, d - max(rank, 1)]
        return some

    def broadcasting(self, count):
        """Shapes that broadcast, or two sizes above 1 that do not agree."""
        whole = self.shape(1 if self.spoil else 0)
        shapes = []
        for _ in range(count):
            of = whole[self.below(len(whole) + 1) :] if self.often(0.4) else whole
            shapes.append(tuple(1 if self.often(0.25) else s for s in of))
        if self.spoil == "sizes that do not broadcast":
            at, (a, b) = self.below(len(whole)), self.random.sample(range(count), 2)
            for which, size in ((a, 3), (b, self.one((2, 4, 0)))):
                shapes[which] = whole[:at] + (size,) + whole[at + 1 :]
        return shapes

    def dtypes(self, count, options):
        """Equal ones mostly; tensors without dims would promote otherwise than NumPy's."""
        return [self.one(options)] * count if self.often(0.7) else [self.one(options) for _ in range(count)]

    def operands(self, count, options=NUMBERS, special=True, apart_from_0=False):
        shapes = self.broadcasting(count)
        dtypes = self.dtypes(count, options)
        if any(len(s) == 0 for s in shapes):
            dtypes = dtypes[:1] * count
        return [self.array(s, t, special, apart_from_0) for s, t in zip(shapes, dtypes)]


BROADCAST, DIM, TWICE = "sizes that do not broadcast", ["dim = ndim", "dim < -ndim"], "a dim twice"


def element_wise(options, special=True, apart_from_0=False):
    return lambda d: ([d.array(d.shape(), d.one(options), special, apart_from_0)], {})


def negated(d):
    return [d.array(d.shape(), "?" if d.spoil else d.one(NUMBERS), True)], {}


def pair(options, special=True, apart_from_0=False):
    return lambda d: (d.operands(2, options, special, apart_from_0), {})


def added(d):
    options = ("?",) if d.spoil == "bools" else NUMBERS
    a, b = d.operands(2, options) if d.spoil != "bools" else [d.array(d.shape(), "?")] * 2
    return [a, b], {"alpha": d.below(4)} if d.often(0.3) and d.spoil != "bools" else {}


def divided(d):
    if d.spoil == "by 0":
        a, b = d.operands(2, ("i8",), apart_from_0=True)
        mode = d.one(("floor", "trunc"))
        return [a.reshape(-1)[:1], np.append(b.reshape(-1)[:2], 0)], {"rounding_mode": mode}
    if d.spoil == "a rounding that is none" or d.often(0.4):
        mode = "round" if d.spoil == "a rounding that is none" else d.one(("floor", "trunc"))
        return d.operands(2, REALS, apart_from_0=True), {"rounding_mode": mode}
    return d.operands(2, NUMBERS, apart_from_0=True), {}


def raised(d):
    a, b = d.operands(2, d.one((FLOATS, COMPLEXES, WHOLES)), apart_from_0=d.often())
    if a.dtype.kind in "c" or b.dtype.kind == "c":
        a = np.where(a == 0, a.dtype.type(1.5), a)
    if b.dtype.kind in "iu":
        b = np.asarray(np.abs(b) % 5)
    return [a, b], {}


def chosen(d):
    x, condition, y = d.operands(3)
    return [x, np.asarray(condition.real > 0), y], {}


def clamped(d):
    x, low, high = d.operands(3, FLOATS if d.often() else WHOLES)
    which = d.below(3)
    return [x], {k: v for k, v in (("min", low), ("max", high)) if k != ("max", "min", "")[which]}


def remainder(d):
    if d.spoil == "by 0":
        a, b = d.operands(2, ("i8",), apart_from_0=True)
        return [a.reshape(-1)[:1], np.append(b.reshape(-1)[:2], 0)], {}
    return d.operands(2, REALS, apart_from_0=True), {}


def accumulated(d):
    return d.operands(3, d.one((FLOATS, COMPLEXES))), {"value": d.below(4)} if d.often() else {}


def interpolated(d):
    return d.operands(3, FLOATS, special=False), {}


def softened(d):
    x = d.array(d.shape(), d.one(FLOATS), True)
    return [x], {"beta": d.one((1, 2, 4)), "threshold": d.one((1, 20))} if d.often() else {}


def complex_of(d):
    a, b = d.operands(2, (d.one(FLOATS),), special=False)
    return [a, b], {}


def reduced(options, special=False):
    def draw(d):
        x = d.array(d.shape(2 if d.spoil == TWICE else 0), d.one(options), special)
        named = {}
        if d.spoil or d.often(0.8):
            named["dim"] = d.dims(x.ndim)
        if d.often():
            named["keepdim"] = d.often()
        return [x], named

    return draw


def spread(d):
    """NumPy divides by 0 where this library says that there are no degrees of freedom: none is drawn."""
    (x,), named = reduced(FLOATS + COMPLEXES)(d)
    fewest = min(x.shape, default=1)
    options = [0, 0.5, *(c for c in (1, 2) if c < fewest)]
    if 1 not in options or d.often():
        named["correction"] = d.one(options)
    return [x], named


def nothing_to_choose(d, rank):
    """Sizes with a 0, and a dim which has it."""
    shape = list(d.shape(rank, 3, empty=False))
    at = d.below(len(shape))
    shape[at] = 0
    return tuple(shape), at


def extreme(d):
    if d.spoil == "no element to choose":
        shape, at = nothing_to_choose(d, 1)
        x = np.zeros(shape, d.one(REALS))
        return [x], d.one(({}, {"dim": [at]}, {"dim": [at - x.ndim], "keepdim": True}))
    x = d.array(d.shape(2 if d.spoil == TWICE else 0, empty=False), d.one(REALS + ("?",)), True)
    if not d.spoil and d.often(0.2):  # a size 0 beside the dims that are reduced
        return [np.zeros((0, 3), x.dtype)], {"dim": [1]}
    return [x], {"dim": d.dims(x.ndim), "keepdim": d.often()} if d.spoil or d.often(0.8) else {}


def index_of_largest(d):
    if d.spoil == "no element to choose":
        shape, at = nothing_to_choose(d, 1)
        return [np.zeros(shape, d.one(REALS))], d.one(({}, {"dim": at}))
    x = d.array(d.shape(empty=False), d.one(REALS), True)
    if not d.spoil and d.often(0.2):
        return [np.zeros((0, 3), x.dtype)], {"dim": 1}
    return [x], {"dim": d.dim(x.ndim), "keepdim": d.often()} if d.spoil or d.often(0.8) else {}


def along(options, special=False):
    def draw(d):
        x = d.array(d.shape(), d.one(options), special)
        return [x, d.dim(x.ndim)], {}

    return draw


def summed_exponentials(d):
    (x,), named = reduced(FLOATS)(d)
    return [x, named.pop("dim", [])], named


def rolled(d):
    x = d.array(d.shape(1, 3), d.one(ALL), True)
    dims = d.dims(x.ndim, least=1)
    shifts = [d.random.randint(-4, 4) for _ in dims]
    return [x, shifts[1:] if d.spoil == "a shift too few" else shifts, dims], {}


def sorted_(d):
    x = d.array(d.shape(), d.one(REALS), True)
    return [x], {"dim": d.dim(x.ndim), "descending": d.often(), "stable": True}


def flipped(d):
    x = d.array(d.shape(2 if d.spoil == TWICE else 0), d.one(ALL), True)
    return [x, d.dims(x.ndim)], {}


def product(left, right, least=None):
    """Operands of given ranks, "i" the inner size: one further in one of them when that is to be spoiled."""

    def draw(d):
        sizes = {letter: d.one((1, 2, 3, 4, 0 if d.often(0.1) else 5)) for letter in "nijk"}
        shapes = [[sizes[letter] for letter in side] for side in (left, right)]
        if d.spoil == "inner sizes":
            shapes[0][-1] += 1 + d.below(2)
        if d.spoil == "another number of lanes":
            shapes[d.below(2)][0] += 1
        if d.spoil == "a single lane":
            shapes[0][0], shapes[1][0] = d.one(((1, 3), (3, 1)))
        if d.spoil == "rank":
            which = d.below(2)
            shapes[which] = d.one(([2] + shapes[which], shapes[which][1:]))
        t = d.one(("f8", "f8", "f4", "c16", "i8"))
        return [d.array(s, t) for s in shapes], {}

    return draw


def general_product(d):
    inner, t = d.one((1, 2, 3, 4)), d.one(("f8", "f8", "f4", "c16", "i8"))
    batches = d.one((((), ()), ((2,), ()), ((), (3,)), ((2, 1), (3,)), ((1,), (2,)), ((0,), (0,))))
    if d.spoil == BROADCAST:
        batches = d.one((((2,), (3,)), ((2, 3), (2, 2)), ((4, 1), (3, 1)), ((0,), (2,))))
    a, b = [*batches[0], d.one((1, 2, 3)), inner], [*batches[1], inner, d.one((1, 2, 4))]
    if d.spoil != BROADCAST and d.often(0.3):
        a, b = d.one(((a[-1:], b), (a, b[-2:-1]), (a[-1:], b[-2:-1])))
    if d.spoil == "inner sizes":
        a[-1] += 1 + d.below(2)
    if d.spoil == "no dims":
        a, b = d.one(((a, []), ([], b), ([], [])))
    return [d.array(a, t), d.array(b, t)], {}


def triangle(d):
    x = d.array(() if d.spoil else d.shape(2), d.one(ALL), True)
    return [x], {"diagonal": d.one((d.random.randint(-5, 5), d.random.randint(-5, 5), 2**62, -(2**62)))}


def two_dims(d, rank):
    if d.spoil == TWICE:
        at = d.below(max(rank, 1))
        return at, d.one((at, at - max(rank, 1)))
    a, b = d.random.sample(range(rank), 2) if rank > 1 else (0, 1)
    a, b = (a - rank if d.often() else a), (b - rank if d.often() else b)
    if d.spoil in DIM:
        a, b = d.one(((d.dim(rank), b), (a, d.dim(rank))))
    return a, b


def diagonal(d):
    x = d.array(d.shape(0, 1) if d.spoil == "rank below 2" else d.shape(2), d.one(ALL))
    a, b = two_dims(d, x.ndim)
    offset = d.one((d.random.randint(-4, 4), d.random.randint(-2, 2), 2**31 - 1, 1 - 2**31))
    return [x], {"offset": offset, "dim1": a, "dim2": b}


def hermitian(d):
    n = d.below(4) + (1 if d.spoil else 0)
    batch = d.shape(0, 2, empty=not d.spoil)
    t = "f2" if d.spoil == "half precision" else d.one(("f8", "f8", "f4", "c16"))
    if d.spoil == "a singular matrix":  # whole numbers and pivots of 1: no rounding decides
        x = np.zeros((*batch, n, n), t)
        x[...] = np.diag([0 if k == n - 1 else 1 for k in range(n)])
        return [x], {"upper": d.often()}
    low = d.array((*batch, n, n), t)
    x = low @ np.conj(np.swapaxes(low, -1, -2)) + np.eye(n, dtype=t)
    if d.spoil == "not positive definite":
        x.reshape(-1, n * n)[-1, d.below(n) * (n + 1)] = -1
    if d.spoil == "not square":
        x = d.one((x[..., :-1], np.concatenate([x, x[..., :1]], axis=-1)))
    if d.spoil == "rank below 2":
        x = x.reshape(-1)[: n + 1]
    return [x.astype(t)], {"upper": d.often()}


def system(d):
    n, k = 1 + d.below(4), d.below(4)
    batches = d.broadcasting(2) if d.spoil == BROADCAST else d.one(([(), ()], [(2,), ()], [(2, 1), (3,)]))
    left, t = d.often(), d.one(("f8", "f8", "f4", "c16"))
    a = d.array((*batches[0][-2:], n, n), t) + 4 * np.eye(n, dtype=t)
    rows = n + (1 + d.below(2) if d.spoil == "another number of rows" else 0)
    b = d.array((*batches[1][-2:], rows, k) if left else (*batches[1][-2:], k, rows), t)
    if d.spoil == "not square":
        a = np.concatenate([a, a[..., :1]], axis=-1)
    if d.spoil == "rank below 2":
        a = a.reshape(-1)[:n]
    return [a, b], {"upper": d.often(), "left": left, "unitriangular": d.often(0.3)}


