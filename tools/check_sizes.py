"""Finds sizes at which code goes another way and that core/thresholds.h does not list, for check_house.py.

What is found is a comparison of something that counts (n, numel, rows, bytes, ...) with an integer above 4,
or with a constant of the room that is one. A bug beyond such a size passes every case that no law draws
there, and laws draw about what the list says. A limit beyond which a call is refused is no threshold: its
error has a law.
"""
import os
import re

ROOMS = ("kernels", "ops", "transforms")
SMALLEST = 5  # up to 4 a size is that of every drawn case
COUNTS = set(
    "n numel size sizes length len count rows cols columns rank dims elements entries terms lines lanes "
    "width bytes capacity".split()
)
OPERATOR = r"(?<= )(?:<=|>=|==|!=|<|>)(?= |$)"  # formatted: brackets of templates have no spaces
NUMBER = r"(?<![\w.])(?:0x[0-9a-fA-F]+|\d+)(?:u|l|ul|ull)?(?![\w.])(?:\s*(?:<<|\*)\s*\d+)*"
CONSTANT = re.compile(rf"\b(k[A-Z]\w*)\s*(?:=|\{{)\s*({NUMBER})\s*(?=[,;}}])")
TIED = re.compile(r"static_assert\((?:kUsualThresholds\.\w+ == (\w+)|(\w+) == kUsualThresholds\.\w+)\)")
REFUSALS = ("LAMELLA_CHECK(", "LAMELLA_ASSERT(", "require(", "static_assert(")
# Comparisons that are no thresholds, by file and text: each with why a bug beyond it shows all the same.

EXCEPTIONS = {
    ("kernels/reference/elementary128.cpp", "size < 40"): "an exponent, of the oracle: no size of a tensor",
    ("ops/api/doc.cpp", "line.size() + 1 + word.size() > kColumns"): "columns of a comment",
    ("ops/api/main.cpp", "line.size() > kWidth"): "columns of a text",
    ("transforms/anomaly.cpp", "writes_.size() < kMostWrites"): "a ring of notes that messages are made of",
    ("transforms/call_site.cpp", "site.size() == kMostFrames"): "frames of the stack, for messages",
    ("transforms/call_site.cpp", "known.size() > kMost"): "places found before, for messages",
    ("transforms/call_site.cpp", "out.size() == kMostLines"): "lines of a message",
    ("transforms/call_site.cpp", "out.size() < kMostLines"): "lines of a message",
    ("transforms/machine/tape.cpp", "bytes <= kNodeBlock"): "law 92 records lists on both sides",
    ("transforms/machine/tape.cpp", "bytes <= kLargeNodeBlock"): "law 92 records lists on both sides",
    ("transforms/spare_list.h", "list.capacity() <= 64"): "memory is freed instead of kept",
}


def value(text):
    total, factors = None, re.split(r"\s*(<<|\*)\s*", text)
    for sign, part in zip([""] + factors[1::2], factors[0::2]):
        number = int(part.rstrip("ul"), 0)
        total = number if not sign else total << number if sign == "<<" else total * number
    return total


def plain(line):
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', re.sub(r"//.*", "", line))


def constants(texts):
    """Names that some file of a room gives a number to: the same name may be another size elsewhere."""
    found = {}
    for text in texts:
        for name, number in CONSTANT.findall(text):
            found[name] = max(found.get(name, 0), value(number))
    return found


def statement_begins(lines, index):
    """The first line of the statement that this line is in."""
    while index > 0 and not re.search(r"(^|[;{}:])\s*$", lines[index - 1]):
        index -= 1
    return lines[index].strip()


def is_count(side):
    outside = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", side)
    return any(set(name.strip("_").split("_")) & COUNTS for name in re.findall(r"[A-Za-z_]\w*", outside))


def cut(text, ends, opening, closing):
    """Up to the first of `ends`, or to where a bracket closes that is not opened here."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == opening) - (sign == closing)
        if depth < 0 or (depth == 0 and sign in ends):
            return text[:at]
    return text


def comparisons(line, known, tied):
    """Sides of comparisons: what is counted, and the number that it is compared with."""
    for found in re.finditer(OPERATOR, line):
        left = cut(re.split(r"\breturn\b", line[: found.start()])[-1][::-1], "&|?:;,=!{}", ")", "(")[::-1]
        right = cut(line[found.end() :], "&|?:;,={}", "(", ")")
        text = f"{left.strip()} {found.group()} {right.strip()}"
        for counted, other in ((left, right), (right, left)):
            if not is_count(counted):
                continue
            numbers = [value(n) for n in re.findall(NUMBER, f"{counted} {other}")]
            numbers += [known[n] for n in re.findall(r"\bk[A-Z]\w*", f"{counted} {other}") if n in known]
            names = set(re.findall(r"\w+", text))
            if any(n >= SMALLEST for n in numbers) and not names & tied:
                yield text
                break


def undeclared(root, path, known):
    lines = read(root, path)
    tied = {a or b for a, b in TIED.findall("\n".join(lines))}
    for number, line in enumerate(lines, 1):
        texts = [t for t in comparisons(line, known, tied) if (path, t) not in EXCEPTIONS]
        if texts and not statement_begins(lines, number - 1).startswith(REFUSALS):
            yield number, f"'{texts[0]}': a size that core/thresholds.h does not list"


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as stream:
        return [plain(line) for line in stream.read().splitlines()]


def violations(root, paths):
    """(path, line, text) of every undeclared size in these files, and of every exception for what is gone."""
    for path, text in EXCEPTIONS:
        if path in paths and text not in "\n".join(read(root, path)):
            yield path, 1, f"tools/check_sizes.py makes an exception of '{text}', which is not there"
    for room in ROOMS:
        mine = [p for p in paths if p.startswith(room + "/") and p.endswith((".h", ".cpp", ".inc", ".cu"))]
        known = constants("\n".join(read(root, path)) for path in mine)
        for path in mine:
            yield from ((path, number, text) for number, text in undeclared(root, path, known))
