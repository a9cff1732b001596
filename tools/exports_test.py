#!/usr/bin/env python3
"""Holds the symbols that the program exports to what installed headers declare: NOTE: [exported symbols].

usage: exports_test.py PROGRAM FOLDER_OF_PLUGINS

A symbol is judged by the words of its name: those of its namespaces, its class and itself all stand in the
code of one installed header, or a macro makes them; or it is a member of a class that a header names and
leaves to a source. Exits 77 where there is no nm.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_api  # noqa: E402

PROGRAM, PLUGINS = "", ""
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Nothing below them is for others: rooms that no installed header shows.
INTERNAL = ("kernels", "tools", "api")
# What plug-ins rely on, a kind each: functions, members, thread-locals, type information, typed calls, laws.
PRESENT = [
    "lamella::version", "lamella::install_operators", "lamella::OpTable::add", "lamella::Tensor::backward",
    "lamella::detail::dispatch_state", "lamella::tanh", "lamella::vmap", "lamella::str",
    "lamella::verify::gradcheck", "lamella::verify::state_tolerance",
]
TYPES = ["typeinfo for lamella::Error", "vtable for lamella::Error", "typeinfo for lamella::Transform"]
PLANTED = """
namespace lamella {
int nobody_declares_this() { return 1; }
namespace kernels { int copy() { return 2; } }
}
"""


def listed(*words):
    done = subprocess.run(["nm", "-D", *words], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


def exported(path):
    return [line.split(" ", 2)[2] for line in listed("--defined-only", "-C", path)]


def undefined(path):
    return [line.split()[-1] for line in listed("-u", path)]


def without_brackets(text):
    """What stands outside of (), <> and {}: arguments of functions and templates."""
    out, depth = "", 0
    for mark in text:
        depth += mark in "(<{"
        out += mark if depth == 0 else ""
        depth -= mark in ")>}"
    return out


def name_of(symbol):
    """lamella::Box::get of `int lamella::Box<int>::get<2>(int) const`."""
    symbol = re.sub(r"^[\w -]+ (?:for|to|variable for) (?=\w)", "", symbol)
    symbol = symbol.replace("(anonymous namespace)", "anonymous").replace("->", "")
    symbol = re.sub(r"\boperator\b(?:\(\)|<=>|<<=?|>>=?|[<>]=?|\[\]|[^\w\s(<]+| [^(]+(?=\())",
                    "operator", symbol)
    words = [word for word in without_brackets(re.sub(r"\[[^\]]*\]", "", symbol)).split()
             if word not in ("const", "const&", "&", "&&", "volatile", "noexcept")]
    return words[-1] if words else ""


def code_of(path):
    return re.sub(r"//.*|\"(?:[^\"\\]|\\.)*\"", "", check_api.text_of(path))


class Headers:
    """Words of each installed header, and the classes that one only names."""

    def __init__(self):
        built = os.path.join(os.path.dirname(PLUGINS), "include/ops/lamella/ops/functions/*.h")
        paths = [os.path.join(ROOT, path) for path in check_api.installed_headers(ROOT)] + glob.glob(built)
        texts = [code_of(path) for path in paths]
        self.words = [set(re.findall(r"\w+", text)) for text in texts]
        whole = "\n".join(texts)
        # Words that a macro puts together: add_##family##_laws.
        pasted = set(re.findall(r"\b(\w+)##\w+##(\w+)\b", whole))
        self.pasted = re.compile("|".join(f"{before}\\w+{behind}" for before, behind in pasted) or "(?!)")
        named = set(re.findall(r"\b(?:struct|class) (\w+);", whole))
        self.left_to_sources = {name for name in named
                                if not re.search(rf"\b(?:struct|class) {name}\b[^;{{]*\{{", whole)}

    def declare(self, name):
        parts = [part.lstrip("~") for part in name.split("::") if part.lstrip("~")]
        if parts[1:] and parts[1] in INTERNAL:
            return False
        for at, part in enumerate(parts):
            if part in self.left_to_sources:
                parts = parts[:at + 1]
                break
        parts = [part for part in parts if not self.pasted.fullmatch(part)]
        return any(words.issuperset(parts) for words in self.words)

    def undeclared(self, symbols):
        return sorted({symbol for symbol in symbols
                       if name_of(symbol).startswith("lamella::") and not self.declare(name_of(symbol))})


class Exports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.headers = Headers()
        cls.symbols = exported(PROGRAM)

    def test_names_are_read(self):
        for symbol, name in [("int lamella::Box<int, (lamella::K)3>::get<2>(int) const", "lamella::Box::get"),
                             ("vtable for lamella::Error", "lamella::Error"),
                             ("lamella::operator<<(std::ostream&, lamella::A const&)", "lamella::operator"),
                             ("lamella::A::operator std::vector<int>() const", "lamella::A::operator"),
                             ("lamella::A::operator()(int)::x", "lamella::A::operator::x"),
                             ("guard variable for lamella::f[abi:cxx11](int)::x", "lamella::f::x"),
                             ("non-virtual thunk to lamella::A::~A()", "lamella::A::~A"),
                             ("std::vector<lamella::A>::push(lamella::A const&)", "std::vector::push"),
                             ("lamella::detail::per_thread", "lamella::detail::per_thread")]:
            self.assertEqual(name_of(symbol), name)

    def test_an_installed_header_declares_each(self):
        self.assertEqual(self.headers.undeclared(self.symbols), [])

    def test_what_plug_ins_rely_on_is_there(self):
        names = set(map(name_of, self.symbols))
        self.assertEqual([name for name in PRESENT if name not in names], [])
        self.assertEqual([name for name in TYPES if name not in self.symbols], [])

    def test_plug_ins_find_all_they_ask_for(self):
        """The loader says so as well, of the plug-ins that some test loads."""
        there = {line.split(" ", 2)[2] for line in listed("--defined-only", PROGRAM)}
        plugins = glob.glob(os.path.join(PLUGINS, "*.so"))
        self.assertTrue(plugins)
        for plugin in plugins:
            asked = [symbol for symbol in undefined(plugin) if "7lamella" in symbol or "lamella_" in symbol]
            self.assertTrue(asked)
            self.assertEqual([symbol for symbol in asked if symbol not in there], [], plugin)

    def test_a_planted_symbol_is_told(self):
        """Of an object whose symbols are not hidden; compiled as the libraries are, it has none."""
        compiler = os.environ.get("CXX", "c++")
        wrong = ["lamella::kernels::copy()", "lamella::nobody_declares_this()"]
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "planted.cpp")
            with open(source, "w", encoding="utf-8") as stream:
                stream.write(PLANTED)
            for flags, told in ([], wrong), (["-fvisibility=hidden"], []):
                shared = os.path.join(folder, "planted.so")
                subprocess.run([compiler, "-fPIC", "-shared", *flags, source, "-o", shared], check=True,
                               timeout=60)
                self.assertEqual(self.headers.undeclared(exported(shared)), told)

    def test_a_made_up_list_is_told(self):
        symbols = ["lamella::Tensor::item() const", "lamella::Tensor::nobody_declares_this()",
                   "typeinfo for lamella::Nobody", "std::vector<lamella::Nobody>::~vector()"]
        self.assertEqual(self.headers.undeclared(symbols), symbols[1:3])


if __name__ == "__main__":
    PROGRAM, PLUGINS = map(os.path.abspath, sys.argv[1:])
    missing = [name for name in ("nm", os.environ.get("CXX", "c++")) if not shutil.which(name)]
    if missing:
        print("skipped: there is no", *missing)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
