#!/usr/bin/env python3
"""Every command line of the README runs, and prints what the README shows, counts and times aside.

usage: readme_lines_test.py PROGRAM FOLDER_OF_PLUGINS

tools/readme_test.py looks at the program that the README has as a whole.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

PROGRAM, PLUGINS = "", ""
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as readme:
    README = readme.read()
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
BULLETS = re.findall(r"^- .*(?:\n  .*)*", README, re.MULTILINE)
COMMAND = re.compile(r"`((?:\./run|lamella|verify|mutate|merge|--\w+)(?: [^`]*)?)`")

# What stands in the bullets as a name alone, or takes an hour: how it runs here. None: a test has it.
SHORT = {
    "lamella mutate": "lamella mutate --op tanh --sample 2 --seed 1",
    "lamella museum": "lamella museum --id lanes_squeezed --cases 9",
    "lamella report": None, "verify": None, "mutate": None, "verify --shard i/n": None, "merge": None,
    "--junit": None,
    "lamella bench OPERATOR…": "lamella bench tanh --sizes 8x8 --laws 0 --rounds 1 --runs 1",
    "lamella reference PATH": "lamella reference proptests/data/reference.tar.zst --op add",
    "./run NAME …": None,   # scripts.run
}


def words_of(line):
    """What a line of the README starts here, where the program is built: `./run NAME` is `lamella NAME`."""
    words = shlex.split(line, comments=True)
    if words[:2] == ["./run", "example"]:
        return [os.path.join(os.path.dirname(PLUGINS), "examples", words[2]), *words[3:]]
    if words[0] in ("./run", "lamella"):
        words = [PROGRAM, *words[1:]]
    return [word.replace("build/release/plugins", PLUGINS) for word in words]


def run(line, **options):
    return subprocess.run(words_of(line), capture_output=True, text=True, cwd=ROOT, timeout=120, check=False,
                          **options)


def shape(line):
    """Without counts, times and the blanks before them."""
    return re.sub(r" *\d+(\.\d+)?", " #", line)


class Readme(unittest.TestCase):
    def block(self, begins):
        """The lines of the one block that begins so."""
        found = [text.split("\n") for _, text in FENCED if text.startswith(begins)]
        self.assertEqual(len(found), 1, begins)
        return found[0]

    def passes(self, line, status=0, **options):
        done = run(line, **options)
        self.assertEqual(done.returncode, status, (line, done.stdout[-2000:], done.stderr[-2000:]))
        return done.stdout

    def test_every_block_is_looked_at(self):
        known = ("$ ./run verify --seed 7", "// The program of the README", "f64[2,3] ",
                 "$ ./run verify --load")
        self.assertEqual([text[:60] for _, text in FENCED if not text.startswith(known)], [])
        started = re.findall(r"^(?:\$ |    )(\./run \w+)", README, re.MULTILINE)
        self.assertEqual(sorted(set(started)), ["./run test", "./run verify"])
        usage = subprocess.run([os.path.join(ROOT, "run"), "help"], capture_output=True, text=True,
                               check=True)
        for name in ("verify", "test"):
            self.assertRegex(usage.stdout, rf"(?m)^  {name} ")

    def test_table_of_verify(self):
        shown = self.block("$ ./run verify --seed 7")
        at = shown.index("")
        rows, end = shown[2:at], shown[at + 1:at + 3]
        law, operators = self.passes("./run verify --list").split("operators:\n")
        laws = re.findall(r"^ +(\d+)  (\w+)", law, re.MULTILINE)   # one number may be that of several
        of = re.search(r"\((\d+) of (\d+) laws shown; on two cores\)$", shown[0])
        self.assertEqual((int(of[1]), int(of[2])), (len(rows), len(laws)), shown[0])
        self.assertEqual([row for row in rows if tuple(row.split()[:2]) not in laws], [])
        ids = [row.split()[1] for row in rows]
        command = re.sub(r"--time \d+.*", "--time 4", shown[0][2:])
        out = self.passes(f"{command} --law {','.join(ids)}").split("\n")
        self.assertIn(shown[1], out)
        self.assertEqual([shape(line) for line in out if re.match(r" *\d+  \w+ +\d+", line)],
                         [shape(row) for row in rows])
        self.assertEqual([shape(line) for line in out[-3:-1]], [shape(line) for line in end])
        self.assertEqual(end[1], f"{len(operators.split())} operators, {len(laws)} laws, seed 7: 0 failures")

    def test_last_line_of_tests(self):
        """By CTest itself, of two tests that pass."""
        line = self.block("$ ./run verify --seed 7")[-2]
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as stream:
                stream.write('add_test(one "true")\nadd_test(two "true")\n')
            done = subprocess.run(["ctest", "--test-dir", folder], capture_output=True, text=True, check=True)
        self.assertIn(shape(line), [shape(said) for said in done.stdout.split("\n")])
        over = re.search(r"every test and check: over ([\d,]+)", README)[1]
        self.assertLess(int(over.replace(",", "")), int(re.findall(r"\d+", line)[-1]))

    def test_broken_plugin(self):
        shown = self.block("$ ./run verify --load")
        out = self.passes(shown[0][2:], status=1)
        self.assertTrue(out.startswith("\n".join(shown[1:])), out[:4000])

    def test_commands_of_the_list(self):
        found = [" ".join(line.split()) for bullet in BULLETS for line in COMMAND.findall(bullet)]
        self.assertGreater(len(found), 14, found)
        for line in found:
            if (line := SHORT.get(line, line)) is None:
                continue
            self.assertTrue(self.passes(line), line)
        self.assertEqual([line for line in SHORT if line not in found], [])

    def test_reports_of_the_list(self):
        with tempfile.TemporaryDirectory() as folder:
            parts = [os.path.join(folder, f"part{k}.json") for k in (0, 1)]
            for k, part in enumerate(parts):
                self.passes("lamella verify --op tanh --law 1,3 --cases 3 --seed 1 "
                            f"--shard {k}/2 --json {part}")
            whole, page, junit, mutate = (os.path.join(folder, name)
                                          for name in ("w.json", "p.html", "j.xml", "m.json"))
            self.passes(f"lamella merge {' '.join(parts)} -o {whole} --junit {junit}")
            self.passes(f"lamella mutate --op tanh --sample 2 --seed 1 --json {mutate}")
            self.passes(f"lamella report {whole} {mutate} -o {page}")
            for path, begin in ((page, "<!DOCTYPE html>"), (junit, "<?xml")):
                with open(path, encoding="utf-8") as stream:
                    self.assertTrue(stream.read().lower().startswith(begin.lower()), path)

    def test_links_lead_somewhere(self):
        text = re.sub(r"^```.*?^```", "", README, flags=re.DOTALL | re.MULTILINE)
        for path in re.findall(r"\]\(([^)#:]+)\)", text):
            self.assertTrue(os.path.exists(os.path.join(ROOT, path)), path)


if __name__ == "__main__":
    PROGRAM, PLUGINS = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    unittest.main()
