"""Calls of views, of joining, of indexing and of factories: the other half of numpy_drawn.py."""
import numpy as np

from numpy_drawn import ALL, BROADCAST, DIM, FLOATS, NUMBERS, REALS, TWICE, WHOLES


def joined(d):
    """For cat: equal sizes but along dim. Sizes [0] join with anything in PyTorch: none is drawn."""
    shape = d.shape(1, 3, empty=False)
    dim = d.dim(len(shape))
    at = dim % len(shape)
    shapes = [shape[:at] + (d.below(3) + (len(shape) == 1),) + shape[at + 1 :] for _ in range(1 + d.below(3))]
    if d.spoil == "no tensors":
        shapes = []
    elif d.spoil == "no dims":
        shapes, dim = [(), ()], 0
    elif d.spoil == "another rank":
        shapes.append((2,) + shape)
    elif d.spoil == "another size":
        shapes, dim = [(2, 3), (2, 4), (2, 3)][d.below(2) :], 0
    dtypes = d.dtypes(4, NUMBERS)
    return [[d.array(s, t) for s, t in zip(shapes, dtypes)]], {"dim": dim}


def stacked(d):
    shape = d.shape(0, 3)
    shapes = [shape] * (1 + d.below(3))
    if d.spoil == "no tensors":
        shapes = []
    elif d.spoil == "another size":
        shape = d.shape(1, 3)
        shapes = [shape, shape[:-1] + (shape[-1] + 1,)]
    elif d.spoil == "another rank":
        shapes = [shape, d.one((shape + (1,), (1,) + shape))]
    dtypes = d.dtypes(4, NUMBERS) if shape else [d.one(NUMBERS)] * 4
    return [[d.array(s, t) for s, t in zip(shapes, dtypes)]], {"dim": d.dim(len(shape) + 1)}


def resized(d):
    x = d.array(d.shape(), d.one(ALL))
    numbers, rest = [], x.size
    for _ in range(d.below(4)):
        n = d.one([k for k in range(1, rest + 1) if rest % k == 0]) if rest else d.below(4)
        numbers.append(n)
        rest = rest // n if n else rest
    numbers.append(rest if x.size else 0)
    if d.often() and numbers.count(0) == (x.size == 0) and x.size:
        numbers[d.below(len(numbers))] = -1
    if d.spoil == "another numel":
        numbers = [n for n in numbers if n > 0] + [x.size + 1 + d.below(2)]
    if d.spoil == "two -1":
        numbers = [-1, *[n for n in numbers if n > 0], -1]
    if d.spoil == "size < -1":
        numbers = [x.size, -2] if d.often() else [-2]
    if d.spoil == "-1 beside 0":
        x, numbers = np.zeros((0, 3), x.dtype), [0, -1]
    if d.spoil == "-1 that does not divide":
        numbers = [-1, x.size + 1] if x.size else [0, -1]
    return [x, numbers], {}


def expanded(d):
    whole = d.shape(1)
    x_shape = [1 if d.often(0.4) else s for s in whole[d.below(len(whole)) :]]
    size = [-1 if k >= len(whole) - len(x_shape) and d.often(0.3) else s for k, s in enumerate(whole)]
    if d.spoil == BROADCAST:
        x_shape[-1], size[-1] = 2, d.one((0, 1, 3))
    if d.spoil == "fewer dims":
        x_shape = [1] + list(whole)
    if d.spoil == "-1 for a new dim":
        size = [-1] + size
    if d.spoil == "size < -1":
        size[d.below(len(size))] = -2
    if d.spoil == "more elements than there are numbers":
        x_shape, size = [1, 1], d.one(([2**40, 2**40], [2**40, 0, 2**40, 1]))
    return [d.array(x_shape, d.one(ALL)), size], {}


def squeezed(d):
    x = d.array([s if d.often() else 1 for s in d.shape(2 if d.spoil == TWICE else 0)], d.one(ALL))
    return [x], {"dim": d.dims(x.ndim)} if d.spoil or d.often(0.7) else {}


def unsqueezed(d):
    x = d.array(d.shape(0, 3), d.one(ALL))
    return [x, d.dim(x.ndim + 1)], {}


def permuted(d):
    x = d.array(d.shape(2 if d.spoil == TWICE else 0), d.one(ALL))
    dims = d.random.sample(range(x.ndim), x.ndim)
    dims = [k - x.ndim if d.often(0.3) else k for k in dims]
    if d.spoil == TWICE:
        dims[0] = dims[1] % x.ndim - (x.ndim if d.often() else 0)
    elif d.spoil == "a dim too few":
        x = d.array((2, *x.shape), x.dtype)
    elif d.spoil in DIM:
        x = d.array(x.shape or (2,), x.dtype)
        dims = dims or [0]
        dims[d.below(len(dims))] = d.dim(x.ndim)
    return [x, dims], {}


