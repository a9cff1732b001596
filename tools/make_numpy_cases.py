#!/usr/bin/env python3
"""Makes the pack of calls that NumPy accepted, with its results, and of calls that it refused.

usage: make_numpy_cases.py OUT [--seed N] [--cases N]

OUT is proptests/data/numpy.tar.zst, which `lamella reference` reads; needs NumPy 2 and the zstd program. For
each operator N cases are drawn, half of them spoiled in one place; each says what was spoiled, and
in NumPy's words why it is refused.
The archive depends on the seed and on NumPy alone, whose version the files carry.
"""
import argparse
import io
import json
import os
import struct
import subprocess
import sys
import tarfile

import numpy as np

import numpy_drawn as n
import numpy_drawn_places as p
from numpy_asked import ask
from numpy_drawn import ALL, BROADCAST, COMPLEXES, DIM, FLOATS, NUMBERS, REALS, TWICE, Draw

LIMIT = 500 * 1000
FILE_DTYPES = {"?": "BOOL", "B": "U8", "b": "I8", "h": "I16", "i": "I32", "l": "I64", "e": "F16", "f": "F32",
               "d": "F64"}

SIZES, LARGE = BROADCAST, "more elements than there are numbers"
PICKED = [*DIM, "index = size", "index < 0"]
MATRIX = ["not square", "rank below 2", "half precision", "not positive definite", "a singular matrix"]

