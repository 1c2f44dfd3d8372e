#!/usr/bin/env python3
"""Reports the times of a run of scripts/test.sh, and checks them against budgets.

    test_times.py RECORDS [--source DIR] [--budget FILE] [--json FILE]

RECORDS is a folder written by test.sh:
    phases.tsv       two lines per phase, before and after it, tab-separated: name, kind (build, tests, other), build
                     tree, "start" or the exit status, time, the shell's /proc/self/stat, line "cpu" of /proc/stat or -
    NAME.ninja_log   the tree's .ninja_log before the phase NAME of kind build; absent if the tree was new
    NAME.xml         the result of `ctest --output-junit` in the phase NAME of kind tests
Build trees are relative to DIR (default: this checkout). Labels come from `ctest --show-only=json-v1`.

Budgets are 60 s per test and 30 s per compilation, in wall time at the concurrency of the run. Times are first scaled
by the phase's share of the machine, 1 - others / capacity in CPU time; others are other processes and steal time.
FILE (default tests/time_budget.txt) lists exceptions, one per line: KIND LIMIT PATTERN REASON. KIND is test or compile,
LIMIT is in seconds, PATTERN is a glob of a test, an object or a source, or TREE:GLOB for one build tree. The first
matching line applies. A source also matches the unity object that contains it, and stays valid when files are added.
Exit status: 1 if a scaled time exceeds twice its limit, 2 if an input is malformed, else 0.

Keys of the JSON file (default RECORDS/times.json; wall_s, cpu_s and seconds are in seconds, scaled_s after scaling):
    machine               cpu (model), cores, load (averages over 1, 5 and 15 minutes), commit, date
    total                 wall_s, cpu_s
    phases                name, kind, tree, status, wall_s, cpu_s, share (1 if /proc/stat is not readable)
    trees                 tree, wall_s (building), compile_s (sum), compilations, cached (under 0.5 s), links
    labels                label, tree, tests (that ran), skipped, seconds (sum)
    slowest_tests         tree, name, seconds, scaled_s: 15 of them
    slowest_compilations  likewise; name is the object, title a readable name
    over_budget           kind, tree, name, title, seconds, scaled_s, limit, fails (whether over twice the limit)
    no_longer_needed      exceptions: place (file:line), kind, pattern, why
    missing               inputs that are absent or incomplete, in words
"""

import argparse
import dataclasses
import datetime
import fnmatch
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import xml.etree.ElementTree

BUDGETS = {"test": 60.0, "compile": 30.0}
SLOWEST = 15
CACHED_S = 0.5  # a faster compilation counts as a compiler cache hit


class Row:
    def row(self, *keys: str) -> dict[str, object]:
        return {key: round(value, 3) if isinstance(value := getattr(self, key), float) else value for key in keys}


@dataclasses.dataclass
class Phase(Row):
    name: str
    kind: str
    tree: str
    start: float  # seconds since the epoch
    status: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0  # of the phase's processes
    share: float = 1.0
    machine: tuple[float, float] | None = None  # busy and total CPU time of the whole machine


@dataclasses.dataclass
class Timing(Row):
    kind: str  # test or compile
    tree: str
    name: str
    title: str
    names: list[str]  # matched against the patterns of exceptions
    seconds: float = 0.0
    scaled_s: float = 0.0
    ran: bool = False
    measured: bool = False  # false also for compiler cache hits

    def set_time(self, seconds: float, phase: Phase, least: float) -> None:
        self.seconds, self.scaled_s, self.ran, self.measured = seconds, seconds * phase.share, True, seconds >= least


@dataclasses.dataclass
class Limit:
    place: str
    kind: str
    seconds: float
    tree: str  # empty: any tree
    pattern: str

    def matches(self, timing: Timing) -> bool:
        return (self.kind == timing.kind and self.tree in ("", timing.tree) and
                any(fnmatch.fnmatchcase(name, self.pattern) for name in timing.names))


def read_limits(path: pathlib.Path) -> list[Limit]:
    limits = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split(maxsplit=3)
        if not words or words[0].startswith("#"):
            continue
        budget = BUDGETS.get(words[0])
        if budget is None or len(words) < 4:
            raise ValueError(f"{path}:{number}: expected KIND LIMIT PATTERN REASON, KIND being test or compile; "
                             f"found {line!r}")
        if not re.fullmatch(r"\d+(\.\d+)?", words[1]) or float(words[1]) <= budget:
            raise ValueError(f"{path}:{number}: expected a limit in seconds above the budget of {budget:g}; "
                             f"found {words[1]!r}")
        tree, _, pattern = words[2].rpartition(":")
        limits.append(Limit(f"{path.name}:{number}", words[0], float(words[1]), tree, pattern))
    return limits


