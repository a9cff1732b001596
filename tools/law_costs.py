#!/usr/bin/env python3
"""What a check costs, and where: instructions a case of each law by valgrind, in groups of functions.

usage: law_costs.py PROGRAM LAW...   prints a Markdown table; a law takes about 15 s
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

# The first group whose pattern is found in "file:function [object]" gets the function's own instructions.
GROUPS = [
    ("f128", r"libquadmath|__\w+tf[23x]?\w*$|__\w+tf\d? \["),
    ("memory", r"malloc|:free|operator new|operator delete|memcpy|memset|memmove"),
    ("start-up", r"dl-|rtld|ld-linux|install_operators|OpTable|parse_schema|Coverage::text|strcmp"),
    ("drawing", r"Draw::|Case::|choices_of|bell\(|verify::\(anonymous namespace\)::mix|draw_|integer_value"
                r"|store\(|store_integer|_samples\(|two_tensors"),
    ("harness", r"lamella::verify"),
    ("kernels", r"lamella::kernels"),
    ("operators", r"lamella::ops|make_plan|call_boxed|BoxedArgs|canonical"),
    ("dispatch, transforms", r"lamella::"),
]


def counted(program, law, folder):
    out = os.path.join(folder, law)
    said = subprocess.run(["valgrind", "--tool=callgrind", "--trace-children=yes",
                           f"--callgrind-out-file={out}.%p", program, "verify", "--law", law,
                           "--processes", "1", "--time", "12", "--seed", "1"],
                          capture_output=True, text=True)
    checks = re.search(r"(\d+) checks in", said.stdout)
    if not checks:
        sys.exit(f"law_costs: {law}: {said.stdout}{said.stderr}")
    # The process that checks is the last one started; the first one asks every law whom it is about.
    worker = max(glob.glob(out + ".*"), key=lambda path: int(path.rsplit(".", 1)[1]))
    lines = subprocess.run(["callgrind_annotate", "--threshold=100", worker], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return int(checks.group(1)), lines


def grouped(lines):
    sums = {name: 0 for name, _ in GROUPS} | {"rest": 0}
    for line in lines:
        found = re.match(r"\s*([\d,]+) \([ \d.]+%\)\s+(\S.*:.*)", line)
        if not found:
            continue
        group = next((name for name, pattern in GROUPS if re.search(pattern, found.group(2))), "rest")
        sums[group] += int(found.group(1).replace(",", ""))
    return sums


def main(program, *laws):
    names = [name for name, _ in GROUPS if name != "start-up"] + ["rest"]
    print("| law | instructions a case | " + " | ".join(names) + " |")
    print("| --- |" + " --- |" * (len(names) + 1))
    with tempfile.TemporaryDirectory() as folder:
        for law in laws:
            checks, lines = counted(program, law, folder)
            sums = grouped(lines)
            whole = sum(v for name, v in sums.items() if name != "start-up")
            shares = " | ".join(f"{100 * sums[name] / whole:.0f} %" for name in names)
            print(f"| {law} | {whole / checks:,.0f} | {shares} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
