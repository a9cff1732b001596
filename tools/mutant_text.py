"""The files of mutants/real: what they say, and putting a bug into the text of a source file.

A file holds `key: value` lines (id, room, class, issue, breaks; `note:` where it was aimed anew, `dropped:`
with the reason where what it broke is no more) and then one change or several:

    file: transforms/machine/tape.cpp
    old:
    text that is in the file once, byte by byte
    new:
    what stands there instead; an empty line for nothing
    end:
"""
import os
import re

NEEDED = ("id", "room", "class", "issue", "breaks")
CLASSES = ("acceptance", "dims", "dtypes", "files", "formulas", "harness", "layouts", "memory", "programs",
           "promises", "sizes", "threads", "values")  # what shows it: docs/mutants.md
KEYS = NEEDED + ("note", "dropped")
CHANGE = re.compile(r"file: (\S+)\nold:\n(.*?)\nnew:\n(.*?)\nend:\n", re.S)


class Misfit(Exception):
    """A mutant that cannot be read, or whose text is not in the source, or there more than once."""


class Mutant:
    def __init__(self, text, name):
        head, mark, body = text.partition("file: ")
        self.text, self.keys = text, {}
        for line in filter(None, head.split("\n")):
            key, colon, value = line.partition(": ")
            if not colon or key not in KEYS or key in self.keys or not value.strip():
                raise Misfit(f"{name}: the line {line!r} is not one of {', '.join(KEYS)}, each once")
            self.keys[key] = value.strip()
        missing = [key for key in NEEDED if key not in self.keys]
        if missing:
            raise Misfit(f"{name}: no {', '.join(missing)}")
        self.id, self.room, self.breaks = (self.keys[k] for k in ("id", "room", "breaks"))
        self.dropped = self.keys.get("dropped")
        if self.keys["class"] not in CLASSES:
            raise Misfit(f"{name}: its class is {self.keys['class']}, expected one of {', '.join(CLASSES)}")
        if self.id != name:
            raise Misfit(f"{name}: its id is {self.id}")
        self.changes = CHANGE.findall(mark + body)
        if "".join(f"file: {f}\nold:\n{o}\nnew:\n{n}\nend:\n" for f, o, n in self.changes) != mark + body:
            raise Misfit(f"{name}: expected changes of file:, old:, new: and end:, and nothing between them")
        if not self.changes and not self.dropped:
            raise Misfit(f"{name}: it changes nothing")

    def apply(self, read):
        """{path: text with the bug}, given read(path). Raises Misfit."""
        texts = {}
        for path, old, new in self.changes:
            try:
                text = texts[path] if path in texts else read(path)
            except OSError:
                raise Misfit(f"{self.id}: there is no {path}") from None
            found = text.count(old) if old else 0
            if found != 1:
                raise Misfit(f"{self.id}: {path} has the old text {found} times, expected once: {old!r:.70}")
            if old == new:
                raise Misfit(f"{self.id}: old and new are the same text in {path}")
            texts[path] = text.replace(old, new)
        return texts


def load(folder):
    """All mutants of a folder by id, and what is wrong with files that could not be read."""
    mutants, wrong = {}, []
    for file in sorted(os.listdir(folder)):
        name, suffix = os.path.splitext(file)
        try:
            if suffix != ".txt":
                raise Misfit(f"{file}: expected a name that ends in .txt")
            with open(os.path.join(folder, file), encoding="utf-8", newline="") as f:
                mutants[name] = Mutant(f.read(), name)
        except Misfit as e:
            wrong.append(str(e))
    return mutants, wrong