def transposed(d):
    x = d.array(d.shape(), d.one(ALL))
    a, b = d.dim(x.ndim, spoils=False), d.dim(x.ndim)
    return [x, a, b] if d.often() else [x, b, a], {}


def bound_of(d, n):
    return d.one((None, d.random.randint(-n - 2, n + 2), d.one((-(2**63), 2**63 - 1, 0, n))))


def index_of(d, n):
    if d.spoil == "index = size":
        return d.one((n, n, n + 1, 2**63 - 1))
    if d.spoil == "index < -size":
        return d.one((-n - 1, -n - 1, -(2**63)))
    return d.random.randint(-n, n - 1)


def selected(d):
    x = d.array(() if d.spoil == "no dims" else d.shape(1, empty=False), d.one(ALL))
    dim = d.dim(x.ndim)
    return [x, dim, index_of(d, x.shape[dim] if -x.ndim <= dim < x.ndim else 1)], {}


def sliced(d):
    x = d.array(() if d.spoil == "no dims" else d.shape(1), d.one(ALL))
    dim = d.dim(x.ndim)
    n = x.shape[dim] if -x.ndim <= dim < x.ndim else 1
    step = 0 if d.spoil == "step 0" else d.one((1, 1, 2, 3, 2**63 - 1))
    return [x, dim], {"start": bound_of(d, n), "end": bound_of(d, n), "step": step}


def replacing(call, part):
    """A call of a view, with what replaces it: of the part's sizes, or of others."""

    def draw(d):
        (x, *rest), named = call(d)
        x = np.where(x > 0, 1, 2).astype("f8") if d.often() else x
        try:
            shape = part(x, *rest, **named).shape
        except (ValueError, IndexError, OverflowError):  # spoiled: any sizes will do
            shape = x.shape[1:]
        if d.spoil == "another size of src":
            longer = shape[:-1] + (shape[-1] + 1,) if shape else (1,)
            shape = d.one(((2, *shape), (1,) * (len(shape) + 1), longer))
        return [x, d.array(shape, x.dtype), *rest, *named.values()], {}

    return draw


def split(d):
    x = d.array(d.shape(1), d.one(ALL))
    if d.spoil in ("size 0", "size < 0"):
        x = d.array(d.shape(1, empty=False), "f8")
        return [x, 0 if d.spoil == "size 0" else -1 - d.below(3)], {"dim": d.below(x.ndim)}
    x = d.array((), "f8") if d.spoil == "no dims" else x
    return [x, d.one((1, 2, 3, 4, 2**62))], {"dim": d.dim(x.ndim)}


def split_with_sizes(d):
    x = d.array(() if d.spoil == "no dims" else d.shape(1), d.one(ALL))
    dim = d.dim(x.ndim)
    rest, sizes = x.shape[dim] if -x.ndim <= dim < x.ndim else 1, []
    while d.often(0.6):
        sizes.append(d.below(rest + 1))
        rest -= sizes[-1]
    sizes.append(rest)
    if d.spoil == "another sum":
        sizes[d.below(len(sizes))] += 1 + d.below(2)
    if d.spoil == "a part too few":
        x = d.array([s + 1 for s in x.shape], x.dtype)
    if d.spoil == "a negative part":
        sizes = [sizes[0] + 1, -1, *sizes[1:]]
    return [x, sizes], {"dim": dim}


def entries(d, shape, n):
    """An index of entries from the front, or one of them outside."""
    index = np.array([d.below(n) for _ in range(int(np.prod(shape)))], "i8").reshape(shape)
    wrong = {"index = size": d.one((n, n, 2**62)), "index < 0": d.one((-1, -n, -(2**63)))}.get(d.spoil)
    if wrong is not None:
        index.reshape(-1)[d.below(index.size)] = wrong
    return index


def gathered(d):
    x = d.array(d.shape(1, 3, empty=False), d.one(ALL))
    dim = d.dim(x.ndim)
    at = dim % x.ndim
    shape = [d.random.randint(1, s) if d.often(0.3) else s for s in x.shape]
    shape[at] = 1 + d.below(4)
    if not d.spoil and d.often(0.1):
        shape[at] = 0
    if d.spoil == "index of another rank":
        shape = d.one(([1] + shape, [1, *shape]))
    if d.spoil == "index larger than x":
        x, shape, dim, at = d.array((2, 3), x.dtype), d.one(([3, 2], [4, 1])), 1, 1
    return [x, dim, entries(d, shape, x.shape[at])], {}


