#!/usr/bin/env python3
"""Plants the bugs of mutants/real in the sources, one at a time, and asks the laws, then the tests.

Each bug gets a program of its own (docs/mutants.md says why). Results are kept by bug and by sources: a run
that was interrupted goes on where it was. Exit status: 0 when all fit and compile, and at least --at-least of
them were noticed by the laws.
"""
import argparse
import concurrent.futures
import fcntl
import glob
import hashlib
import json
import os
import random
import re
import resource
import shutil
import sys
import time

from mutant_build import Broken, Build, run, tests_that_fail
from mutant_text import Misfit, load

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOMS = ("core", "dispatch", "draw", "include", "kernels", "mutate", "ops", "text", "tools", "transforms",
         "verify")
PAGE = """# Real mutants: who notices them

Bugs that maintainers made, planted in these sources one at a time ([mutants.md](mutants.md)), and the laws
that notice them: an exhibit each, as in [museum.md](museum.md), but in transforms, core and harness, where no
row of a table can be exchanged for a wrong one. Written by `./run full real --write docs/real_mutants.md`
from its results ([real_mutants.json](real_mutants.json): a later run on the same sources goes on from there);
the test `mutants.real_fit` sees to it that every bug here is in `mutants/real`."""
BATCH, MEMORY = 10, 24 << 30
# Laws come first anyway; formatting, a file's length and mutants that no longer fit say nothing about a bug.
NOT_IN_GATE = (r"^(proptests\.Laws|sanitized|mutants\.(sample|laws_shown_red|real_sample|real_fit|plugin)$"
               r"|house\.check_(house|format)$)")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", newline="") as f:
        return f.read()


def digest_of_sources():
    """Of all that a verdict may depend on."""
    digest = hashlib.sha256()
    for room in ROOMS:
        for folder, folders, files in os.walk(os.path.join(ROOT, room)):
            folders.sort()
            for file in sorted(files):
                if not file.endswith((".py", ".pyc")):
                    digest.update(os.path.relpath(os.path.join(folder, file), ROOT).encode())
                    with open(os.path.join(folder, file), "rb") as f:
                        digest.update(f.read())
    return digest.hexdigest()[:16]


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def is_new(failure, right):
    """Whether it does not happen to `right`, the program without a bug. That refuses the case (2) where the
    bug is in what words give; then the law and operator are asked for as long as it takes to see most."""
    if not right or not failure["replay"]:
        return True
    status = run([right, "verify", "--replay", failure["replay"]], 120)[0]
    if status == 2:
        words = ["--law", failure["law"], "--op", failure["operator"], "--time", "4", "--compile", "0"]
        status = run([right, "verify", *words], 120)[0]
    return status == 0


def new_failures(report, right):
    """Failures that do not happen to `right`, the program without a bug; None when there is no report."""
    try:
        with open(report, encoding="utf-8") as f:
            return [f for f in json.load(f)["failures"] if is_new(f, right)]
    except (OSError, ValueError, KeyError):
        return None


def processor_seconds():
    """Of all programs that ended so far."""
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of_children.ru_utime + of_children.ru_stime


def asked(program, seconds, options):
    """What the laws said in a run of so many seconds, and the report's path."""
    chosen = [word for law in options.law for word in ("--law", law)]
    report = program + ".json"
    return report, *run(
        [program, "verify", "--time", f"{seconds:g}", "--seed", str(options.verify_seed), "--processes",
         str(options.jobs), "--compile", "0", "--json", report, *chosen],
        6 * seconds + 120, preexec_fn=limit, cwd=os.path.dirname(program))


def noticed_by_laws(program, right, options):
    """None, or how the laws noticed: a failure on a case that the program without a bug passes, or a process
    that dies or does not end. Short runs come first: most bugs need no long one. On a busy machine the long
    run is given the time for the processor seconds of a quiet one, at most four times as long."""
    begin, budget = time.monotonic(), options.time * options.jobs
    lengths = [*(t for t in (2, 5) if 2 * t < options.time), options.time]
    while lengths:
        before, seconds = processor_seconds(), lengths.pop(0)
        report, status, output = asked(program, seconds, options)
        used = processor_seconds() - before
        failures = new_failures(report, right) if status == 1 else None
        if status and failures != []:
            said = [line for line in output.splitlines() if line.strip()][-1:]
            return {"status": status, "laws": sorted({f["law"] for f in failures or []}),
                    "after": round(time.monotonic() - begin, 1), "processor": round(used, 1),
                    "checks": options.jobs * min((f["checks"] for f in failures or []), default=0),
                    "said": said[0][:200] if said else ""}
        if seconds == options.time and used < 0.8 * budget:
            lengths.append(seconds * min(budget / max(used, 0.1), 4))
    return None


