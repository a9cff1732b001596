#!/usr/bin/env python3
"""Checks kernels of one instruction set by a sample of laws, or the bits of all sets against each other; all
laws where thresholds are lowered (NOTE: [thresholds] in core/thresholds.h).

usage: isa_test.py laws PROGRAM SET | isa_test.py bits PROGRAM ISA_BITS [--show]

SET is scalar, avx2, avx512 or tiny. Exit status 77: this processor, or this build, does not have it.
"""
import os
import subprocess
import sys

SETS = ("scalar", "avx2", "avx512")
SECONDS, SEED = 20, 20261121
TINY, TINY_SECONDS = "tiny", 15  # all laws meet what lies beyond a threshold in small cases
# Values, bits of exact ones, layouts, edges, ranges, lanes: what a kernel of its own text can get wrong.
LAWS = (1, 2, 3, 10, 12, 14, 16, 17, 37, 99, 100, 107, 128, 151, 153)

LIBRARY = "vector functions of the C library: each set has its own, scalar the plain ones"
EXPONENTIALS = "sums of exponentials, which are the library's"
PRODUCTS = "the scalar text has no fused multiplication and addition"
# Operators whose text differs by instruction set, the dtypes of results in which that shows, and why. All
# others have equal bits. f16 and bf16 are computed in f32.
REAL, SINGLE = "f16 bf16 f32 f64", "f16 bf16 f32"
DIFFER = {
    "exp": (SINGLE, LIBRARY),
    "sin": (SINGLE, LIBRARY),
    "cos": (SINGLE, LIBRARY),
    "log": (REAL, LIBRARY),
    "tanh": (REAL, LIBRARY),
    "pow": (REAL, LIBRARY),
    "softmax": (SINGLE, EXPONENTIALS),
    "log_softmax": (REAL, EXPONENTIALS),
    "mm": (REAL, PRODUCTS),
    "bmm": (REAL, PRODUCTS),
    "mv": (REAL, PRODUCTS),
    "matmul": (REAL, PRODUCTS),
    "dot": (REAL, PRODUCTS),
}


def environment(name):
    return {**os.environ, "LAMELLA_ISA": name}


def has(program, name):
    """Whether LAMELLA_ISA=name is what runs: a processor without it takes what it has."""
    text = subprocess.run([program, "doctor"], env=environment(name), capture_output=True, text=True,
                          check=False).stdout
    return f" {name}; kernels use " in text


def check_laws(program, name):
    if not has(program, name):
        print(f"skipped: this processor does not have {name}")
        return 77
    laws = ["--law", ",".join(str(n) for n in LAWS)] if name != TINY else []
    seconds = TINY_SECONDS if name == TINY else SECONDS
    return subprocess.run([program, "verify", *laws, "--seed", str(SEED), "--time", str(seconds)],
                          env=environment(name), check=False).returncode


def digests(bits, name):
    """{(operator, dtype): (cases, of arguments, of results)}"""
    out = subprocess.run([bits], env=environment(name), capture_output=True, text=True, check=True).stdout
    return {tuple(line.split()[:2]): tuple(line.split()[2:]) for line in out.splitlines()}


def differences(found):
    """Pairs whose digests are not those of the first set, with the sets that say so."""
    base = found[SETS[0]]
    for pair in sorted(set().union(*found.values())):
        others = [name for name in found if found[name].get(pair) != base.get(pair)]
        if others:
            yield pair, others


def check_bits(program, bits, show):
    there = [name for name in SETS if has(program, name)]
    if len(there) < 2:
        print(f"skipped: this processor has {there} alone")
        return 77
    found = {name: digests(bits, name) for name in there}
    unknown = sorted(set(DIFFER) - {op for op, _ in found[SETS[0]]})
    wrong = [f"{op} is in the table of operators that differ, and is none" for op in unknown]
    allowed = 0
    for (op, dtype), others in differences(found):
        cases = [found[name].get((op, dtype)) for name in there]
        if None not in cases and len({case[1] for case in cases}) > 1:
            wrong.append(f"{op} {dtype}: its drawn arguments differ already, on {others}")
        elif op in DIFFER and dtype in DIFFER[op][0].split():
            allowed += 1
            if show:
                print(f"{op} {dtype} differs on {others}: {DIFFER[op][1]}")
        else:
            wrong.append(f"{op} {dtype}: {', '.join(others)} and {SETS[0]} have other bits")
    for line in wrong:
        print(line)
    print(f"{len(found[SETS[0]])} pairs of operator and dtype on {', '.join(there)}: {len(wrong)} differ, "
          f"{allowed} as their texts do")
    return 1 if wrong else 0


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "laws" and sys.argv[3] in (*SETS, TINY):
        return check_laws(sys.argv[2], sys.argv[3])
    if len(sys.argv) in (4, 5) and sys.argv[1] == "bits" and sys.argv[4:] in ([], ["--show"]):
        return check_bits(sys.argv[2], sys.argv[3], len(sys.argv) == 5)
    print(__doc__.split("\n\n")[1], file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
