#!/usr/bin/env python3
"""Writes verify/run/law_weights.inc: how much time `lamella verify` gives to each law beside the others.

usage: law_weights.py RUN.json MUTATE.json [REAL.json ...] > verify/run/law_weights.inc

RUN is a report of `lamella verify --json` (what a case of a law costs), MUTATE one of `lamella mutate
--json`, REAL what tools/real_mutants.py keeps. A mutant that k laws notice gives each of them 1/k, a real one
five times that: there are fewer, and they are what is looked for. A law's weight is the root of that sum by
the time a case takes, in units of the median law, within 1/4 and 4.
"""
import json
import statistics
import sys

REAL, LEAST, MOST = 5.0, 0.25, 4.0


def read(path):
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def main():
    run, mutate = read(sys.argv[1]), read(sys.argv[2])
    seconds, cases = {}, {}
    for cells in run["operators"].values():
        for law, cell in cells.items():
            seconds[law] = seconds.get(law, 0) + cell["seconds"]
            cases[law] = cases.get(law, 0) + cell["cases"] + cell["discards"]
    credit = dict.fromkeys(seconds, 0.0)
    noticed = [([k["law"] for k in m["laws"]], 1.0) for m in mutate["kills"]]
    for path in sys.argv[3:]:
        noticed += [(m.get("laws", []), REAL) for m in read(path)["mutants"].values()]
    for laws, worth in noticed:
        for law in set(laws) & credit.keys():
            credit[law] += worth / len(laws)
    score = {law: ((credit[law] + 0.1) / (seconds[law] / max(cases[law], 1) + 1e-6)) ** 0.5 for law in credit}
    middle = statistics.median(score.values())
    print("// How sharp laws are, beside the median law: tools/law_weights.py wrote it.")
    for law in sorted(score):
        print(f'{{"{law}", {min(MOST, max(LEAST, score[law] / middle)):.2f}}},')


if __name__ == "__main__":
    main()
