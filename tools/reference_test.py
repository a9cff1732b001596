#!/usr/bin/env python3
"""Shows that `lamella reference` finds what is wrong and refuses what is malformed.

usage: reference_test.py PROGRAM

Every pack here is made by hand, with one thing changed from a pack that passes.
"""
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

E = math.e


def f64(*values):
    return ("F64", [len(values)], struct.pack(f"<{len(values)}d", *values))


def exp_case(**changes):
    case = {"op": "exp", "variant": "", "dtype": "float64", "args": [{"tensor": "0.in0", "grad": True}],
            "kwargs": {}, "outputs": ["0.out0"], "vjp": {"cotangents": ["0.ct0"], "grads": ["0.grad0"]}}
    return {**case, **changes}


def exp_tensors(**changes):
    tensors = {"0.in0": f64(0, 1), "0.out0": f64(1, E), "0.ct0": f64(1, 2), "0.grad0": f64(1, 2 * E)}
    return {**tensors, **{name.replace("_", "."): t for name, t in changes.items()}}


def pack(cases, tensors):
    header, data = {"__metadata__": {"cases": json.dumps(cases)}}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class Runner:
    def __init__(self, program, folder):
        self.program, self.folder, self.wrong = program, folder, 0
        self.path = os.path.join(folder, "exp.safetensors")

    def run(self, data, *options):
        with open(self.path, "wb") as stream:
            stream.write(data)
        command = [self.program, "reference", self.path, *options]
        return subprocess.run(command, capture_output=True, text=True)

    def expect(self, what, status, data, *options):
        done = self.run(data, *options)
        statuses = status if isinstance(status, tuple) else (status,)
        if done.returncode not in statuses:
            self.wrong += 1
            print(f"{what}: exit status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
        return done


def check_verdicts(t):
    """One change at a time, within and beyond the tolerances."""
    t.expect("a right pack passes", 0, pack([exp_case()], exp_tensors()))
    bound = 1e-9 * E
    for factor, status in ((0.5, 0), (2, 1)):
        moved = E + factor * bound
        output = pack([exp_case()], exp_tensors(**{"0_out0": f64(1, moved)}))
        t.expect(f"an output {factor} bounds off", status, output)
        gradient = pack([exp_case()], exp_tensors(**{"0_grad0": f64(1, 2 * moved)}))
        t.expect(f"a gradient {factor} bounds off", status, gradient)
    for what, tensor in {
        "a NaN where there is none": f64(1, math.nan),
        "an infinity where there is none": f64(math.inf, E),
        "another shape": ("F64", [2, 1], f64(1, E)[2]),
        "another dtype": ("F32", [2], struct.pack("<2f", 1, E)),
        "no elements": ("F64", [0], b""),
    }.items():
        t.expect(what, 1, pack([exp_case()], exp_tensors(**{"0_out0": tensor})))
    infinite = exp_tensors(**{"0_in0": f64(0, 1000), "0_out0": f64(1, math.inf), "0_grad0": f64(1, math.inf)})
    t.expect("infinities in their places", 0, pack([exp_case()], infinite))
    error = {"op": "exp", "variant": "", "args": [{"tensor": "0.in0"}], "kwargs": {}, "error": True}
    t.expect("an error case that is accepted", 1, pack([error], exp_tensors()))
    error = {**error, "op": "cat"}
    t.expect("an error case that is refused", 0, pack([error], exp_tensors()))
    speed = pack([exp_case(kwargs={"speed": 3})], exp_tensors())
    t.expect("an argument that the operator has not", 0, speed)
    t.expect("a device that is not there", 1, pack([exp_case(kwargs={"device": "cuda"})], exp_tensors()))
    unknown = pack([exp_case(op="no_such_operator")], exp_tensors())
    unknown = t.expect("an operator that is not there", 0, unknown, "--json", "-")
    counts = json.loads(unknown.stdout)
    if (counts["cases"], counts["not_implemented"], counts["failed"]) != (1, 1, 0):
        t.wrong += 1
        print(f"an operator that is not there: {counts}")


def check_exceptions(t):
    wrong = pack([exp_case()], exp_tensors(**{"0_out0": f64(1, 3)}))
    path = os.path.join(t.folder, "exceptions.json")
    for reason, status in (("the arbiter says e", 0), ("", 2)):
        with open(path, "w", encoding="utf-8") as stream:
            json.dump([{"op": "exp", "case": 0, "reason": reason}], stream)
        t.expect(f"an exception with the reason '{reason}'", status, wrong, "--exceptions", path)


def check_written(t):
    out = os.path.join(t.folder, "written")
    t.expect("writing", 0, pack([exp_case()], exp_tensors()), "--write", out)
    with open(os.path.join(out, "exp.safetensors"), "rb") as stream:
        data = stream.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    cases = json.loads(header["__metadata__"]["cases"])
    begin, end = header["0.out0"]["data_offsets"]
    values = struct.unpack("<2d", data[8 + size + begin : 8 + size + end])
    if cases[0]["status"] != "ok" or "0.grad0" not in header or abs(values[1] - E) > 1e-12:
        t.wrong += 1
        print(f"written: {header} {values}")


def check_malformed(t):
    """Cut anywhere, or with bytes changed: an exit status, never a signal."""
    whole = pack([exp_case()], exp_tensors())
    header = struct.unpack("<Q", whole[:8])[0]
    for length in (0, 7, 8, 9, 8 + header // 2, 8 + header, len(whole) - 1):
        t.expect(f"a file cut to {length} bytes", 2, whole[:length])
    for size in (2**63, 2**64 - 1, len(whole) - 7):
        t.expect(f"a header of {size} bytes", 2, struct.pack("<Q", size) + whole[8:])
    entry = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
    for what, change in {
        "offsets beyond the file": {"data_offsets": [0, 10**6]},
        "offsets backwards": {"data_offsets": [16, 0]},
        "negative offsets": {"data_offsets": [-16, 0]},
        "three offsets": {"data_offsets": [0, 8, 16]},
        "a shape that says more": {"shape": [3]},
        "a shape that overflows": {"shape": [2**32, 2**32]},
        "a negative size": {"shape": [-2]},
        "a fractional size": {"shape": [2.5]},
        "an unknown dtype": {"dtype": "F8"},
        "a shape that is none": {"shape": "2"},
    }.items():
        text = json.dumps({"__metadata__": {"cases": "[]"}, "a": {**entry, **change}}).encode()
        t.expect(what, 2, struct.pack("<Q", len(text)) + text + bytes(16))
    for text in (b"[" * 100000, b"{}", b"null", b'{"a":' * 50000):
        t.expect(f"the header {text[:10]}...", 2, struct.pack("<Q", len(text)) + text)
    draw = random.Random(1)
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(8, len(data))] = draw.randrange(256)
        t.expect(f"changed bytes {bytes(data)!r}", (0, 1, 2), bytes(data))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        t = Runner(sys.argv[1], folder)
        for check in (check_verdicts, check_exceptions, check_written, check_malformed):
            check(t)
    print(f"reference_test: {t.wrong} wrong")
    return 1 if t.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