DRAWN = {
    **dict.fromkeys("exp log sin cos tanh sqrt".split(), (n.element_wise(REALS + FLOATS + ("?",)), [])),
    **dict.fromkeys("expm1 exp2 log1p log2 rsqrt atan sinh cosh asinh sech_squared erf erfc sigmoid".split(),
                    (n.element_wise(REALS + FLOATS + ("?",)), [])),
    **dict.fromkeys("relu floor ceil round trunc".split(), (n.element_wise(REALS), [])),
    "frac": (n.element_wise(FLOATS), []),
    "square": (n.element_wise(NUMBERS), []),
    **dict.fromkeys("detach contiguous".split(), (n.element_wise(ALL), [])),
    **dict.fromkeys("isnan logical_not clone real".split(), (n.element_wise(ALL), [])),
    **dict.fromkeys("zeros_like ones_like nonzero".split(), (n.element_wise(ALL), [])),
    **dict.fromkeys("conj conj_physical".split(), (n.element_wise(NUMBERS), [])),
    "reciprocal": (n.element_wise(FLOATS + COMPLEXES, apart_from_0=True), []),
    "sign": (n.element_wise(REALS, special=False), []),
    **dict.fromkeys(("imag", "real_part"), (n.element_wise(COMPLEXES), [])),
    "abs": (n.element_wise(NUMBERS), []),
    "neg": (n.negated, ["a bool"]),
    "add": (n.added, [SIZES]),
    "sub": (n.added, [SIZES, "bools"]),
    **dict.fromkeys("mul eq ne logical_and logical_or".split(), (n.pair(ALL), [SIZES])),
    # Order is defined for real numbers in PyTorch; NumPy orders complex ones, too: none is drawn.
    **dict.fromkeys("maximum minimum lt le gt ge".split(), (n.pair(REALS + ("?",)), [SIZES])),
    "div": (n.divided, [SIZES, "by 0", "a rounding that is none"]),
    "pow": (n.raised, [SIZES]),
    **dict.fromkeys("fmod remainder".split(), (n.remainder, [SIZES, "by 0"])),
    **dict.fromkeys("atan2 hypot logaddexp".split(), (n.pair(REALS), [SIZES])),
    "xlogy": (n.pair(REALS, special=False), [SIZES]),
    "addcmul": (n.accumulated, [SIZES]),
    "lerp": (n.interpolated, [SIZES]),
    "softplus": (n.softened, []),
    "where": (n.chosen, [SIZES]),
    "clamp": (n.clamped, [SIZES]),
    "complex": (n.complex_of, [SIZES]),
    **dict.fromkeys(("sum", "prod"), (n.reduced(ALL), [*DIM, TWICE])),
    "mean": (n.reduced(FLOATS + COMPLEXES), [*DIM, TWICE]),
    **dict.fromkeys(("var", "std"), (n.spread, [*DIM, TWICE])),
    "logsumexp": (n.summed_exponentials, [*DIM, TWICE]),
    "cummax": (n.along(REALS), DIM),
    **dict.fromkeys(("amax", "amin"), (n.extreme, [*DIM, TWICE, "no element to choose"])),
    "argmax": (n.index_of_largest, [*DIM, "no element to choose"]),
    **dict.fromkeys(("cumsum", "cumprod"), (n.along(ALL), DIM)),
    **dict.fromkeys(("softmax", "log_softmax"), (n.along(FLOATS), DIM)),
    "sort": (n.sorted_, DIM),
    "flip": (n.flipped, [*DIM, TWICE]),
    "roll": (n.rolled, [*DIM, "a shift too few"]),
    "outer": (n.product("i", "j"), ["rank"]),
    "dot": (n.product("i", "i"), ["inner sizes", "rank"]),
    "mm": (n.product("ij", "jk"), ["inner sizes", "rank"]),
    "mv": (n.product("ij", "j"), ["inner sizes", "rank"]),
    "bmm": (n.product("nij", "njk"), ["inner sizes", "rank", "another number of lanes", "a single lane"]),
    "matmul": (n.general_product, ["inner sizes", "no dims", SIZES]),
    **dict.fromkeys(("tril", "triu"), (n.triangle, ["rank below 2"])),
    "diagonal": (n.diagonal, [*DIM, TWICE, "rank below 2"]),
    **dict.fromkeys(("linalg_cholesky", "cholesky"), (n.hermitian, MATRIX)),
    "linalg_solve_triangular": (n.system, ["not square", "rank below 2", "another number of rows", SIZES]),
    **dict.fromkeys(("reshape", "view"), (p.resized, ["another numel", "two -1", "size < -1", "-1 beside 0",
                                                      "-1 that does not divide"])),
    "expand": (p.expanded, [SIZES, "fewer dims", "-1 for a new dim", "size < -1", LARGE]),
    "squeeze": (p.squeezed, [*DIM, TWICE]),
    "unsqueeze": (p.unsqueezed, DIM),
    "permute": (p.permuted, [*DIM, TWICE, "a dim too few"]),
    "transpose": (p.transposed, DIM),
    "select": (p.selected, [*DIM, "index = size", "index < -size", "no dims"]),
    "slice": (p.sliced, [*DIM, "step 0", "no dims"]),
    "select_scatter": (p.replacing(p.selected, p.part_selected),
                       [*DIM, "index = size", "index < -size", "no dims", "another size of src"]),
    "slice_scatter": (p.replacing(p.sliced, p.part_sliced),
                      [*DIM, "step 0", "no dims", "another size of src"]),
    "diagonal_scatter": (p.replacing(n.diagonal, p.part_diagonal),
                         [*DIM, TWICE, "rank below 2", "another size of src"]),
    "cat": (p.joined, [*DIM, "no tensors", "no dims", "another rank", "another size"]),
    "stack": (p.stacked, [*DIM, "no tensors", "another rank", "another size"]),
    "split": (p.split, [*DIM, "size 0", "size < 0", "no dims"]),
    "split_with_sizes": (p.split_with_sizes,
                         [*DIM, "another sum", "a part too few", "a negative part", "no dims"]),
    "gather": (p.gathered, [*PICKED, "index of another rank", "index larger than x"]),
    "scatter_add": (p.scattered, [*PICKED, "index of another rank", "index larger than x",
                                  "src smaller than index"]),
    "index_select": (p.listed, PICKED),
    "index_add": (p.added_at, [*PICKED, "another size of src", "another rank of src"]),
    **dict.fromkeys(("zeros", "ones"), (lambda d: ([p.sizes_of(d)], {"dtype": np.dtype(d.one(ALL))}),
                                        ["a negative size", LARGE])),
    "new_zeros": (lambda d: ([d.array((2,), d.one(ALL)), p.sizes_of(d)], {}), ["a negative size", LARGE]),
    "full": (p.full, ["a negative size", LARGE, "a complex number"]),
    "new_full": (p.new_full, ["a negative size", LARGE, "a complex number"]),
    **dict.fromkeys(("full_like", "fill"), (p.filled_like, ["a complex number"])),
    "arange": (p.progression, ["step 0", "an end that is no number"]),
    "eye": (p.identity, ["a negative size"]),
    "copy": (p.copied, [SIZES, "src larger than self"]),
    "to": (p.converted, []),
}


# Operators that are also asked to write into out=, one call in four.
WRITTEN = ("exp", "neg", "abs", "add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp", "sum",
           "prod", "mean", "cumsum", "tril", "matmul")
OUT_SPOILS = ("another size of out", "out of a lower kind")


