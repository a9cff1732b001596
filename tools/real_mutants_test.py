#!/usr/bin/env python3
"""Shows that kept verdicts on mutants/real are those of the same bug, sources and question."""
import os
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from real_mutants import Results  # noqa: E402


def mutant(text="one"):
    return types.SimpleNamespace(id="one", room="core", breaks="all", digest=text)


class Verdicts(unittest.TestCase):
    def results(self, sources="a", **changes):
        options = {"shard": "0/1", "json": self.file, "time": 2, "law": [], "verify_seed": 1, **changes}
        return Results(types.SimpleNamespace(**options), sources)

    def test_they_are_kept_for_the_same_question(self):
        with tempfile.TemporaryDirectory() as folder:
            self.file = os.path.join(folder, "real.json")
            self.results().put(mutant(), verdict="verify")
            self.assertEqual(self.results().of(mutant())["verdict"], "verify")
            self.assertIsNone(self.results().of(mutant("another text")))
            for others in ({"sources": "b"}, {"time": 3}, {"law": ["views_share"]}, {"verify_seed": 2}):
                self.assertIsNone(self.results(**others).of(mutant()), others)


if __name__ == "__main__":
    unittest.main()
