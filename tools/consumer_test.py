#!/usr/bin/env python3
"""Builds examples/consumer by each route: find_package, pkg-config, add_subdirectory, FetchContent.

usage: consumer_test.py BUILD_FOLDER {Installed,Source}

Installed takes what BUILD_FOLDER installs. Source compiles the libraries once more, unoptimised, for both of
its routes: some 90 s on two cores, or a few with ccache, as the folder is the same each time.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = ""
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CONSUMER = os.path.join(ROOT, "examples", "consumer")
PRINTS = "0.1.0: f64[3,2] [[-2, -4], [-6, -8], [-10, -12]]\n"
CXX = os.environ.get("CXX", "c++")


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, timeout=500, **options)


def generator():
    """A bare machine has ninja and no make."""
    return ["-G", "Ninja"] if shutil.which("ninja") else []


class Route(unittest.TestCase):
    def done(self, *words, **options):
        done = run(*words, **options)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])
        return done.stdout

    def configured(self, folder, route, *options):
        self.done("cmake", *generator(), "-S", CONSUMER, "-B", folder, f"-DCONSUMER_ROUTE={route}",
                  "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *options)

    def built(self, folder, *targets):
        self.done("cmake", "--build", folder, "-j", os.environ.get("LAMELLA_JOBS", str(os.cpu_count())),
                  "--target", *targets)


    def cache_of(self, folder):
        with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as stream:
            return dict(re.findall(r"^([^#/\s:][^:\n]*):\w+=(.*)$", stream.read(), re.M))

    def nothing_of_openblas(self, folder):
        """What find_package() leaves is CMake's; pkg_check_modules() left OPENBLAS_* and pkgcfg_*."""
        found = ("CMAKE_", "LAMELLA_", "lamella_", "CONSUMER_", "consumer_", "FETCHCONTENT_", "_CMAKE_",
                 "PKG_CONFIG_EXECUTABLE", "PKG_CONFIG_ARGN", "FIND_PACKAGE_MESSAGE")
        self.assertEqual([name for name in self.cache_of(folder)
                          if not name.startswith(found) or "OPENBLAS" in name], [])


