#!/usr/bin/env python3
"""Shows that shards are the whole, and that merge, JUnit XML and the page say what the JSON says.

usage: report_test.py PROGRAM  (browser_test.py shows the page in a browser)
"""
import copy
import html.parser
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

PROGRAM, FOLDER = "", ""
CHOICE = ["--op", "tanh,add,sum,where"]
TRANSFORMS = ("vmap", "grad", "vjp", "jvp")
NASTY = "<b>&amp; \"q\" 'a' ]]> \x00\x01\x1b\x7f\ufffe é😀\n\ttab </pre><script>bad()</script>"
VOID = {"meta", "br", "hr", "img", "link"}


def path_of(name):
    return os.path.join(FOLDER, name)


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, errors="replace")


def verify(name, *options, cases="16", seed="7", choice=CHOICE):
    done = run("verify", *choice, "--seed", seed, "--cases", cases, "--json", path_of(name), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(path_of(name), encoding="utf-8") as stream:
        return json.load(stream)


def save(name, value):
    with open(path_of(name), "w", encoding="utf-8") as stream:
        json.dump(value, stream)
    return path_of(name)


def load(name):
    with open(path_of(name), encoding="utf-8") as stream:
        return json.load(stream)


def pairs(report):
    return {(op, law) for op, cells in report["operators"].items() for law in cells}


def counted(report):
    """What depends on seed and --cases alone."""
    keys = ("cases", "failures", "discards", "deep")
    cells = {(op, law): [*(cell[key] for key in keys), cell.get("strata")]
             for op, of_op in report["operators"].items() for law, cell in of_op.items()}
    for of_op in report["coverage"].values():
        of_op["required"].sort(key=lambda r: r["what"])
    return cells, report["coverage"]


def with_failures(report):
    """A failure whose text has every kind of byte that JSON can carry, and a gap."""
    broken = copy.deepcopy(report)
    op, law = sorted(pairs(report))[0]
    broken["operators"][op][law].update(cases=9, failures=2)
    broken["failures"] = [{"operator": op, "law": law, "message": NASTY, "program": NASTY}]
    gap = sorted(pairs(report))[1]
    broken["operators"][gap[0]][gap[1]].update(cases=0, strata={})
    return broken, (op, law), gap


def spelled(text):
    """What XML and HTML cannot hold is shown byte by byte."""
    return re.sub("[\x00-\x08\x0b-\x1f\x7f\ufffe]",
                  lambda m: "".join(f"\\x{b:02x}" for b in m.group().encode()), text)


def coverage(cases, ties, missed):
    return {"tanh": {"cases": cases, "features": {"ties": ties}, "missed": missed,
                     "required": [{"what": "ties", "hits": ties, "cases": cases, "share": 0.05}]}}


class Page(html.parser.HTMLParser):
    """Complains about tags that do not nest; collects text by element."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.wrong, self.tags, self.texts, self.outside = [], [], {}, {}, []
        self.feed(text)
        self.close()
        self.wrong += self.open

    def handle_starttag(self, tag, attrs):
        self.tags.setdefault(tag, []).append(dict(attrs))
        self.texts.setdefault(tag, []).append("")
        self.outside += [value for key, value in attrs if key in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]][-1] += data


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.whole = verify("whole.json", "--processes", "1")
        cls.shards = [verify(f"shard{i}.json", "--shard", f"{i}/3") for i in range(3)]

    def merge(self, *names, output="merged.json", options=(), status=0, says="^"):
        done = run("merge", *map(path_of, names), "-o", path_of(output), *options)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertRegex(done.stderr, says)
        return load(output)

    def refuses(self, what, *names):
        done = run("merge", *map(path_of, names), "-o", path_of("refused.json"))
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertRegex(done.stderr, what)

    def test_schema(self):
        for report in [self.whole, *self.shards]:
            cells = [cell for of_op in report["operators"].values() for cell in of_op.values()]
            self.assertEqual(report["checks"], sum(cell["cases"] for cell in cells))
            self.assertEqual((report["seed"], report["failures"]), (7, []))
            laws = {law["id"] for law in report["laws"]}
            self.assertTrue(laws.issuperset(law for _, law in pairs(report)))
            for cell in cells:
                self.assertTrue({"cases", "failures", "per_second", "discards", "seconds"} <= cell.keys())
                strata = cell.get("strata", {})
                self.assertEqual(cell["cases"], sum(n for s in strata.values() for n in s.values()))

    def test_strata_are_told_apart(self):
        dtypes, stacks = set(), set()
        for cells in self.whole["operators"].values():
            for cell in cells.values():
                dtypes.update(cell.get("strata", {}))
                stacks.update(s for of_dtype in cell.get("strata", {}).values() for s in of_dtype)
        self.assertGreater(len(dtypes), 6)
        self.assertIn("none", stacks)

    def test_stacks_are_named(self):
        """Each transform is seen inside and outside of each other one, grad inside of grad too."""
        choice = ["--op", "add,matmul,maximum", "--law", "stacks", "--depth", "3"]
        report = verify("stacks.json", choice=choice, cases="150")
        nested = set()
        for cells in report["operators"].values():
            for of_dtype in cells["stacks"]["strata"].values():
                for names in (s.replace(")", "").split("(") for s in of_dtype if s != "none"):
                    self.assertLessEqual(set(names), set(TRANSFORMS))
                    nested.update(itertools.combinations(names, 2))
        self.assertEqual(nested, set(itertools.product(TRANSFORMS, repeat=2)))

    def test_shards_are_the_whole(self):
        parts = [pairs(s) for s in self.shards]
        self.assertEqual(set().union(*parts), pairs(self.whole))
        self.assertEqual(sum(map(len, parts)), len(pairs(self.whole)))
        self.assertTrue(all(parts))
        again = verify("again.json", "--shard", "1/3", cases="3", seed="8")
        self.assertEqual(pairs(again), parts[1])

    def test_counts_are_reproducible(self):
        cells, _ = whole = counted(self.whole)
        self.assertEqual({cases + discards for cases, _, discards, *_ in cells.values()}, {16})
        self.assertEqual(counted(self.merge("shard0.json", "shard1.json", "shard2.json")), whole)
        self.assertEqual(counted(verify("many.json", "--processes", "3")), whole)
        few = verify("few.json", "--processes", "3", cases="2")
        self.assertEqual({c["cases"] + c["discards"] for of_op in few["operators"].values()
                          for c in of_op.values()}, {2})

    def test_bad_shards(self):
        for shard in ("3/3", "-1/3", "1", "1/0", "1/3x", "a/b", ""):
            done = run("verify", *CHOICE, "--seed", "7", f"--shard={shard}")
            self.assertEqual(done.returncode, 2, shard)
        self.assertEqual(run("verify", "--op", "tanh", "--shard", "0/2").returncode, 2)  # no seed

    def test_merge(self):
        merged = self.merge("shard0.json", "shard1.json", "shard2.json")
        self.assertEqual(pairs(merged), pairs(self.whole))
        self.assertEqual(merged["checks"], sum(s["checks"] for s in self.shards))
        self.assertEqual(merged["shard"], {"of": 3, "parts": [0, 1, 2]})
        for shard in self.shards:
            for op, cells in shard["operators"].items():
                for law, cell in cells.items():
                    self.assertEqual(merged["operators"][op][law], cell)
        rate = merged["rate"]
        self.assertAlmostEqual(rate["per_second"], merged["checks"] / rate["seconds"], delta=1)
        self.assertEqual(self.merge("merged.json", output="twice.json"), merged)
        self.assertEqual(self.merge("shard2.json", "shard0.json", "shard1.json", output="other.json"), merged)
        self.merge("shard2.json", "shard1.json", output="some.json", options=["--partial"])
        self.assertEqual(self.merge("some.json", "shard0.json", output="other.json"), merged)

    def test_merged_failures_come_simplest_first(self):
        """By name, the cause stood below what follows from it."""
        op, law = sorted(pairs(self.whole))[0]
        deep, long, short = ({"operator": op, "law": law, "message": name, "program": text, "depth": depth}
                             for name, text, depth in (("a", "x", 2), ("b", "xyz", 0), ("c", "xy", 0)))
        for k, failures in enumerate(([deep, long], [short], [])):
            save(f"part{k}.json", {**self.shards[k], "failures": failures})
        merged = self.merge("part0.json", "part1.json", "part2.json", status=1)
        self.assertEqual([f["message"] for f in merged["failures"]], ["c", "b", "a"])

    def test_failures_alike_are_ordered_by_law(self):
        """By law, operator and case, whatever part they are of and whatever shrinking took."""
        ops, laws = sorted({op for op, _ in pairs(self.whole)}), sorted({law for _, law in pairs(self.whole)})
        wanted = [(law, op, case) for law in laws[:2] for op in ops[:2] for case in (9, 10)]
        failures = [{"operator": op, "law": law, "message": "m", "program": "p", "depth": 0, "case": case,
                     "checks": 100 - place} for place, (law, op, case) in enumerate(wanted)]
        for turn in (failures, failures[::-1], failures[3:] + failures[:3]):
            for k in range(3):
                save(f"part{k}.json", {**self.shards[k], "failures": turn[k::3]})
            merged = self.merge("part0.json", "part1.json", "part2.json", status=1)
            self.assertEqual([(f["law"], f["operator"], f["case"]) for f in merged["failures"]], wanted)

    def test_merge_adds_coverage(self):
        """What none misses for want of cases, the sum may; what one misses, the sum may have."""
        for cases, hits, before, missed in ((150, 0, [], ["ties"]), (1000, 200, ["ties"], [])):
            for k in range(3):
                part = coverage(cases, hits if k else 0, before if k == 0 else [])
                save(f"part{k}.json", {**self.shards[k], "coverage": part})
            merged = self.merge("part0.json", "part1.json", "part2.json", status=1 if missed else 0,
                                says="do not cover.*\n.*tanh: ties" if missed else "^$")["coverage"]
            self.assertEqual(merged, coverage(3 * cases, 2 * hits, missed))

    def test_incomplete_merges_fail(self):
        two, three = ["shard0.json", "shard2.json"], ["shard0.json", "stopped.json", "shard2.json"]
        self.merge(*two, status=1, says="incomplete: 1 of 3 shards are missing")
        self.merge(*two, options=["--partial"], says="incomplete: 1 of 3 shards are missing")
        save("stopped.json", {**self.shards[1], "interrupted": True})
        merged = self.merge(*three, status=1, says="stopped.json: this run was interrupted")
        self.assertIs(merged["interrupted"], True)
        self.merge(*three, options=["--partial"])
        self.assertEqual(run("merge", path_of("whole.json"), "--junit", "-").returncode, 2)

    def test_merge_refuses(self):
        self.refuses("counted twice", "shard0.json", "shard0.json")
        self.refuses("of 1 shards", "whole.json", "shard0.json")
        for key, value in (("seed", 8), ("version", "0.0.0"), ("depth", 1), ("cases", 3)):
            save("other.json", {**self.shards[1], key: value})
            self.refuses(f"has .*{key}.*other.json has", "shard0.json", "other.json")
        save("other.json", {**self.shards[1], "operators": {"tanh": {"value": {"cases": -1}}}})
        self.refuses("no counts", "shard0.json", "other.json")
        save("other.json", [1])
        self.refuses("no JSON object", "other.json")
        with open(path_of("other.json"), "wb") as stream:
            stream.write(b'{"seed": "\xff"}')
        self.refuses("UTF-8", "other.json")
        self.refuses("cannot be read", "absent.json")

    def test_junit(self):
        broken, failing, gap = with_failures(self.whole)
        save("broken.json", broken)
        done = run("merge", path_of("broken.json"), "-o", path_of("same.json"),
                   "--junit", path_of("junit.xml"))
        self.assertEqual(done.returncode, 1, done.stderr)
        root = xml.parse(path_of("junit.xml")).getroot()
        cases = {(c.get("classname").removeprefix("lamella."), c.get("name")): c
                 for c in root.iter("testcase")}
        self.assertEqual(set(cases), pairs(self.whole))
        self.assertEqual(root.get("tests"), str(len(cases)))
        self.assertEqual(root.get("failures"), "1")
        failures = [pair for pair, c in cases.items() if c.find("failure") is not None]
        self.assertEqual(failures, [failing])
        failure = cases[failing].find("failure")
        self.assertIn(spelled(NASTY), failure.text)
        self.assertIn(spelled(NASTY), failure.get("message"))
        self.assertIn(gap, [pair for pair, c in cases.items() if c.find("skipped") is not None])
        done = run("verify", "--op", "tanh", "--law", "1", "--time", "0.1", "--seed", "1", "--junit",
                   path_of("small.xml"))
        self.assertEqual(len(list(xml.parse(path_of("small.xml")).getroot().iter("testcase"))), 1)

    def test_page(self):
        broken, failing, gap = with_failures(self.whole)
        broken["coverage"] = coverage(30, 3, ["ties"])
        save("broken.json", broken)
        mutants = {"mutants": 2, "killed": 1, "idle_laws": [],
                   "checks_to_kill": {"all": {"mutants": 2, "median": 3, "p95": 81234},
                                      "rule": {"mutants": 1, "median": 3, "p95": 3}},
                   "survivors": [{"id": "x:tanh", "reason": NASTY}],
                   "kills": [{"id": "y:add", "group": "rule", "laws": ["vjp_transposes_jvp"]},
                             {"id": "z:add", "group": "batch", "laws": [{"law": "numeric", "cases": 3}]}]}
        save("mutants.json", mutants)
        done = run("report", path_of("broken.json"), path_of("mutants.json"), "-o", path_of("report.html"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path_of("report.html"), encoding="utf-8") as stream:
            text = stream.read()
        page = Page(text)
        self.assertEqual((page.wrong, page.outside), ([], []))
        self.assertNotRegex(text, r"https?://|@import|url\(")
        self.assertEqual(len(page.tags["script"]), 1)
        self.assertIn(spelled(NASTY), page.texts["pre"])
        self.assertIn("81234", page.texts["td"])
        looks = [(cell.get("class"), cell.get("title", "")) for cell in page.tags["td"]]
        failed = [title for look, title in looks if look == "bad"]
        self.assertTrue(failed[0].startswith(f"{failing[0]}, {failing[1]}: 9 cases, 2 failed"), failed)
        gaps = [title for look, title in looks if look == "gap"]
        self.assertEqual([t.split(":")[0] for t in gaps],
                         [f"{op}, {law}" for op, law in sorted(pairs(broken))
                          if not broken["operators"][op][law]["cases"]])
        self.assertIn(gap, pairs(broken))
        for name in ("failures", "laws", "gaps", "rates", "operators-dtypes", "dtypes-stacks", "coverage",
                     "mutants"):
            self.assertIn({"id": name}, page.tags["h2"])
        self.assertEqual(run("report", path_of("shard0.json"), path_of("shard0.json")).returncode, 2)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    with tempfile.TemporaryDirectory() as FOLDER:
        sys.exit(not unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful())
