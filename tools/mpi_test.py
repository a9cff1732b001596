#!/usr/bin/env python3
"""Shows that two ranks of Open MPI find what one process does. usage: mpi_test.py PROGRAM

Exits 77 where there is no mpirun.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verify_mpi.sh")
ASKED = ["--op", "tanh,add", "--cases", "10", "--seed", "7"]


def counted(path):
    with open(path, encoding="utf-8") as stream:
        report = json.load(stream)
    return {(op, law): (cell["cases"], cell["failures"], cell["discards"], cell.get("strata"))
            for op, cells in report["operators"].items() for law, cell in cells.items()}, report["shard"]


def run_ranks(program, report, *asked):
    return subprocess.run(["bash", SCRIPT, "2", report, *asked], capture_output=True, text=True, check=False,
                          env={**os.environ, "LAMELLA": program})


def main():
    program = os.path.abspath(sys.argv[1])
    if not shutil.which("mpirun"):
        print("skipped: no mpirun is installed (apt-get install openmpi-bin)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        ranks, whole = os.path.join(folder, "ranks.json"), os.path.join(folder, "whole.json")
        done = run_ranks(program, ranks, *ASKED)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        assert all(f"rank {k}: " in done.stdout for k in (0, 1)), done.stdout
        subprocess.run([program, "verify", *ASKED, "--json", whole], capture_output=True, check=True)
        (of_ranks, shard), (of_one, _) = counted(ranks), counted(whole)
        assert shard == {"of": 2, "parts": [0, 1]}, shard
        differ = [pair for pair in of_ranks.keys() | of_one if of_ranks.get(pair) != of_one.get(pair)]
        assert not differ, differ
        assert run_ranks(program, ranks, "--op", "nowhere").returncode != 0
        print(f"two ranks: the same cases of {len(of_one)} pairs as one process")
    return 0


if __name__ == "__main__":
    sys.exit(main())
