#!/usr/bin/env python3
"""Holds the typed API that the build wrote to the operator table, and its writer to what rows may look like.

usage: typed_api_test.py LAMELLA WRITER BUILD_FOLDER
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

LAMELLA = WRITER = BUILD = ""
ROW = '{.schema = "half(Tensor x, *, float by=2) -> Tensor", .properties = kNoInPlace, .doc = "x / by."}'


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=100)


def differences(typed, table):
    """Each line that one has and the other has not: of the API's lists, and of the table."""
    return sorted([f"only in the typed API: {line}" for line in set(typed) - set(table)]
                  + [f"only in the table: {line}" for line in set(table) - set(typed)])


def lists():
    lines = []
    for path in sorted(glob.glob(os.path.join(BUILD, "ops", "typed_api", "*.txt"))):
        with open(path, encoding="utf-8") as stream:
            lines += stream.read().splitlines()
    return lines


class Table(unittest.TestCase):
    def setUp(self):
        done = run(LAMELLA, "ops", "--typed")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.table = done.stdout.splitlines()

    def test_every_schema_form_flag_and_doc_is_that_of_the_table(self):
        self.assertGreater(len(self.table), 200)
        self.assertEqual(differences(lists(), self.table), [])

    def test_a_planted_difference_is_told(self):
        """A function that is missing or too many, another default, flag or doc: each of them in each line."""
        typed = lists()
        for at, line in enumerate(typed):
            schema, numbers, doc = line.split("\t")
            other = {"numbers": "tensors", "tensors": "numbers"}[numbers]
            for changed in ([], [line, schema.replace("(", "_too(", 1) + f"\t{numbers}\t{doc}"],
                            [schema.replace("Tensor ", "Tensor? ", 1) + f" \t{numbers}\t{doc}"],
                            [f"{schema}\t{other}\t{doc}"], [f"{schema}\t{numbers}\t{doc} Or not."]):
                self.assertTrue(differences(typed[:at] + changed + typed[at + 1:], self.table), changed)


class Writer(unittest.TestCase):
    def written(self, text, fails=False):
        """(list, header, source) of a family whose preprocessed text this is; what is said if it fails."""
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("f.i", "f.h", "f.cpp")]
            with open(paths[0], "w", encoding="utf-8") as stream:
                stream.write(text)
            done = run(WRITER, "f", "ops/f.cpp", *paths)
            self.assertEqual(done.returncode != 0, fails, done.stderr)
            if fails:
                return done.stderr
            out = []
            for path in (os.path.join(folder, "f.txt"), *paths[1:]):
                with open(path, encoding="utf-8") as stream:
                    out.append(stream.read())
            return out

    def schemas(self, rows):
        return [line.split("\t")[0] for line in self.written('# 1 "ops/f.cpp"\n' + rows)[0].splitlines()]

    def test_rows_are_read_as_the_compiler_reads_them(self):
        half = ["half(Tensor x, *, float by=2) -> Tensor",
                "half_out(Tensor(a!) out, Tensor x, *, float by=2) -> Tensor(a!)"]
        self.assertEqual(self.schemas(f"add({ROW});"), half)
        apart = ('a({.schema = "half(Tensor x, " \n R"s(*, float)s" " by=2) -> Tensor",\n'
                 '.properties = kLinear | kNoInPlace, .doc = "d"});')
        self.assertEqual(self.schemas(apart), half)
        for between in ('"add({.schema = \\"no(Tensor x) -> Tensor\\"})";', "'\"';", "x = 1'000 + '{';"):
            self.assertEqual(self.schemas(f"{between} add({ROW});"), half)
        nested = ROW.replace(".doc", '.batch = [](B& b) { return f({.doc = "no", .schema = b}); }, .doc')
        self.assertEqual(self.schemas(f"add({nested});"), half)

    def test_fields_are_those_of_the_row_itself(self):
        flagged = ROW.replace("kNoInPlace", "kNoInPlace | kNoOut")
        self.assertEqual(len(self.schemas(f"a({ROW}); b({flagged});")), 3)
        self.assertEqual(len(self.schemas(f"a({flagged}); b({ROW.replace('half', 'third')});")), 3)

    def test_what_headers_hold_is_not_the_family_s(self):
        text = f'# 1 "other.h"\nadd({ROW});\n# 9 "ops/f.cpp" 2\nadd({ROW.replace("half", "own")});\n'
        self.assertEqual({line.split("(")[0] for line in self.written(text)[0].splitlines()},
                         {"own", "own_out"})

    def test_what_cannot_be_understood_is_refused(self):
        self.assertIn("no row with a schema", self.written('# 1 "ops/f.cpp"\nint x;', fails=True))
        bad = ROW.replace("float by", "real by")
        self.assertIn('a type, not "real"', self.written(f'# 1 "ops/f.cpp"\nadd({bad});', fails=True))

    def test_docs_say_shapes_and_dtypes(self):
        """Of each operator, and nothing that only its parts would say."""
        found = 0
        for path in glob.glob(os.path.join(BUILD, "include/ops/lamella/ops/functions/*.h")):
            with open(path, encoding="utf-8") as stream:
                docs = re.findall(r"((?:^///.*\n)+)", stream.read(), re.M)
            for doc in docs:
                if "which it returns" in doc or "Errors besides" not in doc and "Shapes" not in doc:
                    continue  # of a form, or of the file
                found += 1
                self.assertIn("/// Shapes: ", doc, path)
                self.assertIn("/// Dtypes: ", doc, path)
                self.assertNotIn("as the operators that it is composed of", doc, path)
        self.assertGreater(found, 100)

    def test_functions_have_docs_and_short_lines(self):
        for path in glob.glob(os.path.join(BUILD, "include/ops/lamella/ops/functions/*.h")):
            with open(path, encoding="utf-8") as stream:
                lines = stream.read().splitlines()
            for before, line in zip(lines, lines[1:]):
                self.assertLessEqual(len(line), 110, path)
                if line.startswith(("Tensor", "const Tensor& ", "std::array", "void ")):
                    self.assertTrue(before.startswith("///"), f"{path}: {line}")


if __name__ == "__main__":
    LAMELLA, WRITER, BUILD = sys.argv[1:4]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