def scattered(d):
    (x, dim, index), _ = gathered(d)
    x = x.astype(d.one(NUMBERS)) if x.dtype.kind == "b" else x
    shape = [s + d.below(2) for s in index.shape]
    if d.spoil == "src smaller than index":
        shape = list(index.shape)
        shape[d.below(len(shape))] -= 1
    return [x, dim, index, d.array(shape, x.dtype)], {}


def listed(d):
    x = d.array(d.shape(1, empty=False), d.one(ALL))
    dim = d.dim(x.ndim)
    return [x, dim, entries(d, () if d.often(0.1) else (1 + d.below(4),), x.shape[dim % x.ndim])], {}


def added_at(d):
    (x, dim, index), _ = listed(d)
    x = x.astype(d.one(NUMBERS)) if x.dtype.kind == "b" else x
    shape = list(x.shape)
    index = np.atleast_1d(index)
    shape[dim % x.ndim] = index.size
    if d.spoil == "another size of src":
        shape[d.below(len(shape))] += 1
    if d.spoil == "another rank of src":
        shape = [1] + shape
    return [x, dim, index, d.array(shape, x.dtype)], {"alpha": d.below(3)} if d.often(0.3) else {}


def sizes_of(d):
    size = list(d.shape())
    if d.spoil == "a negative size":
        size.insert(d.below(len(size) + 1), -1 - d.below(2))
    if not d.spoil and d.often(0.1):
        size = [0, 2**40]
    if d.spoil == "more elements than there are numbers":
        size = d.one(([2**40, 2**40], [2**40, 0, 2**40], [2**62, 4]))
    return size


def filled(d):
    dtype = np.dtype(d.one(FLOATS + WHOLES if d.spoil == "a complex number" else ALL))
    value = 1.5 - 2j if d.spoil == "a complex number" or dtype.kind == "c" else d.below(4) / 2
    return dtype, value


def full(d):
    dtype, value = filled(d)
    return [sizes_of(d), value], {"dtype": dtype}


def filled_like(d):
    dtype, value = filled(d)
    return [d.array(d.shape(), dtype), value], {}


def new_full(d):
    dtype, value = filled(d)
    return [d.array(d.shape(0, 2), dtype), sizes_of(d), value], {}


def progression(d):
    if d.often():
        start, step, dtype = d.random.randint(-5, 5), d.one((-3, -2, -1, 1, 2, 3)), np.dtype("i8")
        end = start + step * d.below(5) + d.below(abs(step)) * (1 if step > 0 else -1)
    else:
        start, step = d.random.randint(-9, 9) / 4, d.one((-1.5, -0.5, 0.25, 1.0, 2.5))
        end, dtype = start + step * d.below(5) + step / 4 * d.below(4), np.dtype(d.one(FLOATS))
    if d.spoil == "step 0":
        step *= 0
    if d.spoil == "an end that is no number":
        start, end, step, dtype = float(start), d.one((np.nan, np.inf)), float(abs(step)), np.dtype("f8")
    return [start, end, step], {"dtype": dtype}


def identity(d):
    n, m = d.below(5), d.below(5)
    if d.spoil:
        n, m = d.one(((-1, m), (n, -2)))
    return [n, m], {"dtype": np.dtype(d.one(ALL))}


def copied(d):
    src, self = d.broadcasting(2)
    self = np.broadcast_shapes(src, self) if d.spoil != BROADCAST else self
    if d.spoil == "src larger than self":
        self, src = (1, *self), (2, *self)
    return [d.array(self, d.one(REALS)), d.array(src, d.one(WHOLES))], {}


def converted(d):
    to = np.dtype(d.one(ALL + ("f2", "i1")))
    x = d.array(d.shape(), d.one(ALL))
    return [np.asarray(np.abs(x)) if to.kind == "u" and x.dtype.kind in "ifc" else x], {"dtype": to}


def part_selected(x, dim, index):
    return np.moveaxis(x, dim, 0)[index]


def part_sliced(x, dim, start, end, step):
    return np.moveaxis(np.moveaxis(x, dim, 0)[start:end:step], 0, dim)


def part_diagonal(x, offset, dim1, dim2):
    return np.diagonal(x, offset, dim1, dim2)