def read_phases(path: pathlib.Path, missing: list[str]) -> list[Phase]:
    """Phases in the order of their starts. A phase without an end is left out and named in `missing`."""
    tick = os.sysconf("SC_CLK_TCK")
    begun: dict[str, tuple[Phase, float, list[int]]] = {}
    phases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            name, kind, tree, event, time, process, machine = line.split("\t")
            seconds = float(time.replace(",", "."))  # bash writes the locale's decimal point
            cpu_s = sum(map(int, process.rpartition(")")[2].split()[11:15])) / tick  # user and system time of the shell and its children
            jiffies = [int(word) for word in machine.split()[1:9]]  # empty if /proc/stat is not readable
            if event == "start":
                begun[name] = Phase(name, kind, tree, seconds), cpu_s, jiffies
                continue
            phase, cpu_before, before = begun.pop(name)
            phase.status, phase.wall_s, phase.cpu_s = int(event), seconds - phase.start, cpu_s - cpu_before
        except (ValueError, KeyError):
            raise ValueError(f"{path}:{number}: expected 7 fields, as test_times.py --help lists them; "
                             f"found {line!r}") from None
        if len(jiffies) == len(before) == 8:
            user, nice, system, idle, iowait, irq, softirq, steal = (a - b for a, b in zip(jiffies, before))
            busy = user + nice + system + steal
            phase.machine = busy / tick, (busy + idle + iowait + irq + softirq) / tick
        phases.append(phase)
    missing += [f"the end of phase {name}" for name in begun]
    set_shares(phases)
    return sorted(phases, key=lambda phase: phase.start)


def set_shares(phases: list[Phase]) -> None:
    """Sets the share of each phase. Parallel phases do not count as other processes of each other."""
    for phase in phases:
        if not phase.machine or phase.machine[1] <= 0:
            continue
        own = 0.0
        for other in phases:
            overlap = min(phase.start + phase.wall_s, other.start + other.wall_s) - max(phase.start, other.start)
            if overlap > 0:
                own += other.cpu_s * overlap / other.wall_s
        busy, total = phase.machine
        phase.share = min(1.0, 1 - max(0.0, busy - own) / total)


def compilation(source: pathlib.Path, tree: str, object_: str) -> Timing:
    """Title and sources of an object file: a unity source or another generated source includes several."""
    match = re.fullmatch(r"(?:(.+)/)?CMakeFiles/([^/]+)\.dir/(.+)\.o", object_)
    if not match:
        return Timing("compile", tree, object_, object_, [object_])
    folder, target, rest = match[1] or "", match[2], match[3]
    sources: list[str] = []
    for generated in (source / tree / object_.removesuffix(".o"), source / tree / folder / rest):
        if generated.is_file():
            sources = re.findall(r'^#include "([^"]+\.(?:c|cc|cpp|cxx|cu))"', generated.read_text("utf-8"), re.M)
            break
    if sources:
        sources = [os.path.relpath(name, source) if os.path.isabs(name) else name for name in sources]
        shared = os.path.commonpath([os.path.dirname(name) for name in sources])
        ends = [os.path.splitext(os.path.relpath(name, shared))[0] for name in sources]
        stem = re.sub("_(c|cxx|cuda)$", "", pathlib.Path(rest).stem)
        inner = f"{{{ends[0]}..{ends[-1]}}}" if len(ends) > 1 else ends[0]
        title = f"{target} {stem} ({os.path.join(shared, inner)})"
    else:
        sources = [os.path.normpath(os.path.join(folder, re.sub(r"(^|/)__(?=/)", r"\1..", rest)))]
        title = f"{target} {sources[0]}"
    return Timing("compile", tree, object_, title, [object_, *sources])


def log_lines(path: pathlib.Path) -> list[str]:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return [line for line in text.splitlines() if not line.startswith("#") and line.count("\t") == 4]


