#!/usr/bin/env python3
"""Selects the tests that a change affects, nearest first, up to a time budget.

    affected_tests.py [--since REF | --file PATH...] [--budget SECONDS] [--jobs N] BUILD_DIR[:LABELS]...

Changed files are the difference between REF and the working tree, and untracked files that git does not ignore. The
default of REF is the merge base with the upstream branch, or HEAD without an upstream. --file (repeatable) lists the
changed files instead. LABELS is a regular expression: only tests with a matching label are considered, as with
`ctest -L`. A build tree must be configured; it need not be built.

A test depends on its sources, on the programs and scripts that it runs, and on the files that it reads; source_graph.py
finds them. Its distance is the number of edges to the nearest changed file. Always selected: tests at distance 0 or 1,
and tests that depend on a changed file with their name, such as cpu.winograd for cpu/kernels/winograd.cpp. Other tests
are selected by distance, then by cost, while the sum of seconds * processors is at most SECONDS * N. Seconds are the
average of earlier runs (Testing/Temporary/CTestCostData.txt of the trees).

Writes into each BUILD_DIR:
    affected_tests.txt    names of the selected tests, one per line
    affected_tests.regex  the same for `ctest -R "$(cat affected_tests.regex)"`; matches no test if none is selected
    affected_targets.txt  targets to build, one per line, for `cmake --build BUILD_DIR --target $(cat ...)`
Prints the changed files, number and time of the selected tests, and the tests that are left out. Exit status: 0, or 2
for an invalid argument.
"""

import argparse
import collections
import math
import os
import pathlib
import re
import subprocess
import sys

from ctest_tree import DEFAULT_SECONDS, Invalid, Test, Tree
from source_graph import SourceGraph

ALWAYS = 1  # tests up to this distance are selected over any budget
# Every build or test depends on these files.
GLOBAL = re.compile(r"(CMakeLists\.txt|CMakePresets\.json|cmake/.*|(libdtrain|models|data|apps|tests)/CMakeLists\.txt|"
                    r".*\.in|scripts/(setup|test)\.sh|\.ci/.*)")
BENCHMARK = re.compile(r"benchmarks/\w+_bench\.cpp")
SOURCES = r".*\.(h|cpp|cu|cuh)"
# Tests that list folders to find their input files: pattern of test names, pattern of files, distance.
READERS: tuple[tuple[str, str, int], ...] = (
    (r"include_rules", r"(include|libdtrain|models|data|apps|tests|benchmarks)/" + SOURCES, 1),
    (r"scripts\.affected_tests", r"(include|libdtrain|models|data|apps|tests)/" + SOURCES, 2),
    (r"docs\.reference", r"include/.*\.h|docs/comments_for_doxygen\.sed", 2),
    (r"readme", r"README\.md", 1),
    (r"scripts\.performance_page", r"benchmarks/(results/.*|\w+\.(py|md))|docs/performance\.md", 1),
    (r"readme\.(commands|documents)", r"(README|CONTRIBUTING|SECURITY)\.md|docs/.*|k8s/.*\.md", 1),
    (r"install\.packages", r"(README|CHANGELOG|SECURITY)\.md|LICENSE|(debian|docs|examples|scripts|k8s)/.*", 2),
    (r"install(\.examples)?", r"(examples|tests/install/consumer)/.*", 1),
    (r"install\.migration", r"tests/install/programs_0_1/.*|docs/migration\.md|scripts/migrate_.*", 1),
    (r"install(\..*)?", r"(include|libdtrain|models|data|apps)/.*", 9),
    (r"k8s\..*", r"k8s/.*", 2),
)