def target(d, y):
    """A tensor to write y to: of y's sizes, and of its dtype or one of a higher kind."""
    options = {"b": ("?", "i8", "f4", "c8"), "c": ("c8", "c16"), "f": ("f4", "f8", "c16")}
    shape, dtypes = list(y.shape), options.get(y.dtype.kind, ("i4", "i8", "f4", "f8", "c16"))
    if y.dtype.char in "fF":  # what was computed in f32 is not held to the tolerance of f64
        dtypes = ("f4", "c8")[y.dtype.char == "F" :]
    if d.spoil == "another size of out":
        at = d.below(len(shape)) if shape else 0
        shape = [*shape[:at], 5 + d.below(2), *shape[at + 1 :]]
    if d.spoil == "out of a lower kind":
        dtypes = {"b": ("?",), "c": ("f8", "i8", "?"), "f": ("i8", "i4", "?")}.get(y.dtype.kind, ("?",))
    return d.array(shape, y.dtype if not d.spoil and d.often(0.3) else d.one(dtypes))


class File:
    """A .safetensors file of one operator's cases."""

    def __init__(self):
        self.cases, self.header, self.data = [], {}, b""

    def tensor(self, name, array):
        if array.dtype.kind == "c":
            name += "#complex"
            array = np.stack([array.real, array.imag], axis=-1)
        raw = np.ascontiguousarray(array).tobytes()
        self.header[name] = {"dtype": FILE_DTYPES[array.dtype.char], "shape": list(array.shape),
                             "data_offsets": [len(self.data), len(self.data) + len(raw)]}
        self.data += raw
        return name

    def argument(self, value):
        if isinstance(value, np.ndarray):
            return {"tensor": self.tensor(f"{len(self.cases)}.in{len(self.header)}", value)}
        if isinstance(value, list):
            return [self.argument(v) for v in value]
        if isinstance(value, np.dtype):
            return {"dtype": value.name}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, float) and not np.isfinite(value):
            return {"float": str(value)}
        return value

    def add(self, op, args, named, results, why, spoiled):
        case = {"op": op, "variant": "numpy", "args": [self.argument(a) for a in args],
                "kwargs": {k: self.argument(v) for k, v in named.items()}}
        if results is None:
            case |= {"error": True, "numpy": why[:100]}
        else:
            case["outputs"] = [self.tensor(f"{len(self.cases)}.out{k}", y) for k, y in enumerate(results)]
        if spoiled:
            case["spoiled"] = spoiled
        self.cases.append(case)

    def bytes(self):
        metadata = {"cases": json.dumps(self.cases), "numpy": np.__version__}
        text = json.dumps({"__metadata__": metadata, **self.header}).encode()
        return struct.pack("<Q", len(text)) + text + self.data


def call_of(op, d):
    """Arguments of a call. One that writes has a result to write: only `out` is spoiled in it."""
    draw, _ = DRAWN[op]
    if d.spoil in OUT_SPOILS or (op in WRITTEN and not d.spoil and d.often(0.25)):
        spoil, d.spoil = d.spoil, None
        args, named = draw(d)
        (y,), _ = ask(op, args, named)
        d.spoil = spoil
        return args, {**named, "out": target(d, y)}
    return draw(d)


def file_of(op, seed, count):
    spoils = [*DRAWN[op][1], *(OUT_SPOILS if op in WRITTEN else ())]
    file, seen = File(), dict.fromkeys(spoils, 0)
    for k in range(count if spoils else count // 2):
        spoil = spoils[k // 2 % len(spoils)] if k % 2 and spoils else None
        args, named = call_of(op, Draw(f"{seed} {op} {k}", spoil))
        results, why = ask(op, args, named)
        if results is None and not spoil:
            sys.exit(f"make_numpy_cases: NumPy refuses a good call of {op}: {args} {named}: {why}")
        if results is None:
            seen[spoil] += 1
        file.add(op, args, named, results, why, spoil)
    for spoil, times in seen.items():
        if not times:
            sys.exit(f"make_numpy_cases: NumPy never refuses {op} with {spoil}")
    return file.bytes(), sum(seen.values())


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=64)
    options = parser.parse_args()
    plain, refused = io.BytesIO(), 0
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for op in sorted(DRAWN):
            data, refusals = file_of(op, options.seed, options.cases)
            refused += refusals
            info = tarfile.TarInfo(f"{op}.safetensors")
            info.size, info.mode, info.mtime = len(data), 0o644, 0
            archive.addfile(info, io.BytesIO(data))
    zstd = ["zstd", "-19", "-cq"]
    packed = subprocess.run(zstd, input=plain.getvalue(), check=True, capture_output=True).stdout
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    with open(options.out, "wb") as stream:
        stream.write(packed)
    if len(packed) > LIMIT:
        print(f"more than {LIMIT} bytes: not to be committed")
    print(f"{options.out}: {len(DRAWN)} operators, {refused} refusals, {len(packed)} bytes")


if __name__ == "__main__":
    main()
