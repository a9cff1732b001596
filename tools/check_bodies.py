#!/usr/bin/env python3
"""Compiles kernels/bodies/ by g++, clang and nvcc; nothing is run.

usage: check_bodies.py [ROOT] [--wheels FOLDER]

nvcc is $CUDACXX, that of PATH or of /usr/local/cuda; where there is none, and FOLDER is given, PyPI's wheels
are installed there (330 MB, in a virtual environment). Without nvcc the packages are named and that part is
left out. Exits 1 if a compiler refuses, or if nvcc takes more than 180 s of processor time.
"""
import argparse
import glob
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

# The parts of one toolkit must be of one version.
WHEELS = [f"nvidia-{part}==13.0.*" for part in ("cuda-nvcc", "cuda-crt", "nvvm", "cuda-runtime", "cuda-cccl")]
DEVICE = ["-std=c++20", "--expt-relaxed-constexpr", "-arch=sm_80", "-fmad=false", "--Werror", "all-warnings",
          "--diag-suppress", "186"]  # 186: unsigned x < 0, in bodies for all numbers
NVCC_SECONDS = 180  # of processor time, of all it starts; it took 8 when decision 0019 was made
HOST = ["-std=c++20", "-fsyntax-only", "-DLAMELLA_BACKEND=scalar", "-Wno-unknown-pragmas"]
# Pointers are declared as `T* name`; a product has spaces on both sides of its sign. Rows have names.
NOT_IN_BODIES = re.compile(r"__builtin_|\b_mm\d*_|\basm\b|vector_size|\w\*|\breinterpret_cast\b")


def said_in_body(lines):
    """Lines of a body that a device, or a compiler other than g++, cannot be given: check_house.py asks."""
    for number, line in enumerate(lines, 1):
        code = re.sub(r"\"[^\"]*\"", '""', line.split("//")[0]).replace("const char*", "")
        if NOT_IN_BODIES.search(code):
            yield number, "a builtin, a pointer or assembly; bodies are one text for g++, clang and nvcc"


def nvcc_of(folder):
    found = glob.glob(os.path.join(folder, "lib/python3*/site-packages/nvidia/cu*/bin/nvcc"))
    return found[0] if found else None


def find_nvcc(folder):
    """The compiler, and what is to be said of it."""
    for path in (os.environ.get("CUDACXX"), shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"):
        if path and os.access(path, os.X_OK):
            return path, ""
    if folder and not nvcc_of(folder):
        subprocess.run([sys.executable, "-m", "venv", folder], check=False)
        pip = [os.path.join(folder, "bin/pip"), "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, *WHEELS], check=False)
    path = folder and nvcc_of(folder)
    return path, "" if path else "no nvcc: install it, or `pip install " + " ".join(WHEELS) + "`"


def children_seconds():
    """Processor time of all children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compiles(name, command, limit=None):
    begin, before = time.time(), children_seconds()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    used = children_seconds() - before
    said = "compiles" if done.returncode == 0 else "refuses"
    print(f"{name}: {said} in {time.time() - begin:.1f} s, {used:.1f} s of processor time")
    if done.returncode != 0:
        print(done.stdout + done.stderr)
    if limit is not None and used > limit:
        print(f"{name}: took {used:.1f} s of processor time, expected {limit} at most")
        return False
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("root", nargs="?", default=os.path.dirname(here))
    parser.add_argument("--wheels", metavar="FOLDER")
    given = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "lamella"))
        for room in ("core", "kernels"):
            os.symlink(os.path.join(os.path.abspath(given.root), room), os.path.join(folder, "lamella", room))
        include = ["-I", folder]
        for compiler in filter(shutil.which, ("g++", "clang++")):
            lines = os.path.join(given.root, "kernels/cpu/lines_plain.cpp")
            good &= compiles(compiler, [compiler, *HOST, *include, lines])
        nvcc, lacking = find_nvcc(given.wheels)
        if nvcc:
            program = os.path.join(given.root, "kernels/cuda/bodies.cu")
            out = ["-c", program, "-o", os.path.join(folder, "bodies.o")]
            good &= compiles(nvcc, [nvcc, *DEVICE, *include, *out], NVCC_SECONDS)
        else:
            print(f"nvcc left out: {lacking}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