class Selection:
    """Tests of build trees that a set of changed files affects, and the selection within a budget."""

    def __init__(self, graph: SourceGraph, trees: list[Tree], changed: set[str], budget: float, jobs: int) -> None:
        self.graph, self.trees, self.changed, self.budget, self.jobs = graph, trees, changed, budget, jobs
        self.everything = sorted(path for path in changed if GLOBAL.fullmatch(path))
        for tree in trees:
            self._set_roots(tree)
            self._set_distances(tree)
        self.tests = [test for tree in trees for test in tree.tests]
        self.selected: set[tuple[str, str]] = set()
        self.load = 0.0
        self._select()

    def _set_roots(self, tree: Tree) -> None:
        setups = collections.defaultdict(list)
        for test in tree.all_tests.values():
            self._set_own_roots(tree, test)
            for fixture in test.items("FIXTURES_SETUP"):
                setups[fixture].append(test)
        for test in tree.tests:
            test.setups = [setup for fixture in test.items("FIXTURES_REQUIRED") for setup in setups[fixture]]
            for setup in test.setups:
                test.roots = {node: distance + 1 for node, distance in setup.roots.items()} | test.roots
                test.whole |= setup.whole
            times = [other.costs[test.name] for other in [tree] + self.trees if test.name in other.costs]
            test.timed = bool(times)
            test.seconds = times[0] if times else test.seconds

    def _set_own_roots(self, tree: Tree, test: Test) -> None:
        """Finds the sources of a test, the files that its command names, and its patterns of READERS."""
        source = self.graph.test_source(test.name.removeprefix("gpu."))
        test.roots = {source: 0, "tests/main.cpp": 1} if source else {}
        for path in test.built:
            folder, _, program = path.rpartition("/")
            source = self.graph.program(program) if folder == "bin" else self.graph.executable(program)
            if source:
                test.roots[source] = 1 if folder == "bin" else 0
        for path in test.named:
            test.roots |= {file: 0 if file == path else 1 for file in self.graph.nodes_of(path)}
        test.readers = [(re.compile(files), distance) for pattern, files, distance in READERS
                        if re.fullmatch(pattern, test.name)]
        test.known = bool(test.roots or test.readers)
        if test.folder not in (".", "tests"):  # the CMake files that define it
            test.readers.append((re.compile(re.escape(test.folder) + r"/([^/]*\.cmake|CMakeLists\.txt)"), 1))

    def _set_distances(self, tree: Tree) -> None:
        emulated, cuda = (any(name.startswith(prefix) for name in tree.all_tests) for prefix in ("emulation.", "cuda."))
        distances = self.graph.distances(self.changed, emulated, cuda)
        stems = {re.sub(r"(_cpu|_cuda)?\.\w+$", "", os.path.basename(path)) for path in self.changed}
        for test in tree.tests:
            found = [distances[node] + far for node, far in test.roots.items() if node in distances]
            found += [far for files, far in test.readers if any(files.fullmatch(path) for path in self.changed)]
            if found and test.name.rpartition(".")[2] in stems:  # cpu.winograd of cpu/kernels/winograd.cpp
                found.append(1)
            if self.everything or self.changed and not test.known:
                found.append(0)
            test.distance = min(found, default=math.inf)

    def _select(self) -> None:
        """Selects tests by distance, then by cost. After a test that exceeds the budget, cheaper ones may still fit."""
        for test in self.affected():
            load = self.load + test.load(self.jobs)
            fits = not test.whole and test.seconds <= self.budget and load <= self.budget * self.jobs
            if test.distance <= ALWAYS or fits:
                for needed in [test] + test.setups:
                    if not self.is_selected(needed):
                        self.selected.add((needed.tree, needed.name))
                        self.load += needed.load(self.jobs)

    def affected(self) -> list[Test]:
        """Tests that depend on a changed file, in the order in which they are selected."""
        return sorted((test for test in self.tests if test.distance < math.inf),
                      key=lambda test: (test.distance, test.load(self.jobs), test.name, test.tree))

    def depended_on(self) -> set[str]:
        """The changed files that some test depends on."""
        found = self.graph.read(self.graph.closure({node for test in self.tests for node in test.roots}))
        readers = {files for test in self.tests for files, _ in test.readers}
        return {path for path in self.changed if path in found or any(files.fullmatch(path) for files in readers)}

    def is_selected(self, test: Test) -> bool:
        return (test.tree, test.name) in self.selected

    def targets(self, tree: Tree) -> set[str]:
        """Targets to build in a tree: for its own tests, and for tests of other trees that use its programs."""
        targets: set[str] = set()
        names = self.graph.programs()
        for test in filter(self.is_selected, self.tests):
            if test.tree != str(tree.path):
                targets |= {"programs"} if os.path.basename(tree.build) in test.others else set()
                continue
            for path in test.built:
                folder, _, name = path.rpartition("/")
                if folder in ("bin", "tests") or self.graph.executable(name):
                    targets.add(os.path.splitext(name)[0].removeprefix("lib"))
                elif folder.startswith("libdtrain"):
                    targets.add(path)
            targets |= {"all"} if "." in test.built and test.whole else set()
            mentioned = self.graph.closure(test.roots, self.graph.is_test_side)
            targets |= {name for source, name in names.items() if source in mentioned}
        if (tree.path / "benchmarks").is_dir():  # no test runs benchmarks: changed ones are only built
            targets |= {os.path.basename(path)[:-4] for path in self.changed if BENCHMARK.fullmatch(path)}
        return {"all"} if "all" in targets or self.everything else targets


def write(selection: Selection, tree: Tree) -> None:
    """Writes the selected tests of a tree and the targets to build."""
    names = [test.name for test in tree.tests if selection.is_selected(test)]
    pattern = "|".join(re.sub(r"([.+*?^$()\[\]\\|])", r"\\\1", name) for name in names)
    for file, lines in (("tests.txt", names), ("tests.regex", [f"^({pattern})$" if names else "^$"]),
                        ("targets.txt", sorted(selection.targets(tree)))):
        (tree.path / f"affected_{file}").write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def folded(tests: list[Test]) -> str:
    """Formats tests, grouped by prefix, slowest group first: names of up to three tests, else their number."""
    groups: dict[str, list[Test]] = collections.defaultdict(list)
    for test in tests:
        groups[test.name.removeprefix("gpu.").split(".")[0]].append(test)
    named = []
    for prefix, group in groups.items():
        names = sorted({test.name for test in group})
        named.append((sum(test.seconds for test in group),
                      ", ".join(names) if len(names) <= 3 else f"{prefix}.* ({len(group)} tests)"))
    return ", ".join(f"{name} {seconds:.0f} s" for seconds, name in sorted(named, reverse=True))


