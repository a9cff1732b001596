#!/usr/bin/env python3
"""`lamella accept` as users call it: dry runs, answers, refusals. usage: accept_test.py PROGRAM"""
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
SOURCE = 'int a;  // it\'s\n  EXPECT_INLINE(f(), "old");\n  EXPECT_INLINE(g(), "second");\nint z;\n'


def fnv(text):
    value = 0xCBF29CE484222325
    for byte in text:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def record(source, path, line, expected, got, test="Suite.test"):
    fields = [("test", test), ("file", path), ("line", str(line)), ("source_hash", str(fnv(source.encode())))]
    fields += [("expected", expected), ("got", got)]
    return "".join(f"{name} {len(value.encode())}\n{value}\n" for name, value in fields)


class Accept(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "test.cpp")
        with open(self.path, "w", encoding="utf-8") as out:
            out.write(SOURCE)
        os.chmod(self.path, 0o640)

    def pend(self, name, *records):
        with open(os.path.join(self.folder.name, name + ".pending"), "w", encoding="utf-8") as out:
            out.write("".join(records))

    def run_it(self, *options, answers=""):
        command = [PROGRAM, "accept", "--pending", self.folder.name, *options]
        done = subprocess.run(command, input=answers, capture_output=True, text=True, check=False)
        with open(self.path, encoding="utf-8") as stream:
            return done.returncode, stream.read(), done.stdout + done.stderr

    def pending(self):
        return sorted(name for name in os.listdir(self.folder.name) if name.endswith(".pending"))

    def two(self):
        self.pend("a", record(SOURCE, self.path, 2, "old", "new\ntext"))
        self.pend("b", record(SOURCE, self.path, 3, "second", "better"))

    def test_nothing_pending(self):
        status, text, said = self.run_it()
        self.assertEqual((status, text), (0, SOURCE))
        self.assertIn("0 accepted, 0 refused, 0 skipped", said)

    def test_a_dry_run_changes_nothing(self):
        self.two()
        status, text, said = self.run_it("--dry-run")
        self.assertEqual((status, text, self.pending()), (0, SOURCE, ["a.pending", "b.pending"]))
        self.assertIn("- old\n+ new\n+ text\n", said)
        self.assertIn("2 would be accepted", said)

    def test_accepts_all_then_nothing(self):
        self.two()
        status, text, said = self.run_it()
        wanted = SOURCE.replace('"old"', 'R"(\n      new\n      text)"').replace('"second"', 'R"(better)"')
        self.assertEqual((status, text, self.pending()), (0, wanted, []))
        self.assertIn("2 accepted", said)
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o640)
        self.assertEqual(self.run_it()[:2], (0, wanted))

    def test_interactive(self):
        self.two()
        status, text, said = self.run_it("--interactive", answers="what\nn\ny\n")
        self.assertEqual((status, text), (0, SOURCE.replace('"second"', 'R"(better)"')))
        self.assertEqual(self.pending(), ["a.pending"])
        self.assertIn("1 accepted, 0 refused, 1 skipped", said)
        status, text, said = self.run_it()  # its source is another one now
        self.assertEqual(status, 1)
        self.assertIn("run it again", said)

    def test_quitting_keeps_the_rest(self):
        self.two()
        status, text, _ = self.run_it("--interactive", answers="q\n")
        self.assertEqual((status, text, self.pending()), (0, SOURCE, ["a.pending", "b.pending"]))
        self.assertEqual(self.run_it("--interactive", answers="")[1], SOURCE)

    def test_runs_that_disagree(self):
        self.pend("a", record(SOURCE, self.path, 2, "old", "one"))
        self.pend("b", record(SOURCE, self.path, 2, "old", "two", "Suite.other"))
        status, text, said = self.run_it()
        self.assertEqual((status, text, self.pending()), (1, SOURCE, ["a.pending", "b.pending"]))
        for part in ("disagree", "+ one", "+ two", "Suite.test", "Suite.other"):
            self.assertIn(part, said)

    def test_a_source_that_changed_or_went(self):
        self.pend("a", record(SOURCE + " ", self.path, 2, "old", "new"))
        self.pend("b", record(SOURCE, self.path + ".gone", 2, "old", "new"))
        status, text, said = self.run_it()
        self.assertEqual((status, text), (1, SOURCE))
        self.assertIn("0 accepted, 2 refused", said)
        self.assertEqual(said.count("run it again"), 2)

    def page(self, *names):
        return os.path.join(self.folder.name, *names)

    def pages(self):
        found = {}
        for folder, _, names in os.walk(self.folder.name):
            for name in names:
                if name.endswith(".txt"):
                    with open(os.path.join(folder, name), encoding="utf-8") as stream:
                        found[name] = stream.read()
        return found

    def pend_pages(self):
        """One that differs, one that is not there, one that should not be."""
        for name, text in (("old", "a\nb\n"), ("stale", "gone\n")):
            with open(self.page(name + ".txt"), "w", encoding="utf-8") as out:
                out.write(text)
        old, new, stale = self.page("old.txt"), self.page("ops", "new.txt"), self.page("stale.txt")
        self.pend("a", record("a\nb\n", old, 0, "a\nb\n", "a\nc\n"), record("", new, 0, "", "new\n"))
        self.pend("b", record("gone\n", stale, 0, "gone\n", ""))

    def test_whole_files(self):
        self.pend_pages()
        status, _, said = self.run_it("--dry-run")
        self.assertEqual((status, self.pages()), (0, {"old.txt": "a\nb\n", "stale.txt": "gone\n"}))
        for part in ("- b\n+ c\n", "new.txt (new)", "stale.txt (to be removed)", "3 would be accepted"):
            self.assertIn(part, said)
        status, text, said = self.run_it()
        self.assertEqual((status, text), (0, SOURCE))
        self.assertEqual(self.pages(), {"old.txt": "a\nc\n", "new.txt": "new\n"})
        self.assertIn("3 accepted", said)

    def test_whole_files_that_changed_or_disagree(self):
        self.pend_pages()
        with open(self.page("stale.txt"), "a", encoding="utf-8") as out:
            out.write("again\n")
        self.pend("c", record("a\nb\n", self.page("old.txt"), 0, "a\nb\n", "a\nd\n", "Suite.other"))
        status, _, said = self.run_it()
        self.assertEqual(status, 1)
        wanted = {"old.txt": "a\nb\n", "new.txt": "new\n", "stale.txt": "gone\nagain\n"}
        self.assertEqual(self.pages(), wanted)
        for part in ("1 accepted, 3 refused", "runs of this file disagree", "the file has changed"):
            self.assertIn(part, said)

    def test_a_broken_record(self):
        self.pend("a", record(SOURCE, self.path, 2, "old", "new")[:-3])
        status, text, said = self.run_it()
        self.assertEqual((status, text), (2, SOURCE))
        self.assertIn("pending record", said)


if __name__ == "__main__":
    unittest.main()
