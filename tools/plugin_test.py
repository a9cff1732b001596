#!/usr/bin/env python3
"""Shows what the program answers to plug-ins that are made for another one, raise, or claim what others have.

usage: plugin_test.py PROGRAM FOLDER_OF_PLUGINS
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, PLUGINS = "", ""
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PUBLIC, EXAMPLES = os.path.join(ROOT, "include"), os.path.join(ROOT, "examples")

STAMP = """
struct Stamp { unsigned long magic = 0x6c616d656c6c61; unsigned abi = %d; unsigned sizes[8] = {}; };
extern "C" { extern const Stamp lamella_plugin_stamp; const Stamp lamella_plugin_stamp{}; }
"""
ENTRY = 'extern "C" void lamella_plugin() { %s }\n'
COLUMN = """
#include "lamella/dispatch/plugin.h"
using namespace lamella;
static void mine(Frame& frame, int) { frame.results[0] = frame.tensor(0); }
LAMELLA_PLUGIN() {
  OpTable::add_column(Device::User0, "mine");
  OpTable::set("tanh", int(Device::User0), {"mine tanh", mine});
}
"""
RULES = """
#include "lamella/plugin.h"
using namespace lamella;
LAMELLA_PLUGIN() {
  OpTable::set_rules("mul", 14, linear_in({"a", "b"}), {wrt("a", [](Tensor dy) { return dy; })});
}
"""
RAISES = '#include "lamella/dispatch/plugin.h"\nLAMELLA_PLUGIN() { throw 42; }\n'


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)


def headers():
    rooms = ("core", "dispatch", "draw", "ops", "transforms", "verify", "mutate")
    built = os.path.join(os.path.dirname(PLUGINS), "include")
    return [f"-I{PUBLIC}", *(f"-I{os.path.join(built, room)}" for room in rooms)]


BUDGETS = {"my_device": 150, "my_layout": 250, "my_type": 100, "my_backend_override": 60, "my_transform": 60}
# One that its plug-in is checked by. The last brings no laws: one of the library's, about its operator.
LAWS = {
    "my_type": "units_multiply",
    "my_layout": "sparse_gradients",
    "my_backend_override": "matches_reference",
}


def text_of(example):
    with open(os.path.join(EXAMPLES, example + ".cpp"), encoding="utf-8") as stream:
        return stream.read()


def own_lines(text):
    """Lines that are no test, blank or comment."""
    before, _, tests = text.partition("// Tests:")
    own = before + tests[tests.index("LAMELLA_PLUGIN") :] if tests else before
    return [line for line in map(str.strip, own.splitlines()) if line and not line.startswith("//")]


def table(*plugins):
    """Rows of `lamella ops` by name."""
    done = run("ops", "--json", "-", *(word for plugin in plugins for word in ("--load", plugin)))
    return {op["name"]: op for op in json.loads(done.stdout)}


class Plugins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def compiled(self, name, text, *options, compiler=None):
        path = os.path.join(self.folder.name, name)
        with open(path + ".cpp", "w", encoding="utf-8") as stream:
            stream.write(text)
        line = [*(compiler or [os.environ.get("CXX", "c++")]), "-std=c++20", "-fPIC", "-shared", *options]
        subprocess.run([*line, path + ".cpp", "-o", path + ".so"], check=True, timeout=120)
        return path + ".so"

    def refused(self, words, *plugins):
        done = run("ops", *(word for plugin in plugins for word in ("--load", plugin)))
        self.assertEqual(done.returncode, 2, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_without_a_stamp(self):
        bare = self.compiled("bare", ENTRY % "")
        self.refused(["exports no lamella_plugin_stamp", "LAMELLA_PLUGIN()"], bare)
        self.refused(["exports no lamella_plugin;"], self.compiled("empty", "int nothing;"))

    def test_of_another_abi(self):
        old = self.compiled("old", STAMP % 7 + ENTRY % "throw 1;")
        self.refused(["was made for ABI 7 of lamella, expected "], old)

    def test_of_other_headers(self):
        with open(os.path.join(ROOT, "dispatch", "plugin.h"), encoding="utf-8") as stream:
            abi = int(re.search(r"kAbi = (\d+);", stream.read()).group(1))
        text = STAMP % abi + ENTRY % "throw 1;"
        self.refused(["compiled from other headers or by another compiler", "compile it again"],
                     self.compiled("odd", text))

    def test_it_states_its_k(self):
        """For its own operator, with a reason; two that do are both known by what is said."""
        text = ('#include "lamella/plugin.h"\n#include "lamella/verify/case/tolerances.h"\n'
                'LAMELLA_PLUGIN() { lamella::verify::state_tolerance("%s", {.second = %s}, "%s"); }\n')
        own = [word for name in ("my_operator",) for word in ("--load", os.path.join(PLUGINS, name + ".so"))]
        good = self.compiled("k", text % ("half_square", "128", "its slope cancels"), *headers())
        done = run("tolerances", *own, "--load", good, "--op", "half_square", "--cases", "5")
        self.assertIn("half_square states its own k: its slope cancels", done.stdout, done.stderr)
        for name, wrong, says in [("k1", ("half_square", "128", ""), "has no reason"),
                                  ("k2", ("half_square", "1e9", "big"), "got k = "),
                                  ("k5", ("half_squar", "128", "mine"),
                                   'there is no operator "half_squar"; the nearest is "half_square"'),
                                  ("k3", ("tanh", "128", "mine"), "tanh is the library's; expected"),
                                  ("k4", ("sigmoid", "128", "mine"), "sigmoid is the library's; expected")]:
            self.refused([says], os.path.join(PLUGINS, "my_operator.so"),
                         self.compiled(name, text % wrong, *headers()))
        again = shutil.copy(good, os.path.join(self.folder.name, "k_again.so"))
        self.refused(["has stated its k already", "its slope cancels"],
                     os.path.join(PLUGINS, "my_operator.so"), good, again)

    def test_it_ends_the_program(self):
        """With status 0, which looked like a run without failures, or by a signal and without a word."""
        head = '#include <cstdlib>\n#include "lamella/dispatch/plugin.h"\n'
        early = head + "static const int n = [] { %s; return 0; }();\nLAMELLA_PLUGIN() {}\n"
        late = head + "LAMELLA_PLUGIN() { %s; }\n"
        for name, text, call, says in [
                ("early0", early, "std::exit(0)", 'a static initialiser of "{}" ended the program'),
                ("late0", late, "std::exit(0)", 'lamella_plugin() of "{}" ended the program'),
                ("early1", early, "std::abort()", 'a static initialiser of "{}" crashed'),
                ("late1", late, "std::abort()", 'lamella_plugin() of "{}" crashed'),
                ("late2", late, "std::terminate()", 'lamella_plugin() of "{}" raised: nothing, and called')]:
            library = self.compiled(name, text % call, *headers())
            self.refused([says.format(library)], library)
        self.assertEqual(run("verify", "--time", "1", "--load", library).returncode, 2)

    def test_its_kernel_throws_what_it_likes(self):
        """Where nothing names the operator: it ended the program by std::terminate."""
        text = ('#include "lamella/plugin.h"\nusing namespace lamella;\nLAMELLA_PLUGIN() {\n'
                'OpTable::set("tanh", int(Device::CPU), {"odd", nullptr, [](const KernelCall&) '
                '{ throw 42; }}); }\n')
        odd = self.compiled("throws", text, *headers())
        for words in (["explain", "tanh(x)", "--shapes", "x=3"], ["bench", "tanh", "--sizes", "8"],
                      ["mutate", "--op", "tanh", "--sample", "1"]):
            done = run(*words, "--load", odd)
            self.assertEqual(done.returncode, 2, (words, done.stdout[-300:], done.stderr))
            self.assertIn("a plug-in raised something that is no std::exception", done.stderr)

    def test_a_file_that_is_cut_off(self):
        text = '#include "lamella/dispatch/plugin.h"\nLAMELLA_PLUGIN() {}\n'
        whole = self.compiled("whole", text, *headers())
        cut = os.path.join(self.folder.name, "cut.so")
        with open(whole, "rb") as stream, open(cut, "wb") as short:
            short.write(stream.read()[:9000])
        done = run("ops", "--load", cut)
        if "Sanitizer" in done.stderr:
            self.skipTest("which handles the signal itself")
        self.refused([f'of "{cut}" crashed (SIGBUS): the file is cut off, perhaps'], cut)

    def test_whatever_it_raises(self):
        raises = self.compiled("raises", RAISES, *headers())
        self.refused(["raised: something that is no std::exception"], raises)
        text = "#include <stdexcept>\nstatic const int n = [] { if (%s); return 0; }();\n" + ENTRY % ""
        for name, raised, words in [("word", 'throw std::runtime_error("bad day")', "bad day"),
                                    ("number", "throw 3", "something that is no std::exception")]:
            initialiser = text.replace("if (%s);", raised + ";")
            self.refused(["a static initialiser of", words], self.compiled(name, initialiser))

    def test_kernels_that_do_not_return(self):
        """To whoever plans the run, too, which asks operators what laws are about them."""
        text, begins = text_of("my_operator"), "  const IterPlan plan = make_plan"
        self.assertIn(begins, text)
        for name, does, says in [("exits", "std::exit(0);", "status 0"),
                                 ("hangs", "for (volatile bool on = true; on;) continue;", "did not end"),
                                 ("throws", 'throw std::runtime_error("bad day");', "bad day"),
                                 ("throws_number", "throw 3;", "no std::exception")]:
            wrong = text.replace(begins, f"  if (call.ins.size() > 0) {{ {does} }}\n{begins}", 1)
            plugin = self.compiled(name, "#include <cstdlib>\n#include <stdexcept>\n" + wrong, *headers())
            done = run("verify", "--load", plugin, "--seed", "1", "--time", "1")
            self.assertEqual(done.returncode, 2, name + done.stdout + done.stderr)
            for word in ('operator "half_square"', "law ", says):
                self.assertIn(word, done.stderr)

    def test_rules_that_do_not_fit(self):
        """Shapes and counts that are no derivative's are failures with words, and end no worker."""
        text, rule = text_of("my_operator"), 'return half_square_slope(dy, x); }'
        self.assertIn(rule, text)
        for name, gives, says in [("summed", "return sum(dy * x); }", r"gave b?f\d+\[\], expected "),
                                  ("stacked", "return stack(Tensors{dy, x}, 0); }", r"gave b?f\d+\[2"),
                                  ("widened", "return to(dy * x, DType::C128); }", "gave c128")]:
            plugin = self.compiled(name, text.replace(rule, gives), *headers())
            done = run("verify", "--load", plugin, "--op", "half_square", "--law", "vjp_equals_differences",
                       "--seed", "1", "--time", "2", "--compile", "0")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertNotIn("crashed", done.stdout)
            self.assertRegex(done.stdout, "half_square: its vjp rule for x " + says)

    def test_a_device_outside_the_tree(self):
        """One line of the compiler."""
        device = self.compiled("device", text_of("my_device"), *headers())
        for law in ("device_as_cpu", "host_dies", "device_repeats"):
            done = run("verify", "--load", device, "--law", law, "--seed", "1", "--time", "2")
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_wrong_answers_to_its_law(self):
        """And exhibits: a plug-in's law is asked of both."""
        law = os.path.join(PLUGINS, "my_law.so")
        done = run("answers", "--load", law, "--law", "flip_commutes", "--verbose")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"flip_commutes +swapped +refused")
        done = run("museum", "--load", law, "--id", "nan_handed_on", "--cases", "200")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_examples_are_short(self):
        for example, budget in BUDGETS.items():
            self.assertLessEqual(len(own_lines(text_of(example))), budget, example)

    def test_what_serves_is_listed(self):
        device = table(os.path.join(PLUGINS, "my_device.so"))
        self.assertEqual(device["add"]["served"]["user0"], "explicit")
        self.assertEqual(device["exp"]["served"]["user0"], "fallback")
        self.assertEqual(device["exp"]["served"]["cpu"], "class")
        self.assertNotIn("rules_of_types", device["mm"])
        path = os.path.join(PLUGINS, "my_layout.so")
        layout = table(path)
        self.assertEqual(layout["mm"]["rules_of_types"], [{"type": "coo", "from": path}])
        self.assertEqual(layout["mm"]["served"]["coo"], "explicit")
        self.assertEqual(layout["exp"]["served"]["coo"], "fallback")

    def test_examples_claim_nothing_twice(self):
        """Also no law's number: all are loaded into one program."""
        examples = ("my_law", "my_operator", *BUDGETS)
        loaded = [word for name in examples for word in ("--load", os.path.join(PLUGINS, name + ".so"))]
        shown = run("doctor", *loaded)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        for name, example in [("coo", "my_layout"), ("quantity", "my_type")]:
            path = re.escape(os.path.join(PLUGINS, example + ".so"))
            self.assertRegex(shown.stdout, rf"type +{name} from {path}, \d+ cells set\n")

    def test_two_that_claim_one(self):
        ours = os.path.join(PLUGINS, "my_operator.so")
        theirs = shutil.copy(ours, os.path.join(self.folder.name, "theirs.so"))
        self.refused(["half_square", ours, "theirs.so"], ours, theirs)
        column = self.compiled("column", COLUMN, *headers())
        other = shutil.copy(column, os.path.join(self.folder.name, "other.so"))
        self.refused(["user0", "column.so", "other.so"], column, other)
        shown = run("doctor", "--load", column)
        self.assertIn('user0 "mine" from', shown.stdout, shown.stderr)
        listed = {op["name"]: op for op in json.loads(run("ops", "--json", "-", "--load", column).stdout)}
        mine = {"column": "user0", "name": "mine tanh", "origin": column, "chosen": True}
        self.assertEqual(listed["tanh"]["cells"], [mine])
        self.assertEqual(listed["sin"]["cells"], [])
        loaded = {op["name"]: op for op in json.loads(run("ops", "--json", "-", "--load", ours).stdout)}
        self.assertEqual(loaded["half_square"]["origin"], ours)

    def test_two_that_claim_one_cell_type_or_rule(self):
        for name, words in [("my_backend_override", ["layer_norm", "cpu", "fused"]),
                            ("my_type", ['"quantity"']),
                            ("my_law", ['"flip_commutes" of number 1000'])]:
            ours = os.path.join(PLUGINS, name + ".so")
            theirs = shutil.copy(ours, os.path.join(self.folder.name, name + "_2.so"))
            self.refused([*words, ours, theirs, "expected"], ours, theirs)
        ours = self.compiled("rules", RULES, *headers())
        theirs = shutil.copy(ours, os.path.join(self.folder.name, "rules_2.so"))
        self.refused(["mul", "its rules for key14", ours, theirs, "expected one of them"], ours, theirs)

    def test_holes(self):
        column = self.compiled("holes", COLUMN, *headers())
        layout = os.path.join(PLUGINS, "my_layout.so")
        for plugin, there, absent in [
                (column, {("add", "user0", "nothing")}, {("tanh", "user0"), ("layer_norm", "user0")}),
                (layout, {("exp", "coo", "to_strided")}, {("mm", "coo"), ("matmul", "coo"), ("exp", "cpu")})]:
            text = run("ops", "--holes", "--load", plugin).stdout.splitlines()
            rows = json.loads(run("ops", "--holes", "--json", "-", "--load", plugin).stdout)
            found = [(row["operator"], row["column"], row["served_by"]) for row in rows]
            self.assertLessEqual(there, set(found))
            self.assertFalse({row[:2] for row in found} & absent)
            shown = [tuple(line.split(maxsplit=2)) for line in text if " without a kernel" not in line]
            self.assertEqual(shown, found)
            names = [op["name"] for op in json.loads(run("ops", "--json", "-", "--load", plugin).stdout)]
            for line in text[len(shown):]:
                key, count = line.split(": ")
                n = sum(row[1] == key for row in found)
                self.assertEqual(count, f"{n} of {len(names)} operators without a kernel")
            self.assertEqual([row for row in found if row[1] == "cpu"], [])
        self.assertIn("--holes", run("ops", "--help").stdout)

    def test_of_this_folder(self):
        """A name without a folder is that of a file here, whatever the system finds by that name."""
        here, elsewhere = (tempfile.mkdtemp(dir=self.folder.name) for _ in range(2))
        shutil.copy(os.path.join(PLUGINS, "my_operator.so"), os.path.join(here, "mine.so"))
        shutil.copy(os.path.join(PLUGINS, "my_law.so"), os.path.join(elsewhere, "mine.so"))
        listed = subprocess.run([PROGRAM, "ops", "--json", "-", "--load", "mine.so"], cwd=here, timeout=60,
                                env=dict(os.environ, LD_LIBRARY_PATH=elsewhere),
                                capture_output=True, text=True)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("half_square", [op["name"] for op in json.loads(listed.stdout)])

    def test_one_line_builds_it(self):
        """Outside the tree, by one line of either compiler; what it registers is there."""
        for name in ("g++", "clang++"):
            if not shutil.which(name):
                continue
            for example, law in LAWS.items():
                built = self.compiled(example, text_of(example), *headers(), compiler=[name])
                done = run("ops", "--json", "-", "--load", built)
                if "another compiler" in done.stderr:  # not the program's own: sizes and ABI are compared
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                chosen = ("--law", law, "--seed", "1", "--time", "1", "--compile", "0")
                done = run("verify", "--load", built, *chosen)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    PROGRAM, PLUGINS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