def report_selected(selection: Selection) -> None:
    """Prints the selected tests, and the reason if it is not distance and cost."""
    for tree in selection.trees:
        chosen = [test for test in tree.tests if selection.is_selected(test)]
        untimed = sum(not test.timed for test in chosen)
        print(f"{tree.path}: {len(chosen)} of {counted(len(tree.tests), 'test')} selected, "
              f"about {sum(test.load(selection.jobs) for test in chosen) / selection.jobs:.0f} s"
              + (f"; {untimed} have not run yet and count {DEFAULT_SECONDS:.0f} s each" if untimed else ""))
        if chosen and not selection.everything:
            print(f"  {folded(chosen)}")
    unknown = [test for test in selection.tests if not test.known]
    if unknown:
        print(f"Selected because no source of them is known: {folded(unknown)}")
    if selection.load > selection.budget * selection.jobs and not selection.everything:
        print(f"Over the budget of {selection.budget:.0f} s: tests at distance {ALWAYS} are always selected.")


def report(selection: Selection, since: str) -> None:
    """Prints changed files, selected tests and tests that are left out."""
    changed = sorted(selection.changed)
    if not changed:
        print(f"No file has changed since {since}: no test is selected. Compare with another commit: --since REF")
        return
    print(f"{counted(len(changed), 'file')} changed" + (f" since {since}:" if since else ", by --file:"))
    for path in changed[:20] + ([f"... and {len(changed) - 20} more"] if len(changed) > 20 else []):
        print("  " + path)
    if selection.everything:
        print(f"Every test depends on {selection.everything[0]}: all tests are selected, over any budget.")
    else:
        unread = sorted(selection.changed - selection.depended_on())
        if unread:
            print(f"No test depends on {', '.join(unread[:10])}{' ...' if len(unread) > 10 else ''}")
    report_selected(selection)
    rest = [test for test in selection.tests if not selection.is_selected(test)]
    independent = [test for test in rest if test.distance == math.inf]
    if independent:
        print(f"Left out: {counted(len(independent), 'test')} independent of the change")
    whole = [test for test in rest if test.distance < math.inf and test.whole]
    if whole:
        print(f"Left out: {counted(len(whole), 'test')} that need a complete build: {folded(whole)}")
    far = [test for test in rest if test.distance < math.inf and not test.whole]
    if far:
        print(f"Left out: {counted(len(far), 'test')} at distance {min(test.distance for test in far)} or more, over "
              f"the budget of {selection.budget:.0f} s: {folded(far)}")
    if rest:
        print("To build everything and run all tests: scripts/test.sh")


def git(root: pathlib.Path, *arguments: str) -> str | None:
    """The output of git, or None if it fails."""
    result = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return result.stdout if result.returncode == 0 else None


def changed_files(root: pathlib.Path, since: str | None) -> tuple[set[str], str]:
    """The changed files, and the name of the commit that they are compared with."""
    base = since or (git(root, "merge-base", "HEAD", "@{upstream}") or "HEAD").strip()
    commit = git(root, "rev-parse", "--verify", "--quiet", base + "^{commit}")
    if commit is None:
        raise Invalid(f"--since={base}: not a commit of {root}. Expected a branch, tag or hash")
    tracked = git(root, "diff", "--name-only", "--no-renames", "-z", commit.strip())
    untracked = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if tracked is None or untracked is None:
        raise Invalid(f"{root}: git diff fails")
    return {path for path in (tracked + untracked).split("\0") if path}, since or commit[:12]


def make_graph(root: pathlib.Path, changed: set[str]) -> SourceGraph:
    """The graph of a checkout, including deleted files."""
    listed = git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    if listed is None:
        raise Invalid(f"{root}: not a git checkout")
    return SourceGraph(root, set(listed.split("\0")) - {""} | changed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--since", metavar="REF", help="a commit (default: merge base with upstream, or HEAD)")
    change.add_argument("--file", action="append", metavar="PATH", help="a changed file; may be repeated")
    parser.add_argument("--budget", type=float, default=120, metavar="SECONDS", help="of all tests (default: 120)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="tests that run in parallel")
    parser.add_argument("trees", nargs="+", metavar="BUILD_DIR[:LABELS]")
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[1]
    try:
        trees = [Tree(argument) for argument in options.trees]
        changed, since = (set(options.file), "") if options.file else changed_files(root, options.since)
        if options.file and not all((root / path).exists() for path in changed):
            raise Invalid(f"--file: not all of {', '.join(sorted(changed))} exist. Expected paths from {root}")
        selection = Selection(make_graph(root, changed), trees, changed, options.budget, max(1, options.jobs))
    except Invalid as error:
        print(f"affected_tests.py: {error}", file=sys.stderr)
        return 2
    for tree in trees:
        write(selection, tree)
    report(selection, since)
    return 0


if __name__ == "__main__":
    sys.exit(main())