class Installed(Route):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.prefix = os.path.join(cls.folder, "prefix")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], check=True,
                       stdout=subprocess.DEVNULL, timeout=100)
        cls.include = os.path.join(cls.prefix, "include")

    def flags(self, *packages, prefix=None):
        """Of the packages that are installed in `prefix`, or in ours."""
        packaged = glob.glob(os.path.join(prefix or self.prefix, "lib*", "**", "pkgconfig"), recursive=True)
        env = {**os.environ, "PKG_CONFIG_PATH": ":".join(packaged)}
        return self.done("pkg-config", "--cflags", "--libs", *packages, env=env).split()

    def compiled(self, name, text, *flags):
        """By one line of the compiler: how that ended."""
        path = os.path.join(self.folder, name)
        with open(path + ".cpp", "w", encoding="utf-8") as stream:
            stream.write(text)
        return run(CXX, path + ".cpp", "-o", path, *flags), path   # archives behind what needs them

    def of_another_version(self):
        """A folder of include/ that stands before the installed one, with one header of 0.2.0."""
        other = os.path.join(self.folder, "other", "lamella", "core")
        os.makedirs(other, exist_ok=True)
        ours = os.path.join(self.include, "lamella", "core", "version.h")
        with open(ours, encoding="utf-8") as stream:
            text = stream.read().replace("0_1_0", "0_2_0").replace('"0.1.0"', '"0.2.0"')
        with open(os.path.join(other, "version.h"), "w", encoding="utf-8") as stream:
            stream.write(text)
        return "-I" + os.path.join(self.folder, "other")

    def test_by_find_package(self):
        folder = os.path.join(self.folder, "package")
        self.configured(folder, "package", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.built(folder, "consumer", "plugin_half_square")
        self.assertEqual(self.done(os.path.join(folder, "consumer")), PRINTS)
        self.nothing_of_openblas(folder)
        program = os.path.join(self.prefix, "bin", "lamella")
        plugin = os.path.join(folder, "plugins", "half_square.so")
        self.assertIn("half_square", self.done(program, "ops", "--load", plugin))

    def test_components(self):
        """Installed alone, core finds itself and says that there is no verify, nor what stands on it."""
        alone = os.path.join(self.folder, "core_alone")
        self.done("cmake", "--install", BUILD, "--prefix", alone, "--component", "core")
        self.assertFalse(glob.glob(os.path.join(alone, "include", "lamella", "verify*")))
        self.assertFalse(glob.glob(os.path.join(alone, "include", "lamella", "mutate*")))
        for components, found in [("", True), ("COMPONENTS core", True), ("COMPONENTS verify", False),
                                  ("COMPONENTS mutate", False)]:
            project = os.path.join(self.folder, "asks")
            shutil.rmtree(project, ignore_errors=True)
            os.makedirs(project)
            with open(os.path.join(project, "CMakeLists.txt"), "w", encoding="utf-8") as stream:
                stream.write("cmake_minimum_required(VERSION 3.25)\nproject(asks LANGUAGES CXX)\n"
                             f"find_package(lamella REQUIRED {components})\n")
            done = run("cmake", *generator(), "-S", project, "-B", project + "/build",
                       f"-DCMAKE_PREFIX_PATH={alone}")
            self.assertEqual(done.returncode == 0, found, components + done.stderr)

    def test_by_pkg_config(self):
        with open(os.path.join(CONSUMER, "consumer.cpp"), encoding="utf-8") as stream:
            text = stream.read()
        path = os.path.join(self.folder, "consumer")
        with open(path + ".cpp", "w", encoding="utf-8") as stream:
            stream.write(text)
        self.done(CXX, path + ".cpp", "-o", path, *self.flags("lamella"))
        self.assertEqual(self.done(path), PRINTS)

    def test_verify_without_mutate(self):
        """Components core and verify: all laws but those of the harness, by a link that finds no mutate."""
        both = os.path.join(self.folder, "without_mutate")
        for component in ("core", "verify"):
            self.done("cmake", "--install", BUILD, "--prefix", both, "--component", component)
        self.assertFalse([name for _, folders, names in os.walk(both) for name in folders + names
                          if "mutate" in name])
        text = """#include <iostream>
                  #include <lamella/verify.h>
                  int main() {
                    for (const lamella::verify::Law& law : lamella::verify::laws())
                      if (law.group == "harness") return 1;
                    const lamella::UnaryFunction f = [](const lamella::Tensor& x) { return sin(x); };
                    const auto report = lamella::verify::gradcheck(f, lamella::tensor_of({2}, {1, 2}));
                    std::cout << lamella::verify::laws().size() << report.passed() << '\\n';
                  }"""
        done, path = self.compiled("laws", text, *self.flags("lamella-verify", prefix=both))
        self.assertEqual(done.returncode, 0, done.stderr[:4000])
        self.assertRegex(self.done(path), r"^[1-9]\d+1\n$")

    def test_each_header_is_complete(self):
        """All that are installed, in the order of their names, with those of verify and mutate."""
        headers = sorted(glob.glob(os.path.join(self.include, "lamella", "**", "*.h"), recursive=True))
        names = [os.path.relpath(header, self.include) for header in headers]
        self.assertIn("lamella/core/version.h", names)
        self.assertFalse([name for name in names if name.startswith("lamella/kernels/")])
        text = "".join(f"#include <{name}>\n" for name in names) + "int main() {}\n"
        done, _ = self.compiled("all", text, "-std=c++20", "-fsyntax-only", "-I" + self.include)
        self.assertEqual(done.returncode, 0, done.stderr[:4000])

    def test_another_version_is_one_sentence(self):
        other = self.of_another_version()
        says = "lamella_linked_here_is_not_version_0_2_0_of_the_headers"
        path = os.path.join(self.folder, "old")
        with open(path + ".cpp", "w", encoding="utf-8") as stream:
            stream.write('#include "lamella/lamella.h"\nint main() { return !lamella::version(); }\n')
        done = run(CXX, other, path + ".cpp", "-o", path, *self.flags("lamella"))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(set(re.findall(r"undefined [^\n]*?(lamella\w+)", done.stderr)), {says}, done.stderr)
        done, plugin = self.compiled("plugin", '#include "lamella/plugin.h"\nLAMELLA_PLUGIN() {}\n', other,
                                     "-std=c++20", "-fPIC", "-shared", "-I" + self.include)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(os.path.join(self.prefix, "bin", "lamella"), "ops", "--load", plugin)
        self.assertEqual(done.returncode, 2)
        says = f'plug-in: "{plugin}" was compiled with headers of lamella 0.2.0, expected 0.1.0: '
        self.assertEqual(done.stderr, f"lamella ops: {says}compile it again with this version's headers\n")


class Source(Route):
    """One folder for both routes, so the libraries are compiled once."""

    def flags_of(self, folder, source):
        with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as stream:
            command = next(e["command"] for e in json.load(stream) if e["file"].endswith(source))
        words = command.split()
        return [word for word in words if word.startswith("-") and not word.startswith(("-I", "-o"))]

    def test_by_add_subdirectory_and_fetch_content(self):
        folder = os.path.join(BUILD, "consumer")
        shutil.rmtree(folder, ignore_errors=True)
        ccache = shutil.which("ccache")   # with what it needs beside -fpch-preprocess, as in CMakeLists.txt
        words = ["cmake", "-E", "env", "CCACHE_SLOPPINESS=pch_defines,time_macros", ccache] if ccache else []
        launcher = "-DCMAKE_CXX_COMPILER_LAUNCHER=" + ";".join(words)
        for route in ("subdirectory", "fetch"):
            self.configured(folder, route, f"-DCONSUMER_LAMELLA={ROOT}", "-DCMAKE_CXX_FLAGS_RELEASE=-O0",
                            "-DLAMELLA_ISA_FLAGS=-O0", launcher)
            self.built(folder, "consumer", "plugin_half_square")
            self.assertEqual(self.done(os.path.join(folder, "consumer")), PRINTS)
            self.assertTrue(os.path.exists(os.path.join(folder, "plugins", "half_square.so")))
            self.nothing_leaks(folder)

    def nothing_leaks(self, folder):
        cache = self.cache_of(folder)
        self.assertEqual(cache.get("CMAKE_BUILD_TYPE", ""), "")
        ours = {name for name in cache if name.startswith("LAMELLA_") and "ADVANCED" not in name}
        self.assertEqual({name: cache[name] for name in ours if name in
                          ("LAMELLA_TESTS", "LAMELLA_PROGRAM", "LAMELLA_INSTALL")},
                         {"LAMELLA_TESTS": "OFF", "LAMELLA_PROGRAM": "OFF", "LAMELLA_INSTALL": "OFF"})
        self.nothing_of_openblas(folder)
        flags = self.flags_of(folder, "consumer.cpp")
        self.assertEqual([flag for flag in flags if flag not in ("-c", "-pthread", "-std=gnu++20")], [])
        self.assertIn("Total Tests: 0", run("ctest", "--test-dir", folder, "-N").stdout)
        if shutil.which("ninja"):
            targets = self.done("ninja", "-C", folder, "-t", "targets", "all")
            leaves = r"\b(?:lamella_program|example_\w+|proptests|fuzz_\w+):"
            self.assertEqual(re.findall(leaves, targets), [])


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv[1])
    missing = [name for name in ("cmake", "pkg-config", CXX) if not shutil.which(name)]
    if missing:
        print("skipped: there is no", *missing)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
