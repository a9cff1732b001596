#!/usr/bin/env python3
"""Shows what the program answers to plug-ins that are made for another one, raise, or claim what others have.

usage: plugin_test.py PROGRAM FOLDER_OF_PLUGINS
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, PLUGINS = "", ""

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
RAISES = '#include "lamella/dispatch/plugin.h"\nLAMELLA_PLUGIN() { throw 42; }\n'


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)


def headers():
    return [f"-I{os.path.join(os.path.dirname(PLUGINS), 'include', room)}" for room in ("core", "dispatch")]


class Plugins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def compiled(self, name, text, *options):
        path = os.path.join(self.folder.name, name)
        with open(path + ".cpp", "w", encoding="utf-8") as stream:
            stream.write(text)
        compiler = [os.environ.get("CXX", "c++"), "-std=c++20", "-fPIC", "-shared", *options]
        subprocess.run([*compiler, path + ".cpp", "-o", path + ".so"], check=True, timeout=120)
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
        text = STAMP % 1 + ENTRY % "throw 1;"
        self.refused(["compiled from other headers or by another compiler", "compile it again"],
                     self.compiled("odd", text))

    def test_whatever_it_raises(self):
        raises = self.compiled("raises", RAISES, *headers())
        self.refused(["raised: something that is no std::exception"], raises)
        text = "#include <stdexcept>\nstatic const int n = [] { if (%s); return 0; }();\n" + ENTRY % ""
        for name, raised, words in [("word", 'throw std::runtime_error("bad day")', "bad day"),
                                    ("number", "throw 3", "something that is no std::exception")]:
            initialiser = text.replace("if (%s);", raised + ";")
            self.refused(["a static initialiser of", words], self.compiled(name, initialiser))

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


if __name__ == "__main__":
    PROGRAM, PLUGINS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
