"""What installed headers export, and that no other file does: NOTE: [exported symbols] of core/export.h."""
import glob
import os
import re

# Of kernels no header is installed.
ROOMS = ("core", "dispatch", "draw", "ops", "transforms", "verify", "mutate", "text")
BEGIN, END, HOME = "LAMELLA_API_BEGIN", "LAMELLA_API_END", "core/export.h"


def text_of(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def installed_headers(root):
    """Those that the rooms list under HEADERS, and what people include."""
    found = [os.path.relpath(path, root) for path in glob.glob(os.path.join(root, "include", "**", "*.h"),
                                                               recursive=True)]
    for room in ROOMS:
        lists = os.path.join(root, room, "CMakeLists.txt")
        listed = re.search(r"set\(HEADERS([^)]*)\)", text_of(lists)) if os.path.exists(lists) else None
        found += [f"{room}/{name}" for name in re.findall(r"[\w./-]+\.h", listed.group(1) if listed else "")]
    return sorted(path for path in found if os.path.exists(os.path.join(root, path)))


def of_header(lines):
    """One region that has all namespaces, and no #include: what that would declare is not this header's."""
    opened = [n for n, line in enumerate(lines, 1) if re.match(r"(inline )?namespace lamella\b", line)]
    begins = [n for n, line in enumerate(lines, 1) if line == BEGIN]
    ends = [n for n, line in enumerate(lines, 1) if line == END]
    closed = [n for n, line in enumerate(lines, 1) if re.match(r"}  // namespace lamella\b", line)]
    if not opened:
        return
    if len(begins) != 1 or len(ends) != 1 or begins[0] > opened[0] or ends[0] < closed[-1]:
        yield opened[0], f"an installed header has its namespaces between {BEGIN} and {END}"
        return
    for number, line in enumerate(lines[begins[0]:ends[0]], begins[0] + 1):
        if re.match(r"\s*#\s*include", line):
            yield number, f"an #include between {BEGIN} and {END}"
    yield from two_of_one("\n".join(lines))


def two_of_one(text):
    """g++ hides what is static in a function template that says `inline`: each object has its own."""
    for found in re.finditer(r"\btemplate\s*<[^{};]*>\s+(?:static\s+)?inline\b[^{};]*\{", text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        if re.search(r"\bstatic\s+(?!constexpr\b)", text[found.end():end]):
            yield text.count("\n", 0, found.end()) + 1, "static in an inline template: leave out `inline`"


def of_other(lines, public):
    for number, line in enumerate(lines, 1):
        if re.search(rf"\b({BEGIN}|{END})\b", re.sub(r"//.*|\"[^\"]*\"", "", line)):
            yield number, "exports, and is no installed header"
        early = re.match(r"(?:class|struct) (\w+);", line)
        if early and early.group(1) in public:
            yield number, f"names {early.group(1)} before its header does, which hides it: include the header"


def violations(root, paths):
    installed = set(installed_headers(root))
    public = set()
    for path in installed:
        public |= set(re.findall(r"^(?:class|struct) (\w+)", text_of(os.path.join(root, path)), re.M))
    for path in paths:
        if not path.endswith((".h", ".cpp")) or path == HOME:
            continue
        lines = text_of(os.path.join(root, path)).splitlines()
        for number, said in of_header(lines) if path in installed else of_other(lines, public):
            yield path, number, said
