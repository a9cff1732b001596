#!/usr/bin/env python3
"""Shows that `lamella bench` times what is right, shows what is wrong, and writes what others can read.

usage: bench_test.py PROGRAM FOLDER_OF_PLUGINS
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, PLUGINS = "", ""
QUICK = ["--rounds", "3", "--seconds", "0.0005", "--laws", "0.2"]
REFUSED = {  # arguments: what stderr says
    "": "got no operator",
    "nosuch": 'no operator "nosuch"',
    "add --suite": "expected none beside it",
    "add --sizes 4y4": "is no size",
    "add --dtype f31": "no dtype",
    "add --layout diagonal": "expected contiguous, transposed",
    "add --threads 0": "expected at least 1",
    "add --threads 100000": "at most 256",
    "add --clock sun": "sun",
    "add --rounds 0": "not in range",
    "add --seconds nan": "from 1e-09 to 60",
    "sum --arg dim": "expected NAME=VALUE",
    "matmul --vs nosuch": "expected one of built_in, own",
    "matmul --kernel nosuch": "mm: built_in, own",
    "matmul --kernel copy=nosuch": "expected one of built_in, streaming, plain, memcpy",
    "matmul --kernel mm=nosuch": "expected one of built_in, own",
    "matmul --kernel exp=mine": "has no alternatives on the CPU; expected one of",
    "add --json - -o -": "mixed",
    "diff": "required",
    "diff absent.json absent.json": "cannot be read",
}
REFUSED_ONCE_IT_RUNS = {
    "add --sizes 16 --layout transposed": "at least 2 dims",
    "add --peer jax": "expected torch",
    "add --sizes 2^39": "and this machine has",
    "cat --sizes 2^20x2^20 --dtype u8": "and this machine has",
    "randn --sizes 2^39": "and this machine has",
    "add --arg nosuch=1": "no such parameter",
    "sum --arg dim=x": "cannot be read",
}
FAKE_TORCH = """
__version__ = "0.fake"
class dtype: is_floating_point, is_complex = True, False
float32 = float64 = dtype()
bool = int64 = dtype
class Tensor:
    def __mul__(self, other): return self
    __add__ = __mul__
    def to(self, dtype): return self
