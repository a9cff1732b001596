#!/usr/bin/env python3
"""Makes the reduced pack of the tests: the cases of the operators that the library implements, and ULP sets.

usage: make_reference_pack.py FULL_PACK ULP_FOLDER REPORT OUT

FULL_PACK   a folder of .safetensors files, or a .tar.zst of one
ULP_FOLDER  NumPy's umath-validation-set-*.csv
REPORT      what `lamella reference FULL_PACK --json REPORT` wrote: operators with a case that ran are kept
OUT         proptests/data/reference.tar.zst; needs the zstd program

Files are kept whole. The archive depends on its inputs alone: fixed order, owners and times.
"""
import io
import json
import os
import subprocess
import sys
import tarfile

LIMIT = 3 * 1000 * 1000
ULP_SETS = ("exp", "log", "sin", "cos", "tanh")


def files_of_pack(pack):
    """Pairs of name and bytes."""
    if os.path.isdir(pack):
        for name in sorted(os.listdir(pack)):
            with open(os.path.join(pack, name), "rb") as stream:
                yield name, stream.read()
        return
    plain = subprocess.run(["zstd", "-dcq", pack], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        for member in archive:
            if member.isfile():
                yield os.path.basename(member.name), archive.extractfile(member).read()


def implemented(report):
    with open(report, encoding="utf-8") as stream:
        operators = json.load(stream)["operators"]
    return {name for name, counts in operators.items() if counts["passed"] + counts["failed"] > 0}


def add(archive, name, data):
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), 0o644, 0
    archive.addfile(info, io.BytesIO(data))


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    pack, ulp_folder, report, out = sys.argv[1:]
    wanted = implemented(report)
    plain = io.BytesIO()
    kept = 0
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(files_of_pack(pack)):
            operator, ending = os.path.splitext(name)
            if ending == ".safetensors" and operator in wanted:
                add(archive, name, data)
                kept += 1
        for operator in ULP_SETS:
            name = f"umath-validation-set-{operator}.csv"
            with open(os.path.join(ulp_folder, name), "rb") as stream:
                add(archive, name, stream.read())
    zstd = ["zstd", "-19", "-cq"]
    packed = subprocess.run(zstd, input=plain.getvalue(), check=True, capture_output=True).stdout
    if len(packed) > LIMIT:
        sys.exit(f"make_reference_pack: {len(packed)} bytes; at most {LIMIT}")
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    with open(out, "wb") as stream:
        stream.write(packed)
    print(f"{out}: {kept} operators and {len(ULP_SETS)} ULP sets, {len(packed)} bytes")


if __name__ == "__main__":
    main()
