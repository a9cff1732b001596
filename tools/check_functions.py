"""How long functions are: the house check asks (check_house.py)."""
import re

MAX_FUNCTION = 60
# What opens a block of another kind.
OTHER = re.compile(r"(namespace|class|struct|enum|union|extern|if|for|while|switch|else|do|try|case)\b")
# Braces of a value, not of a body.
VALUE = re.compile(r"(=|return|\bconst \w[\w:<>*& ]*\b\w+|[{(,])\s*\{$")


def without_texts(lines):
    """The lines, those within a raw string empty: an expected page is not code."""
    out, inside = [], None
    for line in lines:
        if inside:
            out.append("")
            if inside in line:
                inside = None
            continue
        out.append(line)
        opened = re.search(r'R"(\w*)\((?!.*\)\1")', line)
        if opened:
            inside = ")" + opened.group(1) + '"'
    return out


def head_of(lines, at):
    """Where the text before a brace begins: after a line that ends something."""
    ends = re.compile(r"[;{}]\s*$|^\s*$|^\s*(//|#)|:\s*$")
    first = at
    while first > 0 and at - first < 12 and not ends.search(lines[first - 1]):
        first -= 1
    return first


def is_function(head):
    """Neither a block of another kind, nor a value, nor a call that takes a lambda."""
    if "(" not in head or OTHER.match(head) or re.match(r"[\w:<>, ]+ = |[{}]", head):
        return False
    called = re.match(r"([\w:]+)\(", head)
    if not called or called[1] == "TEST":
        return True
    return bool(re.fullmatch(r"(\w+)(::\1)?", called[1])) and ") :" in head


def functions(lines):
    """(line, lines of code) of each body. clang-format puts its end under the beginning of its head."""
    for at, line in enumerate(lines):
        if not line.rstrip().endswith("{") or VALUE.search(line.rstrip()):
            continue
        first = head_of(lines, at)
        if not is_function(" ".join(" ".join(lines[first : at + 1]).split())):
            continue
        indent = re.match(r" *", lines[first]).group()
        for end in range(at + 1, len(lines)):
            if lines[end].startswith(indent + "}"):
                yield first, sum(1 for text in lines[first : end + 1] if text.strip())
                break


def violations(lines):
    for first, length in functions(without_texts(lines)):
        if length > MAX_FUNCTION:
            yield first + 1, f"a function of {length} lines; at most {MAX_FUNCTION}"