def read_builds(source: pathlib.Path, records: pathlib.Path, phases: list[Phase], missing: list[str]
                ) -> tuple[list[dict], list[Timing]]:
    """A row per tree, and a timing per entry of its .ninja_log. Entries of this run are those that the log lacked
    before a phase: ninja appends entries, and sometimes rewrites the file with the same lines."""
    rows, timings = [], []
    for tree in dict.fromkeys(phase.tree for phase in phases if phase.kind == "build"):
        builds = [phase for phase in phases if phase.kind == "build" and phase.tree == tree]
        lines = log_lines(source / tree / ".ninja_log")
        ninja = source / tree / "build.ninja"
        if not lines or not ninja.is_file():
            missing.append(f"{tree}/.ninja_log: the tree was not built")
            continue
        before = [(phase, set(log_lines(records / f"{phase.name}.ninja_log"))) for phase in reversed(builds)]
        linked = re.findall(r"^build ([^|:]+?)(?: \|[^:]*)?: \w+_LINKER__", ninja.read_text("utf-8"), re.M)
        linked = {output for outputs in linked for output in outputs.split()}
        edges, mine = set(), []
        for line in lines:
            start, end, _, output, digest = line.split("\t")
            phase = next((phase for phase, old in before if line not in old), None)
            if phase and output in linked:
                edges.add((phase.name, start, end, digest))  # an edge with several outputs has one line per output
            if output.endswith(".o"):
                mine.append(compilation(source, tree, output))
                if phase:
                    mine[-1].set_time((int(end) - int(start)) / 1000, phase, CACHED_S)
        timings += mine
        mine = [timing for timing in mine if timing.ran]
        rows.append({"tree": tree, "wall_s": round(sum(phase.wall_s for phase in builds), 3),
                     "compile_s": round(sum(timing.seconds for timing in mine), 3), "compilations": len(mine),
                     "cached": sum(not timing.measured for timing in mine), "links": len(edges)})
    return rows, timings


def read_tests(source: pathlib.Path, records: pathlib.Path, phases: list[Phase], missing: list[str]
               ) -> tuple[list[dict], list[Timing]]:
    """A row per label and tree, and a timing per test of each tree, including tests that did not run."""
    rows: dict[tuple[str, str], dict] = {}
    timings = []
    for phase in (phase for phase in phases if phase.kind == "tests"):
        try:
            listed = subprocess.run(["ctest", "--show-only=json-v1", "--test-dir", source / phase.tree],
                                    capture_output=True, check=True).stdout
            labels = {test["name"]: next((entry["value"] for entry in test.get("properties", [])
                                          if entry["name"] == "LABELS"), ["(none)"])
                      for test in json.loads(listed)["tests"]}
            cases = xml.etree.ElementTree.parse(records / f"{phase.name}.xml").getroot().iter("testcase")
        except (OSError, ValueError, subprocess.CalledProcessError, xml.etree.ElementTree.ParseError) as error:
            missing.append(f"results of phase {phase.name}: {error}")
            continue
        tests = {name: Timing("test", phase.tree, name, name, [name]) for name in labels}
        for case in cases:
            name = case.attrib["name"]
            timing = tests.setdefault(name, Timing("test", phase.tree, name, name, [name]))
            if case.attrib["status"] != "notrun":
                timing.set_time(float(case.attrib["time"]), phase, 0)
            for label in labels.get(name, ["(none)"]):
                row = rows.setdefault((label, phase.tree), {"label": label, "tree": phase.tree, "tests": 0,
                                                            "skipped": 0, "seconds": 0.0})
                row["tests" if timing.ran else "skipped"] += 1
                row["seconds"] = round(row["seconds"] + timing.seconds, 3)
        timings += tests.values()
    return [rows[key] for key in sorted(rows)], timings


def check(timings: list[Timing], limits: list[Limit], complete: bool) -> tuple[list[dict], list[dict]]:
    """Times over their budget, and exceptions that are no longer needed. An exception without a measurement is kept,
    unless the run was complete, included the exception's tree and has no match."""
    over, stale = [], []
    for timing in (timing for timing in timings if timing.measured):
        limit = next((limit.seconds for limit in limits if limit.matches(timing)), BUDGETS[timing.kind])
        if timing.scaled_s > limit:
            over.append(timing.row("kind", "tree", "name", "title", "seconds", "scaled_s") |
                        {"limit": limit, "fails": timing.scaled_s > 2 * limit})
    for limit in limits:
        found = [timing for timing in timings if limit.matches(timing)]
        longest = max((timing.scaled_s for timing in found if timing.measured), default=None)
        if longest is not None and longest < BUDGETS[limit.kind] / 2:
            why = f"takes {longest:.1f} s, less than half of {BUDGETS[limit.kind]:g} s"
        elif complete and timings and not found and limit.tree in {"", *(timing.tree for timing in timings)}:
            why = "matches nothing"
        else:
            continue
        pattern = f"{limit.tree}:{limit.pattern}".removeprefix(":")
        stale.append({"place": limit.place, "kind": limit.kind, "pattern": pattern, "why": why})
    return sorted(over, key=lambda row: row["limit"] / row["scaled_s"]), stale


