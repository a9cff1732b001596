#!/usr/bin/env python3
"""Checks that C++ files are as clang-format 14 leaves them. usage: check_format.py [--fix] [FILES...]

Exits 77 (skipped) where clang-format 14 is not installed: other versions format differently.
"""
import os
import shutil
import subprocess
import sys

import check_house

CPP = (".h", ".cpp", ".cu", ".cuh")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def clang_format():
    for name in ("clang-format-14", "clang-format"):
        program = shutil.which(name)
        if program:
            version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if " 14." in version:
                return program
    return None


def main():
    fix = "--fix" in sys.argv
    files = [a for a in sys.argv[1:] if a != "--fix"]
    if any(not a.endswith(CPP) for a in files):
        sys.exit(f"format: formats {', '.join(CPP)} files alone")  # it would take others apart
    if not files:
        files = [p for p in check_house.files_of(ROOT) if p.endswith(CPP)]
        files = [p for p in files if not check_house.is_generated(check_house.read(ROOT, p))]
    program = clang_format()
    if not program:
        print("clang-format 14 is not installed: format not checked")
        return 77
    options = ["-i"] if fix else ["--dry-run", "--Werror"]
    result = subprocess.run([program, *options, *files], cwd=ROOT, capture_output=True, text=True)
    lines = result.stderr.splitlines()
    wrong = sorted({line.split(":")[0] for line in lines if "[-Wclang-format-violations]" in line})
    for path in wrong:
        print(f"{path}: not formatted")
    if wrong:
        print("`./run format` formats all")
    elif result.returncode:
        print(result.stderr, end="")
    print(f"format: {len(files)} files, {len(wrong)} to format" + (" (done)" if fix else ""))
    return 1 if result.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
