#!/usr/bin/env python3
"""Writes kernels/cpu/polynomials.h: what the vector texts of elementary functions are computed with.

usage: fit_polynomials.py [--check]

A function is written in a form with few roundings, such as e^r = 1 + (r + r^2 q(r)). What is left, q,
becomes the polynomial whose greatest error is nearly the least of that degree, computed with 60 digits. The
comment in front of a list is the greatest error, of 400 points, that the function has with the list's
rounded numbers, all operations being exact. Numbers such as pi / 2 are cut into parts, the first of so few
bits that their products with small integers are exact. Nothing comes from another library.

--check writes nothing; it ends with 1 where the file is another one.
"""
import argparse
import math
import os
import struct
import sys
from decimal import Decimal as D
from decimal import getcontext

getcontext().prec = 60
PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "kernels/cpu/polynomials.h")
SMALL = D("1e-18")  # below it differences have no digits left
POINTS, NODES, STEPS = 400, 120, 40


def series(first, ratio):
    """first, times ratio(1), times ratio(2), ... added up."""
    total = term = first
    k = 0
    while abs(term) > D("1e-70"):
        k += 1
        term *= ratio(k)
        total += term
    return total


def sin(x):
    return series(x, lambda k: -x * x / (2 * k * (2 * k + 1)))


def cos(x):
    return series(D(1), lambda k: -x * x / (2 * k * (2 * k - 1)))


def artanh(s):
    return ((1 + s) / (1 - s)).ln() / 2


def arctan_of_inverse(n):
    total, power, k = D(0), D(1) / n, 1
    while power > D("1e-70"):
        total += power / k if k % 4 == 1 else -power / k
        power /= n * n
        k += 2
    return total


LN2, PI = D(2).ln(), 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)  # Machin's formula


def by_root(f):
    """A function of z, by one of its root."""
    return lambda z: f(z.sqrt())


def solved(rows):
    """x of A x = b, of rows [A | b]: elimination without exchanges, as A is positive definite."""
    n = len(rows)
    for i in range(n):
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [x - factor * y for x, y in zip(rows[j], rows[i])]
    x = [D(0)] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][j] * x[j] for j in range(i + 1, n))) / rows[i][i]
    return x


def fitted(q, low, high, count, weight):
    """`count` coefficients from the lowest, with nearly the least greatest weighted error of all polynomials:
    least squares, whose points weigh more and more where the error is great (Lawson)."""
    centre, half = (low + high) / 2, (high - low) / 2
    points = [centre + half * cos(PI * (2 * i + 1) / (2 * NODES)) for i in range(NODES)]
    points = [x for x in points if abs(x) > SMALL]
    values, weights = [q(x) for x in points], [weight(x) ** 2 for x in points]
    powers = [[x**k for k in range(2 * count - 1)] for x in points]
    shares = [D(1) / len(points)] * len(points)
    for _ in range(STEPS):
        each = [s * w for s, w in zip(shares, weights)]
        sums = [sum(e * p[k] for e, p in zip(each, powers)) for k in range(2 * count - 1)]
        right = [sum(e * p[k] * v for e, p, v in zip(each, powers, values)) for k in range(count)]
        c = solved([[sums[i + j] for j in range(count)] + [right[i]] for i in range(count)])
        errors = [abs(sum(a * x for a, x in zip(c, p)) - v) * w.sqrt()
                  for p, v, w in zip(powers, values, weights)]
        shares = [s * e for s, e in zip(shares, errors)]
        total = sum(shares)
        shares = [s / total for s in shares]
    return c


def rounded(x, bits=53):
    """To `bits` bits, ties to even: float() rounds a Decimal rightly."""
    if bits == 24:
        return struct.unpack("f", struct.pack("f", float(x)))[0]
    if bits == 53:
        return float(x)
    exponent = math.frexp(float(x))[1] - bits
    return math.ldexp(float(round(x / D(2) ** exponent)), exponent)


def value(p, x):
    total = D(0)
    for c in reversed(p):
        total = total * x + c
    return total


def error(p, q, low, high, weight):
    """log2 of the greatest error times its weight: that of the function, relative to the function."""
    points = [low + (high - low) * i / (POINTS - 1) for i in range(POINTS)]
    errors = [abs((value(p, x) - q(x)) * weight(x)) for x in points if abs(x) > SMALL]
    return float(max(errors).ln() / LN2)


ROOT2 = D(2).sqrt()
QUARTER = (PI / 2) ** 2 * D("1.0001")
EIGHTH = (PI / 4) ** 2 * D("1.0001")  # of a turn, squared; reductions leave a little more
HALF_LN2 = LN2 / 2 * D("1.0001")
GREATEST_S = ((ROOT2 - 1) / (ROOT2 + 1)) ** 2  # ((m - 1) / (m + 1))^2, sqrt(1/2) <= m <= sqrt(2)