def machine(source: pathlib.Path) -> dict[str, object]:
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    model = re.search(r"^model name\s*: (.*)", cpuinfo.read_text("utf-8") if cpuinfo.is_file() else "", re.M)
    git = subprocess.run(["git", "-C", source, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
                         capture_output=True, text=True)
    return {"cpu": model[1] if model else platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "load": [round(load, 2) for load in os.getloadavg()], "commit": git.stdout.strip() or "unknown",
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def report(source: pathlib.Path, records: pathlib.Path, limits: list[Limit]) -> dict:
    missing: list[str] = []
    phases = read_phases(records / "phases.tsv", missing)
    trees, compilations = read_builds(source, records, phases, missing)
    labels, tests = read_tests(source, records, phases, missing)
    complete = not missing and all(phase.status == 0 for phase in phases)
    over, stale = check(tests + compilations, limits, complete)

    def slowest(timings: list[Timing], *keys: str) -> list[dict]:
        ran = sorted((timing for timing in timings if timing.ran), key=lambda timing: -timing.seconds)
        return [timing.row("tree", "name", *keys, "seconds", "scaled_s") for timing in ran[:SLOWEST]]

    wall_s = max(phase.start + phase.wall_s for phase in phases) - phases[0].start if phases else 0.0
    return {"machine": machine(source),
            "total": {"wall_s": round(wall_s, 3), "cpu_s": round(sum(phase.cpu_s for phase in phases), 3)},
            "phases": [phase.row("name", "kind", "tree", "status", "wall_s", "cpu_s", "share") for phase in phases],
            "trees": trees, "labels": labels, "slowest_tests": slowest(tests),
            "slowest_compilations": slowest(compilations, "title"), "over_budget": over,
            "no_longer_needed": stale, "missing": missing}


def table(title: str, columns: dict[str, str], rows: list[dict]) -> None:
    """Prints a table with right-aligned numbers; `columns` maps keys to headings. Prints nothing without rows."""
    if not rows:
        return
    cells = [list(columns.values())]
    cells += [[f"{row[key]:.1f}" if isinstance(row[key], float) else str(row[key]) for key in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    right = [isinstance(rows[0][key], (int, float)) for key in columns]
    print(f"\n{title}")
    for line in cells:
        print("  " + "  ".join(cell.rjust(width) if number else cell.ljust(width)
                               for cell, width, number in zip(line, widths, right)).rstrip())


def show(result: dict) -> None:
    about, total = result["machine"], result["total"]
    table("Phases", {"name": "phase", "tree": "tree", "wall_s": "wall s", "cpu_s": "CPU s", "percent": "share %",
                     "status": "exit"}, [row | {"percent": round(row["share"] * 100)} for row in result["phases"]])
    table("Build trees", {"tree": "tree", "wall_s": "wall s", "compile_s": "compilation s",
                          "compilations": "compilations", "cached": "from the compiler cache", "links": "links"},
          result["trees"])
    table("Labels", {"label": "label", "tree": "tree", "tests": "tests", "skipped": "skipped", "seconds": "s"},
          result["labels"])
    table("Slowest tests", {"tree": "tree", "seconds": "s", "name": "test"}, result["slowest_tests"])
    table("Slowest compilations", {"tree": "tree", "seconds": "s", "title": "source"}, result["slowest_compilations"])
    table("Over budget", {"tree": "tree", "seconds": "s", "scaled_s": "scaled s", "limit": "limit s", "title": "name",
                          "verdict": ""},
          [row | {"verdict": "FAILED: over twice the limit" if row["fails"] else ""} for row in result["over_budget"]])
    table("Exceptions that are no longer needed",
          {"place": "line", "kind": "kind", "pattern": "pattern", "why": "why"}, result["no_longer_needed"])
    table("Left out", {"what": "input"}, [{"what": what} for what in result["missing"]])
    print(f"\nTotal: {total['wall_s']:.0f} s wall, {total['cpu_s']:.0f} s CPU; {about['cpu']}, {about['cores']} cores, "
          f"load {about['load'][0]}, commit {about['commit']}")


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=pathlib.Path)
    parser.add_argument("--source", type=pathlib.Path, default=root)
    parser.add_argument("--budget", type=pathlib.Path, default=root / "tests" / "time_budget.txt")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    try:
        result = report(options.source.resolve(), options.records, read_limits(options.budget))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    show(result)
    path = options.json or options.records / "times.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return int(any(row["fails"] for row in result["over_budget"]))


if __name__ == "__main__":
    sys.exit(main())
