#!/usr/bin/env python3
"""Writes verify/run/law_weights.inc: how much time `lamella verify` gives to each law beside the others.

usage: law_weights.py [--alone OLD.inc] RUN.json MUTATE.json [REAL.json ...] > verify/run/law_weights.inc

RUN is a report of `lamella verify --json` (what a case of a law costs), MUTATE one of `lamella mutate
--json`, REAL what tools/real_mutants.py keeps. A mutant that k laws notice gives each of them 1/k, a real one
more: there are fewer, and both sets have the same say as a whole. A law's weight is the root of that sum by
the time a case takes, in units of the median law, within 1/4 and 4. Behind it stand the operators of which
it notices mutants that no other law does: those pairs get twice the time. Where MUTATE is a sample it does
not tell who stands alone: --alone keeps the lists of OLD.
"""
import json
import re
import statistics
import sys
import textwrap

LEAST, MOST = 0.25, 4.0


def read(path):
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def operator_of(mutant):
    """The name that an id has in front of its formula, or behind what is done to a kernel or a row; none of
    the harness and of what others planted."""
    if mutant.get("group") in ("kernel", "dispatch"):
        return mutant["id"].rpartition(":")[2]
    return mutant["id"].partition(".")[0] if mutant.get("group") in ("rule", "batch", "composite") else None


def of_real(kept):
    """What is kept of each, or a report's: the laws alone."""
    return [m if isinstance(m, dict) else {"laws": m or []} for m in kept["mutants"].values()]


def alone_before(path):
    """What stands in a file that was written earlier, by law."""
    with open(path, encoding="utf-8") as stream:
        rows = re.findall(r'\{"(\w+)", [\d.]+(,[^}]*)?\}', stream.read())
    return {law: set("".join(re.findall(r'"([^"]*)"', words)).split()) for law, words in rows}


def row(law, weight, operators):
    lines = textwrap.wrap(" ".join(operators), 100)
    words = "".join(f'\n    "{line}{" " if k + 1 < len(lines) else ""}"' for k, line in enumerate(lines))
    return f'{{"{law}", {weight:.2f}{"," if words else ""}{words}}},'


def alone(mutants):
    """Operators by law."""
    found = {}
    for m in mutants:
        op = operator_of(m)
        if op and len(m["laws"]) == 1:
            found.setdefault(m["laws"][0]["law"], set()).add(op)
    return found


def main():
    words, before = sys.argv[1:], None
    if words[0] == "--alone":
        before, words = alone_before(words[1]), words[2:]
    run, mutate = read(words[0]), read(words[1])
    seconds, cases = {}, {}
    for cells in run["operators"].values():
        for law, cell in cells.items():
            seconds[law] = seconds.get(law, 0) + cell["seconds"]
            cases[law] = cases.get(law, 0) + cell["cases"] + cell["discards"]
    credit = dict.fromkeys(seconds, 0.0)
    noticed = [([k["law"] for k in m["laws"]], 1.0) for m in mutate["kills"]]
    real = [m.get("laws", []) for path in words[2:] for m in of_real(read(path))]
    real = [laws for laws in real if laws]
    noticed += [(laws, len(noticed) / len(real)) for laws in real]
    for laws, worth in noticed:
        for law in set(laws) & credit.keys():
            credit[law] += worth / len(laws)
    score = {law: ((credit[law] + 0.1) / (seconds[law] / max(cases[law], 1) + 1e-6)) ** 0.5 for law in credit}
    middle = statistics.median(score.values())
    pairs = alone(mutate["kills"]) if before is None else before
    print("// How sharp laws are, beside the median law: tools/law_weights.py wrote it.")
    print("// clang-format off")
    for law in sorted(score):
        weight = min(MOST, max(LEAST, score[law] / middle))
        print(row(law, weight, sorted(pairs.get(law, ()))))


if __name__ == "__main__":
    main()
