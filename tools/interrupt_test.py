#!/usr/bin/env python3
"""Shows that an interrupted `lamella` ends well: reports are printed, no file is half written.

usage: interrupt_test.py PROGRAM [PACK]
"""
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

MOST_SECONDS = 30  # until an interrupted program must have ended


def group_members(group):
    """The living processes of a process group, read from /proc."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as stream:
                state, _, pgrp = stream.read().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # it has just ended
        if int(pgrp) == group and state != "Z":
            found.append(name)
    return found


def interrupted(command, seconds, group=False, folder=None, sent=signal.SIGINT, **variables):
    """Its exit status and output when a signal comes after so many seconds."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
                               start_new_session=True, env={**os.environ, **variables})
    time.sleep(seconds)
    if process.poll() is None:
        (os.killpg if group else os.kill)(process.pid, sent)
    out, err = process.communicate(timeout=MOST_SECONDS)
    patience = time.monotonic() + 10  # children get the signal too, and end in their own time
    while group_members(process.pid) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not group_members(process.pid), f"processes of {command} are left"
    return process.returncode, out, err


def check_verify(program, folder):
    path = os.path.join(folder, "verify.json")
    endings = [(sent, group) for sent in (signal.SIGINT, signal.SIGTERM) for group in (False, True)]
    for sent, group in endings:
        status, out, err = interrupted(
            [program, "verify", "--time", "60", "--op", "add,sin", "--seed", "1", "--json", path], 2, group,
            sent=sent)
        assert status == 128 + sent, (sent, status, out, err)
        assert "interrupted: 0 failures" in out, out
        assert "state_restored" in out and "cases/s" in out, out
        with open(path, encoding="utf-8") as stream:
            report = json.load(stream)
        assert report["checks"] > 0 and "add" in report["operators"], report
        assert report["interrupted"] is True, sent
        merged = subprocess.run([program, "merge", path], capture_output=True, text=True, check=False)
        assert merged.returncode == 1 and "was interrupted" in merged.stderr, merged.stderr
        os.remove(path)
    status, out, err = interrupted([program, "verify", "--time", "60", "--op", "add"], 0.01)
    assert status in (128 + signal.SIGINT, -signal.SIGINT), (status, out, err)  # negative: it had not begun
    assert "no law applies" not in err, err


def check_orphans(program):
    """Workers of a parent that was killed end at once: they ran on for some ten seconds."""
    process = subprocess.Popen([program, "verify", "--time", "25", "--op", "add,sin", "--seed", "1"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(1)
    assert len(group_members(process.pid)) > 1, "it has no workers"
    process.kill()
    process.wait(timeout=MOST_SECONDS)
    patience = time.monotonic() + 2
    while group_members(process.pid) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not group_members(process.pid), "workers outlive their parent"


def check_mutate(program, folder):
    path = os.path.join(folder, "mutate.json")
    for sent, group in ((signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGTERM, True)):
        status, out, _ = interrupted([program, "mutate", "--op", "add", "--json", path], 2, group, sent=sent)
        assert status in (1, 128 + sent), (status, out)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as stream:
                assert json.load(stream)["interrupted"] is True
            os.remove(path)


def check_first_moments(program, folder):
    """They ended without a word while bugs were prepared, or between two of them."""
    for command, what in (("mutate", r"mutants?"), ("museum", "exhibits")):
        for sent, group, seconds in ((signal.SIGINT, True, 0.3), (signal.SIGTERM, False, 0.5),
                                     (signal.SIGTERM, True, 1)):
            status, out, err = interrupted([program, command], seconds, group, sent=sent, TMPDIR=folder)
            assert status == 128 + sent, (command, sent, status, out, err)
            last = out.splitlines()[-1]
            assert re.fullmatch(rf"interrupted (before the first mutant|after \d+ of \d+ {what})", last), out
            assert not os.listdir(folder), os.listdir(folder)


def check_background(program):
    """A job of a shell without job control ignores SIGINT, by which workers were told: they ran on."""
    begin = time.monotonic()
    command = f"trap '' INT; exec '{program}' verify --time 60 --seed 1"
    status, out, err = interrupted(["sh", "-c", command], 1, sent=signal.SIGTERM)
    assert status == 128 + signal.SIGTERM, (status, out, err)
    assert "interrupted: 0 failures" in out and time.monotonic() - begin < 9, out


def check_moments(program):
    """Whenever the signal comes, to the process or to its group, no law fails of it."""
    drawn = random.Random(7)
    for k in range(12):
        law = ["--law", "harness"] if k % 2 else []
        status, out, err = interrupted([program, "verify", "--time", "30", "--seed", str(k), *law],
                                       drawn.uniform(0.1, 1.5), k % 4 < 2, sent=signal.SIGTERM)
        assert status == 128 + signal.SIGTERM, (k, status, out, err)


def check_calibration(program):
    """What has no report ends at once, and its processes with it."""
    for command in ("tolerances", "sensitivity"):
        status, _, _ = interrupted([program, command], 0.7, sent=signal.SIGTERM)
        assert status == -signal.SIGTERM, (command, status)


def is_whole(path):
    with open(path, "rb") as stream:
        data = stream.read()
    if path.endswith(".csv"):
        return data.endswith(b"\n")
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    return len(data) == 8 + struct.unpack("<Q", data[:8])[0] + max(ends, default=0)


def check_reference(program, folder, pack):
    written = os.path.join(folder, "written")
    for seconds in (0.02, 0.1, 0.3, 0.6):
        interrupted([program, "reference", pack, "--write", written], seconds)
        names = os.listdir(written) if os.path.isdir(written) else []
        for name in names:
            assert not name.endswith(".partial"), names
            assert is_whole(os.path.join(written, name)), name


def check_full_disk(program, folder):
    run = subprocess.run([program, "verify", "--time", "0.2", "--op", "add", "--json", "/dev/full"],
                         capture_output=True, text=True, check=False)
    assert run.returncode == 2 and "cannot write" in run.stderr, (run.returncode, run.stderr)
    kept = os.path.join(folder, "missing", "report.json")
    run = subprocess.run([program, "verify", "--time", "0.2", "--op", "add", "--json", kept],
                         capture_output=True, text=True, check=False)
    assert run.returncode == 2 and "cannot write" in run.stderr, (run.returncode, run.stderr)


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as empty:
        check_first_moments(program, empty)
    with tempfile.TemporaryDirectory() as folder:
        check_verify(program, folder)
        check_orphans(program)
        check_mutate(program, folder)
        check_background(program)
        check_moments(program)
        check_calibration(program)
        check_full_disk(program, folder)
        if len(sys.argv) > 2:
            check_reference(program, folder, os.path.abspath(sys.argv[2]))
        left = [name for name in os.listdir(folder) if name.endswith(".partial")]
        assert not left, left
    print("interrupted programs end well")


if __name__ == "__main__":
    main()
