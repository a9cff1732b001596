#!/usr/bin/env python3
"""Shows that kept verdicts on mutants/real are those of the same bug, sources and question."""
import json
import os
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from real_mutants import Results, checks_to_kill, page, record, tally  # noqa: E402


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


class ChecksToKill(unittest.TestCase):
    """How long laws took is told of all, by room, and of each bug."""

    def setUp(self):
        rows = [("a", "core", 10), ("b", "core", 30), ("c", "vmap", 5000), ("d", "vmap", 0)]
        self.mutants = [types.SimpleNamespace(id=i, room=room, breaks="all",
                                              keys={"room": room, "class": "sizes", "issue": "kind"})
                        for i, room, _ in rows]
        self.results = {i: {"verdict": "verify" if n else "survives", "laws": ["stacks"] if n else [],
                            "checks": n} for i, _, n in rows}
        self.options = types.SimpleNamespace(time=15, verify_seed=1, law=[])
        self.asked = ["a", 15, [], 1]

    def of(self, mutant):
        return self.results[mutant.id]

    def test_quantiles(self):
        self.assertIsNone(checks_to_kill([{"verdict": "survives"}]))
        self.assertEqual(checks_to_kill([{"checks": n} for n in range(1, 101)]), (51, 96))

    def test_rooms(self):
        lines = tally(self.mutants, self, "room")[0]
        self.assertEqual([line.split()[-2:] for line in lines[1:]],
                         [["30", "30"], ["5000", "5000"], ["30", "5000"]])

    def test_each_bug_is_recorded(self):
        self.assertIn("| 5000 |", page(self.mutants, self, self.options))
        kept = json.loads(record(self.mutants, self, self.options))
        self.assertEqual({i: r["checks"] for i, r in kept["mutants"].items()},
                         {"a": 10, "b": 30, "c": 5000, "d": 0})

    def test_a_later_run_goes_on_from_the_record(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch(
                "real_mutants.KEPT", os.path.join(folder, "kept.json")) as kept:
            with open(kept, "w", encoding="utf-8") as f:
                f.write(record(self.mutants, self, self.options))
            options = types.SimpleNamespace(shard="0/1", json=os.path.join(folder, "real.json"), time=15,
                                            law=[], verify_seed=1)
            self.assertEqual({i: r["verdict"] for i, r in Results(options, "a").kept.items()},
                             {i: r["verdict"] for i, r in self.results.items()})
            self.assertEqual(Results(options, "of other sources").kept, {})


if __name__ == "__main__":
    unittest.main()
