#!/usr/bin/env python3
"""Shows that the program refuses what makes no sense, and that its output is there as a whole or not at all.

usage: usage_test.py PROGRAM FOLDER_OF_PLUGINS
"""
import fcntl
import json
import os
import pty
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

PROGRAM, PLUGINS = "", ""
REFUSED = {  # arguments: what stderr says
    "": "usage:",
    "nonsense": "no command",
    "verfy": 'no command "verfy"; the nearest is "verify"',
    "verify --time nan": "not a number above 0",
    "verify --time inf": "not a number above 0",
    "verify --time 0": "not a number above 0",
    "verify --cases 0": "not in range",
    "verify --cases 3 --time 2": "excludes",
    "verify --seed -1": '--seed: got "-1", expected a whole number from 0 to 18446744073709551615',
    "verify --seed 18446744073709551616": '--seed: got "18446744073709551616", expected a whole number',
    "verify --seed 7x": '--seed: got "7x", expected a whole number',
    "verify --seed +7": '--seed: got "+7", expected a whole number',
    "verify --seed 0x7": '--seed: got "0x7", expected a whole number',
    "verify --time 0x1": '--time: got "0x1", expected a number',
    "verify --compile -1": "not in range",
    "verify --processes 0": "not in range",
    "verify --op nowhere": "no operator",
    "verify --op ex": 'no operator "ex"; the nearest are "exp", ',
    "verify --law vmap_equal_loop": 'no law or group "vmap_equal_loop"; the nearest is "vmap_equals_loop"',
    "explain sni(x) --shapes x=2": 'no operator "sni"; the nearest ',
    "explain vmp(x) --shapes x=2": 'no operator "vmp"; the nearest is "vmap"',
    "explain gard(sum(x)) --shapes x=2": 'no operator "gard"; the nearest are "grad", ',
    "explain x+99999999999999999999999 --shapes x=2":
        "got 99999999999999999999999 at position 2, expected a whole number of at most 18446744073709551615",
    "explain x+18446744073709551616 --shapes x=2": "got 18446744073709551616 at position 2, expected a whole",
    "explain x*-9223372036854775809 --shapes x=2":
        "got -9223372036854775809 at position 2, expected a whole number of at least -9223372036854775808",
    "explain 1.5*2.25": "mul got numbers alone, expected a tensor among them",
    "ops tahn": 'no operator "tahn"; the nearest are "tanh", "atan"',
    "mutate --law nosuch": 'no law or group "nosuch"',
    "sensitivity --op tahn": 'no operator "tahn"; the nearest are "tanh", "atan"',
    "sensitivity --load absent.so": 'there is no file "absent.so"',
    "tolerances --load absent.so": 'there is no file "absent.so"',
    "reference absent --load absent.so": 'there is no file "absent.so"',
    "verify --load build/release/plugins/absent.so": "./run build plugin_absent",
    "verify --json - --junit -": "mixed",
    "verify --replay @absent": "cannot be read",
    "verify --replay nonsense": "no blob",
    "answers --law nowhere": 'no law or group "nowhere"',
    "answers --law matches_referenc": 'the nearest is "matches_reference"',
    "answers --check absent.md": "no file",
    "mutate --processes -1": "not in range",
    "mutate --at-least 7": "from 0 to 1",
    "mutate --at-least nan": "from 0 to 1",
    "mutate --budget nan": "above 0",
    "mutate --sample -1": '--sample: got "-1", expected a whole number',
    "mutate --op tahn": 'no operator "tahn"; the nearest are "tanh", "atan"',
    "mutate --op tanh --mutant tanh.jvp(x)/mul#0:detachd": 'the nearest are "tanh.jvp(x)/mul#0:detached", ',
    "mutate --op tanh --group kernal": 'no group "kernal"; the nearest is "kernel"',
    "mutate --nonsense": "--nonsense",
    "tolerances --nonsense": "--nonsense",
    "tolerances --op add --write x": "excludes",
    "tolerances --most-seconds nan": "above 0",
    "sensitivity --factor nan": "above 0",
    "sensitivity --target 200": "from 0 to 100",
    "museum --cases -1": "not in range",
    "museum --id nowhere": "no exhibit",
    "museum --id lanes_sqeezed": 'no exhibit "lanes_sqeezed"; the nearest is "lanes_squeezed"',
    "ops --nonsense": "--nonsense",
    "bench": "got no operator",
    "bench tahn": 'no operator "tahn"; the nearest are "tanh", "atan"',
    "bench sum --vs pairwize": 'no kernel "pairwize"; the nearest is "pairwise"',
    "bench sum --layout contigous": 'no "contigous"; the nearest is "contiguous"',
    "explain": "required",
    "report": "required",
    "merge": "required",
    "merge absent.json": "cannot be read",
    "reference": "required",
    "accept --nonsense": "--nonsense",
}
EXHIBIT = ["museum", "--id", "lanes_squeezed", "--cases", "1"]