def rand(sizes, dtype=None): return Tensor()
def empty_like(x): return Tensor()
def add(x, y, out=None): return out or Tensor()
def set_num_threads(n): pass
set_grad_enabled = manual_seed = set_num_threads
"""


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, errors="replace",
                          timeout=240, **options)


def bench(*arguments, **options):
    return run("bench", *arguments, *QUICK, **options)


def has_clock():
    return "libbenchmark-dev" not in run("bench", "add", "--sizes", "8", *QUICK).stderr


def plugin(name):
    return ["--load", os.path.join(PLUGINS, name + ".so")]


def google(path, times):
    """A file such as Google Benchmark writes, of one row with these times."""
    rows = [{"name": "row", "run_name": "row", "run_type": "iteration", "repetition_index": i,
             "iterations": 1, "real_time": t, "cpu_time": t, "time_unit": "us"} for i, t in enumerate(times)]
    with open(path, "w", encoding="utf-8") as stream:
        json.dump({"context": {}, "benchmarks": rows}, stream)
    return path


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)


class Usage(unittest.TestCase):
    def test_refuses(self):
        for arguments, says in (REFUSED | (REFUSED_ONCE_IT_RUNS if has_clock() else {})).items():
            done = run("bench", *arguments.split())
            self.assertEqual(done.returncode, 2, (arguments, done.stdout[:500], done.stderr))
            self.assertIn(says, done.stderr, arguments)

    def test_kernels_of_other_commands(self):
        done = run("verify", "--op", "mm", "--kernel", "matmul=own", "--law", "1,3", "--cases", "20",
                   "--seed", "1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = run("explain", "sum(x)", "--shapes", "x=5", "--kernel", "sum=nosuch", *plugin("my_kernel"))
        self.assertIn("expected one of built_in, mine, pairwise, plain", done.stderr)


    def test_kernels_of_the_environment(self):
        shown = ["explain", "sum(x)", "--shapes", "x=5"]
        done = run(*shown, env=dict(os.environ, LAMELLA_KERNEL="sum=plain,matmul=own"))
        self.assertEqual(done.returncode, 0, done.stderr)
        for wrong, says in (("sum=nosuch", "sum has no kernel \"nosuch\"; expected one of built_in, pair"),
                            ("plain", "clone: built_in, streaming"), ("exp=a", "exp has no alternatives"),
                            ("=one_pass", "expected OPERATOR=NAME of sum: built_in")):
            done = run(*shown, env=dict(os.environ, LAMELLA_KERNEL=wrong))
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertIn("LAMELLA_KERNEL: ", done.stderr)
            self.assertIn(says, done.stderr)

    def test_instruction_set_of_the_environment(self):
        shown = ["explain", "sum(x)", "--shapes", "x=5"]
        for named in ("scalar", "avx512", "tiny", ""):
            self.assertEqual(run(*shown, env=dict(os.environ, LAMELLA_ISA=named)).returncode, 0, named)
        done = run(*shown, env=dict(os.environ, LAMELLA_ISA="AVX2"))
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn('LAMELLA_ISA = "AVX2"; expected scalar, avx2, avx512 or tiny', done.stderr)


class Diff(WithFolder):
    def compare(self, before, after):
        done = run("bench", "diff", google(self.path("a.json"), before), google(self.path("b.json"), after))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(all(len(line) <= 100 for line in done.stdout.splitlines()), done.stdout)
        return next(line for line in done.stdout.splitlines() if line.startswith("row "))

    def test_says_what_differs(self):
        dice = random.Random(7)
        base = [100 + dice.random() for _ in range(15)]
        self.assertRegex(self.compare(base, [2 * t for t in base]), r" 2\.00 \[.*slower$")
        self.assertRegex(self.compare(base, [t / 2 for t in base]), r" 0\.50 \[.*faster$")
        self.assertNotRegex(self.compare(base, base), "slower|faster")
        self.assertRegex(self.compare(base[:3], base[:3]), "few$")

    def test_noise_is_no_difference(self):
        dice = random.Random(8)
        wide = [[100 * 2 ** dice.uniform(-1, 1) for _ in range(15)] for _ in range(2)]
        self.assertNotRegex(self.compare(*wide), "slower|faster")

    def test_nothing_in_common(self):
        with open(self.path("empty.json"), "w", encoding="utf-8") as stream:
            json.dump({"benchmarks": []}, stream)
        done = run("bench", "diff", google(self.path("a.json"), [1]), self.path("empty.json"))
        self.assertEqual((done.returncode, "no benchmark" in done.stderr), (2, True), done.stderr)


class Times(WithFolder):
    def setUp(self):
        super().setUp()
        if not has_clock():
            self.skipTest("built without Google Benchmark")

    def test_table_and_files(self):
        page, file = self.path("page.html"), self.path("run.json")
        done = bench("matmul", "softmax", "--sizes", "32x32,64x64", "--json", file, "-o", page)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(all(len(line) <= 100 for line in done.stdout.splitlines()), done.stdout)
        for word in ("built_in *", "own", "online", "(FMA"):
            self.assertIn(word, done.stdout)
        with open(file, encoding="utf-8") as stream:
            run_ = json.load(stream)
        rows = [row for row in run_["benchmarks"] if row["run_type"] == "iteration"]
        own = [row for row in rows if row["run_name"] == "matmul_f32[64,64]/own"]
        self.assertEqual(len(own), 3)
        self.assertTrue(all(row["cpu_time"] > 0 and row["time_unit"] == "ns" for row in rows))
        for work in run_["lamella"]["works"]:
            self.assertEqual(work["witness"], "reference")
            for kernel in work["kernels"]:
                self.assertLess(kernel["roundings"], 20, work)
        with open(page, encoding="utf-8") as stream:
            text = stream.read()
        self.assertEqual(text.count("<svg"), text.count("</svg>"))
        self.assertIn("Share of the limit", text)
        self.assertNotRegex(text, r"""(src|href)=""")
        again = run("bench", "diff", file, file)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("1.00 [", again.stdout)

    def test_layouts_dtypes_and_attributes(self):
        done = bench("add", "--sizes", "16x16", "--layout", "contiguous,transposed,stepped,broadcast,column",
                     "--dtype", "bf16")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("add bf16[16,16] column", done.stdout)
        for op in ("sum", "gather", "cumsum", "layer_norm", "sort", "cholesky", "randn", "where"):
            done = bench(op, "--sizes", "8x8", "--fresh")
            self.assertEqual(done.returncode, 0, (op, done.stdout, done.stderr))
        self.assertIn("dim=[0]", bench("sum", "--sizes", "8x8", "--arg", "dim=0").stdout)

    def test_a_right_kernel_is_timed(self):
        done = bench("sum", "--sizes", "4096", *plugin("my_kernel"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\n  mine \* +\d")

    def test_a_wrong_kernel_is_not(self):
        done = run("bench", "sum", "--sizes", "4096", "--rounds", "3", "--laws", "3",
                   *plugin("my_kernel_wrong"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\n  blocks +WRONG\n")
        self.assertIn("breaks the law", done.stdout)
        self.assertIn("int main()", done.stdout)
        self.assertRegex(done.stdout, r"\n  built_in +\d")
        # Where blocks do not fill the size it shows in the timed inputs already.
        done = bench("sum", "--sizes", "1000", *plugin("my_kernel_wrong"))
        self.assertRegex(done.stdout, r"WRONG\n    result 0, element 0 \(row-major\): got ")

    def test_interrupted_writes_what_was_measured(self):
        file = self.path("run.json")
        command = [PROGRAM, "bench", "exp", "log", "--sizes", "64x64", "--rounds", "100000", "--json", file]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(3)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, out + err)
        self.assertIn("Interrupted", out)
        with open(file, encoding="utf-8") as stream:
            self.assertTrue(json.load(stream)["lamella"]["interrupted"])

    def test_peer(self):
        absent = dict(os.environ, PYTHONPATH=self.folder)
        with open(self.path("torch.py"), "w", encoding="utf-8") as stream:
            stream.write("raise ImportError('not here')\n")
        done = bench("add", "--sizes", "8", "--peer", "torch", env=absent)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"not here.*\n +python3 -m pip install torch")
        with open(self.path("torch.py"), "w", encoding="utf-8") as stream:
            stream.write(FAKE_TORCH)
        file = self.path("peer.json")
        done = bench("add", "exp", "--sizes", "8", "--peer", "torch", "--json", file, env=absent)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\n  torch +\d")
        self.assertRegex(done.stdout, r"\n  torch: AttributeError")  # of exp, which this one has not
        with open(file, encoding="utf-8") as stream:
            works = json.load(stream)["lamella"]["works"]
        self.assertGreater(works[0]["kernels"][0]["ratio_to_peer"], 0)


if __name__ == "__main__":
    PROGRAM, PLUGINS = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    unittest.main()
