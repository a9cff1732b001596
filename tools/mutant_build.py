"""A program with a bug in it: what the changed texts touch is compiled anew, the rest is the build's."""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess

from mutant_text import Misfit


class Broken(Exception):
    """A mutant that does not compile or link, or a copy of the tree that does not build."""


def run(command, seconds, **options):
    """(exit status or "hangs", output); nothing it started outlives it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", start_new_session=True, **options) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return "hangs", ""
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def is_header(path):
    return not path.endswith(".cpp")


def link_neighbours(folder, beside):
    """What a changed text includes from its own folder. (-iquote would do, but GCC's own limits.h goes on to
    the next limits.h in quoted folders, and finds ours.)"""
    for name in os.listdir(folder):
        place = os.path.join(beside, name)
        if not name.endswith((".cpp", ".txt")) and os.path.isfile(os.path.join(folder, name)) \
                and not os.path.lexists(place):
            os.symlink(os.path.join(folder, name), place)


class Build:
    """How the release build makes its objects and the program, from ninja and CMake themselves."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as f:
            entries = json.load(f)
        self.commands = {}   # object, relative to the folder -> (words, what it compiles)
        for entry in entries:
            words = shlex.split(entry["command"])
            self.commands[words[words.index("-o") + 1]] = words, entry["file"]
        last = self.ninja("commands", "lamella_program").splitlines()[-1]
        self.link = shlex.split(last.split("&&")[1])
        self.linked = {word for word in self.link if word in self.commands}
        self.launcher, self.idle = self.cache(), self.narrower()

    def ninja(self, tool, *words):
        return subprocess.run(["ninja", "-C", self.folder, "--quiet", "-t", tool, *words], text=True,
                              capture_output=True, check=True).stdout

    def cache(self):
        """What the build puts before its compiler: a cache, if it has one. What a bug's objects are made of
        is often the same on the next commit, and it knows them again where their folder has that name."""
        name = next(name for name in self.linked if name.startswith("transforms/"))
        words = shlex.split(self.ninja("commands", name).splitlines()[-1])
        return words[:words.index(self.commands[name][0][0])]

    def makers(self, source):
        """The objects of a .cpp file (some are compiled for each instruction set), each with the text of the
        bundle it is compiled in, if any."""
        wanted = os.path.join(self.root, source)
        out = []
        for name in sorted(self.linked):
            file = self.commands[name][1]
            if file == wanted:
                out.append((name, None))
            elif "/Unity/" in file:
                with open(file, encoding="utf-8") as f:
                    text = f.read()
                if f'"{wanted}"' in text:
                    out.append((name, text))
        if not out and wanted not in {file for _, file in self.commands.values()}:
            raise Misfit(f"{source} is no part of the program")   # nor of what the build writes it with
        return out

    def users(self, header):
        """Objects of the program that include a header, or what is precompiled from it."""
        including, name = set(), None
        wanted = os.path.realpath(os.path.join(self.root, header))
        for line in self.ninja("deps").splitlines():
            if line and not line.startswith(" "):
                name = line.split(": ")[0]
            elif (line.endswith(os.path.basename(header))
                  and os.path.realpath(os.path.join(self.folder, line.strip())) == wanted):
                including.add(name)
        folders = {os.path.dirname(name) for name in including if name.endswith("/cmake_pch.hxx.gch")}
        return {name for name in self.linked if name in including or any(
            word.endswith("/cmake_pch.hxx") and os.path.relpath(os.path.dirname(word), self.folder) in folders
            for word in self.commands[name][0])}

    def narrower(self):
        """Objects that this processor never runs: those of narrower instruction sets than its own."""
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            flags = re.search(r"^flags\s*:(.*)$", f.read(), re.M)
        flags = set(flags.group(1).split()) if flags and "LAMELLA_ISA" not in os.environ else set()
        folders = ["lamella_kernels_scalar.dir/cpu/isa_"] * ({"avx2", "fma"} <= flags)
        if {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
            folders.append("lamella_kernels_avx2.dir/")
        return {name for name in self.linked if any(folder in name for folder in folders)}

    def idle_for(self, path):
        """Of a kernel's own text, those that never run. What they share with others has another name in each
        (LAMELLA_BACKEND); what other rooms share has not."""
        return self.idle if path.startswith(("kernels/bodies/", "kernels/cpu/")) else set()

    def sources(self, texts, folder):
        """Writes the changed texts into `folder`; what to compile for each object they are part of."""
        sources, bundles = {}, {}
        for path, text in texts.items():
            place = os.path.join(folder, "include/lamella" if is_header(path) else "sources", path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "w", encoding="utf-8", newline="") as f:
                f.write(text)
            if is_header(path):
                for name in self.users(path) - self.idle_for(path):
                    sources.setdefault(name, self.commands[name][1])
                continue
            link_neighbours(os.path.dirname(os.path.join(self.root, path)), os.path.dirname(place))
            for name, bundle in self.makers(path):
                if name in self.idle_for(path):
                    continue
                if bundle is None:
                    sources[name] = place
                    continue
                original = os.path.join(self.root, path)
                bundles[name] = bundles.get(name, bundle).replace(f'"{original}"', f'"{place}"')
        for name, text in bundles.items():
            sources[name] = os.path.join(folder, name.replace("/", "_") + ".cxx")
            with open(sources[name], "w", encoding="utf-8") as f:
                f.write(text)
        return sources

    def compile(self, name, source, folder, headers):
        words, file = self.commands[name]
        target = os.path.join(folder, name.replace("/", "_"))
        words = [target if word == name else source if word == file else word for word in words]
        words.insert(1, "-w")
        if headers:
            words[1:1] = ["-I" + os.path.join(folder, "include")]
            words = [self.precompiled(w, folder) if w.endswith("/cmake_pch.hxx") else w for w in words]
        self.call(self.launcher + words)
        return target

    def precompiled(self, place, folder):
        """A copy of what a room precompiles, compiled anew: the build's has the header as it was."""
        copy = os.path.join(folder, os.path.relpath(place, self.folder).replace("/", "_"))
        maker = self.commands.get(os.path.relpath(place, self.folder) + ".gch")
        if not os.path.exists(copy):
            shutil.copy(place, copy)
            if maker:
                words = [copy if w == place else w for w in maker[0]]
                words[words.index("-o") + 1] = copy + ".gch"
                words[1:1] = ["-w", "-I" + os.path.join(folder, "include")]
                self.call(self.launcher + words)
        return copy

    def program(self, texts, folder):
        """The program with `texts` instead of the files they are named after."""
        os.makedirs(folder, exist_ok=True)
        headers = any(map(is_header, texts))
        objects = {name: self.compile(name, source, folder, headers)
                   for name, source in self.sources(texts, folder).items()}
        program = os.path.join(folder, "lamella")
        words = [objects.get(word, word) for word in self.link]
        words[words.index("-o") + 1] = program
        self.call(words)
        return program

    def call(self, words):
        status, output = run(words, 900, cwd=self.folder)
        if status:
            raise Broken(f"{status}: {output[-600:]}")


def tests_that_fail(root, texts, tree, jobs, left_out):
    """Builds a copy of the tree with `texts` in it and runs its tests but those `left_out`."""
    files = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\n")):
        source, place = os.path.join(root, name), os.path.join(tree, name)
        if not os.path.isfile(source):
            continue
        with open(source, "rb") as f:
            wanted = texts[name].encode() if name in texts else f.read()
        if os.path.exists(place):
            with open(place, "rb") as f:
                if f.read() == wanted:   # what is newer is built again
                    continue
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as f:
            f.write(wanted)
        shutil.copymode(source, place)
    env = dict(os.environ, LAMELLA_ASAN="0")
    for words in (["cmake", "--preset", "release"], ["ninja", "-C", "build/release", "-j", jobs, "--quiet"]):
        status, output = run(words, 3600, cwd=tree, env=env)
        if status:
            raise Broken(f"gate: {output[-600:]}")
    status, output = run(["ctest", "--test-dir", "build/release", "-j", jobs, "-E", left_out], 3600, cwd=tree,
                         env=env)
    failed = re.findall(r"^\s*\d+ - (\S+) \(", output.partition("tests FAILED:")[2], re.M)
    return failed or ([f"ctest ends with {status}"] if status else [])
