#!/usr/bin/env python3
"""Shows the pages of `lamella report` in headless Chromium: a clean run, failures, a matrix of mutants; and
those of `lamella bench`, with their drawings, at two widths.

usage: browser_test.py PROGRAM FOLDER_OF_PLUGINS  exits 77 when there is no Chromium

Every heading of every table is clicked, which sorts it; whatever the console says is a failure.
"""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Put before the page's own script: errors that the console alone would have, and what was thrown.
WATCH = """<script>window.wrong = [];
    addEventListener("error", e => wrong.push(e.message));
    addEventListener("securitypolicyviolation", e => wrong.push(e.violatedDirective));
    console.error = console.warn = (...said) => wrong.push(said.join(" "));</script>"""
# Put behind it. The first table is then sorted by its last column.
CLICK = """<script>const tables = [...document.querySelectorAll("table")];
    const heads = tables.flatMap(t => [...t.tHead.rows[0].cells]);
    heads.forEach(h => h.click());
    const first = document.querySelector("table.heat");
    const sums = [...first.tBodies[0].rows].map(r => r.lastElementChild.dataset.v);
    document.title = JSON.stringify({tables: tables.length, clicked: heads.length, sums: sums.map(Number),
        wrong, failures: document.querySelectorAll("details").length,
        bad: document.querySelectorAll("td.bad").length,
        mutants: document.getElementById("mutants") !== null}).replaceAll("<", "(");</script>"""

# Of a page of `lamella bench`: drawings, words of theirs that lie outside of them, and whether all fits.
DRAWN = """<script>
    const boxes = [...document.querySelectorAll("svg")].map(s => [s, s.getBoundingClientRect()]);
    const outside = boxes.flatMap(([s, box]) => [...s.querySelectorAll("text")].filter(t => {
        const r = t.getBoundingClientRect(); return r.left < box.left - 1 || r.right > box.right + 1;
    }).map(t => t.textContent));
    document.title = JSON.stringify({drawings: boxes.length, outside, wrong,
        tables: document.querySelectorAll("table").length,
        wide: document.documentElement.scrollWidth - innerWidth}).replaceAll("<", "(");</script>"""


class Browser:
    def __init__(self, chromium, folder):
        self.chromium, self.folder = chromium, folder

    def show(self, page, width=1600):
        """Title of the page once it was clicked through, and what the console said."""
        path = os.path.join(self.folder, "shown.html")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(page)
        command = [self.chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--enable-logging=stderr", f"--user-data-dir={os.path.join(self.folder, 'profile')}",
                   "--virtual-time-budget=5000", "--dump-dom", f"--window-size={width},1400",
                   f"--screenshot={os.path.join(self.folder, 'page.png')}", "file://" + path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        title = re.search(r"<title>(.*?)</title>", done.stdout)
        assert title, done.stdout[:2000] + done.stderr[-2000:]
        return title.group(1), [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    def clicked(self, page):
        """What CLICK found; nothing may have gone wrong."""
        watched = page.replace("<body>", "<body>" + WATCH).replace("</body>", CLICK + "</body>")
        title, console = self.show(watched)
        assert title.startswith("{"), (title, console)
        found = json.loads(html.unescape(title))
        assert not found["wrong"] and not console, (found, console)
        assert found["sums"] == sorted(found["sums"], reverse=True), found
        return found

    def drawn(self, page, width):
        """What DRAWN found; everything fits."""
        watched = page.replace("<body>", "<body>" + WATCH).replace("</body>", DRAWN + "</body>")
        title, console = self.show(watched, width)
        assert title.startswith("{"), (title, console)
        found = json.loads(html.unescape(title))
        assert not found["wrong"] and not found["outside"] and not console, (found, console)
        assert found["wide"] <= 0 and found["tables"] == 1, found
        return found


def check_bench(browser, run):
    page = os.path.join(browser.folder, "bench.html")
    quick = ["--rounds", "3", "--seconds", "0.0005", "--laws", "0"]
    run("bench", "softmax", "matmul", "--sizes", "16x16,64x64,128x128", *quick, "-o", page)
    with open(page, encoding="utf-8") as stream:
        text = stream.read()
    for width in (1400, 700):
        found = browser.drawn(text, width)
        assert found["drawings"] >= 6, found  # of each operator: time, share of the limit, error
        print(f"rendered {width} wide: {found}")


def check_that_errors_are_seen(browser, page):
    """Else the checks below would prove nothing."""
    for wrong in ("nowhere.click();", "console.error('no');", "document.body.append(new Image); "
                  "document.body.lastChild.src = 'https://example.invalid/x.png';"):
        try:
            browser.clicked(page.replace("</body>", f"<script>{wrong}</script></body>"))
        except AssertionError:
            continue
        raise SystemExit(f"the browser's complaint about {wrong} was not seen")


def main():
    program, plugins = map(os.path.abspath, sys.argv[1:])
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        print("skipped: no Chromium is installed (apt-get install chromium)")
        return 77

    def run(*arguments, status=0):
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == status, (arguments, done.returncode, done.stderr)
        return done.stdout

    with tempfile.TemporaryDirectory() as folder:
        clean, broken, mutants = (os.path.join(folder, name) for name in ("a.json", "b.json", "m.json"))
        run("verify", "--op", "tanh,add,sum,where", "--cases", "16", "--seed", "7", "--json", clean)
        run("verify", "--load", os.path.join(plugins, "my_operator_broken.so"), "--cases", "16",
            "--seed", "1", "--json", broken, status=1)
        run("mutate", "--load", os.path.join(plugins, "my_mutant.so"), "--op", "tanh", "--sample", "12",
            "--budget", "300", "--first", "--at-least", "0", "--json", mutants)
        browser = Browser(chromium, folder)
        page = run("report", clean, "-o", "-")
        check_that_errors_are_seen(browser, page)
        found = browser.clicked(page)
        assert len(found["sums"]) == 4 and found["failures"] == 0 and not found["mutants"], found
        for inputs in ([broken], [broken, mutants]):
            found = browser.clicked(run("report", *inputs, "-o", "-"))
            assert found["failures"] > 0 and found["bad"] > 0, found
            assert found["mutants"] == (len(inputs) == 2), found
            print(f"rendered: {found}")
        if "install libbenchmark-dev" not in run("doctor"):
            check_bench(browser, run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