def readable_by_all(path):
    while path != "/":
        if not os.stat(path).st_mode & 0o005 == 0o005:
            return False
        path = os.path.dirname(path)
    return True


def run(*arguments, **options):
    options = {"capture_output": True, "text": True, "check": False, **options}
    return subprocess.run([PROGRAM, *arguments], **options)


def run_on_terminal(*arguments, columns=0, **variables):
    """Status, standard output and what a terminal shows as stderr."""
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=terminal,
                          env={**os.environ, **variables}) as process:
        os.close(terminal)
        out, shown = process.stdout.read(), b""
        try:
            while piece := os.read(main, 4096):
                shown += piece
        except OSError:  # Linux says so when the other end is closed
            pass
    os.close(main)
    return process.returncode, out, shown.decode()


class Usage(unittest.TestCase):
    def test_refuses(self):
        for arguments, says in REFUSED.items():
            done = run(*arguments.split())
            self.assertEqual(done.returncode, 2, (arguments, done.stdout[:500], done.stderr))
            self.assertIn(says, done.stderr, arguments)

    def test_what_is_no_number_is_refused(self):
        """CLI11 read nothing as 0."""
        for option in ("--seed", "--time", "--cases", "--depth", "--processes", "--compile"):
            for given in ("", " 7", "7 ", "1 2"):
                done = run("verify", "--list", option, given)
                self.assertEqual(done.returncode, 2, (option, given, done.stdout[:500]))
                self.assertIn(f'{option}: got "{given}", expected a', done.stderr)
        self.assertEqual(run("verify", "--list", "--seed", "18446744073709551615").returncode, 0)

    def test_nothing_is_no_text(self):
        """`--json "$FILE"` without that variable kept no report, with status 0; `--replay ""` ran all."""
        one = ["verify", "--op", "tanh", "--law", "1", "--cases", "3", "--seed", "1"]
        for option in ("--json", "--junit", "--corpus", "--replay", "--explain-law", "--op", "--law"):
            done = run(*one, option, "")
            self.assertEqual(done.returncode, 2, (option, done.stdout[:500]))
            self.assertIn(f'{option}: got "", expected a text', done.stderr)
        for words in (["ops", "--json"], ["mutate", "--list", "--write-laws"], ["merge", "a.json", "-o"]):
            self.assertIn('got "", expected a text', run(*words, "").stderr)

    def test_two_texts_in_one_file(self):
        """The second took the first one's place."""
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "report")
            done = run("verify", "--op", "tanh", "--law", "1", "--cases", "3", "--seed", "1", "--json", file,
                       "--junit", file)
            self.assertEqual((done.returncode, "would be mixed" in done.stderr), (2, True), done)
            done = run("merge", file, "-o", file, "--junit", file)
            self.assertEqual((done.returncode, "two texts in" in done.stderr), (2, True), done)

    def test_what_is_read_is_no_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "a.pending"))
            os.mkdir(os.path.join(folder, "a.txt"))
            for words in (["merge"], ["report"], ["bench", "diff", folder], ["accept", "--pending"]):
                done = run(*words, folder)
                self.assertEqual(done.returncode, 2, done)
                self.assertRegex(done.stderr, f"{folder}\\S* ?.*cannot be read|cannot read {folder}", words)

    def test_a_corpus_of_odd_files(self):
        """A pipe was waited for, without end."""
        one = ["verify", "--op", "tanh", "--law", "1", "--cases", "3", "--seed", "1", "--corpus"]
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(os.path.join(folder, "pipe.txt"))
            os.mkdir(os.path.join(folder, "folder.txt"))
            done = run(*one, folder, timeout=60)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn("corpus: 2 recorded cases, 2 fail", done.stdout)
            self.assertIn("cannot read " + os.path.join(folder, "pipe.txt"), done.stdout)
            file = os.path.join(folder, "file")
            with open(file, "w", encoding="utf-8"):
                pass
            done = run(*one, file)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertIn(f'--corpus: "{file}" is no folder', done.stderr)

    def test_what_is_rewritten_is_there(self):
        """They said so after all mutants, or exhibits, had been planted."""
        begin = time.monotonic()
        self.assertIn("no file", run("mutate", "--write-laws", "absent.md").stderr)
        self.assertIn("cannot read absent.md", run("museum", "--check", "absent.md").stderr)
        self.assertLess(time.monotonic() - begin, 10)

    def test_a_round_has_an_end(self):
        """One of 10^308 s was not even ended by a signal."""
        done = run("bench", "tanh", "--seconds", "1e308")
        self.assertEqual((done.returncode, "from 1e-09 to 60" in done.stderr), (2, True), done)

    def test_long_sums(self):
        """They took time by the square of their length, then the stack. Nesting has a limit and says so."""
        begin = time.monotonic()
        done = run("explain", "+".join(["x"] * 20000), "--shapes", "x=")
        self.assertEqual(done.returncode, 0, done.stderr[-500:])
        self.assertIn("19999 calls", done.stdout)
        self.assertLess(time.monotonic() - begin, 20)
        for open_, close in (("(", ")"), ("sin(", ")"), ("[", "]"), ("-", "")):
            done = run("explain", open_ * 20000 + "x" + close * 20000, "--shapes", "x=")
            self.assertEqual(done.returncode, 2, open_)
            self.assertIn("expected at most 200 nested expressions", done.stderr)

    def test_a_small_stack_is_told_of(self):
        """It was a crash in whatever came first."""
        def of(kilobytes):
            limit = (kilobytes << 10, resource.getrlimit(resource.RLIMIT_STACK)[1])
            return run("explain", "sin(" * 150 + "x" + ")" * 150, "--shapes", "x=",
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, limit))
        for kilobytes in (64, 256):
            done = of(kilobytes)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(f"limited to {kilobytes} KiB, expected at least 1024", done.stderr)
        self.assertEqual(of(1024).returncode, 0)

    def test_a_small_address_space_is_told_of(self):
        """OpenBLAS asked for memory for good before the program began. Without it there is room enough."""
        done = run("--version", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (150 << 20,) * 2))
        if done.returncode == 0 or "Sanitizer" in done.stderr:
            self.skipTest("its libraries start, or never do")
        self.assertEqual(done.returncode, 2, done)
        self.assertIn("did not start within 10 s, and the address space is limited", done.stderr)

    def test_no_room_for_processes(self):
        """Laws that start threads failed, as if operators were wrong."""
        if os.getuid() or not shutil.which("setpriv") or not readable_by_all(PROGRAM):
            self.skipTest("only root may become somebody whose processes are counted")
        for most in (1, 2, 5):
            done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "prlimit",
                                   f"--nproc={most}", "--", PROGRAM, "verify", "--op", "tanh", "--cases", "1",
                                   "--seed", "1"], capture_output=True, text=True, check=False, cwd="/")
            self.assertEqual(done.returncode, 2, (most, done.stdout[-500:], done.stderr))
            self.assertRegex(done.stderr, r"^lamella verify: verify: \d+ threads or processes could be "
                             r"started, expected 24 for 2 workers \(.*ulimit -u\)\n$")

    def test_tells_version_and_defaults(self):
        self.assertRegex(run("--version").stdout, r"^lamella \d+\.\d+\.\d+\n$")
        shown = run("mutate", "--help").stdout
        self.assertRegex(shown, r"--at-least [^\n]*=0\.97\b")
        self.assertRegex(shown, r"--budget [^\n]*=1000\b")
        for command in re.findall(r"^  (\w+) ", run("--help").stdout, re.MULTILINE):
            done = run(command, "--help")
            self.assertEqual(done.returncode, 0, command)
            self.assertNotIn("=[]", done.stdout, command)

    def test_a_report_of_odd_shape_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            odd = os.path.join(folder, "odd.json")
            for text in ('{"kills": [1]}', '{"checks": 1}', "[{]"):
                with open(odd, "w", encoding="utf-8") as stream:
                    stream.write(text)
                done = run("report", odd, "-o", os.path.join(folder, "page.html"))
                self.assertEqual(done.returncode, 2)
                self.assertIn(odd, done.stderr)

    def test_a_variable_a_word(self):
        done = run("explain", "sin(x)", "--shapes", "x=2 y=3")
        self.assertIn("expected a word for each variable: --shapes x=2x3 y=3", done.stderr)

    def test_mutate_asks_the_law_of_a_number(self):
        """It was accepted, and no law was asked."""
        for law in ("46", "stacks", "compose"):
            done = run("mutate", "--law", law, "--mutant", "tanh.jvp(x)/mul#0:detached", "--verbose")
            self.assertRegex(done.stdout, r"killed +rule +tanh\.jvp", (law, done.stdout, done.stderr))

    def test_findings_outlive_a_missing_folder(self):
        """What is found is printed and written, whatever TMPDIR says; a quote in it is no end of a word."""
        broken = os.path.join(PLUGINS, "my_operator_broken.so")
        with tempfile.TemporaryDirectory() as folder:
            quoted = os.path.join(folder, "it's here")
            os.mkdir(quoted)
            report = os.path.join(folder, "l.json")
            for place, says in [("/nonexistent", "no temporary directory"), (quoted, "compiled and run")]:
                done = run("verify", "--load", broken, "--seed", "1", "--time", "1", "--compile", "1",
                           "--json", report, env={**os.environ, "TMPDIR": place})
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("---- broken_half_square breaks", done.stdout)
                self.assertIn(says, done.stdout)
                with open(report, encoding="utf-8") as stream:
                    self.assertTrue(json.load(stream)["failures"])
                os.remove(report)

    def test_data_go_to_standard_output_alone(self):
        small = ["verify", "--op", "tanh", "--law", "1", "--cases", "3", "--seed", "1"]
        done = run(*small, "--json", "-")
        self.assertEqual(json.loads(done.stdout)["checks"], 3, done.stderr)
        self.assertIn("0 failures", done.stderr)
        self.assertTrue(run(*small, "--junit", "-").stdout.startswith("<?xml"))

    def test_one_law_alone_is_asked_for_no_coverage(self):
        for law in ("52", "matches_reference"):
            done = run("verify", "--law", law, "--time", "2", "--seed", "1", "--json", "-")
            self.assertEqual(done.returncode, 0, done.stderr)
            coverage = json.loads(done.stdout)["coverage"]
            self.assertTrue(coverage and all("missed" not in c for c in coverage.values()))
            self.assertNotIn("at least", done.stderr)

    def test_replays_cases_in_order(self):
        broken = ["verify", "--load", os.path.join(PLUGINS, "my_operator_broken.so")]
        with tempfile.TemporaryDirectory() as folder:
            corpus, report = os.path.join(folder, "corpus"), os.path.join(folder, "report.json")
            run(*broken, "--compile", "0", "--law", "vjp_equals_differences,stacks", "--cases", "20",
                "--seed", "1", "--corpus", corpus, "--json", report)
            with open(report, encoding="utf-8") as file:
                blobs = [f["replay"] for f in json.load(file)["failures"]][:1]
            blobs *= 12   # together longer than a file's name may be
            lines = os.path.join(folder, "blobs.txt")
            with open(lines, "w", encoding="utf-8") as file:
                file.write("\n".join(blobs) + "\n")
            kept = [os.path.join(corpus, name) for name in sorted(os.listdir(corpus))]
            for given in [blobs[0], ",".join(blobs), "@" + lines] + kept:
                done = run(*broken, "--compile", "0", "--replay", given)
                self.assertEqual(done.returncode, 1, (given, done.stderr))
                self.assertRegex(done.stdout, r"^broken_half_square, law \w+: FAILS\n")
            wrong = "LD5.dmpwX2VxdWFsc19kaWZmZXJlbmNlcwBicm9rZW5faGFsZl9zcXVhcmUANAAABSm7iA"
            self.assertIn("a blob of words without what they gave", run(*broken, "--replay", wrong).stderr)

    def test_counts_what_is_drawn(self):
        done = run("verify", "--census", "--seed", "1", "--law", "3,37", "--cases", "4", "--json", "-")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertGreater(json.loads(done.stdout)["census"]["dim negative"], 0)

    def test_progress_on_a_terminal(self):
        try:
            for end in pty.openpty():
                os.close(end)
        except OSError as error:  # a container may have no /dev/pts
            self.skipTest(str(error))
        few = ["--op", "tanh,sign,exp", "--cases", "2", "--most-seconds", "1"]
        for arguments in (["sensitivity", *few, "--target", "0"], ["tolerances", *few],
                          ["museum", "--id", "lanes_squeezed,rank_not_checked", "--cases", "1"]):
            _, out, shown = run_on_terminal(*arguments)
            self.assertRegex(shown, r"1 of \d, \d+ s more: ", (arguments, out))
            self.assertNotIn(" s more", run(*arguments).stderr)
        for term, columns in (("xterm", 40), ("dumb", 40), ("xterm", 20)):
            one = ("verify", "--op", "tanh", "--time", "1", "--seed", "1")
            _, _, shown = run_on_terminal(*one, columns=columns, TERM=term)
            lines = [line.replace("\033[K", "") for line in re.split("[\r\n]", shown)]
            self.assertIn("[", shown)
            self.assertLess(max(map(len, lines)), columns, lines)
            self.assertEqual("\033" in shown, term != "dumb", shown)


