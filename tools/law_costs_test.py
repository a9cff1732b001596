#!/usr/bin/env python3
"""Shows that law_costs.py reads the costs of the process that checked."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import law_costs  # noqa: E402


class Costs(unittest.TestCase):
    def test_of_the_process_that_counted_most(self):
        for counts in ({7: 90, 8: 1200}, {9999: 8, 10000: 90}, {32767: 0, 301: 5}, {7: 1200, 8: 90}):
            with tempfile.TemporaryDirectory() as folder:
                out = os.path.join(folder, "law")
                for process, count in counts.items():
                    with open(f"{out}.{process}", "w", encoding="utf-8") as stream:
                        stream.write(f"version: 1\nevents: Ir\nfn=(1) main\n16 4\ntotals: {count}\n")
                busiest = max(counts, key=counts.get)
                self.assertEqual(law_costs.of_busiest_process(out), f"{out}.{busiest}")

    def test_instructions_by_group(self):
        lines = ["1,200 (60.0%)  malloc.c:malloc [libc.so.6]",
                 "  300 (15.0%)  x.cpp:lamella::ops::add [lamella]",
                 "500 (25.0%)  y.cpp:main [lamella]", "nothing"]
        sums = law_costs.grouped(lines)
        self.assertEqual((sums["memory"], sums["operators"], sums["rest"], sum(sums.values())),
                         (1200, 300, 500, 2000))


if __name__ == "__main__":
    unittest.main()
