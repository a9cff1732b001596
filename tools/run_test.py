#!/usr/bin/env python3
"""Shows that ./run passes words and statuses on: a copy of it, with stubs for what it starts."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOTES = '#!/bin/sh\nprintf "%s\\n" "$(basename "$0")" "$@" >>"$RUN_TEST_NOTES"\n'


class Run(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copy(os.path.join(ROOT, "run"), self.folder)
        self.write("packages.txt", "# none\n")
        self.write("CMakePresets.json", "{}\n")
        for name in ("cmake", "ninja", "ctest", "clang++"):
            self.script(f"stubs/{name}", NOTES)
        self.notes = os.path.join(self.folder, "notes")
        self.write("build/release/build.ninja", "")
        self.write("build/fuzz/build.ninja", "")
        for file in ("release", "fuzz"):
            self.age(f"build/{file}/build.ninja", 50)
        self.age("CMakePresets.json", 100)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def script(self, name, text):
        os.chmod(self.write(name, text), 0o755)

    def age(self, name, seconds):
        path = os.path.join(self.folder, name)
        changed = os.stat(path).st_mtime - seconds
        os.utime(path, (changed, changed))

    def run_with(self, *words):
        """The exit status of ./run, and the lines that the stubs noted."""
        env = {**os.environ, "PATH": os.path.join(self.folder, "stubs") + ":" + os.environ["PATH"],
               "RUN_TEST_NOTES": self.notes, "LAMELLA_JOBS": "1", "LAMELLA_PRESET": "release"}
        if os.path.exists(self.notes):
            os.remove(self.notes)
        done = subprocess.run(["./run", *words], cwd=self.folder, env=env, capture_output=True, text=True,
                              timeout=60, check=False)
        self.said = done.stdout + done.stderr
        if not os.path.exists(self.notes):
            return done.returncode, []
        with open(self.notes, encoding="utf-8") as f:
            return done.returncode, f.read().split("\n")[:-1]

    def test_words_reach_the_program_whole(self):
        self.script("build/release/lamella", NOTES + "exit 3\n")
        for words in (["explain", "x + y", ""], ["ops", "*", "a  b", "--op=$HOME", "'", '"']):
            status, noted = self.run_with(*words)
            self.assertEqual((status, noted[noted.index("lamella") + 1:]), (3, words), self.said)

    def test_kernels_of_examples_are_the_environments(self):
        self.write("examples/mine.cpp", "")
        self.script("build/release/examples/mine", NOTES + 'echo "$LAMELLA_KERNEL" >>"$RUN_TEST_NOTES"\n')
        for words, noted in ((["a b", "--kernel", "x=y", "--kernel=z=w", "c"], ["a b", "c", "x=y,z=w"]),
                             (["c"], ["c", ""]), ([], [""])):
            status, all_ = self.run_with("example", "mine", *words)
            self.assertEqual((status, all_[all_.index("mine") + 1:]), (0, noted), self.said)
        self.assertEqual(self.run_with("example", "mine", "--kernel")[0], 2)

    def test_a_part_that_fails_is_the_status(self):
        for failing in ("", "verify", "museum"):
            self.script("build/release/lamella", f'#!/bin/sh\necho "$1"\n[ "$1" != "{failing}" ]\n')
            status, _ = self.run_with("full", "--time", "1", "laws", "museum")
            self.assertEqual(status, 1 if failing else 0, f"{failing} fails: {self.said}")

    def test_a_target_that_fails_is_the_status(self):
        names = ("first", "second", "third")
        for name in names:
            self.write(f"fuzz/corpus/{name}/seed", "")
        for failing in ("", *names):
            self.script("build/fuzz/fuzz/fuzz_replay",
                        f'#!/bin/sh\necho "Done 1 runs"\n[ "$LAMELLA_FUZZ_TARGET" != "{failing}" ]\n')
            status, _ = self.run_with("fuzz", "", "1")
            self.assertEqual(status, 1 if failing else 0, f"{failing} fails: {self.said}")

    def test_a_log_tells_how_far_a_build_is(self):
        """It was silent for minutes. What compilers say is there as a whole, and the status is ninja's."""
        for steps, status in ((340, 0), (340, 1), (3, 0)):
            lines = [f"echo '[{k}/{steps}] CXX file {k}'" for k in range(1, steps + 1)]
            lines[2:2] = ["echo '  a  warning: *'"]
            lines = ["#!/bin/sh", "echo 'ninja: Entering directory build'", *lines, f"exit {status}"]
            self.script("stubs/ninja", "\n".join(lines))
            self.assertEqual(self.run_with("build")[0], status, self.said)
            told = [line for line in self.said.splitlines() if line.startswith("run: built ")]
            self.assertEqual(len(told), 10 if steps > 20 else 0, self.said)
            self.assertTrue(steps < 20 or told[0].startswith("run: built 34 of 340, after "), told)
            self.assertIn("  a  warning: *\n", self.said)
            self.assertNotIn("CXX", self.said)
            self.assertNotIn("Entering", self.said)

    def test_presets_that_change_are_configured(self):
        self.assertNotIn("cmake", self.run_with("build")[1])
        self.age("build/release/build.ninja", 100)
        self.assertIn("cmake", self.run_with("build")[1], "presets are newer")
        os.remove(os.path.join(self.folder, "build/release/build.ninja"))
        self.assertIn("cmake", self.run_with("build")[1], "it never was configured")

    def test_a_copied_checkout_is_configured_afresh(self):
        """Its build would compile the sources of the folder that it was copied from."""
        here = os.path.realpath(self.folder)
        cache = "build/release/CMakeCache.txt"
        self.write(cache, f"CMAKE_HOME_DIRECTORY:INTERNAL={here}\n")
        self.assertNotIn("cmake", self.run_with("build")[1])
        link = self.write("build/release/include/core/lamella/core", "")
        self.write(cache, f"CMAKE_HOME_DIRECTORY:INTERNAL={here}_before\n")
        noted = self.run_with("build")[1]
        self.assertEqual(noted[noted.index("cmake") + 1:][:3], ["--fresh", "--preset", "release"], self.said)
        self.assertFalse(os.path.exists(link))

    def test_plugins_of_examples_are_built_when_named(self):
        self.script("build/release/lamella", NOTES)
        self.write("examples/mine.cpp", "")
        folder = "build/release/plugins/"
        for path, asked in ((folder + "mine.so", True), (folder + "other.so", False), ("mine.so", False)):
            noted = self.run_with("verify", "--load", path)[1]
            self.assertEqual("plugin_mine" in noted[:noted.index("lamella", noted.index("lamella_program"))],
                             asked, noted)


if __name__ == "__main__":
    sys.exit(77) if not shutil.which("bash") or not shutil.which("flock") else unittest.main()