class WholeOutput(unittest.TestCase):
    """Where each command writes, and what happens when it cannot."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.report = self.path("run.json")
        done = run("verify", "--op", "tanh", "--cases", "3", "--seed", "1", "--json", self.report)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.writing = [["report", self.report, "-o"], ["merge", self.report, "-o"],
                        ["merge", self.report, "-o", self.path("m.json"), "--junit"],
                        ["ops", "--json"], [*EXHIBIT, "--json"], [*EXHIBIT, "--write"],
                        ["tolerances", "--cases", "1", "--most-seconds", "0.001", "--write"]]

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_keeps_the_old_file_when_the_disk_is_full(self):
        target = self.path("target")

        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

        for arguments in self.writing:
            with open(target, "w", encoding="utf-8") as stream:
                stream.write("old")
            os.chmod(target, 0o640)
            done = run(*arguments, target, preexec_fn=small_files)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertIn("cannot write", done.stderr)
            with open(target, encoding="utf-8") as stream:
                self.assertEqual(stream.read(), "old", arguments)
            self.assertFalse([name for name in os.listdir(self.folder) if name.endswith(".partial")])
        link = self.path("link")
        os.symlink(target, link)
        self.assertEqual(run("ops", "--json", link).returncode, 0)
        with open(target, encoding="utf-8") as stream:
            self.assertTrue(os.path.islink(link) and json.load(stream))
        self.assertEqual(os.stat(target).st_mode & 0o777, 0o640)

    def test_says_when_a_device_is_full(self):
        for arguments in self.writing:
            done = run(*arguments, "/dev/full")
            self.assertEqual((done.returncode, "cannot write" in done.stderr), (2, True), arguments)
        listings = [["ops"], ["ops", "--json", "-"], ["--help"], ["--version"], ["verify", "--list"],
                    ["verify", "--help"], ["mutate", "--list", "--op", "tanh"], ["doctor"], EXHIBIT,
                    ["explain", "sin(x)", "--shapes", "x=3"], ["report", self.report, "-o", "-"],
                    ["merge", self.report]]
        for arguments in listings:
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = run(*arguments, capture_output=False, stdout=full, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, "cannot write" in done.stderr), (2, True), arguments)

    def test_says_when_standard_output_is_closed(self):
        """Data for `-` went to stderr with status 0."""
        one = ["verify", "--op", "tanh", "--law", "1", "--cases", "3", "--seed", "1"]
        for arguments in ([*one, "--json", "-"], [*one, "--junit", "-"], one, ["ops"], ["ops", "--json", "-"],
                          ["--version"], [*EXHIBIT, "--json", "-"], ["report", self.report, "-o", "-"],
                          ["mutate", "--op", "tanh", "--sample", "1", "--json", "-"],
                          ["bench", "tanh", "--sizes", "8", "--laws", "0", "--rounds", "1", "--json", "-"]):
            done = run(*arguments, capture_output=False, stderr=subprocess.PIPE,
                       preexec_fn=lambda: os.close(1))
            self.assertEqual((done.returncode, "cannot write" in done.stderr), (2, True), arguments)
            self.assertNotIn('"checks"', done.stderr)

    def test_corpus(self):
        broken = ["verify", "--load", os.path.join(PLUGINS, "my_operator_broken.so"), "--cases", "20",
                  "--seed", "1", "--corpus", self.path("corpus")]
        self.assertEqual(run(*broken).returncode, 1)
        kept = os.listdir(self.path("corpus"))
        self.assertTrue(kept and all(name.endswith(".txt") for name in kept), kept)
        one = os.path.join(self.path("corpus"), sorted(kept)[0])
        with open(one, "a", encoding="utf-8") as stream:
            stream.write("# by hand\n")
        self.assertEqual(run(*broken).returncode, 1)
        with open(one, encoding="utf-8") as stream:
            self.assertTrue(stream.read().endswith("# by hand\n"), "a new failure took its place")
        self.assertEqual(sorted([*kept, os.path.basename(one)[:-4] + "-2.txt"]),
                         sorted(os.listdir(self.path("corpus"))))

    def test_a_report_that_cannot_be_written_alone_is_lost(self):
        broken = ["verify", "--load", os.path.join(PLUGINS, "my_operator_broken.so"), "--cases", "20",
                  "--seed", "1", "--compile", "0", "--law", "stacks"]
        done = run(*broken, "--json", "/dev/full", "--junit", self.path("j.xml"), "--corpus",
                   self.path("corpus"))
        self.assertEqual((done.returncode, "cannot write" in done.stderr), (2, True), done)
        self.assertTrue(os.path.exists(self.path("j.xml")) and os.listdir(self.path("corpus")))


if __name__ == "__main__":
    PROGRAM, PLUGINS = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    unittest.main()
