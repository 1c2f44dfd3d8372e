"""Pages of dtrain-report and `dtrain-data check` with hostile names of series, events, runs, titles, classes, files and
images, in a real browser: names are displayed verbatim, nothing is executed, and no request leaves the page.

Exit codes: 0 passed, 1 failed, 77 a tool is missing.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import browser
from hostile_names import NAMES, shown

BIN = pathlib.Path(os.environ.get("DTRAIN_BIN_DIR", pathlib.Path(__file__).resolve().parents[2] / "build" / "bin"))


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


# A PNG with one pixel.
PNG = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) +
       chunk(b"IDAT", zlib.compress(b"\0\x80")) + chunk(b"IEND", b""))


def check(condition, what):
    if not condition:
        raise AssertionError(str(what)[:600])


def of_file(name):
    return name.replace("/", "").replace("\0", "")[:60]


def run(program, *arguments, codes=(0,)):
    done = subprocess.run([BIN / program, *arguments], capture_output=True, text=True, errors="replace", timeout=100)
    check(done.returncode in codes, f"{program}: {done.returncode} {done.stderr[-500:]}")
    check(not any(line.startswith("error: forged") for line in done.stderr.splitlines()), done.stderr[-500:])


class Page:
    def __init__(self, page):
        self.page = page

    def open(self, path):
        self.page.open(path)
        self.text = self.page.value("document.body.textContent")
        self.title = self.page.value("document.title")

    def has(self, text):
        check(text in self.text, f"the page does not contain {text[:200]!r}")

    def unharmed(self):
        page = self.page
        check(page.value("document.title") == self.title and page.value("typeof window.forged") == "undefined",
              "a name was executed as a script")
        check(not page.errors and not page.complaints and not page.requests,
              f"{page.errors} {page.complaints} {page.requests}")
        width = page.value("document.documentElement.scrollWidth")
        check(width <= page.value("innerWidth"), f"the page is {width} pixels wide")


def write_run(folder):
    """A run with each name as series, event, class, image and annotated image."""
    folder.mkdir()
    with open(folder / "metrics.jsonl", "w") as file:
        for step in (1, 2, 3):
            file.write(json.dumps({"step": step, "loss": 1 / step, **{name: step for name in NAMES.values()},
                                   **{f"{name}_ms": step for name in NAMES.values()}}) + "\n")
    lines = [f"warning: {name}".replace("\n", " ") for name in NAMES.values()]
    (folder / "train.log").write_text("\n".join(lines) + "\nerror: <b onclick=alert(1)>\n", newline="")
    gallery = folder / "gallery"
    gallery.mkdir()
    for name in NAMES.values():
        (gallery / f"{of_file(name)}.png").write_bytes(PNG)
    images = [{"file_name": name, "picture": f"{of_file(name)}.png", "score": 0.5, "found": 1, "missed": 0, "false": 0}
              for name in NAMES.values()]
    classes = [{"name": name, "objects": 1, "box_ap": 0.5, "mask_ap": None} for name in NAMES.values()]
    (gallery / "gallery.json").write_text(json.dumps({
        "title": list(NAMES.values())[0], "notes": list(NAMES.values()), "score_name": list(NAMES.values())[2],
        "worst": images, "best": [], "classes": classes}))
    with open(folder / "predictions.jsonl", "w") as file:
        for i, name in enumerate(NAMES.values()):
            file.write(json.dumps({"file": f"gallery/{of_file(name)}.png", "label": i + 1, "label_name": name,
                                   "top": [{"class": i, "name": name, "probability": 0.5}]}) + "\n")


def try_report(page, folder, attempt):
    write_run(folder / "run")
    runs = [folder / "run"]
    for name in NAMES.values():
        runs.append(folder / of_file(name))
        runs[-1].mkdir()
        (runs[-1] / "m.jsonl").write_text('{"step":1,"loss":2}\n{"step":2,"loss":1}\n')
    title = " | ".join(name.replace("\0", "") for name in NAMES.values())
    run("dtrain-report", *runs, f"--output={folder}/report.html", f"--title={title}", "--images=40")
    page.open(folder / "report.html")
    attempt("a title", lambda name: page.has(shown(name.replace("\0", ""))))
    attempt("a run", lambda name: page.has(shown(of_file(name))))
    attempt("a note", lambda name: page.has(shown(name)))
    attempt("an event", lambda name: page.has(shown(f"warning: {name}".replace("\n", " "))[:900]))
    attempt("a class", lambda name: page.has(f"{shown(name)} (class "))
    attempt("a label", lambda name: page.has(f", not {shown(name)}"))
    names = page.page.value("[...document.images].map(one => one.alt + ' ' + one.src.slice(0, 5))")
    attempt("a picture", lambda name: check(any(shown(name) in one for one in names), f"no picture of {name[:100]!r}"))


def try_series(page, folder, attempt):
    write_run(folder / "run")
    run("dtrain-report", folder / "run", f"--output={folder}/report.html")
    page.open(folder / "report.html")
    values = page.page.value("""(() => {
        const found = [];
        for (const plot of document.querySelectorAll(".plot")) {
          plot.dispatchEvent(new KeyboardEvent("keydown", {key: "End"}));
          found.push(plot.parentElement.querySelector("figcaption").textContent);
          found.push(plot.parentElement.querySelector(".values").textContent, plot.getAttribute("aria-valuetext"));
        }
        return found.join("\\n"); })()""")
    attempt("a series", lambda name: check(f"{shown(name)}\nStep 3: run 3" in values, "its values are not shown"))
    attempt("a part of a step", lambda name: check(f"{shown(name)}_ms 3" in values, "its values are not shown"))


def try_check(page, folder, attempt):
    (folder / "set").mkdir()
    for name in NAMES.values():
        (folder / "set" / f"{of_file(name)}.jpg").write_bytes(b"no image")
    run("dtrain-data", "check", folder / "set", f"--html={folder}/check.html", "--examples=40", codes=(0, 1, 2))
    page.open(folder / "check.html")
    attempt("a file with a fault", lambda name: page.has(shown(of_file(name))))


def main():
    if browser.find() is None:
        print("SKIPPED: there is no chromium-headless-shell or chromium")
        sys.exit(77)
    outcomes = {}
    with tempfile.TemporaryDirectory() as name, browser.Browser(800, 600) as chromium:
        page = Page(chromium)

        def attempt(kind, function):
            for title, hostile in NAMES.items():
                try:
                    function(hostile)
                    page.unharmed()
                except AssertionError as problem:
                    outcomes.setdefault(title, []).append(f"as {kind}: {problem}")
                    chromium.complaints.clear()
        for one in (try_report, try_series, try_check):
            folder = pathlib.Path(name) / one.__name__
            folder.mkdir()
            one(page, folder, attempt)
    for title, problems in outcomes.items():
        print(f"FAILED {title}:", "; ".join(problems))
    print(f"{len(NAMES) - len(outcomes)} of {len(NAMES)} attacks were handled")
    sys.exit(1 if outcomes else 0)


if __name__ == "__main__":
    main()
