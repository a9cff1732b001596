#!/usr/bin/env python3
"""Writes mutate/law_order.inc: which laws are asked first about a bug of each group of mutants.

usage: law_order.py MUTATE.json > mutate/law_order.inc

MUTATE is a report of `lamella mutate --json` without --first: which laws noticed each mutant, and with which
of their cases. The next law is the one that notices most of what those before it are likely to have passed
by: one that noticed with its n-th case notices with one in n. Laws that notice hardly anything of the rest
are left out.
"""
import json
import sys


def order_of(mutants):
    """Laws, the next one always that which is most likely to notice what is left."""
    left = [1.0] * len(mutants)
    chances = {}
    for index, mutant in enumerate(mutants):
        for kill in mutant["laws"]:
            chances.setdefault(kill["law"], {})[index] = 1 / max(kill["cases"], 1)  # 0: it ended the process
    order = []
    while chances:
        gains = {law: sum(left[i] * p for i, p in found.items()) for law, found in chances.items()}
        best = max(sorted(gains), key=gains.get)
        if gains[best] < 1e-3 * len(mutants):
            break
        for index, p in chances.pop(best).items():
            left[index] *= 1 - p
        order.append(best)
    return order


def main():
    with open(sys.argv[1], encoding="utf-8") as stream:
        kills = [m for m in json.load(stream)["kills"] if m["laws"]]
    print("// Which laws are asked first about a bug of each group: tools/law_order.py wrote it.")
    for group in sorted({m["group"] for m in kills} - {"harness"}):
        for law in order_of([m for m in kills if m["group"] == group]):
            print(f'{{"{group}", "{law}"}},')


if __name__ == "__main__":
    main()
