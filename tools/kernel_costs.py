#!/usr/bin/env python3
"""Measures what kCosts in core/thresholds.h says: picoseconds an element, one thread, least of all rounds.

usage: kernel_costs.py PROGRAM

Of 2048 x 2048 f32 unless a row says otherwise; `lamella bench` measures. Prints one line for each measurement
beside the cost that it belongs to.
"""
import json
import os
import subprocess
import sys

SQUARE = 2048 * 2048
# Cost, what `lamella bench` is asked, and how many elements (or products) a call has.
ROWS = (
    ("line", ["add", "exp", "tanh", "sin", "log"], SQUARE),
    ("strided", ["add", "--layout", "broadcast,column,transposed"], SQUARE),
    ("scalar_math", ["exp", "log", "--dtype", "c64"], SQUARE),
    ("moved", ["copy"], SQUARE),
    ("moved_across", ["copy", "--layout", "transposed"], SQUARE),
    ("folded", ["sum", "amax", "--arg", "dim=1"], SQUARE),
    ("folded", ["sum", "amax", "--arg", "dim=0"], SQUARE),
    ("scanned", ["cumsum", "--arg", "dim=1"], SQUARE),
    ("scanned", ["cumsum", "--arg", "dim=0"], SQUARE),
    ("normalised", ["softmax", "log_softmax"], SQUARE),
    ("normalised", ["layer_norm", "--vs", "one_pass"], SQUARE),
    ("located", ["argmax", "--arg", "dim=1"], SQUARE),
    ("located", ["argmax", "--arg", "dim=0"], SQUARE),
    ("sorted", ["sort"], SQUARE),
    ("looked_up", ["gather", "index_select"], SQUARE),
    ("drawn", ["rand", "randn"], SQUARE),
    ("product", ["mm", "--sizes", "1024"], 1024**3),
    ("small_product", ["bmm", "--sizes", "1024x8x8"], 1024 * 8**3),
    ("small_product", ["bmm", "--sizes", "4096x4x4"], 4096 * 4**3),
    ("solved", ["linalg_cholesky", "--sizes", "256x8x8"], 256 * 8**3 // 3),
)


def measured(program, asked):
    """{work: least nanoseconds of a call} of what calls run."""
    command = [program, "bench", *asked, "--threads", "1", "--laws", "0", "--json", "-"]
    if "--sizes" not in asked:
        command += ["--sizes", "2048x2048"]
    run = subprocess.run(command, env={**os.environ, "LAMELLA_THREADS": "1"}, capture_output=True, text=True,
                         check=False)
    if run.returncode:
        return {f"{' '.join(asked)}: {' '.join(run.stderr.split())[-60:]}": None}
    chosen, least = "one_pass" if "one_pass" in asked else "built_in", {}
    for row in json.loads(run.stdout)["benchmarks"]:
        work, _, kernel = row["name"].rpartition("/")
        if row["run_type"] == "iteration" and kernel == chosen:
            scale = {"ns": 1, "us": 1e3, "ms": 1e6}[row["time_unit"]]
            least[work] = min(least.get(work, float("inf")), row["cpu_time"] * scale)
    return least


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1])
    for cost, asked, elements in ROWS:
        for work, nanoseconds in measured(sys.argv[1], asked).items():
            figure = f"{nanoseconds * 1e3 / elements:10,.0f} ps" if nanoseconds else f"{'not measured':>13}"
            print(f"{cost:14} {figure}  {work}", flush=True)


if __name__ == "__main__":
    main()