KEPT = os.path.join(ROOT, "docs/real_mutants.json")


class Results:
    """What is known of each mutant, in a file that is whole at any time."""

    def __init__(self, options, digest):
        name = "real" if options.shard == "0/1" else "real." + options.shard.replace("/", ".")
        self.folder = os.path.join(ROOT, "build", "full")
        self.file = options.json or os.path.join(self.folder, name + ".json")
        self.asked = [digest, options.time, sorted(options.law), options.verify_seed]
        self.kept = {}
        os.makedirs(os.path.dirname(self.file), exist_ok=True)
        for file in (KEPT, *glob.glob(os.path.join(self.folder, "real*.json")), self.file):
            try:
                with open(file, encoding="utf-8") as f:
                    known = json.load(f)
                for name, result in known["mutants"].items():
                    if result.get("asked", known.get("asked")) == self.asked and "verdict" in result:
                        self.kept[name] = {"asked": self.asked, **result}
            except (OSError, ValueError, KeyError, TypeError):
                pass

    def of(self, mutant):
        """The verdict on this text in these sources, or None."""
        result = self.kept.get(mutant.id)
        return result if result and result["text"] == mutant.digest else None

    def asked_before(self, mutant):
        """The same, but what did not compile is compiled again."""
        result = self.of(mutant)
        return result if result and result["verdict"] != "broken" else None

    def put(self, mutant, **verdict):
        self.kept[mutant.id] = {"room": mutant.room, "breaks": mutant.breaks, "text": mutant.digest,
                                "asked": self.asked, **verdict}
        with open(self.file + ".new", "w", encoding="utf-8") as f:
            json.dump({"mutants": self.kept}, f, indent=1)
        os.replace(self.file + ".new", self.file)


def is_settled(result, options):
    if not result or result["verdict"] == "broken":
        return False
    return result["verdict"] != "survives" or not options.gate or "tests" in result


def judge(mutant, program, right, results, options):
    """Asks the laws unless they answered before, then the tests."""
    result = results.asked_before(mutant)
    noticed = None if result else noticed_by_laws(program, right, options)
    if noticed:
        return results.put(mutant, verdict="verify", **noticed)
    if not options.gate:
        return results.put(mutant, verdict="survives")
    tree = os.path.join(ROOT, "build/real/tree")
    failed = tests_that_fail(ROOT, mutant.apply(read), tree, str(options.jobs), NOT_IN_GATE)
    return results.put(mutant, verdict="gate" if failed else "survives", tests=failed[:20])


