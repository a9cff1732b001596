"""Finds variables that are written where verdicts are made, for check_house.py.

Two verdicts about one case are worth something only if nothing changed in between that no one sees. So the
rooms that draw, compare and know the truth hold no variable outside of functions and none that outlives a
call: verify/run/context.cpp holds what a run chooses and a check notes.
"""
import re

ROOMS = ("verify/case/", "verify/oracle/", "verify/gradcheck/")
# Variables of what is called without arguments, by file and name: each with why it cannot be handed over.
EXCEPTIONS = {
    ("verify/case/heap.cpp", "kept_lists"): "operator new and delete: nobody hands them anything",
    ("verify/case/heap.cpp", "counter"): "likewise",
    ("verify/case/heap.cpp", "place"): "likewise",
    ("verify/case/heap.cpp", "all"): "likewise",
    ("verify/case/heap.cpp", "end"): "likewise",
    ("verify/case/interrupted.cpp", "stop_here"): "a signal's handler",
    ("verify/case/thread_schedule.cpp", "participant"): "yield(), called from within what the threads run",
}
NO_VARIABLE = re.compile(
    r"(using|typedef|template|extern template|friend|namespace|struct|class|enum|union|static_assert"
    r"|return|public|private|protected|goto|case|default|if|for|while|switch|do|else|throw|delete|break"
    r"|continue|asm|LAMELLA_\w+)\b")
BODY = re.compile(r"\b(const|noexcept|override|final|mutable)$")  # between a function's head and its body
OUTLIVES = re.compile(r"\b(static|thread_local|extern)\b")
BRACED = re.compile(r"(static|thread_local|extern)\b[^=()]*[\w>\]]$")  # in a body: `static int x{3};`
POINTER = re.compile(r"[^(]*\(\s*(?:\w+::)*\*\s*(const\b)?\s*([A-Za-z_]\w*)(\[[^]]*\])*\s*\)\s*\(")
PARENTHESES = re.compile(r"([^(]*[\w>*&\]]\s*[\s*&]\s*)((?:\w+::)*[A-Za-z_]\w*)\((.*)\)$")
TYPE_WORD = re.compile(  # in lower case, as names of variables are
    r"(int|bool|char|double|float|long|short|signed|unsigned|void|auto|\w+_t|b?f\d+|c\d+)$")


def without_comments(text):
    """The text with comments, strings and directives blanked out, line by line."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found.group())
    text = re.sub(r'R"(\w*)\(.*?\)\1"', blank, text, flags=re.S)
    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', blank, text, flags=re.S)
    return re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*|\bLAMELLA_API(_BEGIN|_END)?\b", blank, text, flags=re.M)


def statements(text):
    """(line, statement, kind of the block around it): of a namespace, a type or a body."""
    blocks, begin, depth, at = ["namespace"], 0, 0, 0
    while at < len(text):
        sign = text[at]
        depth += (sign in "([") - (sign in ")]")
        if sign == "{" and depth == 0:
            head = " ".join(text[begin:at].split())
            if re.match(r"(inline )?namespace\b|extern\b\s*$", head):
                kind = "namespace"
            elif re.match(r"(template\b.*\s|typedef\s)?(struct|class|union|enum)\b[^=()]*$", head):
                kind = "type"
            elif BRACED.match(head) or \
                    blocks[-1] != "body" and re.search(r"[\w>\]=]$", head) and not BODY.search(head):
                kind = "value"  # an initializer: the statement goes on behind it
            else:
                kind = "body"
            blocks.append(kind)
            if kind != "value":
                begin = at + 1
        elif sign == "}" and depth == 0 and len(blocks) > 1:
            if blocks.pop() != "value":
                begin = at + 1
        elif sign == ";" and depth == 0 and blocks[-1] != "value":
            statement = text[begin:at]
            yield text.count("\n", 0, begin + len(statement) - len(statement.lstrip())) + 1, \
                " ".join(statement.split()), blocks[-1]
            begin = at + 1
        at += 1


def is_value(text):
    """Whether what stands in parentheses behind a name initialises a variable: no list of parameters."""
    first = text.split(",")[0].strip()
    if not first:
        return text != ""  # a string, blanked out
    if re.match(r"[-+!~&*\"'{[\d]|(nullptr|true|false|sizeof|new)\b|k[A-Z]\w*$", first):
        return True
    if re.search(r"[\w\]](\((?!\*)|->|\.\w)|\s[-+/%|]\s", first):
        return True  # a call, a member, a sum
    return re.fullmatch(r"[a-z]\w*", first) is not None and not TYPE_WORD.match(first)


def variable(statement, around):
    """The name of the variable that is written and outlives calls, if the statement declares one."""
    attributes = r"^((public|private|protected):\s*)+|\[\[[^]]*\]\]\s*|\balignas\([^)]*\)\s*"
    statement = re.sub(attributes, "", statement)
    if not statement or NO_VARIABLE.match(statement):
        return None
    if around != "namespace" and not OUTLIVES.search(statement.split("=")[0].split("{")[0]):
        return None
    declared = re.sub(r"\[[^]]*\]", "[]", re.split(r"=|\{", statement, maxsplit=1)[0]).strip()
    bare = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", declared))
    pointer, init = POINTER.match(bare), PARENTHESES.match(bare)
    if pointer:  # to a function
        written = not pointer.group(1) and not re.search(r"\bconstexpr\b", bare[:pointer.start(2)])
        return pointer.group(2) if written else None
    if init and (around == "body" or is_value(init.group(3))):
        declared = bare = init.group(1) + init.group(2).split("::")[-1]
    if "(" in bare or not re.search(r"[\w>*&\]]\s*[\s*&]\s*[A-Za-z_]\w*(\[[^]]*\])*$", bare):
        return None  # a function, or no declaration
    last = re.split(r"[*&]", bare)[-1]
    is_const = re.search(r"\bconst\b|\bconstexpr\b", bare if len(re.split(r"[*&]", bare)) == 1 else last)
    if is_const or re.search(r"\bconstexpr\b", bare):
        return None
    name = re.search(r"([A-Za-z_]\w*)(\[[^]]*\])*$", bare).group(1)
    return name if name != "operator" else None  # operator== and the like


def variables(text):
    for line, statement, around in statements(without_comments(text)):
        name = variable(statement, around)
        if name:
            yield line, name


def violations(root, paths, read):
    there = set()
    for path in paths:
        if not path.startswith(ROOMS) or not path.endswith((".h", ".cpp")):
            continue
        for line, name in variables("\n".join(read(root, path))):
            there.add((path, name))
            if (path, name) not in EXCEPTIONS:
                yield path, line, f"{name}: a variable where verdicts are made; run/context.cpp has those"
    for path, name in EXCEPTIONS:
        if path in paths and (path, name) not in there:
            yield path, 1, f"tools/check_globals.py makes an exception of {name}, which is not there"
