#!/usr/bin/env python3
"""What a check costs, and where: instructions a case of each law by valgrind, in groups of functions.

usage: law_costs.py [--cases N] PROGRAM LAW...   prints a Markdown table; a law takes about 15 s

With --cases, so many cases of each operator, the same ones on any machine. Without, what fits into 12 s: on a
machine with other work those are few, and mostly the first of each operator, the largest.
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
                r"|store\(|store_all|store_integer|_samples\(|two_tensors"
                r"|drawn::|choices_in|series_of|scatter<"),
    ("harness", r"lamella::verify"),
    ("kernels", r"lamella::kernels"),
    ("operators", r"lamella::ops|make_plan|call_boxed|BoxedArgs|canonical"),
    ("dispatch, transforms", r"lamella::"),
]


def instructions_in(path):
    """What a file of callgrind has counted in all."""
    with open(path, encoding="utf-8") as stream:
        return next((int(line.split()[1]) for line in stream if line.startswith("totals:")), 0)


def of_busiest_process(out):
    """The process that checks; the first one asks every law whom it is about, and runs no case. Their ids say
    nothing: they begin anew where there are no more."""
    return max(glob.glob(out + ".*"), key=instructions_in)


def counted(program, law, folder, span):
    out = os.path.join(folder, law)
    # Cases alone: neither what a process does before the first one, nor what it tells the first process.
    said = subprocess.run(["valgrind", "--tool=callgrind", "--trace-children=yes",
                           "--toggle-collect=lamella::verify::Worker::work(*",
                           f"--callgrind-out-file={out}.%p", program, "verify", "--law", law,
                           "--processes", "1", *span, "--seed", "1"],
                          capture_output=True, text=True)
    checks = re.search(r"(\d+) checks in", said.stdout)
    if not checks:
        sys.exit(f"law_costs: {law}: {said.stdout}{said.stderr}")
    lines = subprocess.run(["callgrind_annotate", "--threshold=100", of_busiest_process(out)],
                           capture_output=True, text=True, check=True).stdout.splitlines()
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


def main(span, program, *laws):
    names = [name for name, _ in GROUPS if name != "start-up"] + ["rest"]
    print("| law | instructions a case | " + " | ".join(names) + " |")
    print("| --- |" + " --- |" * (len(names) + 1))
    with tempfile.TemporaryDirectory() as folder:
        for law in laws:
            checks, lines = counted(program, law, folder, span)
            sums = grouped(lines)
            whole = sum(v for name, v in sums.items() if name != "start-up")
            shares = " | ".join(f"{100 * sums[name] / whole:.0f} %" for name in names)
            print(f"| {law} | {whole / checks:,.0f} | {shares} |", flush=True)


if __name__ == "__main__":
    words, span = sys.argv[1:], ["--time", "12"]
    if words[:1] == ["--cases"]:
        span, words = words[:2], words[2:]
    if len(words) < 2:
        sys.exit(__doc__)
    main(span, *words)