class Places:
    """Where bugs' programs are made: under the same name each time, for the compiler's cache; in the folder
    of this run where another run is at work on the same bug."""

    def __init__(self, folder):
        self.folder, self.locks = folder, {}
        self.shared = os.path.join(ROOT, "build/real/of")
        os.makedirs(self.shared, exist_ok=True)

    def take(self, mutant):
        lock = open(os.path.join(self.shared, mutant.id + ".lock"), "w", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return os.path.join(self.folder, mutant.id)
        self.locks[mutant.id] = lock
        place = os.path.join(self.shared, mutant.id)
        shutil.rmtree(place, ignore_errors=True)   # of a run that was killed
        return place

    def leave(self, mutant, place):
        shutil.rmtree(place, ignore_errors=True)
        if lock := self.locks.pop(mutant.id, None):
            os.remove(lock.name)
            lock.close()


def run_batch(batch, build, folder, results, options, say):
    """Compiles the programs of a batch side by side, then runs one after the other."""
    right = os.path.join(folder, "none", "lamella")
    at = Places(folder)
    places = {mutant.id: at.take(mutant) for mutant in batch}

    def made(mutant):
        try:
            return build.program(mutant.apply(read), places[mutant.id])
        except (Broken, Misfit) as e:
            return e

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        programs = list(pool.map(lambda m: None if results.asked_before(m) else made(m), batch))
    for mutant, program in zip(batch, programs):
        begin = time.monotonic()
        try:
            if isinstance(program, Exception):
                raise program
            judge(mutant, program, right, results, options)
        except (Broken, Misfit) as e:
            results.put(mutant, verdict="broken", said=str(e))
        say(mutant, results.of(mutant), time.monotonic() - begin)
        at.leave(mutant, places[mutant.id])


def run_all(todo, results, options, say):
    folder = os.path.join(ROOT, "build/real", str(os.getpid()))
    try:
        build = Build(ROOT, os.path.join(ROOT, options.build))
        right = build.program({}, os.path.join(folder, "none"))
        status, output = run([right, "verify", "--time", "1", "--compile", "0"], 300)
        if status not in (0, 1):
            sys.exit(f"real: the program without a bug ends with {status}: {output[-300:]}")
        for i in range(0, len(todo), BATCH):
            run_batch(todo[i:i + BATCH], build, folder, results, options, say)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def checks_to_kill(results):
    """Checks until a law noticed: of half of those that laws noticed, and of 95 %; None where none was."""
    checks = sorted(r["checks"] for r in results if r.get("checks"))
    return (checks[len(checks) // 2], checks[len(checks) * 19 // 20]) if checks else None


def tally(mutants, results, key):
    """A line for each room or class, and one for all; the counts of all. Last are the checks by which half of
    them were noticed, and 95 %."""
    lines = [f"{key:26} {'planted':>7} {'verify':>7} {'gate':>7} {'survive':>7} {'rate':>6} {'half by':>9} "
             f"{'95% by':>9}"]
    counts = {}
    for part in sorted({m.keys[key] for m in mutants}) + ["together"]:
        all_of = [r for m in mutants if part in (m.keys[key], "together") and (r := results.of(m))]
        got = [r["verdict"] for r in all_of]
        counts = {v: got.count(v) for v in ("verify", "gate", "survives", "broken")}
        half, most = checks_to_kill(all_of) or ("", "")
        rate = 100 * counts["verify"] / len(got) if got else 0
        lines.append(f"{part:26} {len(got):7} {counts['verify']:7} {counts['gate']:7} {counts['survives']:7} "
                     f"{rate:5.1f}% {half:>9} {most:>9}"
                     + (f"  {counts['broken']} do not compile" if counts["broken"] else ""))
    return lines, counts


def table(mutants, results):
    lines, counts = tally(mutants, results, "room")
    lines += [""] + tally(mutants, results, "class")[0][:-1]
    for m in mutants:
        result = results.of(m)
        if result and result["verdict"] in ("survives", "gate", "broken"):
            how = {"gate": f" (noticed by {', '.join(result.get('tests', []))})",
                   "broken": f" DOES NOT COMPILE: {result.get('said')}"}.get(result["verdict"], "")
            lines.append(f"{m.id} ({m.room}, {m.keys['class']}, {m.keys['issue']}): {m.breaks}{how}")
    lines.append(f"{sum(counts.values())} bugs: {counts['verify']} noticed by the laws, {counts['gate']} by "
                 f"the tests alone, {counts['survives']} by nobody, {counts['broken']} do not compile")
    return "\n".join(lines), counts


def page(mutants, results, options):
    """The table of what is known, as a page of docs."""
    lines = PAGE.split("\n")
    laws = "".join(f" --law {law}" for law in options.law)
    lines += ["", f"`lamella verify --time {options.time:g}{laws}`:", "", "```text"]
    lines += tally(mutants, results, "room")[0] + [""] + tally(mutants, results, "class")[0][:-1] + ["```"]
    if unknown := sum(not results.of(m) for m in mutants):
        lines += ["", f"Not measured on these sources: {unknown} more."]
    for room in sorted({m.room for m in mutants}):
        lines += ["", f"## {room}", "", "| id | modelled on | what breaks | noticed by | s | checks |",
                  "| --- | --- | --- | --- | --- | --- |"]
        for m in mutants:
            result = results.of(m)
            if m.room != room or not result:
                continue
            by = result.get("laws") or result.get("tests") or []
            said = ", ".join(f"`{law}`" for law in by[:3]) or \
                (f"it {result['said']}" if result["verdict"] == "verify" else "nobody")
            cells = [f"`{m.id}`", m.keys["issue"], m.breaks, said, str(result.get("after", "")),
                     str(result.get("checks") or "")]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def record(mutants, results, options):
    """What is known of each bug, beside the commit: docs keep it, and a later run on the same sources goes on
    from it."""
    commit = run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], 60)[1].strip()
    head = {"commit": commit, "seconds": options.time, "seed": options.verify_seed, "asked": results.asked}
    left_out = ("asked", "room", "breaks", "pairs", "status")
    rows = [f' {json.dumps(m.id)}: {json.dumps({k: v for k, v in r.items() if k not in left_out})}'
            for m in mutants if (r := results.of(m))]
    return json.dumps(head)[:-1] + ', "mutants": {\n' + ",\n".join(rows) + "\n}}\n"


def strangers(path, mutants):
    """Bugs that a page names and that are not in mutants/real."""
    with open(path, encoding="utf-8") as f:
        named = re.findall(r"^\| `([^`]+)` \|", f.read(), re.M)
    return sorted(set(named) - set(mutants))


def parse(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true", help="only see whether every mutant fits its source")
    p.add_argument("--known", action="store_true", help="measure nothing more: show, or write, what is known")
    p.add_argument("--gate", action="store_true", help="run the tests on what the laws do not notice")
    p.add_argument("--only", default="", metavar="ID,ID", help="these mutants")
    p.add_argument("--room", default="", help="those of one room")
    p.add_argument("--sample", type=int, metavar="N", help="so many, drawn with --seed")
    p.add_argument("--seed", default="1", metavar="S")
    p.add_argument("--shard", default="0/1", metavar="I/N", help="part I of N, from 0")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers and processes at once")
    p.add_argument("--time", type=float, default=15, help="seconds of `lamella verify` (15)")
    p.add_argument("--law", action="append", default=[], help="only these laws, as for `lamella verify`")
    p.add_argument("--verify-seed", type=int, default=20261122)
    p.add_argument("--at-least", type=float, default=0, metavar="RATE",
                   help="of the bugs, 0 to 1, that the laws must notice; else exit 1")
    p.add_argument("--build", default="build/release", help="the build that the rest is taken from")
    p.add_argument("--json", help="results (build/full/real.json)")
    p.add_argument("--write", metavar="FILE",
                   help="write who notices what to FILE, and after how many checks to the same name in .json")
    return p.parse_args(words)


def chosen(mutants, options):
    wanted = set(filter(None, options.only.split(",")))
    unknown = wanted - set(mutants)
    if unknown:
        sys.exit(f"real: there is no mutant {', '.join(sorted(unknown))}")
    ids = [i for i in sorted(mutants) if (not wanted or i in wanted) and options.room in ("", mutants[i].room)
           and not mutants[i].dropped]
    if options.sample is not None:
        ids = sorted(random.Random(options.seed).sample(ids, min(options.sample, len(ids))))
    part, parts = map(int, options.shard.split("/"))
    return [mutants[i] for i in ids[part::parts]]


def main(words):
    options = parse(words)
    mutants, wrong = load(os.path.join(ROOT, "mutants/real"))
    for mutant in mutants.values():
        mutant.digest = hashlib.sha256(repr(mutant.changes).encode()).hexdigest()[:16]
        try:
            if not mutant.dropped:
                mutant.apply(read)
        except Misfit as e:
            wrong.append(str(e))
    pages = [p for p in (os.path.join(ROOT, "docs/real_mutants.md"),) if os.path.exists(p)]
    wrong += [f"{os.path.basename(p)}: there is no mutant {i}" for p in pages for i in strangers(p, mutants)]
    if wrong or options.check:
        print("\n".join(wrong + [f"{len(mutants)} mutants: {len(wrong)} do not fit"]))
        return 1 if wrong else 0
    planted = chosen(mutants, options)
    results = Results(options, digest_of_sources())
    todo = [m for m in planted if not options.known and not is_settled(results.of(m), options)]
    done = [len(planted) - len(todo)]

    def say(mutant, result, seconds):
        done[0] += 1
        by = ", ".join((result.get("laws") or result.get("tests") or [result.get("said", "")[:80]])[:3])
        at = f"{done[0]:4}/{len(planted)}"
        print(f"{at} {result['verdict']:9}{seconds:6.1f} s  {mutant.id}: {by}", flush=True)

    status = 0
    try:
        if todo:
            run_all(todo, results, options, say)
    except KeyboardInterrupt:
        status = 130
    text, counts = table(planted, results)
    print(text)
    if unknown := len(planted) - sum(counts.values()):
        print(f"{unknown} bugs are not measured yet")
    if options.write:
        with open(os.path.join(ROOT, options.write), "w", encoding="utf-8") as f:
            f.write(page(planted, results, options))
        with open(os.path.join(ROOT, os.path.splitext(options.write)[0] + ".json"), "w",
                  encoding="utf-8") as f:
            f.write(record(planted, results, options))
    enough = counts["verify"] >= options.at_least * sum(counts.values())
    return status or (1 if counts["broken"] or not enough else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
