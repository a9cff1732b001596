#!/usr/bin/env python3
"""The program in the README is examples/readme.cpp, and prints what the README says. usage: PROGRAM"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHOWN = re.compile(r"examples/readme\.cpp\).*?```cpp\n(.*?)```\n+```text\n(.*?)```", re.DOTALL)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as stream:
        return stream.read()


def main():
    shown = SHOWN.search(read("README.md"))
    if not shown:
        sys.exit("README.md has no program after a link to examples/readme.cpp, or no output after it")
    printed = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout
    program, output = shown.groups()
    for what, have, want in [("program", program, read("examples/readme.cpp")), ("output", output, printed)]:
        if have != want:
            sys.exit(f"the README's {what} is\n{have}\nand should be\n{want}")
    print("the README's program is current, and prints what it says")


if __name__ == "__main__":
    main()