EXP = (lambda r: (r.exp() - 1 - r) / r**2, lambda r: r**2 / r.exp(), "e^r = 1 + r + r^2 q(r)")
LOG = (lambda f: ((1 + f).ln() - f + f * f / 2) / f**3, lambda f: f**3 / (1 + f).ln(),
       "log(1 + f) = f - f^2 / 2 + f^3 q(f)")
ARTANH = (by_root(lambda s: (artanh(s) / s - 1) / s**2), lambda z: z, "artanh s = s + s^3 q(s^2)")
ARTANH_MORE = (by_root(lambda s: (3 * artanh(s) / s - 3 - s**2) / s**4), lambda z: z * z / 3,
               "3 artanh s = s (3 + s^2 + s^4 q(s^2))")
SIN = (by_root(lambda r: (sin(r) / r - 1) / r**2), by_root(lambda r: r**3 / sin(r)), "sin r = r + r^3 q(r^2)")
COS = (by_root(lambda r: (cos(r) - 1 + r**2 / 2) / r**4), by_root(lambda r: r**4 / cos(r)),
       "cos r = 1 - r^2 / 2 + r^4 q(r^2)")

POLYNOMIALS = [  # name, form, from, to, coefficients, bits
    ("exp_f32", EXP, -HALF_LN2, HALF_LN2, 5, 24),
    ("exp_f64", EXP, -HALF_LN2, HALF_LN2, 10, 53),
    ("exp_of_f32", EXP, -HALF_LN2, HALF_LN2, 5, 53),
    ("log_f32", LOG, 1 / ROOT2 - 1, ROOT2 - 1, 8, 24),
    ("log_f64", ARTANH, D(0), GREATEST_S, 7, 53),
    ("log_of_f32", ARTANH, D(0), GREATEST_S, 4, 53),
    ("log_more_f64", ARTANH_MORE, D(0), GREATEST_S, 8, 53),
    ("sin_f32", SIN, D(0), QUARTER, 4, 24),
    ("sin_f64", SIN, D(0), EIGHTH, 6, 53),
    ("cos_f64", COS, D(0), EIGHTH, 6, 53),
]
PARTS = [  # name, number, bits of each part, of what
    ("ln2_f32", LN2, [9, 24], "log 2: the first times 15 bits is exact"),
    ("ln2_f64", LN2, [41, 53], "log 2: the first times 12 bits is exact"),
    ("pi_f32", PI, [16, 16, 24], "pi: the first two times 8 bits are exact"),
    ("pi_of_f32", PI, [33, 53], "pi: the first times 20 bits is exact"),
    ("half_pi_f64", PI / 2, [33, 33, 33, 53], "pi / 2: the first three times 20 bits are exact"),
    ("two_thirds_log2_e", 2 / (3 * LN2), [26, 53], "2 / (3 log 2)"),
]


def list_of(name, numbers, bits, comment):
    suffix, scalar = ("f", "float") if bits == 24 else ("", "double")
    texts = [float(x).hex().replace("0000000p", "p" if bits == 24 else "0000000p") + suffix for x in numbers]
    lines, line = [], "   "
    for text in [t + "," for t in texts[:-1]] + texts[-1:]:
        if len(line) + 1 + len(text) > 108:
            lines.append(line)
            line = "   "
        line += " " + text
    lines.append(line)
    return [f"/// {comment}", f"inline constexpr {scalar} {name}[] = {{", *lines, "};"]


def written():
    out = ["// Polynomials of the elementary functions, and numbers in parts.",
           "// generated by tools/fit_polynomials.py, which says how; do not edit.", "#pragma once", "",
           "namespace lamella::kernels::polynomials {", "", "// clang-format off"]
    for name, (q, weight, form), low, high, count, bits in POLYNOMIALS:
        p = [rounded(c, bits) for c in fitted(q, low, high, count, weight)]
        of = error([D(c) for c in p], q, low, high, weight)
        out += list_of(name, p, bits, f"{form}, right to 2^{of:.1f}")
    for name, number, sizes, what in PARTS:
        parts = []
        for bits in sizes:
            parts.append(rounded(number - sum(map(D, parts)), bits))
        out += list_of(name, parts, sizes[-1], what)
    return "\n".join(out + ["// clang-format on", "", "}  // namespace lamella::kernels::polynomials", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check, text = parser.parse_args().check, written()
    if not check:
        with open(PATH, "w", encoding="utf-8") as stream:
            stream.write(text)
        return 0
    with open(PATH, encoding="utf-8") as stream:
        same = stream.read() == text
    print("polynomials: " + ("current" if same else f"{PATH} is not what tools/fit_polynomials.py writes"))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
