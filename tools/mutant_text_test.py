#!/usr/bin/env python3
"""Shows that the bugs of mutants/real are put where their text is, and nowhere else."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mutant_text import Misfit, Mutant, load  # noqa: E402

HEAD = "id: one\nroom: core\nclass: values\nissue: kind: a sign\nbreaks: the sum has the wrong sign\n"
SOURCE = "int a = 1;\n\nint f() {\n  return a + b;\n}\nint g() {\n  return a;\n}\n"


def change(old, new, file="core/a.cpp"):
    return f"file: {file}\nold:\n{old}\nnew:\n{new}\nend:\n"


def applied(text, sources=None):
    def read(path):
        sources_now = {"core/a.cpp": SOURCE} if sources is None else sources
        if path not in sources_now:
            raise FileNotFoundError(path)
        return sources_now[path]
    return Mutant(text, "one").apply(read)


class MutantText(unittest.TestCase):
    def refuses(self, text, words, **options):
        with self.assertRaises(Misfit) as caught:
            applied(text, **options)
        self.assertIn(words, str(caught.exception))

    def test_text_that_stands_once(self):
        self.assertEqual(applied(HEAD + change("a + b", "a - b")),
                         {"core/a.cpp": SOURCE.replace("a + b", "a - b")})

    def test_several_lines_and_their_ends(self):
        self.assertEqual(applied(HEAD + change("int a = 1;\n\n", ""))["core/a.cpp"],
                         SOURCE.removeprefix("int a = 1;\n\n"))
        self.assertEqual(applied(HEAD + change("  return a;\n}", "  return 0;\n}"))["core/a.cpp"],
                         SOURCE.replace("return a;", "return 0;"))

    def test_missing(self):
        self.refuses(HEAD + change("a * b", "a - b"), "0 times")
        self.refuses(HEAD + change("a + b", "a - b", "core/b.cpp"), "there is no core/b.cpp")
        self.refuses(HEAD + change("", "a - b"), "0 times")

    def test_ambiguous(self):
        self.refuses(HEAD + change("return a", "return b"), "2 times")

    def test_same(self):
        self.refuses(HEAD + change("a + b", "a + b"), "the same text")

    def test_changes_follow_each_other(self):
        two = change("a + b", "a - b") + change("a - b", "b - a")
        self.assertEqual(applied(HEAD + two)["core/a.cpp"], SOURCE.replace("a + b", "b - a"))
        texts = applied(HEAD + change("x", "y", "core/x.h") + change("z", "", "core/z.cpp"),
                        sources={"core/x.h": "x", "core/z.cpp": "z"})
        self.assertEqual(texts, {"core/x.h": "y", "core/z.cpp": ""})

    def test_marks_within_a_text(self):
        self.assertEqual(applied(HEAD + change("one: old:", "new:"), sources={"core/a.cpp": "one: old:\n"}),
                         {"core/a.cpp": "new:\n"})

    def test_keys(self):
        self.refuses(HEAD.rpartition("breaks")[0] + change("a + b", "b"), "no breaks")
        self.refuses(HEAD + "room: ops\n" + change("a + b", "b"), "each once")
        self.refuses(HEAD + "why: so\n" + change("a + b", "b"), "is not one of")
        self.refuses(HEAD.replace("values", "odd") + change("a + b", "b"), "its class is odd")
        self.refuses(HEAD.replace("one", "two") + change("a + b", "b"), "its id is two")
        self.refuses(HEAD + change("a + b", "b") + "more\n", "nothing between")
        self.refuses(HEAD, "changes nothing")
        self.assertEqual(applied(HEAD + "dropped: f is no more\n"), {})

    def test_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {"one.txt": HEAD + change("a", "b"), "two.txt": "", "notes.md": ""}.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(text)
            mutants, wrong = load(folder)
        self.assertEqual(list(mutants), ["one"])
        self.assertEqual(len(wrong), 2)


if __name__ == "__main__":
    unittest.main()
